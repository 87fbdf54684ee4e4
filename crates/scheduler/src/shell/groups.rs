//! Requests about groups, in the ways in which clusters serve them.

use crate::core::message::GroupLookup;
use kube::api::{ApiResource, Patch, PatchParams};
use kube::{Api, Client};
use tutti_engine::UnitKey;
use tutti_k8s::request::{self, EventNote};
use tutti_k8s::workload::{mark_of, workload_of, workload_uid};
use tutti_k8s::{Capabilities, CompositeView, Condition, GroupLink, PodGroupView, WorkloadView};
use tutti_model::{ObjectKey, Text};

/// Under this name conditions are applied; nobody else's are touched.
const FIELD_MANAGER: &str = "tutti-scheduler";

/// Sends requests about groups.
#[derive(Clone)]
pub(super) struct Groups {
    client: Client,
    resource: Option<ApiResource>,
    composite: Option<ApiResource>,
    condition: &'static str,
    link: GroupLink,
}

impl Groups {
    pub(super) fn new(client: Client, capabilities: &Capabilities) -> Self {
        Self {
            client,
            resource: capabilities.pod_group.clone(),
            composite: capabilities.composite.clone(),
            condition: capabilities.group_condition,
            link: capabilities.link,
        }
    }

    /// The group or composite as it is now.
    pub(super) async fn get(&self, unit: &UnitKey) -> Result<GroupLookup, kube::Error> {
        let is_composite = matches!(unit, UnitKey::Composite(_));
        // Without the kind there is none that could have been seen.
        let Some(resource) = (if is_composite { &self.composite } else { &self.resource }) else {
            return Ok(GroupLookup::Gone);
        };
        let (client, group) = (self.client.clone(), unit.object());
        if is_composite {
            let api = Api::<CompositeView>::namespaced_with(client, &group.namespace, resource);
            let found = api.get_opt(&group.name).await?.map(|found| Box::new(found.read()));
            return Ok(found.map_or(GroupLookup::Gone, GroupLookup::Found));
        }
        let found = if self.link.has_group_objects() {
            let api = Api::<PodGroupView>::namespaced_with(client, &group.namespace, resource);
            api.get_opt(&group.name).await?.map(|found| found.read(self.condition))
        } else {
            let api = Api::<WorkloadView>::namespaced_with(client, &group.namespace, resource);
            let workload = api.get_opt(&workload_of(group).name).await?;
            workload.and_then(|workload| workload.read().group(group))
        };
        Ok(found.map_or(GroupLookup::Gone, |found| GroupLookup::Found(Box::new(found))))
    }

    /// Sets one condition in the status of a group or composite, if a version is given only if it is still at it. Those
    /// without a status have only events.
    pub(super) async fn set_condition(
        &self,
        group: &UnitKey,
        uid: &Text,
        version: Option<&str>,
        condition: &Condition,
    ) -> Result<(), kube::Error> {
        let (resource, group) = match group {
            UnitKey::Group(key) => (&self.resource, key),
            UnitKey::Composite(key) => (&self.composite, key),
            UnitKey::Pod(_) => return Ok(()),
        };
        let Some(resource) = resource else {
            return Ok(());
        };
        let (params, patch) = match self.link {
            GroupLink::WorkloadRef => return Ok(()),
            GroupLink::SchedulingGroup => {
                let body = request::group_condition_patch(uid, version, condition);
                (PatchParams::default(), Patch::Strategic(body))
            }
            GroupLink::Label => {
                let body = request::group_condition_apply(resource, &group.name, uid, version, condition);
                (PatchParams::apply(FIELD_MANAGER).force(), Patch::Apply(body))
            }
        };
        let api = Api::<PodGroupView>::namespaced_with(self.client.clone(), &group.namespace, resource);
        api.patch_status(&group.name, &params, &patch).await.map(drop)
    }

    /// Sets annotations of a group, or removes those without a value, if it is still at this version. Groups that are
    /// parts of one workload would only get in each other's way by that, so there the identity is all that counts.
    pub(super) async fn set_marks(
        &self,
        group: &ObjectKey,
        uid: &Text,
        version: &Text,
        marks: Vec<(Text, Option<Text>)>,
    ) -> Result<(), kube::Error> {
        let Some(resource) = &self.resource else {
            return Ok(());
        };
        let (key, body) = if self.link.has_group_objects() {
            (group.clone(), request::annotations_patch(uid, Some(version), &marks))
        } else {
            let marks: Vec<_> =
                marks.into_iter().map(|(mark, value)| (mark_of(&mark, group), value)).collect();
            (workload_of(group), request::annotations_patch(workload_uid(uid), None, &marks))
        };
        let api = Api::<PodGroupView>::namespaced_with(self.client.clone(), &key.namespace, resource);
        api.patch(&key.name, &PatchParams::default(), &Patch::Merge(body)).await.map(drop)
    }

    /// An event about a group that has no object is about its workload, and says which part is meant.
    pub(super) fn addressed(&self, mut note: EventNote) -> EventNote {
        let about_group =
            self.resource.as_ref().is_some_and(|resource| *resource.kind == *note.regarding.kind);
        if self.link.has_group_objects() || !about_group {
            return note;
        }
        let workload = workload_of(&note.regarding.key);
        let part = note.regarding.key.name.strip_prefix(&*workload.name).unwrap_or_default();
        note.message = Text::from(format!("pod group {}: {}", part.trim_start_matches('/'), note.message));
        note.regarding.uid = Text::from(workload_uid(&note.regarding.uid));
        note.regarding.key = workload;
        note
    }
}
