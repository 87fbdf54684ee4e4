//! Pods that need a feature of their kubelet, and nodes that declare it.

use crate::world::World;
use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

const FEATURE: &str = "RestartAllContainersOnContainerExits";

/// A container of such a pod restarts all of them.
fn restarts_all(group: Option<&str>) -> Value {
    let mut spec = World::pod_spec(group, "1");
    spec["containers"][0]["restartPolicy"] = json!("Never");
    spec["containers"][0]["restartPolicyRules"] = json!([
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}},
    ]);
    spec
}

async fn declare(world: &World<'_>, node: &str, features: &[&str]) -> anyhow::Result<()> {
    let nodes = Api::<Node>::all(world.client.clone());
    let patch = Patch::Merge(json!({"status": {"declaredFeatures": features}}));
    let patched = nodes.patch_status(node, &PatchParams::default(), &patch).await?;
    let declared = patched.status.and_then(|status| status.declared_features).unwrap_or_default();
    ensure!(declared == features, "the API server keeps {declared:?}");
    Ok(())
}

pub(super) async fn a_pod_that_needs_a_feature_goes_where_it_is_declared(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("plain", "8").await?;
    world.node("other", "8").await?;
    declare(world, "other", &["ExtendWebSocketsToKubelet"]).await?;
    // Who needs nothing goes anywhere.
    world.pod("simple", None, "1").await?;
    world.wait_running(1).await?;
    world.pod_of("needy", &restarts_all(None)).await?;
    let said = world.wait_unscheduled("needy").await?;
    let expected = format!("0/2 nodes are available: 2 without the declared feature {FEATURE}");
    ensure!(said == expected, "{said}");
    world.gang("g", 2).await?;
    for name in ["g-0", "g-1"] {
        world.pod_of(name, &restarts_all(Some("g"))).await?;
    }
    world.wait_condition("g", "False", &format!("without the declared feature {FEATURE}")).await?;
    // A kubelet was upgraded.
    declare(world, "other", &["ExtendWebSocketsToKubelet", FEATURE]).await?;
    world.wait_running(4).await?;
    for name in ["needy", "g-0", "g-1"] {
        let node = world.node_of(name).await?;
        ensure!(node.as_deref() == Some("other"), "{name} is on {node:?}");
    }
    Ok(())
}
