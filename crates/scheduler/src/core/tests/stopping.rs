//! The end that was asked for: nothing new begins, what was begun ends, and whoever comes next finds all that matters.

use super::gangs::{GRACE_SECONDS, state};
use super::small_cluster::{Fault, Sim, key};
use crate::config::Config;
use crate::core::groups::GangState;
use crate::core::message::Input;
use crate::core::{Core, STARTS_MAX};
use tutti_k8s::ObjectKind;

impl Sim {
    fn stop(&mut self) {
        self.notify(ObjectKind::Node, Input::Stop);
    }

    /// Runs until the scheduler may end.
    fn drain(&mut self) {
        for _ in 0..100 {
            self.run();
            if self.core.is_drained() {
                return;
            }
            self.now = self.core.wake_at().expect("what is under way has its time");
        }
        panic!("it does not come to an end");
    }
}

#[test]
fn a_gang_that_becomes_complete_in_the_last_moment_is_known_to_have_been_complete() {
    let mut sim = Sim::with_gang(3, 3);
    // The bindings are out, and nobody has heard how they ended.
    for _ in 0..3 {
        sim.step();
        sim.answer();
    }
    assert!(sim.bound() < 3 && !sim.core.is_drained());
    sim.stop();
    sim.drain();
    assert_eq!(sim.bound(), 3);
    assert!(sim.marks.get(&key("g")).is_some_and(|marks| marks.fully_bound), "{:?}", sim.order);
    // A member is lost while nobody leads.
    sim.uncontrolled.clear();
    sim.delete_pod("g-1");
    sim.restart();
    sim.run_for(GRACE_SECONDS);
    assert_eq!((sim.evicted.len(), state(&sim, "g")), (0, Some(GangState::Kept)));
}

#[test]
fn who_stops_does_not_begin_to_unwind() {
    let mut sim = Sim::with_gang(3, 3);
    sim.faults.insert("g-2".to_owned(), vec![Fault::Refuse; 1_000].into());
    sim.run();
    assert_eq!(state(&sim, "g"), Some(GangState::Completing));
    sim.stop();
    sim.run_for(GRACE_SECONDS);
    sim.drain();
    assert_eq!((sim.evicted.len(), state(&sim, "g")), (0, Some(GangState::Completing)));
}

#[test]
fn who_has_begun_to_unwind_is_not_done_before_the_members_are_deleted() {
    let mut sim = Sim::with_gang(3, 3);
    sim.faults.insert("g-2".to_owned(), vec![Fault::Refuse; 1_000].into());
    sim.run_for(GRACE_SECONDS - 20);
    while sim.evicted.is_empty() {
        if !sim.answer() {
            sim.now = sim.core.wake_at().expect("it is unwound in time");
            sim.step();
        }
    }
    sim.stop();
    sim.step();
    assert!(!sim.core.is_drained(), "a deletion that is under way would surprise whoever leads next");
    sim.drain();
    assert_eq!(sim.evicted.len(), 2);
}

#[test]
fn decisions_wait_while_many_placements_wait_to_be_sent() {
    let mut sim =
        Sim::of(Core::new(Config { bind_concurrency: 1, ..Config::default() }, Sim::capabilities()));
    let pods = 2 * STARTS_MAX;
    for index in 0..pods / 100 + 1 {
        sim.node(&format!("n{index}"), 100);
    }
    for index in 0..pods {
        sim.pod(&format!("p{index}"), None, 1);
    }
    sim.list_everything();
    sim.step();
    // Nothing is answered: whatever is decided by now waits in a queue.
    for _ in 0..pods {
        sim.step();
    }
    assert!(sim.core.starts.waiting_count() <= STARTS_MAX, "{}", sim.core.starts.waiting_count());
    sim.run();
    assert_eq!(sim.bound(), pods, "and each of them has its turn");
}
