//! A solver that breaks over one unit, and what a core hands on to the next one.

use super::small_cluster::{Sim, key};
use crate::core::message::Fact;
use tutti_engine::UnitKey;

fn breaks_on(sim: &mut Sim, unit: Option<UnitKey>) {
    sim.core.set_aside.breaks_on = unit;
}

#[test]
fn a_unit_over_which_the_solver_breaks_is_set_aside_and_everybody_else_is_served() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    breaks_on(&mut sim, Some(UnitKey::Group(key("g"))));
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    sim.pod("p", None, 1);
    sim.run_for(5);
    assert_eq!(sim.node_of("p"), Some("a"));
    assert_eq!((sim.node_of("g-0"), sim.core.counters().set_aside), (None, 1), "once, not at every step");
    let is_reported = |fact: &Fact| matches!(fact, Fact::SetAside { why, .. } if why.contains("on purpose"));
    assert_eq!(sim.facts.iter().filter(|fact| is_reported(fact)).count(), 1);
    assert_eq!(&*sim.group_conditions[&key("g")].reason, "SchedulerError");
    assert!(sim.events.iter().any(|note| note.regarding.key == key("g") && note.message.contains("broke")));
    sim.run_for(590);
    assert_eq!(sim.node_of("g-0"), None);
    breaks_on(&mut sim, None);
    sim.run_for(10);
    assert_eq!(sim.bound(), 3, "it is tried again, and this time it works");
}

#[test]
fn a_group_that_was_set_aside_is_tried_again_when_it_has_changed() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    breaks_on(&mut sim, Some(UnitKey::Group(key("g"))));
    sim.gang("g", 3);
    sim.gang_pods("g", 2, 1);
    sim.run_for(5);
    breaks_on(&mut sim, None);
    sim.set_minimum("g", 2);
    sim.run_for(5);
    assert_eq!(sim.bound(), 2);
}

#[test]
fn other_settings_do_not_make_a_gang_wait_anew_until_room_is_kept_for_it() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.pod("before", None, 2);
    sim.bind_by_other("before", "a");
    sim.gang("g", 4);
    sim.gang_pods("g", 4, 1);
    sim.run_for(1_200);
    let carried = sim.core.carry_over();
    sim.replace_core();
    sim.core.carry_on(carried);
    sim.run_for(540);
    assert_eq!(sim.core.gauges().seats_kept, 0);
    sim.run_for(120);
    assert_eq!(sim.core.gauges().seats_kept, 4, "30 minutes in all");
}
