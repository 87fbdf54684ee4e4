//! Nothing is sent without a lease that lasts, and all of it is sent in the end.

use super::small_cluster::{Fault, Sim};
use crate::config::Config;
use crate::core::message::Input;
use tutti_k8s::ObjectKind;

fn standby() -> Sim {
    let mut sim = Sim::of(crate::Core::standby(Config::default(), Sim::capabilities()));
    sim.list_everything();
    sim.node("a", 4);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    sim
}

fn elect(sim: &mut Sim, seconds: i64) {
    let until = sim.now.plus_seconds(seconds);
    sim.notify(ObjectKind::Node, Input::Elected { until });
}

#[test]
fn on_standby_nothing_is_sent() {
    let mut sim = standby();
    sim.run_for(100);
    assert_eq!((sim.order.len(), sim.binds.len()), (0, 0));
}

#[test]
fn a_leader_acts_on_what_it_has_read() {
    let mut sim = standby();
    sim.run();
    elect(&mut sim, 100);
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_lease_that_has_run_out_silences_without_being_told() {
    let mut sim = standby();
    sim.run();
    elect(&mut sim, 10);
    sim.now = sim.now.plus_seconds(10);
    sim.run_for(30);
    assert_eq!(sim.binds.len(), 0);
    let until = sim.now.plus_seconds(10);
    sim.notify(ObjectKind::Node, Input::Renewed { until });
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_server_that_has_too_much_to_do_gets_everything_in_the_end() {
    let mut sim = Sim::new();
    sim.node("a", 100);
    for index in 0..100 {
        let name = format!("p{index}");
        sim.pod(&name, None, 1);
        sim.faults.insert(name, vec![Fault::Throttle; 3].into());
    }
    sim.run_for(600);
    assert_eq!(sim.bound(), 100);
    assert_eq!(sim.core.counters().bind_failures, 0);
    assert!(sim.core.counters().throttled >= 100);
}

#[test]
fn every_event_is_out_within_a_minute() {
    // At the usual pace it would take more than two.
    let config = Config { events_per_second: 10, ..Config::default() };
    let mut sim = Sim::unlisted(config);
    sim.list_everything();
    for index in 0..15 {
        sim.node(&format!("n{index}"), 100);
    }
    sim.gang("g", 1_500);
    sim.gang_pods("g", 1_500, 1);
    sim.run_for(60);
    assert_eq!(sim.bound(), 1_500);
    let told = sim.events.iter().filter(|note| note.reason == "Scheduled").count();
    assert_eq!(told, 1_501, "of the group and of every member");
}
