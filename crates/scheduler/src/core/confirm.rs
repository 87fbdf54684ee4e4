//! A last look at a group before its gang starts. Watches may be behind: the minimum may have been raised, or the group
//! replaced by another of its name, and a gang that is bound by an old picture would start in part. So the group is
//! read once more, and only if it is as it was decided on, bindings go out.

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
    /// Groups that are being read. One look at a time, so that every answer is that of the latest question.
    under_way: BTreeSet<ObjectKey>,
    /// Groups that are read although nothing of theirs is about to start.
    unsure: BTreeSet<ObjectKey>,
}

impl Confirms {
    /// A group has turned out not to be what it was thought to be; it is read anew.
    pub(crate) fn look(&mut self, group: &ObjectKey) {
        if self.unsure.insert(group.clone()) {
            self.queue.push_back(group.clone());
        }
    }

    pub(crate) fn contains(&self, group: &ObjectKey) -> bool {
        self.by_group.contains_key(group)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_group.is_empty()
    }

    /// Forgets everything but that answers are still to come.
    pub(crate) fn clear(&mut self) {
        *self = Self { under_way: std::mem::take(&mut self.under_way), ..Self::default() };
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
        if self.under_way.len() >= LOOKS_MAX {
            return None;
        }
        while let Some(group) = self.queue.pop_front() {
            if self.under_way.contains(&group) {
                // Its turn comes when that answer is there.
                continue;
            }
            let is_unsure = self.unsure.remove(&group);
            let confirm = self.by_group.get_mut(&group);
            let asks = is_unsure || confirm.is_some();
            if let Some(confirm) = confirm {
                confirm.asking = true;
            }
            if asks {
                self.under_way.insert(group.clone());
                return Some(Effect::GetGroup(group));
            }
        }
        None
    }

    /// The placement that an answer is about; `None` if the question is older than it, or nobody asks any more.
    fn answered(&mut self, group: &ObjectKey) -> Option<Confirm> {
        self.under_way.remove(group);
        let is_asked = self.by_group.get(group).is_some_and(|confirm| confirm.asking);
        if !is_asked || self.unsure.contains(group) {
            self.queue.push_back(group.clone());
        }
        if is_asked { self.by_group.remove(group) } else { None }
    }
}

impl Core {
    /// Sends a placement on its way: a gang that starts, or becomes complete, after another look at its group.
    pub(super) fn confirm_or_launch(&mut self, placement: Placement) {
        if let UnitKey::Group(group) = &placement.unit
            && let Some((counted, minimum)) = self.gangs.progress(group)
            && counted < minimum
            && minimum > 1
            && let Some(known) = self.groups.get(group)
        {
            let (group, uid) = (group.clone(), known.uid.clone());
            if let Some(confirm) = self.confirms.by_group.get_mut(&group) {
                // Members that came a moment later go with the others.
                confirm.placement.seats.extend(placement.seats);
                confirm.placement.left_out = placement.left_out;
                return;
            }
            self.confirms.queue.push_back(group.clone());
            let confirm = Confirm { placement, uid, minimum, tries: 0, asking: false };
            self.confirms.by_group.insert(group, confirm);
            return;
        }
        self.launches.push(placement);
    }

    /// A look was answered.
    pub(super) fn group_answered(&mut self, group: &ObjectKey, found: GroupLookup, now: Time) {
        let Some(mut confirm) = self.confirms.answered(group) else {
            // What is known now is better than what was thought before, whoever asked.
            match found {
                GroupLookup::Found(reading) => self.group_set(*reading, now),
                GroupLookup::Gone | GroupLookup::Unknown(_) => {}
            }
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
                if is_same {
                    self.launches.push(confirm.placement);
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
}
