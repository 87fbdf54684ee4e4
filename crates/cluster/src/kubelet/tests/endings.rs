//! How pods end.

use super::*;

#[test]
fn a_pod_with_run_seconds_ends_with_its_exit_code() {
    for (annotations, phase, code, reason) in [
        (vec![(RUN_SECONDS, "3")], "Succeeded", 0, "Completed"),
        (vec![(RUN_SECONDS, "3"), (EXIT_CODE, "0")], "Succeeded", 0, "Completed"),
        (vec![(RUN_SECONDS, "3"), (EXIT_CODE, "137")], "Failed", 137, "Error"),
    ] {
        let mut world = world_with_node(&json!({"cpu": "4"}));
        world.store_and_settle(annotated(mk_pod("p", "n", &json!({"cpu": "1"})), &annotations));
        world.pass_and_settle(500);
        world.pass_and_settle(2999);
        assert_eq!(world.phase("p"), "Running");
        world.pass_and_settle(1);
        assert_eq!(world.phase("p"), phase);
        let pod = world.get("Pod/default/p").unwrap();
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(ended["exitCode"], code);
        assert_eq!(ended["reason"], reason);
        assert_eq!(pod["status"]["containerStatuses"][0]["ready"], false);
        assert_eq!(condition(pod, "Ready")["status"], "False");
        assert_eq!(condition(pod, "example.com/foreign")["status"], "Maybe");
    }
}

#[test]
fn invalid_annotations_are_ignored_with_one_warning_each() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    for (value, code) in [("-1", "256"), ("1.5", ""), ("soon", "ok"), ("99999999999", "-1")] {
        let pod = mk_pod("p", "n", &json!({"cpu": "1"}));
        let warnings = world.store(annotated(pod, &[(RUN_SECONDS, value), (EXIT_CODE, code)]));
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(matches!(&warnings[0], Effect::Warn { message, .. } if message.contains("run-seconds")));
        world.pass_and_settle(500);
        assert_eq!(world.pass(1_000), [], "said once, and the pod runs on");
        assert_eq!(world.phase("p"), "Running");
        world.step(Input::PodGone(pod_ref("p")));
    }
}

#[test]
fn a_deleted_pod_stops_after_the_shorter_of_grace_and_delay() {
    for (grace, wait) in [(30, 1000), (0, 0)] {
        let mut world = world_with_node(&json!({"cpu": "4"}));
        world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
        world.pass_and_settle(500);
        let mut pod = world.get("Pod/default/p").unwrap().clone();
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        let mut effects = world.store(pod);
        if wait > 0 {
            assert_eq!(effects, []);
            assert_eq!(world.pass(wait - 1), []);
            effects = world.pass(1);
        }
        assert_eq!(effects, [Effect::DeletePod { pod: pod_ref("p") }]);
        world.settle(effects);
        assert_eq!(world.phase("p"), "gone");
    }
}

#[test]
fn a_pod_deleted_before_it_started_never_runs() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    let mut pod = world.get("Pod/default/p").unwrap().clone();
    pod["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(world.store(pod), [Effect::DeletePod { pod: pod_ref("p") }]);
}

#[test]
fn pods_of_a_removed_node_are_left_to_the_cluster_and_run_on_if_it_returns() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    let node = world.get("Node//n").unwrap().clone();
    assert_eq!(world.step(Input::NodeGone("n".to_owned())), []);
    assert_eq!(world.pass(1_000_000), []);
    world.store_and_settle(node);
    assert_eq!(world.phase("p"), "Running");
}

/// Restart count and reason of waiting of the only container.
fn container(world: &World) -> (u64, String) {
    let status = &world.get("Pod/default/p").unwrap()["status"]["containerStatuses"][0];
    let reason = status["state"]["waiting"]["reason"].as_str().unwrap_or("runs");
    (status["restartCount"].as_u64().unwrap(), reason.to_owned())
}

#[test]
fn containers_that_end_are_started_again_if_the_policy_says_so_and_more_and_more_slowly() {
    for (policy, code) in [("Always", "0"), ("Always", "1"), ("OnFailure", "1")] {
        let mut world = world_with_node(&json!({"cpu": "4"}));
        let mut pod = annotated(mk_pod("p", "n", &json!({})), &[(RUN_SECONDS, "3"), (EXIT_CODE, code)]);
        pod["spec"]["restartPolicy"] = json!(policy);
        world.store_and_settle(pod);
        world.pass_and_settle(500);
        assert_eq!(container(&world), (0, "runs".to_owned()));
        world.pass_and_settle(3_000);
        assert_eq!(container(&world), (1, "runs".to_owned()), "at once the first time");
        world.pass_and_settle(3_000);
        assert_eq!(container(&world), (1, "CrashLoopBackOff".to_owned()));
        let pod = world.get("Pod/default/p").unwrap();
        assert_eq!(condition(pod, "Ready")["status"], "False");
        let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
        assert_eq!(last["exitCode"].to_string(), code);
        world.pass_and_settle(9_000);
        world.restart();
        assert_eq!(container(&world), (1, "CrashLoopBackOff".to_owned()));
        world.pass_and_settle(1_000);
        assert_eq!(container(&world), (2, "runs".to_owned()));
        assert_eq!(condition(world.get("Pod/default/p").unwrap(), "Ready")["status"], "True");
        world.pass_and_settle(3_000);
        world.pass_and_settle(19_000);
        assert_eq!(container(&world), (2, "CrashLoopBackOff".to_owned()), "twice as long the next time");
        world.pass_and_settle(1_000);
        assert_eq!(container(&world), (3, "runs".to_owned()));
        assert_eq!(world.phase("p"), "Running");
    }
}

#[test]
fn a_container_that_ended_well_is_not_started_again_on_failure() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    let mut pod = annotated(mk_pod("p", "n", &json!({})), &[(RUN_SECONDS, "3")]);
    pod["spec"]["restartPolicy"] = json!("OnFailure");
    world.store_and_settle(pod);
    world.pass_and_settle(500);
    world.pass_and_settle(3_000);
    assert_eq!(world.phase("p"), "Succeeded");
}

#[test]
fn a_new_pod_of_the_same_name_is_another_pod() {
    let mut world = world_with_node(&json!({"cpu": "1", "pods": "10"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    let mut second = mk_pod("p", "n", &json!({"cpu": "1"}));
    second["metadata"]["uid"] = json!("another");
    world.store_and_settle(second);
    assert_eq!(world.step(Input::PodGone(pod_ref("p"))), [], "late news of the first one");
    world.pass_and_settle(500);
    assert_eq!(world.phase("p"), "Running");
}
