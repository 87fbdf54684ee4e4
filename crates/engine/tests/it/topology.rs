//! Stories about groups that ask for domains, and about composites.

use crate::driver::{World, show};
use expect_test::expect;
use tutti_engine::refusal::{LevelShortage, NoRoom, Scattered};
use tutti_engine::{Decision, Placement, Refusal, Standing, UnitKey};
use tutti_model::ObjectKey;

/// Two blocks of two racks of two nodes; each node has room for 4.
const RACKS: &str = "
    node a1 cpu=4 label:block=1 label:rack=a
    node a2 cpu=4 label:block=1 label:rack=a
    node b1 cpu=4 label:block=1 label:rack=b
    node b2 cpu=4 label:block=1 label:rack=b
    node c1 cpu=4 label:block=2 label:rack=c
    node c2 cpu=4 label:block=2 label:rack=c
    node d1 cpu=4 label:block=2 label:rack=d
    node d2 cpu=4 label:block=2 label:rack=d
";

fn world(more: &str) -> World {
    World::parse(&format!("{RACKS}{more}"))
}

fn only_placement(decisions: &[Decision]) -> &Placement {
    match decisions {
        [Decision::Place(placement)] => placement,
        _ => panic!("one placement was expected:\n{}", show(decisions)),
    }
}

fn why(decisions: &[Decision]) -> NoRoom {
    match decisions {
        [Decision::Wait(waiting)] => match &waiting.refusal {
            Refusal::NoRoom(room) => room.clone(),
            other => panic!("refused for another reason: {other}"),
        },
        _ => panic!("one refusal was expected:\n{}", show(decisions)),
    }
}

/// The values of a label where a group's members are now, each once.
fn values(world: &World, label: &str, group: &str) -> Vec<String> {
    let members =
        world.pods.iter().filter(|pod| pod.group.as_ref().is_some_and(|key| key.name.as_ref() == group));
    let node = |name: &str| world.nodes.iter().find(|node| node.name.as_ref() == name);
    let mut values: Vec<String> = members
        .filter_map(|pod| node(pod.node.as_ref()?))
        .map(|node| node.labels.get(label).unwrap_or("none").to_owned())
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[test]
fn a_required_level_keeps_all_members_in_the_tightest_domain_that_takes_them() {
    let mut world = world(
        "pod old on=c1 cpu=1
         group g gang=7 required:rack
         pod w x7 group=g cpu=1",
    );
    world.settle();
    assert_eq!(values(&world, "rack", "g"), ["c"], "c has room for just 7");
}

#[test]
fn a_domain_too_small_is_refused_with_the_best_domain_and_what_is_missing() {
    let mut world = world(
        "pod old x2 on=a1 cpu=1
         group g gang=9 required:block required:rack
         pod w x9 group=g cpu=1",
    );
    let decisions = world.settle();
    let room = why(&decisions);
    let levels: Vec<_> = room
        .levels
        .iter()
        .map(|level| (level.key.as_ref(), level.domains, level.short, level.best.clone()))
        .collect();
    assert_eq!(
        levels,
        [("block", 2, 0, Some(("2".into(), 16))), ("rack", 4, 4, Some(("1/b".into(), 8)))],
        "a block would do, no rack does"
    );
    expect![[r#"
        group default/g (9) waits: 2, the roomiest of 2 values of block (0 too small), has room for 16 of 9 members; 1/b, the roomiest of 4 values of rack (4 too small), has room for 8 of 9 members, 1 short; 8 of 9 members fit (most on b1: 4), short of 1 cpu; 0/2 nodes are available for one more: 2 Insufficient cpu
    "#]]
    .assert_eq(&show(&decisions));
}

/// What is said about each level: whose it is, its key, how many domains, how many too small, the best and what is needed.
fn shortages(room: &NoRoom) -> Vec<String> {
    let line = |level: &LevelShortage| {
        let whose = level.group.as_deref().map_or_else(String::new, |group| format!("{group}: "));
        let best =
            level.best.as_ref().map_or_else(|| "none".to_owned(), |(name, room)| format!("{name} {room}"));
        format!(
            "{whose}{} {}/{} short, best {best} of {}",
            level.key, level.short, level.domains, level.needed
        )
    };
    room.levels.iter().map(line).collect()
}

#[test]
fn a_mixed_gang_learns_of_every_level_that_it_requires() {
    let mut world = world(
        "group g gang=10 required:block required:rack
         pod w x9 group=g cpu=1
         pod big group=g cpu=4",
    );
    assert_eq!(
        shortages(&why(&world.settle())),
        ["block 0/2 short, best 1 10 of 10", "rack 4/4 short, best 1/a 9 of 10"],
        "each kind by itself"
    );
}

#[test]
fn a_composite_learns_of_every_level_of_every_part_of_it() {
    let mut world = world(
        "composite top gang=2 required:block
         composite inner parent=top gang=2
         group l parent=inner gang=9 required:rack
         group r parent=inner gang=4 required:rack
         group side parent=top gang=1 preferred:rack
         pod l x9 group=l cpu=1
         pod r x4 group=r cpu=1
         pod s group=side cpu=1",
    );
    assert_eq!(
        shortages(&why(&world.settle())),
        [
            "top: block 0/2 short, best 1 14 of 14",
            "l: rack 4/4 short, best a 8 of 9",
            "r: rack 0/4 short, best a 4 of 4",
        ]
    );
}

#[test]
fn members_that_run_pin_the_domain() {
    let mut world = world(
        "group g gang=1 required:rack
         pod first on=d1 group=g cpu=1
         pod w x7 group=g cpu=1",
    );
    world.settle();
    assert_eq!(values(&world, "rack", "g"), ["d"]);
    world.add("pod late group=g cpu=1");
    let room = why(&world.settle());
    assert!(room.levels[0].is_pinned);
    let text = room.to_string();
    assert!(
        text.starts_with("d, the rack where members run, has room for 0 of 1 members, 1 short"),
        "{text}"
    );
}

#[test]
fn nodes_without_the_label_are_no_domain() {
    let mut world = World::parse(
        "node big cpu=64
         node small cpu=2 label:rack=a
         group g gang=3 required:rack
         pod w x3 group=g cpu=1",
    );
    let room = why(&world.settle());
    assert_eq!(room.levels[0].best, Some(("a".into(), 2)));
    world.add("node small cpu=3 label:rack=a");
    only_placement(&world.settle());
}

#[test]
fn when_running_members_straddle_domains_new_ones_go_where_most_are_and_it_is_said() {
    let mut world = world(
        "group g gang=1 required:rack
         pod x on=a1 group=g cpu=1
         pod y x2 on=b1 group=g cpu=1
         pod w x2 group=g cpu=1",
    );
    let decisions = world.settle();
    let placement = only_placement(&decisions);
    assert!(placement.seats.iter().all(|seat| seat.node.starts_with('b')), "{placement:?}");
    let said = placement.groups[0].scattered.as_ref().map(ToString::to_string);
    let expected = "running members are not in one domain of rack: 1 in a, 2 in b";
    assert_eq!(said.as_deref(), Some(expected));
}

#[test]
fn where_most_are_but_no_room_is_the_next_best_domain_takes_new_members() {
    let mut world = world(
        "group g gang=1 required:rack
         pod x on=a1 group=g cpu=1
         pod y x8 on=b1 group=g
         pod full1 on=b1 cpu=4
         pod full2 on=b2 cpu=4
         pod w x2 group=g cpu=1",
    );
    let decisions = world.settle();
    assert!(only_placement(&decisions).seats.iter().all(|seat| seat.node.starts_with('a')));
}

#[test]
fn running_members_on_nodes_without_the_label_do_not_stop_new_ones() {
    let mut world = world(
        "node stray cpu=4
         group g gang=1 required:rack
         pod x on=stray group=g cpu=1
         pod w x2 group=g cpu=1",
    );
    let decisions = world.settle();
    let placement = only_placement(&decisions);
    let scattered = Scattered { key: "rack".into(), domains: vec![], outside: 1 };
    assert_eq!(placement.groups[0].scattered, Some(scattered));
    assert_eq!(values(&world, "rack", "g").len(), 2, "none, and one rack");
}

#[test]
fn a_preferred_level_is_met_if_possible_and_given_up_if_not() {
    let mut world = world(
        "group fits gang=8 required:block preferred:rack
         pod f x8 group=fits cpu=1
         group wide gang=9 required:block preferred:rack
         pod w x9 group=wide cpu=1
         group huge gang=9 preferred:rack
         pod h x9 group=huge cpu=1",
    );
    world.settle();
    assert_eq!(values(&world, "rack", "fits").len(), 1);
    assert_eq!(values(&world, "block", "wide").len(), 1);
    assert_eq!(values(&world, "rack", "wide").len(), 2, "as few racks as possible");
    assert_eq!(values(&world, "rack", "huge").len(), 2);
}

#[test]
fn slices_are_not_torn_apart() {
    let mut world = World::parse(
        "node a cpu=3 label:host=a label:rack=1
         node b cpu=3 label:host=b label:rack=1
         node c cpu=2 label:host=c label:rack=2
         group g gang=4 required:rack slices:host:2
         pod w x4 group=g cpu=1",
    );
    let decisions = world.settle();
    let seats = &only_placement(&decisions).seats;
    let on = |node: &str| seats.iter().filter(|seat| seat.node.as_ref() == node).count();
    assert_eq!((on("a"), on("b")), (2, 2), "three and one would tear a slice apart");
}

#[test]
fn ranks_tell_which_members_are_a_slice_and_who_replaces_a_member_joins_its_slice() {
    let mut world = World::parse(
        "node a cpu=2 label:host=a
         node b cpu=2 label:host=b
         node c cpu=4 label:host=c
         group g gang=4 slices:host:2
         pod w x4 group=g cpu=1 ranked",
    );
    world.settle();
    let node_of = |world: &World, name: &str| world.pod(name).node.unwrap();
    assert_eq!(node_of(&world, "w-0"), node_of(&world, "w-1"));
    assert_eq!(node_of(&world, "w-2"), node_of(&world, "w-3"));
    let home = node_of(&world, "w-3");
    let key = world.pod("w-2").key;
    world.remove_pod(&key);
    world.add("pod again group=g cpu=1 rank=2");
    world.settle();
    assert_eq!(node_of(&world, "again"), home);
}

#[test]
fn a_slice_whose_rack_is_full_does_not_keep_another_one_waiting() {
    let mut world = World::parse(
        "node full cpu=4 label:rack=a
         node free cpu=3 label:rack=b
         group g gang=1 slices:rack:2
         pod g-1 group=g cpu=4 rank=1 on=full
         pod g-0 group=g cpu=3 rank=0
         pod g-2 group=g cpu=3 rank=2",
    );
    world.settle();
    assert_eq!(
        world.pod("g-2").node.as_deref(),
        Some("free"),
        "the slice of ranks 2 and 3 has room in rack b"
    );
}

#[test]
fn neighbours_in_rank_are_near_each_other() {
    let mut world = world(
        "group g gang=12 required:block preferred:rack
         pod w x12 group=g cpu=1 ranked",
    );
    world.settle();
    let rack = |rank: u32| {
        let node = world.pod(&format!("w-{rank}")).node.unwrap();
        node.chars().next().unwrap()
    };
    let changes = (1..12).filter(|&rank| rack(rank - 1) != rack(rank)).count();
    assert_eq!(changes, 1, "two racks, and the ranks change over once");
}

#[test]
fn a_leader_is_with_the_first_slice_and_does_not_count_to_it() {
    let mut world = World::parse(
        "node a cpu=2 label:host=a
         node b cpu=3 label:host=b
         group g gang=5 slices:host:2
         pod w x4 group=g cpu=1 ranked
         pod boss group=g cpu=1 leader",
    );
    world.settle();
    assert_eq!(world.pod("boss").node.as_deref(), Some("b"));
    assert_eq!(world.pod("w-0").node.as_deref(), Some("b"));
    assert_eq!(world.pod("w-3").node.as_deref(), Some("a"));
}

#[test]
fn groups_of_a_composite_are_not_placed_greedily_one_after_the_other() {
    // Whoever takes the large rack first leaves no place for the other.
    let mut world = World::parse(
        "node large cpu=4 label:rack=large
         node small cpu=2 label:rack=small
         composite job gang=2
         group a parent=job gang=2 required:rack
         group b parent=job gang=4 required:rack
         pod a x2 group=a cpu=1
         pod b x4 group=b cpu=1",
    );
    let decisions = world.settle();
    assert_eq!(only_placement(&decisions).seats.len(), 6);
    assert_eq!(
        (values(&world, "rack", "a"), values(&world, "rack", "b")),
        (vec!["small".into()], vec!["large".into()])
    );
}

#[test]
fn a_composite_starts_with_some_of_its_groups_and_the_rest_follows_where_it_must() {
    let mut world = world(
        "composite job gang=1 required:block
         group a parent=job gang=4 required:rack
         group b parent=job gang=12 required:rack
         pod a x4 group=a cpu=1
         pod b x12 group=b cpu=1
         group late parent=job gang=4 required:rack",
    );
    let decisions = world.settle();
    let [Decision::Place(placement), Decision::Wait(waiting)] = &decisions[..] else {
        panic!("{}", show(&decisions));
    };
    let standing = |name: &str, groups: &[Standing]| {
        let found = groups.iter().find(|standing| standing.group.object().name.as_ref() == name);
        found.map(|standing| (standing.placed, standing.minimum))
    };
    assert_eq!(placement.unit, UnitKey::Composite(ObjectKey::new("default", "job")));
    assert_eq!(standing("job", &placement.groups), Some((1, 1)));
    assert_eq!(standing("a", &placement.groups), Some((4, 4)));
    assert_eq!(standing("b", &placement.groups), Some((0, 12)));
    assert_eq!(standing("late", &waiting.groups), Some((0, 4)));
    let block = values(&world, "block", "a");
    world.add("pod late x4 group=late cpu=1");
    world.settle();
    assert_eq!(values(&world, "block", "late"), block, "members that run pin the block of all");
    assert!(values(&world, "block", "b").is_empty());
}

#[test]
fn a_composite_waits_for_as_many_groups_as_it_needs() {
    let mut world = world(
        "composite job gang=2
         group a parent=job gang=1
         pod a group=a cpu=1",
    );
    let told = show(&world.settle());
    assert_eq!(
        told,
        "composite default/job (1) waits: waiting for groups: 2 must start together and 1 have their members\n"
    );
    world.add("group b parent=job gang=2\npod b0 group=b cpu=1");
    let told = show(&world.settle());
    assert!(told.contains("(2) waits: waiting for groups: 2 must start together and 1 have"), "{told}");
    world.add("pod b1 group=b cpu=1");
    assert_eq!(only_placement(&world.settle()).seats.len(), 3);
}

#[test]
fn a_group_whose_composite_was_not_seen_waits_for_it_and_a_circle_is_an_error() {
    let mut world = world("group a parent=job gang=1\npod a group=a cpu=1");
    assert!(show(&world.settle()).contains("waiting for composite pod group default/job to be created"));
    world.add("composite job parent=job");
    assert!(show(&world.settle()).contains("composite default/job is its own ancestor"));
    world.add("composite job");
    only_placement(&world.settle());
}

#[test]
fn children_of_a_composite_keep_away_from_each_other() {
    let mut world = world(
        "composite job gang=2 spread:block:1
         group a parent=job gang=2
         group b parent=job gang=2
         pod a x2 group=a cpu=1
         pod b x2 group=b cpu=1
         group c parent=job gang=1
         pod c group=c cpu=1",
    );
    world.settle();
    let (a, b) = (values(&world, "block", "a"), values(&world, "block", "b"));
    assert_eq!((a.len(), b.len()), (1, 1));
    assert_ne!(a, b);
    assert!(values(&world, "block", "c").is_empty(), "there is no third block");
}

#[test]
fn a_mixed_gang_finds_the_only_rack_that_takes_it() {
    let mut world = world(
        "pod old on=a1 cpu=1
         pod old2 on=b1 cpu=1
         pod old3 on=c2 cpu=1
         group g gang=4 required:rack
         pod big x2 group=g cpu=3
         pod small x2 group=g cpu=1",
    );
    world.settle();
    assert_eq!(values(&world, "rack", "g"), ["d"]);
}

#[test]
fn a_large_tree_is_built_and_a_larger_one_is_refused_with_proof() {
    let nodes: String =
        (0..40).map(|n| format!("node n{n:02} cpu=8 label:rack={} label:host=n{n:02}\n", n / 4)).collect();
    let tree = |groups: u32, size: u32| {
        let mut text = format!("{nodes}composite job gang={groups}\n");
        for group in 0..groups {
            text += &format!("group g{group} parent=job gang={size} required:rack slices:host:8\n");
            text += &format!("pod g{group} x{size} group=g{group} cpu=1\n");
        }
        World::parse(&text)
    };
    let decisions = tree(10, 32).settle();
    assert_eq!(only_placement(&decisions).seats.len(), 320, "every seat is needed");
    let room = why(&tree(2, 33).settle());
    assert_eq!(room.levels.len(), 2);
    assert_eq!((room.levels[0].domains, room.levels[0].short), (10, 10));
}

#[test]
fn a_tree_of_many_groups_with_volumes_is_placed_where_there_is_plenty_of_room() {
    let mut world = World::parse(
        "class local wait
         node a x28 cpu=4 label:zone=a
         node b x28 cpu=4 label:zone=b
         volume va x8 class=local size=1 reach:zone=a
         composite top gang=3
         composite inner parent=top gang=2
         group g0 parent=top gang=1
         group g1 parent=top gang=2
         group g2 parent=top gang=2
         group g3 parent=top gang=2
         group ig0 parent=inner gang=1
         group ig1 parent=inner basic
         group ig2 parent=inner gang=4
         claim c0 x2 class=local size=1
         pod g0 x2 group=g0 cpu=1 claim:c0-*
         pod g1 x2 group=g1 cpu=1
         pod ig0 group=ig0 cpu=2
         pod ig1 x3 group=ig1 cpu=1 select:zone=b",
    );
    let decisions = world.settle();
    assert!(
        matches!(&decisions[..], [Decision::Place(placement)] if placement.seats.len() == 8),
        "{}",
        show(&decisions)
    );
}

#[test]
fn of_racks_that_would_leave_equal_room_the_fuller_one_by_fraction_is_chosen() {
    // Four seats are free in each: b is three quarters full, a half, c not at all, and d is fullest but has more room.
    let racks = "node a cpu=8 label:rack=a
         node b cpu=16 label:rack=b
         node c cpu=4 label:rack=c
         node d cpu=64 label:rack=d
         pod of-a x4 on=a cpu=1
         pod of-b x12 on=b cpu=1
         pod of-d x59 on=d cpu=1
         group g gang=2 required:rack";
    for members in ["pod w x2 group=g cpu=1", "pod w group=g cpu=1\npod v group=g cpu=1 tolerate:x"] {
        let mut world = World::parse(&format!("{racks}\n{members}"));
        let decisions = world.settle();
        let [Decision::Place(placement)] = &decisions[..] else { panic!("{}", show(&decisions)) };
        assert!(placement.seats.iter().all(|seat| seat.node.as_ref() == "b"), "{}", show(&decisions));
    }
    // In slices, too.
    let sliced = racks.replace("required:rack", "required:rack slices:rack:2");
    let mut world = World::parse(&format!("{sliced}\npod w x2 group=g cpu=1"));
    assert_eq!(show(&world.settle()), "group default/g: w-0->b w-1->b\n");
}
