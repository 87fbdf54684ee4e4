//! What is missing, as requests.

use super::known::{Known, MADE_BY, Made, Owner, is_ours, is_owned_by};
use crate::action::{Action, Edit, Plan, Told};
use crate::view::Key;
use kube::core::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;
use tutti_k8s::gangs::{group_name, workload_name};
use tutti_k8s::inheritance::{self, Annotations, Part};

impl Known {
    /// The next step towards what an object wants: first its Workload, then its groups.
    pub(super) fn make(&self, owner: &Owner, templates: &[Value]) -> Plan {
        let name = workload_name(owner.name(), owner.uid());
        let Some(resource) = &self.api.workloads else {
            return self.groups_of(owner, &name, None, templates);
        };
        match self.workload(&Key::new(owner.key().namespace, name.as_str())) {
            Some(workload) if is_ours(workload) && is_owned_by(workload, owner) => {
                match self.resize_workload(workload, templates, resource) {
                    Some(action) => Plan::one(action),
                    None => self.groups_of(owner, &name, Some(workload), templates),
                }
            }
            // Its name is taken, by one that goes or one that somebody made for no purpose.
            Some(_) => Plan::nothing(),
            None if owner.spec.has_run => Plan::nothing(),
            None => Plan::one(self.new_workload(owner, &name, templates, resource)),
        }
    }

    /// The groups of an object whose Workload somebody else has made and keeps.
    pub(super) fn make_groups(&self, owner: &Owner, workload: &Made, templates: &[Value]) -> Plan {
        self.groups_of(owner, workload.name(), Some(workload), templates)
    }

    fn groups_of(&self, owner: &Owner, workload: &str, parent: Option<&Made>, templates: &[Value]) -> Plan {
        let actions = templates.iter().filter_map(|template| self.step(owner, workload, template, parent));
        Plan { actions: actions.collect(), look_again: None }
    }

    /// What is to be done about the group of a template.
    fn step(&self, owner: &Owner, workload: &str, template: &Value, parent: Option<&Made>) -> Option<Action> {
        let template_name = template.get("name").and_then(Value::as_str).unwrap_or_default();
        let name = group_name(workload, template_name);
        match self.group(&Key::new(owner.key().namespace, name.as_str())) {
            Some(group) if is_owned_by(group, owner) => self.resize_group(group, template),
            Some(_) => None,
            None if owner.spec.has_run => None,
            None => {
                let spec = self.api.group_spec(template, workload);
                let parent = parent.map(|workload| (workload, template_name));
                Some(self.new_group(owner, &name, &spec, parent))
            }
        }
    }

    fn new_workload(
        &self,
        owner: &Owner,
        name: &str,
        templates: &[Value],
        resource: &Arc<ApiResource>,
    ) -> Action {
        let object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": self.metadata(owner, name, None),
            "spec": {
                "controllerRef": {"apiGroup": self.row.group, "kind": self.row.kind, "name": owner.name()},
                "podGroupTemplates": templates,
            },
        });
        self.create(owner, resource, object, "WorkloadCreated", "FailedWorkloadCreate")
    }

    /// Its parent is a Workload and the name of the template in it.
    fn new_group(&self, owner: &Owner, name: &str, spec: &Value, parent: Option<(&Made, &str)>) -> Action {
        let resource = &self.api.groups;
        let object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": self.metadata(owner, name, parent), "spec": spec,
        });
        self.create(owner, resource, object, "PodGroupCreated", "FailedPodGroupCreate")
    }

    fn metadata(&self, owner: &Owner, name: &str, parent: Option<(&Made, &str)>) -> Value {
        let mut owners = vec![json!({
            "apiVersion": self.owners_resource.api_version, "kind": self.row.kind,
            "name": owner.name(), "uid": owner.uid(), "controller": true,
        })];
        if let (Some((parent, _)), Some(resource)) = (parent, &self.api.workloads) {
            owners.push(json!({
                "apiVersion": resource.api_version, "kind": resource.kind,
                "name": parent.name(), "uid": parent.uid(),
            }));
        }
        let (mark, by) = MADE_BY;
        let none = Annotations::new();
        let asked = owner.metadata.annotations.as_ref().unwrap_or(&none);
        let mut annotations = match parent {
            Some((workload, template)) => {
                let workload = workload.metadata.annotations.as_ref().unwrap_or(&none);
                inheritance::of_template(asked, workload, template, Part::Group)
            }
            None => inheritance::of_object(asked),
        };
        annotations.insert(mark.to_owned(), by.to_owned());
        json!({
            "name": name, "namespace": owner.key().namespace,
            "annotations": annotations, "ownerReferences": owners,
        })
    }

    fn create(
        &self,
        owner: &Owner,
        resource: &Arc<ApiResource>,
        object: Value,
        created: &'static str,
        failed: &'static str,
    ) -> Action {
        Action::Create {
            resource: Arc::clone(resource),
            namespace: owner.key().namespace,
            object: Box::new(object),
            told_on: Some(Told { about: self.about(owner), created, failed }),
        }
    }

    /// Brings the minimums in the templates of a Workload up to date.
    fn resize_workload(
        &self,
        made: &Made,
        templates: &[Value],
        resource: &Arc<ApiResource>,
    ) -> Option<Action> {
        let stored = |name: &Value| {
            let list = made.spec.get("podGroupTemplates").and_then(Value::as_array);
            list.into_iter().flatten().find(|template| template.get("name") == Some(name))
        };
        let changed: Vec<Value> = templates
            .iter()
            .filter(|wanted| {
                let stored = wanted.get("name").and_then(stored);
                self.api.can_resize() && stored.is_some_and(|stored| differs(stored, wanted))
            })
            .map(|wanted| json!({"name": wanted["name"], "schedulingPolicy": wanted["schedulingPolicy"]}))
            .collect();
        (!changed.is_empty()).then(|| {
            let body = json!({
                "metadata": {"uid": made.uid(), "resourceVersion": made.version()},
                "spec": {"podGroupTemplates": changed},
            });
            let edit = Edit { of_status: false, strategic: true, body: Box::new(body) };
            Action::patch(resource, made.key(), edit)
        })
    }

    /// The same for a group.
    fn resize_group(&self, group: &Made, template: &Value) -> Option<Action> {
        if !self.api.can_resize() || group.is_terminating() || !differs(&group.spec, template) {
            return None;
        }
        let edit = Edit::merge(json!({
            "metadata": {"uid": group.uid(), "resourceVersion": group.version()},
            "spec": {"schedulingPolicy": template["schedulingPolicy"]},
        }));
        Some(Action::patch(&self.api.groups, group.key(), edit))
    }
}

/// True if both are gangs with different minimums: nothing else of a group may change.
pub(crate) fn differs(stored: &Value, wanted: &Value) -> bool {
    let minimum = |of: &Value| of.pointer("/schedulingPolicy/gang/minCount").and_then(Value::as_u64);
    matches!((minimum(stored), minimum(wanted)), (Some(stored), Some(wanted)) if stored != wanted)
}
