//! What watches tell.
//!
//! Watches of different kinds are not ordered among each other, and each may be behind. Two things are never
//! unlearned: that a pod is on a node, and which pod it is.

use super::groups::GroupObject;
use super::message::{Fact, Input};
use super::{Core, KnownNode, KnownPod, Standing};
use rustc_hash::FxHashSet;
use tutti_engine::{Event, UnitKey};
use tutti_k8s::gangs::JobReading;
use tutti_k8s::request::Regarding;
use tutti_k8s::{GroupReading, NodeReading, ObjectError, ObjectKind, PodReading};
use tutti_model::{Group, Labels, ObjectKey, Pod, Text, Time};

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
    fn is_found_gone(&mut self, kind: ObjectKind, key: &ObjectKey, uid: &Text) -> bool {
        if self.found_gone.is_empty() {
            return false;
        }
        let id = (kind, key.clone());
        let is_gone = self.found_gone.get(&id) == Some(uid);
        if !is_gone {
            // The watch has come to another object of that name.
            self.found_gone.remove(&id);
        }
        is_gone
    }

    /// Looks at identity and age first: false if something newer is known of a group or composite. A list is believed
    /// in any case, because versions begin anew in a cluster that was restored, unless a look was ahead of it.
    fn admits(&mut self, unit: &UnitKey, uid: &Text, version: &Text, source: Source) -> bool {
        let (kind, key) = (kind_of(unit), unit.object());
        if source == Source::Watch {
            self.listed(kind, key);
            if self.is_found_gone(kind, key, uid) {
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
        match self.groups.object_mut(unit) {
            Some(known) if !is_listed && is_older(version, &known.version) => {
                if source == Source::Watch {
                    known.watched = Some(uid.clone());
                }
                false
            }
            _ => true,
        }
    }

    /// A watch tells that a group or composite is gone. If that is behind what a look has told, an earlier one is meant.
    pub(super) fn seen_gone(&mut self, unit: &UnitKey, now: Time) {
        self.found_gone.remove(&(kind_of(unit), unit.object().clone()));
        if let Some(known) = self.groups.object_mut(unit)
            && known.watched.take().is_some_and(|watched| watched != known.uid)
        {
            return;
        }
        self.groups.set_waits(unit, None);
        match unit {
            UnitKey::Composite(key) => self.composite_gone(key, now),
            UnitKey::Group(key) | UnitKey::Pod(key) => self.group_gone(key, now),
        }
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
                    self.groups.set_waits(&UnitKey::Group(key.clone()), None);
                    self.group_gone(&key, now);
                }
            }
            ObjectKind::Service
            | ObjectKind::ReplicationController
            | ObjectKind::ReplicaSet
            | ObjectKind::StatefulSet => {
                for key in vanished(self.kin.names(kind).iter(), &listed) {
                    self.kin_gone(kind, &key);
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
                let known: Vec<ObjectKey> = self.members.jobs().cloned().collect();
                for key in vanished(known.iter(), &listed) {
                    self.members.job_gone(&key);
                }
            }
            ObjectKind::Composite => {
                for key in vanished(self.groups.names(true).iter(), &listed) {
                    self.groups.set_waits(&UnitKey::Composite(key.clone()), None);
                    self.composite_gone(&key, now);
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
            self.members.all_listed();
            self.tell(Event::TakeOver, now);
            let (pods, nodes, groups) = (self.pods.len(), self.nodes.len(), self.groups.groups_count());
            self.report(Fact::Synced { pods, nodes, groups });
        }
    }

    /// Takes in a pod.
    ///
    /// A pod that was not understood is never placed. If it has a node already it is counted with what could be
    /// read of it: leaving it out would call its whole room free.
    pub(super) fn pod_set(&mut self, reading: PodReading, now: Time) {
        if self.can_be_named(&reading.pod.key, &reading.errors) {
            self.listed(ObjectKind::Pod, &reading.pod.key);
            if !self.is_found_gone(ObjectKind::Pod, &reading.pod.key, &reading.pod.uid) {
                self.read_pod(reading, now);
            }
        }
    }

    /// Takes in a pod as it was read, just now or before something else became known.
    fn read_pod(&mut self, mut reading: PodReading, now: Time) {
        let is_on_its_way = reading.pod.node.is_none() && self.starts.bindings.contains(&reading.pod.key);
        let postponed = is_on_its_way.then(|| Box::new(reading.clone()));
        self.members.complete(&mut reading, !self.synced);
        let PodReading { mut pod, version, scheduled, controlled, job: _, replicator, errors } = reading;
        let key = pod.key.clone();
        if self.pods.get(&key).is_some_and(|known| known.uid != pod.uid) {
            self.forget_pod(&key, now);
        }
        match self.pods.get(&key) {
            // Decided on without its group; it stays so until the outcome is known.
            Some(known) if known.group != pod.group && self.starts.bindings.contains(&key) => {
                pod.group.clone_from(&known.group);
            }
            // The group that it belongs to by its Job was found since.
            Some(known) if known.group != pod.group => {
                pod.node = pod.node.or_else(|| known.node.clone());
                self.forget_pod(&key, now);
            }
            _ => {}
        }
        let ours = self.config.serves(&pod.scheduler_name);
        if !self.pods.contains_key(&key) {
            self.meet_pod(&pod, version.clone(), ours, now);
        }
        let Some(known) = self.pods.get_mut(&key) else {
            return;
        };
        known.postponed = postponed;
        known.version = version.clone();
        known.controlled = controlled;
        let newly_bound = known.node.is_none() && pod.node.is_some();
        match (&known.node, &pod.node) {
            (None, Some(node)) => known.node = Some(node.clone()),
            // A picture of the pod from before it was bound.
            (Some(node), None) => pod.node = Some(node.clone()),
            _ => {}
        }
        let standing = Standing::of(&pod, controlled);
        if ours && pod.node.is_none() {
            known.scheduled.get_or_insert_default().see(scheduled);
        } else {
            known.scheduled = None;
        }
        let broken = !errors.is_empty();
        let placeable = !broken && ours && pod.node.is_none();
        self.liken(&mut pod, replicator, placeable);
        let Some(known) = self.pods.get_mut(&key) else {
            return;
        };
        known.unbound = placeable.then(|| Box::new(pod.clone()));
        let is_news = known.answered.take().is_none_or(|answered| *answered != pod);
        let report = broken && known.reported.as_ref() != Some(&version);
        if report {
            known.reported = Some(version);
        }
        let (unreadable, has_ended) =
            (report.then(|| pod.clone()), pod.terminating || pod.phase.is_terminal());
        let node = pod.node.clone();
        if broken && node.is_none() {
            // On its way to a node it stays as it was decided on, until the outcome is known.
            if known.told && !self.starts.bindings.contains(&key) {
                known.told = false;
                self.seat_ends(&key, now);
                self.tell(Event::PodGone(key.clone()), now);
            }
        } else {
            known.told = true;
            if is_news {
                self.tell(Event::PodSet(Box::new(pod)), now);
            }
        }
        self.set_standing(&key, standing);
        if has_ended {
            self.evictions.cancel(&key);
        }
        if let Some(pod) = unreadable {
            self.bad_pod(&pod, ours, errors, now);
        }
        if newly_bound && let Some(node) = node {
            self.pod_has_node(&key, &node, now);
        }
    }

    /// Takes in a Job: its pods may have to wait for its group, or need not any more.
    pub(super) fn job_set(&mut self, job: &JobReading, now: Time) {
        if job.key.name.is_empty() {
            return;
        }
        self.listed(ObjectKind::Job, &job.key);
        let serves = |name: &str| self.config.serves(name);
        let awaits_group = self.job_groups.as_ref().is_some_and(|api| job.asks.awaits_groups(api, serves));
        for pod in self.members.job_seen(&job.key, &job.uid, awaits_group) {
            self.read_pod(pod, now);
        }
    }

    /// Pods of Jobs that were not seen wait for them where Jobs can be read.
    pub(super) fn await_jobs(&mut self, now: Time) {
        let awaits = self.may_be_listed(ObjectKind::Job);
        for pod in self.members.await_unseen(awaits) {
            self.read_pod(pod, now);
        }
    }

    /// A binding has failed: what was read of the pod while it was on its way counts now.
    pub(super) fn read_postponed(&mut self, pod: &ObjectKey, now: Time) {
        let known = self.pods.get_mut(pod);
        if let Some(reading) = known.and_then(|known| known.postponed.take()) {
            self.read_pod(*reading, now);
        }
    }

    fn meet_pod(&mut self, pod: &Pod, version: Text, ours: bool, now: Time) {
        let known = KnownPod {
            uid: pod.uid.clone(),
            version,
            node: None,
            unbound: None,
            answered: None,
            postponed: None,
            told: false,
            scheduled: None,
            complaint: None,
            reported: None,
            ours,
            scheduler: pod.scheduler_name.clone(),
            controlled: false,
            group: pod.group.clone(),
            standing: Standing::default(),
            like: None,
            waits_since: pod.node.is_none().then_some(now),
            waits_for: None,
            evict_after: None,
            may_go_until: None,
        };
        self.pods.insert(pod.key.clone(), known);
        if let Some(group) = &pod.group {
            self.joins(group, ours.then_some(&pod.scheduler_name), true);
        }
    }

    pub(super) fn pod_gone(&mut self, key: &ObjectKey, now: Time) {
        self.members.pod_gone(key);
        self.forget_pod(key, now);
    }

    fn forget_pod(&mut self, key: &ObjectKey, now: Time) {
        self.set_standing(key, Standing::Absent);
        self.seat_ends(key, now);
        self.kin.leaves(key);
        self.waits_no_longer(&UnitKey::Pod(key.clone()), now);
        let Some(known) = self.pods.remove(key) else {
            return;
        };
        if let Some(group) = &known.group {
            self.joins(group, known.ours.then_some(&known.scheduler), false);
        }
        self.evictions.cancel(key);
        self.pod_writes.cancel(key);
        self.withdraw_complaint(&known.uid);
        if known.told {
            self.tell(Event::PodGone(key.clone()), now);
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

    /// Takes in a group. One that was not understood counts as not being there: its members wait, because a
    /// guess at its minimum could start a gang in parts.
    pub(super) fn group_set(&mut self, mut reading: GroupReading, source: Source, now: Time) {
        let key = reading.key.clone();
        let unit = UnitKey::Group(key.clone());
        if !self.admits(&unit, &reading.uid, &reading.version, source) {
            return;
        }
        let known = self.groups.object(&unit);
        let watched = known.and_then(|known| known.watched.clone());
        if known.is_some_and(|known| known.uid != reading.uid) {
            self.group_gone(&key, now);
        }
        self.fill_in_priority(&unit, &mut reading);
        let (marks, job) = (reading.marks.clone(), reading.job.clone());
        let watched = if source == Source::Watch { Some(reading.uid.clone()) } else { watched };
        let Some(seen) = self.see_group(&unit, reading, watched) else {
            return;
        };
        self.gang_seen(&key, &marks);
        self.tell_seen(&unit, seen, now);
        if let Some(job) = job {
            for pod in self.members.group_seen(&job, &key) {
                self.read_pod(pod, now);
            }
        }
    }

    pub(super) fn group_gone(&mut self, key: &ObjectKey, now: Time) {
        let unit = UnitKey::Group(key.clone());
        if self.groups.object(&unit).is_none() {
            return;
        }
        self.abort_starts_of(key, now);
        let Some(known) = self.groups.gone(&unit) else {
            return;
        };
        self.priorities.leaves(&UnitKey::Group(key.clone()));
        self.group_writes.cancel(&UnitKey::Group(key.clone()));
        self.tree_changed(key);
        self.leave_tree(&UnitKey::Group(key.clone()), now);
        self.members.group_gone(key);
        self.withdraw_complaint(&known.uid);
        self.gang_gone(key, now);
        self.waits_no_longer(&UnitKey::Group(key.clone()), now);
        self.tell(Event::GroupGone(key.clone()), now);
    }

    /// Takes in a composite. One that was not understood counts as not being there, and its tree waits.
    pub(super) fn composite_set(&mut self, mut reading: GroupReading, source: Source, now: Time) {
        let key = reading.key.clone();
        let unit = UnitKey::Composite(key.clone());
        if !self.admits(&unit, &reading.uid, &reading.version, source) {
            return;
        }
        let known = self.groups.object(&unit);
        let watched = known.and_then(|known| known.watched.clone());
        if known.is_some_and(|known| known.uid != reading.uid) {
            self.composite_gone(&key, now);
        }
        self.fill_in_priority(&unit, &mut reading);
        let watched = if source == Source::Watch { Some(reading.uid.clone()) } else { watched };
        let Some(seen) = self.see_group(&unit, reading, watched) else {
            return;
        };
        let changed = seen.changed;
        self.tell_seen(&unit, seen, now);
        if changed {
            self.composite_changed(unit.object());
        }
    }

    pub(super) fn composite_gone(&mut self, key: &ObjectKey, now: Time) {
        let unit = UnitKey::Composite(key.clone());
        if self.groups.object(&unit).is_none() {
            return;
        }
        self.abort_starts_below(key, now);
        let Some(known) = self.groups.gone(&unit) else {
            return;
        };
        self.priorities.leaves(&UnitKey::Composite(key.clone()));
        self.group_writes.cancel(&UnitKey::Composite(key.clone()));
        self.composite_changed(key);
        self.leave_tree(&UnitKey::Composite(key.clone()), now);
        self.withdraw_complaint(&known.uid);
        self.waits_no_longer(&unit, now);
        self.forget_row(&unit, now);
        self.tell(Event::CompositeGone(key.clone()), now);
    }

    /// Keeps what was read of a group or composite; `None` if it cannot be kept.
    fn see_group(
        &mut self,
        unit: &UnitKey,
        reading: GroupReading,
        watched: Option<Text>,
    ) -> Option<SeenGroup> {
        let GroupReading { key, uid, generation, version, group, scheduled, errors, .. } = reading;
        if !self.can_be_named(&key, &errors) {
            return None;
        }
        let (known, is_new) = self.groups.seen(unit, GroupObject::new(uid, version.clone(), generation));
        let changed = is_new || known.asks.as_deref() != group.as_ref();
        let mut childless = None;
        let mut has_moved = false;
        let mut parents = Vec::new();
        if changed {
            let before = known.asks.as_ref().map(|asks| &asks.parent);
            has_moved =
                before.is_some_and(|before| group.as_ref().is_none_or(|group| group.parent != *before));
            known.said_again_at = None;
            self.groups.set_asks(unit, group.clone().map(Box::new));
            let parent = group.as_ref().and_then(|group| group.parent.clone());
            let before = self.groups.parent(unit).cloned();
            if before != parent {
                // What it leaves may lack something from now on.
                match unit {
                    UnitKey::Composite(composite) => self.composite_changed(composite),
                    UnitKey::Group(group) | UnitKey::Pod(group) => self.tree_changed(group),
                }
                childless = self.groups.set_parent(unit, parent.as_ref());
                parents.extend([before, parent].into_iter().flatten());
            }
        }
        let known = self.groups.object_mut(unit)?;
        known.trouble = errors.first().map(|error| Text::from(error.detail()));
        known.generation = generation;
        known.watched = watched;
        known.version = version.clone();
        known.scheduled.see(scheduled);
        if known.scheduled.holds() {
            // Somebody else has started it; what waits to be written is out of date.
            self.group_writes.cancel_unless(unit, |(_, condition)| condition.holds());
        }
        let report = !errors.is_empty() && known.reported.as_ref() != Some(&version);
        if report {
            known.reported = Some(version);
        }
        Some(SeenGroup {
            group,
            changed,
            has_moved,
            parents,
            childless,
            errors: if report { errors } else { Vec::new() },
        })
    }

    fn tell_seen(&mut self, unit: &UnitKey, seen: SeenGroup, now: Time) {
        self.forget_childless(seen.childless, now);
        match unit {
            UnitKey::Group(group) if seen.has_moved => self.abort_starts_of(group, now),
            UnitKey::Composite(composite) if seen.has_moved => self.abort_starts_below(composite, now),
            _ => {}
        }
        match (unit, seen.group.clone()) {
            (UnitKey::Composite(composite), _) => self.tell_composite(composite, now),
            (_, Some(group)) => self.tell(Event::GroupSet(Box::new(group)), now),
            (_, None) => self.tell(Event::GroupGone(unit.object().clone()), now),
        }
        for parent in &seen.parents {
            self.children_changed(parent, now);
        }
        if let UnitKey::Composite(composite) = unit
            && seen.changed
            && self.groups.is_too_large(composite)
        {
            self.say_too_large(composite, now);
        }
        if seen.changed {
            self.take_back(unit, now);
            if let UnitKey::Group(group) = unit {
                self.take_back(&self.unit_of_group(group), now);
            }
        }
        if seen.changed && seen.group.is_some() {
            self.repeat_refusal(unit, now);
        }
        if !seen.errors.is_empty() {
            self.bad_group(unit, seen.errors, now);
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

    /// Of what is gone nobody has to remember that it was not understood.
    pub(super) fn no_longer_bad(&mut self, input: &Input) {
        let gone = match input {
            Input::ClaimGone(key) => (ObjectKind::Claim, key.clone()),
            Input::VolumeGone(name) => (ObjectKind::Volume, cluster_key(name)),
            Input::ClassGone(name) => (ObjectKind::StorageClass, cluster_key(name)),
            Input::LimitsGone(node) => (ObjectKind::CsiNode, cluster_key(node)),
            Input::KinGone(kind, key) => (*kind, key.clone()),
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

/// What is new about a group or composite.
struct SeenGroup {
    /// `None` if it was not understood.
    group: Option<Group>,
    /// True if its condition has to speak of another one than before.
    changed: bool,
    /// True if it is part of something else than before.
    has_moved: bool,
    /// Composites that it has become part of, or is not part of any more.
    parents: Vec<ObjectKey>,
    /// The composite that it was the last part of before.
    childless: Option<ObjectKey>,
    /// What was not understood, unless that was said already.
    errors: Vec<ObjectError>,
}

/// The kind of a group or composite.
pub(super) fn kind_of(unit: &UnitKey) -> ObjectKind {
    match unit {
        UnitKey::Composite(_) => ObjectKind::Composite,
        UnitKey::Group(_) | UnitKey::Pod(_) => ObjectKind::PodGroup,
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
