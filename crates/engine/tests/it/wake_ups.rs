//! Nothing that could be placed is asleep, and nobody is woken for nothing.

use crate::driver::{World, show};
use crate::random::{Dice, node, requirements, wishes};
use crate::random_trees;
use tutti_engine::{Config, Decision, Engine, Event, HeldSeat, Hold, HoldReason, UnitKey};
use tutti_model::Phase;

/// An engine that has seen the same cluster, was told of the same promises, and sleeps on nothing.
fn from_scratch(world: &World) -> Vec<Decision> {
    let mut fresh = World { engine: Engine::new(Config::default()), ..world.clone() };
    for node in &world.nodes {
        fresh.engine.apply(Event::NodeSet(Box::new(node.clone())), world.now);
    }
    for group in &world.groups {
        fresh.engine.apply(Event::GroupSet(Box::new(group.clone())), world.now);
    }
    for event in Event::of_storage(&world.storage) {
        fresh.engine.apply(event, world.now);
    }
    for composite in &world.composites {
        fresh.engine.apply(Event::CompositeSet(Box::new(composite.clone())), world.now);
    }
    for pod in &world.pods {
        fresh.engine.apply(Event::PodSet(Box::new(pod.clone())), world.now);
    }
    for hold in world.engine.holds() {
        fresh.engine.apply(Event::Hold(Box::new(hold)), world.now);
    }
    fresh.settle()
}

/// Whatever an engine without a past would place is placed already.
pub(crate) fn assert_nobody_placeable_sleeps(world: &World, moment: &str) {
    let mut missed = from_scratch(world);
    missed.retain(|decision| matches!(decision, Decision::Place(_)));
    assert!(missed.is_empty(), "{moment}: asleep but placeable:\n{}", show(&missed));
}

/// Seats for a group on some node.
fn random_hold(dice: &mut Dice, world: &World, group: &tutti_model::Group) -> Hold {
    let mut requests = tutti_model::ResourceList::new();
    requests.set(tutti_model::Resource::new("cpu"), 1000 * dice.roll(0, 4) as i64);
    Hold {
        unit: UnitKey::Group(group.key.clone()),
        priority: dice.roll(0, 2) as i32,
        expires: Some(world.now.plus_seconds(dice.roll(1, 8) as i64)),
        reason: HoldReason::Told,
        seats: vec![HeldSeat {
            node: format!("n{}", dice.roll(0, 4)).into(),
            requests,
            count: dice.roll(1, 2) as u32,
        }],
    }
}

#[test]
fn after_every_event_of_a_random_history_nothing_placeable_is_asleep() {
    let placements = live_through(300, node, |dice, step| group(dice, step, "", requirements));
    assert!(placements > 1_500, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_pods_with_wishes_about_each_other() {
    let ask = |dice: &mut Dice| format!("cpu={}{}", dice.roll(0, 3), wishes(dice, 3));
    let placements = live_through(300, node, |dice, step| group(dice, step, "", ask));
    assert!(placements > 1_500, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_groups_that_ask_for_domains() {
    let placements = live_through(150, random_trees::node, |dice, step| {
        let asks = random_trees::asks(dice, 1);
        group(dice, step, asks.trim_start_matches("gang=1"), |dice| format!("cpu={}", dice.roll(0, 3)))
    });
    assert!(placements > 700, "the history must be eventful: {placements}");
}

#[test]
fn the_same_holds_for_composites() {
    let placements = live_through(100, random_trees::node, |dice, step| {
        let (minimum, priority) = (dice.roll(1, 2), dice.roll(0, 2));
        let mut text = format!("composite c{step} gang={minimum} priority={priority} required:block\n");
        for child in 0..2 {
            let minimum = dice.roll(1, 2);
            let asks = random_trees::asks(dice, minimum);
            text += &format!("group g{step}-{child} parent=c{step} {asks}\n");
            for member in 0..dice.roll(1, 2) {
                let words = format!("group=g{step}-{child} priority={priority} cpu={}", dice.roll(0, 3));
                text += &format!("pod p{step}-{child}-{member} {words}\n");
            }
        }
        text
    });
    assert!(placements > 400, "the history must be eventful: {placements}");
}

/// A gang that asks for this, with members that ask for that.
fn group(dice: &mut Dice, step: u64, asks: &str, ask: impl Fn(&mut Dice) -> String) -> String {
    let (minimum, priority) = (dice.roll(1, 3), dice.roll(0, 2));
    let mut text = format!("group g{step} gang={minimum} priority={priority}{asks}\n");
    for member in 0..dice.roll(1, 4) {
        text += &format!("pod p{step}-{member} group=g{step} priority={priority} {}\n", ask(dice));
    }
    text
}

/// Goes through random histories of nodes and units like these; tells how many units were placed.
fn live_through(
    seeds: u64,
    node: impl Fn(&mut Dice, &str) -> String,
    unit: impl Fn(&mut Dice, u64) -> String,
) -> usize {
    let mut placements = 0;
    for seed in 0..seeds {
        let mut dice = Dice::new(seed + 77);
        let mut world = World::parse("");
        for step in 0..40 {
            world.now = world.now.plus_seconds(1);
            match dice.roll(0, 8) {
                0 | 1 => {
                    let name = format!("n{}", dice.roll(0, 4));
                    world.add(&node(&mut dice, &name));
                }
                2 => world.remove_node(&format!("n{}", dice.roll(0, 4))),
                3 | 4 => {
                    let text = unit(&mut dice, step);
                    world.add(&text);
                }
                7 if !world.groups.is_empty() => {
                    let at = dice.roll(0, world.groups.len() as u64 - 1) as usize;
                    let hold = random_hold(&mut dice, &world, &world.groups[at]);
                    world.engine.apply(Event::Hold(Box::new(hold)), world.now);
                }
                _ if world.pods.is_empty() => {}
                5 => {
                    let at = dice.roll(0, world.pods.len() as u64 - 1) as usize;
                    let key = world.pods[at].key.clone();
                    world.remove_pod(&key);
                }
                _ => {
                    let at = dice.roll(0, world.pods.len() as u64 - 1) as usize;
                    let mut pod = world.pods[at].clone();
                    pod.phase = if dice.once_in(2) { Phase::Succeeded } else { Phase::Failed };
                    world.set_pod(pod);
                }
            }
            placements += world.settle().iter().filter(|d| matches!(d, Decision::Place(_))).count();
            assert_nobody_placeable_sleeps(&world, &format!("seed {seed} step {step}"));
        }
    }
    placements
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
