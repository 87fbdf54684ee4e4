//! Restarts, conflicts and failures.

use super::*;

#[test]
fn nothing_is_admitted_before_both_listings_are_in() {
    let mut world = world_with_node(&json!({"cpu": "2", "pods": "10"}));
    world.core = Core::new(world.options.clone());
    let node = world.get("Node//n").unwrap().clone();
    world.step(Input::NodesListed(vec![node_view(&node)]));
    assert_eq!(world.store(mk_pod("late", "n", &json!({"cpu": "2"}))), []);
    assert_eq!(world.pass(10_000), []);
    let mut running = mk_pod("old", "n", &json!({"cpu": "1"}));
    running["status"]["phase"] = json!("Running");
    running["metadata"]["resourceVersion"] = json!("1");
    let late = world.get("Pod/default/late").unwrap().clone();
    let effects = world.step(Input::PodsListed(vec![pod_view(&late), pod_view(&running)]));
    world.settle(effects);
    world.pass_and_settle(500);
    assert_eq!(world.get("Pod/default/late").unwrap()["status"]["reason"], "OutOfcpu");
}

#[test]
fn a_restart_changes_nothing_for_what_runs_and_time_goes_on() {
    let mut world = world_with_node(&json!({"cpu": "2", "pods": "10"}));
    let short = annotated(mk_pod("short", "n", &json!({"cpu": "1"})), &[(RUN_SECONDS, "10")]);
    world.store_and_settle(short);
    world.store_and_settle(mk_pod("long", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    let before = world.objects.clone();
    world.now += SignedDuration::from_secs(4);
    world.restart();
    assert_eq!(world.objects, before, "no write for what is as it should be");
    world.store_and_settle(mk_pod("third", "n", &json!({"cpu": "1"})));
    assert_eq!(world.phase("third"), "Failed", "room that is taken stays taken");
    world.pass_and_settle(4_000);
    assert_eq!(world.phase("short"), "Running");
    world.pass_and_settle(2_000);
    assert_eq!((world.phase("short"), world.phase("long")), ("Succeeded".into(), "Running".into()));
    world.store_and_settle(mk_pod("fourth", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    assert_eq!(world.phase("fourth"), "Running");
    let addresses: Vec<&Value> = ["long", "fourth"]
        .iter()
        .map(|name| &world.get(&format!("Pod/default/{name}")).unwrap()["status"]["podIP"])
        .collect();
    assert_ne!(addresses[0], addresses[1], "addresses that were seen are not given out again");
}

#[test]
fn what_vanished_while_nobody_looked_is_forgotten() {
    let mut world = world_with_node(&json!({"cpu": "1", "pods": "10"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    world.objects.retain(|object| object["kind"] == "Node");
    let effects = world.relist();
    world.settle(effects);
    world.store_and_settle(mk_pod("q", "n", &json!({"cpu": "1"})));
    world.pass_and_settle(500);
    assert_eq!(world.phase("q"), "Running");
}

#[test]
fn a_conflict_is_solved_with_the_newer_object_and_keeps_its_conditions() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    let effects = world.pass(500);
    let mut pod = world.get("Pod/default/p").unwrap().clone();
    pod["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "new", "status": "True"}));
    assert_eq!(world.store(pod), [], "one write at a time");
    world.settle(effects);
    assert_eq!(world.phase("p"), "Running");
    assert_eq!(condition(world.get("Pod/default/p").unwrap(), "new")["status"], "True");
}

#[test]
fn a_failed_write_is_repeated_later_and_not_before() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    let effects = world.pass(500);
    let target = effects[0].target().unwrap();
    let failed = Outcome::Failed("connection lost".to_owned());
    assert_eq!(world.step(Input::Answered(target, failed)), []);
    assert_eq!(world.pass(199), []);
    world.pass_and_settle(1);
    assert_eq!(world.phase("p"), "Running");
}

#[test]
fn answers_about_objects_that_are_gone_are_ignored() {
    let mut world = world_with_node(&json!({"cpu": "4"}));
    world.store_and_settle(mk_pod("p", "n", &json!({"cpu": "1"})));
    let effects = world.pass(500);
    world.step(Input::PodGone(pod_ref("p")));
    let target = effects[0].target().unwrap();
    assert_eq!(world.step(Input::Answered(target, Outcome::Done)), []);
}

#[test]
fn no_timer_outlives_its_object() {
    let mut world = World::new();
    world.store_and_settle(mk_node("n", &json!({"cpu": "4"})));
    for name in ["a", "b"] {
        world.store(annotated(mk_pod(name, "n", &json!({})), &[(RUN_SECONDS, "5")]));
    }
    world.step(Input::PodGone(pod_ref("a")));
    world.step(Input::PodGone(pod_ref("b")));
    world.step(Input::NodeGone("n".to_owned()));
    assert_eq!(world.core.next_wake(), None);
}
