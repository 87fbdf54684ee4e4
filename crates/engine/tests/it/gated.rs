//! Members that scheduling gates hold back, and what becomes of the rest of their unit.

use crate::driver::{World, show};
use expect_test::{Expect, expect};

fn told(world: &mut World) -> String {
    show(&world.settle())
}

fn check(scenario: &str, expected: Expect) {
    expected.assert_eq(&told(&mut World::parse(scenario)));
}

fn ungate(world: &mut World, name: &str) {
    let mut pod = world.pod(name);
    pod.gates.clear();
    world.set_pod(pod);
}

#[test]
fn a_gated_member_holds_its_whole_group_gang_or_basic() {
    for policy in ["gang=2", "basic", "gang=3"] {
        let mut world = World::parse(&format!(
            "node a cpu=8
             group g {policy}
             pod w x2 group=g cpu=1
             pod held group=g cpu=1 gated"
        ));
        assert_eq!(
            told(&mut world),
            "group default/g (2) waits: waiting for pod held, which scheduling gates hold back\n"
        );
        ungate(&mut world, "held");
        assert_eq!(told(&mut world), "group default/g: held->a w-0->a w-1->a\n");
    }
}

#[test]
fn a_group_that_is_held_does_not_start_where_its_gated_member_has_no_room_later() {
    let mut world = World::parse(RACKS_OF_TWO_AND_FOUR);
    assert_eq!(
        told(&mut world),
        "group default/g (2) waits: waiting for pod held, which scheduling gates hold back\n"
    );
    ungate(&mut world, "held");
    assert_eq!(told(&mut world), "group default/g: held->roomy w-0->roomy w-1->roomy\n");
}

/// The tighter rack takes two, but not the third.
const RACKS_OF_TWO_AND_FOUR: &str = "node tight cpu=2 label:rack=1
     node roomy cpu=4 label:rack=2
     group g gang=2 required:rack
     pod w x2 group=g cpu=1
     pod held group=g cpu=1 gated";

#[test]
fn a_group_that_starts_without_gated_members_goes_where_they_have_room_too() {
    let mut world = World::parse(&RACKS_OF_TWO_AND_FOUR.replace("required", "when-gated=start required"));
    assert_eq!(told(&mut world), "group default/g: w-0->roomy w-1->roomy\n");
    ungate(&mut world, "held");
    assert_eq!(told(&mut world), "group default/g: held->roomy\n");
}

#[test]
fn who_starts_without_gated_members_is_told_that_these_have_no_room() {
    check(
        "node a cpu=2 label:rack=1
         node b cpu=2 label:rack=2
         group g gang=2 required:rack when-gated=start
         pod w x2 group=g cpu=1
         pod held group=g cpu=1 gated",
        expect![[r#"
            group default/g (2) waits: 1, the roomiest of 2 values of rack (2 too small), has room for 2 of 3 members, 1 short; 1 gated member must have room in the same domain; 2 of 3 members fit (most on a: 2), short of 1 cpu; 0/1 nodes are available for one more: 1 Insufficient cpu
        "#]],
    );
}

#[test]
fn without_a_required_domain_gated_members_need_no_room() {
    check(
        "node a cpu=2
         group g gang=2 when-gated=start
         pod w x2 group=g cpu=1
         pod held group=g cpu=1 gated",
        expect![[r#"
            group default/g: w-0->a w-1->a
        "#]],
    );
}

#[test]
fn members_of_a_group_that_runs_are_held_and_those_that_run_stay() {
    let mut world = World::parse(
        "node a cpu=8
         group g gang=2
         pod old x2 group=g cpu=1 on=a
         pod new group=g cpu=1
         pod held group=g cpu=1 gated",
    );
    assert_eq!(
        told(&mut world),
        "group default/g (1) waits: waiting for pod held, which scheduling gates hold back\n"
    );
    ungate(&mut world, "held");
    assert_eq!(told(&mut world), "group default/g: held->a new->a\n");
}

#[test]
fn a_gated_pod_that_has_a_place_or_ends_holds_nobody() {
    check(
        "node a cpu=8
         group g gang=2
         pod placed group=g cpu=1 on=a gated
         pod over group=g cpu=1 phase=Failed gated
         pod dying group=g cpu=1 terminating gated
         pod new group=g cpu=1",
        expect![[r#"
            group default/g: new->a
        "#]],
    );
}

#[test]
fn a_gang_that_has_begun_is_completed_in_spite_of_gated_members() {
    check(
        "node a cpu=8
         group g gang=3
         pod old x2 group=g cpu=1 on=a
         pod new group=g cpu=1
         pod held group=g cpu=1 gated",
        expect![[r#"
            group default/g: new->a
        "#]],
    );
}

#[test]
fn a_gated_member_holds_all_groups_of_its_composite() {
    let text = "node a cpu=8 label:rack=1
         composite top gang=1 required:rack
         group one gang=1 parent=top
         group two gang=1 parent=top
         pod a group=one cpu=1
         pod b group=two cpu=1
         pod held x2 group=two cpu=1 gated";
    let mut world = World::parse(text);
    assert_eq!(
        told(&mut world),
        "composite default/top (2) waits: waiting for pod held-0 and 1 more, which scheduling gates hold back\n"
    );
    ungate(&mut world, "held-0");
    ungate(&mut world, "held-1");
    assert_eq!(told(&mut world), "composite default/top: a->a b->a held-0->a held-1->a\n");
    // The group itself says that the others do not wait.
    let mut world = World::parse(&text.replace("group two gang=1", "group two gang=1 when-gated=start"));
    assert_eq!(told(&mut world), "composite default/top: a->a b->a\n");
    let mut world = World::parse(
        &text.replace("group two gang=1", "group two gang=1 when-gated=start").replace("cpu=8", "cpu=2"),
    );
    let told = told(&mut world);
    assert!(told.starts_with("composite default/top: a->a b->?\n"), "group two has no room: {told}");
    assert!(told.contains("2 gated members must have room in the same domain"), "{told}");
}
