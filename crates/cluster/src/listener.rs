//! Where the API server listens: it serves by [`tutti_http::tls`], to clients with certificates.

use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpListener;

/// The well-known port of Kubernetes API servers.
pub const DEFAULT_PORT: u16 = 6443;

/// Which TCP port to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Port {
    /// 6443 if it is free, so that addresses stay the same from run to run; else any free one, so that two
    /// clusters do not fight.
    #[default]
    Preferred,
    /// Exactly this one, or fail. 0 is any free one.
    Exactly(u16),
}

/// Why the server could not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else has the port.
    #[error(
        "port {port} on {address} is already in use; end the program that has it, choose another with --port, \
         or take any free one with --port 0"
    )]
    PortTaken {
        /// Where.
        address: IpAddr,
        /// Which.
        port: u16,
    },
    /// The system refused for another reason.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Takes the port.
pub async fn bind(address: IpAddr, port: Port) -> Result<TcpListener, ListenError> {
    match port {
        Port::Exactly(port) => bind_exactly(address, port).await,
        Port::Preferred => match bind_exactly(address, DEFAULT_PORT).await {
            Err(ListenError::PortTaken { .. }) => bind_exactly(address, 0).await,
            other => other,
        },
    }
}

async fn bind_exactly(address: IpAddr, port: u16) -> Result<TcpListener, ListenError> {
    TcpListener::bind((address, port)).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::PortTaken { address, port },
        _ => ListenError::Other { address: SocketAddr::new(address, port), source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubeconfig;
    use crate::tls::Identities;
    use axum::Router;
    use axum::routing::get;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::body::Bytes;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::watch;
    use tokio::task::JoinHandle;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tutti_http::tls::{CONNECTIONS_MAX, SHUTDOWN_GRACE, serve_at_most};

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    struct Served {
        identities: Identities,
        address: SocketAddr,
        end: watch::Sender<bool>,
        task: JoinHandle<()>,
        /// Somebody has asked for what never comes.
        asked: Arc<tokio::sync::Notify>,
    }

    async fn serve_hello() -> Served {
        serve_hello_at_most(CONNECTIONS_MAX).await
    }

    async fn serve_hello_at_most(connections_max: usize) -> Served {
        let identities = Identities::generate(LOOPBACK, jiff::Timestamp::now()).unwrap();
        let listener = bind(LOOPBACK, Port::Exactly(0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, shutdown) = watch::channel(false);
        let asked = Arc::new(tokio::sync::Notify::new());
        let forever = {
            let asked = asked.clone();
            move || async move {
                asked.notify_one();
                std::future::pending::<String>().await
            }
        };
        let router = Router::new().route("/hello", get(async || "hello")).route("/forever", get(forever));
        let task = tokio::spawn(serve_at_most(
            connections_max,
            listener,
            identities.server.clone(),
            router,
            shutdown,
        ));
        Served { identities, address, end, task, asked }
    }

    impl Served {
        /// A TLS connection, with or without a client certificate.
        async fn connect(
            &self,
            trusted: &Identities,
            with: Option<&Identities>,
            alpn: &[u8],
        ) -> io::Result<TlsStream<TcpStream>> {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(trusted.ca_pem.as_bytes()).unwrap()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots);
            let mut config = match with {
                None => config.with_no_client_auth(),
                Some(identities) => {
                    let certificate =
                        CertificateDer::from_pem_slice(identities.client_certificate_pem.as_bytes()).unwrap();
                    let key = PrivateKeyDer::from_pem_slice(identities.client_key_pem.as_bytes()).unwrap();
                    config.with_client_auth_cert(vec![certificate], key).unwrap()
                }
            };
            config.alpn_protocols = vec![alpn.to_vec()];
            let stream = TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("localhost").unwrap();
            TlsConnector::from(Arc::new(config)).connect(name, stream).await
        }

        /// What the server answers to a plain HTTP/1.1 request over `stream`; empty if it hangs up.
        async fn ask(stream: io::Result<TlsStream<TcpStream>>) -> String {
            let mut answer = Vec::new();
            if let Ok(mut stream) = stream {
                let request = b"GET /hello HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
                // With TLS 1.3 a client learns of its refusal only by the next read or write.
                let _ = stream.write_all(request).await;
                let _ = stream.read_to_end(&mut answer).await;
            }
            String::from_utf8_lossy(&answer).into_owned()
        }
    }

    #[tokio::test]
    async fn whoever_has_no_certificate_of_this_cluster_gets_no_answer() {
        let served = serve_hello().await;
        let other = Identities::generate(LOOPBACK, jiff::Timestamp::now()).unwrap();
        let own = &served.identities;
        assert_eq!(Served::ask(served.connect(own, None, b"http/1.1").await).await, "");
        assert_eq!(Served::ask(served.connect(own, Some(&other), b"http/1.1").await).await, "");
        let mut plain = TcpStream::connect(served.address).await.unwrap();
        plain.write_all(b"GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!String::from_utf8_lossy(&answer).contains("hello"));
        let answer = Served::ask(served.connect(own, Some(own), b"http/1.1").await).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn a_client_of_another_cluster_does_not_trust_this_server() {
        let served = serve_hello().await;
        let other = Identities::generate(LOOPBACK, jiff::Timestamp::now()).unwrap();
        assert!(served.connect(&other, Some(&other), b"http/1.1").await.is_err());
    }

    #[tokio::test]
    async fn http2_is_served_where_the_client_asks_for_it() {
        let served = serve_hello().await;
        let own = &served.identities;
        let stream = served.connect(own, Some(own), b"h2").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get("https://localhost/hello").body(Empty::<Bytes>::new()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
    }

    #[tokio::test]
    async fn the_kubeconfig_is_all_that_a_client_needs() {
        let served = serve_hello().await;
        let text = kubeconfig::render(&format!("https://{}", served.address), &served.identities);
        let client = kubeconfig::client(&text).await.unwrap();
        let request = http::Request::get("/hello").body(Vec::new()).unwrap();
        assert_eq!(client.request_text(request).await.unwrap(), "hello");
    }

    #[tokio::test]
    async fn shutdown_ends_soon_even_while_requests_hang() {
        let served = serve_hello().await;
        let own = &served.identities;
        let mut stream = served.connect(own, Some(own), b"http/1.1").await.unwrap();
        stream.write_all(b"GET /forever HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        served.asked.notified().await;
        served.end.send(true).unwrap();
        tokio::time::timeout(SHUTDOWN_GRACE * 4, served.task).await.expect("it ends").unwrap();
        assert!(TcpStream::connect(served.address).await.is_err(), "the port is free again");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_their_turn() {
        let served = serve_hello_at_most(1).await;
        let own = &served.identities;
        let first = served.connect(own, Some(own), b"http/1.1").await.unwrap();
        let mut second = std::pin::pin!(served.connect(own, Some(own), b"http/1.1"));
        let early = tokio::time::timeout(Duration::from_millis(200), second.as_mut()).await;
        assert!(early.is_err(), "the only place is taken");
        drop(first);
        let answer = Served::ask(second.await).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn a_taken_port_is_named_with_what_to_do() {
        let first = bind(LOOPBACK, Port::Exactly(0)).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = bind(LOOPBACK, Port::Exactly(port)).await.unwrap_err().to_string();
        assert!(error.contains(&port.to_string()) && error.contains("--port 0"), "{error}");
    }

    #[tokio::test]
    async fn two_clusters_without_a_wish_get_two_ports() {
        let first = bind(LOOPBACK, Port::Preferred).await.unwrap();
        let second = bind(LOOPBACK, Port::Preferred).await.unwrap();
        assert_ne!(first.local_addr().unwrap(), second.local_addr().unwrap());
    }
}
