//! Composites whose groups run in several domains of a level of which they require one.

use crate::driver::{World, show};
use tutti_engine::Decision;

fn told(world: &mut World) -> String {
    show(&world.settle())
}

/// Two groups of one composite run in different racks.
const APART: &str = "node a cpu=4 label:rack=1
     node b cpu=8 label:rack=2
     composite top gang=1 required:rack
     group one gang=1 parent=top
     group two gang=1 parent=top
     pod one-0 group=one cpu=1 on=a
     pod two-0 group=two cpu=1 on=b";

const WHY: &str = "groups of composite pod group top run in several domains of rack (1, 2), and it requires one; no further \
                   group of it is placed";

#[test]
fn a_new_group_is_refused_with_that_reason() {
    let mut world = World::parse(APART);
    world.add("group three gang=1 parent=top\npod three-0 group=three cpu=1");
    assert_eq!(told(&mut world), format!("composite default/top (1) waits: {WHY}\n"));
    // Nothing but the end of one of the two, or other labels, can help.
    let mut relabelled = world.clone();
    relabelled.add("node b cpu=8 label:rack=1");
    let told_then = told(&mut relabelled);
    assert!(told_then.starts_with("composite default/top: three-0->"), "{told_then}");
    world.remove_pod(&world.pod("one-0").key);
    assert_eq!(told(&mut world), "composite default/top: three-0->b\n");
}

#[test]
fn replacements_go_to_the_domain_of_their_own_group() {
    let mut world = World::parse(APART);
    world.add("pod one-1 group=one cpu=1\npod two-1 group=two cpu=1");
    assert_eq!(told(&mut world), "composite default/top: one-1->a two-1->b\n");
    // Not elsewhere, even if only there is room.
    world.add("pod one-2 group=one cpu=3");
    let told = told(&mut world);
    assert!(told.starts_with("composite default/top (1) waits: "), "{told}");
    assert!(told.contains("running members are not in one domain of rack: 2 in 1, 2 in 2"), "{told}");
}

#[test]
fn replacements_are_placed_and_new_groups_refused_in_one_tree() {
    let mut world = World::parse(APART);
    world.add("group three gang=1 parent=top\npod three-0 group=three cpu=1\npod one-1 group=one cpu=1");
    let decisions = world.settle();
    let [Decision::Place(placement), Decision::Wait(waiting)] = &decisions[..] else {
        panic!("{}", show(&decisions))
    };
    assert_eq!(placement.seats[0].node.as_ref(), "a");
    assert_eq!(waiting.refusal.to_string(), WHY);
    let own = waiting.groups.iter().find(|standing| standing.group.object().name.as_ref() == "three");
    assert_eq!(own.and_then(|own| own.waits.as_ref()).map(ToString::to_string).as_deref(), Some(WHY));
}

#[test]
fn wider_levels_still_hold() {
    // The racks differ, the block does not: a group that runs nowhere is refused, a replacement stays in its rack.
    let mut world = World::parse(
        "node a cpu=2 label:block=x label:rack=1
         node b cpu=2 label:block=x label:rack=2
         composite top gang=1 required:block required:rack
         group one gang=1 parent=top
         group two gang=1 parent=top
         pod one-0 group=one cpu=1 on=a
         pod two-0 group=two cpu=1 on=b
         pod two-1 group=two cpu=1",
    );
    assert_eq!(told(&mut world), "composite default/top: two-1->b\n");
}
