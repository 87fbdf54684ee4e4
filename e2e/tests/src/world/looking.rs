//! Looking at what became of it, and waiting for it.

use super::World;
use crate::wait::eventually;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;

impl World<'_> {
    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn replica_sets(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// How many Workloads and groups there are.
    pub(crate) async fn made(&self) -> anyhow::Result<(usize, usize)> {
        let resource = ApiResource {
            kind: "Workload".to_owned(),
            plural: "workloads".to_owned(),
            ..self.groups.clone()
        };
        let workloads =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let all = ListParams::default();
        Ok((workloads.list(&all).await?.items.len(), self.groups().list(&all).await?.items.len()))
    }

    pub(crate) async fn wait_made(&self, workloads: usize, groups: usize) -> anyhow::Result<()> {
        eventually(&format!("{workloads} Workloads and {groups} groups"), || async {
            self.check()?;
            let made = self.made().await?;
            Ok((made == (workloads, groups)).then_some(()).ok_or_else(|| format!("{made:?}")))
        })
        .await
    }

    pub(crate) fn groups(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &self.groups)
    }

    /// `v1alpha2` or whatever pod groups are called here.
    pub(crate) fn group_api_version(&self) -> &str {
        &self.groups.api_version
    }

    /// How many pods have a node, and how many run.
    pub(crate) async fn counts(&self) -> anyhow::Result<(usize, usize)> {
        let pods = self.pods().list(&ListParams::default()).await?;
        let bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running")
        };
        Ok((pods.iter().filter(bound).count(), pods.iter().filter(runs).count()))
    }

    /// Waits until this many pods of the story are bound and run, no more and no less.
    pub(crate) async fn wait_running(&self, count: usize) -> anyhow::Result<()> {
        eventually(&format!("{count} pods run"), || async {
            self.check()?;
            let (bound, running) = self.counts().await?;
            Ok((bound == count && running == count)
                .then_some(())
                .ok_or_else(|| format!("{bound} bound, {running} running")))
        })
        .await
    }

    pub(crate) async fn node_of(&self, pod: &str) -> anyhow::Result<Option<String>> {
        Ok(self.pods().get(pod).await?.spec.and_then(|spec| spec.node_name))
    }

    /// The condition that the scheduler writes on a group, once it has this status and its message contains a text.
    pub(crate) async fn wait_condition(
        &self,
        group: &str,
        status: &str,
        text: &str,
    ) -> anyhow::Result<Value> {
        let kind = self.capabilities.group_condition;
        let what = format!("{kind} of {group} is {status} and says {text:?}");
        eventually(&what, || async {
            // It may be for somebody else to create it.
            let Some(group) = self.groups().get_opt(group).await? else {
                return Ok(Err("there is no such group".to_owned()));
            };
            let conditions = group.data["status"]["conditions"].clone();
            let found = conditions.as_array().into_iter().flatten().find(|c| {
                c["type"] == kind
                    && c["status"] == status
                    && c["message"].as_str().unwrap_or_default().contains(text)
            });
            Ok(found.cloned().ok_or_else(|| conditions.to_string()))
        })
        .await
    }

    /// The message of an event on an object, once it is there.
    pub(crate) async fn wait_event(&self, object: &str, reason: &str) -> anyhow::Result<String> {
        self.wait_event_saying(object, reason, "").await
    }

    /// The same of an event whose message contains a text.
    pub(crate) async fn wait_event_saying(
        &self,
        object: &str,
        reason: &str,
        text: &str,
    ) -> anyhow::Result<String> {
        let events = Api::<Event>::namespaced(self.client.clone(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={object}"));
        eventually(&format!("event {reason} on {object} that says {text:?}"), || async {
            let events = events.list(&about).await?;
            let said: Vec<(String, String)> = events
                .into_iter()
                .map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default()))
                .collect();
            let found = said.iter().find(|(found, message)| found == reason && message.contains(text));
            Ok(found.map(|(_, message)| message.clone()).ok_or_else(|| format!("{said:?}")))
        })
        .await
    }

    /// The message of a pod's PodScheduled condition, once it is False.
    pub(crate) async fn wait_unscheduled(&self, pod: &str) -> anyhow::Result<String> {
        eventually(&format!("{pod} says why it waits"), || async {
            let status = self.pods().get(pod).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            let found = conditions
                .into_iter()
                .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
            Ok(found.and_then(|condition| condition.message).ok_or_else(|| "nothing".to_owned()))
        })
        .await
    }

    pub(crate) async fn wait_gone(&self, group: &str) -> anyhow::Result<()> {
        eventually(&format!("group {group} is gone"), || async {
            Ok(match self.groups().get_opt(group).await? {
                None => Ok(()),
                Some(group) => Err(format!("finalizers {:?}", group.metadata.finalizers)),
            })
        })
        .await
    }

    /// What the real kubectl prints, run in the namespace of the story. `input` is what it reads as `-f -`.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        self.kubectl.run(&self.namespace, arguments, input).await
    }
}
