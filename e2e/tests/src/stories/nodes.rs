//! `tutti nodes` as a process, in a cluster that it does not know.

use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::process::{Child, Command, Stdio};
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
    let arguments = ["--nodes", "2", "--gpus", "1", "--heartbeat-seconds", "2"];
    let mut process = Process::start(world, &arguments)?;
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

/// The command. It is killed when the story ends.
struct Process(Child);

impl Process {
    fn start(world: &World<'_>, arguments: &[&str]) -> anyhow::Result<Self> {
        let child = Command::new(&world.tutti)
            .arg("nodes")
            .arg("--kubeconfig")
            .arg(&world.kubeconfig)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", world.tutti.display()))?;
        Ok(Self(child))
    }

    fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.0.try_wait()?;
        ensure!(ended.is_none(), "tutti nodes ended by itself: {ended:?}");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
