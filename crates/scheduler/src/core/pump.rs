//! What goes out, and in which order: bindings first, then what groups are marked with and told, then deletions of
//! members, then conditions of pods and events.

use super::message::Effect;
use super::{Core, KnownGroup};
use tutti_model::Time;

/// Writes of one kind under way at once, at most; fewer if the server says that it has too much to do.
pub(super) const WRITES_MAX: usize = 16;
/// Conditions of pods, and events, under way at once.
const LOW_WRITES_MAX: usize = 8;
/// The same while bindings are under way: a trickle, so that steady binding does not silence them for ever.
const LOW_WRITES_WHILE_BINDING_MAX: usize = 2;
/// Events wait altogether while the server has as many bindings to work on as it may have, or half of them. Those that have
/// waited for so long no longer make room for bindings, and after twice that time they may use all there is: every event
/// is to be out within a minute.
const EVENT_LATE_MS: i64 = 20_000;

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

    fn pump_groups(&mut self, now: Time) {
        let window = self.write_window.limit(now);
        while let Some((group, (uid, marks))) = self.mark_writes.next(window, now) {
            let known = self.groups.get(&group).filter(|known| known.uid == uid);
            let Some(version) = known.map(|known| known.version.clone()) else {
                self.mark_writes.done(&group);
                continue;
            };
            self.effects.push(Effect::PatchGroupMarks { group, uid, version, marks });
        }
        while let Some((group, (uid, condition))) = self.group_writes.next(window, now) {
            // Gone or replaced since, or started by somebody else: there is nothing left to say.
            let is_final = condition.holds();
            let is_news = |known: &KnownGroup| known.uid == uid && (is_final || !known.scheduled.holds());
            let Some(known) = self.known_group_mut(&group).filter(|known| is_news(known)) else {
                self.group_writes.done(&group);
                continue;
            };
            known.scheduled.sent(now);
            let version = (!is_final).then(|| known.version.clone());
            let condition = Box::new(condition);
            self.effects.push(Effect::PatchGroupCondition { group, uid, version, condition });
        }
    }

    fn pump_pods(&mut self, now: Time) {
        let window = self.low_window(now);
        self.pod_pace.hurry(self.pod_writes.waiting_count());
        while self.pod_writes.under_way() < window
            && self.pod_writes.due().is_some_and(|due| due <= now)
            && self.pod_pace.take(now)
        {
            let Some((pod, (uid, condition))) = self.pod_writes.next(window, now) else {
                break;
            };
            // Bound or replaced since: there is nothing to complain about.
            let known = self.pods.get_mut(&pod).filter(|known| known.uid == uid && known.node.is_none());
            let Some(known) = known else {
                self.pod_writes.done(&pod);
                continue;
            };
            if let Some(belief) = &mut known.scheduled {
                belief.sent(now);
            }
            let version = known.version.clone();
            let condition = Box::new(condition);
            self.effects.push(Effect::PatchPodCondition { pod, uid, version, condition });
        }
    }

    fn pump_events(&mut self, now: Time) {
        let window = self.event_window(now);
        self.event_pace.hurry(self.events.waiting_count());
        while self.events.under_way() < window
            && self.events.due().is_some_and(|due| due <= now)
            && self.event_pace.take(now)
        {
            let Some((_, note)) = self.events.next(window, now) else {
                break;
            };
            self.complained(&note, now);
            self.effects.push(Effect::EmitEvent(Box::new(note)));
        }
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
        let (window, low, event) =
            (self.write_window.limit(now), self.low_window(now), self.event_window(now));
        let waiting = [
            self.starts.preparations.due(window),
            self.evictions.due().filter(|_| self.evictions.under_way() < window),
            self.mark_writes.due().filter(|_| self.mark_writes.under_way() < window),
            self.group_writes.due().filter(|_| self.group_writes.under_way() < window),
            self.pod_writes
                .due()
                .filter(|_| self.pod_writes.under_way() < low)
                .map(|due| due.max(self.pod_pace.ready_at(now))),
            self.events
                .due()
                .filter(|_| self.events.under_way() < event)
                .map(|due| due.max(self.event_pace.ready_at(now))),
        ];
        let waits = [
            self.starts.preparations.due(usize::MAX),
            self.evictions.due(),
            self.mark_writes.due(),
            self.group_writes.due(),
            self.pod_writes.due(),
            self.events.due(),
        ];
        let opens = self.write_window.opens_at(now).filter(|_| waits.iter().any(Option::is_some));
        waiting.into_iter().chain([opens]).flatten().min()
    }
}
