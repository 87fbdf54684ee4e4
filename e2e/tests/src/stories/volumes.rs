//! Volumes: those that exist are given once each, others are made for the node that was chosen, and nobody starts before.

use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Names are the story's own: classes and volumes belong to no namespace.
struct Storage<'a> {
    world: &'a World<'a>,
}

impl Storage<'_> {
    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.world.namespace)
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.world.client.clone())
    }

    async fn class(&self, name: &str, provisioner: &str) -> anyhow::Result<()> {
        let class = json!({
            "metadata": {"name": self.name(name)}, "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        });
        let classes = Api::<StorageClass>::all(self.world.client.clone());
        classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
        Ok(())
    }

    async fn claim(&self, name: &str, class: &str) -> anyhow::Result<()> {
        let claim = json!({
            "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": self.name(class),
                     "resources": {"requests": {"storage": "1Gi"}}},
        });
        self.claims().create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
        Ok(())
    }

    /// A volume that one node reaches, kept for a claim if one is given.
    async fn volume(&self, name: &str, class: &str, node: &str, kept_for: Value) -> anyhow::Result<()> {
        let term = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
        let volume = json!({
            "metadata": {"name": self.name(name)},
            "spec": {
                "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.name(class), "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": "/none"}, "claimRef": kept_for,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            },
        });
        self.volumes().create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
        Ok(())
    }

    async fn pod(&self, name: &str, group: Option<&str>, claim: &str) -> anyhow::Result<()> {
        let mut spec = json!({
            "schedulerName": "tutti", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        });
        if let Some(group) = group {
            spec["schedulingGroup"] = json!({"podGroupName": group});
        }
        self.world.pod_of(name, &spec).await
    }

    /// The node that a claim was told to have its volume made for, once it was.
    async fn selected_node(&self, claim: &str) -> anyhow::Result<String> {
        eventually(&format!("a node is selected for {claim}"), || async {
            let annotations = self.claims().get(claim).await?.metadata.annotations.unwrap_or_default();
            Ok(annotations.get(SELECTED_NODE).cloned().ok_or_else(|| "none is".to_owned()))
        })
        .await
    }

    /// What a provisioner does: a volume that the selected node reaches.
    async fn provision(&self, claim: &str) -> anyhow::Result<String> {
        let node = self.selected_node(claim).await?;
        let uid = self.claims().get(claim).await?.metadata.uid.context("a claim without identity")?;
        let kept_for = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid,
            "namespace": self.world.namespace, "name": claim,
        });
        self.volume(&format!("made-for-{claim}"), "made", &node, kept_for).await?;
        Ok(node)
    }

    /// Takes away what belongs to no namespace.
    async fn end(&self) -> anyhow::Result<()> {
        let pods = self.world.pods();
        pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
        self.claims().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        let prefix = self.name("");
        for volume in self.volumes().list(&ListParams::default()).await? {
            let name = volume.metadata.name.unwrap_or_default();
            if name.starts_with(&prefix) {
                self.volumes().delete(&name, &DeleteParams::default()).await?;
            }
        }
        let classes = Api::<StorageClass>::all(self.world.client.clone());
        for class in classes.list(&ListParams::default()).await? {
            let name = class.metadata.name.unwrap_or_default();
            if name.starts_with(&prefix) {
                classes.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}

pub(super) async fn local_volumes_are_given_once_each_to_a_gang(world: &World<'_>) -> anyhow::Result<()> {
    let storage = Storage { world };
    for node in ["n1", "n2", "n3"] {
        world.node(node, "4").await?;
    }
    storage.class("local", "kubernetes.io/no-provisioner").await?;
    for node in ["n1", "n2"] {
        storage.volume(&format!("on-{node}"), "local", node, Value::Null).await?;
    }
    world.gang("g", 3).await?;
    for member in 0..3 {
        storage.claim(&format!("data-{member}"), "local").await?;
        storage.pod(&format!("g-{member}"), Some("g"), &format!("data-{member}")).await?;
    }
    let condition = world.wait_condition("g", "False", "2 of 3 members fit").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    ensure!(message.contains("no free volume for a claim"), "{message}");
    ensure!(world.counts().await?.0 == 0, "somebody started");
    storage.volume("on-n3", "local", "n3", Value::Null).await?;
    world.wait_running(3).await?;
    let mut nodes = Vec::new();
    for member in 0..3 {
        let claim = storage.claims().get(&format!("data-{member}")).await?;
        let volume = claim.spec.and_then(|spec| spec.volume_name).context("a claim is not bound")?;
        let node = world.node_of(&format!("g-{member}")).await?.unwrap_or_default();
        ensure!(volume == storage.name(&format!("on-{node}")), "g-{member} is on {node} and has {volume}");
        nodes.push(node);
    }
    nodes.sort_unstable();
    ensure!(nodes == ["n1", "n2", "n3"], "{nodes:?}");
    storage.end().await
}

pub(super) async fn a_gang_waits_until_all_its_volumes_are_made(world: &World<'_>) -> anyhow::Result<()> {
    let storage = Storage { world };
    world.node("n1", "1").await?;
    world.node("n2", "1").await?;
    storage.class("made", "e2e.tutti.dev/provisioner").await?;
    world.gang("g", 2).await?;
    for member in 0..2 {
        storage.claim(&format!("data-{member}"), "made").await?;
        storage.pod(&format!("g-{member}"), Some("g"), &format!("data-{member}")).await?;
    }
    let first = storage.provision("data-0").await?;
    let second = storage.selected_node("data-1").await?;
    ensure!(first != second, "both on {first}");
    eventually("the first claim is bound", || async {
        let phase = storage.claims().get("data-0").await?.status.and_then(|status| status.phase);
        Ok((phase.as_deref() == Some("Bound")).then_some(()).ok_or_else(|| format!("{phase:?}")))
    })
    .await?;
    ensure!(world.counts().await?.0 == 0, "a member was bound before all claims were");
    // A provisioner that cannot make a volume takes the selected node back; it is asked again.
    let nothing = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
    storage.claims().patch("data-1", &PatchParams::default(), &Patch::Merge(nothing)).await?;
    let said = world.wait_event("g-1", "FailedScheduling").await?;
    ensure!(said.contains("no volume could be made for volume claim data-1"), "{said}");
    storage.provision("data-1").await?;
    world.wait_running(2).await?;
    ensure!(world.node_of("g-0").await?.as_deref() == Some(first.as_str()), "g-0 left its volume");
    storage.end().await
}
