//! Adoption and heartbeats.

use super::*;

#[test]
fn a_node_without_a_kubelet_is_adopted_and_completed() {
    for (capacity, allocatable, want_capacity, want_allocatable) in [
        (json!({"cpu": "4", "pods": "5"}), json!({}), "4", "4"),
        (json!({}), json!({"cpu": "3", "pods": "5"}), "3", "3"),
        (json!({"cpu": "4"}), json!({"cpu": "3"}), "4", "3"),
        (json!({}), json!({}), "8", "8"),
    ] {
        let mut world = World::new();
        let mut node = mk_node("n", &capacity);
        node["status"]["allocatable"] = allocatable;
        node["status"]["conditions"] = json!([{"type": "example.com/foreign", "status": "True"}]);
        world.store_and_settle(node);
        let node = world.get("Node//n").unwrap();
        assert_eq!(condition(node, "Ready")["status"], "True");
        assert_eq!(condition(node, "example.com/foreign")["status"], "True");
        assert_eq!(node["status"]["capacity"]["cpu"], want_capacity);
        assert_eq!(node["status"]["allocatable"]["cpu"], want_allocatable);
        assert!(node["status"]["allocatable"]["pods"].is_string());
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], KUBELET_VERSION);
        assert_eq!(node["status"]["addresses"][0]["type"], "InternalIP");
    }
}

#[test]
fn a_node_with_a_kubelet_of_its_own_is_left_alone_and_so_are_its_pods() {
    let mut world = World::new();
    let mut node = mk_node("n", &json!({"cpu": "4", "pods": "10"}));
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    assert_eq!(world.store(node), []);
    assert_eq!(world.store(mk_pod("p", "n", &json!({"cpu": "1"}))), []);
    let mut going = mk_pod("going", "n", &json!({}));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
    assert_eq!(world.store(going), []);
    assert_eq!(world.pass(1_000_000), []);
}

#[test]
fn heartbeats_are_renewed_and_transitions_keep_their_time() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    let first = condition(world.get("Node//n").unwrap(), "Ready").clone();
    assert_eq!(world.pass(80_000), [], "not due yet");
    world.pass_and_settle(21_000);
    let second = condition(world.get("Node//n").unwrap(), "Ready").clone();
    assert_ne!(first["lastHeartbeatTime"], second["lastHeartbeatTime"]);
    assert_eq!(first["lastTransitionTime"], second["lastTransitionTime"]);
}

#[test]
fn a_node_that_somebody_made_unready_becomes_ready_again() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    let mut node = world.get("Node//n").unwrap().clone();
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    world.store_and_settle(node);
    assert_eq!(condition(world.get("Node//n").unwrap(), "Ready")["status"], "True");
}

#[test]
fn an_adopted_node_gets_the_labels_that_a_kubelet_gives_and_keeps_its_own() {
    let mut world = World::new();
    let mut node = mk_node("n", &json!({"cpu": "4"}));
    node["metadata"]["labels"] = json!({"kubernetes.io/arch": "arm64", "mine": "yes"});
    world.store_and_settle(node);
    let node = world.get("Node//n").unwrap();
    let labels = json!({
        "kubernetes.io/arch": "arm64", "kubernetes.io/hostname": "n", "kubernetes.io/os": "linux", "mine": "yes",
    });
    assert_eq!(node["metadata"]["labels"], labels);
    assert_eq!(condition(node, "Ready")["status"], "True");
}

#[test]
fn every_node_gets_an_address_of_its_own() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.store_and_settle(mk_node(name, &json!({})));
    }
    let mut seen: Vec<String> =
        world.objects.iter().map(|node| node["status"]["addresses"][0]["address"].to_string()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_living_node_renews_its_lease_and_a_failed_one_is_silent_until_it_is_restored() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    let renewed = |world: &World| world.leases.get("n").map(|lease| lease["spec"]["renewTime"].clone());
    world.pass(10_000);
    let first = renewed(&world).expect("a lease within the first interval");
    assert_eq!(world.leases["n"]["spec"]["leaseDurationSeconds"], 40);
    assert_eq!(world.leases["n"]["metadata"]["ownerReferences"][0]["uid"], "n");
    world.pass(10_000);
    let second = renewed(&world).unwrap();
    assert_ne!(first, second);

    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    let mut node = world.get("Node//n").unwrap().clone();
    node["metadata"]["annotations"] = json!({"tutti.dev/failed": "true"});
    world.store_and_settle(node);
    let mut going = world.get("Pod/default/p").unwrap().clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
    going["metadata"]["deletionGracePeriodSeconds"] = json!(1);
    assert_eq!(world.store(going), []);
    assert_eq!(world.store(mk_pod("late", "n", &json!({"cpu": "1"}))), []);
    let last = renewed(&world);
    assert_eq!(world.pass(1_000_000), [], "a dead machine does nothing");
    assert_eq!(renewed(&world), last);

    let mut node = world.get("Node//n").unwrap().clone();
    node["metadata"]["annotations"] = json!({});
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    world.store_and_settle(node);
    world.pass_and_settle(10_000);
    assert_eq!(condition(world.get("Node//n").unwrap(), "Ready")["status"], "True");
    assert_ne!(renewed(&world), last);
    assert_eq!((world.phase("p"), world.phase("late")), ("gone".to_owned(), "Running".to_owned()));
}

#[test]
fn a_pod_that_was_called_unready_while_its_node_was_silent_is_ready_again() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    let mut pod = world.get("Pod/default/p").unwrap().clone();
    let started = pod["status"]["containerStatuses"].clone();
    for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
        if condition["type"] == "Ready" {
            condition["status"] = json!("False");
        }
    }
    world.store_and_settle(pod);
    let pod = world.get("Pod/default/p").unwrap();
    assert_eq!(condition(pod, "Ready")["status"], "True");
    assert_eq!(pod["status"]["containerStatuses"], started, "its containers ran all along");
}
