//! `tutti nodes` as a process, in a cluster that it does not know.

use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use serde_json::json;
use tutti_cluster::kubelet::GPU;

pub(super) async fn tutti_nodes_creates_nodes_and_adopts_others(world: &World<'_>) -> anyhow::Result<()> {
    world.stop("kubelets").await?;
    let result = with_tutti_nodes(world).await;
    for node in ["node-0", "node-1"] {
        // What the process did not get round to creating need not be removed.
        let _ = world.delete_node(node).await;
    }
    world.start_kubelets()?;
    result
}

async fn with_tutti_nodes(world: &World<'_>) -> anyhow::Result<()> {
    let kubeconfig = world.kubeconfig.display().to_string();
    let arguments = ["nodes", "--kubeconfig", &kubeconfig, "--nodes", "2", "--gpus", "1"];
    let mut process = Tutti::start(world, &[&arguments[..], &["--heartbeat-seconds", "2"]].concat())?;
    world.gang("g", 2).await?;
    for name in ["g-0", "g-1"] {
        let spec = json!({
            "schedulerName": "tutti",
            "terminationGracePeriodSeconds": 1,
            "schedulingGroup": {"podGroupName": "g"},
            "containers": [{"name": "main", "image": "any", "resources": {"limits": {GPU: "1"}}}],
        });
        world.pod_of(name, &spec).await?;
    }
    world.wait_running(2).await?;
    process.check()?;

    // A node that comes with nothing but a name is completed and runs pods.
    let bare: Node = serde_json::from_value(json!({"metadata": world.node_metadata("bare")}))?;
    let nodes = Api::<Node>::all(world.client.clone());
    nodes.create(&PostParams::default(), &bare).await?;
    eventually("the bare node is ready", || async {
        let status = nodes.get("bare").await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
        Ok(ready.then_some(()).ok_or_else(|| format!("{conditions:?}")))
    })
    .await?;
    let spec = json!({
        "schedulerName": "tutti",
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": "bare"},
        "containers": [{"name": "main", "image": "any"}],
    });
    world.pod_of("on-bare", &spec).await?;
    world.wait_running(3).await?;
    // Who is deleted is gone, which only a kubelet can bring about.
    world.delete_pod("on-bare").await?;
    world.wait_running(2).await?;
    eventually("the pod is gone", || async {
        let pod = world.pods().get_opt("on-bare").await?;
        Ok(pod.map_or(Ok(()), |pod| Err(format!("{:?}", pod.metadata.deletion_timestamp))))
    })
    .await?;
    process.check()
}
