//! What watches tell, and in which order it is believed: facts enter here, identity and age are looked at first, and the
//! tables that they belong to take them in.
//!
//! Watches of different kinds are not ordered among each other, and each may be behind. Two things are never
//! unlearned: that a pod is on a node, and which pod it is.

pub(super) mod budgets;
pub(super) mod storage_objects;

use super::message::{Fact, Input};
use super::{Core, KnownNode};
use rustc_hash::FxHashSet;
use tutti_engine::{Event, UnitKey};
use tutti_k8s::request::Regarding;
use tutti_k8s::{NodeReading, ObjectError, ObjectKind};
use tutti_model::{Labels, ObjectKey, Text, Time};

/// Objects that are remembered as gone although watches have not said so.
const FOUND_GONE_MAX: usize = 10_000;

/// Where a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A list or a watch. Together they tell of one kind in order.
    Watch,
    /// A look at one object, which may be ahead of the watch.
    Look,
    /// It was read before, and something else has become known that it depends on.
    Kept,
}

/// Which object was seen, and how old that is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting<'a> {
    pub(super) kind: ObjectKind,
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a Text,
    pub(super) version: &'a Text,
}

/// A list under way.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// What it has told so far.
    names: FxHashSet<ObjectKey>,
    /// What was looked at since it began, and is known from a newer version than the list's.
    looked_at: FxHashSet<ObjectKey>,
}

impl Core {
    pub(super) fn list_started(&mut self, kind: ObjectKind) {
        self.listing.insert(kind, Listing::default());
    }

    /// Notes that a look found an object gone: what a watch that is behind says of it does not count any more.
    pub(super) fn found_gone(&mut self, kind: ObjectKind, key: &ObjectKey, uid: &Text) {
        if self.found_gone.len() < FOUND_GONE_MAX {
            self.found_gone.insert((kind, key.clone()), uid.clone());
        }
    }

    /// True if a watch tells of an object that is known to be gone.
    fn is_found_gone(&mut self, seen: &Sighting<'_>) -> bool {
        if self.found_gone.is_empty() {
            return false;
        }
        let id = (seen.kind, seen.key.clone());
        let is_gone = self.found_gone.get(&id) == Some(seen.uid);
        if !is_gone {
            // The watch has come to another object of that name.
            self.found_gone.remove(&id);
        }
        is_gone
    }

    /// Every sight of a pod, group or composite passes here before anything follows from it: false if the object is known
    /// to be gone, or if something newer is known of it. A list is believed in any case, because versions begin anew in a
    /// cluster that was restored, unless a look was ahead of it.
    pub(super) fn admits(&mut self, seen: &Sighting<'_>, source: Source) -> bool {
        let Sighting { kind, key, uid, version } = *seen;
        if source == Source::Watch {
            self.listed(kind, key);
            if self.is_found_gone(seen) {
                return false;
            }
        }
        let listing = self.listing.get_mut(&kind);
        let is_listed = source == Source::Watch
            && listing.as_ref().is_some_and(|listing| !listing.looked_at.contains(key));
        if source == Source::Look
            && let Some(listing) = listing
        {
            listing.looked_at.insert(key.clone());
        }
        let is_old =
            !is_listed && self.known_version(kind, key).is_some_and(|known| is_older(version, known));
        if is_old
            && source == Source::Watch
            && let Some(known) = unit_of(kind, key).and_then(|unit| self.groups.object_mut(&unit))
        {
            known.watched = Some(uid.clone());
        }
        !is_old
    }

    /// The version of an object that was last believed.
    fn known_version(&self, kind: ObjectKind, key: &ObjectKey) -> Option<&Text> {
        match unit_of(kind, key) {
            Some(unit) => self.groups.object(&unit).map(|known| &known.version),
            None => self.pods.get(key).map(|known| &known.version),
        }
    }

    /// A watch tells that a pod, group or composite is gone. If that is behind what a look has told, an earlier one is meant.
    pub(super) fn seen_gone(&mut self, kind: ObjectKind, key: &ObjectKey, now: Time) {
        self.found_gone.remove(&(kind, key.clone()));
        let Some(unit) = unit_of(kind, key) else {
            self.pod_gone(key, now);
            return;
        };
        if let Some(known) = self.groups.object_mut(&unit)
            && known.watched.take().is_some_and(|watched| watched != known.uid)
        {
            return;
        }
        self.unit_vanished(&unit, now);
    }

    /// A group or composite is not there any more, and with it goes what it was told.
    fn unit_vanished(&mut self, unit: &UnitKey, now: Time) {
        self.groups.set_waits(unit, None);
        self.unit_gone(unit, now);
    }

    /// What was known and is not in the list has vanished while nobody watched.
    pub(super) fn list_done(&mut self, kind: ObjectKind, now: Time) {
        // The end of a list whose beginning is forgotten says nothing.
        let Some(Listing { names: listed, .. }) = self.listing.remove(&kind) else {
            return;
        };
        self.found_gone.retain(|(of, key), _| *of != kind || listed.contains(key));
        match kind {
            ObjectKind::Pod => {
                for key in vanished(self.pods.keys(), &listed) {
                    self.pod_gone(&key, now);
                }
            }
            ObjectKind::Node => {
                let known: Vec<ObjectKey> = self.nodes.keys().map(cluster_key).collect();
                for key in vanished(known.iter(), &listed) {
                    self.node_gone(&key.name, now);
                }
            }
            ObjectKind::Namespace => {
                let known: Vec<ObjectKey> = self.namespaces.iter().map(cluster_key).collect();
                for key in vanished(known.iter(), &listed) {
                    self.namespace_gone(&key.name, now);
                }
            }
            ObjectKind::Claim | ObjectKind::Volume | ObjectKind::StorageClass | ObjectKind::CsiNode => {
                for key in vanished(self.storage.names(kind).iter(), &listed) {
                    self.storage_vanished(kind, &key, now);
                }
            }
            ObjectKind::PodGroup => {
                for key in vanished(self.groups.names(false).iter(), &listed) {
                    self.unit_vanished(&UnitKey::Group(key), now);
                }
            }
            ObjectKind::Service
            | ObjectKind::ReplicationController
            | ObjectKind::ReplicaSet
            | ObjectKind::StatefulSet => {
                for key in vanished(self.default_spread.names(kind).iter(), &listed) {
                    self.selector_gone(kind, &key);
                }
            }
            ObjectKind::PriorityClass => {
                for key in vanished(self.priorities.names().iter(), &listed) {
                    self.priority_class_gone(&key.name);
                }
            }
            ObjectKind::Budget => {
                for key in vanished(self.budgets.names().iter(), &listed) {
                    self.budget_gone(&key);
                }
            }
            ObjectKind::Job => {
                let known: Vec<ObjectKey> = self.job_pods.jobs().cloned().collect();
                for key in vanished(known.iter(), &listed) {
                    self.job_pods.job_gone(&key);
                }
            }
            ObjectKind::Composite => {
                for key in vanished(self.groups.names(true).iter(), &listed) {
                    self.unit_vanished(&UnitKey::Composite(key), now);
                }
            }
        }
        self.unavailable.remove(&kind);
        self.await_jobs(now);
        self.list_settled(kind, now);
    }

    /// The cluster does not let us list a kind. What can be done without is done without; everything else is waited
    /// for.
    pub(super) fn list_refused(&mut self, kind: ObjectKind, why: Text, now: Time) {
        self.listing.remove(&kind);
        if self.unavailable.insert(kind) {
            self.report(Fact::Unavailable { kind, why });
        }
        self.await_jobs(now);
        if ObjectKind::OPTIONAL.contains(&kind) {
            self.list_settled(kind, now);
        }
    }

    /// True if the objects of a kind are known, or will be.
    pub(super) fn may_be_listed(&self, kind: ObjectKind) -> bool {
        self.kinds.contains(&kind) && !self.unavailable.contains(&kind)
    }

    /// All that there will be of a first list has been seen.
    fn list_settled(&mut self, kind: ObjectKind, now: Time) {
        self.unlisted.remove(&kind);
        if kind == ObjectKind::PriorityClass {
            self.priority_classes_listed(now);
        }
        if self.unlisted.is_empty() && !self.synced {
            self.synced = true;
            self.drop_kept();
            self.tell(Event::TakeOver, now);
            let (pods, nodes, groups) = (self.pods.len(), self.nodes.len(), self.groups.groups_count());
            self.report(Fact::Synced { pods, nodes, groups });
        }
    }

    pub(super) fn node_set(&mut self, reading: NodeReading, now: Time) {
        let NodeReading { node, uid, version, errors } = reading;
        let key = cluster_key(&node.name);
        if !self.can_be_named(&key, &errors) {
            return;
        }
        self.listed(ObjectKind::Node, &key);
        let known = self
            .nodes
            .entry(node.name.clone())
            .or_insert_with(|| KnownNode { uid: uid.clone(), reported: None });
        known.uid = uid.clone();
        let report = !errors.is_empty() && known.reported.as_ref() != Some(&version);
        if report {
            known.reported = Some(version);
        }
        self.tell(Event::NodeSet(Box::new(node)), now);
        if report {
            self.bad_node(&key, uid, errors, now);
        }
    }

    pub(super) fn node_gone(&mut self, name: &Text, now: Time) {
        if self.nodes.remove(name).is_none() {
            return;
        }
        self.tell(Event::NodeGone(name.clone()), now);
        self.starts.preparations.look_at_node(name);
        for (pod, uid) in self.starts.bindings.fail_unsent(name) {
            self.bind_failed(&pod, &uid, name, &"the node is gone".into(), now);
        }
    }

    pub(super) fn namespace_set(&mut self, name: &Text, labels: Labels, now: Time) {
        self.listed(ObjectKind::Namespace, &cluster_key(name));
        self.namespaces.insert(name.clone());
        self.tell(Event::NamespaceSet { name: name.clone(), labels }, now);
    }

    pub(super) fn namespace_gone(&mut self, name: &Text, now: Time) {
        if self.namespaces.remove(name) {
            self.tell(Event::NamespaceSet { name: name.clone(), labels: Labels::default() }, now);
        }
    }

    /// An object without a name cannot be kept; it can only be talked about.
    pub(super) fn can_be_named(&mut self, key: &ObjectKey, errors: &[ObjectError]) -> bool {
        if !key.name.is_empty() {
            return true;
        }
        for error in errors.iter().take(1) {
            self.report(Fact::BadObject(error.clone()));
        }
        false
    }

    /// Notes that an object was seen of which only what was understood is kept. False if that is nothing; that is said
    /// once, on the object itself.
    pub(super) fn understood(
        &mut self,
        kind: ObjectKind,
        key: &ObjectKey,
        uid: &Text,
        errors: Vec<ObjectError>,
        now: Time,
    ) -> bool {
        if !self.can_be_named(key, &errors) {
            return false;
        }
        self.listed(kind, key);
        if errors.is_empty() {
            self.bad.remove(&(kind, key.clone()));
            return true;
        }
        if self.bad.insert((kind, key.clone()))
            && let Some((api_version, kind)) = kind.api()
        {
            let (key, uid) = (key.clone(), uid.clone());
            let regarding = Regarding { api_version: api_version.into(), kind: kind.into(), key, uid };
            self.bad_object(regarding, errors, now);
        }
        false
    }

    /// That an object was not understood is forgotten once it is gone.
    pub(super) fn no_longer_bad(&mut self, input: &Input) {
        let gone = match input {
            Input::ClaimGone(key) => (ObjectKind::Claim, key.clone()),
            Input::VolumeGone(name) => (ObjectKind::Volume, cluster_key(name)),
            Input::ClassGone(name) => (ObjectKind::StorageClass, cluster_key(name)),
            Input::LimitsGone(node) => (ObjectKind::CsiNode, cluster_key(node)),
            Input::SelectorGone(kind, key) => (*kind, key.clone()),
            Input::PriorityClassGone(name) => (ObjectKind::PriorityClass, cluster_key(name)),
            Input::BudgetGone(key) => (ObjectKind::Budget, key.clone()),
            _ => return,
        };
        self.bad.remove(&gone);
    }

    pub(super) fn listed(&mut self, kind: ObjectKind, key: &ObjectKey) {
        if let Some(listing) = self.listing.get_mut(&kind) {
            listing.names.insert(key.clone());
        }
    }
}

/// The kind of a group or composite.
pub(super) fn kind_of(unit: &UnitKey) -> ObjectKind {
    match unit {
        UnitKey::Composite(_) => ObjectKind::Composite,
        UnitKey::Group(_) | UnitKey::Pod(_) => ObjectKind::PodGroup,
    }
}

/// The group or composite of a name; `None` for other kinds.
fn unit_of(kind: ObjectKind, key: &ObjectKey) -> Option<UnitKey> {
    match kind {
        ObjectKind::PodGroup => Some(UnitKey::Group(key.clone())),
        ObjectKind::Composite => Some(UnitKey::Composite(key.clone())),
        _ => None,
    }
}

/// The key of an object that is in no namespace.
pub(super) fn cluster_key(name: &Text) -> ObjectKey {
    ObjectKey::new("", name.clone())
}

/// True if one version is certainly older than another. Versions are numbers that grow; what is none is not compared.
fn is_older(version: &str, than: &str) -> bool {
    matches!((version.parse::<u64>(), than.parse::<u64>()), (Ok(version), Ok(than)) if version < than)
}

/// What is known and not listed, by name.
fn vanished<'a>(known: impl Iterator<Item = &'a ObjectKey>, listed: &FxHashSet<ObjectKey>) -> Vec<ObjectKey> {
    let mut vanished: Vec<ObjectKey> = known.filter(|key| !listed.contains(key)).cloned().collect();
    vanished.sort_unstable();
    vanished
}
