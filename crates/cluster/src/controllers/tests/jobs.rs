//! Stories of Jobs.

use super::*;

fn job(sim: &mut Sim, mut spec: Value) {
    spec["template"] = template();
    sim.create("jobs", json!({"metadata": {"name": "j"}, "spec": spec}));
    sim.settle();
}

fn status(sim: &Sim) -> &Value {
    &sim.get("jobs", "j")["status"]
}

fn holds(sim: &Sim, kind: &str) -> bool {
    sim.condition("jobs", "j", kind)["status"] == "True"
}

/// Names of active pods by their index.
fn by_index(sim: &Sim) -> BTreeMap<u32, String> {
    let active = sim.active();
    let pods = sim.all("pods").into_iter().filter(|pod| active.contains(&name_of(pod)));
    pods.map(|pod| {
        let index =
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].as_str().unwrap();
        (index.parse().unwrap(), name_of(pod))
    })
    .collect()
}

fn numbers(sim: &Sim) -> (u64, u64, u64) {
    let number = |field: &str| status(sim)[field].as_u64().unwrap_or(0);
    (number("active"), number("succeeded"), number("failed"))
}

#[test]
fn a_job_runs_as_many_pods_as_it_may_until_enough_have_succeeded() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 2, "completions": 3}));
    assert_eq!((sim.active().len(), numbers(&sim)), (2, (2, 0, 0)));
    assert!(status(&sim)["startTime"].is_string());
    let pod = sim.get("pods", &sim.active()[0]);
    assert_eq!(pod["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "Job");
    assert!(pod["spec"]["hostname"].is_null());
    sim.start_pods();
    assert_eq!(status(&sim)["ready"], 2);
    for done in 1..=3 {
        let next = sim.active()[0].clone();
        sim.end_pod(&next, 0);
        assert_eq!(numbers(&sim).1, done, "{}", status(&sim));
        sim.start_pods();
    }
    assert_eq!((sim.active().len(), numbers(&sim)), (0, (0, 3, 0)));
    assert!(holds(&sim, "SuccessCriteriaMet") && holds(&sim, "Complete"));
    assert!(status(&sim)["completionTime"].is_string());
    assert_eq!(sim.condition("jobs", "j", "Complete")["reason"], "CompletionsReached");
    assert!(sim.all("pods").iter().all(|pod| pod["metadata"]["finalizers"] == json!([])));
    assert_eq!(status(&sim)["uncountedTerminatedPods"], json!({}));
    assert_eq!(sim.events.last().unwrap(), "Completed: Job completed");
}

#[test]
fn every_index_succeeds_once_and_its_pods_know_which_they_are() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 3, "completions": 4, "completionMode": "Indexed"}));
    let pods = by_index(&sim);
    assert_eq!(pods.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    let pod = sim.get("pods", &pods[&2]);
    assert!(pods[&2].starts_with("j-2-"));
    assert_eq!(pod["spec"]["hostname"], "j-2");
    assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], "2");
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    sim.start_pods();
    sim.end_pod(&pods[&1], 0);
    sim.end_pod(&pods[&2], 0);
    assert_eq!(status(&sim)["completedIndexes"], "1,2");
    assert_eq!(by_index(&sim).keys().copied().collect::<Vec<_>>(), [0, 3]);
    for name in by_index(&sim).into_values() {
        sim.end_pod(&name, 0);
    }
    assert_eq!(status(&sim)["completedIndexes"], "0-3");
    assert!(holds(&sim, "Complete"));
    assert_eq!(numbers(&sim), (0, 4, 0));
}

#[test]
fn a_failed_index_is_tried_again_after_a_pause() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 2, "completions": 2, "completionMode": "Indexed"}));
    sim.start_pods();
    let first = by_index(&sim)[&1].clone();
    sim.end_pod(&first, 1);
    assert_eq!(numbers(&sim), (1, 0, 1));
    sim.pass(9);
    assert_eq!(sim.active().len(), 1, "not at once");
    sim.pass(2);
    assert_eq!(by_index(&sim).keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert_ne!(by_index(&sim)[&1], first);
}

#[test]
fn a_job_fails_when_its_pods_failed_too_often_and_takes_the_others_down() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 3, "completions": 9, "backoffLimit": 1}));
    sim.start_pods();
    let [a, b, c] = &sim.active()[..] else { panic!("three pods") };
    let (a, b, c) = (a.clone(), b.clone(), c.clone());
    sim.end_pod(&a, 1);
    assert!(!holds(&sim, "FailureTarget"));
    sim.end_pod(&b, 1);
    assert!(holds(&sim, "FailureTarget") && !holds(&sim, "Failed"), "one pod has yet to stop");
    assert!(sim.get("pods", &c)["metadata"]["deletionTimestamp"].is_string());
    sim.stop_pods();
    assert!(holds(&sim, "Failed"), "{}", status(&sim));
    assert_eq!(sim.condition("jobs", "j", "Failed")["reason"], "BackoffLimitExceeded");
    assert_eq!(numbers(&sim), (0, 0, 3));
    assert!(sim.find("pods", &c).is_none() && sim.find("pods", &a).is_some());
}

#[test]
fn a_job_that_takes_too_long_fails() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 1, "completions": 1, "activeDeadlineSeconds": 100}));
    sim.start_pods();
    sim.pass(98);
    assert_eq!(sim.active().len(), 1);
    sim.pass(3);
    sim.stop_pods();
    assert_eq!(sim.condition("jobs", "j", "Failed")["reason"], "DeadlineExceeded");
}

#[test]
fn a_suspended_job_has_no_pods_and_nothing_counts_as_failed() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 2, "completions": 2, "suspend": true, "activeDeadlineSeconds": 100}));
    assert!(sim.all("pods").is_empty() && holds(&sim, "Suspended"));
    assert!(status(&sim)["startTime"].is_null());
    sim.change("jobs", "j", |job| job["spec"]["suspend"] = json!(false));
    sim.settle();
    assert_eq!(sim.active().len(), 2);
    assert_eq!(sim.condition("jobs", "j", "Suspended")["reason"], "JobResumed");
    assert!(status(&sim)["startTime"].is_string());
    sim.start_pods();
    sim.change("jobs", "j", |job| job["spec"]["suspend"] = json!(true));
    sim.settle();
    sim.stop_pods();
    assert!(sim.all("pods").is_empty());
    sim.pass(1000);
    assert_eq!(numbers(&sim), (0, 0, 0));
    assert!(!holds(&sim, "FailureTarget"), "a suspended Job does not age");
    sim.change("jobs", "j", |job| job["spec"]["suspend"] = json!(false));
    sim.settle();
    assert_eq!(sim.active().len(), 2, "no pause: nothing failed");
}

#[test]
fn parallelism_can_change_while_a_job_runs() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 1, "completions": 10}));
    for wanted in [5, 2, 12, 0, 1] {
        sim.change("jobs", "j", |job| job["spec"]["parallelism"] = json!(wanted));
        sim.settle();
        sim.start_pods();
        sim.stop_pods();
        assert_eq!(sim.active().len(), wanted.min(10));
    }
    assert_eq!(numbers(&sim), (1, 0, 0), "pods that were too many did not fail");
}

#[test]
fn without_completions_the_first_success_is_enough_and_the_others_may_finish() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 3}));
    sim.start_pods();
    let pods = sim.active();
    sim.end_pod(&pods[0], 0);
    assert_eq!(sim.active().len(), 2, "nobody is replaced");
    sim.end_pod(&pods[1], 1);
    assert!(!holds(&sim, "Complete"));
    sim.end_pod(&pods[2], 0);
    assert!(holds(&sim, "Complete"));
    assert_eq!(numbers(&sim), (0, 2, 1));
}

#[test]
fn a_finished_job_goes_when_its_time_is_over() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 1, "completions": 1, "ttlSecondsAfterFinished": 30}));
    let pod = sim.active()[0].clone();
    sim.end_pod(&pod, 0);
    assert!(holds(&sim, "Complete"));
    sim.pass(28);
    assert!(sim.find("jobs", "j").is_some());
    sim.pass(3);
    assert!(sim.find("jobs", "j").is_none());
}

#[test]
fn pods_of_a_deleted_job_are_not_held_by_it() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 2, "completions": 2}));
    sim.delete("jobs", "j", false);
    sim.settle();
    assert!(sim.all("pods").iter().all(|pod| pod["metadata"]["finalizers"] == json!([])));
}

#[test]
fn a_deleted_pod_is_a_failure_and_is_replaced() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 1, "completions": 1}));
    sim.start_pods();
    let pod = sim.active()[0].clone();
    sim.delete("pods", &pod, false);
    sim.settle();
    assert_eq!(numbers(&sim).2, 1);
    sim.stop_pods();
    sim.pass(30);
    assert_eq!(sim.active().len(), 1);
    assert!(sim.find("pods", &pod).is_none());
}

#[test]
fn pods_can_be_replaced_only_once_they_have_really_ended() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 1, "completions": 1, "podReplacementPolicy": "Failed"}));
    sim.start_pods();
    let pod = sim.active()[0].clone();
    sim.delete("pods", &pod, false);
    sim.pass(100);
    assert_eq!((sim.active().len(), status(&sim)["terminating"].as_u64()), (0, Some(1)));
    sim.stop_pods();
    sim.pass(30);
    assert_eq!(sim.active().len(), 1);
}

#[test]
fn restarts_in_place_count_against_the_limit() {
    let mut sim = Sim::new();
    let mut spec = json!({"parallelism": 1, "completions": 1, "backoffLimit": 2});
    spec["template"] = template();
    spec["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    sim.create("jobs", json!({"metadata": {"name": "j"}, "spec": spec}));
    sim.settle();
    sim.start_pods();
    let pod = sim.active()[0].clone();
    for restarts in [1, 2] {
        assert!(!holds(&sim, "FailureTarget"));
        sim.change("pods", &pod, |pod| {
            pod["status"]["containerStatuses"] = json!([{"name": "main", "restartCount": restarts}]);
        });
        sim.settle();
    }
    assert_eq!(sim.condition("jobs", "j", "FailureTarget")["reason"], "BackoffLimitExceeded");
}

#[test]
fn policies_end_a_job_early_either_way() {
    let mut sim = Sim::new();
    let policy = json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]});
    job(&mut sim, json!({"parallelism": 2, "completions": 2, "podFailurePolicy": policy}));
    sim.start_pods();
    let pod = sim.active()[0].clone();
    sim.end_pod(&pod, 42);
    sim.stop_pods();
    assert_eq!(sim.condition("jobs", "j", "Failed")["reason"], "PodFailurePolicy");

    let mut sim = Sim::new();
    let policy = json!({"rules": [{"succeededIndexes": "0"}]});
    job(
        &mut sim,
        json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed", "successPolicy": policy}),
    );
    sim.start_pods();
    let leader = by_index(&sim)[&0].clone();
    sim.end_pod(&leader, 0);
    sim.stop_pods();
    assert_eq!(sim.condition("jobs", "j", "Complete")["reason"], "SuccessPolicy");
    assert_eq!(status(&sim)["completedIndexes"], "0");
}

#[test]
fn what_is_not_for_this_controller_is_left_alone() {
    for spec in [json!({"managedBy": "example.com/mine"}), json!({"backoffLimitPerIndex": 1})] {
        let mut sim = Sim::new();
        job(&mut sim, spec.clone());
        assert!(sim.all("pods").is_empty() && status(&sim).is_null(), "{spec}");
        assert_eq!(sim.events.len(), usize::from(!spec["backoffLimitPerIndex"].is_null()));
    }
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": "many"}));
    assert!(sim.all("pods").is_empty(), "what cannot be read is not acted on");
}

#[test]
fn a_large_job_is_made_in_portions() {
    let mut sim = Sim::new();
    job(&mut sim, json!({"parallelism": 1200, "completions": 1200, "completionMode": "Indexed"}));
    assert_eq!(by_index(&sim).len(), 1200);
    assert_eq!(numbers(&sim), (1200, 0, 0));
}
