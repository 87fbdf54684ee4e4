//! The objects that may want groups, and the Workloads and groups that there are, by whom they are for.

use crate::action::Written;
use crate::cache::{Cache, Change};
use crate::view::{Key, Unread, View, controller_of};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ApiResource;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_k8s::gangs::{Api, Asks, Row, workload_name, workload_of};

/// On everything that is made here, so that it is told apart from what the cluster's own controllers make.
pub(crate) const MADE_BY: (&str, &str) = ("tutti.dev/made-by", "tutti-controller");

/// An object that may want groups.
pub(super) type Owner = View<Asks, Unread>;

/// What is read of a Workload or a group: who it is for, and its spec.
pub(crate) type Made = View<Value, Unread>;

/// All that is known.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) row: &'static Row,
    pub(super) api: Api,
    pub(super) owners_resource: Arc<ApiResource>,
    owners: Cache<Asks>,
    workloads: Cache<Value>,
    groups: Cache<Value>,
    /// Workloads by the object that their `spec.controllerRef` names.
    named: BTreeMap<Key, BTreeSet<Key>>,
}

impl Known {
    pub(super) fn new(row: &'static Row, api: Api) -> Self {
        let owners_resource = Arc::new(ApiResource {
            group: row.group.to_owned(),
            version: row.version.to_owned(),
            api_version: format!("{}/{}", row.group, row.version),
            kind: row.kind.to_owned(),
            plural: row.plural.to_owned(),
        });
        Self {
            row,
            api,
            owners_resource,
            owners: Cache::default(),
            workloads: Cache::default(),
            groups: Cache::default(),
            named: BTreeMap::new(),
        }
    }

    pub(super) fn owner(&self, key: &Key) -> Option<&Owner> {
        self.owners.get(key)
    }

    pub(super) fn workload(&self, key: &Key) -> Option<&Made> {
        self.workloads.get(key)
    }

    pub(super) fn group(&self, key: &Key) -> Option<&Made> {
        self.groups.get(key)
    }

    /// Takes in news about owners, and says whom to look at.
    pub(super) fn see_owners(&mut self, change: Change<View<Value, Value>>) -> Vec<Key> {
        let row = self.row;
        let change = change.map(|object| {
            let spec = row.read(&object.metadata, &object.spec, &object.status);
            View { metadata: object.metadata, spec, status: Unread }
        });
        self.owners.apply(change).into_iter().map(|(_, key)| key).collect()
    }

    /// The same about Workloads.
    pub(super) fn see_workloads(&mut self, change: Change<Made>) -> Vec<Key> {
        let mut looks = BTreeSet::new();
        for (before, key) in self.workloads.apply(change) {
            if let Some(owner) = before.as_ref().and_then(|before| self.named_by(before))
                && let Some(workloads) = self.named.get_mut(&owner)
            {
                workloads.remove(&key);
                if workloads.is_empty() {
                    self.named.remove(&owner);
                }
            }
            let now = self.workloads.get(&key);
            if let Some(owner) = now.and_then(|now| self.named_by(now)) {
                self.named.entry(owner).or_default().insert(key.clone());
            }
            looks.extend(before.iter().chain(now).filter_map(|made| self.owner_of(made)));
        }
        looks.into_iter().collect()
    }

    /// The same about groups.
    pub(super) fn see_groups(&mut self, change: Change<Made>) -> Vec<Key> {
        let mut looks = BTreeSet::new();
        for (before, key) in self.groups.apply(change) {
            let now = self.groups.get(&key);
            looks.extend(before.iter().chain(now).filter_map(|made| self.owner_of(made)));
        }
        looks.into_iter().collect()
    }

    pub(super) fn is_listed(&self) -> bool {
        let workloads = self.api.workloads.is_none() || self.workloads.is_listed();
        self.owners.is_listed() && self.groups.is_listed() && workloads
    }

    pub(super) fn has_seen(&self, written: &Written) -> bool {
        match written.plural.as_str() {
            "workloads" => self.workloads.has_seen(written.version),
            "podgroups" => self.groups.has_seen(written.version),
            _ => true,
        }
    }

    /// The object that a Workload or group is for, by either of the two ways in which it says so.
    fn owner_of(&self, made: &Made) -> Option<Key> {
        let owner = controller_of(&made.metadata).filter(|owner| owner.kind == self.row.kind);
        let by_owner = owner.map(|owner| Key::new(made.key().namespace, owner.name.as_str()));
        by_owner.or_else(|| self.named_by(made))
    }

    /// The object that `spec.controllerRef` of a Workload names, if it is one of our kind.
    fn named_by(&self, workload: &Made) -> Option<Key> {
        let reference = workload.spec.get("controllerRef")?;
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let is_ours = text("apiGroup") == self.row.group && text("kind") == self.row.kind;
        (is_ours && !text("name").is_empty()).then(|| Key::new(workload.key().namespace, text("name")))
    }

    /// True if the cluster's own controller sees to this object: it has a Workload or a group that is not from here.
    pub(super) fn others_act(&self, owner: &Owner) -> bool {
        let uid = owner.uid();
        self.workloads.owned_by(uid).chain(self.groups.owned_by(uid)).any(|made| !is_ours(made))
    }

    /// The Workload that a user has made for an object, with as many templates as the object has roles. It is nobody's,
    /// so what was left by an object of the same name before is none.
    ///
    /// The first one counts: an object that has a group stays with the Workload which that was made of, even if it is
    /// gone, and one that comes after ours is too late.
    pub(super) fn users_workload(
        &self,
        owner: &Owner,
        roles: usize,
    ) -> Result<Option<(&Made, Vec<Value>)>, String> {
        let made_of = self.groups.owned_by(owner.uid()).find_map(|group| workload_of(&group.spec));
        let first = made_of.or_else(|| self.workloads.owned_by(owner.uid()).next().map(View::name));
        if first.is_some_and(|first| first == workload_name(owner.name(), owner.uid())) {
            return Ok(None);
        }
        let keys = self.named.get(&owner.key()).into_iter().flatten();
        let found: Vec<&Made> = keys
            .filter(|key| first.is_none_or(|first| first == key.name))
            .filter_map(|key| self.workloads.get(key))
            .filter(|workload| controller_of(&workload.metadata).is_none() && !workload.is_terminating())
            .collect();
        if let (Some(first), []) = (first, &found[..]) {
            return Err(format!(
                "workload {first}, which the group of this {} was made of, is gone",
                self.row.kind
            ));
        }
        match found[..] {
            [] => Ok(None),
            [workload] => {
                let list = workload.spec.get("podGroupTemplates").and_then(Value::as_array);
                let templates = list.cloned().unwrap_or_default();
                if templates.len() == roles {
                    return Ok(Some((workload, templates)));
                }
                let (name, count, kind) = (workload.name(), templates.len(), self.row.kind);
                Err(format!("workload {name} has {count} podGroupTemplates; want {roles} for this {kind}"))
            }
            [first, second, ..] => {
                let (first, second) = (first.name(), second.name());
                Err(format!("several workloads are for this {}: {first}, {second}", self.row.kind))
            }
        }
    }

    /// How events name an owner.
    pub(super) fn about(&self, owner: &Owner) -> Arc<ObjectReference> {
        Arc::new(ObjectReference {
            api_version: Some(self.owners_resource.api_version.clone()),
            kind: Some(self.row.kind.to_owned()),
            namespace: owner.metadata.namespace.clone(),
            name: owner.metadata.name.clone(),
            uid: owner.metadata.uid.clone(),
            resource_version: owner.metadata.resource_version.clone(),
            ..ObjectReference::default()
        })
    }
}

/// True if it was made here.
pub(crate) fn is_ours(made: &Made) -> bool {
    let (mark, by) = MADE_BY;
    made.annotation(mark) == Some(by)
}

/// True if this very object manages it.
pub(super) fn is_owned_by(made: &Made, owner: &Owner) -> bool {
    controller_of(&made.metadata).is_some_and(|by| by.uid == owner.uid())
}
