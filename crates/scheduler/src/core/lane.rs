//! A queue of writes of equal worth: latest wins per object, bounded, retried a few times, and paced.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::Hash;
use tutti_model::Time;

/// How often one write is tried: with the pauses below that is for two minutes, which a server needs to start again.
const TRIES_MAX: u32 = 10;
/// Pause before the second try; every further one is twice as long, up to a limit.
const RETRY_FIRST_MS: i64 = 500;
const RETRY_MAX_MS: i64 = 30_000;

#[derive(Debug, Clone)]
struct Item<V> {
    value: V,
    not_before: Time,
    place: u64,
    tries: u32,
    /// It is under way and was taken back meanwhile: if it fails, it is not tried again.
    is_cancelled: bool,
}

/// What became of a failed write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// It is tried again, or something newer is written in its place, or nobody wants it any more.
    Again,
    /// It was given up.
    GivenUp,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Lane<K, V> {
    waiting: FxHashMap<K, Item<V>>,
    /// By when they are due and whose turn it is.
    order: BTreeMap<(Time, u64), K>,
    under_way: FxHashMap<K, Item<V>>,
    places: u64,
    length_max: usize,
    tries_max: u32,
    dropped: u64,
    overflowing: bool,
}

impl<K: Hash + Eq + Clone, V: Clone> Lane<K, V> {
    pub(crate) fn new(length_max: usize) -> Self {
        Self::with(length_max, TRIES_MAX)
    }

    /// A queue of writes that nobody would think of again: they are tried until the server has said yes or no.
    pub(crate) fn lasting(length_max: usize) -> Self {
        Self::with(length_max, u32::MAX)
    }

    fn with(length_max: usize, tries_max: u32) -> Self {
        Self {
            waiting: FxHashMap::default(),
            order: BTreeMap::new(),
            under_way: FxHashMap::default(),
            places: 0,
            length_max,
            tries_max,
            dropped: 0,
            overflowing: false,
        }
    }

    /// Queues a write, or replaces the waiting one of its key, which keeps its turn so that a value that
    /// changes all the time is written nevertheless. Gives the number dropped so far if the queue has just
    /// become full.
    pub(crate) fn put(&mut self, key: K, value: V, not_before: Time) -> Option<u64> {
        if let Some(item) = self.waiting.get_mut(&key) {
            item.value = value;
            if not_before < item.not_before {
                self.order.remove(&(item.not_before, item.place));
                item.not_before = not_before;
                self.order.insert((not_before, item.place), key);
            }
            return None;
        }
        if self.waiting.len() >= self.length_max {
            self.dropped += 1;
            let first = !self.overflowing;
            self.overflowing = true;
            return first.then_some(self.dropped);
        }
        self.places += 1;
        let item = Item { value, not_before, place: self.places, tries: 0, is_cancelled: false };
        self.enqueue(key, item);
        None
    }

    /// The waiting write of a key.
    pub(crate) fn waiting(&self, key: &K) -> Option<&V> {
        self.waiting.get(key).map(|item| &item.value)
    }

    /// Takes a write back. One that is under way cannot be called back, but is not tried again. True if one was waiting.
    pub(crate) fn cancel(&mut self, key: &K) -> bool {
        if let Some(item) = self.under_way.get_mut(key) {
            item.is_cancelled = true;
        }
        let Some(item) = self.waiting.remove(key) else {
            return false;
        };
        self.order.remove(&(item.not_before, item.place));
        true
    }

    /// Takes a waiting write back unless it is still right.
    pub(crate) fn cancel_unless(&mut self, key: &K, right: impl Fn(&V) -> bool) {
        if self.waiting.get(key).is_some_and(|item| !right(&item.value)) {
            self.cancel(key);
        }
    }

    /// The next write that is due, if fewer than `window` are under way.
    pub(crate) fn next(&mut self, window: usize, now: Time) -> Option<(K, V)> {
        if self.under_way.len() >= window {
            return None;
        }
        // Looks past at most as many as are under way.
        let (&turn, _) = self
            .order
            .iter()
            .take_while(|((due, _), _)| *due <= now)
            .find(|(_, key)| !self.under_way.contains_key(key))?;
        let key = self.order.remove(&turn)?;
        let item = self.waiting.remove(&key)?;
        self.overflowing &= !self.waiting.is_empty();
        let value = item.value.clone();
        self.under_way.insert(key.clone(), item);
        Some((key, value))
    }

    /// A write ended well, or for good.
    pub(crate) fn done(&mut self, key: &K) -> Option<V> {
        self.under_way.remove(key).map(|item| item.value)
    }

    /// A write failed and may be tried again.
    pub(crate) fn failed(&mut self, key: &K, now: Time) -> AfterFailure {
        let Some(mut item) = self.under_way.remove(key) else {
            return AfterFailure::Again;
        };
        if item.is_cancelled || self.waiting.contains_key(key) {
            return AfterFailure::Again;
        }
        item.tries = item.tries.saturating_add(1);
        if item.tries >= self.tries_max {
            return AfterFailure::GivenUp;
        }
        let pause = (RETRY_FIRST_MS << (item.tries - 1).min(16)).min(RETRY_MAX_MS);
        item.not_before = Time(now.0.saturating_add(pause));
        self.enqueue(key.clone(), item);
        AfterFailure::Again
    }

    /// A write was not carried out through no fault of its own; it has its turn again then.
    pub(crate) fn postpone(&mut self, key: &K, until: Time) {
        if let Some(mut item) = self.under_way.remove(key)
            && !item.is_cancelled
            && !self.waiting.contains_key(key)
        {
            item.not_before = until;
            self.enqueue(key.clone(), item);
        }
    }

    /// True if a write of this key waits or is under way.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.waiting.contains_key(key) || self.under_way.contains_key(key)
    }

    /// True if something like this waits or is under way.
    pub(crate) fn has(&self, like: impl Fn(&V) -> bool) -> bool {
        self.waiting.values().chain(self.under_way.values()).any(|item| like(&item.value))
    }

    /// How many wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// When the next write is due; `None` if none waits that could go out.
    pub(crate) fn due(&self) -> Option<Time> {
        self.order.iter().find(|(_, key)| !self.under_way.contains_key(key)).map(|((due, _), _)| *due)
    }

    /// True if nothing waits or is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// How many are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn enqueue(&mut self, key: K, item: Item<V>) {
        self.order.insert((item.not_before, item.place), key.clone());
        self.waiting.insert(key, item);
    }
}

/// What waits is to pass within this time, however much it is.
const BACKLOG_SECONDS: i64 = 30;

/// Lets so many pass per second, and as many at once after a quiet time. More pass if so much waits that it would
/// take too long otherwise.
#[derive(Debug)]
pub(crate) struct Pace {
    usual: i64,
    per_second: i64,
    thousandths: i64,
    filled: Time,
}

impl Pace {
    pub(crate) fn new(per_second: u32) -> Self {
        let usual = i64::from(per_second);
        Self { usual, per_second: usual, thousandths: usual * 1000, filled: Time(i64::MIN) }
    }

    /// So many wait. What was reached once is kept up until the rest passes within a second as usual, or the end would
    /// take for ever.
    pub(crate) fn hurry(&mut self, backlog: usize) {
        let backlog = i64::try_from(backlog).unwrap_or(i64::MAX);
        let kept = if backlog <= self.usual { self.usual } else { self.per_second };
        self.per_second = kept.max(backlog / BACKLOG_SECONDS);
    }

    /// Takes one token if there is one.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        self.fill(now);
        let passes = self.thousandths >= 1000;
        if passes {
            self.thousandths -= 1000;
        }
        passes
    }

    /// When there will be a token.
    pub(crate) fn ready_at(&self, now: Time) -> Time {
        let missing = (1000 - self.thousandths).max(0);
        Time(now.0.saturating_add((missing + self.per_second - 1) / self.per_second))
    }

    fn fill(&mut self, now: Time) {
        let elapsed = now.0.saturating_sub(self.filled.0).clamp(0, 1000);
        let filled = self.thousandths.saturating_add(elapsed.saturating_mul(self.per_second));
        self.thousandths = filled.min(self.per_second.saturating_mul(1000));
        self.filled = self.filled.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    fn drain(lane: &mut Lane<&'static str, i32>, window: usize, now: Time) -> Vec<(&'static str, i32)> {
        std::iter::from_fn(|| lane.next(window, now)).collect()
    }

    #[test]
    fn the_latest_value_is_written_in_the_turn_of_the_first() {
        let mut lane = Lane::new(10);
        lane.put("a", 1, NOW);
        lane.put("b", 2, NOW);
        lane.put("a", 3, NOW.plus_seconds(9));
        assert_eq!(drain(&mut lane, 9, NOW), [("a", 3), ("b", 2)]);
    }

    #[test]
    fn one_write_per_key_is_under_way() {
        let mut lane = Lane::new(10);
        lane.put("a", 1, NOW);
        assert_eq!(drain(&mut lane, 9, NOW), [("a", 1)]);
        lane.put("a", 2, NOW);
        lane.put("b", 3, NOW);
        assert_eq!(drain(&mut lane, 9, NOW), [("b", 3)]);
        assert_eq!(lane.due(), None);
        lane.done(&"a");
        assert_eq!(drain(&mut lane, 9, NOW), [("a", 2)]);
    }

    #[test]
    fn a_failed_write_is_tried_again_a_few_times_unless_a_newer_one_waits() {
        let mut lane = Lane::new(10);
        lane.put("a", 1, NOW);
        let mut now = NOW;
        for _ in 1..TRIES_MAX {
            assert_eq!(drain(&mut lane, 9, now), [("a", 1)]);
            assert_eq!(lane.failed(&"a", now), AfterFailure::Again);
            now = lane.due().unwrap();
        }
        assert_eq!(drain(&mut lane, 9, now), [("a", 1)]);
        assert_eq!(lane.failed(&"a", now), AfterFailure::GivenUp);
        assert!(lane.is_empty());

        lane.put("a", 1, now);
        drain(&mut lane, 9, now);
        lane.put("a", 2, now);
        lane.failed(&"a", now);
        assert_eq!(drain(&mut lane, 9, now), [("a", 2)]);
    }

    #[test]
    fn what_must_last_is_never_given_up_and_tried_twice_a_minute_in_the_end() {
        let mut lane = Lane::lasting(10);
        lane.put("a", 1, NOW);
        let mut now = NOW;
        for _ in 0..3 * TRIES_MAX {
            assert_eq!(drain(&mut lane, 9, now), [("a", 1)]);
            assert_eq!(lane.failed(&"a", now), AfterFailure::Again);
            now = lane.due().unwrap();
        }
        drain(&mut lane, 9, now);
        lane.failed(&"a", now);
        assert_eq!(lane.due(), Some(Time(now.0 + RETRY_MAX_MS)));
    }

    #[test]
    fn a_write_that_was_taken_back_while_it_was_under_way_is_not_tried_again() {
        for fails in [true, false] {
            let mut lane = Lane::new(10);
            lane.put("a", 1, NOW);
            drain(&mut lane, 9, NOW);
            assert!(!lane.cancel(&"a"), "none was waiting");
            if fails {
                assert_eq!(lane.failed(&"a", NOW), AfterFailure::Again);
            } else {
                lane.postpone(&"a", NOW);
            }
            assert!(lane.is_empty());
            lane.put("a", 2, NOW);
            assert_eq!(drain(&mut lane, 9, NOW), [("a", 2)], "another one has nothing to do with it");
        }
    }

    #[test]
    fn a_full_queue_drops_and_says_so_once() {
        let mut lane = Lane::new(1);
        assert_eq!(lane.put("a", 1, NOW), None);
        assert_eq!(lane.put("b", 1, NOW), Some(1));
        assert_eq!(lane.put("c", 1, NOW), None);
        assert_eq!(lane.put("a", 2, NOW), None, "a replacement needs no room");
        drain(&mut lane, 9, NOW);
        lane.put("d", 1, NOW);
        assert_eq!(lane.put("e", 1, NOW), Some(3), "a new episode is told again");
    }

    #[test]
    fn what_the_server_had_no_time_for_is_not_a_failed_try() {
        let mut lane = Lane::new(10);
        lane.put("a", 1, NOW);
        for _ in 0..3 * TRIES_MAX {
            assert_eq!(drain(&mut lane, 9, NOW), [("a", 1)]);
            lane.postpone(&"a", NOW);
        }
        assert!(lane.contains(&"a"));
    }

    #[test]
    fn a_backlog_passes_within_half_a_minute_or_so() {
        let mut pace = Pace::new(10);
        let mut waiting = 100_000_usize;
        let mut now = NOW;
        pace.hurry(waiting);
        for _ in 0..40 {
            pace.hurry(waiting);
            now = now.plus_seconds(1);
            waiting -= (0..waiting).take_while(|_| pace.take(now)).count();
        }
        assert_eq!(waiting, 0);
    }

    #[test]
    fn a_pace_that_was_hurried_is_the_usual_one_again_although_something_always_waits() {
        let mut pace = Pace::new(10);
        pace.hurry(100_000);
        assert!((0..2_000).all(|_| pace.take(NOW.plus_seconds(1))));
        pace.hurry(3);
        let later = NOW.plus_seconds(60);
        assert_eq!((0..2_000).filter(|_| pace.take(later)).count(), 10);
    }

    #[test]
    fn pace_lets_a_burst_and_then_a_rate_pass() {
        let mut pace = Pace::new(10);
        assert_eq!((0..20).filter(|_| pace.take(NOW)).count(), 10);
        assert_eq!(pace.ready_at(NOW), Time(NOW.0 + 100));
        assert!(!pace.take(Time(NOW.0 + 99)));
        assert!(pace.take(Time(NOW.0 + 101)));
        assert!(!pace.take(Time(NOW.0 - 5000)), "a clock that goes back gives nothing");
    }
}
