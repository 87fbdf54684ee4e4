//! The promises, and what breaks them.

use super::Sim;
use super::server::{Binder, SimGroup, SimPod};
use super::tally::Deed;
use std::collections::BTreeMap;
use tutti_engine::{Seat, UnitKey};
use tutti_k8s::{Condition, WhenBroken};
use tutti_model::{ObjectKey, Phase, Text};
use tutti_scheduler::core::groups::GangState;
use tutti_scheduler::core::message::Effect;

/// The reason of a condition that autoscalers make nodes for.
const UNSCHEDULABLE: &str = "Unschedulable";

impl Sim {
    /// Nothing is sent without a lease that lasts, and no gang starts in part.
    pub(super) fn check_effects(&mut self, index: usize, effects: &[Effect]) -> Result<(), String> {
        let replica = &self.replicas[index];
        let term = replica.term;
        let request = effects.iter().find(|effect| !matches!(effect, Effect::Report(_)));
        if let Some(request) = request
            && !(replica.leads && self.now < replica.lease_until)
        {
            return Err(format!("sent without a lease: {request:?}"));
        }
        if replica.core.broken_starts().next().is_some() {
            self.tally.count(Deed::BrokenStart);
        }
        let mut starts: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        for effect in effects {
            match effect {
                Effect::PatchPodCondition { pod, condition, .. } if &*condition.reason == UNSCHEDULABLE => {
                    self.check_room_is_missing(index, pod)?;
                }
                Effect::PatchGroupCondition { group: UnitKey::Group(group), condition, .. }
                    if &*condition.reason == UNSCHEDULABLE =>
                {
                    self.check_room_is_missing_for_group(index, group)?;
                }
                _ => {}
            }
            if let Effect::MarkDisrupted { pod, uid, .. } | Effect::DeletePod { pod, uid } = effect {
                self.check_intent(index, pod, uid)?;
            }
            if let Effect::Bind(seat) = effect
                && let Some(group) = self.server.pods.get(&seat.pod).and_then(|pod| pod.pod.group.as_ref())
            {
                *starts.entry(group.clone()).or_default() += 1;
            }
        }
        for group in starts.keys() {
            // Some may be sent again, or follow when others are bound already.
            let is_first = !self.has_bound(group) && self.replicas[index].has_heard_all();
            let unit = UnitKey::Group(group.clone());
            let is_first = self.sent.insert((term, unit.clone())) && is_first;
            // What was read last, unless it was changed since so that fewer are enough.
            let read = self.confirmed.get(&unit).copied().unwrap_or(1);
            let minimum = self.server.groups.get(group).map_or(1, |group| group.minimum().min(read));
            let begun = self.begun(index, group, &starts);
            if is_first && begun < minimum {
                return Err(format!("{group} starts with {begun} of at least {minimum} members"));
            }
            // A gang of which something ran once may have been thought to be broken when it was decided on.
            let has_run = || self.server.groups_beside(group).iter().any(|group| self.ran.contains(group));
            let is_new = is_first && minimum > 1 && !has_run();
            if let Some(broken) = self.replicas[index].core.broken_starts().next().filter(|_| is_new) {
                return Err(format!("{group} starts before {broken}, which is broken"));
            }
        }
        self.check_tree_starts(index, term, &starts)
    }

    /// How many members of a group are bound in this step, or follow: a server that has too much to do gets a few at a time,
    /// and the rest of a gang when those are answered.
    pub(super) fn begun(&self, index: usize, group: &ObjectKey, starts: &BTreeMap<ObjectKey, u32>) -> u32 {
        let sent = starts.get(group).copied().unwrap_or_default();
        sent.max(self.replicas[index].core.bindings_of(group) as u32)
    }

    /// A process that asks for a deletion unwinds the gang at that moment, which was never complete or is to be unwound even
    /// so, and a controller makes the pod again. What becomes of the request is checked when it arrives, where it may be late and the
    /// pod may go already.
    fn check_intent(&mut self, index: usize, pod: &ObjectKey, uid: &Text) -> Result<(), String> {
        let Some(found) = self.server.pods.get(pod).filter(|found| found.pod.uid == *uid) else {
            return Ok(());
        };
        let (group, core) = (found.pod.group.as_ref(), &self.replicas[index].core);
        if let Some(meant) = group.and_then(|group| core.group_uid(group)) {
            self.meant.insert(uid.clone(), meant.clone());
        }
        let state = group.and_then(|group| core.gang_state(group));
        if state != Some(GangState::Unwinding) {
            return Err(format!("{pod} is to be deleted while its gang is {state:?}"));
        }
        if !found.controlled {
            return Err(format!("{pod} is to be deleted, and nobody makes it again"));
        }
        // It may become complete while the deletion is on its way, which nobody can call back.
        let group = group.and_then(|group| self.server.groups.get(group));
        if group.is_some_and(|group| group.marks.fully_bound && !self.unwinds_when_broken(group)) {
            return Err(format!("{pod} is to be deleted although its gang was complete"));
        }
        Ok(())
    }

    /// A pod says that there is no room for it only if room is what is missing: an autoscaler would make a node for it.
    fn check_room_is_missing(&self, index: usize, pod: &ObjectKey) -> Result<(), String> {
        let found = self.server.pods.get(pod).filter(|_| self.replicas[index].has_heard_all());
        if found.is_some_and(|found| !found.pod.gates.is_empty()) {
            return Err(format!("{pod} says that it has no room, and a gate holds it back"));
        }
        match found.and_then(|found| found.pod.group.as_ref()) {
            Some(group) => self.check_room_is_missing_for_group(index, group),
            None => Ok(()),
        }
    }

    fn check_room_is_missing_for_group(&self, index: usize, group: &ObjectKey) -> Result<(), String> {
        let replica = &self.replicas[index];
        // While it ends, or while a gang or one of the same tree is unwound, nothing is decided about it any more.
        let is_unwound = |group: &ObjectKey| replica.core.gang_state(group) == Some(GangState::Unwinding);
        let is_decided = replica.ending.is_none()
            && replica.core.gang_state(group).is_none()
            && !self.server.groups_beside(group).iter().any(is_unwound);
        match self.why_not_ready(group).filter(|_| replica.has_heard_all() && is_decided) {
            Some(why) => Err(format!("{group} is said to have no room, and {why}")),
            None => Ok(()),
        }
    }

    /// Why a group could not start, however much room there was.
    fn why_not_ready(&self, key: &ObjectKey) -> Option<String> {
        let Some(group) = self.server.groups.get(key) else {
            return Some("is gone".to_owned());
        };
        if !self.server.has_whole_tree(key) {
            return Some("a composite above it is gone".to_owned());
        }
        let priority = group.group.priority.unwrap_or(0);
        if self.server.composites_above(key).any(|found| found.group.priority.unwrap_or(0) != priority) {
            return Some("has another priority than a composite above it".to_owned());
        }
        let living = self.living_beside(key, |other| other.pod.gates.is_empty());
        let count = living.get(key).map_or(0, |(count, _)| *count);
        if count < group.minimum() {
            return Some(format!("has {count} of {} members", group.minimum()));
        }
        let is_short = self.server.is_tree_short(key, &living);
        is_short.then(|| "a composite above it has too few groups that are ready".to_owned())
    }

    /// Members that live and of which something is true, by group, of all groups that start together with one.
    fn living_beside(
        &self,
        key: &ObjectKey,
        counts: impl Fn(&SimPod) -> bool,
    ) -> BTreeMap<&ObjectKey, (u32, u32)> {
        let beside = self.server.groups_beside(key);
        let lives = |other: &&SimPod| {
            other.pod.phase == Phase::Succeeded || (!other.is_over() && !other.pod.terminating)
        };
        let mut living: BTreeMap<&ObjectKey, (u32, u32)> = BTreeMap::new();
        for other in self.server.pods.values().filter(lives).filter(|other| counts(other)) {
            if let Some(group) = other.pod.group.as_ref().filter(|group| beside.contains(*group)) {
                living.entry(group).or_default().0 += 1;
            }
        }
        living
    }

    /// True if something of a group is on a node, in whatever condition.
    pub(super) fn has_bound(&self, group: &ObjectKey) -> bool {
        self.server.pods.values().any(|pod| pod.pod.group.as_ref() == Some(group) && pod.pod.node.is_some())
    }

    /// No node is given more than it has by all who have led, one after the other. What others put there counts where the
    /// leader was told of it, see `told`; so does that a node has become smaller.
    pub(super) fn check_room(&self, seat: &Seat, binder: Binder) -> Result<(), String> {
        let (Some(node), Some(pod)) = (self.server.nodes.get(&seat.node), self.server.pods.get(&seat.pod))
        else {
            return Ok(());
        };
        if binder != Binder::Leader || self.server.has_shrunk(node) {
            return Ok(());
        }
        let ours = |other: &&SimPod| {
            other.binder == Some(Binder::Leader)
                && other.pod.node.as_ref() == Some(&seat.node)
                && !other.is_over()
        };
        let used: i64 = self.server.pods.values().filter(ours).map(SimPod::cpu).sum();
        let has = node.allocatable.get("cpu");
        if used + pod.cpu() > has {
            return Err(format!("{} is over-committed: {used} + {} of {has}", seat.node, pod.cpu()));
        }
        Ok(())
    }

    /// True if a gang that was complete is to be unwound nevertheless.
    fn unwinds_when_broken(&self, group: &SimGroup) -> bool {
        group.marks.when_broken.unwrap_or(self.when_broken) == WhenBroken::Unwind
    }

    pub(super) fn count_eviction(&mut self, pod: &ObjectKey) {
        self.tally.count(Deed::Eviction);
        let group = self.server.pods.get(pod).and_then(|found| found.pod.group.as_ref());
        if group.and_then(|group| self.server.groups.get(group)).is_some_and(|group| group.marks.fully_bound)
        {
            self.tally.count(Deed::BrokenEviction);
        }
    }

    /// A member is deleted only if that was announced on its group and on itself, and if it is made again.
    pub(super) fn check_eviction(&self, pod: &ObjectKey, is_late: bool) -> Result<(), String> {
        let Some(found) = self.server.pods.get(pod) else {
            return Ok(());
        };
        let group = found.pod.group.as_ref().and_then(|group| self.server.groups.get(group));
        // A deposed leader acts on what was true when it led. A pod that has ended or goes already loses nothing by being
        // deleted, whatever was announced: it is not counted as a member any more. That the deletion was meant is checked
        // where it is sent. It was announced on the group that was there then, which somebody may have replaced since.
        let meant = self.meant.get(&found.pod.uid);
        let is_current = |group: &&SimGroup| meant == Some(&group.group.uid);
        let works = !found.is_over() && !found.pod.terminating;
        let Some(group) = group.filter(|_| works && !is_late).filter(is_current) else {
            return Ok(());
        };
        for (wrong, what) in [
            (!found.controlled, "nobody makes it again"),
            (!found.disrupted, "that was not said on it"),
            (group.marks.unwind_at.is_none(), "that was not written on its group"),
        ] {
            if wrong {
                return Err(format!("{pod} is deleted although {what}"));
            }
        }
        Ok(())
    }

    /// A gang below its minimum is being completed, unwound or kept, and no other is.
    pub(super) fn check_gangs(&self, index: usize) -> Result<(), String> {
        let replica = &self.replicas[index];
        if !replica.is_up_to_date(self.now) {
            return Ok(());
        }
        let members = self.server.counted_by_group();
        for (key, group) in &self.server.groups {
            if !self.server.has_class_of(group) {
                // Who met it without its class does not understand it, and who met it before does.
                continue;
            }
            let (counted, bound) = members.get(key).copied().unwrap_or_default();
            let is_partial =
                bound > 0 && (counted < group.minimum() || self.server.is_tree_short(key, &members));
            let state = replica.core.gang_state(key);
            if is_partial != state.is_some() {
                let minimum = group.minimum();
                return Err(format!(
                    "{key} has {counted} of {minimum} members, {bound} of them bound, and is {state:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whatever happens to the world in a step, what follows from it is checked where it happens.
    pub(super) fn check_step(&self) -> Result<(), String> {
        let leaders = self.replicas.iter().filter(|replica| {
            replica.alive
                && replica.leads
                && self.now < replica.lease_until
                && replica.core.is_acting(self.now)
        });
        if leaders.count() > 1 {
            return Err("two schedulers act at once".to_owned());
        }
        self.check_in_part()
    }

    /// With all trouble over and room for everybody, everything that can run does.
    pub(super) fn check_end(&self) -> Result<(), String> {
        let Some(leader) = self.leader() else {
            return Err("nobody leads in the end".to_owned());
        };
        if !leader.is_up_to_date(self.now) || !leader.core.is_drained() {
            return Err("the leader has not come to rest".to_owned());
        }
        if leader.core.gauges().safety_flush_finds > 0 {
            return Err("somebody slept who could have been placed".to_owned());
        }
        for pod in self.server.pods.values() {
            let waits = pod.pod.node.is_none() && !pod.is_over() && !pod.pod.terminating;
            if waits && self.could_run(pod) {
                return Err(format!("{} waits although there is room", pod.pod.key));
            }
        }
        let members = self.server.counted_by_group();
        for (key, group) in &self.server.groups {
            let (counted, bound) = members.get(key).copied().unwrap_or_default();
            let is_short = counted < group.minimum() || self.server.is_tree_short(key, &members);
            if bound > 0 && is_short && self.state_of(key).is_none() {
                return Err(format!("{key} is forgotten with {counted} of {} members", group.minimum()));
            }
        }
        if let Some(key) = self.unmarked_gang(|_| true) {
            return Err(format!("{key} is complete and not marked so"));
        }
        if let Some(key) = self.untold_start() {
            return Err(format!("{key} has what it needs and was not told that it has started"));
        }
        for (name, node) in &self.server.nodes {
            let sits = |pod: &&SimPod| pod.pod.node.as_ref() == Some(name) && !pod.is_over();
            let used: i64 = self.server.pods.values().filter(sits).map(SimPod::cpu).sum();
            if used > node.allocatable.get("cpu") && !self.server.has_shrunk(node) {
                return Err(format!("{name} is over-committed in the end"));
            }
        }
        Ok(())
    }

    /// A gang that has all it needs, of those that are asked for, without its being written on it.
    pub(super) fn unmarked_gang(&self, asked: impl Fn(&ObjectKey) -> bool) -> Option<&ObjectKey> {
        let members = self.server.counted_by_group();
        let is_unmarked = |(key, group): &(&ObjectKey, &SimGroup)| {
            let (counted, bound) = members.get(*key).copied().unwrap_or_default();
            let is_short = counted < group.minimum() || self.server.is_tree_short(key, &members);
            let lasting = group.minimum() > 1 || group.group.parent.is_some();
            let is_understood = self.server.has_class_of(group);
            bound > 0 && !is_short && lasting && !group.marks.fully_bound && is_understood && asked(key)
        };
        self.server.groups.iter().find(is_unmarked).map(|(key, _)| key)
    }

    /// A group or composite that has all it needs and does not say that it was scheduled.
    fn untold_start(&self) -> Option<&ObjectKey> {
        let members = self.server.counted_by_group();
        let runs = |(key, group): &(&ObjectKey, &SimGroup)| {
            let (counted, _) = members.get(*key).copied().unwrap_or_default();
            let is_ours =
                |pod: &SimPod| pod.pod.group.as_ref() == Some(*key) && &*pod.pod.scheduler_name == "tutti";
            counted >= group.minimum()
                && !self.server.is_tree_short(key, &members)
                && self.server.pods.values().any(is_ours)
        };
        let is_told = |group: &SimGroup| group.condition.as_ref().is_some_and(Condition::holds);
        self.server.groups.iter().filter(runs).find_map(|(key, group)| {
            // Of a tree without a root nobody knows what it needs.
            let is_whole = self.server.has_whole_tree(key);
            let above = self.server.above(key).into_iter().filter(|_| is_whole);
            let composites = above.filter_map(|composite| self.server.composites.get_key_value(&composite));
            [(key, group)]
                .into_iter()
                .chain(composites)
                .find(|(_, group)| !is_told(group))
                .map(|(key, _)| key)
        })
    }

    /// True if a pod that waits has all it needs: if it is a member, enough others.
    fn could_run(&self, pod: &SimPod) -> bool {
        let Some(key) = &pod.pod.group else {
            return true;
        };
        let Some(group) = self.server.groups.get(key) else {
            return false;
        };
        let beside = self.server.groups_beside(key);
        let of_groups =
            |other: &&SimPod| other.pod.group.as_ref().is_some_and(|group| beside.contains(group));
        let members = || self.server.pods.values().filter(of_groups);
        let living = self.living_beside(key, |_| true);
        let same_scheduler =
            members().filter(|other| !other.is_over()).all(|other| &*other.pod.scheduler_name == "tutti");
        let priority = group.group.priority.unwrap_or(0);
        let same_priority =
            members().filter(|other| !other.is_over()).all(|other| other.pod.priority == priority);
        // It may have been moved to a tree of another priority.
        let mut above = self.server.composites_above(key);
        let same_priority = same_priority && above.all(|found| found.group.priority.unwrap_or(0) == priority);
        let enough = living.get(key).is_some_and(|(count, _)| *count >= group.minimum());
        same_scheduler
            && same_priority
            && enough
            && self.server.has_whole_tree(key)
            && !self.server.is_tree_short(key, &living)
    }
}
