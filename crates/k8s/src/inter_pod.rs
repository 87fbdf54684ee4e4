//! What a pod requires of other pods and what it would like: affinity, anti-affinity, spread.

use crate::error::Problems;
use crate::lenient::{Lenient, Shape, Shaped};
use crate::selector::{
    RequirementView, read_each, read_labels, read_requirements, read_weight, text, unknown,
};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use tutti_model::inter_pod::{InterPod, PodSelector, PodTerm, SpreadConstraint};
use tutti_model::label_selector::LabelSelector;
use tutti_model::{Labels, ModelError, Preferences, Text, Weighted};

/// `podAffinity` and `podAntiAffinity`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodAffinityView {
    required_during_scheduling_ignored_during_execution: Lenient<Vec<Lenient<TermView>>>,
    preferred_during_scheduling_ignored_during_execution: Lenient<Vec<Lenient<PreferenceView>>>,
}

/// A preferred term.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PreferenceView {
    weight: Lenient<i64>,
    pod_affinity_term: Lenient<TermView>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TermView {
    label_selector: Lenient<LabelSelectorView>,
    namespaces: Lenient<Vec<Lenient<String>>>,
    namespace_selector: Lenient<LabelSelectorView>,
    topology_key: Lenient<String>,
    match_label_keys: Lenient<Vec<Lenient<String>>>,
    mismatch_label_keys: Lenient<Vec<Lenient<String>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LabelSelectorView {
    match_labels: Lenient<BTreeMap<String, Lenient<String>>>,
    match_expressions: Lenient<Vec<Lenient<RequirementView>>>,
}

/// One of `spec.topologySpreadConstraints`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SpreadView {
    max_skew: Lenient<i64>,
    topology_key: Lenient<String>,
    when_unsatisfiable: Lenient<String>,
    label_selector: Lenient<LabelSelectorView>,
    min_domains: Lenient<i64>,
    node_affinity_policy: Lenient<String>,
    node_taints_policy: Lenient<String>,
    match_label_keys: Lenient<Vec<Lenient<String>>>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(PodAffinityView, PreferenceView, TermView, LabelSelectorView, SpreadView);

/// The fields of a pod's spec from which its wishes are read.
pub(crate) struct InterPodFields<'a> {
    pub(crate) affinity: &'a Lenient<PodAffinityView>,
    pub(crate) anti_affinity: &'a Lenient<PodAffinityView>,
    pub(crate) spread: &'a Lenient<Vec<Lenient<SpreadView>>>,
}

/// Reads what a pod of this namespace and with these labels requires of others, and what it would like.
pub(crate) fn read_inter_pod(
    fields: &InterPodFields<'_>,
    namespace: &Text,
    labels: &Labels,
    problems: &mut Problems,
) -> (InterPod, Preferences) {
    let own = Own { namespace, labels };
    let (affinity, anti_affinity) = ("spec.affinity.podAffinity", "spec.affinity.podAntiAffinity");
    let (required, preferred) = problems.or_default(own.spread(fields.spread));
    let inter_pod = InterPod {
        affinity: problems.or_default(own.terms(fields.affinity, affinity)),
        anti_affinity: problems.or_default(own.terms(fields.anti_affinity, anti_affinity)),
        spread: required,
    };
    let preferences = Preferences {
        nodes: Vec::new(),
        affinity: problems.or_default(own.preferred(fields.affinity, affinity)),
        anti_affinity: problems.or_default(own.preferred(fields.anti_affinity, anti_affinity)),
        spread: preferred,
        like: None,
    };
    (inter_pod, preferences)
}

/// Spread constraints that must hold, and those that only should.
type SpreadLists = (Vec<SpreadConstraint>, Vec<SpreadConstraint>);

/// The pod that wishes.
struct Own<'a> {
    namespace: &'a Text,
    labels: &'a Labels,
}

impl Own<'_> {
    fn terms(&self, view: &Lenient<PodAffinityView>, field: &str) -> Result<Vec<PodTerm>, ModelError> {
        let Some(view) = view.at(field)? else {
            return Ok(Vec::new());
        };
        let field = format!("{field}.requiredDuringSchedulingIgnoredDuringExecution");
        let terms = view.required_during_scheduling_ignored_during_execution.at(&field)?;
        let terms = terms.map_or(&[][..], Vec::as_slice);
        read_each(terms, |term| self.term(term)).map_err(|error| error.within(&field))
    }

    fn preferred(
        &self,
        view: &Lenient<PodAffinityView>,
        field: &str,
    ) -> Result<Vec<Weighted<PodTerm>>, ModelError> {
        // A shape that is wrong further out was reported with the required terms.
        let Some(view) = view.get().ok().flatten() else {
            return Ok(Vec::new());
        };
        let field = format!("{field}.preferredDuringSchedulingIgnoredDuringExecution");
        let terms = view.preferred_during_scheduling_ignored_during_execution.at(&field)?;
        let terms = terms.map_or(&[][..], Vec::as_slice);
        let read = |view: &PreferenceView| {
            let weight = read_weight(&view.weight)?;
            let term = view.pod_affinity_term.at("podAffinityTerm")?;
            let term = term.ok_or_else(|| ModelError::new("podAffinityTerm", "is missing"))?;
            let term = self.term(term).map_err(|error| error.within("podAffinityTerm"))?;
            Ok(Weighted { term, weight })
        };
        read_each(terms, read).map_err(|error| error.within(&field))
    }

    fn term(&self, view: &TermView) -> Result<PodTerm, ModelError> {
        let mut labels = read_selector(&view.label_selector, "labelSelector")?;
        if let Some(labels) = &mut labels {
            for (key, value) in self.values_of(&view.match_label_keys, "matchLabelKeys")? {
                labels.require_value(key, value);
            }
            for (key, value) in self.values_of(&view.mismatch_label_keys, "mismatchLabelKeys")? {
                labels.exclude_value(key, value);
            }
        }
        let mut namespaces = texts(&view.namespaces, "namespaces")?;
        let namespace_selector = read_selector(&view.namespace_selector, "namespaceSelector")?;
        if namespaces.is_empty() && namespace_selector.is_none() {
            namespaces.push(self.namespace.clone());
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        Ok(PodTerm {
            pods: PodSelector { namespaces, namespace_selector, labels },
            topology_key: topology_key(&view.topology_key)?,
        })
    }

    /// Constraints that must hold, and those that only should.
    fn spread(&self, list: &Lenient<Vec<Lenient<SpreadView>>>) -> Result<SpreadLists, ModelError> {
        const FIELD: &str = "spec.topologySpreadConstraints";
        let list = list.at(FIELD)?.map_or(&[][..], Vec::as_slice);
        let read = read_each(list, |view| self.constraint(view)).map_err(|error| error.within(FIELD))?;
        let mut lists = SpreadLists::default();
        for (must_hold, constraint) in read {
            let list = if must_hold { &mut lists.0 } else { &mut lists.1 };
            list.push(constraint);
        }
        Ok(lists)
    }

    /// The constraint, and whether it must hold.
    fn constraint(&self, view: &SpreadView) -> Result<(bool, SpreadConstraint), ModelError> {
        let must_hold = match text(&view.when_unsatisfiable, "whenUnsatisfiable")? {
            "" | "DoNotSchedule" => true,
            "ScheduleAnyway" => false,
            other => return Err(unknown("whenUnsatisfiable", other)),
        };
        let mut labels = read_selector(&view.label_selector, "labelSelector")?;
        if let Some(labels) = &mut labels {
            for (key, value) in self.values_of(&view.match_label_keys, "matchLabelKeys")? {
                labels.require_value(key, value);
            }
        }
        // For spreading, kube-scheduler takes a selector without conditions as one that counts nobody.
        let labels = labels.filter(|labels| *labels != LabelSelector::default());
        let max_skew = count(&view.max_skew, "maxSkew")?;
        let constraint = SpreadConstraint {
            max_skew: max_skew.ok_or_else(|| ModelError::new("maxSkew", "is missing"))?,
            topology_key: topology_key(&view.topology_key)?,
            labels,
            min_domains: count(&view.min_domains, "minDomains")?,
            honors_affinity: honors(&view.node_affinity_policy, "nodeAffinityPolicy", true)?,
            honors_taints: honors(&view.node_taints_policy, "nodeTaintsPolicy", false)?,
        };
        Ok((must_hold, constraint))
    }

    /// The pod's own values of label keys; keys that it does not have are left out.
    fn values_of<'a>(
        &'a self,
        keys: &Lenient<Vec<Lenient<String>>>,
        field: &str,
    ) -> Result<Vec<(Text, &'a str)>, ModelError> {
        let keys = texts(keys, field)?;
        let values = keys.into_iter().filter_map(|key| {
            let value = self.labels.get(&key)?;
            Some((key, value))
        });
        Ok(values.collect())
    }
}

/// A label selector; nothing if there is none.
pub(crate) fn read_selector(
    view: &Lenient<LabelSelectorView>,
    field: &str,
) -> Result<Option<LabelSelector>, ModelError> {
    let Some(view) = view.at(field)? else {
        return Ok(None);
    };
    let within = |error: ModelError| error.within(field);
    let expressions = read_requirements(&view.match_expressions, "matchExpressions").map_err(within)?;
    let mut selector = LabelSelector::new(expressions).map_err(within)?;
    let pairs = read_labels(&view.match_labels, "matchLabels").map_err(within)?;
    for (key, value) in pairs.iter() {
        selector.require_value(key, value);
    }
    Ok(Some(selector))
}

fn texts(list: &Lenient<Vec<Lenient<String>>>, field: &str) -> Result<Vec<Text>, ModelError> {
    let list = list.at(field)?.map_or(&[][..], Vec::as_slice);
    read_each(list, |value| Ok(Text::from(value.as_str()))).map_err(|error| error.within(field))
}

fn topology_key(field: &Lenient<String>) -> Result<Text, ModelError> {
    match text(field, "topologyKey")? {
        "" => Err(ModelError::new("topologyKey", "is missing")),
        key => Ok(key.into()),
    }
}

fn count(field: &Lenient<i64>, name: &str) -> Result<Option<NonZeroU32>, ModelError> {
    let Some(&value) = field.at(name)? else {
        return Ok(None);
    };
    let count = u32::try_from(value).ok().and_then(NonZeroU32::new);
    count.map(Some).ok_or_else(|| ModelError::new(name, format!("{value} is not a count from 1")))
}

fn honors(field: &Lenient<String>, name: &str, default: bool) -> Result<bool, ModelError> {
    match text(field, name)? {
        "" => Ok(default),
        "Honor" => Ok(true),
        "Ignore" => Ok(false),
        other => Err(unknown(name, other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(affinity: &Value, spread: &Value) -> (InterPod, Vec<crate::ObjectError>) {
        let reading = read_pod(affinity, spread);
        (reading.pod.inter_pod, reading.errors)
    }

    fn read_pod(affinity: &Value, spread: &Value) -> crate::PodReading {
        let view: crate::PodView = serde_json::from_value(json!({
            "metadata": {"name": "x", "namespace": "here", "uid": "u", "labels": {"app": "a", "v": "2"}},
            "spec": {"affinity": affinity, "topologySpreadConstraints": spread},
        }))
        .unwrap();
        view.read()
    }

    fn required(term: &Value) -> Value {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
    }

    #[test]
    fn terms_speak_of_the_own_namespace_unless_they_name_others() {
        let plain = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}});
        let all = json!({"topologyKey": "host", "labelSelector": {}, "namespaceSelector": {}});
        let (found, errors) =
            read(&json!({"podAffinity": required(&plain), "podAntiAffinity": required(&all)}), &Value::Null);
        assert_eq!(errors, []);
        let near = &found.affinity[0];
        assert_eq!(near.topology_key.as_ref(), "zone");
        assert_eq!(near.pods.namespaces, [Text::from("here")]);
        assert_eq!(near.pods.labels, Some(LabelSelector::of_labels([("app", "a")])));
        let far = &found.anti_affinity[0].pods;
        assert_eq!(far.namespaces, Vec::<Text>::new());
        assert_eq!(far.namespace_selector, Some(LabelSelector::default()));
        assert_eq!(far.labels, Some(LabelSelector::default()));
    }

    #[test]
    fn label_keys_take_the_value_of_the_pod_itself() {
        let term = json!({"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["v", "absent"],
                          "mismatchLabelKeys": ["app"]});
        let (found, errors) = read(&json!({"podAffinity": required(&term)}), &Value::Null);
        assert_eq!(errors, []);
        let mut expected = LabelSelector::of_labels([("v", "2")]);
        expected.exclude_value("app", "a");
        assert_eq!(found.affinity[0].pods.labels, Some(expected));
    }

    #[test]
    fn spread_is_read_with_its_defaults_and_preferences_are_no_requirements() {
        let (found, errors) = read(
            &Value::Null,
            &json!([
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
                {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
                {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
                 "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            ]),
        );
        assert_eq!(errors, []);
        let [first, second] = &found.spread[..] else { panic!("{found:?}") };
        assert_eq!((first.max_skew.get(), first.honors_affinity, first.honors_taints), (1, true, false));
        assert_eq!(first.labels, None, "without conditions it counts nobody");
        assert_eq!((second.honors_affinity, second.honors_taints), (false, true));
        assert_eq!((second.labels.as_ref(), second.min_domains.map(NonZeroU32::get)), (None, Some(3)));
    }

    #[test]
    fn preferences_are_read_with_their_weights() {
        let preferred = |weight: i64| {
            let term = json!({"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["v"]});
            json!({"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": term}]})
        };
        let reading = read_pod(
            &json!({"podAffinity": preferred(3), "podAntiAffinity": preferred(100)}),
            &json!([{"maxSkew": 4, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"}]),
        );
        assert_eq!(reading.errors, []);
        assert!(reading.pod.inter_pod.is_empty());
        let Preferences { affinity, anti_affinity, spread, .. } = reading.pod.preferences;
        assert_eq!((affinity[0].weight.get(), anti_affinity[0].weight.get()), (3, 100));
        assert_eq!(affinity[0].term.pods.labels, Some(LabelSelector::of_labels([("v", "2")])));
        assert_eq!(spread[0].max_skew.get(), 4);
    }

    #[test]
    fn wishes_that_are_not_understood_name_their_field() {
        for (affinity, spread, error) in [
            (
                json!({"podAffinity": required(&json!({"labelSelector": {}}))}),
                Value::Null,
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: is missing",
            ),
            (
                json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}),
                Value::Null,
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm: is missing",
            ),
            (
                json!({"podAntiAffinity": 7}),
                Value::Null,
                "spec.affinity.podAntiAffinity: want an object, found 7",
            ),
            (
                Value::Null,
                json!([{"maxSkew": 0, "topologyKey": "zone"}]),
                "spec.topologySpreadConstraints[0].maxSkew: 0 is not a count from 1",
            ),
        ] {
            let (_, errors) = read(&affinity, &spread);
            assert_eq!(errors[0].detail(), error);
        }
    }
}
