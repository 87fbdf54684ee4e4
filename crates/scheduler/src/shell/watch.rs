//! Watches: lists and changes of every kind, as inputs of the core.

use super::workloads::Seen;
use crate::core::message::Input;
use futures::TryStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher::watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tutti_k8s::{
    Capabilities, ClaimView, ClassView, CompositeView, CsiNodeView, NamespaceView, NodeView, ObjectKind,
    PodGroupView, PodView, VolumeView, WorkloadView,
};

/// Objects in one page of a list: few enough for little memory, enough for few round trips.
pub(super) const PAGE_SIZE: u32 = 2000;

/// Starts a watch of every kind that the cluster serves.
pub(super) fn start(
    client: &Client,
    capabilities: &Capabilities,
    input: &mpsc::Sender<Seen>,
    tasks: &mut JoinSet<()>,
) {
    let link = capabilities.link;
    let pods = Watch::of(
        ObjectKind::Pod,
        move |pod: PodView| Input::PodSet(Box::new(pod.read_linked(link))),
        |pod: PodView| Input::PodGone(pod.key()),
    );
    tasks.spawn(pods.run(Api::<PodView>::all(client.clone()), input.clone()));
    let nodes = Watch::of(
        ObjectKind::Node,
        |node: NodeView| Input::NodeSet(Box::new(node.read())),
        |node: NodeView| Input::NodeGone(node.key().name),
    );
    tasks.spawn(nodes.run(Api::<NodeView>::all(client.clone()), input.clone()));
    let namespaces = Watch::of(
        ObjectKind::Namespace,
        |namespace: NamespaceView| Input::NamespaceSet {
            name: namespace.key().name,
            labels: namespace.read_labels(),
        },
        |namespace: NamespaceView| Input::NamespaceGone(namespace.key().name),
    );
    tasks.spawn(namespaces.run(Api::<NamespaceView>::all(client.clone()), input.clone()));
    if capabilities.storage {
        start_storage(client, input, tasks);
    }
    if let Some(resource) = &capabilities.composite {
        let composites = Watch::of(
            ObjectKind::Composite,
            |composite: CompositeView| Input::CompositeSet(Box::new(composite.read())),
            |composite: CompositeView| Input::CompositeGone(composite.key()),
        );
        let api = Api::<CompositeView>::all_with(client.clone(), resource);
        tasks.spawn(composites.run(api, input.clone()));
    }
    let Some(resource) = &capabilities.pod_group else {
        return;
    };
    if link.has_group_objects() {
        let condition = capabilities.group_condition;
        let groups = Watch::of(
            ObjectKind::PodGroup,
            move |group: PodGroupView| Input::GroupSet(Box::new(group.read(condition))),
            |group: PodGroupView| Input::GroupGone(group.key()),
        );
        let api = Api::<PodGroupView>::all_with(client.clone(), resource);
        tasks.spawn(groups.run(api, input.clone()));
    } else {
        let workloads = Watch {
            what: "workload",
            started: || Seen::WorkloadsStarted,
            done: || Seen::WorkloadsDone,
            set: |workload: WorkloadView| Seen::WorkloadSet(Box::new(workload.read())),
            gone: |workload: WorkloadView| Seen::WorkloadGone(workload.key()),
        };
        let api = Api::<WorkloadView>::all_with(client.clone(), resource);
        tasks.spawn(workloads.run(api, input.clone()));
    }
}

/// The same for the kinds that are about storage.
fn start_storage(client: &Client, input: &mpsc::Sender<Seen>, tasks: &mut JoinSet<()>) {
    let claims = Watch::of(
        ObjectKind::Claim,
        |claim: ClaimView| Input::ClaimSet(Box::new(claim.read())),
        |claim: ClaimView| Input::ClaimGone(claim.key()),
    );
    tasks.spawn(claims.run(Api::<ClaimView>::all(client.clone()), input.clone()));
    let volumes = Watch::of(
        ObjectKind::Volume,
        |volume: VolumeView| Input::VolumeSet(Box::new(volume.read())),
        |volume: VolumeView| Input::VolumeGone(volume.key().name),
    );
    tasks.spawn(volumes.run(Api::<VolumeView>::all(client.clone()), input.clone()));
    let classes = Watch::of(
        ObjectKind::StorageClass,
        |class: ClassView| Input::ClassSet(Box::new(class.read())),
        |class: ClassView| Input::ClassGone(class.name()),
    );
    tasks.spawn(classes.run(Api::<ClassView>::all(client.clone()), input.clone()));
    let limits = Watch::of(
        ObjectKind::CsiNode,
        |node: CsiNodeView| Input::LimitsSet(Box::new(node.read())),
        |node: CsiNodeView| Input::LimitsGone(node.key().name),
    );
    tasks.spawn(limits.run(Api::<CsiNodeView>::all(client.clone()), input.clone()));
}

/// How objects of one kind are told of.
struct Watch<S, G, L, D> {
    /// What they are called in logs.
    what: &'static str,
    started: L,
    done: D,
    set: S,
    gone: G,
}

impl Watch<(), (), (), ()> {
    /// A watch whose objects the core understands.
    fn of<V>(
        kind: ObjectKind,
        set: impl Fn(V) -> Input,
        gone: impl Fn(V) -> Input,
    ) -> Watch<impl Fn(V) -> Seen, impl Fn(V) -> Seen, impl Fn() -> Seen, impl Fn() -> Seen> {
        Watch {
            what: kind.as_str(),
            started: move || Seen::Input(Input::ListStarted(kind)),
            done: move || Seen::Input(Input::ListDone(kind)),
            set: move |object| Seen::Input(set(object)),
            gone: move |object| Seen::Input(gone(object)),
        }
    }
}

impl<S, G, L, D> Watch<S, G, L, D> {
    /// Watches until nobody listens any more. A watch that breaks is started again, at first soon and then more
    /// and more slowly; what was missed is found by the list that follows.
    async fn run<V>(self, api: Api<V>, input: mpsc::Sender<Seen>)
    where
        V: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
        S: Fn(V) -> Seen,
        G: Fn(V) -> Seen,
        L: Fn() -> Seen,
        D: Fn() -> Seen,
    {
        // Lists are read at the newest version, never from a cache that may be behind. (Streamed lists would be: the
        // watcher asks for them at version 0.)
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        let stream = watcher(api, config).default_backoff();
        let mut stream = pin!(stream);
        let mut failing = false;
        loop {
            let event = match stream.try_next().await {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(error) => {
                    // Told once until it works again: a server that is away for an hour is one piece of news.
                    if !failing {
                        tracing::warn!(kind = self.what, %error, "watch broke; trying again");
                    }
                    failing = true;
                    continue;
                }
            };
            if failing {
                tracing::info!(kind = self.what, "watch works again");
                failing = false;
            }
            let next = match event {
                Event::Init => (self.started)(),
                Event::InitDone => (self.done)(),
                Event::InitApply(object) | Event::Apply(object) => (self.set)(object),
                Event::Delete(object) => (self.gone)(object),
            };
            if input.send(next).await.is_err() {
                return;
            }
        }
    }
}
