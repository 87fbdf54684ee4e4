//! Claims about rows, through the functions that the server calls.

use super::*;
use crate::registry::RESOURCES;

const CREATED: &str = "2026-01-01T00:00:00Z";

fn row(kind: &str, mut object: Value) -> Vec<String> {
    let resource = RESOURCES.iter().find(|r| r.kind == kind).unwrap();
    object["metadata"]["creationTimestamp"] = json!(CREATED);
    let now = "2026-01-01T00:05:00Z".parse().unwrap();
    let rows = rows(resource, resource.hub, &[Arc::new(object)], IncludeObject::None, now);
    let cells = rows[0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), column_definitions(resource, resource.hub).as_array().unwrap().len(), "{kind}");
    cells.iter().map(|c| c.as_str().map_or_else(|| c.to_string(), str::to_owned)).collect()
}

#[test]
fn every_row_has_a_cell_for_every_column_whatever_the_object() {
    for resource in RESOURCES {
        for object in
            [json!({}), json!({"metadata": {"name": "x"}, "spec": 3, "status": {"conditions": [1]}})]
        {
            row(resource.kind, object);
        }
    }
}

#[test]
fn rows_carry_as_much_of_the_object_as_was_asked_for() {
    let pods = RESOURCES.iter().find(|r| r.kind == "Pod").unwrap();
    let object = Arc::new(json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}));
    let carried = |include| {
        rows(pods, "v1", std::slice::from_ref(&object), include, jiff::Timestamp::UNIX_EPOCH)[0]["object"]
            .clone()
    };
    assert_eq!(carried(IncludeObject::None), Value::Null);
    assert_eq!(carried(IncludeObject::Object), *object);
    let metadata = carried(IncludeObject::Metadata);
    assert_eq!(metadata["kind"], "PartialObjectMetadata");
    assert_eq!(metadata["metadata"]["name"], "p");
    assert!(metadata.get("spec").is_none());
}

#[test]
fn a_node_shows_readiness_cordon_and_roles() {
    let node = json!({
        "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.0"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    });
    let want = ["n1", "Ready,SchedulingDisabled", "gpu,worker", "5m", "v1.36.0", "10.0.0.1", "<none>"];
    assert_eq!(row("Node", node)[..7], want);
    assert_eq!(row("Node", json!({}))[1], "Unknown");
}

#[test]
fn the_status_of_a_pod_is_the_word_that_says_most() {
    let running = json!({"ready": true, "state": {"running": {}}});
    let crash = json!({"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:04:00Z"}}});
    let done = json!({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
    let killed = json!({"state": {"terminated": {"exitCode": 137, "signal": 9}}});
    let creating = json!({"state": {"waiting": {"reason": "ContainerCreating"}}});
    let cases = [
        (json!({"phase": "Pending"}), "Pending", "0/1", "0"),
        (json!({"phase": "Running", "containerStatuses": [running]}), "Running", "1/1", "0"),
        (json!({"phase": "Running", "containerStatuses": [crash]}), "CrashLoopBackOff", "0/1", "3 (60s ago)"),
        (json!({"phase": "Pending", "containerStatuses": [creating]}), "ContainerCreating", "0/1", "0"),
        (json!({"phase": "Succeeded", "containerStatuses": [done]}), "Completed", "0/1", "0"),
        (json!({"phase": "Running", "containerStatuses": [done, running]}), "NotReady", "1/1", "0"),
        (
            json!({"phase": "Running", "containerStatuses": [done, running],
                "conditions": [{"type": "Ready", "status": "True"}]}),
            "Running",
            "1/1",
            "0",
        ),
        (json!({"phase": "Failed", "containerStatuses": [killed]}), "Signal:9", "0/1", "0"),
        (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted", "0/1", "0"),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            "SchedulingGated",
            "0/1",
            "0",
        ),
    ];
    for (status, word, ready, restarts) in cases {
        let cells = row("Pod", json!({"spec": {"containers": [{}]}, "status": status}));
        assert_eq!((&*cells[2], &*cells[1], &*cells[3]), (word, ready, restarts), "{status}");
    }
}

#[test]
fn init_containers_and_sidecars_show_in_the_status_of_a_pod() {
    let spec = json!({
        "containers": [{"name": "c"}],
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
    });
    let init_done = json!({"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 0}}});
    let sidecar =
        json!({"name": "s", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}});
    let cases = [
        (json!([{"name": "i", "state": {"running": {}}}]), "Init:0/2", "0/2", "0"),
        (
            json!([init_done, {"name": "s", "state": {"waiting": {"reason": "PodInitializing"}}}]),
            "Init:1/2",
            "0/2",
            "2",
        ),
        (
            json!([{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]),
            "Init:ErrImagePull",
            "0/2",
            "0",
        ),
        (json!([{"name": "i", "state": {"terminated": {"exitCode": 2}}}]), "Init:ExitCode:2", "0/2", "0"),
        (json!([init_done, sidecar]), "Pending", "1/2", "1"),
    ];
    for (statuses, word, ready, restarts) in cases {
        let status = json!({"phase": "Pending", "initContainerStatuses": statuses});
        let cells = row("Pod", json!({"spec": spec, "status": status}));
        assert_eq!((&*cells[2], &*cells[1], &*cells[3]), (word, ready, restarts), "{statuses}");
    }
}

#[test]
fn a_pod_that_is_deleted_is_terminating_until_it_is_over() {
    let deleted = |phase: &str| {
        let object = json!({"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": phase}});
        row("Pod", object)[2].clone()
    };
    assert_eq!(deleted("Running"), "Terminating");
    assert_eq!(deleted("Succeeded"), "Succeeded");
}

#[test]
fn a_pod_shows_its_place_and_its_gates() {
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        "status": {"podIP": "10.1.0.1", "conditions": [{"type": "a", "status": "True"}]},
    });
    assert_eq!(row("Pod", pod)[5..], ["10.1.0.1", "n1", "<none>", "1/2"]);
    assert_eq!(row("Pod", json!({}))[5..], ["<none>", "<none>", "<none>", "<none>"]);
}

#[test]
fn a_pod_group_shows_policy_workload_and_status_in_both_versions() {
    let gang = json!({"gang": {"minCount": 1}});
    let hub = json!({
        "metadata": {"name": "g"}, "spec": {"schedulingPolicy": gang, "workloadRef": {"workloadName": "w"}},
        "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True"}]},
    });
    assert_eq!(row("PodGroup", hub), ["g", "Gang", "w", "Scheduled", "5m"]);
    let alpha = json!({
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": gang, "podGroupTemplateRef": {"workload": {"workloadName": "w"}}},
        "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]},
    });
    assert_eq!(row("PodGroup", alpha), ["g", "Gang", "w", "Unschedulable", "5m"]);
    let target = json!({
        "metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}},
        "status": {"conditions": [{"type": "DisruptionTarget", "reason": "PreemptionByScheduler"}]},
    });
    assert_eq!(row("PodGroup", target), ["g", "Basic", "<none>", "PreemptionByScheduler", "5m"]);
    assert_eq!(row("PodGroup", json!({}))[3], "Pending");
}

#[test]
fn events_of_both_styles_show_when_what_and_who() {
    let old = json!({
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Scheduled", "message": " bound\n", "count": 4,
        "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "tutti", "host": "h"},
        "firstTimestamp": CREATED, "lastTimestamp": "2026-01-01T00:04:50Z",
    });
    let want = ["10s", "Normal", "Scheduled", "pod/p", "", "tutti, h", "bound", "5m", "4", "e"];
    assert_eq!(row("Event", old), want);
    let new = json!({"eventTime": "2026-01-01T00:04:00.123456Z", "reportingComponent": "tutti",
        "involvedObject": {"kind": "Pod", "name": "p"}});
    let cells = row("Event", new);
    assert_eq!((&*cells[0], &*cells[5], &*cells[8]), ("59s", "tutti", "1"));
}

#[test]
fn the_small_kinds_show_what_matters() {
    assert_eq!(
        row("Namespace", json!({"metadata": {"name": "a"}, "status": {"phase": "Active"}})),
        ["a", "Active", "5m"]
    );
    assert_eq!(
        row("Lease", json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})),
        ["l", "me", "5m"]
    );
    assert_eq!(
        row("PriorityClass", json!({"metadata": {"name": "c"}, "value": 7, "preemptionPolicy": "Never"})),
        ["c", "7", "false", "5m", "Never"]
    );
    assert_eq!(row("Workload", json!({"metadata": {"name": "w"}})), ["w", "5m"]);
}
