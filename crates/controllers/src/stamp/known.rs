//! What there is: references by the group they are for, and Workloads by how they are found.

use super::reference::{Reference, Target, targets_of};
use crate::action::Written;
use crate::cache::{Cache, Change};
use crate::view::{Key, View};
use kube::core::ApiResource;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_k8s::gangs::{Api, workload_of};

/// What is read of Workloads, groups and composites.
pub(super) type Made = View<Value>;

/// Who refers: Jobs before pods, which may be theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Referrer {
    Job,
    Pod,
}

/// All that is known.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) api: Api,
    pub(super) composites_resource: Option<Arc<ApiResource>>,
    /// By the group that is asked for, then by who asks.
    references: BTreeMap<Key, BTreeMap<(Referrer, Key), Reference>>,
    /// The group that each referrer asks for.
    group_of: BTreeMap<(Referrer, Key), Key>,
    /// Groups that are asked for, by namespace and how their Workload is found.
    asked_of: BTreeMap<(String, Target), BTreeSet<Key>>,
    /// Workloads by namespace and how they are found.
    found: BTreeMap<(String, Target), BTreeSet<Key>>,
    listed: BTreeSet<Referrer>,
    workloads: Cache<Value>,
    groups: Cache<Value>,
    composites: Cache<Value>,
}

impl Known {
    pub(super) fn new(api: Api, composites_resource: Option<Arc<ApiResource>>) -> Self {
        Self {
            api,
            composites_resource,
            references: BTreeMap::new(),
            group_of: BTreeMap::new(),
            asked_of: BTreeMap::new(),
            found: BTreeMap::new(),
            listed: BTreeSet::new(),
            workloads: Cache::default(),
            groups: Cache::default(),
            composites: Cache::default(),
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        let composites = self.composites_resource.is_none() || self.composites.is_listed();
        self.listed.len() == 2 && self.workloads.is_listed() && self.groups.is_listed() && composites
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.references.is_empty()
            && self.group_of.is_empty()
            && self.asked_of.is_empty()
            && self.found.is_empty()
    }

    pub(super) fn has_seen(&self, written: &Written) -> bool {
        match written.plural.as_str() {
            "podgroups" => self.groups.has_seen(written.version),
            "compositepodgroups" => self.composites.has_seen(written.version),
            _ => true,
        }
    }

    pub(super) fn group(&self, key: &Key) -> Option<&Made> {
        self.groups.get(key)
    }

    pub(super) fn composite(&self, key: &Key) -> Option<&Made> {
        self.composites.get(key)
    }

    /// The groups that an object manages.
    pub(super) fn groups_of_owner(&self, uid: &str) -> impl Iterator<Item = &Made> {
        self.groups.owned_by(uid)
    }

    /// Who asks for a group, in an order that does not change.
    pub(super) fn references(&self, group: &Key) -> impl Iterator<Item = &Reference> {
        self.references.get(group).into_iter().flat_map(BTreeMap::values)
    }

    /// The Workload that is asked for. The error says why there is none.
    pub(super) fn workload(&self, namespace: &str, target: &Target) -> Result<&Made, String> {
        let keys = self.found.get(&(namespace.to_owned(), target.clone()));
        let mut all = keys.into_iter().flatten().filter_map(|key| self.workloads.get(key));
        let shown = match target {
            Target::Named(name) => format!("workload {name}"),
            Target::For { kind, name, .. } => format!("workload for {kind} {name}"),
        };
        match (all.next(), all.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(format!("there is no {shown}")),
            (Some(one), Some(other)) => {
                Err(format!("there is more than one {shown}: {}, {}", one.name(), other.name()))
            }
        }
    }

    /// Takes in what referrers of a kind ask for now, and says which groups to look at.
    pub(super) fn see_references(
        &mut self,
        referrer: Referrer,
        change: Change<(Key, Option<Reference>)>,
    ) -> Vec<Key> {
        let mut touched = BTreeSet::new();
        let seen = match change {
            Change::Listed(all) => {
                self.listed.insert(referrer);
                let kept: BTreeSet<&Key> = all.iter().map(|(key, _)| key).collect();
                let gone =
                    self.group_of.keys().filter(|(kind, key)| *kind == referrer && !kept.contains(key));
                let gone: Vec<(Key, Option<Reference>)> = gone.map(|(_, key)| (key.clone(), None)).collect();
                all.into_iter().chain(gone).collect()
            }
            Change::Seen(one) => vec![one],
            Change::Gone((key, _)) => vec![(key, None)],
        };
        for (key, reference) in seen {
            self.see_reference((referrer, key), reference, &mut touched);
        }
        touched.into_iter().collect()
    }

    fn see_reference(
        &mut self,
        by: (Referrer, Key),
        reference: Option<Reference>,
        touched: &mut BTreeSet<Key>,
    ) {
        let namespace = by.1.namespace.clone();
        if let Some(group) = self.group_of.remove(&by) {
            let left = self.references.get_mut(&group);
            if let Some(before) = left.and_then(|left| left.remove(&by)) {
                let still = self.references(&group).any(|other| other.target == before.target);
                if !still {
                    forget(&mut self.asked_of, &(namespace.clone(), before.target), &group);
                }
            }
            if self.references.get(&group).is_some_and(BTreeMap::is_empty) {
                self.references.remove(&group);
            }
            touched.insert(group);
        }
        if let Some(reference) = reference {
            let group = Key::new(namespace.as_str(), reference.group.as_str());
            let target = (namespace, reference.target.clone());
            self.asked_of.entry(target).or_default().insert(group.clone());
            self.group_of.insert(by.clone(), group.clone());
            self.references.entry(group.clone()).or_default().insert(by, reference);
            touched.insert(group);
        }
    }

    pub(super) fn see_workloads(&mut self, change: Change<Made>) -> Vec<Key> {
        let mut touched = BTreeSet::new();
        for (before, key) in self.workloads.apply(change) {
            let now = self.workloads.get(&key);
            let old: Vec<Target> = before.iter().flat_map(targets_of).collect();
            let new: Vec<Target> = now.iter().flat_map(|now| targets_of(now)).collect();
            for target in old {
                let place = (key.namespace.clone(), target);
                touched.extend(self.asked_of.get(&place).into_iter().flatten().cloned());
                forget(&mut self.found, &place, &key);
            }
            for target in new {
                let place = (key.namespace.clone(), target);
                touched.extend(self.asked_of.get(&place).into_iter().flatten().cloned());
                self.found.entry(place).or_default().insert(key.clone());
            }
        }
        touched.into_iter().collect()
    }

    pub(super) fn see_groups(&mut self, change: Change<Made>) -> Vec<Key> {
        let touched = self.groups.apply(change).into_iter().map(|(_, key)| key);
        touched.filter(|key| self.references.contains_key(key)).collect()
    }

    pub(super) fn see_composites(&mut self, change: Change<Made>) -> Vec<Key> {
        let mut touched = BTreeSet::new();
        for (before, key) in self.composites.apply(change) {
            let all = before.iter().chain(self.composites.get(&key));
            let workloads = all.filter_map(|composite| workload_of(&composite.spec));
            for workload in workloads.filter_map(|name| self.workloads.get(&Key::new(&*key.namespace, name)))
            {
                for target in targets_of(workload) {
                    let place = (key.namespace.clone(), target);
                    touched.extend(self.asked_of.get(&place).into_iter().flatten().cloned());
                }
            }
        }
        touched.into_iter().collect()
    }
}

/// Takes a key out of an index, and leaves nothing behind.
fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Key>>, place: &K, key: &Key) {
    if let Some(keys) = index.get_mut(place) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(place);
        }
    }
}
