//! The way from a scheduler to its cluster, which can be shut: then there is no API server.

use crate::world::World;
use std::net::SocketAddr;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) struct Door {
    is_open: watch::Sender<bool>,
}

impl Door {
    /// An open door. Schedulers that are started from now on go through it.
    pub(crate) async fn before(world: &World) -> Self {
        let file = world.folder.file("kubeconfig");
        let text = std::fs::read_to_string(&file).unwrap();
        let server = text.split_once("https://").unwrap().1;
        let cluster = server.split(|end: char| end.is_whitespace() || end == '"').next().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        std::fs::write(&file, text.replace(cluster, &address.to_string())).unwrap();
        let (is_open, state) = watch::channel(true);
        tokio::spawn(lead(listener, cluster.parse().unwrap(), state));
        Self { is_open }
    }

    /// Cuts all connections, and new ones too until it is open again.
    pub(crate) fn shut(&self) {
        self.is_open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }
}

/// The port is kept all the time: somebody else could take it.
async fn lead(listener: TcpListener, cluster: SocketAddr, mut is_open: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            client = listener.accept() => {
                let (mut client, _) = client.unwrap();
                if *is_open.borrow() {
                    connections.spawn(async move {
                        let mut server = TcpStream::connect(cluster).await.unwrap();
                        // Whoever hangs up has no more to say.
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            }
            changed = is_open.changed() => match changed {
                Ok(()) if *is_open.borrow() => {}
                Ok(()) => connections.shutdown().await,
                Err(_) => return,
            },
        }
    }
}
