//! Python's client, over HTTPS as everybody would use it.

use std::path::PathBuf;
use std::process::Command;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;

/// The interpreter with the client, which `./test` installs.
const PYTHON: &str = "TUTTI_TEST_PYTHON";

/// A file that is gone when the test is over: it holds a key.
struct Kubeconfig(PathBuf);

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pythons_client_lists_watches_creates_and_patches() {
    let Some(python) = std::env::var_os(PYTHON).filter(|python| !python.is_empty()) else {
        eprintln!(
            "skipped: {PYTHON} names no Python with the kubernetes package; ./test installs one if it can"
        );
        return;
    };
    let options = ClusterOptions {
        port: Port::Exactly(0),
        nodes: 2,
        simulate_nodes: false,
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let name = format!("tutti-python-{}-{}", std::process::id(), cluster.address().port());
    let file = Kubeconfig(std::env::temp_dir().join(name));
    std::fs::write(&file.0, cluster.kubeconfig()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");
    let mut command = Command::new(python);
    command.arg(script).arg(&file.0);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.trim(), "ok");
    cluster.shutdown().await;
}
