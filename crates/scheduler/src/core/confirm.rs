//! A last look at a group before its gang starts. Watches may be behind: the minimum may have been raised, or the group
//! replaced by another of its name, and a gang that is bound by an old picture would start in part. So the group is
//! read once more, and only if it is as it was decided on, and everybody is still there, bindings go out.

use super::message::{Effect, Fact, GroupLookup};
use super::{Core, UnitKey};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tutti_engine::{Event, Placement, Seat};
use tutti_model::{ObjectKey, Text, Time};

/// Looks under way at once.
const LOOKS_MAX: usize = 32;
/// How often a look without an answer is repeated.
const TRIES_MAX: u32 = 6;
/// Pause before the second look; every further one is twice as long.
const PAUSE_FIRST_MS: i64 = 200;

#[derive(Debug)]
struct Confirm {
    placement: Placement,
    uid: Text,
    minimum: u32,
    tries: u32,
    asking: bool,
}

/// Gangs that are about to start.
#[derive(Debug, Default)]
pub(crate) struct Confirms {
    by_group: BTreeMap<ObjectKey, Confirm>,
    queue: VecDeque<ObjectKey>,
    paused: BTreeSet<(Time, ObjectKey)>,
    under_way: usize,
}

impl Confirms {
    pub(crate) fn contains(&self, group: &ObjectKey) -> bool {
        self.by_group.contains_key(group)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_group.is_empty()
    }

    /// Forgets everything but that answers are still to come.
    pub(crate) fn clear(&mut self) {
        *self = Self { under_way: self.under_way, ..Self::default() };
    }

    /// When the first pause ends.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.paused.first().map(|(until, _)| *until)
    }

    /// The next look that may go out.
    pub(crate) fn next(&mut self, now: Time) -> Option<Effect> {
        while let Some((until, group)) = self.paused.first().cloned()
            && until <= now
        {
            self.paused.pop_first();
            self.queue.push_back(group);
        }
        if self.under_way >= LOOKS_MAX {
            return None;
        }
        while let Some(group) = self.queue.pop_front() {
            if let Some(confirm) = self.by_group.get_mut(&group).filter(|confirm| !confirm.asking) {
                confirm.asking = true;
                self.under_way += 1;
                return Some(Effect::GetGroup(group));
            }
        }
        None
    }
}

impl Core {
    /// Sends a placement on its way: a gang that starts, or becomes complete, after another look at its group.
    pub(super) fn confirm_or_launch(&mut self, placement: Placement, now: Time) {
        if let UnitKey::Group(group) = &placement.unit
            && let Some((counted, minimum)) = self.gangs.progress(group)
            && counted < minimum
            && minimum > 1
            && let Some(known) = self.groups.get(group)
        {
            let (group, uid) = (group.clone(), known.uid.clone());
            self.confirms.queue.push_back(group.clone());
            let confirm = Confirm { placement, uid, minimum, tries: 0, asking: false };
            if let Some(earlier) = self.confirms.by_group.insert(group, confirm) {
                self.withdraw(&earlier.placement.seats, now);
            }
            return;
        }
        self.launch(&placement, now);
    }

    /// A look was answered.
    pub(super) fn group_answered(&mut self, group: &ObjectKey, found: GroupLookup, now: Time) {
        self.confirms.under_way = self.confirms.under_way.saturating_sub(1);
        let Some(mut confirm) = self.confirms.by_group.remove(group).filter(|confirm| confirm.asking) else {
            return;
        };
        match found {
            GroupLookup::Unknown(why) => {
                confirm.tries += 1;
                confirm.asking = false;
                if confirm.tries >= TRIES_MAX {
                    for seat in &confirm.placement.seats {
                        let (pod, uid) = (seat.pod.clone(), seat.uid.clone());
                        self.tell(Event::BindFailed { pod, uid }, now);
                    }
                    self.cannot_be_read(group, &why, now);
                    return;
                }
                let pause = PAUSE_FIRST_MS << (confirm.tries - 1);
                self.confirms.paused.insert((Time(now.0.saturating_add(pause)), group.clone()));
                self.confirms.by_group.insert(group.clone(), confirm);
            }
            GroupLookup::Gone => {
                self.group_gone(group, now);
                self.stale(group, &confirm.placement.seats, now);
            }
            GroupLookup::Found(reading) => {
                self.group_set(*reading, now);
                let is_same = self.groups.get(group).is_some_and(|known| known.uid == confirm.uid)
                    && self.gangs.progress(group).is_some_and(|(_, minimum)| minimum == confirm.minimum);
                if is_same && confirm.placement.seats.iter().all(|seat| self.is_still_wanted(seat)) {
                    self.launch(&confirm.placement, now);
                } else {
                    self.stale(group, &confirm.placement.seats, now);
                }
            }
        }
    }

    fn stale(&mut self, group: &ObjectKey, seats: &[Seat], now: Time) {
        self.counters.stale_groups += 1;
        self.report(Fact::StaleGroup { group: group.clone() });
        self.withdraw(seats, now);
    }

    fn withdraw(&mut self, seats: &[Seat], now: Time) {
        for seat in seats {
            let (pod, uid) = (seat.pod.clone(), seat.uid.clone());
            self.tell(Event::Withdrawn { pod, uid }, now);
        }
    }

    /// True if the pod is still there and waits, and the node is still there.
    fn is_still_wanted(&self, seat: &Seat) -> bool {
        let waits = self.pods.get(&seat.pod).is_some_and(|known| {
            known.uid == seat.uid && known.unbound.as_ref().is_some_and(|pod| !pod.terminating)
        });
        waits && self.nodes.contains_key(&seat.node)
    }
}
