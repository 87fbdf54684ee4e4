//! Waiting is free: a unit is looked at again only when what it needs could be there, equal requests are refused by one
//! solve, and nothing that a unit has left behind stays.

use crate::driver::{World, show};
use std::fmt::Write;
use tutti_engine::{Decision, Event, HeldSeat, Hold, HoldReason, ReasonCode, UnitKey};
use tutti_model::ObjectKey;

/// So many gangs of 8 that wait for GPUs, all alike.
fn gangs(count: u32, asks: &str) -> String {
    let mut text = String::new();
    for gang in 0..count {
        writeln!(text, "group g{gang:03} gang=8 {asks}\npod p{gang:03} x8 group=g{gang:03} gpu=1").unwrap();
    }
    text
}

#[test]
fn room_that_is_not_enough_wakes_no_gang_and_room_that_is_enough_wakes_them() {
    let mut world = World::parse(&format!("node full x4 gpu=0 cpu=4\n{}", gangs(20, "")));
    assert_eq!(world.settle().len(), 20);
    let (attempts, solves) = (world.engine.attempts_count(), world.engine.solves_count());
    assert_eq!(solves, 1, "equal requests are refused by one solve");
    for extra in 0..7 {
        world.add(&format!("node extra{extra} gpu=1"));
        assert!(world.settle().is_empty());
    }
    assert_eq!((world.engine.attempts_count(), world.engine.solves_count()), (attempts, solves));
    world.add("node extra7 gpu=1");
    let placed = world.settle().iter().filter(|decision| matches!(decision, Decision::Place(_))).count();
    assert_eq!(placed, 1);
}

#[test]
fn a_gang_that_needs_one_rack_sleeps_while_no_rack_has_room_for_it() {
    let mut world = World::parse(&format!("node a gpu=1 label:rack=r0\n{}", gangs(5, "required:rack")));
    world.settle();
    // A node that comes may begin a rack, so it is looked at; what becomes free in a rack that is too small is not.
    world.add("node b gpu=7 label:rack=r1\npod busy on=b gpu=7");
    world.settle();
    let attempts = world.engine.attempts_count();
    let busy = world.pod("busy").key;
    world.remove_pod(&busy);
    assert!(world.settle().is_empty());
    assert_eq!(world.engine.attempts_count(), attempts);
}

#[test]
fn that_there_are_no_nodes_is_taken_back_when_the_first_one_comes() {
    let mut world = World::parse(&gangs(1, ""));
    let told = show(&world.settle());
    assert!(told.contains("there are no nodes"), "{told}");
    world.add("node small gpu=1");
    let told = show(&world.settle());
    assert!(told.contains("1 of 8 members fit"), "{told}");
}

#[test]
fn a_group_that_gets_a_parent_leaves_nothing_behind() {
    let mut world = World::parse("node a cpu=1\ngroup g gang=2\npod p x2 group=g cpu=1");
    world.settle();
    assert_eq!(world.engine.reported_count(), 1);
    world.add("composite top gang=1\ngroup g gang=2 parent=top");
    world.settle();
    assert_eq!(world.engine.reported_count(), 1, "only the tree waits");
    let waiters: Vec<UnitKey> = world.engine.waiters().into_iter().map(|(unit, _)| unit).collect();
    assert_eq!(waiters, [UnitKey::Composite(ObjectKey::new("default", "top"))]);
}

#[test]
fn holds_that_are_not_kept_leave_no_nodes_behind() {
    let mut world = World::parse("node a cpu=1\ngroup g gang=1");
    let before = world.engine.digest();
    let hold = |expires| Hold {
        unit: UnitKey::Group(ObjectKey::new("default", "g")),
        priority: 0,
        expires,
        reason: HoldReason::Told,
        seats: vec![HeldSeat { node: "unseen".into(), requests: tutti_model::ResourceList::new(), count: 1 }],
    };
    for reason in [HoldReason::Told, HoldReason::Planned] {
        let over = Hold { reason, ..hold(Some(world.now)) };
        world.engine.apply(Event::Hold(Box::new(over)), world.now);
        assert_eq!(world.engine.digest(), before, "{reason:?} is over before it begins");
    }
}

#[test]
fn a_reason_has_a_part_that_does_not_change_with_numbers() {
    let reason = |text: &str| {
        let mut world = World::parse(text);
        let Some(Decision::Wait(waiting)) = world.settle().pop() else { panic!("it waits") };
        let reason = waiting.refusal.reason();
        (
            reason.code,
            reason.constraint.map(|text| text.to_string()),
            reason.domain.map(|text| text.to_string()),
        )
    };
    let gang = "group g gang=4\npod p x4 group=g gpu=1";
    let gpu = || Some("nvidia.com/gpu".to_owned());
    assert_eq!(reason(gang), (ReasonCode::NoNodes, None, None));
    assert_eq!(reason(&format!("node a gpu=1\n{gang}")), (ReasonCode::NoRoom, gpu(), None));
    assert_eq!(reason(&format!("node a gpu=3\n{gang}")), (ReasonCode::NoRoom, gpu(), None));
    let rack = "group g gang=4 required:rack\npod p x4 group=g gpu=1";
    assert_eq!(
        reason(&format!("node a gpu=3 label:rack=r\n{rack}")),
        (ReasonCode::NoRoomInDomain, gpu(), Some("r".to_owned()))
    );
    assert_eq!(
        reason(&format!("node a gpu=8\n{rack}")),
        (ReasonCode::NoDomain, Some("rack".to_owned()), None)
    );
    assert_eq!(reason("group g gang=4\npod p group=g gpu=1").0, ReasonCode::TooFewMembers);
}

#[test]
fn work_beyond_a_share_is_left_to_the_next_call() {
    // Nothing but a search can tell that these do not fit, and the budget does not last for all of them.
    let mut text = String::from("node n x12 cpu=10\n");
    for gang in 0..40 {
        writeln!(text, "group g{gang} gang=31").unwrap();
        for member in 0..31 {
            let cpu = 3 + (gang + member) % 2;
            writeln!(text, "pod p{gang}-{member} group=g{gang} cpu={cpu}").unwrap();
        }
    }
    let mut world = World::parse(&text);
    let mut calls = 0;
    loop {
        calls += 1;
        assert!(calls < 10_000, "the engine does not come to rest");
        if matches!(world.engine.decide(world.now), Decision::Idle { .. }) {
            break;
        }
    }
    assert!(calls >= 40);
}

#[test]
fn an_incomplete_gang_holds_room_that_comes_bit_by_bit() {
    let mut world = World::parse(
        "node a gpu=1
         group g gang=3
         pod w-0 group=g gpu=1 on=a
         pod w-1 group=g gpu=1
         pod w-2 group=g gpu=1",
    );
    world.settle();
    world.add("node b gpu=1");
    world.settle();
    world.add("pod newcomer gpu=1");
    world.settle();
    assert_eq!(world.pod("newcomer").node, None, "the room is held for the gang that has begun");
    world.add("node c gpu=1");
    world.settle();
    assert!(world.pod("w-1").node.is_some() && world.pod("w-2").node.is_some());
}

#[test]
fn a_minimum_that_was_raised_is_another_question() {
    let mut world = World::parse("node a gpu=2\ngroup g gang=3\npod p x5 group=g gpu=1");
    let told = show(&world.settle());
    assert!(told.contains("2 of 3 members fit"), "{told}");
    world.add("group g gang=4");
    let told = show(&world.settle());
    assert!(told.contains("2 of 4 members fit"), "{told}");
}
