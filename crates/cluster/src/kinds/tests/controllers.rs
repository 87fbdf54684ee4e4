//! Claims about the kinds that run pods.

use super::*;

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i:1"}]},
    })
}

fn controller(extra: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "n"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(), "replicas": 1},
    });
    for (field, value) in extra.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn created(kind: &'static str) -> impl Fn(&Value) -> Vec<Cause> {
    move |object| validate_create(resource(kind), object)
}

#[test]
fn a_controller_selects_the_pods_that_it_makes() {
    let strategy = json!({"strategy": {"type": "Recreate"}, "updateStrategy": {"type": "OnDelete"}});
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        let mut base = controller(&strategy);
        let known = if kind == "Deployment" { "strategy" } else { "updateStrategy" };
        base["spec"]
            .as_object_mut()
            .unwrap()
            .retain(|f, _| !f.ends_with("trategy") || (f == known && kind != "ReplicaSet"));
        if kind == "DaemonSet" {
            base["spec"].as_object_mut().unwrap().remove("replicas");
        }
        let unselected = lines(created(kind)(&with(&base, "/spec/selector", json!(null))));
        assert_eq!(
            unselected,
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
            ]
        );
        check_each(
            created(kind),
            &base,
            vec![
                (
                    "/spec/selector",
                    json!({}),
                    "spec.selector: Invalid value: {}: empty selector is invalid for",
                ),
                (
                    "/spec/selector/matchLabels/app",
                    json!("db"),
                    "spec.template.metadata.labels: Invalid value",
                ),
                (
                    "/spec/template/metadata/labels",
                    json!({"app": "web", "b": "-"}),
                    "spec.template.metadata.labels: Invalid value: \"-\"",
                ),
                (
                    "/spec/template/spec/restartPolicy",
                    json!("Never"),
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\"",
                ),
                (
                    "/spec/template/spec/containers",
                    json!([]),
                    "spec.template.spec.containers: Required value",
                ),
                (
                    "/spec/template/spec/activeDeadlineSeconds",
                    json!(5),
                    "spec.template.spec.activeDeadlineSeconds: Forbidden",
                ),
                ("/spec/minReadySeconds", json!(-1), "spec.minReadySeconds: Invalid value: -1"),
            ],
        );
    }
}

#[test]
fn a_deployment_rolls_and_keeps_its_selector() {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}});
    let base = controller(&json!({"strategy": rolling, "progressDeadlineSeconds": 600}));
    check_each(
        created("Deployment"),
        &base,
        vec![
            (
                "/spec/replicas",
                json!(-1),
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            ),
            ("/spec/strategy/type", json!("Recreate"), "spec.strategy.rollingUpdate: Forbidden"),
            ("/spec/strategy/type", json!("Magic"), "spec.strategy: Unsupported value"),
            (
                "/spec/strategy/rollingUpdate",
                json!({"maxUnavailable": 0, "maxSurge": "0%"}),
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0",
            ),
            (
                "/spec/strategy/rollingUpdate/maxUnavailable",
                json!("101%"),
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
            ),
            ("/spec/strategy/rollingUpdate/maxSurge", json!("200%"), ""),
            (
                "/spec/strategy/rollingUpdate/maxSurge",
                json!("many"),
                "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"many\": a valid percent",
            ),
            (
                "/spec/progressDeadlineSeconds",
                json!(0),
                "spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds",
            ),
        ],
    );
    check_each(
        |new| validate_update(resource("Deployment"), &base, new),
        &base,
        vec![("/spec/replicas", json!(5), ""), ("/spec/template/spec/containers/0/image", json!("i:2"), "")],
    );
    let mut other = base.clone();
    other["spec"]["selector"]["matchLabels"] = json!({"app": "web", "tier": "x"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "web", "tier": "x"});
    let found = lines(validate_update(resource("Deployment"), &base, &other));
    assert!(found.len() == 1 && found[0].starts_with("spec.selector: Invalid value"), "{found:?}");
}

#[test]
fn what_a_controller_leaves_out_is_filled_in() {
    let defaulted = |kind: &str| {
        let mut object =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        set_defaults(resource(kind), &mut object);
        object
    };
    let deployment = defaulted("Deployment");
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(
        deployment["spec"]["strategy"]["rollingUpdate"],
        json!({"maxUnavailable": "25%", "maxSurge": "25%"})
    );
    assert_eq!(deployment["spec"]["progressDeadlineSeconds"], 600);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["schedulerName"], "default-scheduler");
    assert!(pod.get("tolerations").is_none(), "tolerations of lost nodes are for pods");
    assert_eq!(deployment["status"], json!({}));
    let set = defaulted("StatefulSet");
    assert_eq!(
        set["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
    let daemons = defaulted("DaemonSet");
    assert_eq!(
        daemons["spec"]["updateStrategy"]["rollingUpdate"],
        json!({"maxUnavailable": 1, "maxSurge": 0})
    );
    let mut old = json!({"metadata": {"name": "rc"}, "spec": {"template": template()}});
    set_defaults(resource("ReplicationController"), &mut old);
    assert_eq!(old["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(old["metadata"]["labels"], json!({"app": "web"}));
}

fn job(extra: &Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "n", "uid": "u"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}},
    });
    for (field, value) in extra.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    prepare_new(resource("Job"), &mut job);
    set_defaults(resource("Job"), &mut job);
    job
}

#[test]
fn a_job_runs_once_unless_it_says_otherwise() {
    let spec = job(&json!({}))["spec"].take();
    assert_eq!(
        (&spec["completions"], &spec["parallelism"], &spec["backoffLimit"]),
        (&json!(1), &json!(1), &json!(6))
    );
    assert_eq!((&spec["completionMode"], &spec["suspend"]), (&json!("NonIndexed"), &json!(false)));
    let queue = job(&json!({"parallelism": 3}))["spec"].take();
    assert!(queue.get("completions").is_none(), "a work queue ends when its pods say so");
    let indexed = job(&json!({"backoffLimitPerIndex": 1}))["spec"].take();
    assert_eq!(indexed["backoffLimit"], i32::MAX);
}

#[test]
fn a_job_selects_its_own_pods_and_no_others() {
    let base = job(&json!({}));
    assert_eq!(base["spec"]["selector"]["matchLabels"], json!({"batch.kubernetes.io/controller-uid": "u"}));
    let labels = &base["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["job-name"], "j");
    assert_eq!(labels["batch.kubernetes.io/controller-uid"], "u");
    let stolen = json!({"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "other"}}});
    let found = lines(validate_create(resource("Job"), &job(&stolen)));
    assert_eq!(found.len(), 1, "{found:?}");
    let manual = json!({
        "manualSelector": true, "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}},
    });
    assert_eq!(lines(validate_create(resource("Job"), &job(&manual))), [""; 0]);
}

#[test]
fn each_rule_of_a_job_is_named() {
    check_each(
        created("Job"),
        &job(&json!({})),
        vec![
            ("/spec/parallelism", json!(-1), "spec.parallelism: Invalid value: -1"),
            ("/spec/completionMode", json!("Sorted"), "spec.completionMode: Unsupported value"),
            (
                "/spec/backoffLimitPerIndex",
                json!(1),
                "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed",
            ),
            (
                "/spec/template/spec/restartPolicy",
                json!("Always"),
                "spec.template.spec.restartPolicy: Required value: valid values",
            ),
            ("/spec/ttlSecondsAfterFinished", json!(-1), "spec.ttlSecondsAfterFinished: Invalid value"),
            ("/spec/podReplacementPolicy", json!("Never"), "spec.podReplacementPolicy: Unsupported value"),
        ],
    );
    check_each(
        created("Job"),
        &job(&json!({"completionMode": "Indexed", "completions": 5, "parallelism": 2})),
        vec![
            (
                "/spec/completions",
                json!(null),
                "spec.completions: Required value: when completion mode is Indexed",
            ),
            (
                "/spec/parallelism",
                json!(100_001),
                "spec.parallelism: Invalid value: 100001: must be less than",
            ),
            ("/spec/maxFailedIndexes", json!(1), "spec.backoffLimitPerIndex: Required value"),
        ],
    );
}

#[test]
fn a_job_asks_for_a_gang_that_it_can_fill() {
    let gang = json!({"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}});
    let base = job(&json!({"parallelism": 4, "completions": 4, "scheduling": gang}));
    check_each(
        created("Job"),
        &base,
        vec![
            ("/spec/scheduling/schedulingPolicy/gang", json!({}), ""),
            (
                "/spec/scheduling/schedulingPolicy/gang/minCount",
                json!(0),
                "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 0",
            ),
            (
                "/spec/scheduling/schedulingPolicy/gang/minCount",
                json!(5),
                "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 5: must not be greater than parallelism (4)",
            ),
            (
                "/spec/scheduling/schedulingPolicy/basic",
                json!({}),
                "spec.scheduling.schedulingPolicy: Invalid value",
            ),
            (
                "/spec/scheduling/schedulingPolicy",
                json!({"basic": {}}),
                "spec.scheduling.disruptionMode: Invalid value",
            ),
            (
                "/spec/scheduling/schedulingConstraints",
                json!({"topology": [{"key": "a b"}]}),
                "spec.scheduling.schedulingConstraints.topology[0].key: Invalid value",
            ),
        ],
    );
    check_each(
        |new| validate_update(resource("Job"), &base, new),
        &base,
        vec![
            ("/spec/scheduling/schedulingPolicy/gang/minCount", json!(3), ""),
            (
                "/spec/scheduling/disruptionMode",
                json!({"single": {}}),
                "spec.scheduling.disruptionMode: Invalid value",
            ),
        ],
    );
}

#[test]
fn a_job_changes_little_once_it_is_made() {
    let base = job(&json!({"parallelism": 2, "completions": 4, "suspend": true}));
    check_each(
        |new| validate_update(resource("Job"), &base, new),
        &base,
        vec![
            ("/spec/parallelism", json!(4), ""),
            ("/spec/suspend", json!(false), ""),
            ("/spec/completions", json!(5), "spec.completions: Invalid value: 5: field is immutable"),
            ("/spec/selector", json!({"matchLabels": {}}), "spec.selector: Invalid value"),
            ("/spec/template/spec/nodeSelector", json!({"zone": "a"}), ""),
            ("/spec/template/spec/containers/0/image", json!("i:2"), "spec.template: Invalid value"),
        ],
    );
    let running = with(&base, "/spec/suspend", json!(false));
    let moved = with(&running, "/spec/template/spec/nodeSelector", json!({"zone": "a"}));
    assert_eq!(validate_update(resource("Job"), &running, &moved).len(), 1);
    let indexed = job(&json!({"completionMode": "Indexed", "parallelism": 2, "completions": 2}));
    let grown = with(&with(&indexed, "/spec/completions", json!(3)), "/spec/parallelism", json!(3));
    assert_eq!(lines(validate_update(resource("Job"), &indexed, &grown)), [""; 0]);
    let uneven = with(&indexed, "/spec/completions", json!(3));
    assert_eq!(validate_update(resource("Job"), &indexed, &uneven).len(), 1);
}

#[test]
fn a_cron_job_has_a_schedule_and_a_budget_one_limit() {
    let cron = json!({
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job(&json!({}))["spec"]}},
    });
    check_each(
        created("CronJob"),
        &cron,
        vec![
            ("/spec/schedule", json!(""), "spec.schedule: Required value"),
            ("/spec/schedule", json!("often"), "spec.schedule: Invalid value"),
            ("/spec/schedule", json!("@hourly"), ""),
            ("/spec/concurrencyPolicy", json!("Maybe"), "spec.concurrencyPolicy: Unsupported value"),
        ],
    );
    check_each(
        created("PodDisruptionBudget"),
        &json!({"metadata": {"name": "b", "namespace": "n"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
        vec![
            ("/spec/minAvailable", json!("50%"), ""),
            ("/spec/minAvailable", json!("150%"), "spec.minAvailable: Invalid value"),
            ("/spec/minAvailable", json!(-1), "spec.minAvailable: Invalid value"),
            ("/spec/maxUnavailable", json!(1), "spec: Invalid value"),
            (
                "/spec/unhealthyPodEvictionPolicy",
                json!("Never"),
                "spec.unhealthyPodEvictionPolicy: Unsupported value",
            ),
        ],
    );
}
