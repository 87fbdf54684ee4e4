//! Revisions: every template that a Deployment had has a ReplicaSet, numbered in the order in which they were
//! rolled out.

use super::super::replica_set::ReplicaSetView;
use super::view::{DeploymentSpec, DeploymentView};
use crate::controllers::owners;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Label that tells the pods of one template from those of another.
pub(super) const HASH: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that a Deployment does not hand down.
const OWN: [&str; 4] = [REVISION, HISTORY, DESIRED, MAXIMUM];

/// Letters of a hash: as in generated names, nothing that could form a word.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The set whose pods are as the template says; the oldest, if there are several.
pub(super) fn newest<'a>(spec: &DeploymentSpec, sets: &[&'a ReplicaSetView]) -> Option<&'a ReplicaSetView> {
    let wanted = plain(&spec.template);
    let same = |set: &&&ReplicaSetView| set.spec.0.as_ref().is_ok_and(|s| plain(&s.template) == wanted);
    sets.iter().filter(same).min_by_key(|set| (set.created(), set.key())).copied()
}

/// The template without what tells it from others.
fn plain(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH);
    }
    template
}

/// The number of a set; 0 without one.
pub(super) fn revision_of(set: &ReplicaSetView) -> i64 {
    set.annotation(REVISION).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The number that the set of the present template has or is to get.
pub(super) fn revision_to_be(new: Option<&ReplicaSetView>, old: &[&ReplicaSetView]) -> i64 {
    let highest = old.iter().map(|set| revision_of(set)).max().unwrap_or(0);
    match new.map(revision_of) {
        Some(own) if own > highest => own,
        _ => highest.saturating_add(1),
    }
}

/// What a set is called: the name of the Deployment and a hash of the template.
pub(super) fn name_of(deployment: &DeploymentView, spec: &DeploymentSpec) -> (String, String) {
    let collisions = deployment.status.0.collision_count.unwrap_or(0);
    let mut hash: u32 = 0x811c_9dc5;
    for byte in plain(&spec.template).to_string().bytes().chain(collisions.to_le_bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let mut letters = String::new();
    for digit in hash.to_string().bytes() {
        letters.push(char::from(LETTERS[usize::from(digit) % LETTERS.len()]));
    }
    (format!("{}-{letters}", deployment.name()), letters)
}

/// A new set for the present template.
pub(super) fn new_set(
    deployment: &DeploymentView,
    spec: &DeploymentSpec,
    revision: i64,
    replicas: u32,
    deployments: &ApiResource,
) -> Value {
    let (name, hash) = name_of(deployment, spec);
    let mut template = spec.template.clone();
    template["metadata"]["labels"][HASH] = json!(hash);
    let labels = template["metadata"]["labels"].clone();
    let mut selector = spec.selector.clone();
    selector["matchLabels"][HASH] = json!(hash);
    let mut annotations = handed_down(deployment);
    annotations.insert(REVISION.to_owned(), revision.to_string());
    annotations.extend(sizes(spec));
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": name, "labels": labels, "annotations": annotations,
            "ownerReferences": [owners::owner(deployment, deployments)],
        },
        "spec": {
            "replicas": replicas, "minReadySeconds": spec.min_ready_seconds,
            "selector": selector, "template": template,
        },
    })
}

/// The annotations that a set repeats of its Deployment.
fn handed_down(deployment: &DeploymentView) -> BTreeMap<String, String> {
    let all = deployment.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| !OWN.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// How large a Deployment is and may become, as its sets note it.
pub(super) fn sizes(spec: &DeploymentSpec) -> [(String, String); 2] {
    let maximum = spec.wanted().saturating_add(spec.max_surge());
    [(DESIRED.to_owned(), spec.wanted().to_string()), (MAXIMUM.to_owned(), maximum.to_string())]
}

/// The annotations of the present set that are not as they should be, as a merge patch. A set that is rolled out
/// again remembers the numbers that it had.
pub(super) fn annotations_to_write(
    deployment: &DeploymentView,
    set: &ReplicaSetView,
    revision: i64,
) -> Map<String, Value> {
    let mut wanted = handed_down(deployment);
    wanted.insert(REVISION.to_owned(), revision.to_string());
    let before = revision_of(set);
    if before != 0 && before != revision {
        let history = set.annotation(HISTORY).map_or(String::new(), |history| format!("{history},"));
        wanted.insert(HISTORY.to_owned(), format!("{history}{before}"));
    }
    let changed = wanted.into_iter().filter(|(key, value)| set.annotation(key) != Some(value));
    changed.map(|(key, value)| (key, json!(value))).collect()
}
