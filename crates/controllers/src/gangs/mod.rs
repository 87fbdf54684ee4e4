//! From Jobs to gangs: a Workload and a PodGroup for every Job that wants its pods to start together.
//!
//! [`Gangs`] decides without IO; [`run`] connects it to a cluster. What is made is owned by the object it is for and
//! goes with it. The Workload comes first and the groups when it has been seen, so a crash between the two loses
//! nothing: the next look finds what is missing by its name.
//!
//! Nothing is made for an object whose pods already run: a gang that began in parts is none.

mod api;
mod kinds;
mod names;
#[cfg(test)]
mod tests;
mod wish;

pub use self::api::Api;
pub use self::kinds::{Asks, GANG_ANNOTATION, JOB, Owner, Progress, Row};

use crate::action::{Action, Edit, Plan, Told, Written};
use crate::cache::{Cache, Change};
use crate::core::Core;
use crate::meter::Meter;
use crate::shell::{self, Watches};
use crate::view::{Key, Unread, View, controller_of};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::core::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;

/// On everything that is made here, so that it is told apart from what the cluster's own controllers make.
const MADE_BY: (&str, &str) = ("tutti.dev/made-by", "tutti-controller");
/// How long the cluster's own controllers have for an object before this one acts. Times of creation are whole
/// seconds, so it is between one and two.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// Whether groups are made for Jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Integration {
    /// If the cluster's own controller does not, which gets a moment.
    #[default]
    Auto,
    /// At once.
    On,
    /// Never.
    Off,
}

/// For whom, and when.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether at all.
    pub integration: Integration,
    /// Names of the schedulers that understand groups; pods of others are left alone.
    pub scheduler_names: Vec<String>,
}

/// News from a watch.
#[derive(Debug)]
pub enum Event {
    /// About a Job.
    Owner(Change<View<Value, Value>>),
    /// About a Workload.
    Workload(Change<View<Value>>),
    /// About a group.
    Group(Change<View<Value>>),
}

/// Runs until `shutdown` completes. `manager` is who writes.
pub async fn run(
    client: Client,
    api: Api,
    options: Options,
    manager: &'static str,
    meter: Meter,
    shutdown: impl Future<Output = ()> + Send,
) {
    if options.integration == Integration::Off {
        return shutdown.await;
    }
    let gangs = Gangs::new(&JOB, api, options);
    let mut watches = Watches::new(client).add(&gangs.owners_resource, Event::Owner);
    if let Some(workloads) = &gangs.api.workloads {
        watches = watches.add(workloads, Event::Workload);
    }
    let watches = watches.add(&gangs.api.groups, Event::Group);
    shell::run(gangs, watches, manager, meter, shutdown).await;
}

/// What is read of a Workload or a group: who it is for, and its spec.
type Made = View<Value, Unread>;

/// All that is known.
#[derive(Debug)]
pub struct Gangs {
    row: &'static Row,
    api: Api,
    options: Options,
    owners_resource: Arc<ApiResource>,
    owners: Cache<Asks, Progress>,
    workloads: Cache<Value>,
    groups: Cache<Value>,
}

impl Gangs {
    /// One that has seen nothing yet.
    pub fn new(row: &'static Row, api: Api, options: Options) -> Self {
        let api_version = format!("{}/{}", row.group, row.version);
        let owners_resource = Arc::new(ApiResource {
            group: row.group.to_owned(),
            version: row.version.to_owned(),
            api_version,
            kind: row.kind.to_owned(),
            plural: row.plural.to_owned(),
        });
        Self {
            row,
            api,
            options,
            owners_resource,
            owners: Cache::default(),
            workloads: Cache::default(),
            groups: Cache::default(),
        }
    }

    /// The object that a Workload or group is for, by either of the two ways in which it says so.
    fn owner_of(&self, made: &Made) -> Option<Key> {
        let owner = controller_of(&made.metadata).filter(|owner| owner.kind == self.row.kind);
        let name = owner.map(|owner| owner.name.as_str()).or_else(|| self.controller_named(made));
        name.map(|name| Key::new(made.key().namespace, name))
    }

    /// The name in `spec.controllerRef` of a Workload, if it is one of our kind.
    fn controller_named<'a>(&self, workload: &'a Made) -> Option<&'a str> {
        let reference = workload.spec.get("controllerRef")?;
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        (text("apiGroup") == self.row.group && text("kind") == self.row.kind)
            .then(|| reference.get("name")?.as_str())
            .flatten()
    }

    /// True if somebody else sees to this object: the cluster's own controller, or a user with a Workload.
    fn others_act(&self, owner: &Owner) -> bool {
        let key = owner.key();
        let by_name = self
            .workloads
            .in_namespace(&key.namespace)
            .filter(|workload| self.controller_named(workload) == Some(owner.name()));
        let mut theirs = by_name
            .chain(self.workloads.owned_by(owner.uid()))
            .chain(self.groups.owned_by(owner.uid()))
            // What was left by an object of the same name before goes with that.
            .filter(|made| controller_of(&made.metadata).is_none_or(|by| by.uid == owner.uid()));
        theirs.any(|made| !is_ours(made))
    }

    fn plan_owner(&self, owner: &Owner, now: Timestamp) -> Plan {
        if owner.is_terminating() || owner.status.has_ended {
            return Plan::nothing();
        }
        let serves = |name: &str| self.options.scheduler_names.iter().any(|served| served == name);
        let Some(templates) = wish::templates(self.row, owner, &self.api, serves) else {
            return Plan::nothing();
        };
        if self.others_act(owner) {
            return Plan::nothing();
        }
        let act_at = owner.created().checked_add(PATIENCE).unwrap_or(Timestamp::MAX);
        if self.options.integration == Integration::Auto && now < act_at {
            return Plan { look_again: Some(act_at), ..Plan::nothing() };
        }
        self.make(owner, &templates)
    }

    /// The next step towards what an object wants.
    fn make(&self, owner: &Owner, templates: &[Value]) -> Plan {
        let name = names::workload(owner.name(), owner.uid());
        let mut parent = None;
        if let Some(resource) = &self.api.workloads {
            let key = Key::new(owner.key().namespace, name.as_str());
            match self.workloads.get(&key) {
                Some(workload) if is_ours(workload) && is_owned_by(workload, owner) => {
                    if let Some(action) = self.resize_workload(workload, templates, resource) {
                        return Plan::one(action);
                    }
                    parent = Some(workload);
                }
                // Its name is taken, by one that goes or one that somebody made for no purpose.
                Some(_) => return Plan::nothing(),
                None if owner.status.has_run => return Plan::nothing(),
                None => return Plan::one(self.new_workload(owner, &name, templates, resource)),
            }
        }
        let actions = templates.iter().filter_map(|template| self.step(owner, &name, template, parent));
        Plan { actions: actions.collect(), look_again: None }
    }

    /// What is to be done about the group of a template.
    fn step(&self, owner: &Owner, workload: &str, template: &Value, parent: Option<&Made>) -> Option<Action> {
        let template_name = template.get("name").and_then(Value::as_str).unwrap_or_default();
        let name = names::group(workload, template_name);
        let key = Key::new(owner.key().namespace, name.as_str());
        match self.groups.get(&key) {
            Some(group) if is_owned_by(group, owner) => self.resize_group(group, template),
            Some(_) => None,
            None if owner.status.has_run => None,
            None => Some(self.new_group(owner, &name, &self.api.group_spec(template, workload), parent)),
        }
    }

    fn new_workload(
        &self,
        owner: &Owner,
        name: &str,
        templates: &[Value],
        resource: &Arc<ApiResource>,
    ) -> Action {
        let object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": self.metadata(owner, name, None),
            "spec": {
                "controllerRef": {"apiGroup": self.row.group, "kind": self.row.kind, "name": owner.name()},
                "podGroupTemplates": templates,
            },
        });
        self.create(owner, resource, object, "WorkloadCreated", "FailedWorkloadCreate")
    }

    fn new_group(&self, owner: &Owner, name: &str, spec: &Value, parent: Option<&Made>) -> Action {
        let resource = &self.api.groups;
        let object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": self.metadata(owner, name, parent), "spec": spec,
        });
        self.create(owner, resource, object, "PodGroupCreated", "FailedPodGroupCreate")
    }

    fn metadata(&self, owner: &Owner, name: &str, parent: Option<&Made>) -> Value {
        let mut owners = vec![json!({
            "apiVersion": self.owners_resource.api_version, "kind": self.row.kind,
            "name": owner.name(), "uid": owner.uid(), "controller": true,
        })];
        if let (Some(parent), Some(resource)) = (parent, &self.api.workloads) {
            owners.push(json!({
                "apiVersion": resource.api_version, "kind": resource.kind,
                "name": parent.name(), "uid": parent.uid(),
            }));
        }
        let (mark, by) = MADE_BY;
        json!({
            "name": name, "namespace": owner.key().namespace,
            "annotations": {mark: by}, "ownerReferences": owners,
        })
    }

    fn create(
        &self,
        owner: &Owner,
        resource: &Arc<ApiResource>,
        object: Value,
        created: &'static str,
        failed: &'static str,
    ) -> Action {
        let about = Arc::new(ObjectReference {
            api_version: Some(self.owners_resource.api_version.clone()),
            kind: Some(self.row.kind.to_owned()),
            namespace: owner.metadata.namespace.clone(),
            name: owner.metadata.name.clone(),
            uid: owner.metadata.uid.clone(),
            resource_version: owner.metadata.resource_version.clone(),
            ..ObjectReference::default()
        });
        Action::Create {
            resource: Arc::clone(resource),
            namespace: owner.key().namespace,
            object: Box::new(object),
            told_on: Some(Told { about, created, failed }),
        }
    }

    /// Brings the minimums in the templates of a Workload up to date.
    fn resize_workload(
        &self,
        made: &Made,
        templates: &[Value],
        resource: &Arc<ApiResource>,
    ) -> Option<Action> {
        let stored = |name: &Value| {
            let list = made.spec.get("podGroupTemplates").and_then(Value::as_array);
            list.into_iter().flatten().find(|template| template.get("name") == Some(name))
        };
        let changed: Vec<Value> = templates
            .iter()
            .filter(|wanted| {
                let stored = wanted.get("name").and_then(stored);
                self.api.can_resize() && stored.is_some_and(|stored| differs(stored, wanted))
            })
            .map(|wanted| json!({"name": wanted["name"], "schedulingPolicy": wanted["schedulingPolicy"]}))
            .collect();
        (!changed.is_empty()).then(|| {
            let body = json!({
                "metadata": {"uid": made.uid(), "resourceVersion": made.version()},
                "spec": {"podGroupTemplates": changed},
            });
            let edit = Edit { of_status: false, strategic: true, body: Box::new(body) };
            Action::patch(resource, made.key(), edit)
        })
    }

    /// The same for a group.
    fn resize_group(&self, group: &Made, template: &Value) -> Option<Action> {
        if !self.api.can_resize() || group.is_terminating() || !differs(&group.spec, template) {
            return None;
        }
        let edit = Edit::merge(json!({
            "metadata": {"uid": group.uid(), "resourceVersion": group.version()},
            "spec": {"schedulingPolicy": template["schedulingPolicy"]},
        }));
        Some(Action::patch(&self.api.groups, group.key(), edit))
    }
}

impl Core for Gangs {
    type Event = Event;
    /// A Job.
    type Task = Key;

    fn observe(&mut self, event: Event, _now: Timestamp) -> Vec<Key> {
        let row = self.row;
        let touched = match event {
            Event::Owner(change) => {
                let change = change.map(|object| row.read(object));
                return self.owners.apply(change).into_iter().map(|(_, key)| key).collect();
            }
            Event::Workload(change) => touched(&mut self.workloads, change),
            Event::Group(change) => touched(&mut self.groups, change),
        };
        let mut keys: Vec<Key> = touched.iter().filter_map(|made| self.owner_of(made)).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn is_ready(&self) -> bool {
        let workloads = self.api.workloads.is_none() || self.workloads.is_listed();
        self.owners.is_listed() && self.groups.is_listed() && workloads
    }

    fn has_seen(&self, written: &Written) -> bool {
        match written.plural.as_str() {
            "workloads" => self.workloads.has_seen(written.version),
            "podgroups" => self.groups.has_seen(written.version),
            _ => true,
        }
    }

    fn plan(&mut self, key: &Key, now: Timestamp) -> Plan {
        self.owners.get(key).map_or_else(Plan::nothing, |owner| self.plan_owner(owner, now))
    }
}

/// Every object that a change is about, as it was and as it is.
fn touched(cache: &mut Cache<Value>, change: Change<Made>) -> Vec<Made> {
    let mut all = Vec::new();
    for (before, key) in cache.apply(change) {
        all.extend(before);
        all.extend(cache.get(&key).cloned());
    }
    all
}

fn is_ours(made: &Made) -> bool {
    let (mark, by) = MADE_BY;
    made.annotation(mark) == Some(by)
}

fn is_owned_by(made: &Made, owner: &Owner) -> bool {
    controller_of(&made.metadata).is_some_and(|by| by.uid == owner.uid())
}

/// True if both are gangs with different minimums: nothing else of a group may change.
fn differs(stored: &Value, wanted: &Value) -> bool {
    let minimum = |of: &Value| of.pointer("/schedulingPolicy/gang/minCount").and_then(Value::as_u64);
    matches!((minimum(stored), minimum(wanted)), (Some(stored), Some(wanted)) if stored != wanted)
}
