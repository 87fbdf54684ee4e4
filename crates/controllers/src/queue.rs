//! Who has to be looked at, and when. One entry an object, so it is bounded by the number of objects.

use crate::action::Written;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Shortest time between two looks at the same object: a burst of events is looked at once, and nothing can
/// spin faster than this.
const PACE: SignedDuration = SignedDuration::from_millis(20);
/// After a write, its effect should be seen within this time; if not, look anyway.
const SETTLE: SignedDuration = SignedDuration::from_secs(5);
const BACKOFF_FIRST: SignedDuration = SignedDuration::from_millis(50);
const BACKOFF_LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// What came of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Traces of the writes that were made.
    pub written: Vec<Written>,
    /// Some request failed.
    pub failed: bool,
}

/// Objects that wait for their turn.
#[derive(Debug)]
pub struct Queue<T> {
    entries: BTreeMap<T, Entry>,
    due: BTreeSet<(Timestamp, T)>,
    /// Those whose last plan failed.
    retrying: usize,
}

#[derive(Debug, Default)]
struct Entry {
    /// When to look, as in `due`.
    at: Option<Timestamp>,
    /// Its plan is being carried out.
    is_busy: bool,
    /// Asked for while it was busy.
    asked: Option<Timestamp>,
    not_before: Option<Timestamp>,
    failures: u32,
    /// Writes that have not been seen yet, and when to stop waiting for them.
    unseen: Vec<Written>,
    unseen_until: Option<Timestamp>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), due: BTreeSet::new(), retrying: 0 }
    }
}

impl<T: Ord + Clone> Queue<T> {
    /// Somebody should look at this object at this time, or earlier if that was asked for before.
    pub fn ask(&mut self, task: T, at: Timestamp) {
        let entry = self.entries.entry(task.clone()).or_default();
        if entry.is_busy {
            entry.asked = Some(entry.asked.map_or(at, |other| other.min(at)));
            return;
        }
        let at = entry.not_before.map_or(at, |earliest| at.max(earliest));
        if entry.at.is_some_and(|other| other <= at) {
            return;
        }
        if let Some(old) = entry.at.replace(at) {
            self.due.remove(&(old, task.clone()));
        }
        self.due.insert((at, task));
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(time, _)| *time)
    }

    /// The next one that is due, to be handed back to [`Queue::done`]. One whose own writes have not been seen is
    /// put off.
    pub fn pop(&mut self, now: Timestamp, has_seen: impl Fn(&Written) -> bool) -> Option<T> {
        while self.next_due().is_some_and(|time| time <= now)
            && let Some((_, task)) = self.due.pop_first()
        {
            let Some(entry) = self.entries.get_mut(&task) else { continue };
            entry.at = None;
            entry.unseen.retain(|written| !has_seen(written));
            match entry.unseen_until {
                Some(until) if !entry.unseen.is_empty() && now < until => {
                    entry.at = Some(until);
                    self.due.insert((until, task));
                }
                _ => {
                    entry.unseen.clear();
                    entry.is_busy = true;
                    return Some(task);
                }
            }
        }
        None
    }

    /// The plan of an object was carried out.
    pub fn done(&mut self, task: &T, outcome: Outcome, look_again: Option<Timestamp>, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(task) else { return };
        entry.is_busy = false;
        match (entry.failures > 0, outcome.failed) {
            (false, true) => self.retrying += 1,
            (true, false) => self.retrying -= 1,
            _ => {}
        }
        entry.failures = if outcome.failed { entry.failures.saturating_add(1) } else { 0 };
        entry.not_before = Some(later(now, PACE));
        entry.unseen = outcome.written;
        entry.unseen_until = Some(later(now, SETTLE));
        let mut next: Vec<Timestamp> = entry.asked.take().into_iter().chain(look_again).collect();
        if outcome.failed {
            let retry = later(now, backoff(entry.failures));
            entry.not_before = Some(retry);
            next.push(retry);
        }
        if !entry.unseen.is_empty() {
            // A write that changed nothing shows no event; somebody has to look nevertheless.
            next.push(later(now, SETTLE));
        }
        match next.into_iter().min() {
            Some(at) => self.ask(task.clone(), at),
            None => {
                self.entries.remove(task);
            }
        }
    }

    /// How many objects wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many of them failed when they were last worked on, and are tried again later.
    pub fn retrying(&self) -> usize {
        self.retrying
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Doubles with every failure, up to a limit.
fn backoff(failures: u32) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(16);
    BACKOFF_FIRST.checked_mul(1 << doublings).map_or(BACKOFF_LONGEST, |delay| delay.min(BACKOFF_LONGEST))
}

fn later(now: Timestamp, delay: SignedDuration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(millis: i64) -> Timestamp {
        NOW + SignedDuration::from_millis(millis)
    }

    fn pop(queue: &mut Queue<&'static str>, millis: i64) -> Option<&'static str> {
        queue.pop(at(millis), |_| true)
    }

    #[test]
    fn the_earliest_is_first_and_nobody_waits_twice() {
        let mut queue = Queue::default();
        queue.ask("b", at(5));
        queue.ask("a", at(9));
        queue.ask("a", at(3));
        queue.ask("a", at(7));
        assert_eq!(queue.next_due(), Some(at(3)));
        assert_eq!(
            [pop(&mut queue, 2), pop(&mut queue, 10), pop(&mut queue, 10)],
            [None, Some("a"), Some("b")]
        );
        assert_eq!(pop(&mut queue, 1000), None);
    }

    #[test]
    fn what_is_asked_while_busy_comes_after_and_not_too_soon() {
        let mut queue = Queue::default();
        queue.ask("a", NOW);
        assert_eq!(pop(&mut queue, 0), Some("a"));
        queue.ask("a", at(1));
        assert_eq!(pop(&mut queue, 1), None, "one at a time");
        queue.done(&"a", Outcome::default(), None, at(1));
        assert_eq!(pop(&mut queue, 2), None, "bursts are looked at once");
        assert_eq!(pop(&mut queue, 21), Some("a"));
        queue.done(&"a", Outcome::default(), None, at(21));
        assert!(queue.is_empty(), "whoever wants nothing takes no room");
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_limit_whoever_asks() {
        let mut queue = Queue::default();
        queue.ask("a", NOW);
        let (mut now, mut waits) = (NOW, Vec::new());
        for _ in 0..30 {
            assert_eq!(queue.pop(now, |_| true), Some("a"));
            queue.done(&"a", Outcome { failed: true, ..Outcome::default() }, None, now);
            queue.ask("a", now);
            let due = queue.next_due().unwrap();
            waits.push(due.duration_since(now));
            now = due;
        }
        assert_eq!(waits[..3], [BACKOFF_FIRST, BACKOFF_FIRST * 2, BACKOFF_FIRST * 4]);
        assert!(waits.is_sorted() && waits.last() == Some(&BACKOFF_LONGEST));
        assert_eq!(queue.retrying(), 1);
        assert_eq!(queue.pop(now, |_| true), Some("a"));
        queue.done(&"a", Outcome::default(), None, now);
        assert_eq!((queue.retrying(), queue.len()), (0, 0));
    }

    #[test]
    fn nobody_is_looked_at_before_their_own_writes_were_seen_but_not_for_ever() {
        let written = Written { plural: "pods".to_owned(), version: 7 };
        let mut queue = Queue::default();
        queue.ask("a", NOW);
        assert_eq!(pop(&mut queue, 0), Some("a"));
        queue.done(&"a", Outcome { written: vec![written], failed: false }, None, NOW);
        queue.ask("a", at(100));
        assert_eq!(queue.pop(at(100), |_| false), None);
        queue.ask("a", at(200));
        assert_eq!(queue.pop(at(200), |written| written.version <= 7), Some("a"), "the watch caught up");
        queue.done(
            &"a",
            Outcome { written: vec![Written { plural: "pods".to_owned(), version: 9 }], failed: false },
            None,
            at(200),
        );
        queue.ask("a", at(300));
        assert_eq!(queue.pop(at(300), |_| false), None);
        assert_eq!(queue.pop(at(200) + SETTLE, |_| false), Some("a"), "a lost watch does not stop the work");
    }

    #[test]
    fn a_later_look_is_kept() {
        let mut queue = Queue::default();
        queue.ask("a", NOW);
        assert_eq!(pop(&mut queue, 0), Some("a"));
        queue.done(&"a", Outcome::default(), Some(at(60_000)), NOW);
        assert_eq!(queue.next_due(), Some(at(60_000)));
    }
}
