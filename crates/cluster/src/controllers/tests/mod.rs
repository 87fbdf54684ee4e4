//! All controllers together on a simulated API server with a clock of its own: deterministic, and fast enough for
//! thousands of histories.

// Values that are written in place read better without ampersands.
#![allow(clippy::needless_pass_by_value)]

mod deployments;
mod jobs;
mod others;
mod random;

use super::world::{Event, Task, World};
use super::{Options, node};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tutti_controllers::{Action, Change, Core as _, Edit, Key, Outcome, Queue, Written};

/// An API server, as far as controllers can tell, and the controllers.
struct Sim {
    world: World,
    queue: Queue<Task>,
    now: Timestamp,
    objects: BTreeMap<(String, Key), Value>,
    version: u64,
    /// Reasons and messages of all events.
    events: Vec<String>,
    /// So many of the next requests fail.
    faults: usize,
}

impl Sim {
    fn new() -> Self {
        let options =
            Options { orphan_delay: Duration::from_secs(40), ended_pods_max: 50, ..Options::default() };
        let mut sim = Self {
            world: World::new(options),
            queue: Queue::default(),
            now: "2026-11-15T12:00:00Z".parse().unwrap(),
            objects: BTreeMap::new(),
            version: 0,
            events: Vec::new(),
            faults: 0,
        };
        sim.relist();
        // A node that lives for ever, for pods of whom nothing else matters.
        sim.living_node(HOME);
        let spec = json!({"leaseDurationSeconds": 1_000_000_000, "renewTime": "2026-11-15T12:00:00.000000Z"});
        sim.create("leases", json!({"metadata": {"name": HOME}, "spec": spec}));
        sim
    }

    /// Every watch starts over.
    fn relist(&mut self) {
        for plural in KINDS {
            let all: Vec<Value> = self
                .objects
                .iter()
                .filter(|((p, _), _)| p == plural)
                .map(|(_, object)| object.clone())
                .collect();
            self.observe(plural, Change::Listed(all));
        }
    }

    fn observe(&mut self, plural: &str, change: Change<Value>) {
        fn read<V: serde::de::DeserializeOwned>(change: Change<Value>) -> Change<V> {
            let view = |object| serde_json::from_value(object).unwrap();
            match change {
                Change::Listed(objects) => Change::Listed(objects.into_iter().map(view).collect()),
                Change::Seen(object) => Change::Seen(view(object)),
                Change::Gone(object) => Change::Gone(view(object)),
            }
        }
        let event = match plural {
            "pods" => Event::Pod(read(change)),
            "nodes" => Event::Node(read(change)),
            "leases" => Event::Lease(read(change)),
            "jobs" => Event::Job(read(change)),
            "replicasets" => Event::ReplicaSet(read(change)),
            "deployments" => Event::Deployment(read(change)),
            "poddisruptionbudgets" => Event::Budget(read(change)),
            other => panic!("{other} are not watched"),
        };
        for task in self.world.observe(event, self.now) {
            self.queue.ask(task, self.now);
        }
    }

    /// Somebody creates an object.
    fn create(&mut self, plural: &str, mut object: Value) -> Key {
        let prefix = object["metadata"]["generateName"].as_str().map(str::to_owned);
        if let Some(prefix) = prefix {
            object["metadata"]["name"] = json!(format!("{prefix}{:05}", self.version));
        }
        let namespaced = plural != "nodes";
        if namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(if plural == "leases" { "kube-node-lease" } else { "a" });
        }
        object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        object["metadata"]["creationTimestamp"] = json!(tutti_controllers::stamp(self.now));
        object["metadata"]["generation"] = json!(1);
        let key = key_of(&object);
        assert!(!self.objects.contains_key(&(plural.to_owned(), key.clone())), "{key} exists");
        self.store(plural, object);
        key
    }

    fn store(&mut self, plural: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert((plural.to_owned(), key_of(&object)), object.clone());
        self.observe(plural, Change::Seen(object));
    }

    fn get(&self, plural: &str, name: &str) -> &Value {
        self.find(plural, name).unwrap_or_else(|| panic!("there is no {name} among the {plural}"))
    }

    fn find(&self, plural: &str, name: &str) -> Option<&Value> {
        self.all(plural).into_iter().find(|object| object["metadata"]["name"] == name)
    }

    fn all(&self, plural: &str) -> Vec<&Value> {
        self.objects.iter().filter(|((p, _), _)| p == plural).map(|(_, object)| object).collect()
    }

    /// Somebody changes an object. A change of the spec is a new generation.
    fn change(&mut self, plural: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let before = self.get(plural, name).clone();
        let mut object = before.clone();
        change(&mut object);
        if object["spec"] != before["spec"] {
            object["metadata"]["generation"] =
                json!(before["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        if object != before {
            self.settle_deletion(plural, object);
        }
    }

    /// Somebody deletes an object.
    fn delete(&mut self, plural: &str, name: &str, now: bool) {
        let Some(mut object) = self.find(plural, name).cloned() else { return };
        let waits = plural == "pods" && object["spec"]["nodeName"].is_string() && !has_ended(&object) && !now;
        object["metadata"]["deletionTimestamp"] = json!(tutti_controllers::stamp(self.now));
        object["metadata"]["waits"] = json!(waits);
        self.settle_deletion(plural, object);
    }

    /// Stores an object, unless nothing keeps it any more.
    fn settle_deletion(&mut self, plural: &str, object: Value) {
        let metadata = &object["metadata"];
        let kept = metadata["deletionTimestamp"].is_null()
            || metadata["finalizers"].as_array().is_some_and(|f| !f.is_empty())
            || metadata["waits"] == true;
        if kept {
            self.store(plural, object);
            return;
        }
        self.version += 1;
        let mut object = object;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.remove(&(plural.to_owned(), key_of(&object)));
        self.observe(plural, Change::Gone(object));
    }

    /// Lets the controllers work until they are done for now.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let world = &self.world;
            let Some(task) = self.queue.pop(self.now, |written| world.has_seen(written)) else {
                // Bursts are looked at together, a moment later.
                let soon = self.now + SignedDuration::from_millis(200);
                match self.queue.next_due() {
                    Some(due) if due <= soon => self.now = due,
                    _ => return,
                }
                continue;
            };
            let plan = self.world.plan(&task, self.now);
            let mut outcome = Outcome::default();
            for action in plan.actions {
                if !matches!(action, Action::Tell(_)) && self.faults > 0 {
                    self.faults -= 1;
                    outcome.failed = true;
                    continue;
                }
                match self.perform(action) {
                    Ok(written) => outcome.written.extend(written),
                    Err(()) => outcome.failed = true,
                }
            }
            self.queue.done(&task, outcome, plan.look_again, self.now);
        }
        panic!("the controllers never come to rest");
    }

    fn pass(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        while let Some(due) = self.queue.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.settle();
        }
        self.now = self.now.max(end);
        self.settle();
    }

    fn perform(&mut self, action: Action) -> Result<Option<Written>, ()> {
        match action {
            Action::Create { resource, object, .. } => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if self.find(&resource.plural, name).is_some() {
                    return Err(());
                }
                self.create(&resource.plural, *object);
                Ok(self.written(&resource.plural))
            }
            Action::Patch { resource, key, edit } => {
                self.edit(&resource.plural, &key.name, &edit)?;
                Ok(self.written(&resource.plural))
            }
            Action::Delete { resource, key, uid, now, first, .. } => {
                if let Some(edit) = first {
                    self.edit(&resource.plural, &key.name, &edit)?;
                }
                if self.find(&resource.plural, &key.name).is_some_and(|o| o["metadata"]["uid"] == *uid) {
                    self.delete(&resource.plural, &key.name, now);
                }
                Ok(self.written(&resource.plural))
            }
            Action::Tell(note) => {
                self.events.push(format!("{}: {}", note.reason, note.message));
                Ok(None)
            }
        }
    }

    fn written(&self, plural: &str) -> Option<Written> {
        Some(Written { plural: plural.to_owned(), version: self.version })
    }

    fn edit(&mut self, plural: &str, name: &str, edit: &Edit) -> Result<(), ()> {
        let Some(object) = self.find(plural, name) else { return Ok(()) };
        let guard = &edit.body["metadata"]["resourceVersion"];
        if !guard.is_null() && *guard != object["metadata"]["resourceVersion"] {
            return Err(());
        }
        let allowed = if edit.of_status { "status" } else { "spec" };
        for field in edit.body.as_object().unwrap().keys() {
            assert!(field == allowed || field == "metadata", "{plural} are not patched in {field}");
        }
        let edit = edit.clone();
        self.change(plural, name, |object| {
            let mut body = *edit.body;
            if edit.strategic {
                let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                for new in body["status"]["conditions"].as_array().into_iter().flatten() {
                    conditions.retain(|old| old["type"] != new["type"]);
                    conditions.push(new.clone());
                }
                body["status"]["conditions"] = json!(conditions);
            }
            body["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            json_patch::merge(object, &body);
        });
        Ok(())
    }

    // === what nodes do ===

    /// All pods that can run do.
    fn start_pods(&mut self) {
        let waiting: Vec<String> = self
            .all("pods")
            .into_iter()
            .filter(|pod| pod["status"]["phase"].as_str().is_none_or(|phase| phase == "Pending"))
            .map(name_of)
            .collect();
        for name in waiting {
            let time = tutti_controllers::stamp(self.now);
            self.change("pods", &name, |pod| {
                if pod["spec"]["nodeName"].is_null() {
                    pod["spec"]["nodeName"] = json!(HOME);
                }
                pod["status"] = json!({"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": time}
                ]});
            });
        }
        self.settle();
    }

    /// Pods that are being deleted have stopped.
    fn stop_pods(&mut self) {
        let going: Vec<String> = self
            .all("pods")
            .into_iter()
            .filter(|pod| pod["metadata"]["waits"] == true)
            .map(name_of)
            .collect();
        for name in going {
            self.change("pods", &name, |pod| {
                pod["metadata"]["waits"] = json!(false);
                if !has_ended(pod) {
                    pod["status"]["phase"] = json!("Failed");
                }
            });
        }
        self.settle();
    }

    fn end_pod(&mut self, name: &str, code: i32) {
        let time = tutti_controllers::stamp(self.now);
        self.change("pods", name, |pod| {
            pod["status"] = json!({
                "phase": if code == 0 { "Succeeded" } else { "Failed" },
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": time}}}],
            });
        });
        self.settle();
    }

    /// Names of pods that neither ended nor are being deleted.
    fn active(&self) -> Vec<String> {
        let active = |pod: &&Value| !has_ended(pod) && pod["metadata"]["deletionTimestamp"].is_null();
        self.all("pods").into_iter().filter(active).map(name_of).collect()
    }

    fn condition(&self, plural: &str, name: &str, kind: &str) -> Value {
        let conditions =
            self.get(plural, name)["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or(Value::Null)
    }

    fn living_node(&mut self, name: &str) {
        let time = tutti_controllers::stamp(self.now);
        self.create(
            "nodes",
            json!({"metadata": {"name": name}, "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": time, "lastTransitionTime": time}
            ]}}),
        );
        self.settle();
    }
}

const HOME: &str = "home";

const KINDS: &[&str] =
    &["pods", "nodes", "leases", "jobs", "replicasets", "deployments", "poddisruptionbudgets"];

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    Key::new(text("namespace"), text("name"))
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// A template of one container.
fn template() -> Value {
    json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}})
}
