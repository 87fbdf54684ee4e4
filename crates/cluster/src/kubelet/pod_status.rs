//! The statuses that a simulated kubelet reports of its pods, as merge patches.

use super::view::{Container, PodView, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// What a pod is told about its node.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// `status.hostIP`
    pub(super) host: Option<String>,
    /// `status.podIP`
    pub(super) pod: Option<String>,
}

/// The pod runs since `now`.
pub(super) fn running(pod: &PodView, place: &Place, now: Timestamp) -> Value {
    let time = stamp(now);
    let statuses = |containers: &[Container], init: bool| -> Vec<Value> {
        containers
            .iter()
            .map(|container| {
                if init && !container.restartable {
                    let ended = terminated(pod, container, 0, &time, &time);
                    return container_status(pod, container, &ended, true);
                }
                container_status(pod, container, &json!({"running": {"startedAt": time}}), true)
            })
            .collect()
    };
    let mut status = started(pod, place, "Running", now);
    status.insert("conditions".to_owned(), conditions(pod, now, |_| ("True", None)));
    status.insert("containerStatuses".to_owned(), statuses(&pod.containers, false).into());
    if !pod.init_containers.is_empty() {
        status.insert("initContainerStatuses".to_owned(), statuses(&pod.init_containers, true).into());
    }
    patch(pod, &status)
}

/// The pod ended at `now`, with its own exit code; it ran since `since`.
pub(super) fn ended(pod: &PodView, place: &Place, since: Timestamp, now: Timestamp) -> Value {
    let failed = pod.exit_code != 0;
    let (from, until) = (stamp(since), stamp(now));
    let phase = if failed { "Failed" } else { "Succeeded" };
    let reason = if failed { "PodFailed" } else { "PodCompleted" };
    let mut status = started(pod, place, phase, now);
    let reported = conditions(pod, now, |kind| match kind {
        "PodScheduled" => ("True", None),
        "Initialized" => ("True", Some(reason)),
        "PodReadyToStartContainers" => ("False", None),
        _ => ("False", Some(reason)),
    });
    status.insert("conditions".to_owned(), reported);
    let statuses = |containers: &[Container], of_init: bool| -> Vec<Value> {
        containers
            .iter()
            .map(|container| {
                let code = if of_init { 0 } else { pod.exit_code };
                let state = terminated(pod, container, code, &from, &until);
                container_status(pod, container, &state, of_init && !container.restartable)
            })
            .collect()
    };
    status.insert("containerStatuses".to_owned(), statuses(&pod.containers, false).into());
    if !pod.init_containers.is_empty() {
        status.insert("initContainerStatuses".to_owned(), statuses(&pod.init_containers, true).into());
    }
    patch(pod, &status)
}

/// The containers ended at `now` and wait to be started again; they ran since `since`.
pub(super) fn crashed(pod: &PodView, place: &Place, since: Timestamp, now: Timestamp) -> Value {
    let (from, until) = (stamp(since), stamp(now));
    let waiting = json!({"waiting": {
        "reason": "CrashLoopBackOff", "message": "the containers ended and will be started again",
    }});
    let mut status = started(pod, place, "Running", now);
    let reported = conditions(pod, now, |kind| match kind {
        "Ready" | "ContainersReady" => ("False", Some("ContainersNotReady")),
        _ => ("True", None),
    });
    status.insert("conditions".to_owned(), reported);
    let statuses = pod.containers.iter().map(|container| {
        let mut status = container_status(pod, container, &waiting, false);
        status["lastState"] = terminated(pod, container, pod.exit_code, &from, &until);
        status
    });
    status.insert("containerStatuses".to_owned(), statuses.collect());
    patch(pod, &status)
}

/// The containers, which ended at `ended`, run again since `now`.
pub(super) fn restarted(pod: &PodView, place: &Place, ended: Timestamp, now: Timestamp) -> Value {
    let until = stamp(ended);
    let from = pod.running_since.map_or_else(|| until.clone(), stamp);
    let mut status = started(pod, place, "Running", now);
    status.insert("conditions".to_owned(), conditions(pod, now, |_| ("True", None)));
    let statuses = pod.containers.iter().map(|container| {
        let running = json!({"running": {"startedAt": stamp(now)}});
        let mut status = container_status(pod, container, &running, true);
        status["lastState"] = terminated(pod, container, pod.exit_code, &from, &until);
        status["restartCount"] = json!(pod.restarts.saturating_add(1));
        status
    });
    status.insert("containerStatuses".to_owned(), statuses.collect());
    patch(pod, &status)
}

/// True if the pod is Ready.
pub(super) fn is_ready(pod: &PodView) -> bool {
    pod.conditions.iter().any(|c| text(c, "type") == Some("Ready") && text(c, "status") == Some("True"))
}

/// The pod, which somebody called unready, is ready after all.
pub(super) fn ready_again(pod: &PodView, now: Timestamp) -> Value {
    json!({
        "metadata": {"resourceVersion": pod.version, "uid": pod.pod.uid},
        "status": {"conditions": conditions(pod, now, |_| ("True", None))},
    })
}

/// The node did not take the pod.
pub(super) fn rejected(pod: &PodView, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut status = started(pod, &Place::default(), "Failed", now);
    status.insert("reason".to_owned(), json!(reason));
    status.insert("message".to_owned(), json!(message));
    patch(pod, &status)
}

fn patch(pod: &PodView, status: &Map<String, Value>) -> Value {
    json!({"metadata": {"resourceVersion": pod.version, "uid": pod.pod.uid}, "status": status})
}

/// What every status of a pod says that has met a kubelet.
fn started(pod: &PodView, place: &Place, phase: &str, now: Timestamp) -> Map<String, Value> {
    let mut status = Map::new();
    status.insert("phase".to_owned(), json!(phase));
    let start = pod.start_time.clone().unwrap_or_else(|| stamp(now));
    status.insert("startTime".to_owned(), json!(start));
    if let Some(host) = &place.host {
        status.insert("hostIP".to_owned(), json!(host));
        status.insert("hostIPs".to_owned(), json!([{"ip": host}]));
    }
    if let Some(address) = &place.pod {
        status.insert("podIP".to_owned(), json!(address));
        status.insert("podIPs".to_owned(), json!([{"ip": address}]));
    }
    status
}

/// The five conditions that a kubelet (and, for the last, the scheduler) keeps, merged into what is there.
fn conditions(
    pod: &PodView,
    now: Timestamp,
    of: impl Fn(&str) -> (&'static str, Option<&'static str>),
) -> Value {
    let own = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .into_iter()
        .map(|kind| {
            let (status, reason) = of(kind);
            let mut condition = json!({
                "type": kind, "status": status, "lastTransitionTime": stamp(now),
            });
            if let (Some(reason), Some(fields)) = (reason, condition.as_object_mut()) {
                fields.insert("reason".to_owned(), json!(reason));
            }
            condition
        })
        .collect();
    merge_conditions(&pod.conditions, own).into()
}

/// Puts `own` conditions in place of those of the same type and keeps all others. A condition whose status
/// stays the same keeps its time of transition.
pub(super) fn merge_conditions(existing: &[Value], own: Vec<Value>) -> Vec<Value> {
    let mut merged = existing.to_vec();
    for mut condition in own {
        let same = merged.iter_mut().find(|other| text(other, "type") == text(&condition, "type"));
        match same {
            Some(old) => {
                if text(old, "status") == text(&condition, "status")
                    && let (Some(since), Some(fields)) =
                        (old.get("lastTransitionTime").cloned(), condition.as_object_mut())
                {
                    fields.insert("lastTransitionTime".to_owned(), since);
                }
                *old = condition;
            }
            None => merged.push(condition),
        }
    }
    merged
}

fn terminated(pod: &PodView, container: &Container, exit_code: u8, from: &str, until: &str) -> Value {
    json!({"terminated": {
        "exitCode": exit_code,
        "reason": if exit_code == 0 { "Completed" } else { "Error" },
        "startedAt": from,
        "finishedAt": until,
        "containerID": container_id(pod, container),
    }})
}

fn container_status(pod: &PodView, container: &Container, state: &Value, ready: bool) -> Value {
    json!({
        "name": container.name,
        "image": container.image,
        "imageID": format!("tutti://simulated/{}", container.image),
        "containerID": container_id(pod, container),
        "state": state,
        "lastState": {},
        "ready": ready,
        "started": state.get("running").is_some(),
        "restartCount": pod.restarts,
    })
}

fn container_id(pod: &PodView, container: &Container) -> String {
    format!("tutti://{}/{}", pod.pod.uid, container.name)
}

/// A time as the API writes it: whole seconds.
pub(super) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
