//! A control plane of its own: etcd, kube-apiserver and kube-controller-manager as processes on loopback.

use crate::certificates::{ADMIN, CONTROLLER_MANAGER, Certificates, ETCD_CLIENT, shown};
use crate::process::Component;
use crate::release::Release;
use crate::wait::{PATIENCE_START, pause};
use anyhow::{Context as _, bail};
use kube::Client;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tutti_cluster::kubeconfig;

/// Ports are taken from here, because systems give those above 32767 to clients, who may be faster.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Part of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Etcd,
    ApiServer,
    ControllerManager,
}

/// What a control plane is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Purpose {
    /// Stories: all controllers run, and losing a node takes seconds.
    Stories,
    /// Answers of the API: what nobody asked for does not happen, and defaults are those of Kubernetes.
    Api,
}

impl Purpose {
    /// How long pods stay on a node that is lost.
    fn toleration_seconds(self) -> u32 {
        match self {
            Self::Stories => 3,
            Self::Api => 300,
        }
    }

    fn controllers(self) -> &'static str {
        match self {
            Self::Stories => "*",
            // Those whose work is part of what a deletion means.
            Self::Api => "namespace-controller,garbage-collector-controller,podgroup-protection-controller",
        }
    }
}

/// A control plane. Its processes and its folder end with it.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    release: Release,
    binary: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
    parts: Mutex<[Component; 3]>,
    keep_folder: std::sync::atomic::AtomicBool,
}

impl ControlPlane {
    /// Starts all parts and waits until requests are served.
    pub(crate) async fn start(release: Release, binary: &Path, purpose: Purpose) -> anyhow::Result<Self> {
        Self::start_with(release, binary, purpose, &[]).await
    }

    /// The same with further feature gates.
    pub(crate) async fn start_with(
        release: Release,
        binary: &Path,
        purpose: Purpose,
        gates: &[&str],
    ) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("tutti-e2e-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let certificates = Certificates::generate(folder.join("certificates"))?;
        let [etcd, api, controllers] = free_ports()?;
        let url = format!("https://127.0.0.1:{api}");
        let kubeconfig = certificates.kubeconfig(ADMIN, &url)?;
        let component = |name: &'static str, mut arguments: Vec<String>| {
            let log = folder.join(format!("{name}.log"));
            arguments.insert(0, name.to_owned());
            Component::new(name, binary.to_owned(), arguments, log)
        };
        let parts = [
            component("etcd", etcd_arguments(&folder, &certificates, etcd)),
            component(
                "kube-apiserver",
                api_server_arguments(release, purpose, gates, &folder, &certificates, etcd, api),
            ),
            component(
                "kube-controller-manager",
                controller_manager_arguments(release, purpose, gates, &certificates, &url, controllers)?,
            ),
        ];
        let binary = binary.to_owned();
        let this =
            Self { release, binary, folder, kubeconfig, parts: Mutex::new(parts), keep_folder: false.into() };
        this.start_part(Part::Etcd)?;
        this.start_part(Part::ApiServer)?;
        this.wait_ready().await?;
        // Not before, because it gives up on an API server that takes long.
        this.start_part(Part::ControllerManager)?;
        Ok(this)
    }

    pub(crate) fn release(&self) -> Release {
        self.release
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts a part that was killed.
    pub(crate) fn start_part(&self, part: Part) -> anyhow::Result<()> {
        self.with_part(part, Component::start)
    }

    /// Ends a part as a crash would.
    pub(crate) fn kill_part(&self, part: Part) -> anyhow::Result<()> {
        self.with_part(part, Component::kill)
    }

    /// An error if a part has ended by itself.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for part in [Part::Etcd, Part::ApiServer, Part::ControllerManager] {
            self.with_part(part, Component::check)?;
        }
        Ok(())
    }

    /// Waits until the API server says that it is ready.
    pub(crate) async fn wait_ready(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE_START;
        let client = self.client().await?;
        let mut last = String::new();
        while Instant::now() < deadline {
            self.check()?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            match client.request_text(request).await {
                Ok(_) => return Ok(()),
                Err(error) => last = error.to_string(),
            }
            pause().await;
        }
        let log = self.with_part(Part::ApiServer, |part| Ok(part.tail()))?;
        bail!("the API server was not ready in time ({last}); its log ends with\n{log}");
    }

    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        Ok(kubeconfig::client_of_file(&self.kubeconfig).await?)
    }

    /// Leaves logs and data where they are, and says where.
    pub(crate) fn keep_folder(&self) -> &Path {
        self.keep_folder.store(true, std::sync::atomic::Ordering::Relaxed);
        &self.folder
    }

    fn with_part<T>(
        &self,
        part: Part,
        act: impl FnOnce(&mut Component) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut parts[part as usize])
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        // In the reverse order of their start, so that nobody complains about another's end.
        for part in parts.iter_mut().rev() {
            let _ = part.kill();
        }
        if !*self.keep_folder.get_mut() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn flags<const N: usize>(pairs: [(&str, String); N]) -> Vec<String> {
    pairs.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn etcd_arguments(folder: &Path, certificates: &Certificates, port: u16) -> Vec<String> {
    let (certificate, key) = certificates.server();
    flags([
        ("data-dir", shown(&folder.join("etcd"))),
        ("listen-client-url", format!("https://127.0.0.1:{port}")),
        ("cert-file", certificate),
        ("key-file", key),
        ("trusted-ca-file", certificates.authority()),
        // Tests kill processes, not machines.
        ("unsafe-no-fsync", "true".to_owned()),
    ])
}

fn api_server_arguments(
    release: Release,
    purpose: Purpose,
    gates: &[&str],
    folder: &Path,
    certificates: &Certificates,
    etcd: u16,
    port: u16,
) -> Vec<String> {
    let (certificate, key) = certificates.server();
    let (etcd_certificate, etcd_key) = certificates.client(ETCD_CLIENT);
    let (private_key, public_key) = certificates.service_accounts();
    flags([
        ("etcd-servers", format!("https://127.0.0.1:{etcd}")),
        ("etcd-cafile", certificates.authority()),
        ("etcd-certfile", etcd_certificate),
        ("etcd-keyfile", etcd_key),
        ("bind-address", "127.0.0.1".to_owned()),
        ("advertise-address", "127.0.0.1".to_owned()),
        // Nobody looks for the API server through a Service here.
        ("endpoint-reconciler-type", "none".to_owned()),
        ("secure-port", port.to_string()),
        ("cert-dir", shown(&folder.join("apiserver"))),
        ("tls-cert-file", certificate),
        ("tls-private-key-file", key),
        ("client-ca-file", certificates.authority()),
        ("authorization-mode", "RBAC".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", public_key),
        ("service-account-signing-key-file", private_key),
        ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        // Nodes are posted without a kubelet, and pods without a service account.
        ("disable-admission-plugins", "ServiceAccount,TaintNodesByCondition".to_owned()),
        ("default-not-ready-toleration-seconds", purpose.toleration_seconds().to_string()),
        ("default-unreachable-toleration-seconds", purpose.toleration_seconds().to_string()),
        ("feature-gates", release.feature_gates(gates)),
        ("runtime-config", release.runtime_config().to_owned()),
    ])
}

fn controller_manager_arguments(
    release: Release,
    purpose: Purpose,
    gates: &[&str],
    certificates: &Certificates,
    url: &str,
    port: u16,
) -> anyhow::Result<Vec<String>> {
    let (certificate, key) = certificates.server();
    let kubeconfig = certificates.kubeconfig(CONTROLLER_MANAGER, url)?;
    Ok(flags([
        ("kubeconfig", shown(&kubeconfig)),
        ("bind-address", "127.0.0.1".to_owned()),
        ("secure-port", port.to_string()),
        ("tls-cert-file", certificate),
        ("tls-private-key-file", key),
        ("leader-elect", "false".to_owned()),
        ("controllers", purpose.controllers().to_owned()),
        // Each controller has rights of its own; the controller manager itself has few.
        ("use-service-account-credentials", "true".to_owned()),
        ("service-account-private-key-file", certificates.service_accounts().0),
        ("root-ca-file", certificates.authority()),
        // Losing a node should take seconds.
        ("node-monitor-period", "1s".to_owned()),
        ("node-monitor-grace-period", "8s".to_owned()),
        ("node-startup-grace-period", "8s".to_owned()),
        ("node-eviction-rate", "100".to_owned()),
        // Hundreds of Jobs should not wait for the manners of a client.
        ("kube-api-qps", "500".to_owned()),
        ("kube-api-burst", "1000".to_owned()),
        ("feature-gates", release.feature_gates(gates)),
    ]))
}

/// Ports that are free now. Several runs on one machine start looking at different places.
fn free_ports() -> anyhow::Result<[u16; 3]> {
    let count = PORTS.end - PORTS.start;
    let first = u16::try_from(uuid::Uuid::new_v4().as_u128() % u128::from(count))?;
    let mut free = (0..count)
        .map(|offset| PORTS.start + (first + offset) % count)
        .filter(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    let mut next = || free.next().context("no free port was found");
    Ok([next()?, next()?, next()?])
}
