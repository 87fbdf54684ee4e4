//! The core under a fake clock: every test drives it by inputs and reads its effects.

mod admission;
mod endings;
mod nodes;
mod random;
mod restarts;

use super::core::{Core, Input};
use super::view::{NodeView, PodRef, PodView};
use super::writes::{Effect, Outcome, Target};
use super::{EXIT_CODE, KUBELET_VERSION, Options, RUN_SECONDS};
use jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

/// A core with its clock, and a store that does what the effects say, as an API server would.
struct World {
    core: Core,
    now: Timestamp,
    options: Options,
    objects: Vec<Value>,
    leases: std::collections::BTreeMap<String, Value>,
    version: u64,
    /// What goes wrong with the next writes.
    faults: std::collections::VecDeque<Fault>,
}

/// What can go wrong with a write.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// It is not done.
    Refused,
    /// It is done, but the answer says otherwise.
    AnswerLost,
}

impl World {
    fn new() -> Self {
        let options = Options {
            start_delay: Duration::from_millis(500),
            stop_delay: Duration::from_secs(1),
            heartbeat_interval: Duration::from_secs(100),
            lease_interval: Duration::from_secs(10),
        };
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut world = Self {
            core: Core::new(options.clone()),
            now,
            options,
            objects: Vec::new(),
            leases: std::collections::BTreeMap::new(),
            version: 1,
            faults: std::collections::VecDeque::new(),
        };
        world.relist();
        world
    }

    /// Signs of life are done at once; everything else is for the test to see.
    fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut rest = Vec::new();
        let mut queue = std::collections::VecDeque::from(self.core.step(input, self.now));
        while let Some(effect) = queue.pop_front() {
            let Effect::RenewLease { name, lease } = effect else {
                rest.push(effect);
                continue;
            };
            self.leases.insert(name.clone(), lease);
            queue.extend(self.core.step(Input::Answered(Target::Lease(name), Outcome::Done), self.now));
        }
        rest
    }

    fn pass(&mut self, millis: i64) -> Vec<Effect> {
        self.now += SignedDuration::from_millis(millis);
        self.step(Input::Tick)
    }

    /// Stores an object, as a create or update by somebody else, and shows it to the core.
    fn store(&mut self, mut object: Value) -> Vec<Effect> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.retain(|other| id(other) != id(&object));
        self.objects.push(object.clone());
        self.show(&object)
    }

    fn show(&mut self, object: &Value) -> Vec<Effect> {
        let input = if object["kind"] == "Node" {
            Input::NodeSeen(node_view(object))
        } else {
            Input::PodSeen(pod_view(object))
        };
        self.step(input)
    }

    /// Everything is listed anew, as after a lost watch.
    fn relist(&mut self) -> Vec<Effect> {
        let of = |kind: &str| self.objects.iter().filter(|o| o["kind"] == kind).cloned().collect::<Vec<_>>();
        let (nodes, pods) = (of("Node"), of("Pod"));
        let mut effects = self.step(Input::NodesListed(nodes.iter().map(node_view).collect()));
        effects.extend(self.step(Input::PodsListed(pods.iter().map(pod_view).collect())));
        effects
    }

    /// Does what the effects say until there are none, without letting time pass.
    fn settle(&mut self, effects: Vec<Effect>) {
        let mut queue = std::collections::VecDeque::from(effects);
        for _ in 0..1000 {
            let Some(effect) = queue.pop_front() else { return };
            let more = self.perform(&effect);
            queue.extend(more);
        }
        panic!("the core never comes to rest");
    }

    fn perform(&mut self, effect: &Effect) -> Vec<Effect> {
        let Some(target) = effect.target() else {
            return Vec::new();
        };
        let mut more = Vec::new();
        let fault = self.faults.pop_front();
        if let Some(Fault::Refused) = fault {
            return self.step(Input::Answered(target, Outcome::Failed("refused".to_owned())));
        }
        let outcome = match effect {
            Effect::PatchNode { name, patch } | Effect::LabelNode { name, patch } => {
                self.patch(&format!("Node//{name}"), patch, &mut more)
            }
            Effect::PatchPod { pod, patch } => {
                self.patch(&format!("Pod/{}/{}", pod.namespace, pod.name), patch, &mut more)
            }
            Effect::DeletePod { pod } => {
                let wanted = format!("Pod/{}/{}", pod.namespace, pod.name);
                self.objects.retain(|o| id(o) != wanted || o["metadata"]["uid"] != pod.uid.as_str());
                more.extend(self.step(Input::PodGone(pod.clone())));
                Outcome::Done
            }
            Effect::Warn { .. } | Effect::RenewLease { .. } => Outcome::Done,
        };
        let outcome = if fault.is_some() { Outcome::Failed("lost".to_owned()) } else { outcome };
        more.extend(self.step(Input::Answered(target, outcome)));
        more
    }

    fn patch(&mut self, wanted: &str, patch: &Value, more: &mut Vec<Effect>) -> Outcome {
        let Some(mut object) = self.objects.iter().find(|o| id(o) == wanted).cloned() else {
            return Outcome::Gone;
        };
        if patch["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Outcome::Conflict;
        }
        json_patch::merge(&mut object, patch);
        more.extend(self.store(object));
        Outcome::Done
    }

    fn store_and_settle(&mut self, object: Value) {
        let effects = self.store(object);
        self.settle(effects);
    }

    fn pass_and_settle(&mut self, millis: i64) {
        let effects = self.pass(millis);
        self.settle(effects);
    }

    fn get(&self, wanted: &str) -> Option<&Value> {
        self.objects.iter().find(|object| id(object) == wanted)
    }

    fn phase(&self, pod: &str) -> String {
        let object = self.get(&format!("Pod/default/{pod}"));
        object.map_or("gone".to_owned(), |o| o["status"]["phase"].as_str().unwrap_or("Pending").to_owned())
    }

    /// The process of the kubelets starts anew and knows nothing.
    fn restart(&mut self) {
        self.core = Core::new(self.options.clone());
        let effects = self.relist();
        self.settle(effects);
    }
}

fn id(object: &Value) -> String {
    let metadata = &object["metadata"];
    let part = |field: &str| metadata[field].as_str().unwrap_or("").to_owned();
    format!("{}/{}/{}", object["kind"].as_str().unwrap(), part("namespace"), part("name"))
}

fn dynamic(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

fn node_view(object: &Value) -> NodeView {
    NodeView::read(&dynamic(object)).unwrap()
}

fn pod_view(object: &Value) -> PodView {
    PodView::read(&dynamic(object)).unwrap()
}

fn mk_node(name: &str, capacity: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}, "status": {"capacity": capacity}})
}

fn mk_pod(name: &str, node: &str, requests: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "spec": {"nodeName": node, "containers": [
            {"name": "main", "image": "busybox", "resources": {"requests": requests}}
        ]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-15T11:00:00Z"},
            {"type": "example.com/foreign", "status": "Maybe"}
        ]},
    })
}

fn annotated(mut pod: Value, annotations: &[(&str, &str)]) -> Value {
    for (key, value) in annotations {
        pod["metadata"]["annotations"][*key] = json!(value);
    }
    pod
}

fn pod_ref(name: &str) -> PodRef {
    PodRef { namespace: "default".to_owned(), name: name.to_owned(), uid: format!("uid-{name}") }
}

fn world_with_node(capacity: &Value) -> World {
    let mut world = World::new();
    world.store_and_settle(mk_node("n", capacity));
    world
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}
