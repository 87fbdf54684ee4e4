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
