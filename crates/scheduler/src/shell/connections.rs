//! How the cluster is talked to, and as whom.

use super::paced_watch::PacedThread;
use crate::error::Error;
use kube::Client;
use tutti_k8s::connect::Connection;

/// Clients of one cluster.
#[derive(Clone)]
pub struct Clients {
    /// For everything, or for everything else.
    pub client: Client,
    /// For what is told often and is never urgent, if it has connections of its own: they are read seldom.
    pub apart: Option<Client>,
}

impl From<Connection> for Clients {
    fn from(Connection { client, apart, .. }: Connection) -> Self {
        Self { client, apart: Some(apart) }
    }
}

impl From<Client> for Clients {
    fn from(client: Client) -> Self {
        Self { client, apart: None }
    }
}

/// The clients of a process, and who reads what they are told.
pub(super) struct Connections {
    /// For what is read by whoever asks.
    pub(super) client: Client,
    /// For what can wait. A connection is read by the thread that opened it, so nobody else may use this client.
    pub(super) paced: Option<(Client, PacedThread)>,
    /// Who we are among replicas.
    pub(super) identity: Option<String>,
}

impl Connections {
    pub(super) fn new(clients: impl Into<Clients>, identity: Option<String>) -> Result<Self, Error> {
        let Clients { client, apart } = clients.into();
        let paced = match apart {
            Some(apart) => Some((apart, PacedThread::start().map_err(Error::Thread)?)),
            None => None,
        };
        Ok(Self { client, paced, identity })
    }
}
