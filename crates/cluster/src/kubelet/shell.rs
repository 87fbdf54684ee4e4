//! Connects the core to an API server: two watches in, bounded writes out, the clock beside it.

use super::Options;
use super::core::{Core, Input};
use super::lease;
use super::view::{Malformed, NodeView, PodRef, PodView};
use super::writes::{Effect, Outcome, Target};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// Requests under way at once. Enough to keep an API server busy, too few to drown it.
const WRITES_MAX: usize = 32;
/// Warnings that wait to be written. Further ones only go to the log.
const WARNINGS_MAX: usize = 1000;
/// A request that takes longer has failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest sleep; after it the core is asked again, which also covers a clock that was set back.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Who writes, as managedFields and events tell.
const MANAGER: &str = "tutti-kubelet";

/// Runs simulated kubelets for all nodes of a cluster that have none, until `shutdown` completes. Lost
/// connections are made anew, with pauses, for as long as it runs.
pub async fn run(client: Client, options: Options, shutdown: impl Future<Output = ()> + Send) {
    let writer = Writer::new(client);
    let mut nodes = inputs(
        watcher(writer.nodes.clone(), watcher::Config::default()),
        NodeView::read,
        Input::NodesListed,
        Input::NodeSeen,
        |node| Input::NodeGone(node.name),
    );
    let mut pods = inputs(
        watcher(writer.pods_everywhere.clone(), watcher::Config::default().fields("spec.nodeName!=")),
        PodView::read,
        Input::PodsListed,
        Input::PodSeen,
        |pod| Input::PodGone(pod.pod),
    );
    let mut core = Core::new(options);
    let mut queue = Queue::default();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        queue.start_what_fits(&writer);
        let sleep = tokio::time::sleep(time_until(core.next_wake(), Timestamp::now()));
        let input = tokio::select! {
            () = &mut shutdown => return,
            Some(input) = nodes.next() => input,
            Some(input) = pods.next() => input,
            Some(answer) = queue.under_way.next(), if !queue.under_way.is_empty() => match answer {
                Some((target, outcome)) => Input::Answered(target, outcome),
                None => continue,
            },
            () = sleep => Input::Tick,
        };
        queue.extend(core.step(input, Timestamp::now()));
    }
}

fn time_until(wake: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(wake) = wake else { return SLEEP_MAX };
    let wait = wake.duration_since(now);
    // A wake in the past is due at once.
    Duration::try_from(wait).unwrap_or(Duration::ZERO).min(SLEEP_MAX)
}

/// Turns a watch into inputs. A listing is collected, because only a whole one can tell what is gone.
fn inputs<V: Send + 'static>(
    events: impl futures::Stream<Item = Result<watcher::Event<DynamicObject>, watcher::Error>> + Send + 'static,
    read: fn(&DynamicObject) -> Result<V, Malformed>,
    listed: fn(Vec<V>) -> Input,
    seen: fn(V) -> Input,
    gone: fn(V) -> Input,
) -> BoxStream<'static, Input> {
    let mut listing = Vec::new();
    let read = move |object: &DynamicObject| match read(object) {
        Ok(view) => Some(view),
        Err(error) => {
            tracing::warn!(name = object.metadata.name, %error, "passing over an object that cannot be read");
            None
        }
    };
    events
        .default_backoff()
        .filter_map(move |event| {
            let input = match event {
                Ok(watcher::Event::Init) => {
                    listing = Vec::new();
                    None
                }
                Ok(watcher::Event::InitApply(object)) => {
                    listing.extend(read(&object));
                    None
                }
                Ok(watcher::Event::InitDone) => Some(listed(std::mem::take(&mut listing))),
                Ok(watcher::Event::Apply(object)) => read(&object).map(seen),
                Ok(watcher::Event::Delete(object)) => read(&object).map(gone),
                Err(error) => {
                    // Watches end all the time, for good reasons; the watcher starts over by itself.
                    tracing::debug!(%error, "watch of simulated kubelets was interrupted");
                    None
                }
            };
            std::future::ready(input)
        })
        .boxed()
}

/// Effects that wait and those under way.
#[derive(Default)]
struct Queue {
    /// At most one an object, see [`super::writes`], plus a limited number of warnings.
    waiting: VecDeque<Effect>,
    warnings_waiting: usize,
    under_way: FuturesUnordered<BoxFuture<'static, Option<(Target, Outcome)>>>,
}

impl Queue {
    fn extend(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Warn { pod, reason, message } = &effect {
                tracing::warn!(namespace = pod.namespace, pod = pod.name, reason, "{message}");
                if self.warnings_waiting >= WARNINGS_MAX {
                    continue;
                }
                self.warnings_waiting += 1;
            }
            self.waiting.push_back(effect);
        }
    }

    fn start_what_fits(&mut self, writer: &Writer) {
        while self.under_way.len() < WRITES_MAX
            && let Some(effect) = self.waiting.pop_front()
        {
            if matches!(effect, Effect::Warn { .. }) {
                self.warnings_waiting = self.warnings_waiting.saturating_sub(1);
            }
            self.under_way.push(writer.clone().write(effect).boxed());
        }
    }
}

/// Sends requests. Objects are never sent whole, so fields that this code does not know stay as they are.
#[derive(Clone)]
struct Writer {
    client: Client,
    nodes: Api<DynamicObject>,
    pods_everywhere: Api<DynamicObject>,
    pod: ApiResource,
}

impl Writer {
    fn new(client: Client) -> Self {
        let pod = ApiResource::erase::<Pod>(&());
        Self {
            nodes: Api::all_with(client.clone(), &ApiResource::erase::<Node>(&())),
            pods_everywhere: Api::all_with(client.clone(), &pod),
            pod,
            client,
        }
    }

    async fn write(self, effect: Effect) -> Option<(Target, Outcome)> {
        let target = effect.target();
        let outcome = match tokio::time::timeout(WRITE_TIMEOUT, self.send(effect)).await {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Outcome::Conflict,
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Outcome::Gone,
            Ok(Err(error)) => Outcome::Failed(error.to_string()),
            Err(_) => Outcome::Failed("no answer in time".to_owned()),
        };
        if let (None, Outcome::Failed(error)) = (&target, &outcome) {
            tracing::debug!(error, "cannot write an event");
        }
        target.map(|target| (target, outcome))
    }

    async fn send(&self, effect: Effect) -> Result<(), kube::Error> {
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match effect {
            Effect::PatchNode { name, patch } => {
                self.nodes.patch_status(&name, &params, &Patch::Merge(patch)).await?;
            }
            Effect::LabelNode { name, patch } => {
                self.nodes.patch(&name, &params, &Patch::Merge(patch)).await?;
            }
            Effect::RenewLease { name, lease } => self.renew(&name, lease, &params).await?,
            Effect::PatchPod { pod, patch } => {
                self.pods(&pod).patch_status(&pod.name, &params, &Patch::Merge(patch)).await?;
            }
            Effect::DeletePod { pod } => {
                let only_this = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
                let params = DeleteParams::default().grace_period(0).preconditions(only_this);
                self.pods(&pod).delete(&pod.name, &params).await?;
            }
            Effect::Warn { pod, reason, message } => {
                let event = event(&pod, reason, &message, Timestamp::now());
                let event = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
                let events: Api<k8s_openapi::api::core::v1::Event> =
                    Api::namespaced(self.client.clone(), &pod.namespace);
                events.create(&PostParams::default(), &event).await?;
            }
        }
        Ok(())
    }

    async fn renew(&self, name: &str, lease: Value, params: &PatchParams) -> Result<(), kube::Error> {
        let leases: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), lease::NAMESPACE, &ApiResource::erase::<Lease>(&()));
        let renewed = json!({"spec": lease["spec"]});
        match leases.patch(name, params, &Patch::Merge(&renewed)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
                leases.create(&PostParams::default(), &lease).await?;
            }
            other => drop(other?),
        }
        Ok(())
    }

    fn pods(&self, pod: &PodRef) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &pod.namespace, &self.pod)
    }
}

/// A Warning about a pod.
fn event(pod: &PodRef, reason: &str, message: &str, now: Timestamp) -> serde_json::Value {
    let time = super::pod_status::stamp(now);
    // Unique, and within the length of a name whatever the pod is called.
    let prefix: String = pod.name.chars().take(200).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{prefix}.{}", uuid::Uuid::new_v4().simple()),
            "namespace": pod.namespace,
        },
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod",
            "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "reportingInstance": MANAGER,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    })
}
