//! Watches: lists and changes of every kind, as inputs of the core.

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
use tutti_k8s::view::{Kind, View};
use tutti_k8s::{Capabilities, NamespaceView, NodeView, ObjectKind, PodGroupView, PodView};

/// Starts a watch of every kind that the cluster serves.
pub(super) fn start(
    client: &Client,
    capabilities: &Capabilities,
    input: &mpsc::Sender<Input>,
    tasks: &mut JoinSet<()>,
) {
    let pods = Watch {
        kind: ObjectKind::Pod,
        set: |pod: PodView| Input::PodSet(Box::new(pod.read())),
        gone: |pod: PodView| Input::PodGone(pod.key()),
    };
    tasks.spawn(pods.run(Api::<PodView>::all(client.clone()), input.clone()));
    let nodes = Watch {
        kind: ObjectKind::Node,
        set: |node: NodeView| Input::NodeSet(Box::new(node.read())),
        gone: |node: NodeView| Input::NodeGone(node.key().name),
    };
    tasks.spawn(nodes.run(Api::<NodeView>::all(client.clone()), input.clone()));
    let namespaces = Watch {
        kind: ObjectKind::Namespace,
        set: |namespace: NamespaceView| Input::NamespaceSet {
            name: namespace.key().name,
            labels: namespace.read_labels(),
        },
        gone: |namespace: NamespaceView| Input::NamespaceGone(namespace.key().name),
    };
    tasks.spawn(namespaces.run(Api::<NamespaceView>::all(client.clone()), input.clone()));
    if let Some(resource) = &capabilities.pod_group {
        let condition = capabilities.group_condition;
        let groups = Watch {
            kind: ObjectKind::PodGroup,
            set: move |group: PodGroupView| Input::GroupSet(Box::new(group.read(condition))),
            gone: |group: PodGroupView| Input::GroupGone(group.key()),
        };
        let api = Api::<PodGroupView>::all_with(client.clone(), resource);
        tasks.spawn(groups.run(api, input.clone()));
    }
}

/// How objects of one kind become inputs.
struct Watch<S, G> {
    kind: ObjectKind,
    set: S,
    gone: G,
}

impl<S, G> Watch<S, G> {
    /// Watches until nobody listens any more. A watch that breaks is started again, at first soon and then more
    /// and more slowly; what was missed is found by the list that follows.
    async fn run<K>(self, api: Api<View<K>>, input: mpsc::Sender<Input>)
    where
        K: Kind,
        View<K>: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
        S: Fn(View<K>) -> Input,
        G: Fn(View<K>) -> Input,
    {
        // Lists are read at the newest version, never from a cache that may be behind.
        let stream = watcher(api, watcher::Config::default()).default_backoff();
        let mut stream = pin!(stream);
        let mut failing = false;
        loop {
            let event = match stream.try_next().await {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(error) => {
                    // Told once until it works again: a server that is away for an hour is one piece of news.
                    if !failing {
                        tracing::warn!(kind = %self.kind, %error, "watch broke; trying again");
                    }
                    failing = true;
                    continue;
                }
            };
            if failing {
                tracing::info!(kind = %self.kind, "watch works again");
                failing = false;
            }
            let next = match event {
                Event::Init => Input::ListStarted(self.kind),
                Event::InitDone => Input::ListDone(self.kind),
                Event::InitApply(object) | Event::Apply(object) => (self.set)(object),
                Event::Delete(object) => (self.gone)(object),
            };
            if input.send(next).await.is_err() {
                return;
            }
        }
    }
}
