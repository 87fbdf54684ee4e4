//! Classes, claims and volumes of a story.

use crate::wait::eventually;
use crate::world::World;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use std::future::Future;

pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Names are the story's own: classes and volumes belong to no namespace.
pub(super) struct Storage<'a> {
    world: &'a World<'a>,
}

impl<'a> Storage<'a> {
    pub(super) fn of(world: &'a World<'a>) -> Self {
        Self { world }
    }

    /// Tells a story, and takes away what belongs to no namespace however it ended.
    pub(super) async fn tell(&self, story: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
        let told = story.await;
        let ended = self.end().await;
        told.and(ended)
    }

    pub(super) fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.world.namespace)
    }

    pub(super) fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.world.client.clone())
    }

    /// A class whose claims get a volume once it is known where their pod goes.
    pub(super) async fn class(&self, name: &str, provisioner: &str) -> anyhow::Result<()> {
        self.class_bound(name, provisioner, "WaitForFirstConsumer").await
    }

    /// A class whose claims get a volume at once, wherever that is.
    pub(super) async fn class_at_once(&self, name: &str) -> anyhow::Result<()> {
        self.class_bound(name, "kubernetes.io/no-provisioner", "Immediate").await
    }

    async fn class_bound(&self, name: &str, provisioner: &str, mode: &str) -> anyhow::Result<()> {
        let class = json!({
            "metadata": {"name": self.name(name)}, "provisioner": provisioner, "volumeBindingMode": mode,
        });
        let classes = Api::<StorageClass>::all(self.world.client.clone());
        classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
        Ok(())
    }

    pub(super) async fn claim(&self, name: &str, class: &str) -> anyhow::Result<()> {
        self.claim_for(name, class, "ReadWriteOnce").await
    }

    pub(super) async fn claim_for(&self, name: &str, class: &str, mode: &str) -> anyhow::Result<()> {
        let claim = json!({
            "metadata": {"name": name},
            "spec": {"accessModes": [mode], "storageClassName": self.name(class),
                     "resources": {"requests": {"storage": "1Gi"}}},
        });
        self.claims().create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
        Ok(())
    }

    /// A volume that everybody reaches and nobody has. `more` of its spec adds to that or changes it.
    pub(super) async fn volume(
        &self,
        name: &str,
        class: &str,
        labels: &Value,
        more: &[(&str, Value)],
    ) -> anyhow::Result<()> {
        let mut spec = json!({
            "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.name(class), "persistentVolumeReclaimPolicy": "Retain",
        });
        for (field, value) in more {
            spec[field] = value.clone();
        }
        if spec.get("csi").is_none() {
            spec["hostPath"] = json!({"path": "/none"});
        }
        let volume = json!({"metadata": {"name": self.name(name), "labels": labels}, "spec": spec});
        self.volumes().create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
        Ok(())
    }

    /// A volume that one node reaches.
    pub(super) async fn volume_on(&self, node: &str, name: &str, class: &str) -> anyhow::Result<()> {
        self.volume(name, class, &json!({}), &[reached_by("kubernetes.io/hostname", node)]).await
    }

    /// A claim that has its volume, which is of a class that binds at once. `more` is about the volume.
    pub(super) async fn bound_claim(
        &self,
        name: &str,
        class: &str,
        mode: &str,
        labels: &Value,
        more: &[(&str, Value)],
    ) -> anyhow::Result<()> {
        let kept = json!({"namespace": self.world.namespace, "name": name});
        let own = [("claimRef", kept), ("accessModes", json!([mode]))];
        self.volume(name, class, labels, &[&own, more].concat()).await?;
        self.claim_for(name, class, mode).await?;
        self.wait_bound(name).await
    }

    pub(super) async fn wait_bound(&self, claim: &str) -> anyhow::Result<()> {
        eventually(&format!("claim {claim} is bound"), || async {
            let phase = self.claims().get(claim).await?.status.and_then(|status| status.phase);
            Ok((phase.as_deref() == Some("Bound")).then_some(()).ok_or_else(|| format!("{phase:?}")))
        })
        .await
    }

    pub(super) async fn pod(&self, name: &str, group: Option<&str>, claim: &str) -> anyhow::Result<()> {
        let spec = with_claim(World::pod_spec(group, "1"), claim);
        self.world.pod_of(name, &spec).await
    }

    /// The node that a claim was told to have its volume made for, once it was.
    pub(super) async fn selected_node(&self, claim: &str) -> anyhow::Result<String> {
        eventually(&format!("a node is selected for {claim}"), || async {
            Ok(self.selected_node_now(claim).await?.ok_or_else(|| "none is".to_owned()))
        })
        .await
    }

    pub(super) async fn selected_node_now(&self, claim: &str) -> anyhow::Result<Option<String>> {
        let annotations = self.claims().get(claim).await?.metadata.annotations.unwrap_or_default();
        Ok(annotations.get(SELECTED_NODE).cloned())
    }

    /// What a provisioner does: a volume that the selected node reaches.
    pub(super) async fn provision(&self, claim: &str) -> anyhow::Result<String> {
        let node = self.selected_node(claim).await?;
        self.provision_with(claim, &[reached_by("kubernetes.io/hostname", &node)]).await?;
        Ok(node)
    }

    /// A volume is made for a claim. `more` is about the volume.
    pub(super) async fn provision_with(&self, claim: &str, more: &[(&str, Value)]) -> anyhow::Result<()> {
        let found = self.claims().get(claim).await?;
        let uid = found.metadata.uid.context("a claim without identity")?;
        let modes = found.spec.and_then(|spec| spec.access_modes).unwrap_or_default();
        let kept = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid,
            "namespace": self.world.namespace, "name": claim,
        });
        let own = [("claimRef", kept), ("accessModes", json!(modes))];
        self.volume(&format!("made-for-{claim}"), "made", &json!({}), &[&own, more].concat()).await
    }

    async fn end(&self) -> anyhow::Result<()> {
        let all = ListParams::default();
        let replica_sets = self.world.replica_sets();
        replica_sets.delete_collection(&DeleteParams::background(), &all).await?;
        self.world.pods().delete_collection(&DeleteParams::default().grace_period(0), &all).await?;
        self.claims().delete_collection(&DeleteParams::default(), &all).await?;
        let prefix = self.name("");
        for volume in self.volumes().list(&all).await? {
            let name = volume.metadata.name.unwrap_or_default();
            if name.starts_with(&prefix) {
                self.volumes().delete(&name, &DeleteParams::default()).await?;
            }
        }
        let classes = Api::<StorageClass>::all(self.world.client.clone());
        for class in classes.list(&all).await? {
            let name = class.metadata.name.unwrap_or_default();
            if name.starts_with(&prefix) {
                classes.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}

/// A pod that uses a claim, too.
pub(super) fn with_claim(mut spec: Value, claim: &str) -> Value {
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    spec
}

/// That a volume is reached by nodes with this label only.
pub(super) fn reached_by(key: &str, value: &str) -> (&'static str, Value) {
    let term = json!({"key": key, "operator": "In", "values": [value]});
    ("nodeAffinity", json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}))
}
