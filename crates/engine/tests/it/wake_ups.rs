//! Nothing that could be placed is asleep, and nobody is woken for nothing.

use crate::driver::{World, show};
use crate::history::{History, Mix, STEPS};
use tutti_engine::Decision;

/// Whatever an engine without a past would place is placed already.
fn assert_nobody_placeable_sleeps(world: &World, moment: &str) {
    let mut missed = world.told_anew().settle();
    missed.retain(|decision| matches!(decision, Decision::Place(_)));
    assert!(missed.is_empty(), "{moment}: asleep but placeable:\n{}\n{}", show(&missed), world.story);
}

/// Goes through random histories; tells how many units were placed.
fn live_through(mix: Mix, seeds: u64) -> usize {
    let mut placements = 0;
    for seed in 0..seeds {
        let mut history = History::new(seed, mix);
        let mut world = history.begin();
        for step in 0..STEPS {
            let decisions = history.step(&mut world);
            placements += decisions.iter().filter(|d| matches!(d, Decision::Place(_))).count();
            assert_nobody_placeable_sleeps(&world, &format!("{mix:?} seed {seed} step {step}"));
        }
    }
    placements
}

#[test]
fn after_every_event_of_a_random_history_nothing_placeable_is_asleep() {
    let placements = live_through(Mix::Resources, 300);
    assert!(placements > 1_500, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_pods_with_terms_about_each_other() {
    let placements = live_through(Mix::Terms, 300);
    assert!(placements > 1_500, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_groups_that_ask_for_domains() {
    let placements = live_through(Mix::Domains, 200);
    assert!(placements > 700, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_composites() {
    let placements = live_through(Mix::Composites, 150);
    assert!(placements > 400, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_pods_with_volumes() {
    let placements = live_through(Mix::Storage, 300);
    assert!(placements > 700, "the history must be eventful: {placements}");
}

#[test]
fn a_nominated_pod_is_woken_when_its_node_becomes_usable() {
    let mut world = World::parse(
        "node a cpu=7 cordoned
         pod p cpu=3 nominated=a",
    );
    assert!(matches!(world.settle()[..], [Decision::Wait(_)]));
    // Two are free beside what is kept for the pod itself: fewer than before, and no more copies.
    world.add("node a cpu=5");
    assert_eq!(show(&world.settle()), "pod default/p: p->a\n");
}

#[test]
fn labels_of_a_namespace_wake_whoever_looks_for_its_pods() {
    let mut world = World::parse(
        "node a cpu=4 label:zone=1
         node b cpu=4 label:zone=2
         pod db namespace=team label:app=db on=a cpu=1
         pod web cpu=1 affinity:zone:app=db@trusted=yes",
    );
    assert!(matches!(world.settle()[..], [Decision::Wait(_)]));
    world.add("namespace team label:trusted=yes");
    assert_eq!(show(&world.settle()), "pod default/web: web->a\n");
}

#[test]
fn labels_of_a_namespace_wake_whoever_its_pods_kept_away() {
    let mut world = World::parse(
        "namespace team label:trusted=no
         node a cpu=4 label:zone=1
         pod db namespace=team label:app=db on=a cpu=1
         pod web cpu=1 anti-affinity:zone:app=db@trusted=no",
    );
    assert!(matches!(world.settle()[..], [Decision::Wait(_)]));
    world.add("namespace team label:trusted=yes");
    assert_eq!(show(&world.settle()), "pod default/web: web->a\n");
}

#[test]
fn an_event_that_cannot_help_wakes_nobody() {
    let mut world = World::parse(
        "node a cpu=4 gpu=1
         node b cpu=4 cordoned
         pod old on=a cpu=1 gpu=1
         group g gang=2
         pod w x2 group=g gpu=1 cpu=1",
    );
    assert!(matches!(world.settle()[..], [Decision::Wait(_)]));
    world.add("node a cpu=4 gpu=1 label:touched=yes");
    world.add("node b cpu=16 cordoned");
    world.add("node c cpu=64");
    world.add("pod other on=c cpu=1");
    let other = world.pod("other").key;
    world.remove_pod(&other);
    let old = world.pod("old");
    world.set_pod(old);
    assert_eq!(world.engine.attempts_count(), 1, "only the first attempt was needed");
    world.add("node c cpu=64 gpu=2");
    assert!(matches!(world.settle()[..], [Decision::Place(_)]));
}

#[test]
fn scraps_that_complete_a_mixed_gang_wake_it() {
    // Four CPUs take a 2 or a 3 but not both; five take both, though neither fits more often than before.
    let mut world = World::parse(
        "node a cpu=4
         group g gang=2
         pod two group=g cpu=2
         pod three group=g cpu=3",
    );
    assert!(matches!(world.settle()[..], [Decision::Wait(_)]));
    world.add("node a cpu=5");
    assert!(matches!(world.settle()[..], [Decision::Place(_)]));
}

#[test]
fn a_member_that_comes_later_learns_the_reason_too() {
    let mut world = World::parse(
        "node a gpu=1
         group g gang=2
         pod w x2 group=g gpu=1",
    );
    assert_eq!(world.settle().len(), 1);
    world.add("pod late group=g gpu=1");
    let told = show(&world.settle());
    assert!(told.contains("(3) waits: 1 of 2 members fit"), "{told}");
}

#[test]
fn a_reason_is_told_again_only_when_it_changes() {
    let mut world = World::parse(
        "node a gpu=1
         group g gang=4
         pod w x4 group=g gpu=1",
    );
    assert_eq!(world.settle().len(), 1);
    world.add("node b gpu=2");
    assert!(world.settle().is_empty(), "3 of 4 instead of 1 of 4 calls for no other action");
    let solves = world.engine.solves_count();
    world.now = world.now.plus_seconds(600);
    let told = show(&world.settle());
    assert!(told.contains("3 of 4 members fit"), "numbers are refreshed now and then: {told}");
    assert_eq!(world.engine.solves_count(), solves + 1);
    world.remove_node("b");
    assert!(world.settle().is_empty(), "losing room wakes nobody");
    world.add("node a gpu=1 cordoned");
    world.now = world.now.plus_seconds(600);
    let told = show(&world.settle());
    assert!(told.contains("1 cordoned"), "another reason is reported: {told}");
}
