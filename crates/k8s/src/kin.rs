//! Services and controllers, as far as they say which pods do the same; and disruption budgets, which select pods in the
//! same way.

use crate::error::{ObjectError, ObjectKind};
use crate::inter_pod::{LabelSelectorView, read_selector};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::namespace::Nothing;
use crate::selector::read_labels;
use crate::view::{Kind, Names, View};
use kube::core::NamespaceResourceScope;
use std::collections::BTreeMap;
use tutti_model::{LabelSelector, ModelError, ObjectKey, Text};

/// A kind whose objects select pods by their labels.
pub trait SelectingKind: Kind {
    /// Which kind it is.
    const KIND: ObjectKind;

    /// The selector; `None` if there is none, or it selects nobody.
    fn selector(spec: &Self::Spec) -> Result<Option<LabelSelector>, ModelError>;
}

/// `spec` with pairs of label and value.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct PairsSpecView {
    selector: Lenient<BTreeMap<String, Lenient<String>>>,
}

/// `spec` with a selector of all operators.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct SelectorSpecView {
    selector: Lenient<LabelSelectorView>,
}

/// `status` of a disruption budget.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BudgetStatusView {
    disruptions_allowed: Lenient<i32>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(PairsSpecView, SelectorSpecView, BudgetStatusView);

const SELECTOR: &str = "spec.selector";

impl PairsSpecView {
    fn selector(&self) -> Result<Option<LabelSelector>, ModelError> {
        let pairs = read_labels(&self.selector, SELECTOR)?;
        let selector = LabelSelector::of_labels(pairs.iter());
        Ok(Some(selector).filter(|selector| !selector.is_empty()))
    }
}

impl SelectorSpecView {
    fn selector(&self) -> Result<Option<LabelSelector>, ModelError> {
        read_selector(&self.selector, SELECTOR)
    }
}

macro_rules! selecting {
    ($($(#[$text:meta])* $view:ident, $kind:ident, $spec:ty, $status:ty, $group:literal, $plural:literal, $name:literal, $object:ident;)*) => { $(
        $(#[$text])*
        pub type $view = View<$kind>;

        #[doc = concat!("Marks views of ", $plural, ".")]
        #[derive(Debug, Clone)]
        pub struct $kind;

        impl Kind for $kind {
            type Spec = $spec;
            type Status = $status;
            type Dynamic = ();
            type Scope = NamespaceResourceScope;

            fn names(_: &()) -> Names<'_> {
                Names { group: $group, version: "v1", kind: $name, plural: $plural }
            }
        }

        impl SelectingKind for $kind {
            const KIND: ObjectKind = ObjectKind::$object;

            fn selector(spec: &Self::Spec) -> Result<Option<LabelSelector>, ModelError> {
                spec.selector()
            }
        }
    )* };
}

selecting! {
    /// A service, as far as scheduling reads it.
    ServiceView, ServiceKind, PairsSpecView, Nothing, "", "services", "Service", Service;
    /// A replication controller, as far as scheduling reads it.
    ReplicationControllerView, ReplicationControllerKind, PairsSpecView, Nothing,
        "", "replicationcontrollers", "ReplicationController", ReplicationController;
    /// A replica set, as far as scheduling reads it.
    ReplicaSetView, ReplicaSetKind, SelectorSpecView, Nothing, "apps", "replicasets", "ReplicaSet", ReplicaSet;
    /// A stateful set, as far as scheduling reads it.
    StatefulSetView, StatefulSetKind, SelectorSpecView, Nothing, "apps", "statefulsets", "StatefulSet", StatefulSet;
    /// A disruption budget, as far as scheduling reads it.
    BudgetView, BudgetKind, SelectorSpecView, BudgetStatusView,
        "policy", "poddisruptionbudgets", "PodDisruptionBudget", Budget;
}

/// Which pods an object selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorReading {
    /// What it is.
    pub kind: ObjectKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Text,
    /// Pods of its namespace; `None` selects nobody.
    pub selector: Option<LabelSelector>,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl<K: SelectingKind> View<K> {
    /// Which pods it selects.
    pub fn read_selected(&self) -> SelectorReading {
        let mut problems = self.problems();
        let key = self.key();
        let selector = self.spec.at("spec").and_then(|spec| spec.map_or(Ok(None), K::selector));
        let selector = problems.or_default(selector);
        let errors = problems.into_errors(K::KIND, &key);
        SelectorReading { kind: K::KIND, uid: self.uid(), selector, errors, key }
    }
}

/// What was understood of a disruption budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetReading {
    /// Whose budget it is.
    pub pods: SelectorReading,
    /// How many of them may be disrupted now. Without a word about it, none.
    pub disruptions_allowed: u32,
}

impl BudgetView {
    /// The budget in our terms.
    pub fn read(&self) -> BudgetReading {
        const FIELD: &str = "status.disruptionsAllowed";
        let mut pods = self.read_selected();
        let allowed = self.status.at("status").and_then(|status| {
            let allowed = status.map_or(Ok(None), |status| status.disruptions_allowed.at(FIELD))?;
            let allowed = allowed.copied().unwrap_or(0);
            u32::try_from(allowed).map_err(|_| ModelError::new(FIELD, format!("{allowed} is below 0")))
        });
        let disruptions_allowed = allowed.unwrap_or_else(|error| {
            pods.errors.push(ObjectError::new(ObjectKind::Budget, pods.key.clone(), error));
            0
        });
        BudgetReading { pods, disruptions_allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read<K: SelectingKind>(selector: &Value) -> SelectorReading
    where
        View<K>: serde::de::DeserializeOwned,
    {
        let object =
            json!({"metadata": {"name": "x", "namespace": "a", "uid": "u"}, "spec": {"selector": selector}});
        serde_json::from_value::<View<K>>(object).unwrap().read_selected()
    }

    #[test]
    fn services_and_controllers_select_pods_each_in_its_own_way() {
        let web = LabelSelector::of_labels([("app", "web")]);
        for reading in [
            read::<ServiceKind>(&json!({"app": "web"})),
            read::<ReplicationControllerKind>(&json!({"app": "web"})),
            read::<ReplicaSetKind>(&json!({"matchLabels": {"app": "web"}})),
            read::<StatefulSetKind>(
                &json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}),
            ),
        ] {
            assert_eq!(reading.errors, []);
            assert_eq!(reading.selector.as_ref(), Some(&web), "{}", reading.kind);
        }
        for nobody in [read::<ServiceKind>(&json!(null)), read::<ServiceKind>(&json!({}))] {
            assert_eq!((nobody.selector, nobody.errors), (None, vec![]));
        }
    }

    #[test]
    fn what_is_not_understood_selects_nobody_and_says_so() {
        for (reading, error) in [
            (read::<ServiceKind>(&json!("web")), "service a/x: spec.selector: want an object, found \"web\""),
            (
                read::<ReplicaSetKind>(&json!({"matchExpressions": [{"key": "app", "operator": "Near"}]})),
                "replica set a/x: spec.selector.matchExpressions[0].operator: \"Near\" is not known",
            ),
        ] {
            assert_eq!(reading.selector, None);
            assert_eq!(reading.errors[0].to_string(), error);
        }
    }

    #[test]
    fn a_budget_allows_what_its_status_says() {
        let budget = |status: Value| {
            let object = json!({"metadata": {"name": "b", "namespace": "a", "uid": "u"},
                                "spec": {"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 1}, "status": status});
            serde_json::from_value::<BudgetView>(object).unwrap().read()
        };
        let reading = budget(json!({"disruptionsAllowed": 2, "expectedPods": 3}));
        assert_eq!((reading.disruptions_allowed, reading.pods.errors), (2, vec![]));
        assert_eq!(reading.pods.selector, Some(LabelSelector::of_labels([("app", "db")])));
        assert_eq!(budget(json!(null)).disruptions_allowed, 0);
        let reading = budget(json!({"disruptionsAllowed": -1}));
        assert_eq!(
            reading.pods.errors[0].to_string(),
            "pod disruption budget a/b: status.disruptionsAllowed: -1 is below 0"
        );
    }
}
