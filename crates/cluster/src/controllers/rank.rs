//! Which pods go first where there are too many: those that did the least so far.

use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tutti_controllers::{PodView, condition_of, is_ready};

/// Annotation of a pod: what it would cost to lose it, a whole number.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts pods so that the most dispensable are first. `crowds` counts the pods of the owner on each node: where
/// there are more, one can be spared sooner.
pub(super) fn most_dispensable_first(pods: &mut [&PodView], crowds: &BTreeMap<String, usize>) {
    pods.sort_by_cached_key(|pod| {
        let phase = match pod.status.phase.0.as_str() {
            "Running" => 2,
            "Unknown" => 1,
            _ => 0,
        };
        let cost: i32 = pod.annotation(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or(0);
        let crowd = pod.node().and_then(|node| crowds.get(node)).copied().unwrap_or(0);
        let ready_since = condition_of(&pod.status.conditions.0, "Ready")
            .filter(|_| is_ready(pod))
            .and_then(tutti_controllers::Condition::since)
            .unwrap_or(Timestamp::MAX);
        (
            (pod.node().is_some(), phase, is_ready(pod), cost),
            (Reverse(crowd), Reverse(ready_since), Reverse(pod.restarts()), Reverse(pod.created())),
            pod.key(),
        )
    });
}

/// How many of these pods are on each node.
pub(super) fn crowds<'a>(pods: impl Iterator<Item = &'a PodView>) -> BTreeMap<String, usize> {
    let mut crowds = BTreeMap::new();
    for node in pods.filter_map(PodView::node) {
        *crowds.entry(node.to_owned()).or_default() += 1;
    }
    crowds
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, change: impl FnOnce(&mut Value)) -> PodView {
        let mut pod = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-11-15T12:00:00Z", "annotations": {}},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T12:00:00Z"}
            ]},
        });
        change(&mut pod);
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn those_that_did_the_least_go_first() {
        let pods = [
            pod("old", |_| {}),
            pod("young", |p| p["metadata"]["creationTimestamp"] = json!("2026-11-15T12:00:09Z")),
            pod("restarted", |p| {
                p["status"]["containerStatuses"] = json!([{"name": "c", "restartCount": 2}]);
            }),
            pod("ready-late", |p| {
                p["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-11-15T12:00:05Z");
            }),
            pod("crowded", |p| p["spec"]["nodeName"] = json!("full")),
            pod("cheap", |p| p["metadata"]["annotations"][DELETION_COST] = json!("-5")),
            pod("unready", |p| p["status"]["conditions"] = json!([])),
            pod("starting", |p| p["status"]["phase"] = json!("Pending")),
            pod("unbound", |p| p["spec"] = json!({})),
        ];
        let mut ranked: Vec<&PodView> = pods.iter().collect();
        most_dispensable_first(&mut ranked, &[("full".to_owned(), 3), ("n".to_owned(), 1)].into());
        let names: Vec<&str> = ranked.iter().map(|pod| pod.name()).collect();
        assert_eq!(
            names,
            ["unbound", "starting", "unready", "cheap", "crowded", "ready-late", "restarted", "young", "old"]
        );
    }
}
