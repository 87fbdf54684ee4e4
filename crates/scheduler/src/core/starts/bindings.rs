//! Bindings under way, one per pod, from the decision to the moment when it is known where the pod is.
//!
//! A binding can be repeated safely: a pod is bound once, and never to two nodes. So when an answer is lost the
//! seat stays ours, and the same binding is sent again until the pod is seen somewhere.
//!
//! ```text
//! Queued -> Sent -> bound
//!             |-> refused: failed, unless an earlier try may still land
//!             |-> disputed: Asking
//!             |-> throttled: Pausing -> Queued
//!             `-> unknown: Pausing -> Asking -> bound | gone | failed
//!                             ^          `-> not bound: Pausing -> Queued
//!                             `----- no answer
//! ```

use super::super::message::{BindOutcome, Effect, Lookup};
use super::super::writes::window::Window;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tutti_engine::Seat;
use tutti_model::{ObjectKey, Text, Time};

/// First pause after an unknown outcome; every further one is twice as long.
const PAUSE_FIRST_MS: i64 = 200;
/// Longest pause.
const PAUSE_MAX_MS: i64 = 30_000;

/// What may be under way at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bindings.
    pub(crate) binds: usize,
    /// Looks at pods.
    pub(crate) lookups: usize,
    /// After this time a binding without an answer can no longer be written: the server has given it up.
    pub(crate) settle_after: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Send,
    Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queued(Next),
    UnderWay(Next),
    Pausing(Time, Next),
}

impl Stage {
    /// True if this is what comes next, at once or after a pause.
    fn is_before(self, next: Next) -> bool {
        matches!(self, Self::Queued(what) | Self::Pausing(_, what) if what == next)
    }
}

#[derive(Debug, Clone)]
struct Binding {
    uid: Text,
    node: Text,
    stage: Stage,
    /// When a try was last sent whose outcome is not known.
    unknown_since: Option<Time>,
    /// Pauses so far.
    pauses: u32,
    /// What was last heard, for messages.
    why: Option<Text>,
}

/// How a binding ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The pod is on this node.
    Bound {
        /// Where it is.
        node: Text,
        /// Where it was to be.
        wanted: Text,
    },
    /// It was certainly not bound and never will be by us.
    Failed { node: Text, why: Text },
    /// The pod is gone.
    Gone,
    /// Not ended: it is not known what happened.
    Unknown { node: Text, why: Text },
}

/// All bindings under way.
#[derive(Debug)]
pub(crate) struct Bindings {
    limits: Limits,
    window: Window,
    by_pod: FxHashMap<ObjectKey, Binding>,
    to_send: VecDeque<ObjectKey>,
    to_ask: VecDeque<ObjectKey>,
    paused: BTreeSet<(Time, ObjectKey)>,
    sending: usize,
    asking: usize,
}

impl Bindings {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            window: Window::new(limits.binds),
            limits,
            by_pod: FxHashMap::default(),
            to_send: VecDeque::new(),
            to_ask: VecDeque::new(),
            paused: BTreeSet::new(),
            sending: 0,
            asking: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_pod.is_empty()
    }

    pub(crate) fn contains(&self, pod: &ObjectKey) -> bool {
        self.by_pod.contains_key(pod)
    }

    /// How many bindings are under way or wait to be.
    pub(crate) fn len(&self) -> usize {
        self.by_pod.len()
    }

    /// A node is gone: bindings to it that are not under way have failed, unless an earlier try may have been written; then
    /// it is asked instead of tried again. Gives the pods of those that have failed.
    pub(crate) fn fail_unsent(&mut self, node: &Text) -> Vec<(ObjectKey, Text)> {
        let mut waiting: Vec<_> = self
            .by_pod
            .iter()
            .filter(|(_, bind)| bind.node == *node && bind.stage.is_before(Next::Send))
            .map(|(pod, bind)| (pod.clone(), bind.uid.clone()))
            .collect();
        waiting.sort_unstable();
        waiting.retain(|(pod, _)| {
            let may_be_written = self.by_pod.get(pod).is_some_and(|bind| bind.unknown_since.is_some());
            if may_be_written {
                self.ask_instead(pod);
            } else {
                self.forget(pod);
            }
            !may_be_written
        });
        waiting
    }

    /// What was to be sent next is asked for instead, at the same time.
    fn ask_instead(&mut self, pod: &ObjectKey) {
        let Some(bind) = self.by_pod.get_mut(pod) else {
            return;
        };
        match bind.stage {
            Stage::Queued(_) => {
                bind.stage = Stage::Queued(Next::Ask);
                self.to_ask.push_back(pod.clone());
            }
            Stage::Pausing(until, _) => bind.stage = Stage::Pausing(until, Next::Ask),
            Stage::UnderWay(_) => {}
        }
    }

    /// True if bindings are to be sent or answered: everything else should make room for them.
    pub(crate) fn is_busy(&self) -> bool {
        self.sending > 0 || !self.to_send.is_empty()
    }

    /// True if at least half as many bindings are under way as may be.
    pub(crate) fn is_crowded(&self, now: Time) -> bool {
        2 * self.sending >= self.window.limit(now).max(1)
    }

    pub(crate) fn start(&mut self, seat: &Seat) {
        self.forget(&seat.pod);
        let bind = Binding {
            uid: seat.uid.clone(),
            node: seat.node.clone(),
            stage: Stage::Queued(Next::Send),
            unknown_since: None,
            pauses: 0,
            why: None,
        };
        self.by_pod.insert(seat.pod.clone(), bind);
        self.to_send.push_back(seat.pod.clone());
    }

    /// Ends a binding whose outcome was learned elsewhere. Gives where the pod was to go.
    pub(crate) fn forget(&mut self, pod: &ObjectKey) -> Option<Text> {
        let bind = self.by_pod.remove(pod)?;
        // The answer of what is under way will still come, and gives its place in the window back. What is
        // queued is skipped when its turn comes.
        if let Stage::Pausing(until, _) = bind.stage {
            self.paused.remove(&(until, pod.clone()));
        }
        Some(bind.node)
    }

    /// True if more could be sent than waits to be.
    pub(crate) fn has_room(&self, now: Time) -> bool {
        self.to_send.is_empty() && self.sending < self.window.limit(now)
    }

    /// When more can be sent, if not now for no other reason than time.
    pub(crate) fn opens_at(&self, now: Time) -> Option<Time> {
        self.window.opens_at(now)
    }

    /// The next request that may go out.
    pub(crate) fn next(&mut self, now: Time) -> Option<Effect> {
        if self.sending < self.window.limit(now)
            && let Some((pod, bind)) = Self::take(&mut self.to_send, &mut self.by_pod, Next::Send)
        {
            self.sending += 1;
            let (uid, node) = (bind.uid.clone(), bind.node.clone());
            return Some(Effect::Bind(Seat { pod, uid, node }));
        }
        if self.asking < self.limits.lookups
            && let Some((pod, bind)) = Self::take(&mut self.to_ask, &mut self.by_pod, Next::Ask)
        {
            self.asking += 1;
            let uid = bind.uid.clone();
            return Some(Effect::GetPod { pod, uid });
        }
        None
    }

    /// The first of a queue that is still waiting for its turn, which it has now.
    fn take<'a>(
        queue: &mut VecDeque<ObjectKey>,
        by_pod: &'a mut FxHashMap<ObjectKey, Binding>,
        what: Next,
    ) -> Option<(ObjectKey, &'a Binding)> {
        let is_next = |pod: &ObjectKey| by_pod.get(pod).is_some_and(|bind| bind.stage == Stage::Queued(what));
        while let Some(pod) = queue.pop_front() {
            if is_next(&pod) {
                let bind = by_pod.get_mut(&pod)?;
                bind.stage = Stage::UnderWay(what);
                return Some((pod, bind));
            }
        }
        None
    }

    /// A binding was answered.
    pub(crate) fn bind_answered(&mut self, seat: &Seat, outcome: BindOutcome, now: Time) -> Option<Verdict> {
        self.sending = self.sending.saturating_sub(1);
        let pod = &seat.pod;
        if outcome == BindOutcome::Done {
            self.window.good();
            // True whatever we believe by now: the pod with this identity is on that node for good.
            return Some(self.bound(seat));
        }
        let Some(bind) = self.expecting(pod, &seat.uid, Next::Send) else {
            if let BindOutcome::Throttled { pause, .. } = outcome {
                self.window.throttled(pause, now);
            }
            return None;
        };
        match outcome {
            BindOutcome::Done => None,
            BindOutcome::Throttled { why, pause } => {
                bind.why = Some(why);
                let until = self.window.throttled(pause, now);
                self.pause_until(pod, Next::Send, until);
                None
            }
            BindOutcome::Refused(why) => {
                bind.why = Some(why);
                // A refusal of this try says nothing about an earlier one without an answer.
                if bind.unknown_since.is_none() {
                    return Some(self.failed(pod));
                }
                self.pause(pod, Next::Ask, now);
                None
            }
            BindOutcome::Disputed(why) => {
                bind.why = Some(why);
                bind.stage = Stage::Queued(Next::Ask);
                self.to_ask.push_back(pod.clone());
                None
            }
            BindOutcome::Unknown(why) => {
                let first = bind.unknown_since.is_none();
                bind.unknown_since = Some(now);
                bind.why = Some(why.clone());
                let node = bind.node.clone();
                self.pause(pod, Next::Ask, now);
                first.then_some(Verdict::Unknown { node, why })
            }
        }
    }

    /// A look at a pod was answered. `node_exists` says whether a binding to that node could still be written.
    pub(crate) fn lookup_answered(
        &mut self,
        pod: &ObjectKey,
        uid: &Text,
        found: Lookup,
        node_exists: impl Fn(&Text) -> bool,
        now: Time,
    ) -> Option<Verdict> {
        self.asking = self.asking.saturating_sub(1);
        let settle_after = self.limits.settle_after;
        let bind = self.expecting(pod, uid, Next::Ask)?;
        match found {
            Lookup::Gone => {
                self.forget(pod);
                Some(Verdict::Gone)
            }
            Lookup::Found { uid: found, .. } if found != *uid => {
                self.forget(pod);
                Some(Verdict::Gone)
            }
            Lookup::Found { node: Some(node), .. } => {
                Some(self.bound(&Seat { pod: pod.clone(), uid: uid.clone(), node }))
            }
            Lookup::Found { node: None, .. } => {
                if bind.unknown_since.is_none_or(|since| now >= since + settle_after) {
                    return Some(self.failed(pod));
                }
                // The lost try may still land on our node. Sent again, the binding ends the doubt; on a node
                // that is gone only time does.
                let next = if node_exists(&bind.node) { Next::Send } else { Next::Ask };
                self.pause(pod, next, now);
                None
            }
            Lookup::Throttled { why, pause } => {
                bind.why = Some(why);
                let until = self.window.throttled(pause, now);
                self.pause_until(pod, Next::Ask, until);
                None
            }
            Lookup::Unknown(why) => {
                bind.why = Some(why);
                self.pause(pod, Next::Ask, now);
                None
            }
        }
    }

    /// Ends the pauses that are over.
    pub(crate) fn tick(&mut self, now: Time) {
        while let Some((until, pod)) = self.paused.first().cloned() {
            if until > now {
                return;
            }
            self.paused.pop_first();
            let Some(bind) = self.by_pod.get_mut(&pod) else {
                continue;
            };
            let Stage::Pausing(_, next) = bind.stage else {
                continue;
            };
            bind.stage = Stage::Queued(next);
            match next {
                Next::Send => self.to_send.push_back(pod),
                Next::Ask => self.to_ask.push_back(pod),
            }
        }
    }

    /// When the first pause ends, or the window opens for what waits.
    pub(crate) fn wake_at(&self, now: Time) -> Option<Time> {
        let pause = self.paused.first().map(|(until, _)| *until);
        let opens = self.window.opens_at(now).filter(|_| !self.to_send.is_empty());
        [pause, opens].into_iter().flatten().min()
    }

    fn expecting(&mut self, pod: &ObjectKey, uid: &Text, what: Next) -> Option<&mut Binding> {
        let bind = self.by_pod.get_mut(pod)?;
        (bind.uid == *uid && bind.stage == Stage::UnderWay(what)).then_some(bind)
    }

    fn bound(&mut self, seat: &Seat) -> Verdict {
        let same = self.by_pod.get(&seat.pod).is_some_and(|bind| bind.uid == seat.uid);
        let wanted = same.then(|| self.forget(&seat.pod)).flatten();
        Verdict::Bound { node: seat.node.clone(), wanted: wanted.unwrap_or_else(|| seat.node.clone()) }
    }

    fn failed(&mut self, pod: &ObjectKey) -> Verdict {
        match self.by_pod.remove(pod) {
            Some(bind) => Verdict::Failed { node: bind.node, why: bind.why.unwrap_or_default() },
            None => Verdict::Gone,
        }
    }

    fn pause(&mut self, pod: &ObjectKey, next: Next, now: Time) {
        let Some(bind) = self.by_pod.get_mut(pod) else {
            return;
        };
        let pause = PAUSE_FIRST_MS.saturating_mul(1 << bind.pauses.min(16)).min(PAUSE_MAX_MS);
        bind.pauses = bind.pauses.saturating_add(1);
        self.pause_until(pod, next, Time(now.0.saturating_add(pause)));
    }

    fn pause_until(&mut self, pod: &ObjectKey, next: Next, until: Time) {
        if let Some(bind) = self.by_pod.get_mut(pod) {
            bind.stage = Stage::Pausing(until, next);
            self.paused.insert((until, pod.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Time = Time(1_000_000);

    fn limits() -> Limits {
        Limits { binds: 2, lookups: 1, settle_after: Duration::from_secs(90) }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    fn uid(name: &str) -> Text {
        Text::from(format!("uid-{name}"))
    }

    fn started(names: &[&str]) -> Bindings {
        let mut binds = Bindings::new(limits());
        for name in names {
            binds.start(&Seat { pod: key(name), uid: uid(name), node: "n".into() });
        }
        binds
    }

    fn sent(binds: &mut Bindings) -> Vec<String> {
        std::iter::from_fn(|| binds.next(Time(i64::MAX)))
            .map(|effect| match effect {
                Effect::Bind(seat) => format!("bind {} {}", seat.pod.name, seat.node),
                Effect::GetPod { pod, .. } => format!("get {}", pod.name),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn answer(binds: &mut Bindings, name: &str, outcome: BindOutcome) -> Option<Verdict> {
        let seat = Seat { pod: key(name), uid: uid(name), node: "n".into() };
        binds.bind_answered(&seat, outcome, NOW)
    }

    fn looked(binds: &mut Bindings, name: &str, node: Option<&str>, now: Time) -> Option<Verdict> {
        let found = Lookup::Found { uid: uid(name), node: node.map(Text::from) };
        binds.lookup_answered(&key(name), &uid(name), found, |_| true, now)
    }

    fn bound(node: &str) -> Option<Verdict> {
        Some(Verdict::Bound { node: node.into(), wanted: "n".into() })
    }

    #[test]
    fn a_window_bounds_what_is_under_way() {
        let mut binds = started(&["a", "b", "c"]);
        assert_eq!(sent(&mut binds), ["bind a n", "bind b n"]);
        assert_eq!(answer(&mut binds, "a", BindOutcome::Done), bound("n"));
        assert_eq!(sent(&mut binds), ["bind c n"]);
        assert!(binds.is_busy());
    }

    #[test]
    fn a_dispute_is_settled_by_a_look() {
        for (node, verdict) in [(Some("n"), bound("n")), (Some("m"), bound("m"))] {
            let mut binds = started(&["a"]);
            sent(&mut binds);
            assert_eq!(answer(&mut binds, "a", BindOutcome::Disputed("bound".into())), None);
            assert_eq!(sent(&mut binds), ["get a"]);
            assert_eq!(looked(&mut binds, "a", node, NOW), verdict);
            assert!(binds.is_empty());
        }
        let mut binds = started(&["a"]);
        sent(&mut binds);
        answer(&mut binds, "a", BindOutcome::Disputed("bound".into()));
        sent(&mut binds);
        let verdict = looked(&mut binds, "a", None, NOW);
        assert!(matches!(verdict, Some(Verdict::Failed { .. })), "{verdict:?}");
    }

    #[test]
    fn a_lost_answer_keeps_the_seat_until_the_pod_is_seen() {
        let mut binds = started(&["a"]);
        sent(&mut binds);
        let unknown = || BindOutcome::Unknown("timed out".into());
        assert!(matches!(answer(&mut binds, "a", unknown()), Some(Verdict::Unknown { .. })));
        assert_eq!(sent(&mut binds), Vec::<String>::new(), "it waits before it asks");
        let mut now = binds.wake_at(NOW).unwrap();
        binds.tick(now);
        assert_eq!(sent(&mut binds), ["get a"]);
        assert_eq!(looked(&mut binds, "a", None, now), None, "not seen is not failed");
        now = binds.wake_at(NOW).unwrap();
        binds.tick(now);
        assert_eq!(sent(&mut binds), ["bind a n"], "the same binding again");
        // The repeated try is refused, but the first may still land.
        assert_eq!(answer(&mut binds, "a", BindOutcome::Refused("no".into())), None);
        now = Time(NOW.0 + 90_000);
        binds.tick(now);
        assert_eq!(sent(&mut binds), ["get a"]);
        let verdict = looked(&mut binds, "a", None, now);
        assert!(matches!(verdict, Some(Verdict::Failed { .. })), "{verdict:?}");
    }

    #[test]
    fn a_server_that_has_too_much_to_do_is_left_alone_and_nothing_has_failed() {
        let mut binds = started(&["a", "b", "c"]);
        sent(&mut binds);
        let busy = || BindOutcome::Throttled { why: "busy".into(), pause: Some(Duration::from_secs(3)) };
        assert_eq!(answer(&mut binds, "a", busy()), None);
        assert_eq!(answer(&mut binds, "b", busy()), None);
        assert_eq!(binds.next(NOW), None, "not even those that were not tried");
        let later = NOW.plus_seconds(3);
        assert_eq!(binds.wake_at(NOW), Some(later));
        binds.tick(later);
        assert_eq!(sent(&mut binds), ["bind c n"], "one at a time now");
        assert_eq!(answer(&mut binds, "c", BindOutcome::Done), bound("n"));
        assert_eq!(sent(&mut binds), ["bind a n", "bind b n"], "and two after it went well");
    }

    #[test]
    fn a_binding_that_was_never_sent_fails_with_its_node() {
        let mut binds = started(&["a", "b", "c"]);
        sent(&mut binds);
        assert_eq!(binds.fail_unsent(&"other".into()), []);
        assert_eq!(binds.fail_unsent(&"n".into()), [(key("c"), uid("c"))], "the others may be written");
        assert_eq!(binds.len(), 2);
    }

    #[test]
    fn a_look_that_the_server_has_no_time_for_is_repeated_when_it_asks_for_it() {
        let mut binds = started(&["a"]);
        sent(&mut binds);
        answer(&mut binds, "a", BindOutcome::Disputed("conflict".into()));
        assert_eq!(sent(&mut binds), ["get a"]);
        let found = Lookup::Throttled { why: "busy".into(), pause: Some(Duration::from_secs(7)) };
        binds.lookup_answered(&key("a"), &uid("a"), found, |_| true, NOW);
        assert_eq!(binds.wake_at(NOW), Some(NOW.plus_seconds(7)));
        binds.tick(NOW.plus_seconds(7));
        assert_eq!(sent(&mut binds), ["get a"]);
    }

    #[test]
    fn nothing_is_sent_to_a_node_that_went_during_a_pause() {
        let mut binds = started(&["a", "b"]);
        sent(&mut binds);
        let busy = BindOutcome::Throttled { why: "busy".into(), pause: Some(Duration::from_secs(3)) };
        answer(&mut binds, "a", busy);
        answer(&mut binds, "b", BindOutcome::Unknown("lost".into()));
        let soon = NOW.plus_seconds(1);
        binds.tick(soon);
        assert_eq!(sent(&mut binds), ["get b"]);
        assert_eq!(looked(&mut binds, "b", None, soon), None, "it is to be sent again");
        assert_eq!(binds.fail_unsent(&"n".into()), [(key("a"), uid("a"))], "the other may be written");
        binds.tick(NOW.plus_seconds(60));
        assert_eq!(sent(&mut binds), ["get b"]);
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut binds = started(&["a"]);
        sent(&mut binds);
        answer(&mut binds, "a", BindOutcome::Unknown("lost".into()));
        let mut last = NOW;
        let mut pauses = Vec::new();
        for _ in 0..20 {
            let now = binds.wake_at(NOW).unwrap();
            pauses.push(now.0 - last.0);
            last = now;
            binds.tick(now);
            assert_eq!(sent(&mut binds), ["get a"]);
            binds.lookup_answered(&key("a"), &uid("a"), Lookup::Unknown("lost".into()), |_| true, now);
        }
        assert_eq!((pauses[0], pauses[1], pauses[19]), (200, 400, PAUSE_MAX_MS));
    }

    #[test]
    fn late_answers_of_forgotten_bindings_only_free_the_window() {
        let mut binds = started(&["a", "b", "c"]);
        sent(&mut binds);
        assert_eq!(binds.forget(&key("a")).as_deref(), Some("n"));
        assert_eq!(sent(&mut binds), Vec::<String>::new());
        assert_eq!(answer(&mut binds, "a", BindOutcome::Refused("no".into())), None);
        assert_eq!(sent(&mut binds), ["bind c n"]);
        binds.forget(&key("c"));
        binds.forget(&key("b"));
        assert!(binds.is_empty());
    }
}
