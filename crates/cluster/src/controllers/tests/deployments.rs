//! Stories of Deployments and what protects their pods.

use super::*;

fn deployment(sim: &mut Sim, replicas: u32, more: Value) {
    let mut spec = json!({
        "replicas": replicas, "selector": {"matchLabels": {"app": "x"}}, "template": template(),
        "progressDeadlineSeconds": 600,
    });
    json_patch::merge(&mut spec, &more);
    sim.create("deployments", json!({"metadata": {"name": "d"}, "spec": spec}));
    sim.settle();
}

/// Everything happens that nodes do, until nothing changes any more.
fn run(sim: &mut Sim) {
    for _ in 0..50 {
        let before = sim.version;
        sim.start_pods();
        sim.stop_pods();
        let ended: Vec<String> =
            sim.all("pods").into_iter().filter(|pod| has_ended(pod)).map(name_of).collect();
        for name in ended {
            sim.delete("pods", &name, true);
        }
        sim.settle();
        if sim.version == before {
            return;
        }
    }
    panic!("the rollout never ends");
}

fn image(sim: &mut Sim, image: &str) {
    sim.change("deployments", "d", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    });
    sim.settle();
}

/// Image, revision and size of all sets, by revision.
fn sets(sim: &Sim) -> Vec<(i64, String, u64)> {
    let mut sets: Vec<(i64, String, u64)> = sim
        .all("replicasets")
        .into_iter()
        .map(|set| {
            let revision =
                set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap();
            let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
            (revision.parse().unwrap(), image.to_owned(), set["spec"]["replicas"].as_u64().unwrap())
        })
        .collect();
    sets.sort();
    sets
}

fn status(sim: &Sim) -> &Value {
    &sim.get("deployments", "d")["status"]
}

#[test]
fn a_deployment_makes_a_set_that_makes_pods_and_says_when_all_is_well() {
    let mut sim = Sim::new();
    deployment(&mut sim, 3, json!({}));
    assert_eq!(sim.condition("deployments", "d", "Available")["status"], "False");
    assert_eq!(sim.condition("deployments", "d", "Progressing")["reason"], "ReplicaSetUpdated");
    run(&mut sim);
    assert_eq!(sets(&sim), [(1, "i".to_owned(), 3)]);
    let status = status(&sim);
    for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(status[field], 3, "{field}");
    }
    assert_eq!((&status["observedGeneration"], &status["unavailableReplicas"]), (&json!(1), &json!(0)));
    assert_eq!(sim.condition("deployments", "d", "Available")["status"], "True");
    assert_eq!(sim.condition("deployments", "d", "Progressing")["reason"], "NewReplicaSetAvailable");
    let annotations = &sim.get("deployments", "d")["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "1");
    let set = sim.all("replicasets")[0];
    let hash = set["metadata"]["labels"]["pod-template-hash"].as_str().unwrap();
    assert_eq!(set["metadata"]["name"], format!("d-{hash}"));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], hash);
    assert!(sim.all("pods").iter().all(|pod| pod["metadata"]["labels"]["pod-template-hash"] == hash));
}

#[test]
fn an_update_rolls_and_can_be_undone_and_history_is_kept_within_its_limit() {
    let mut sim = Sim::new();
    deployment(&mut sim, 4, json!({"revisionHistoryLimit": 2}));
    run(&mut sim);
    for (number, version) in [(2, "v2"), (3, "v3"), (4, "v4")] {
        image(&mut sim, version);
        assert_eq!(sets(&sim).last().unwrap().0, number);
        run(&mut sim);
        assert_eq!(sets(&sim).last().unwrap(), &(number, version.to_owned(), 4));
        assert_eq!(sim.condition("deployments", "d", "Progressing")["reason"], "NewReplicaSetAvailable");
    }
    let kept: Vec<i64> = sets(&sim).iter().map(|set| set.0).collect();
    assert_eq!(kept, [2, 3, 4]);
    image(&mut sim, "v2");
    run(&mut sim);
    assert_eq!(sets(&sim), [(3, "v3".to_owned(), 0), (4, "v4".to_owned(), 0), (5, "v2".to_owned(), 4)]);
    let annotations = &sim.get("deployments", "d")["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "5");
    assert!(
        sim.events.iter().any(|event| event.starts_with("ScalingReplicaSet: Scaled down replica set d-"))
    );
}

#[test]
fn an_update_waits_for_pods_that_are_available() {
    let mut sim = Sim::new();
    deployment(&mut sim, 4, json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}));
    run(&mut sim);
    image(&mut sim, "broken");
    sim.settle();
    assert_eq!(sets(&sim), [(1, "i".to_owned(), 4), (2, "broken".to_owned(), 1)], "its pod never starts");
    sim.pass(601);
    assert_eq!(sim.condition("deployments", "d", "Progressing")["reason"], "ProgressDeadlineExceeded");
    assert_eq!(sim.condition("deployments", "d", "Progressing")["status"], "False");
    image(&mut sim, "i");
    run(&mut sim);
    assert_eq!(sets(&sim), [(2, "broken".to_owned(), 0), (3, "i".to_owned(), 4)]);
}

#[test]
fn recreating_never_mixes_old_and_new() {
    let mut sim = Sim::new();
    deployment(&mut sim, 3, json!({"strategy": {"type": "Recreate"}}));
    run(&mut sim);
    image(&mut sim, "v2");
    assert_eq!(sim.active().len(), 0, "old pods are asked to go, new ones have not come");
    assert!(sim.all("pods").iter().all(|pod| pod["spec"]["containers"][0]["image"] == "i"));
    run(&mut sim);
    assert_eq!(sets(&sim), [(1, "i".to_owned(), 0), (2, "v2".to_owned(), 3)]);
}

#[test]
fn scaling_is_no_update() {
    let mut sim = Sim::new();
    deployment(&mut sim, 2, json!({}));
    run(&mut sim);
    for replicas in [5, 0, 3] {
        sim.change("deployments", "d", |d| d["spec"]["replicas"] = json!(replicas));
        run(&mut sim);
        assert_eq!(sets(&sim), [(1, "i".to_owned(), replicas)]);
        assert_eq!(status(&sim)["availableReplicas"], replicas);
    }
}

#[test]
fn a_paused_deployment_updates_when_it_is_resumed() {
    let mut sim = Sim::new();
    deployment(&mut sim, 2, json!({}));
    run(&mut sim);
    sim.change("deployments", "d", |d| d["spec"]["paused"] = json!(true));
    image(&mut sim, "v2");
    run(&mut sim);
    assert_eq!(sets(&sim), [(1, "i".to_owned(), 2)]);
    assert_eq!(sim.condition("deployments", "d", "Progressing")["reason"], "DeploymentPaused");
    sim.change("deployments", "d", |d| d["spec"]["paused"] = json!(false));
    run(&mut sim);
    assert_eq!(sets(&sim), [(1, "i".to_owned(), 0), (2, "v2".to_owned(), 2)]);
}

#[test]
fn a_budget_follows_its_deployment() {
    let mut sim = Sim::new();
    sim.create(
        "poddisruptionbudgets",
        json!({"metadata": {"name": "b"}, "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "x"}}}}),
    );
    deployment(&mut sim, 4, json!({}));
    let numbers = |sim: &Sim| {
        let status = &sim.get("poddisruptionbudgets", "b")["status"];
        ["expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"]
            .map(|field| status[field].as_u64().unwrap_or(99))
    };
    assert_eq!(numbers(&sim), [4, 3, 0, 0]);
    run(&mut sim);
    assert_eq!(numbers(&sim), [4, 3, 4, 1]);
    sim.change("deployments", "d", |d| d["spec"]["replicas"] = json!(8));
    run(&mut sim);
    assert_eq!(numbers(&sim), [8, 6, 8, 2]);
    let pod = sim.active()[0].clone();
    sim.delete("pods", &pod, false);
    sim.settle();
    assert_eq!(numbers(&sim), [8, 6, 7, 1]);
}
