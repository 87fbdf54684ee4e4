//! A cluster with nodes and a scheduler, and the user of it.

use crate::shape::Shape;
pub(crate) use crate::user::eventually;
use crate::user::{PATIENCE, User};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::Instrument as _;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::kubelet::{self, NodeTemplate};
use tutti_cluster::listener::Port;
use tutti_k8s::Capabilities;
use tutti_lease::{Place, Timing};
use tutti_scheduler::config::{HttpSettings, LeaseSettings};
use tutti_scheduler::{Config, Error, Settings};

/// Dropping the first part asks it to end.
type Scheduler = (oneshot::Sender<()>, JoinHandle<Result<(), Error>>);

/// The name of a scheduler that is no replica.
pub(crate) const ALONE: &str = "";
/// The lease of replicas, in the default namespace.
pub(crate) const LEASE_NAME: &str = "tutti-scheduler";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    user: User,
    schedulers: BTreeMap<String, Scheduler>,
}

/// Somebody in the default namespace.
impl Deref for World {
    type Target = User;

    fn deref(&self) -> &User {
        &self.user
    }
}

impl World {
    /// A cluster without nodes and without a scheduler, which serves groups in every version that there was.
    pub(crate) async fn empty() -> Self {
        Self::with(ClusterOptions::default(), Shape::Beta).await
    }

    /// The same with groups of one shape, and of no other.
    pub(crate) async fn of_shape(shape: Shape) -> Self {
        let world = Self::with(shape.cluster(), shape).await;
        if shape == Shape::Custom {
            world.define_groups().await;
        }
        world
    }

    /// A cluster with nobody but the kubelets, for tests that are many.
    pub(crate) async fn without_controllers() -> Self {
        Self::with(ClusterOptions { controllers: None, ..ClusterOptions::default() }, Shape::Beta).await
    }

    pub(crate) async fn with(options: ClusterOptions, shape: Shape) -> Self {
        let options = ClusterOptions {
            port: Port::Exactly(0),
            kubelets: kubelet::Options {
                start_delay: Duration::from_millis(20),
                stop_delay: Duration::from_millis(20),
                ..kubelet::Options::default()
            },
            ..options
        };
        let cluster = Cluster::start(options).await.expect("the cluster starts");
        Self { user: User::new(cluster.client(), shape), cluster, schedulers: BTreeMap::new() }
    }

    /// A cluster with a scheduler that finds out for itself what is served.
    pub(crate) async fn start() -> Self {
        let mut world = Self::empty().await;
        world.start_scheduler(world.client.clone());
        world
    }

    /// Installs our own kind of groups.
    pub(crate) async fn define_groups(&self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/podgroups.tutti.dev.yaml");
        let text = std::fs::read_to_string(path).expect("the definition is there");
        let definition = serde_saphyr::from_str(&text).expect("it is YAML");
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let definitions = Api::<DynamicObject>::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
        definitions.create(&PostParams::default(), &definition).await.expect("the definition is taken");
        let groups = self.objects("tutti.dev", "v1alpha1", "PodGroup");
        eventually("our own groups are served", || async {
            groups.list(&ListParams::default()).await.ok().map(drop)
        })
        .await;
    }

    pub(crate) fn start_scheduler(&mut self, client: Client) {
        self.start_scheduler_as(client, Config::default());
    }

    /// A scheduler with settings of its own.
    pub(crate) fn start_scheduler_as(&mut self, client: Client, config: Config) {
        self.run_scheduler(ALONE, |end| tutti_scheduler::run(client, config, end));
    }

    /// The same over a way that may be bad from the start: what the cluster serves is known beforehand.
    pub(crate) fn start_scheduler_through(&mut self, client: Client, config: Config) {
        let capabilities = Capabilities::of_versions(&[&self.shape.resource().version]);
        self.run_scheduler(ALONE, |end| {
            tutti_scheduler::run_with(client, config, capabilities, end).in_current_span()
        });
    }

    /// A whole process, which also notices when other APIs are served, and says how it is. Gives a client for that.
    pub(crate) fn start_process(&mut self, client: Client, config: Config) -> Client {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = free.local_addr().expect("it has an address");
        let http = HttpSettings { address: Some(address), ..HttpSettings::default() };
        let settings = Settings { config, http, ..Settings::default() };
        drop(free);
        self.run_scheduler(ALONE, |end| {
            tutti_scheduler::serve(client, watch::channel(settings).1, None, end)
        });
        asking(address)
    }

    /// One of several processes of which one leads.
    pub(crate) fn start_replica(&mut self, identity: &str, client: Client, config: Config, timing: Timing) {
        let lease = LeaseSettings { timing, ..LeaseSettings::default() };
        let http = HttpSettings { address: None, ..HttpSettings::default() };
        let settings = Settings { config, http, elects: true, lease };
        let (namespace, name) = (self.client.default_namespace().to_owned(), LEASE_NAME.to_owned());
        let place = Place { namespace, name, identity: identity.to_owned() };
        self.run_scheduler(identity, |end| {
            tutti_scheduler::serve(client, watch::channel(settings).1, Some(place), end).in_current_span()
        });
    }

    fn run_scheduler<R>(&mut self, name: &str, run: impl FnOnce(Ended) -> R)
    where
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let scheduler = (stop, tokio::spawn(run(Box::pin(ended(stopped)))));
        self.schedulers.insert(name.to_owned(), scheduler);
    }

    /// Ends a scheduler at once, in the middle of whatever it does.
    pub(crate) async fn kill_scheduler(&mut self, name: &str) {
        let (_stop, task) = self.schedulers.remove(name).expect("the scheduler runs");
        task.abort();
        assert!(task.await.is_err(), "it was still running");
    }

    /// Ends the scheduler, or all of its replicas, which must end well.
    pub(crate) async fn stop_scheduler(&mut self) {
        for (_, (stop, task)) in std::mem::take(&mut self.schedulers) {
            drop(stop);
            let ended = tokio::time::timeout(PATIENCE, task).await.expect("it ends in time");
            ended.expect("it does not panic").expect("it ends well");
        }
    }

    pub(crate) async fn end(mut self) {
        self.stop_scheduler().await;
        self.cluster.shutdown().await;
    }

    pub(crate) async fn node(&self, name: &str, cpus: &str) {
        self.node_at(name, cpus, &[]).await;
    }

    /// A node with a label for every level of a topology.
    pub(crate) async fn node_at(&self, name: &str, cpus: &str, labels: &[(&str, &str)]) {
        let node = NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi"), ("pods", "110")]);
        let node = labels.iter().fold(node, |node, (key, value)| node.label(*key, *value));
        self.cluster.add_node(&node).await.expect("the node is taken");
    }
}

/// Ready once a scheduler has to end.
type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn ended(stopped: oneshot::Receiver<()>) {
    // An error means that the sender was dropped, which is how it is told to stop.
    let _ = stopped.await;
}

/// A client of a process that answers without encryption.
fn asking(address: SocketAddr) -> Client {
    let url = format!("http://{address}").parse().expect("it is an address");
    Client::try_from(kube::Config::new(url)).expect("it is a client")
}

/// The sum of a metric over all labels of a process that have these words in them. A metric that it does not have is 0.
pub(crate) async fn metric(process: &Client, name: &str, words: &str) -> f64 {
    let request = http::Request::get("/metrics").body(Vec::new()).expect("it is a request");
    let text = process.request_text(request).await.expect("the process answers");
    let of_metric = text.lines().filter_map(|line| {
        let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
        let is_whole_name = labels.is_empty() || labels.starts_with('{');
        (is_whole_name && labels.contains(words)).then(|| value.parse::<f64>().expect("it is a number"))
    });
    of_metric.sum()
}
