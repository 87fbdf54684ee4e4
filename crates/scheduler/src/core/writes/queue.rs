//! A queue of writes of equal worth: latest wins per object, bounded, and retried a few times. Some of them may be slow:
//! the sender decides how many of those pass.

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
    /// It has time.
    is_slow: bool,
    /// It is under way and was taken back meanwhile: if it fails, it is not tried again.
    is_cancelled: bool,
}

/// What became of a failed write.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum AfterFailure {
    /// It is tried again, or something newer is written in its place, or it is not wanted any more.
    Again,
    /// It was given up.
    GivenUp,
}

/// The queue.
#[derive(Debug)]
pub(in super::super) struct WriteQueue<K, V> {
    waiting: FxHashMap<K, Item<V>>,
    /// By when they are due and whose turn it is: those that have no time, and those that have.
    order: BTreeMap<(Time, u64), K>,
    slow_order: BTreeMap<(Time, u64), K>,
    under_way: FxHashMap<K, Item<V>>,
    places: u64,
    length_max: usize,
    tries_max: u32,
    dropped: u64,
    overflowing: bool,
}

impl<K: Hash + Eq + Clone, V: Clone> WriteQueue<K, V> {
    pub(in super::super) fn new(length_max: usize) -> Self {
        Self::with(length_max, TRIES_MAX)
    }

    /// A queue of writes that nobody would think of again: they are tried until the server has said yes or no.
    pub(in super::super) fn lasting(length_max: usize) -> Self {
        Self::with(length_max, u32::MAX)
    }

    fn with(length_max: usize, tries_max: u32) -> Self {
        Self {
            waiting: FxHashMap::default(),
            order: BTreeMap::new(),
            slow_order: BTreeMap::new(),
            under_way: FxHashMap::default(),
            places: 0,
            length_max,
            tries_max,
            dropped: 0,
            overflowing: false,
        }
    }

    /// Queues a write, or replaces the waiting one of its key, which keeps its turn so that a value that
    /// changes all the time is written all the same. Gives the number dropped so far if the queue has just
    /// become full.
    pub(in super::super) fn put(&mut self, key: K, value: V, not_before: Time) -> Option<u64> {
        self.insert(key, value, not_before, false)
    }

    /// The same for a write that has time, unless one that has none waits already.
    pub(in super::super) fn put_slow(&mut self, key: K, value: V, not_before: Time) -> Option<u64> {
        self.insert(key, value, not_before, true)
    }

    fn insert(&mut self, key: K, value: V, not_before: Time, is_slow: bool) -> Option<u64> {
        if let Some(mut item) = self.unqueue(&key) {
            item.value = value;
            item.is_slow &= is_slow;
            item.not_before = item.not_before.min(not_before);
            self.enqueue(key, item);
            return None;
        }
        if self.waiting.len() >= self.length_max {
            self.dropped += 1;
            let first = !self.overflowing;
            self.overflowing = true;
            return first.then_some(self.dropped);
        }
        self.places += 1;
        let item = Item { value, not_before, place: self.places, tries: 0, is_slow, is_cancelled: false };
        self.enqueue(key, item);
        None
    }

    /// The waiting write of a key.
    pub(in super::super) fn waiting(&self, key: &K) -> Option<&V> {
        self.waiting.get(key).map(|item| &item.value)
    }

    /// Takes a write back. One that is under way cannot be called back, but is not tried again. True if one was waiting.
    pub(in super::super) fn cancel(&mut self, key: &K) -> bool {
        if let Some(item) = self.under_way.get_mut(key) {
            item.is_cancelled = true;
        }
        self.unqueue(key).is_some()
    }

    /// Takes a waiting write back unless it is still right.
    pub(in super::super) fn cancel_unless(&mut self, key: &K, right: impl Fn(&V) -> bool) {
        if self.waiting.get(key).is_some_and(|item| !right(&item.value)) {
            self.cancel(key);
        }
    }

    /// The next write that is due and has no time, if fewer than `window` are under way.
    pub(in super::super) fn next(&mut self, window: usize, now: Time) -> Option<(K, V)> {
        if self.under_way.len() >= window {
            return None;
        }
        let key = first_due(&self.order, &self.under_way, now)?;
        self.send(key)
    }

    /// The next write that is due and has time.
    pub(in super::super) fn next_slow(&mut self, window: usize, now: Time) -> Option<(K, V)> {
        if self.under_way.len() >= window {
            return None;
        }
        let key = first_due(&self.slow_order, &self.under_way, now)?;
        self.send(key)
    }

    fn send(&mut self, key: K) -> Option<(K, V)> {
        let item = self.unqueue(&key)?;
        self.overflowing &= !self.waiting.is_empty();
        let value = item.value.clone();
        self.under_way.insert(key.clone(), item);
        Some((key, value))
    }

    /// A write ended well, or for good.
    pub(in super::super) fn done(&mut self, key: &K) -> Option<V> {
        self.under_way.remove(key).map(|item| item.value)
    }

    /// A write failed and may be tried again.
    pub(in super::super) fn failed(&mut self, key: &K, now: Time) -> AfterFailure {
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
    pub(in super::super) fn postpone(&mut self, key: &K, until: Time) {
        if let Some(mut item) = self.under_way.remove(key)
            && !item.is_cancelled
            && !self.waiting.contains_key(key)
        {
            item.not_before = until;
            self.enqueue(key.clone(), item);
        }
    }

    /// True if a write of this key waits or is under way.
    pub(in super::super) fn contains(&self, key: &K) -> bool {
        self.waiting.contains_key(key) || self.under_way.contains_key(key)
    }

    /// True if something like this waits or is under way.
    pub(in super::super) fn has(&self, like: impl Fn(&V) -> bool) -> bool {
        self.waiting.values().chain(self.under_way.values()).any(|item| like(&item.value))
    }

    /// How many wait.
    pub(in super::super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// When the next write that has no time is due; `None` if none waits that could go out.
    pub(in super::super) fn due(&self) -> Option<Time> {
        self.order.iter().find(|(_, key)| !self.under_way.contains_key(key)).map(|((due, _), _)| *due)
    }

    /// When the next write that has time is due.
    pub(in super::super) fn slow_due(&self) -> Option<Time> {
        self.slow_order.iter().find(|(_, key)| !self.under_way.contains_key(key)).map(|((due, _), _)| *due)
    }

    /// How many wait that have no time.
    pub(in super::super) fn urgent_count(&self) -> usize {
        self.order.len()
    }

    /// True if nothing waits or is under way.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// How many are under way.
    pub(in super::super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn enqueue(&mut self, key: K, item: Item<V>) {
        let order = if item.is_slow { &mut self.slow_order } else { &mut self.order };
        order.insert((item.not_before, item.place), key.clone());
        self.waiting.insert(key, item);
    }

    fn unqueue(&mut self, key: &K) -> Option<Item<V>> {
        let item = self.waiting.remove(key)?;
        let order = if item.is_slow { &mut self.slow_order } else { &mut self.order };
        order.remove(&(item.not_before, item.place));
        Some(item)
    }
}

/// The first that is due and of which no earlier write is under way. Looks past at most as many as are.
fn first_due<K: Hash + Eq + Clone, V>(
    order: &BTreeMap<(Time, u64), K>,
    under_way: &FxHashMap<K, Item<V>>,
    now: Time,
) -> Option<K> {
    let due = order.iter().take_while(|((due, _), _)| *due <= now);
    due.map(|(_, key)| key).find(|key| !under_way.contains_key(key)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    fn drain(
        queue: &mut WriteQueue<&'static str, i32>,
        window: usize,
        now: Time,
    ) -> Vec<(&'static str, i32)> {
        std::iter::from_fn(|| queue.next(window, now)).collect()
    }

    #[test]
    fn the_latest_value_is_written_in_the_turn_of_the_first() {
        let mut queue = WriteQueue::new(10);
        queue.put("a", 1, NOW);
        queue.put("b", 2, NOW);
        queue.put("a", 3, NOW.plus_seconds(9));
        assert_eq!(drain(&mut queue, 9, NOW), [("a", 3), ("b", 2)]);
    }

    #[test]
    fn what_has_time_waits_until_it_is_let_pass_or_has_none() {
        let mut queue = WriteQueue::new(10);
        queue.put_slow("a", 1, NOW);
        queue.put("b", 2, NOW);
        assert_eq!(drain(&mut queue, 9, NOW), [("b", 2)]);
        assert_eq!((queue.due(), queue.slow_due()), (None, Some(NOW)));
        queue.put("a", 3, NOW.plus_seconds(5));
        assert_eq!(drain(&mut queue, 9, NOW), [("a", 3)], "in the turn that it had");
        queue.put("c", 4, NOW);
        queue.put_slow("c", 5, NOW);
        assert_eq!(drain(&mut queue, 9, NOW), [("c", 5)]);
        queue.put_slow("d", 6, NOW);
        assert_eq!(queue.next_slow(9, NOW), Some(("d", 6)));
    }

    #[test]
    fn one_write_per_key_is_under_way() {
        let mut queue = WriteQueue::new(10);
        queue.put("a", 1, NOW);
        assert_eq!(drain(&mut queue, 9, NOW), [("a", 1)]);
        queue.put("a", 2, NOW);
        queue.put("b", 3, NOW);
        assert_eq!(drain(&mut queue, 9, NOW), [("b", 3)]);
        assert_eq!(queue.due(), None);
        queue.done(&"a");
        assert_eq!(drain(&mut queue, 9, NOW), [("a", 2)]);
    }

    #[test]
    fn a_failed_write_is_tried_again_a_few_times_unless_a_newer_one_waits() {
        let mut queue = WriteQueue::new(10);
        queue.put("a", 1, NOW);
        let mut now = NOW;
        for _ in 1..TRIES_MAX {
            assert_eq!(drain(&mut queue, 9, now), [("a", 1)]);
            assert_eq!(queue.failed(&"a", now), AfterFailure::Again);
            now = queue.due().unwrap();
        }
        assert_eq!(drain(&mut queue, 9, now), [("a", 1)]);
        assert_eq!(queue.failed(&"a", now), AfterFailure::GivenUp);
        assert!(queue.is_empty());

        queue.put("a", 1, now);
        drain(&mut queue, 9, now);
        queue.put("a", 2, now);
        queue.failed(&"a", now);
        assert_eq!(drain(&mut queue, 9, now), [("a", 2)]);
    }

    #[test]
    fn what_must_last_is_never_given_up_and_tried_twice_a_minute_in_the_end() {
        let mut queue = WriteQueue::lasting(10);
        queue.put("a", 1, NOW);
        let mut now = NOW;
        for _ in 0..3 * TRIES_MAX {
            assert_eq!(drain(&mut queue, 9, now), [("a", 1)]);
            assert_eq!(queue.failed(&"a", now), AfterFailure::Again);
            now = queue.due().unwrap();
        }
        drain(&mut queue, 9, now);
        queue.failed(&"a", now);
        assert_eq!(queue.due(), Some(Time(now.0 + RETRY_MAX_MS)));
    }

    #[test]
    fn a_write_that_was_taken_back_while_it_was_under_way_is_not_tried_again() {
        for fails in [true, false] {
            let mut queue = WriteQueue::new(10);
            queue.put("a", 1, NOW);
            drain(&mut queue, 9, NOW);
            assert!(!queue.cancel(&"a"), "none was waiting");
            if fails {
                assert_eq!(queue.failed(&"a", NOW), AfterFailure::Again);
            } else {
                queue.postpone(&"a", NOW);
            }
            assert!(queue.is_empty());
            queue.put("a", 2, NOW);
            assert_eq!(drain(&mut queue, 9, NOW), [("a", 2)], "another one has nothing to do with it");
        }
    }

    #[test]
    fn a_full_queue_drops_and_says_so_once() {
        let mut queue = WriteQueue::new(1);
        assert_eq!(queue.put("a", 1, NOW), None);
        assert_eq!(queue.put("b", 1, NOW), Some(1));
        assert_eq!(queue.put("c", 1, NOW), None);
        assert_eq!(queue.put("a", 2, NOW), None, "a replacement needs no room");
        drain(&mut queue, 9, NOW);
        queue.put("d", 1, NOW);
        assert_eq!(queue.put("e", 1, NOW), Some(3), "a new episode is told again");
    }

    #[test]
    fn what_the_server_had_no_time_for_is_not_a_failed_try() {
        let mut queue = WriteQueue::new(10);
        queue.put("a", 1, NOW);
        for _ in 0..3 * TRIES_MAX {
            assert_eq!(drain(&mut queue, 9, NOW), [("a", 1)]);
            queue.postpone(&"a", NOW);
        }
        assert!(queue.contains(&"a"));
    }
}
