//! Asks a process how it is.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Status code and body; nothing if nobody listens.
pub(crate) fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let code = text.split(' ').nth(1)?.parse().ok()?;
    Some((code, text.split_once("\r\n\r\n")?.1.to_owned()))
}

/// The metrics of a process that says that it is alive.
pub(crate) fn metrics_of_the_living(address: &str) -> String {
    for path in ["/livez", "/healthz"] {
        assert_eq!(get(address, path).unwrap().0, 200, "{path}");
    }
    let (code, metrics) = get(address, "/metrics").unwrap();
    assert_eq!(code, 200);
    metrics
}

pub(crate) async fn wait_ready(address: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some((200, body)) = get(address, "/readyz") {
            return body;
        }
        assert!(Instant::now() < deadline, "never ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
