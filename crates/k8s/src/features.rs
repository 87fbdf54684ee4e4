//! Features that a pod needs of its kubelet, by what its spec uses. Nodes declare what they have in
//! `status.declaredFeatures`.
//!
//! These are all that kube-scheduler infers from the spec in 1.36 and 1.37; others concern updates of pods that run. A
//! release that lacks a feature does not let its fields through, so nothing here depends on the release.

use crate::lenient::Lenient;
use crate::pod_spec::{ContainerView, PodSpecView};
use crate::selector::text;
use tutti_model::{ModelError, Text};

/// Containers that end may restart all containers of the pod.
const RESTART_ALL: &str = "RestartAllContainersOnContainerExits";
/// The pod has users of its own in the network of its node.
const USERS_IN_HOST_NETWORK: &str = "UserNamespacesHostNetworkSupport";
/// Volumes are mounted with options.
const MOUNT_OPTIONS: &str = "VolumeBindMountOptions";

/// The features that a pod needs, sorted.
pub(crate) fn needed_features(spec: &PodSpecView) -> Result<Vec<Text>, ModelError> {
    let (mut restarts_all, mut has_options) = (false, false);
    for (list, field) in
        [(&spec.containers, "spec.containers"), (&spec.init_containers, "spec.initContainers")]
    {
        // Shapes that are wrong further out are reported where requests are read.
        for (index, container) in items(list).enumerate() {
            let within = |error: ModelError| error.within(&format!("{field}[{index}]"));
            restarts_all |= restarts_all_containers(container).map_err(within)?;
            has_options |= has_mount_options(container).map_err(within)?;
        }
    }
    let host_network = spec.host_network.at("spec.hostNetwork")?.copied().unwrap_or(false);
    let host_users = spec.host_users.at("spec.hostUsers")?.copied().unwrap_or(true);
    let needed = [
        (restarts_all, RESTART_ALL),
        (host_network && !host_users, USERS_IN_HOST_NETWORK),
        (has_options, MOUNT_OPTIONS),
    ];
    Ok(needed.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, name)| Text::from(name)).collect())
}

fn restarts_all_containers(container: &ContainerView) -> Result<bool, ModelError> {
    container.restart_policy_rules.at("restartPolicyRules")?;
    for rule in items(&container.restart_policy_rules) {
        if text(&rule.action, "restartPolicyRules.action")? == "RestartAllContainers" {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_mount_options(container: &ContainerView) -> Result<bool, ModelError> {
    for mount in items(&container.volume_mounts) {
        let options = mount.bind_mount_options.at("volumeMounts.bindMountOptions")?;
        if options.is_some_and(|options| !options.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What could be read of a list.
fn items<T>(list: &Lenient<Vec<Lenient<T>>>) -> impl Iterator<Item = &T> {
    list.get().ok().flatten().into_iter().flatten().filter_map(|item| item.get().ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeView, PodView};
    use serde_json::{Value, json};

    fn needs(spec: &Value) -> Vec<Text> {
        let pod = json!({"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": spec});
        let view: PodView = serde_json::from_value(pod).unwrap();
        view.read().complete().unwrap().features
    }

    #[test]
    fn a_pod_needs_what_its_spec_uses() {
        let restarts = |action: &str| {
            json!([{"name": "c", "restartPolicy": "Never", "restartPolicyRules": [
                {"action": action, "exitCodes": {"operator": "In", "values": [42]}}]}])
        };
        let all = "RestartAllContainers";
        for (spec, expected) in [
            (json!({"containers": [{"name": "c"}]}), &[][..]),
            (json!({"containers": restarts("Restart")}), &[]),
            (json!({"containers": restarts(all)}), &[RESTART_ALL]),
            (json!({"initContainers": restarts(all)}), &[RESTART_ALL]),
            (json!({"hostNetwork": true}), &[]),
            (json!({"hostUsers": false}), &[]),
            (json!({"hostNetwork": true, "hostUsers": true}), &[]),
            (json!({"hostNetwork": true, "hostUsers": false}), &[USERS_IN_HOST_NETWORK]),
            (
                json!({"containers": [{"name": "c", "volumeMounts": [{"name": "v", "bindMountOptions": []}]}]}),
                &[],
            ),
            (
                json!({"hostNetwork": true, "hostUsers": false, "containers": restarts(all), "initContainers": [
                    {"name": "i", "volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}]}),
                &[RESTART_ALL, USERS_IN_HOST_NETWORK, MOUNT_OPTIONS],
            ),
        ] {
            assert_eq!(needs(&spec), expected.iter().copied().map(Text::from).collect::<Vec<_>>(), "{spec}");
        }
    }

    #[test]
    fn features_of_a_node_are_sorted_and_those_that_cannot_be_read_are_reported() {
        let read = |features: Value| {
            let node =
                json!({"metadata": {"name": "n", "uid": "u"}, "status": {"declaredFeatures": features}});
            serde_json::from_value::<NodeView>(node).unwrap().read()
        };
        let reading = read(json!(["B", "A", "B"]));
        assert_eq!(reading.node.features, ["A", "B"].map(Text::from));
        assert_eq!(reading.errors, []);
        let reading = read(json!({"A": true}));
        assert_eq!(
            reading.errors[0].to_string(),
            "node n: status.declaredFeatures: want a list, found an object"
        );
        assert!(reading.node.unschedulable, "what could not be read may be what keeps pods away");
    }
}
