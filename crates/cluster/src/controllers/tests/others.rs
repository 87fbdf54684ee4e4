//! Stories of nodes and of what they leave behind.

use super::*;

fn pod(sim: &mut Sim, name: &str, node: &str) {
    let tolerations: Vec<Value> = ["not-ready", "unreachable"]
        .map(|key| {
            json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300})
        })
        .to_vec();
    sim.create(
        "pods",
        json!({"metadata": {"name": name}, "spec": {"nodeName": node, "tolerations": tolerations}}),
    );
    sim.settle();
}

fn taints(sim: &Sim) -> Vec<String> {
    let taints = sim.get("nodes", "n")["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints
        .iter()
        .map(|t| format!("{}:{}", t["key"].as_str().unwrap(), t["effect"].as_str().unwrap()))
        .collect()
}

fn heartbeat(sim: &mut Sim) {
    let time = tutti_controllers::stamp(sim.now);
    sim.change("nodes", "n", |node| {
        node["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": time}]);
    });
    sim.settle();
}

#[test]
fn a_silent_node_loses_its_pods_after_their_patience() {
    let mut sim = Sim::new();
    sim.living_node("n");
    pod(&mut sim, "p", "n");
    sim.start_pods();
    sim.pass(48);
    assert_eq!(sim.condition("nodes", "n", "Ready")["status"], "True");
    sim.pass(3);
    assert_eq!(sim.condition("nodes", "n", "Ready")["reason"], "NodeStatusUnknown");
    assert_eq!(
        taints(&sim),
        ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
    );
    assert_eq!(sim.condition("pods", "p", "Ready")["status"], "False");
    sim.pass(298);
    assert_eq!(sim.active(), ["p"]);
    sim.pass(3);
    assert!(sim.active().is_empty());
    assert_eq!(sim.condition("pods", "p", "DisruptionTarget")["reason"], "DeletionByTaintManager");
    sim.pass(10_000);
    assert!(sim.find("pods", "p").is_some(), "only its kubelet can say that it has stopped");
    sim.delete("nodes", "n", false);
    sim.settle();
    sim.pass(41);
    assert!(sim.find("pods", "p").is_none(), "or the end of the node");
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_pods() {
    let mut sim = Sim::new();
    sim.living_node("n");
    pod(&mut sim, "p", "n");
    sim.start_pods();
    sim.pass(200);
    assert_eq!(taints(&sim).len(), 2);
    heartbeat(&mut sim);
    assert!(taints(&sim).is_empty());
    for _ in 0..50 {
        sim.pass(10);
        heartbeat(&mut sim);
    }
    assert_eq!(sim.active(), ["p"]);
}

#[test]
fn leases_are_signs_of_life_too() {
    let mut sim = Sim::new();
    sim.living_node("n");
    sim.create("leases", json!({"metadata": {"name": "n"}, "spec": {"leaseDurationSeconds": 40}}));
    for _ in 0..20 {
        sim.pass(30);
        let time = sim.now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        sim.change("leases", "n", |lease| lease["spec"]["renewTime"] = json!(time));
    }
    assert_eq!(sim.condition("nodes", "n", "Ready")["status"], "True");
    sim.pass(52);
    assert_eq!(sim.condition("nodes", "n", "Ready")["status"], "Unknown");
    assert_eq!(node::LEASE_NAMESPACE, sim.get("leases", "n")["metadata"]["namespace"]);
}

#[test]
fn a_taint_without_a_time_counts_from_when_it_was_seen() {
    let mut sim = Sim::new();
    sim.living_node("n");
    let tolerations = json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 20}]);
    sim.create(
        "pods",
        json!({"metadata": {"name": "patient"}, "spec": {"nodeName": "n", "tolerations": tolerations}}),
    );
    pod(&mut sim, "other", "n");
    sim.start_pods();
    sim.pass(30);
    sim.change("nodes", "n", |node| node["spec"]["taints"] = json!([{"key": "k", "effect": "NoExecute"}]));
    sim.settle();
    assert_eq!(sim.active(), ["patient"]);
    sim.pass(15);
    heartbeat(&mut sim);
    assert_eq!(sim.active(), ["patient"]);
    sim.pass(6);
    assert!(sim.active().is_empty());
}

#[test]
fn a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() {
    let mut sim = Sim::new();
    sim.living_node("n");
    sim.change("nodes", "n", |node| node["spec"]["unschedulable"] = json!(true));
    sim.settle();
    assert_eq!(taints(&sim), ["node.kubernetes.io/unschedulable:NoSchedule"]);
    sim.change("nodes", "n", |node| node["spec"]["unschedulable"] = json!(false));
    sim.settle();
    assert!(taints(&sim).is_empty());
}

#[test]
fn pods_of_a_node_that_never_was_go_and_those_of_one_that_returns_stay() {
    let mut sim = Sim::new();
    pod(&mut sim, "p", "n");
    sim.pass(30);
    sim.living_node("n");
    for _ in 0..5 {
        sim.pass(20);
        heartbeat(&mut sim);
    }
    assert!(sim.find("pods", "p").is_some());
    pod(&mut sim, "lost", "nowhere");
    sim.pass(41);
    assert!(sim.find("pods", "lost").is_none());
}

#[test]
fn the_oldest_of_too_many_ended_pods_go() {
    let mut sim = Sim::new();
    sim.living_node("n");
    for index in 0..60 {
        let name = format!("p{index:02}");
        sim.create("pods", json!({"metadata": {"name": name}, "spec": {"nodeName": "n"}}));
        sim.end_pod(&name, index % 2);
        sim.now += SignedDuration::from_millis(1000);
        heartbeat(&mut sim);
    }
    sim.settle();
    let left = sim.all("pods");
    assert_eq!(left.len(), 50);
    assert_eq!(left[0]["metadata"]["name"], "p10");
}
