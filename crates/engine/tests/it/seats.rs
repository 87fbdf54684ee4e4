//! A seat that was decided on, looked at again before it is used.

use crate::driver::World;
use tutti_engine::{Decision, Event, HeldSeat, Hold, HoldReason, UnitKey};
use tutti_model::{ObjectKey, Text};

/// Pod `p` has a seat on node `n`, and nobody was told yet.
fn seated(text: &str) -> World {
    let mut world = World::parse(text);
    while !matches!(world.engine.decide(world.now), Decision::Idle { .. }) {}
    world
}

fn may_keep(world: &World) -> bool {
    world.engine.may_keep_seat(&ObjectKey::new("default", "p"))
}

#[test]
fn a_seat_is_lost_to_whatever_would_have_kept_the_pod_away() {
    for (after, keeps) in [
        ("", true),
        ("pod other on=n cpu=2", true),
        ("pod other on=n cpu=3", false),
        // The node is over-committed, but not with anything that the pod asks for.
        ("pod other on=n memory=9Gi", true),
        ("node n cpu=2 memory=4Gi label:zone=a", true),
        ("node n cpu=1 memory=4Gi label:zone=a", false),
        ("node n cpu=4 memory=4Gi label:zone=a cordoned", false),
        ("node n cpu=4 memory=4Gi label:zone=a taint:gpu=yes:NoSchedule", false),
        ("node n cpu=4 memory=4Gi label:zone=b", false),
    ] {
        let mut world = seated("node n cpu=4 memory=4Gi label:zone=a\npod p cpu=2 select:zone=a");
        world.add(after);
        assert_eq!(may_keep(&world), keeps, "{after}");
    }
}

#[test]
fn who_has_no_seat_keeps_none_and_who_is_bound_keeps_it() {
    let mut world = seated("node n cpu=4\npod p cpu=2");
    world.remove_node("n");
    assert!(!may_keep(&world));
    assert!(!may_keep(&seated("node n cpu=1\npod p cpu=2")));
    assert!(may_keep(&World::parse("node n cpu=1\npod p cpu=2 on=n")));
}

#[test]
fn room_that_was_promised_to_the_less_important_does_not_count_twice() {
    let mut world = World::parse("node n cpu=4\npod p cpu=3 priority=1");
    let seat = HeldSeat { node: Text::from("n"), requests: world.pod("p").requests, count: 1 };
    let hold = Hold {
        unit: UnitKey::Group(ObjectKey::new("default", "less")),
        priority: 0,
        reason: HoldReason::Told,
        seats: vec![seat],
        expires: None,
    };
    world.engine.apply(Event::Hold(Box::new(hold)), world.now);
    while !matches!(world.engine.decide(world.now), Decision::Idle { .. }) {}
    assert!(may_keep(&world));
    world.add("pod other on=n cpu=2");
    assert!(!may_keep(&world));
}
