//! Every question is answered within the budget, and no refusal contradicts itself.

use crate::driver::{World, show};
use crate::hostile::hostile_instance;
use crate::random_trees::{composite_instance, group_instance};
use tutti_engine::refusal::NoRoom;
use tutti_engine::{Decision, Refusal};
use tutti_model::scenario::Scenario;

const INSTANCES: u64 = 400;

/// What is wrong with what a refusal says, as far as it can be told without solving.
fn contradiction(room: &NoRoom, scenario: &Scenario) -> Option<String> {
    let what = |is_wrong: bool, what: &str| is_wrong.then(|| format!("{what}: {room}"));
    let most = room.roomiest.as_ref().map_or(0, |(_, members)| *members);
    let is_one_group = room.levels.iter().all(|level| level.group.is_none());
    let nowhere = room.levels.iter().any(|level| level.best.is_none());
    let labelled = room.levels.iter().filter(|level| level.best.is_none()).find_map(|level| {
        let has_all =
            |node: &&tutti_model::Node| level.missing_labels.iter().all(|key| node.labels.get(key).is_some());
        scenario
            .nodes
            .iter()
            .find(has_all)
            .map(|node| format!("{} has {:?}", node.name, level.missing_labels))
    });
    let smallest = room.levels.iter().filter_map(|level| Some(level.best.as_ref()?.1)).min();
    labelled
        .or_else(|| what(room.fit >= room.needed, "as many fit as are needed"))
        .or_else(|| what(most > room.fit, "more fit on one node than in all"))
        .or_else(|| what(is_one_group && nowhere && room.fit > 0, "members fit where there is no domain"))
        .or_else(|| {
            let has_slices = scenario.groups.iter().any(|group| group.topology.slices.is_some());
            let is_too_much = smallest.is_some_and(|smallest| room.fit > smallest);
            what(is_one_group && !has_slices && is_too_much, "more fit than in the best domain")
        })
        .or_else(|| what((room.nodes == 0) != scenario.nodes.is_empty() && room.levels.is_empty(), "nodes"))
}

fn answer(seed: u64, text: &str) -> (u32, u32, u32) {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    let mut world = World::new(&scenario);
    world.story = format!("seed {seed}\n{text}");
    let (mut placed, mut refused, mut open) = (0, 0, 0);
    for decision in world.settle() {
        match &decision {
            Decision::Place(_) => placed += 1,
            Decision::Wait(waiting) => {
                let room = match &waiting.refusal {
                    Refusal::NoRoom(room) => room,
                    Refusal::Undecided(room) => room,
                    _ => continue,
                };
                let is_open = matches!(waiting.refusal, Refusal::Undecided(_));
                (refused, open) = (refused + u32::from(!is_open), open + u32::from(is_open));
                if let Some(what) = contradiction(room, &scenario) {
                    panic!("seed {seed}: {what}\n{}\n{text}", show(&[decision]));
                }
            }
            Decision::More | Decision::Idle { .. } => {}
        }
    }
    let (spent, most) = world.engine.steps_max();
    assert!(spent <= most, "seed {seed}: {spent} of {most} steps\n{text}");
    (placed, refused, open)
}

#[test]
fn hostile_questions_are_answered_within_the_budget_and_without_contradictions() {
    let mut seen = (0, 0, 0);
    for seed in 1..=INSTANCES {
        let (placed, refused, open) = answer(seed, &hostile_instance(seed));
        seen = (seen.0 + placed, seen.1 + refused, seen.2 + open);
    }
    let some = (INSTANCES / 6) as u32;
    assert!(seen.0 > some && seen.1 > some && seen.2 < some, "placed, refused, open: {seen:?}");
}

#[test]
fn refusals_of_small_trees_do_not_contradict_themselves() {
    for seed in 1..=2_000 {
        answer(seed, &group_instance(seed));
        answer(seed, &composite_instance(seed));
    }
}

fn big(nodes: u32) -> String {
    (0..nodes)
        .map(|n| format!("node n{n:04} cpu=64 gpu=8 label:host=n{n:04} label:rack=r{:03}\n", n / 8))
        .collect()
}

fn placed(world: &mut World) -> usize {
    let seats = |decision: &Decision| match decision {
        Decision::Place(placement) => placement.seats.len(),
        _ => 0,
    };
    world.settle().iter().map(seats).sum()
}

#[test]
fn slices_without_ranks_are_placed_however_many_domains_there_are() {
    for (nodes, members) in [(500, 16), (40, 64), (2_000, 256)] {
        let text =
            format!("{}group g gang={members} slices:host:8\npod w x{members} group=g gpu=1\n", big(nodes));
        assert_eq!(placed(&mut World::parse(&text)), members, "{members} on {nodes} nodes");
    }
}

#[test]
fn slices_of_mixed_members_are_placed_on_many_nodes() {
    let members = "pod a x16 group=g gpu=1\npod b x16 group=g gpu=1 cpu=1\n";
    let text = format!("{}group g gang=32 slices:host:8\n{members}", big(200));
    assert_eq!(placed(&mut World::parse(&text)), 32);
}

#[test]
fn whole_slices_go_to_tight_domains_and_the_rest_where_it_just_fits() {
    let mut world = World::parse(
        "node a cpu=16 label:host=a
         node b cpu=8 label:host=b
         node c cpu=5 label:host=c
         group g gang=13 slices:host:8
         pod w x13 group=g cpu=1",
    );
    world.settle();
    let on = |node: &str| world.pods.iter().filter(|pod| pod.node.as_deref() == Some(node)).count();
    assert_eq!((on("a"), on("b"), on("c")), (0, 8, 5));
}

#[test]
fn a_slice_that_runs_in_part_is_completed_where_it_is() {
    let mut world = World::parse(
        "node a cpu=16 label:host=a
         node b cpu=16 label:host=b
         group g gang=4 slices:host:4
         pod r x3 group=g cpu=1 on=b
         pod w x5 group=g cpu=1",
    );
    world.settle();
    let on = |node: &str| world.pods.iter().filter(|pod| pod.node.as_deref() == Some(node)).count();
    assert!(on("b") >= 4, "the slice of b was not completed");
    assert_eq!(on("a") + on("b"), 8);
}

#[test]
fn too_few_whole_slices_are_refused_with_how_many_members_fit() {
    let mut world = World::parse(
        "group g gang=16 slices:kubernetes.io/hostname:8
         pod w x16 group=g cpu=1",
    );
    for at in 0..5 {
        world.add(&format!("node n-{at} cpu=4 label:kubernetes.io/hostname=n-{at}"));
    }
    let text = show(&world.settle());
    assert!(text.contains("has room for 4 of 8 members, 4 short; 4 of 16 members fit"), "{text}");
}

/// Four groups that prefer a rack, and one whose required key is a typo.
fn typo(minimum: u32) -> String {
    let mut text: String = (0..24)
        .map(|n| {
            format!("node n{n:02} cpu=4 label:host=n{n:02} label:rack=r{} label:block=b{}\n", n / 4, n / 12)
        })
        .collect();
    text += &format!("composite job gang={minimum}\n");
    for group in 0..4 {
        text += &format!(
            "group g{group} parent=job gang=4 preferred:rack\npod g{group} x4 group=g{group} cpu=1\n"
        );
    }
    text + "group services parent=job gang=4 required:blokc\npod s x4 group=services cpu=1\n"
}

#[test]
fn a_required_key_that_no_node_has_is_refused_by_name() {
    let mut world = World::parse(&typo(5));
    let text = show(&world.settle());
    assert!(text.contains("services: no node has the label blokc; "), "{text}");
    assert!(!text.contains("though one may exist"), "{text}");
    let (spent, most) = world.engine.steps_max();
    assert!(spent < most / 5, "{spent} of {most} steps");
}

#[test]
fn a_group_whose_key_no_node_has_does_not_keep_its_siblings_from_starting() {
    let mut world = World::parse(&typo(4));
    assert_eq!(placed(&mut world), 16);
}

#[test]
fn a_refusal_says_that_a_label_is_on_no_node_and_claims_no_room_there() {
    let mut world = World::parse(
        "node services-0 cpu=4
         group g gang=4 required:block
         pod w x3 group=g cpu=1
         pod big group=g cpu=2",
    );
    let text = show(&world.settle());
    assert!(
        text.contains("no node has the label block; 0 of 4 members fit; 0/1 nodes are available"),
        "{text}"
    );
    let mut world = World::parse(
        "node a cpu=4 label:rack=1
         node b cpu=4 label:block=1
         group g gang=4 required:block required:rack
         pod w x4 group=g cpu=1",
    );
    let text = show(&world.settle());
    assert!(text.contains("no node has the labels block and rack; "), "{text}");
}
