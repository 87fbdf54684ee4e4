//! The way from a scheduler to its cluster, which can be shut: then there is no API server.

use crate::world::World;
use std::net::SocketAddr;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) struct Door {
    address: SocketAddr,
    cluster: SocketAddr,
    /// Takes connections, and cuts them all when it ends.
    way: JoinHandle<()>,
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
        let cluster = cluster.parse().unwrap();
        Self { address, cluster, way: tokio::spawn(lead(listener, cluster)) }
    }

    /// Cuts all connections, and refuses others until it is open again.
    pub(crate) async fn shut(&mut self) {
        self.way.abort();
        assert!((&mut self.way).await.unwrap_err().is_cancelled());
    }

    pub(crate) async fn open(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.way = tokio::spawn(lead(listener, self.cluster));
    }
}

async fn lead(listener: TcpListener, cluster: SocketAddr) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut server = TcpStream::connect(cluster).await.unwrap();
            // Whoever hangs up has no more to say.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
    }
}
