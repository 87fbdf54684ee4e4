//! What is missing, as requests.

use super::known::{Known, Made};
use super::reference::Reference;
use super::template::{find, name_of};
use super::{is_by_name, template_of};
use crate::action::{Action, Edit, Plan, Told};
use crate::gangs::{MADE_BY, differs, is_ours};
use crate::view::Key;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tutti_k8s::gangs::{group_name, workload_of};
use tutti_k8s::inheritance::{self, Annotations, Part};

/// A group that is not there, and the composites around it.
pub(super) struct Missing<'a> {
    known: &'a Known,
    key: &'a Key,
    workload: &'a Made,
    reference: &'a Reference,
    leaf: &'a Value,
    /// Name and template of every composite, from the outermost to the innermost.
    composites: Vec<(String, &'a Value)>,
}

impl<'a> Missing<'a> {
    /// Finds the template. The error says why it cannot be used.
    pub(super) fn new(
        known: &'a Known,
        key: &'a Key,
        workload: &'a Made,
        reference: &'a Reference,
    ) -> Result<Self, String> {
        let found = find(&workload.spec, &reference.template)
            .map_err(|why| format!("workload {}: {why}", workload.name()))?;
        let mut composites: Vec<(String, &Value)> = found
            .composites
            .into_iter()
            .map(|composite| (group_name(workload.name(), name_of(composite)), composite))
            .collect();
        match (&reference.parent, composites.last_mut()) {
            (Some(parent), Some(innermost)) => innermost.0.clone_from(parent),
            (Some(parent), None) => {
                return Err(format!(
                    "workload {}: template {} is not part of a composite, so its group cannot be part of {parent}",
                    workload.name(),
                    reference.template
                ));
            }
            (None, _) => {}
        }
        Ok(Self { known, key, workload, reference, leaf: found.leaf, composites })
    }

    /// The outermost object that is missing. The error says why it is not made.
    pub(super) fn next(&self) -> Result<Action, String> {
        let mut parent = None;
        for (index, (name, template)) in self.composites.iter().enumerate() {
            let resource = self.known.composites_resource.as_ref();
            let Some(resource) = resource else {
                return Err("the cluster serves no composites of groups".to_owned());
            };
            let is_innermost = index + 1 == self.composites.len();
            match self.known.composite(&Key::new(self.key.namespace.as_str(), name.as_str())) {
                Some(there) => self.check_composite(there, name_of(template))?,
                None if is_innermost
                    && self.reference.parent.is_some()
                    && !is_by_name(&self.reference.target) =>
                {
                    return Err(format!(
                        "there is no composite {name}; whoever made workload {} has to make it",
                        self.workload.name()
                    ));
                }
                None => return Ok(self.new_composite(resource, name, template, parent)),
            }
            parent = Some(name.as_str());
        }
        Ok(self.new_group(parent))
    }

    /// A composite that is there must be of the template that it is taken for.
    fn check_composite(&self, composite: &Made, template: &str) -> Result<(), String> {
        if template_of(&composite.spec) == Some(template)
            && workload_of(&composite.spec) == Some(self.workload.name())
        {
            return Ok(());
        }
        Err(format!(
            "composite {} is not of template {template} of workload {}",
            composite.name(),
            self.workload.name()
        ))
    }

    fn new_composite(
        &self,
        resource: &Arc<ApiResource>,
        name: &str,
        template: &Value,
        parent: Option<&str>,
    ) -> Action {
        let mut spec = without_nulls(template);
        for field in ["podGroupTemplates", "compositePodGroupTemplates", "name"] {
            spec.remove(field);
        }
        let reference = json!({"workloadName": self.workload.name(), "templateName": name_of(template)});
        spec.insert("workloadRef".to_owned(), reference);
        // Whoever asks does so for its own group.
        let annotations = self.inherited(&Annotations::new(), name_of(template), Part::Composite);
        self.create(resource, name, spec, parent, annotations, &self.owned_by_workload())
    }

    fn new_group(&self, parent: Option<&str>) -> Action {
        let leaf = Value::Object(without_nulls(self.leaf));
        let spec = match self.known.api.group_spec(&leaf, self.workload.name()) {
            Value::Object(spec) => spec,
            _ => Map::new(),
        };
        let owner = self.reference.owner.clone().unwrap_or_else(|| self.owned_by_workload());
        let annotations = self.inherited(&self.reference.inherited, &self.reference.template, Part::Group);
        self.create(&self.known.api.groups, &self.key.name, spec, parent, annotations, &owner)
    }

    /// What something that is made of a template inherits from the Workload.
    fn inherited(&self, own: &Annotations, template: &str, part: Part) -> Value {
        let none = Annotations::new();
        let workload = self.workload.metadata.annotations.as_ref().unwrap_or(&none);
        json!(inheritance::of_template(own, workload, template, part))
    }

    fn owned_by_workload(&self) -> Value {
        let (kind, api_version) = match &self.known.api.workloads {
            Some(resource) => (resource.kind.as_str(), resource.api_version.as_str()),
            None => ("", ""),
        };
        json!({"apiVersion": api_version, "kind": kind, "name": self.workload.name(),
               "uid": self.workload.uid(), "controller": true})
    }

    fn create(
        &self,
        resource: &Arc<ApiResource>,
        name: &str,
        mut spec: Map<String, Value>,
        parent: Option<&str>,
        mut annotations: Value,
        owner: &Value,
    ) -> Action {
        if let Some(parent) = parent {
            spec.insert("parentCompositePodGroupName".to_owned(), json!(parent));
        }
        let (mark, by) = MADE_BY;
        annotations[mark] = json!(by);
        let (created, failed) = match resource.kind.as_str() {
            "PodGroup" => ("PodGroupCreated", "FailedPodGroupCreate"),
            _ => ("CompositePodGroupCreated", "FailedCompositePodGroupCreate"),
        };
        Action::Create {
            resource: Arc::clone(resource),
            namespace: self.key.namespace.clone(),
            object: Box::new(json!({
                "apiVersion": resource.api_version, "kind": resource.kind,
                "metadata": {
                    "name": name, "namespace": self.key.namespace,
                    "annotations": annotations, "ownerReferences": [owner],
                },
                "spec": spec,
            })),
            told_on: Some(Told { about: Arc::clone(&self.reference.about), created, failed }),
        }
    }
}

impl Known {
    /// Has a group that was made here follow its template, of which only the minimum may change.
    pub(super) fn follow(&self, group: &Made, workload: &Made, reference: &Reference) -> Plan {
        let is_of_this = workload_of(&group.spec) == Some(workload.name());
        if !is_ours(group) || !is_of_this || !self.api.can_resize() || group.is_terminating() {
            return Plan::nothing();
        }
        match find(&workload.spec, &reference.template) {
            Ok(found) if differs(&group.spec, found.leaf) => {
                let edit = Edit::merge(json!({
                    "metadata": {"uid": group.uid(), "resourceVersion": group.version()},
                    "spec": {"schedulingPolicy": found.leaf["schedulingPolicy"]},
                }));
                Plan::one(Action::patch(&self.api.groups, group.key(), edit))
            }
            _ => Plan::nothing(),
        }
    }
}

/// The fields of a template. Those that are not set may be written as null, which is something else in a group.
fn without_nulls(template: &Value) -> Map<String, Value> {
    let fields = template.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}
