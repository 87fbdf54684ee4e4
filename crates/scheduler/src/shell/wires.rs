//! How the cluster is talked to.

use super::calm::CalmThread;
use crate::error::Error;
use kube::Client;
use tutti_k8s::connect::Connection;

/// Clients of one cluster.
#[derive(Clone)]
pub struct Clients {
    /// For everything else.
    pub client: Client,
    /// For what is told often and is never urgent. It is read seldom, so it should have a connection of its own.
    pub apart: Client,
}

impl From<Connection> for Clients {
    fn from(Connection { client, apart, .. }: Connection) -> Self {
        Self { client, apart }
    }
}

impl From<Client> for Clients {
    fn from(client: Client) -> Self {
        Self { apart: client.clone(), client }
    }
}

/// The clients of a process, and the thread that reads what the calm one is told.
pub(super) struct Wires {
    pub(super) client: Client,
    pub(super) apart: Client,
    pub(super) calm: CalmThread,
}

impl Wires {
    pub(super) fn new(clients: impl Into<Clients>) -> Result<Self, Error> {
        let Clients { client, apart } = clients.into();
        Ok(Self { client, apart, calm: CalmThread::start().map_err(Error::Thread)? })
    }
}
