//! Small work may pass a gang that has no room, but not for ever.

use crate::driver::World;
use tutti_engine::{Decision, HoldReason, UnitKey};
use tutti_model::{ObjectKey, Time};

/// The default of the engine.
const PATIENCE_SECONDS: i64 = 1_800;
/// For how long a plan holds room.
const PLAN_SECONDS: i64 = 1_800;

fn wait(world: &mut World, seconds: i64) -> Vec<Decision> {
    world.now = world.now.plus_seconds(seconds);
    world.settle()
}

fn finish(world: &mut World, name: &str) {
    let key = world.pod(name).key;
    world.remove_pod(&key);
}

fn node_of(world: &World, name: &str) -> Option<String> {
    world.pod(name).node.map(|node| node.to_string())
}

/// Nodes on which something is kept for a group.
fn kept_for(world: &World, group: &str) -> Vec<String> {
    let unit = UnitKey::Group(ObjectKey::new("default", group));
    let holds = world.engine.holds();
    let own = holds.iter().filter(|hold| hold.unit == unit && hold.reason == HoldReason::Planned);
    own.flat_map(|hold| hold.seats.iter().map(|seat| seat.node.to_string())).collect()
}

/// Two nodes of which half is used, and a gang that needs both whole.
const CROWDED: &str = "
    node a cpu=4
    node b cpu=4
    pod old-a cpu=2 on=a
    pod old-b cpu=2 on=b
    group g gang=2
    pod w x2 group=g cpu=4
";

fn crowded() -> World {
    crowded_with("")
}

fn crowded_with(more: &str) -> World {
    let mut world = World::parse(&format!("{CROWDED}{more}"));
    world.settle();
    world
}

#[test]
fn small_work_passes_a_gang_only_for_so_long() {
    let mut world = crowded();
    world.add("pod early cpu=2");
    world.settle();
    assert!(node_of(&world, "early").is_some(), "there is no reason to let room lie idle yet");
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!(kept_for(&world, "g"), ["a", "b"]);
    finish(&mut world, "early");
    world.add("pod late cpu=2");
    world.settle();
    assert_eq!(node_of(&world, "late"), None, "what became free is kept");
    finish(&mut world, "old-a");
    finish(&mut world, "old-b");
    world.settle();
    assert_eq!([node_of(&world, "w-0"), node_of(&world, "w-1")].map(|node| node.is_some()), [true, true]);
    assert_eq!(kept_for(&world, "g"), [""; 0], "it has what it waited for");
    finish(&mut world, "w-0");
    finish(&mut world, "w-1");
    world.settle();
    assert!(node_of(&world, "late").is_some());
}

#[test]
fn nothing_is_kept_for_who_would_not_fit_on_empty_nodes() {
    let mut world = crowded();
    world.add("group g gang=3\npod w-2 group=g cpu=4");
    world.settle();
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!(kept_for(&world, "g"), [""; 0]);
    // A third node would do; that is seen when the time is over once more.
    world.add("node c cpu=4\npod old-c cpu=1 on=c");
    world.settle();
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!(kept_for(&world, "g"), ["a", "b", "c"]);
}

#[test]
fn who_waits_is_told_that_room_is_kept() {
    let mut world = crowded();
    let decisions = wait(&mut world, PATIENCE_SECONDS);
    let is_told = |decision: &Decision| matches!(decision, Decision::Wait(waiting) if waiting.is_planned);
    assert!(decisions.iter().any(is_told), "{decisions:?}");
}

#[test]
fn the_time_is_known_beforehand() {
    let mut world = crowded();
    let Decision::Idle { wake_at } = world.engine.decide(world.now) else { panic!("all is decided") };
    assert!(wake_at.is_some_and(|time| time <= Time(0).plus_seconds(PATIENCE_SECONDS)));
    // Nobody has to ask in between.
    world.now = Time(0).plus_seconds(PATIENCE_SECONDS);
    world.settle();
    assert_eq!(kept_for(&world, "g"), ["a", "b"]);
}

#[test]
fn the_more_important_take_what_is_kept() {
    let mut world = crowded();
    wait(&mut world, PATIENCE_SECONDS);
    world.add("pod urgent cpu=2 priority=1");
    world.settle();
    assert!(node_of(&world, "urgent").is_some());
}

#[test]
fn room_is_kept_where_the_least_is_in_the_way() {
    let mut world = World::parse(
        "node a cpu=4
         node b cpu=4
         node c cpu=4
         pod services cpu=4 on=a
         pod old-b cpu=1 on=b
         pod old-c cpu=2 on=c
         group g gang=2
         pod w x2 group=g cpu=4",
    );
    world.settle();
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!(kept_for(&world, "g"), ["b", "c"]);
}

#[test]
fn room_is_kept_for_one_gang_at_a_time_and_the_eldest_comes_first() {
    let mut world = crowded_with("group h gang=2\npod v x2 group=h cpu=4");
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!((kept_for(&world, "g").len(), kept_for(&world, "h").len()), (2, 0));
    for name in ["w-0", "w-1"] {
        finish(&mut world, name);
    }
    world.settle();
    assert_eq!((kept_for(&world, "g").len(), kept_for(&world, "h").len()), (0, 2), "the first has given up");
}

#[test]
fn a_broken_gang_takes_what_is_kept_for_one_that_has_not_begun() {
    let mut world = crowded();
    wait(&mut world, PATIENCE_SECONDS);
    world.add(
        "node d cpu=2\ngroup broken gang=2\npod x-0 group=broken cpu=2 on=d\npod x-1 group=broken cpu=2",
    );
    world.settle();
    assert!(node_of(&world, "x-1").is_some());
}

#[test]
fn a_plan_is_made_anew_when_other_nodes_have_become_emptier() {
    let mut world = crowded();
    wait(&mut world, PATIENCE_SECONDS);
    world.add("node c cpu=4 cordoned\npod old-c cpu=1 on=c");
    world.settle();
    // It is asked again at the latest then, and c is of no use yet.
    wait(&mut world, 300);
    assert_eq!(kept_for(&world, "g"), ["a", "b"]);
    world.add("node c cpu=4");
    wait(&mut world, 300);
    assert_eq!(kept_for(&world, "g"), ["a", "c"]);
}

#[test]
fn suspending_the_gang_that_has_a_plan_gives_the_next_one_its_turn() {
    let mut world = crowded_with("group h gang=2\npod v x2 group=h cpu=4");
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!(kept_for(&world, "g").len(), 2);
    world
        .engine
        .apply(tutti_engine::Event::Suspend(UnitKey::Group(ObjectKey::new("default", "g"))), world.now);
    world.settle();
    assert_eq!((kept_for(&world, "g").len(), kept_for(&world, "h").len()), (0, 2));
}

#[test]
fn a_plan_that_does_not_come_true_ends_and_the_next_gang_has_its_turn() {
    let mut world = crowded_with("group h gang=2\npod v x2 group=h cpu=4");
    wait(&mut world, PATIENCE_SECONDS);
    assert_eq!((kept_for(&world, "g").len(), kept_for(&world, "h").len()), (2, 0));
    let Decision::Idle { wake_at: Some(wake_at) } = world.engine.decide(world.now) else {
        panic!("it says when")
    };
    assert!(wake_at > world.now);
    wait(&mut world, PLAN_SECONDS);
    assert_eq!((kept_for(&world, "g").len(), kept_for(&world, "h").len()), (0, 2));
    wait(&mut world, PLAN_SECONDS);
    assert_eq!((kept_for(&world, "g").len(), kept_for(&world, "h").len()), (2, 0), "and so on");
}

#[test]
fn a_gang_that_lacks_a_member_for_a_moment_has_waited_all_the_same() {
    let mut world = crowded();
    wait(&mut world, PATIENCE_SECONDS - 60);
    let member = world.pod("w-1");
    world.remove_pod(&member.key);
    world.settle();
    wait(&mut world, 30);
    world.set_pod(member);
    world.settle();
    wait(&mut world, 30);
    assert_eq!(kept_for(&world, "g"), ["a", "b"], "its time was over all the same");
}
