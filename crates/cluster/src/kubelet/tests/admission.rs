//! Which pods a node takes.

use super::*;

#[test]
fn an_admitted_pod_runs_after_the_start_delay_with_a_full_status() {
    let mut world = world_with_node(&json!({"cpu": "4", "pods": "10"}));
    assert_eq!(world.store(mk_pod("p", "n", &json!({"cpu": "1"}))), []);
    assert_eq!(world.pass(499), []);
    world.pass_and_settle(1);
    let pod = world.get("Pod/default/p").unwrap();
    let status = &pod["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["hostIP"], "172.16.0.1");
    assert_eq!(status["podIP"], "10.128.0.1");
    assert_eq!(status["podIPs"], json!([{"ip": "10.128.0.1"}]));
    assert_eq!(status["startTime"], "2026-11-15T12:00:00Z");
    for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        assert_eq!(condition(pod, kind)["status"], "True", "{kind}");
    }
    assert_eq!(condition(pod, "PodScheduled")["lastTransitionTime"], "2026-11-15T11:00:00Z");
    assert_eq!(condition(pod, "example.com/foreign")["status"], "Maybe");
    let container = &status["containerStatuses"][0];
    assert_eq!(container["name"], "main");
    assert_eq!(container["ready"], true);
    assert_eq!(container["restartCount"], 0);
    assert_eq!(container["state"]["running"]["startedAt"], "2026-11-15T12:00:00Z");
}

#[test]
fn pods_that_do_not_fit_fail_with_the_resource_that_is_short() {
    let capacity = json!({"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "3"});
    for (first, second, reason) in [
        (json!({"cpu": "3"}), json!({"cpu": "1001m"}), "OutOfcpu"),
        (json!({"memory": "8Gi"}), json!({"memory": "1"}), "OutOfmemory"),
        (json!({"nvidia.com/gpu": "1"}), json!({"nvidia.com/gpu": "2"}), "OutOfnvidia.com/gpu"),
        (json!({}), json!({"example.com/unknown": "1"}), "OutOfexample.com/unknown"),
        (json!({"cpu": "4", "memory": "8Gi"}), json!({"cpu": "1", "memory": "1"}), "OutOfcpu"),
    ] {
        let mut world = world_with_node(&capacity);
        world.store_and_settle(mk_pod("first", "n", &first));
        world.store_and_settle(mk_pod("second", "n", &second));
        world.pass_and_settle(500);
        assert_eq!((world.phase("first"), world.phase("second")), ("Running".into(), "Failed".into()));
        let status = &world.get("Pod/default/second").unwrap()["status"];
        assert_eq!(status["reason"], reason);
        assert!(status["message"].as_str().unwrap().contains("requested"), "{status}");
    }
}

#[test]
fn the_pod_count_is_a_resource() {
    let mut world = world_with_node(&json!({"cpu": "4", "pods": "2"}));
    for name in ["a", "b", "c"] {
        world.store_and_settle(mk_pod(name, "n", &json!({})));
    }
    world.pass_and_settle(500);
    assert_eq!([world.phase("a"), world.phase("b"), world.phase("c")], ["Running", "Running", "Failed"]);
    assert_eq!(world.get("Pod/default/c").unwrap()["status"]["reason"], "OutOfpods");
}

#[test]
fn a_pod_of_no_requests_is_admitted_to_an_overfull_node() {
    let mut world = world_with_node(&json!({"cpu": "4", "pods": "10"}));
    let mut running = mk_pod("big", "n", &json!({"cpu": "9"}));
    running["status"]["phase"] = json!("Running");
    world.store_and_settle(running);
    world.store_and_settle(mk_pod("free", "n", &json!({})));
    world.pass_and_settle(500);
    assert_eq!(world.phase("free"), "Running");
}

#[test]
fn ended_pods_take_no_room_and_deleted_ones_give_it_back() {
    let mut world = world_with_node(&json!({"cpu": "1", "pods": "10"}));
    let mut done = mk_pod("done", "n", &json!({"cpu": "1"}));
    done["status"]["phase"] = json!("Succeeded");
    world.store_and_settle(done);
    world.store_and_settle(mk_pod("a", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    assert_eq!(world.phase("a"), "Running");
    world.step(Input::PodGone(pod_ref("a")));
    world.store_and_settle(mk_pod("b", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    assert_eq!(world.phase("b"), "Running");
}

#[test]
fn a_pod_waits_for_a_node_that_is_not_there_yet() {
    let mut world = World::new();
    assert_eq!(world.store(mk_pod("p", "n", &json!({"cpu": "1"}))), []);
    assert_eq!(world.pass(1000), []);
    world.store_and_settle(mk_node("n", &json!({"cpu": "4"})));
    world.pass_and_settle(500);
    assert_eq!(world.phase("p"), "Running");
}

#[test]
fn a_pod_whose_requests_cannot_be_read_fails_and_harms_nobody() {
    let mut world = world_with_node(&json!({"cpu": "4", "pods": "10"}));
    world.store_and_settle(mk_pod("bad", "n", &json!({"cpu": "many"})));
    world.store_and_settle(mk_pod("negative", "n", &json!({"cpu": "-1"})));
    world.store_and_settle(mk_pod("good", "n", &json!({"cpu": "4"})));
    world.pass_and_settle(500);
    assert_eq!(
        [world.phase("bad"), world.phase("negative"), world.phase("good")],
        ["Failed", "Failed", "Running"]
    );
    let status = &world.get("Pod/default/bad").unwrap()["status"];
    assert_eq!(status["reason"], "UnexpectedAdmissionError");
}

#[test]
fn objects_of_any_shape_are_read_without_panic() {
    for broken in [
        json!({}),
        json!({"spec": null, "status": 3}),
        json!({"spec": {"containers": {"not": "a list"}, "overhead": []}}),
        json!({"spec": {"containers": [3, null, {"resources": {"requests": {"cpu": {"deep": 1}}}}]}}),
        json!({"spec": {"nodeName": 7}, "status": {"conditions": [1, "two", {}], "podIP": "none"}}),
    ] {
        let mut object = json!({"metadata": {"name": "x", "namespace": "default", "uid": "u"}});
        json_patch::merge(&mut object, &broken);
        let mut world = world_with_node(&json!({"cpu": "4"}));
        let pod = PodView::read(&dynamic(&object)).unwrap();
        world.step(Input::PodSeen(PodView { node: Some("n".to_owned()), ..pod }));
        world.pass(1000);
        world.step(Input::NodeSeen(NodeView::read(&dynamic(&object)).unwrap()));
    }
    assert!(PodView::read(&dynamic(&json!({"metadata": {"name": "x", "namespace": "default"}}))).is_err());
    assert!(NodeView::read(&dynamic(&json!({"metadata": {}}))).is_err());
}
