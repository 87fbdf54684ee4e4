//! Pod groups and composites of them, in all versions that are served.

use crate::claims::{GroupClaimView, read_group_claims, read_preemption};
use crate::condition::{self, Condition, ConditionView};
use crate::error::ObjectError;
use crate::lenient::{Lenient, Shape, Shaped};
use crate::marks::{GroupMarks, read_when_gated};
use crate::selector::{read_each, text};
use crate::topology::{self, Asker};
use crate::view::{Kind, Names, View};
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use std::num::NonZeroU32;
use tutti_model::{Disruption, Group, Level, ModelError, ObjectKey, Policy, Strength, Text, Topology};

/// A pod group, as far as scheduling reads it.
pub type PodGroupView = View<PodGroupKind>;

/// Marks views of pod groups.
#[derive(Debug, Clone)]
pub struct PodGroupKind;

impl Kind for PodGroupKind {
    type Spec = PodGroupSpecView;
    type Status = PodGroupStatusView;
    // The version is known only once the cluster was asked.
    type Dynamic = ApiResource;
    type Scope = DynamicResourceScope;

    fn names(resource: &ApiResource) -> Names<'_> {
        Names {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            plural: &resource.plural,
        }
    }
}

/// A composite pod group, as far as scheduling reads it.
pub type CompositeView = View<CompositeKind>;

/// Marks views of composite pod groups.
#[derive(Debug, Clone)]
pub struct CompositeKind;

impl Kind for CompositeKind {
    type Spec = PodGroupSpecView;
    type Status = PodGroupStatusView;
    type Dynamic = ApiResource;
    type Scope = DynamicResourceScope;

    fn names(resource: &ApiResource) -> Names<'_> {
        PodGroupKind::names(resource)
    }
}

/// The condition in the status of a composite that the scheduler writes.
pub const COMPOSITE_CONDITION: &str = "CompositePodGroupInitiallyScheduled";

/// The field that names the priority class of a group or composite.
pub const PRIORITY_CLASS: &str = "spec.priorityClassName";

/// `spec`, of groups and of composites.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodGroupSpecView {
    scheduling_policy: Lenient<PolicyView>,
    priority: Lenient<i32>,
    priority_class_name: Lenient<String>,
    parent_composite_pod_group_name: Lenient<String>,
    scheduling_constraints: Lenient<ConstraintsView>,
    disruption_mode: Lenient<DisruptionView>,
    preemption_policy: Lenient<String>,
    resource_claims: Lenient<Vec<Lenient<GroupClaimView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct ConstraintsView {
    topology: Lenient<Vec<Lenient<TopologyView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct TopologyView {
    key: Lenient<String>,
}

/// A word in 1.36, an object since 1.37.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
enum DisruptionView {
    Word(String),
    Object(DisruptionObject),
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct DisruptionObject {
    all: Lenient<BasicView>,
}

impl Shaped for DisruptionView {
    const SHAPE: Shape = Shape::TextOrObject;
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct PolicyView {
    basic: Lenient<BasicView>,
    gang: Lenient<GangView>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
struct BasicView {}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GangView {
    min_count: Lenient<i64>,
    min_group_count: Lenient<i64>,
}

/// `status`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct PodGroupStatusView {
    conditions: Lenient<Vec<Lenient<ConditionView>>>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(
    PodGroupSpecView,
    PolicyView,
    BasicView,
    GangView,
    ConstraintsView,
    TopologyView,
    PodGroupStatusView
);

/// What was understood of a pod group or a composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReading {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Text,
    /// Generation that was read.
    pub generation: i64,
    /// Resource version.
    pub version: Text,
    /// The group; `None` if it was not understood. A guess at its policy could start a gang in parts.
    pub group: Option<Group>,
    /// The condition of the type that was asked for.
    pub scheduled: Option<Condition>,
    /// The class that stands for its priority, if the object does not say which that is.
    pub priority_class: Option<Text>,
    /// What annotations of ours say.
    pub marks: GroupMarks,
    /// Identity of the Job that it was made for.
    pub job: Option<Text>,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl PodGroupView {
    /// The group in our terms, with its condition of a type.
    pub fn read(&self, condition_type: &str) -> GroupReading {
        self.read_as(Asker::Group, condition_type)
    }
}

impl CompositeView {
    /// The composite in our terms.
    pub fn read(&self) -> GroupReading {
        self.read_as(Asker::Composite, COMPOSITE_CONDITION)
    }
}

impl<K: Kind<Spec = PodGroupSpecView, Status = PodGroupStatusView>> View<K> {
    fn read_as(&self, asker: Asker, condition_type: &str) -> GroupReading {
        let mut problems = self.problems();
        let key = self.key();
        let uid = self.uid();
        let generation = self.metadata.generation.unwrap_or(0);
        let no_spec = PodGroupSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let priority = problems.or_default(spec.priority.at("spec.priority")).copied();
        let class = problems.or_default(text(&spec.priority_class_name, PRIORITY_CLASS));
        let priority_class = Some(class).filter(|class| !class.is_empty() && priority.is_none());
        let policy = read_policy(&spec.scheduling_policy, asker, "spec.schedulingPolicy");
        let policy = problems.or_default(policy.map(Some));
        let scheduled = match problems.or_default(self.status.at("status")) {
            Some(status) => condition::find(&status.conditions, condition_type),
            None => None,
        };
        let preemption =
            problems.or_default(read_preemption(&spec.preemption_policy, "spec.preemptionPolicy"));
        let parent = problems
            .or_default(text(&spec.parent_composite_pod_group_name, "spec.parentCompositePodGroupName"));
        let parent = (!parent.is_empty()).then(|| ObjectKey::new(key.namespace.clone(), parent));
        let native = problems.or_default(read_topology(&spec.scheduling_constraints));
        let annotations = self.metadata.annotations.as_ref();
        let topology = topology::read(native, annotations, asker, &mut problems);
        let disruption = problems.or_default(read_disruption(&spec.disruption_mode));
        let claims = problems.or_default(read_group_claims(&spec.resource_claims));
        let marks = GroupMarks::read(annotations, &mut problems);
        let when_gated = problems.or_default(read_when_gated(annotations, asker));
        let group = policy.filter(|_| problems.is_empty()).map(|policy| Group {
            generation,
            created: self.created(),
            parent,
            policy,
            topology,
            priority,
            disruption,
            preemption,
            claims,
            when_gated,
            ..Group::new(key.clone(), uid.clone())
        });
        GroupReading {
            uid,
            generation,
            version: self.version(),
            group,
            scheduled,
            priority_class: priority_class.map(Text::from),
            marks,
            job: self.job().map(|job| job.uid),
            errors: problems.into_errors(asker.kind(), &key),
            key,
        }
    }
}

fn read_topology(constraints: &Lenient<ConstraintsView>) -> Result<Topology, ModelError> {
    const FIELD: &str = "spec.schedulingConstraints";
    let Some(constraints) = constraints.at(FIELD)? else { return Ok(Topology::default()) };
    let field = format!("{FIELD}.topology");
    let list = constraints.topology.at(&field)?.map_or(&[][..], Vec::as_slice);
    let key = |view: &TopologyView| match text(&view.key, "key")? {
        "" => Err(ModelError::new("key", "is missing")),
        key => Ok(Level { key: Text::from(key), strength: Strength::Required }),
    };
    let levels = read_each(list, key).map_err(|error| error.within(&field))?;
    let topology = Topology { levels, ..Topology::default() };
    topology.check().map_err(|error| error.within(&field))?;
    Ok(topology)
}

fn read_disruption(mode: &Lenient<DisruptionView>) -> Result<Disruption, ModelError> {
    const FIELD: &str = "spec.disruptionMode";
    match mode.at(FIELD)? {
        None => Ok(Disruption::Single),
        Some(DisruptionView::Word(word)) => match word.as_str() {
            "Pod" => Ok(Disruption::Single),
            "PodGroup" => Ok(Disruption::All),
            other => Err(ModelError::new(FIELD, format!("{other:?} is not known"))),
        },
        Some(DisruptionView::Object(object)) if object.all.is_present() => Ok(Disruption::All),
        Some(DisruptionView::Object(_)) => Ok(Disruption::Single),
    }
}

pub(crate) fn read_policy(
    policy: &Lenient<PolicyView>,
    asker: Asker,
    at: &str,
) -> Result<Policy, ModelError> {
    let Some(policy) = policy.at(at)? else {
        return Err(ModelError::new(at, "is missing"));
    };
    let gang = policy.gang.at("gang").map_err(|error| error.within(at))?;
    match (policy.basic.is_present(), gang) {
        (true, None) => Ok(Policy::Basic),
        (false, Some(gang)) => {
            let (minimum, name, members) = match asker {
                Asker::Group => (&gang.min_count, "minCount", "pods"),
                Asker::Composite => (&gang.min_group_count, "minGroupCount", "groups"),
            };
            let field = format!("{at}.gang.{name}");
            let Some(&count) = minimum.at(&field)? else {
                return Err(ModelError::new(field, "is missing"));
            };
            let min_count = u32::try_from(count).ok().and_then(NonZeroU32::new);
            let wrong = || ModelError::new(field, format!("{count} is not a count of {members}"));
            let min_count = min_count.ok_or_else(wrong)?;
            Ok(Policy::Gang { min_count })
        }
        _ => Err(ModelError::new(at, "wants exactly one of basic and gang")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::ConditionStatus;
    use serde_json::{Value, json};
    use tutti_model::WhenGated;

    fn read(spec: &Value) -> GroupReading {
        let view: PodGroupView = serde_json::from_value(json!({
            "metadata": {"name": "g", "namespace": "a", "uid": "u", "generation": 3},
            "spec": spec,
            "status": {"conditions": [
                {"type": "Other", "status": "True"},
                {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "m",
                 "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap();
        view.read("PodGroupScheduled")
    }

    fn gang(min_count: u32) -> Policy {
        Policy::Gang { min_count: NonZeroU32::new(min_count).unwrap() }
    }

    #[test]
    fn groups_of_all_versions_are_read_alike() {
        for (spec, policy, priority) in [
            (
                // v1alpha2
                json!({"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
                       "schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": "Pod", "priority": 5}),
                gang(4),
                Some(5),
            ),
            (
                // v1alpha3 and v1beta1
                json!({"workloadRef": {"workloadName": "w", "templateName": "t"},
                       "schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"single": {}}}),
                gang(4),
                None,
            ),
            (json!({"schedulingPolicy": {"basic": {}}}), Policy::Basic, None),
        ] {
            let reading = read(&spec);
            assert_eq!(reading.errors, []);
            let group = reading.group.unwrap();
            assert_eq!((group.policy, group.priority, group.generation), (policy, priority, 3));
            let condition = reading.scheduled.unwrap();
            assert_eq!(condition.status, ConditionStatus::False);
            assert_eq!((condition.message.as_ref(), condition.observed_generation), ("m", 2));
        }
    }

    #[test]
    fn a_class_is_asked_for_its_priority_only_where_the_object_does_not_say_it() {
        let class = |fields: Value| {
            let mut spec = json!({"schedulingPolicy": {"basic": {}}});
            for (field, value) in fields.as_object().unwrap() {
                spec[field] = value.clone();
            }
            let reading = read(&spec);
            (reading.priority_class, reading.group.and_then(|group| group.priority))
        };
        assert_eq!(class(json!({"priorityClassName": "high"})), (Some("high".into()), None));
        assert_eq!(class(json!({"priorityClassName": "high", "priority": 7})), (None, Some(7)));
        assert_eq!(class(json!({"priorityClassName": ""})), (None, None));
    }

    #[test]
    fn constraints_modes_and_claims_are_read_in_both_spellings() {
        let both = [
            json!({"schedulingPolicy": {"basic": {}}, "disruptionMode": "PodGroup"}),
            json!({"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}}),
        ];
        for spec in both {
            assert_eq!(read(&spec).group.unwrap().disruption, Disruption::All);
        }
        let group = read(&json!({
            "schedulingPolicy": {"basic": {}}, "parentCompositePodGroupName": "top",
            "schedulingConstraints": {"topology": [{"key": "rack"}]}, "preemptionPolicy": "Never",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        }));
        let group = group.group.unwrap();
        assert_eq!(group.parent, Some(ObjectKey::new("a", "top")));
        assert_eq!(group.topology, Topology::required("rack"));
        assert_eq!(group.preemption, tutti_model::Preemption::Never);
        assert_eq!(group.claims[0].source, tutti_model::ClaimSource::Template("t".into()));
        for (spec, error) in [
            (json!({"disruptionMode": "Most"}), "spec.disruptionMode: \"Most\" is not known"),
            (json!({"disruptionMode": 7}), "spec.disruptionMode: want text or an object, found 7"),
            (json!({"resourceClaims": [{"name": "x"}]}), "spec.resourceClaims[0]: want either"),
        ] {
            let mut spec = spec;
            spec["schedulingPolicy"] = json!({"basic": {}});
            let reading = read(&spec);
            assert!(reading.group.is_none());
            assert!(reading.errors[0].to_string().contains(error), "{}", reading.errors[0]);
        }
    }

    #[test]
    fn composites_count_groups_and_may_spread_them() {
        let read = |spec: &Value, annotations: &Value| {
            let view: CompositeView = serde_json::from_value(json!({
                "metadata": {"name": "top", "namespace": "a", "uid": "u", "annotations": annotations},
                "spec": spec,
                "status": {"conditions": [{"type": COMPOSITE_CONDITION, "status": "False", "reason": "r"}]},
            }))
            .unwrap();
            view.read()
        };
        let spec = json!({"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "parentCompositePodGroupName": "up",
                          "schedulingConstraints": {"topology": [{"key": "zone"}]}});
        let reading =
            read(&spec, &json!({"tutti.dev/spread-topology": "rack", "tutti.dev/spread-most": "2"}));
        assert_eq!(reading.errors, []);
        assert_eq!(reading.scheduled.unwrap().status, ConditionStatus::False);
        let composite = reading.group.unwrap();
        assert_eq!((composite.policy, composite.parent), (gang(2), Some(ObjectKey::new("a", "up"))));
        let most = NonZeroU32::new(2).unwrap();
        let spread = Some(tutti_model::Spread { key: "rack".into(), most });
        assert_eq!(composite.topology, Topology { spread, ..Topology::required("zone") });
        for (policy, annotations, error) in [
            (
                json!({"gang": {"minCount": 2}}),
                json!({}),
                "spec.schedulingPolicy.gang.minGroupCount: is missing",
            ),
            (
                json!({"basic": {}}),
                json!({"tutti.dev/slice-size": "2", "tutti.dev/slice-topology": "rack"}),
                "metadata.annotations[tutti.dev/slice-size]: is for groups; a composite has no slices",
            ),
            (
                json!({"basic": {}}),
                json!({"tutti.dev/when-gated": "Start"}),
                "metadata.annotations[tutti.dev/when-gated]: is for groups; a composite has no members of its own",
            ),
        ] {
            let reading = read(&json!({"schedulingPolicy": policy}), &annotations);
            assert_eq!(reading.errors[0].to_string(), format!("composite pod group a/top: {error}"));
            assert_eq!(reading.group, None);
        }
    }

    #[test]
    fn a_group_says_whether_it_starts_without_gated_members() {
        for (annotations, expected) in [
            (json!({}), WhenGated::Hold),
            (json!({"tutti.dev/when-gated": "Hold"}), WhenGated::Hold),
            (json!({"tutti.dev/when-gated": "Start"}), WhenGated::Start),
        ] {
            let view: PodGroupView = serde_json::from_value(json!({
                "metadata": {"name": "g", "namespace": "a", "uid": "u", "annotations": annotations},
                "spec": {"schedulingPolicy": {"basic": {}}},
            }))
            .unwrap();
            assert_eq!(view.read("PodGroupScheduled").group.unwrap().when_gated, expected);
        }
    }

    #[test]
    fn a_group_that_is_not_understood_is_no_group() {
        for (spec, error) in [
            (json!({}), "pod group a/g: spec.schedulingPolicy: is missing"),
            (
                json!({"schedulingPolicy": {"gang": {"minCount": 0}}}),
                "pod group a/g: spec.schedulingPolicy.gang.minCount: 0 is not a count of pods",
            ),
            (
                json!({"schedulingPolicy": {"gang": {"minCount": "4"}}}),
                "pod group a/g: spec.schedulingPolicy.gang.minCount: want a whole number, found \"4\"",
            ),
            (
                json!({"schedulingPolicy": {"gang": {"minCount": 1}, "basic": {}}}),
                "pod group a/g: spec.schedulingPolicy: wants exactly one of basic and gang",
            ),
            (
                json!({"schedulingPolicy": {"gang": [4]}}),
                "pod group a/g: spec.schedulingPolicy.gang: want an object, found a list",
            ),
        ] {
            let reading = read(&spec);
            assert_eq!(reading.errors[0].to_string(), error);
            assert_eq!(reading.group, None);
        }
    }
}
