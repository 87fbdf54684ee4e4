//! What a story happens in: a real API server, simulated nodes, Tutti as the scheduler, and a namespace of its own.

mod looking;
mod making;
mod watching;

pub(crate) use watching::PodWatch;

use crate::control_plane::ControlPlane;
use crate::kube_scheduler::KubeScheduler;
use crate::kubectl::Kubectl;
use crate::release::Release;
use crate::rights;
use crate::wait::{PATIENCE, eventually};
use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, ListParams, PostParams};
use serde_json::json;
use std::future::Future;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tutti_cluster::{kubeconfig, kubelet};
use tutti_k8s::Capabilities;
use tutti_scheduler::config::HttpSettings;
use tutti_scheduler::{Config, Settings};

/// The label by which a story finds its nodes again.
const STORY_LABEL: &str = "tutti.dev/e2e-story";

/// Where stories happen. One after the other, because nodes belong to nobody.
pub(crate) struct World<'a> {
    /// The parts of the control plane, if it is ours.
    pub(crate) control_plane: Option<&'a ControlPlane>,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) kubeconfig: PathBuf,
    /// The same cluster with the rights that a scheduler has.
    pub(crate) scheduler_kubeconfig: PathBuf,
    pub(crate) scheduler_client: Client,
    /// The `tutti` command.
    pub(crate) tutti: PathBuf,
    /// The `helm` command, if there is one.
    pub(crate) helm: Option<PathBuf>,
    /// The real one, if there is one for this cluster.
    pub(crate) kube_scheduler: Option<KubeScheduler>,
    /// For files of the story; removed at its end.
    pub(crate) folder: PathBuf,
    pub(crate) kubectl: Kubectl,
    /// What the cluster serves.
    pub(crate) capabilities: Capabilities,
    groups: ApiResource,
    tasks: Mutex<Tasks>,
}

/// What runs beside a story, by name.
type Tasks = Vec<(&'static str, oneshot::Sender<()>, JoinHandle<anyhow::Result<()>>)>;

/// What a world is made of.
#[derive(Clone)]
pub(crate) struct Setting<'a> {
    pub(crate) control_plane: Option<&'a ControlPlane>,
    pub(crate) kubeconfig: &'a Path,
    pub(crate) kubectl: Kubectl,
    pub(crate) tutti: &'a Path,
    pub(crate) helm: Option<&'a Path>,
    pub(crate) kube_scheduler: Option<KubeScheduler>,
    pub(crate) client: Client,
    /// What the cluster serves.
    pub(crate) capabilities: Capabilities,
    /// Of the account that `deploy/` has for the scheduler.
    pub(crate) scheduler_token: String,
}

impl<'a> Setting<'a> {
    /// A cluster, in which the scheduler is given its rights.
    pub(crate) async fn of(
        kubeconfig: &'a Path,
        controlplane_binary: &Path,
        tutti: &'a Path,
    ) -> anyhow::Result<Self> {
        let client = kubeconfig::client_of_file(kubeconfig).await?;
        let kubectl = Kubectl::new(controlplane_binary, kubeconfig);
        Ok(Self {
            control_plane: None,
            kubeconfig,
            tutti,
            helm: None,
            kube_scheduler: None,
            capabilities: Capabilities::discover(&client).await?,
            scheduler_token: rights::grant_scheduler(&kubectl).await?,
            kubectl,
            client,
        })
    }

    /// True if there are no composites, and none are expected: those of our own are served as they should be.
    pub(crate) fn may_lack_composites(&self) -> bool {
        let expected = self.control_plane.is_some_and(|ours| ours.release() == Release::V1_37);
        self.capabilities.composite.is_none() && !expected
    }

    /// True if nobody may change how many members must start together.
    pub(crate) fn minimum_is_fixed(&self) -> bool {
        self.capabilities.pod_group.as_ref().is_some_and(|groups| groups.version == "v1alpha2")
    }
}

impl<'a> World<'a> {
    /// A namespace with nodes that run pods and a scheduler that places them.
    pub(crate) async fn start(setting: Setting<'a>) -> anyhow::Result<Self> {
        let groups = setting.capabilities.pod_group.clone().context("the cluster serves no pod groups")?;
        let folder = std::env::temp_dir().join(format!("tutti-story-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join("scheduler.kubeconfig");
        let scheduler_kubeconfig =
            rights::kubeconfig_with(setting.kubeconfig, &setting.scheduler_token, path)?;
        let world = Self {
            control_plane: setting.control_plane,
            namespace: format!("story-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]),
            kubeconfig: setting.kubeconfig.to_owned(),
            tutti: setting.tutti.to_owned(),
            helm: setting.helm.map(Path::to_owned),
            kube_scheduler: setting.kube_scheduler,
            folder,
            kubectl: setting.kubectl,
            capabilities: setting.capabilities,
            groups,
            tasks: Mutex::default(),
            client: setting.client,
            scheduler_client: kubeconfig::client_of_file(&scheduler_kubeconfig).await?,
            scheduler_kubeconfig,
        };
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": world.namespace}}))?;
        Api::<Namespace>::all(world.client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .context("cannot create the namespace of the story")?;
        world.start_kubelets()?;
        world.start_scheduler()?;
        Ok(world)
    }

    /// Ends what runs, and takes away what others could stumble over.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.stop("scheduler").await?;
        let now = DeleteParams::default().grace_period(0);
        let everything = ListParams::default();
        // First, or their controllers would make the pods again.
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), &self.namespace);
        deployments.delete_collection(&DeleteParams::background(), &everything).await?;
        self.replica_sets().delete_collection(&DeleteParams::background(), &everything).await?;
        self.jobs().delete_collection(&DeleteParams::background(), &everything).await?;
        self.pods().delete_collection(&now, &everything).await?;
        self.groups().delete_collection(&now, &everything).await?;
        let own = ListParams::default().labels(&format!("{STORY_LABEL}={}", self.namespace));
        Api::<Node>::all(self.client.clone()).delete_collection(&now, &own).await?;
        eventually("the namespace of the story is empty", || async {
            let pods = self.pods().list(&everything).await?.items.len();
            let groups = self.groups().list(&everything).await?.items.len();
            Ok((pods + groups == 0).then_some(()).ok_or_else(|| format!("{pods} pods, {groups} groups")))
        })
        .await?;
        self.stop("kubelets").await?;
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        // Logs of a story that failed are in its error; files that stay are only untidy.
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(())
    }

    // === what runs ===

    pub(crate) fn start_scheduler(&self) -> anyhow::Result<()> {
        self.start_scheduler_as(Config::default())
    }

    pub(crate) fn start_scheduler_as(&self, config: Config) -> anyhow::Result<()> {
        let client = self.scheduler_client.clone();
        self.spawn("scheduler", |ended| async move { Ok(tutti_scheduler::run(client, config, ended).await?) })
    }

    /// A scheduler that believes that the cluster serves just this.
    pub(crate) fn start_scheduler_with(&self, capabilities: Capabilities) -> anyhow::Result<()> {
        let client = self.scheduler_client.clone();
        self.spawn("scheduler", |ended| async move {
            Ok(tutti_scheduler::run_with(client, Config::default(), capabilities, ended).await?)
        })
    }

    /// A scheduler that also says how it is. Gives a client for that.
    pub(crate) fn start_scheduler_with_metrics(&self) -> anyhow::Result<Client> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let http = HttpSettings { address: Some(address), ..HttpSettings::default() };
        let settings = Settings { http, ..Settings::default() };
        let client = self.scheduler_client.clone();
        self.spawn("scheduler", |ended| async move {
            Ok(tutti_scheduler::serve(client, watch::channel(settings).1, None, ended).await?)
        })?;
        Ok(Client::try_from(kube::Config::new(format!("http://{address}").parse()?))?)
    }

    /// Goes on with a scheduler that is set otherwise.
    pub(crate) async fn restart_scheduler_as(&self, config: Config) -> anyhow::Result<()> {
        self.stop("scheduler").await?;
        self.start_scheduler_as(config)
    }

    /// Tells a story without the scheduler that every other story has.
    pub(crate) async fn without_scheduler(
        &self,
        story: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        self.stop("scheduler").await?;
        let result = story.await;
        self.start_scheduler()?;
        result
    }

    /// Simulated kubelets, fast ones, that leave pods without a node to the cluster's garbage collector.
    pub(crate) fn start_kubelets(&self) -> anyhow::Result<()> {
        self.start_kubelets_as(kubelet::Options {
            start_delay: Duration::from_millis(50),
            stop_delay: Duration::from_millis(50),
            heartbeat_interval: Duration::from_secs(2),
            ..kubelet::Options::default()
        })
    }

    /// Goes on with kubelets that keep their nodes ready and start no pods, which would only cost time where it does not
    /// matter whether pods run.
    pub(crate) async fn restart_kubelets_without_pods(&self) -> anyhow::Result<()> {
        self.stop("kubelets").await?;
        self.start_kubelets_as(kubelet::Options {
            start_delay: Duration::from_secs(3600),
            heartbeat_interval: Duration::from_secs(3),
            ..kubelet::Options::default()
        })
    }

    fn start_kubelets_as(&self, options: kubelet::Options) -> anyhow::Result<()> {
        let client = self.client.clone();
        self.spawn("kubelets", |ended| async move {
            kubelet::run(client, options, ended).await;
            Ok(())
        })
    }

    /// Ends a task, which must end well.
    pub(crate) async fn stop(&self, name: &str) -> anyhow::Result<()> {
        let (_, stop, task) = {
            let mut tasks = self.tasks()?;
            let at = tasks.iter().position(|(other, ..)| *other == name);
            tasks.remove(at.with_context(|| format!("{name}: does not run"))?)
        };
        drop(stop);
        let ended = tokio::time::timeout(PATIENCE, task).await;
        ended
            .with_context(|| format!("{name}: does not end"))?
            .with_context(|| format!("{name}: panicked"))?
            .with_context(|| format!("{name}: failed"))
    }

    /// An error if something that should run has ended.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, _, task) in self.tasks()?.iter() {
            ensure!(!task.is_finished(), "{name}: ended unasked");
        }
        self.control_plane.map_or(Ok(()), ControlPlane::check)
    }

    /// Starts a task of the story, which [`Self::stop`] ends.
    pub(crate) fn spawn<F>(
        &self,
        name: &'static str,
        work: impl FnOnce(futures::future::BoxFuture<'static, ()>) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = Box::pin(async move {
            // An error means that the sender was dropped, which is how the end is asked for.
            let _ = stopped.await;
        });
        self.tasks()?.push((name, stop, tokio::spawn(work(ended))));
        Ok(())
    }

    fn tasks(&self) -> anyhow::Result<std::sync::MutexGuard<'_, Tasks>> {
        self.tasks.lock().map_err(|_| anyhow::anyhow!("a story panicked with its tasks in hand"))
    }
}
