//! Making what stories are about.

use super::{STORY_LABEL, World};
use anyhow::Context as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};
use tutti_cluster::kubelet::{self, NodeTemplate};

impl World<'_> {
    pub(crate) async fn node(&self, name: &str, cpus: &str) -> anyhow::Result<()> {
        self.add(NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi")])).await
    }

    /// Adds a node, Ready; it goes at the end of the story.
    pub(crate) async fn add(&self, node: NodeTemplate) -> anyhow::Result<()> {
        let node = node.label(STORY_LABEL, &self.namespace);
        kubelet::create(&self.client, &node)
            .await
            .with_context(|| format!("cannot create node {}", node.name))
    }

    /// Name and label of a node that goes at the end of the story.
    pub(crate) fn node_metadata(&self, name: &str) -> Value {
        json!({"name": name, "labels": {STORY_LABEL: self.namespace}})
    }

    pub(crate) async fn delete_node(&self, name: &str) -> anyhow::Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn gang(&self, name: &str, min_count: u32) -> anyhow::Result<()> {
        self.group(name, &json!({"gang": {"minCount": min_count}})).await
    }

    pub(crate) async fn group(&self, name: &str, policy: &Value) -> anyhow::Result<()> {
        let group = json!({
            "apiVersion": self.groups.api_version, "kind": "PodGroup",
            "metadata": {"name": name}, "spec": {"schedulingPolicy": policy},
        });
        let group = serde_json::from_value(group)?;
        self.groups()
            .create(&PostParams::default(), &group)
            .await
            .with_context(|| format!("cannot create group {name}"))?;
        Ok(())
    }

    pub(crate) async fn delete_group(&self, name: &str) -> anyhow::Result<()> {
        self.groups().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn pod(&self, name: &str, group: Option<&str>, cpus: &str) -> anyhow::Result<()> {
        self.pod_of(name, &Self::pod_spec(group, cpus)).await
    }

    /// A pod for Tutti that ends quickly.
    pub(crate) fn pod_spec(group: Option<&str>, cpus: &str) -> Value {
        let mut spec = json!({
            "schedulerName": "tutti",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": cpus}}}],
        });
        if let Some(group) = group {
            spec["schedulingGroup"] = json!({"podGroupName": group});
        }
        spec
    }

    pub(crate) async fn pod_of(&self, name: &str, spec: &Value) -> anyhow::Result<()> {
        self.labelled_pod(name, &json!({}), spec).await
    }

    pub(crate) async fn labelled_pod(&self, name: &str, labels: &Value, spec: &Value) -> anyhow::Result<()> {
        let metadata = json!({"name": name, "labels": labels});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        self.pods()
            .create(&PostParams::default(), &serde_json::from_value(pod)?)
            .await
            .with_context(|| format!("cannot create pod {name}"))?;
        Ok(())
    }

    pub(crate) async fn members(
        &self,
        group: &str,
        range: std::ops::Range<usize>,
        cpus: &str,
    ) -> anyhow::Result<()> {
        for index in range {
            self.pod(&format!("{group}-{index}"), Some(group), cpus).await?;
        }
        Ok(())
    }

    /// Pods of one CPU that are made again when they fail or go, labelled `of` their set.
    pub(crate) async fn replicas(
        &self,
        name: &str,
        scheduler: &str,
        group: Option<&str>,
        count: usize,
    ) -> anyhow::Result<()> {
        let mut pod = Self::pod_spec(group, "1");
        pod["schedulerName"] = json!(scheduler);
        self.replicas_of(name, count, &pod).await
    }

    /// The same for any pods.
    pub(crate) async fn replicas_of(&self, name: &str, count: usize, pod: &Value) -> anyhow::Result<()> {
        let labels = json!({"of": name});
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }});
        // Not as a typed object, which may not know the field that names the group.
        self.kubectl(&["create", "--validate=ignore", "-f", "-"], &set.to_string()).await?;
        Ok(())
    }

    /// A Job of pods of one CPU that becomes a gang: by its shape in 1.36, by annotation elsewhere.
    pub(crate) fn gang_job(&self, name: &str, size: u32) -> Value {
        let by_shape = self.groups.version == "v1alpha2";
        let annotations = if by_shape { json!({}) } else { json!({"tutti.dev/gang": "true"}) };
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations},
            "spec": {"completionMode": "Indexed", "parallelism": size, "completions": size, "template": {"spec": {
                "schedulerName": "tutti", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]}}},
        })
    }

    /// Not as a typed object, which may not know all fields.
    pub(crate) async fn create_job(&self, job: &Value) -> anyhow::Result<()> {
        let resource = ApiResource::erase::<Job>(&());
        let jobs = Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let job = serde_json::from_value(job.clone())?;
        jobs.create(&PostParams::default(), &job).await.context("cannot create a Job")?;
        Ok(())
    }

    pub(crate) async fn delete_job(&self, name: &str) -> anyhow::Result<()> {
        self.jobs().delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    pub(crate) async fn delete_pod(&self, name: &str) -> anyhow::Result<()> {
        self.pods().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }
}
