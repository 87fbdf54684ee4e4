//! What goes out, and in which order: bindings first, then what groups are marked with and told, then deletions of
//! members, then conditions of pods and events.
//!
//! That something waits for another reason than before is said at once: autoscalers act on it, and on all members of a
//! gang together. The same reason in other words, and events that say that something waits, have a fixed rate, however
//! many wait to be written, and such events wait for the conditions.
//!
//! * `queue`: writes of equal worth, `pace`: how many of them pass per second, `window`: how many at once;
//! * `telling`: conditions and events that are said or are to be said;
//! * `answers`: what requests answer.

pub(super) mod answers;
pub(super) mod pace;
pub(super) mod queue;
pub(super) mod telling;
pub(super) mod window;

use super::Core;
use super::groups::GroupObject;
use super::message::Effect;
use super::report::UNSCHEDULABLE;
use pace::Pace;
use queue::WriteQueue;
use std::hash::Hash;
use tutti_model::Time;

/// Writes of one kind under way at once, at most; fewer if the server says that it has too much to do.
pub(super) const WRITES_MAX: usize = 16;
/// Conditions of pods, and events, under way at once.
const LOW_WRITES_MAX: usize = 8;
/// The same while bindings are under way: a trickle, so that steady binding does not silence them forever.
const LOW_WRITES_WHILE_BINDING_MAX: usize = 2;
/// Conditions of pods that wait for another reason than before, while bindings are under way. A gang of a thousand is to
/// be marked within seconds.
const NEW_REASONS_WHILE_BINDING_MAX: usize = 4;
/// Events wait altogether while the server has as many bindings to work on as it may have, or half of them. Those that have
/// waited for so long no longer make room for bindings, and after twice that time they may use all there is: every event
/// is to be out within a minute.
const EVENT_LATE_MS: i64 = 20_000;
/// Events that say that something waits repeat what conditions say. Of those, one for so many of other events is written per
/// second in the long run: where a hundred thousand pods wait, that is all that is still written.
const COMPLAINTS_ONE_OF: u32 = 10;

/// The pace of events that say that something waits. As many as of other events pass at once, so that a few of them are
/// out immediately.
pub(super) fn complaint_pace(events_per_second: u32) -> Pace {
    Pace::with_burst((events_per_second / COMPLAINTS_ONE_OF).max(1), events_per_second)
}

impl Core {
    /// Lets requests out, the most valuable first. Gives when to look again by time alone.
    pub(super) fn pump(&mut self, now: Time) -> Option<Time> {
        let decided = self.pump_binds(now);
        while let Some(effect) = self.starts.looks.next(now) {
            self.effects.push(effect);
        }
        self.pump_volumes(now);
        self.pump_groups(now);
        let window = self.write_window.limit(now);
        while let Some((pod, eviction)) = self.evictions.next(window, now) {
            if self.is_to_be_evicted(&pod) {
                let request = self.eviction_request(pod, eviction, now);
                self.effects.push(request);
            } else {
                self.evictions.done(&pod);
            }
        }
        self.pump_pods(now);
        self.pump_events(now);
        let opens = self.starts.bindings.opens_at(now).filter(|_| self.starts.has_ready());
        let again = (!decided).then_some(now);
        let due = [
            again,
            opens,
            self.starts.turn_comes_at(now),
            self.starts.bindings.wake_at(now),
            self.starts.looks.wake_at(),
            self.writes_due(now),
        ];
        due.into_iter().flatten().min()
    }

    /// What a group is marked with and what it is told are two requests, even when they are due together: marks are annotations,
    /// and the API server drops changes of metadata from what is written to the status subresource, and changes of the
    /// status from what is written to the object itself.
    fn pump_groups(&mut self, now: Time) {
        let window = self.write_window.limit(now);
        while let Some((group, (uid, marks))) = self.mark_writes.next(window, now) {
            let known = self.groups.group(&group).filter(|known| known.uid == uid);
            let Some(version) = known.map(|known| known.version.clone()) else {
                self.mark_writes.done(&group);
                continue;
            };
            self.effects.push(Effect::PatchGroupMarks { group, uid, version, marks });
        }
        while let Some((group, (uid, condition))) =
            next_paced(&mut self.group_writes, &mut self.reason_pace, window, window, now)
        {
            // Gone or replaced since, or started by another scheduler: there is nothing left to say.
            let is_final = condition.holds();
            let is_news = |known: &GroupObject| known.uid == uid && (is_final || !known.scheduled.holds());
            let Some(known) = self.groups.object_mut(&group).filter(|known| is_news(known)) else {
                self.group_writes.done(&group);
                continue;
            };
            if condition.reason.as_ref() == UNSCHEDULABLE && !self.engine.is_waiting(&group) {
                // It waits for something else by now, or for nothing: an autoscaler would make room that nobody needs.
                known.scheduled.give_up();
                self.group_writes.done(&group);
                continue;
            }
            known.scheduled.sent(now);
            let version = (!is_final).then(|| known.version.clone());
            let condition = Box::new(condition);
            self.effects.push(Effect::PatchGroupCondition { group, uid, version, condition });
        }
    }

    fn pump_pods(&mut self, now: Time) {
        let (window, slow_window) = (self.mark_window(now), self.low_window(now));
        while let Some((pod, (uid, condition))) =
            next_paced(&mut self.pod_writes, &mut self.reason_pace, window, slow_window, now)
        {
            // Bound or replaced since: there is nothing to complain about.
            let known = self.pods.get_mut(&pod).filter(|known| known.uid == uid && known.node.is_none());
            let Some(known) = known else {
                self.pod_writes.done(&pod);
                continue;
            };
            if let Some(condition) = &mut known.scheduled {
                condition.sent(now);
            }
            let version = known.version.clone();
            let condition = Box::new(condition);
            self.effects.push(Effect::PatchPodCondition { pod, uid, version, condition });
        }
    }

    fn pump_events(&mut self, now: Time) {
        let window = self.event_window(now);
        self.event_pace.hurry(self.events.urgent_count());
        while self.events.under_way() < window
            && self.events.due().is_some_and(|due| due <= now)
            && self.event_pace.take(now)
        {
            let Some((_, note)) = self.events.next(window, now) else {
                break;
            };
            self.effects.push(Effect::EmitEvent(Box::new(note)));
        }
        let window = if self.has_new_reasons(now) { 0 } else { window.min(self.low_window(now)) };
        while self.events.under_way() < window
            && self.events.slow_due().is_some_and(|due| due <= now)
            && self.complaint_pace.take(now)
        {
            let Some((_, note)) = self.events.next_slow(window, now) else {
                break;
            };
            self.complained(&note, now);
            self.effects.push(Effect::EmitEvent(Box::new(note)));
        }
    }

    /// True if conditions of pods are due that say something new. Events that say the same wait until all are sent.
    fn has_new_reasons(&self, now: Time) -> bool {
        self.pod_writes.due().is_some_and(|due| due <= now)
    }

    fn mark_window(&self, now: Time) -> usize {
        let window = if self.starts.bindings.is_busy() { NEW_REASONS_WHILE_BINDING_MAX } else { WRITES_MAX };
        window.min(self.write_window.limit(now))
    }

    fn low_window(&self, now: Time) -> usize {
        let window =
            if self.starts.bindings.is_busy() { LOW_WRITES_WHILE_BINDING_MAX } else { LOW_WRITES_MAX };
        window.min(self.write_window.limit(now))
    }

    fn event_window(&self, now: Time) -> usize {
        let late_ms = self.events.due().map_or(0, |due| now.0.saturating_sub(due.0));
        let window = if late_ms >= 2 * EVENT_LATE_MS {
            WRITES_MAX
        } else if late_ms >= EVENT_LATE_MS || !self.starts.bindings.is_busy() {
            LOW_WRITES_MAX
        } else if self.starts.bindings.is_crowded(now) {
            0
        } else {
            LOW_WRITES_WHILE_BINDING_MAX
        };
        window.min(self.write_window.limit(now))
    }

    /// When the next write becomes due by time alone. Writes that wait for an answer need no wake-up.
    fn writes_due(&self, now: Time) -> Option<Time> {
        let (window, low, event, mark) = (
            self.write_window.limit(now),
            self.low_window(now),
            self.event_window(now),
            self.mark_window(now),
        );
        let waiting = [
            self.starts.preparations.due(window),
            self.evictions.due().filter(|_| self.evictions.under_way() < window),
            self.mark_writes.due().filter(|_| self.mark_writes.under_way() < window),
            paced_due(&self.group_writes, &self.reason_pace, window, window, now),
            paced_due(&self.pod_writes, &self.reason_pace, mark, low, now),
            self.events
                .due()
                .filter(|_| self.events.under_way() < event)
                .map(|due| due.max(self.event_pace.ready_at(now))),
            self.events
                .slow_due()
                .filter(|_| self.events.under_way() < event.min(low) && !self.has_new_reasons(now))
                .map(|due| due.max(self.complaint_pace.ready_at(now))),
        ];
        let waits = [
            self.starts.preparations.due(usize::MAX),
            self.evictions.due(),
            self.mark_writes.due(),
            self.group_writes.due().or(self.group_writes.slow_due()),
            self.pod_writes.due().or(self.pod_writes.slow_due()),
            self.events.due().or(self.events.slow_due()),
        ];
        let opens = self.write_window.opens_at(now).filter(|_| waits.iter().any(Option::is_some));
        waiting.into_iter().chain([opens]).flatten().min()
    }
}

/// The next write of a queue of which those that have time are paced.
fn next_paced<K: Hash + Eq + Clone, V: Clone>(
    queue: &mut WriteQueue<K, V>,
    pace: &mut Pace,
    window: usize,
    slow_window: usize,
    now: Time,
) -> Option<(K, V)> {
    if let Some(next) = queue.next(window, now) {
        return Some(next);
    }
    let is_due = queue.slow_due().is_some_and(|due| due <= now);
    if is_due && queue.under_way() < slow_window && pace.take(now) {
        return queue.next_slow(slow_window, now);
    }
    None
}

/// When that is.
fn paced_due<K: Hash + Eq + Clone, V: Clone>(
    queue: &WriteQueue<K, V>,
    pace: &Pace,
    window: usize,
    slow_window: usize,
    now: Time,
) -> Option<Time> {
    let urgent = queue.due().filter(|_| queue.under_way() < window);
    let slow = queue.slow_due().filter(|_| queue.under_way() < slow_window);
    [urgent, slow.map(|due| due.max(pace.ready_at(now)))].into_iter().flatten().min()
}
