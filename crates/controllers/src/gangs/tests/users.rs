//! Claims about Workloads that users have made for their Jobs.

use super::*;

fn workload(name: &str, templates: &Value) -> Value {
    json!({"kind": "Workload", "metadata": {"name": name, "namespace": "a", "uid": format!("uid-of-{name}")},
        "spec": {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
                 "podGroupTemplates": templates}})
}

fn gang_of(minimum: u32) -> Value {
    json!([{"name": "workers", "schedulingPolicy": {"gang": {"minCount": minimum}}}])
}

#[test]
fn a_users_own_workload_is_what_the_group_is_made_of() {
    let mut world = World::new(NEWEST);
    world.see_job(&with("/spec", "scheduling", json!({"schedulingPolicy": {"gang": {}}})));
    assert_eq!(world.see(&workload("mine", &gang_of(5))), [Key::new("a", "train")]);
    world.settle("train");
    assert_eq!(world.kinds(), ["PodGroup"], "no Workload is made beside it");
    let group = &world.made[0];
    assert_eq!(group["spec"]["schedulingPolicy"], json!({"gang": {"minCount": 5}}));
    assert_eq!(group["spec"]["workloadRef"], json!({"workloadName": "mine", "templateName": "workers"}));
    let owners = &group["metadata"]["ownerReferences"];
    assert_eq!((&owners[0]["uid"], &owners[1]["uid"]), (&json!("u"), &json!("uid-of-mine")));

    world.see(&workload("mine", &gang_of(3)));
    world.settle("train");
    assert_eq!(world.made[0]["spec"]["schedulingPolicy"], json!({"gang": {"minCount": 3}}), "it follows");
}

#[test]
fn a_workload_of_or_for_somebody_else_is_none_of_its_business() {
    let mut other = workload("mine", &gang_of(5));
    other["spec"]["controllerRef"]["name"] = json!("another");
    let mut left = workload("left", &gang_of(5));
    left["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train",
        "uid": "the one before", "controller": true}]);
    let mut going = workload("going", &gang_of(5));
    going["metadata"]["deletionTimestamp"] = json!(BORN);
    for theirs in [other, left, going] {
        let mut world = World::new(OF_1_36);
        world.see_job(&job());
        world.see(&theirs);
        world.settle("train");
        assert_eq!(world.kinds(), ["Workload", "PodGroup"]);
    }
}

#[test]
fn a_workload_that_cannot_be_meant_is_complained_of_once_and_works_when_it_is_mended() {
    let mut world = World::new(OF_1_36);
    world.see_job(&job());
    world.see(&workload("mine", &json!([])));
    world.settle("train");
    world.see(&workload("second", &gang_of(5)));
    for _ in 0..3 {
        world.see_job(&job());
        world.settle("train");
    }
    assert_eq!(
        world.told,
        [
            "workload mine has 0 podGroupTemplates; want 1 for this Job",
            "several workloads are for this Job: mine, second"
        ]
    );
    assert_eq!(world.kinds(), [""; 0]);
    assert_eq!(world.lose(&workload("mine", &json!([]))), [Key::new("a", "train")]);
    world.settle("train");
    assert_eq!(world.kinds(), ["PodGroup"]);
    assert_eq!(world.gangs.told.len(), 1);
    world.lose_job(&job());
    assert!(world.gangs.told.is_empty(), "nothing is kept of what is gone");
}

#[test]
fn a_workload_that_comes_after_ours_is_too_late() {
    let mut world = World::new(OF_1_36);
    world.see_job(&job());
    world.settle("train");
    world.see(&workload("late", &gang_of(3)));
    world.settle("train");
    assert_eq!(world.kinds(), ["Workload", "PodGroup"]);
    assert_eq!(world.told, [""; 0]);
}
