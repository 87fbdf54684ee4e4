//! Which nodes a single pod could go to.

use crate::driver::World;
use tutti_engine::score::Aspect;
use tutti_model::scenario::Scenario;

/// Asks about the only pod of a second text; the answer must leave no trace.
fn feasible(cluster: &str, pod: &str) -> Vec<String> {
    let world = World::parse(cluster);
    let pod = Scenario::parse(pod).unwrap().pods.remove(0);
    let before = world.engine.digest();
    let found = world.engine.feasible_nodes(&pod);
    assert_eq!(world.engine.digest(), before);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn nodes_with_room_are_feasible() {
    let cluster = "node a cpu=4
                   node b cpu=1
                   node c cpu=2
                   pod there on=c cpu=1";
    assert_eq!(feasible(cluster, "pod p cpu=1"), ["a", "b", "c"]);
    assert_eq!(feasible(cluster, "pod p cpu=2"), ["a"]);
    assert_eq!(feasible(cluster, "pod p cpu=5"), [""; 0]);
}

#[test]
fn the_group_and_the_scheduler_of_the_pod_play_no_part() {
    assert_eq!(feasible("node a cpu=4", "group g gang=3\n pod p group=g cpu=1"), ["a"]);
}

#[test]
fn scores_are_told_one_by_one_and_leave_no_trace() {
    let world = World::parse(
        "node a cpu=4 memory=4Gi
         node b cpu=4 memory=4Gi
         node small cpu=1 memory=1Gi
         pod there on=b cpu=2 memory=2Gi",
    );
    let pod = Scenario::parse("pod p cpu=2 memory=2Gi").unwrap().pods.remove(0);
    let before = world.engine.digest();
    let scores = world.engine.scores(&pod);
    assert_eq!(world.engine.digest(), before);
    let fit: Vec<(String, i64)> =
        scores.iter().map(|(node, scores)| (node.to_string(), scores[&Aspect::ResourcesFit])).collect();
    assert_eq!(fit, [("a".to_owned(), 50), ("b".to_owned(), 0)]);
    assert!(scores.values().all(|scores| scores.len() == Aspect::ALL.len()));
}
