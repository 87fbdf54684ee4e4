//! Follows pods and pod groups through watches, and waits until they are as expected.

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::Client;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The condition by which a scheduler says whether a group found its place.
const SCHEDULED: &str = "PodGroupInitiallyScheduled";

/// Kinds that are followed or created here.
pub(crate) fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Two watches and what they have shown so far.
pub(crate) struct Observer {
    events: BoxStream<'static, (Kind, watcher::Event<DynamicObject>)>,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pod,
    Group,
}

/// The newest state of one namespace.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pods: Followed,
    groups: Followed,
}

#[derive(Debug, Default)]
struct Followed {
    objects: BTreeMap<String, Value>,
    /// Collects a listing until it is whole.
    listing: BTreeMap<String, Value>,
}

/// A gang in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Pods that there are.
    pub(crate) members: usize,
    /// Pods that have a node.
    pub(crate) placed: usize,
    /// Pods that run.
    pub(crate) running: usize,
    /// Nodes that run them, and how many each.
    pub(crate) nodes: BTreeMap<String, usize>,
}

impl Observer {
    /// Starts to follow a namespace.
    pub(crate) fn new(client: &Client, namespace: &str) -> Self {
        let follow = |kind: Kind, resource: &ApiResource| {
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
            watcher(api, watcher::Config::default())
                .default_backoff()
                .filter_map(move |event| async move {
                    match event {
                        Ok(event) => Some((kind, event)),
                        Err(error) => {
                            tracing::debug!(%error, "a watch was interrupted and starts over");
                            None
                        }
                    }
                })
                .boxed()
        };
        let pods = follow(Kind::Pod, &resource("v1", "Pod"));
        let groups = follow(Kind::Group, &resource("scheduling.k8s.io/v1beta1", "PodGroup"));
        Self { events: futures::stream::select(pods, groups).boxed(), seen: Seen::default() }
    }

    /// Waits until `check` gives something, looking after every change. Its errors, and a wait beyond
    /// `limit`, end the wait; `what` says what was waited for.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut check: impl FnMut(&Seen) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let wait = async {
            loop {
                if let Some(result) = check(&self.seen)? {
                    return Ok(result);
                }
                let Some((kind, event)) = self.events.next().await else { bail!("the watches ended") };
                self.seen.apply(kind, event);
            }
        };
        tokio::time::timeout(limit, wait)
            .await
            .unwrap_or_else(|_| bail!("it did not happen within {} s", limit.as_secs()))
            .with_context(|| format!("waited until {what}"))
    }

    /// Watches for `time` that `check` holds after every change.
    pub(crate) async fn throughout(
        &mut self,
        time: Duration,
        mut check: impl FnMut(&Seen) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let deadline = tokio::time::Instant::now() + time;
        loop {
            check(&self.seen)?;
            match tokio::time::timeout_at(deadline, self.events.next()).await {
                Ok(Some((kind, event))) => self.seen.apply(kind, event),
                Ok(None) => bail!("the watches ended"),
                Err(_) => return Ok(()),
            }
        }
    }

    /// What was seen last.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }
}

impl Seen {
    fn apply(&mut self, kind: Kind, event: watcher::Event<DynamicObject>) {
        let followed = match kind {
            Kind::Pod => &mut self.pods,
            Kind::Group => &mut self.groups,
        };
        let split = |object: DynamicObject| (object.metadata.name.unwrap_or_default(), object.data);
        match event {
            watcher::Event::Init => followed.listing.clear(),
            watcher::Event::InitApply(object) => {
                followed.listing.extend([split(object)]);
            }
            watcher::Event::InitDone => followed.objects = std::mem::take(&mut followed.listing),
            watcher::Event::Apply(object) => followed.objects.extend([split(object)]),
            watcher::Event::Delete(object) => {
                followed.objects.remove(&split(object).0);
            }
        }
    }

    /// A gang in numbers.
    pub(crate) fn tally(&self, group: &str) -> Tally {
        let mut tally = Tally::default();
        let member = |pod: &&Value| text(pod, "/spec/schedulingGroup/podGroupName") == Some(group);
        for pod in self.pods.objects.values().filter(member) {
            tally.members += 1;
            let node = text(pod, "/spec/nodeName").filter(|node| !node.is_empty());
            tally.placed += usize::from(node.is_some());
            if text(pod, "/status/phase") == Some("Running") {
                tally.running += 1;
                *tally.nodes.entry(node.unwrap_or("no node").to_owned()).or_default() += 1;
            }
        }
        tally
    }

    /// Why the scheduler did not place the group, if it says so.
    pub(crate) fn refusal(&self, group: &str) -> Option<String> {
        let conditions = self.groups.objects.get(group)?.pointer("/status/conditions")?.as_array()?;
        let refused = |c: &&Value| text(c, "/type") == Some(SCHEDULED) && text(c, "/status") == Some("False");
        text(conditions.iter().find(refused)?, "/message").map(str::to_owned)
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, data: Value) -> DynamicObject {
        let mut object = DynamicObject::new(name, &resource("v1", "Pod"));
        object.data = data;
        object
    }

    fn pod(group: &str, node: &str, phase: &str) -> Value {
        json!({"spec": {"schedulingGroup": {"podGroupName": group}, "nodeName": node}, "status": {"phase": phase}})
    }

    #[test]
    fn a_tally_counts_what_the_watch_showed() {
        let mut seen = Seen::default();
        seen.apply(Kind::Pod, watcher::Event::Init);
        seen.apply(Kind::Pod, watcher::Event::InitApply(object("a", pod("g", "n", "Running"))));
        assert_eq!(seen.tally("g").members, 0, "half a listing shows nothing");
        seen.apply(Kind::Pod, watcher::Event::InitDone);
        seen.apply(Kind::Pod, watcher::Event::Apply(object("b", pod("g", "n", "Pending"))));
        seen.apply(Kind::Pod, watcher::Event::Apply(object("c", pod("g", "", "Pending"))));
        seen.apply(Kind::Pod, watcher::Event::Apply(object("d", pod("other", "n", "Running"))));
        let tally = seen.tally("g");
        assert_eq!((tally.members, tally.placed, tally.running), (3, 2, 1));
        seen.apply(Kind::Pod, watcher::Event::Delete(object("a", Value::Null)));
        assert_eq!(seen.tally("g").running, 0);
    }

    #[test]
    fn only_a_false_condition_is_a_refusal() {
        let mut seen = Seen::default();
        for (status, want) in [("True", None), ("False", Some("short of GPUs".to_owned()))] {
            let condition = json!({"type": SCHEDULED, "status": status, "message": "short of GPUs"});
            let group = json!({"status": {"conditions": [{"type": "Other"}, condition]}});
            seen.apply(Kind::Group, watcher::Event::Apply(object("g", group)));
            assert_eq!(seen.refusal("g"), want);
        }
        assert_eq!(seen.refusal("unknown"), None);
    }
}
