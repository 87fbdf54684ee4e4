//! Node affinity, required and preferred, and tolerations.

use crate::error::Problems;
use crate::inter_pod::PodAffinityView;
use crate::lenient::{Lenient, Shape, Shaped};
use std::collections::BTreeMap;
use tutti_model::{
    Effect, Labels, ModelError, NodeAffinity, NodeSelectorTerm, Operator, Requirement, Text, Toleration,
    TolerationOperator, Weight, Weighted,
};

/// `spec.affinity`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AffinityView {
    node_affinity: Lenient<NodeAffinityView>,
    pub(crate) pod_affinity: Lenient<PodAffinityView>,
    pub(crate) pod_anti_affinity: Lenient<PodAffinityView>,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeAffinityView {
    required_during_scheduling_ignored_during_execution: Lenient<SelectorView>,
    preferred_during_scheduling_ignored_during_execution: Lenient<Vec<Lenient<PreferenceView>>>,
}

/// A preferred term.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct PreferenceView {
    weight: Lenient<i64>,
    preference: Lenient<TermView>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectorView {
    node_selector_terms: Lenient<Vec<Lenient<TermView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TermView {
    match_expressions: Lenient<Vec<Lenient<RequirementView>>>,
    match_fields: Lenient<Vec<Lenient<RequirementView>>>,
}

/// One of `matchExpressions` or `matchFields`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct RequirementView {
    key: Lenient<String>,
    operator: Lenient<String>,
    values: Lenient<Vec<Lenient<String>>>,
}

/// One of `spec.tolerations`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct TolerationView {
    key: Lenient<String>,
    operator: Lenient<String>,
    value: Lenient<String>,
    effect: Lenient<String>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(
    AffinityView,
    NodeAffinityView,
    PreferenceView,
    SelectorView,
    TermView,
    RequirementView,
    TolerationView
);

const REQUIRED_PATH: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";

const PREFERRED_PATH: &str = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

/// Node selector and required affinity, together. What cannot be read becomes a problem.
pub(crate) fn read_affinity(
    selector: &Lenient<BTreeMap<String, Lenient<String>>>,
    affinity: &Lenient<AffinityView>,
    problems: &mut Problems,
) -> NodeAffinity {
    let required = required_terms(affinity).unwrap_or_else(|error| {
        problems.push(error);
        None
    });
    NodeAffinity { selector: problems.or_default(read_labels(selector, "spec.nodeSelector")), required }
}

/// A map of text to text.
pub(crate) fn read_labels(
    map: &Lenient<BTreeMap<String, Lenient<String>>>,
    field: &str,
) -> Result<Labels, ModelError> {
    let Some(map) = map.at(field)? else {
        return Ok(Labels::default());
    };
    let mut pairs = Vec::with_capacity(map.len());
    for (key, value) in map {
        let value = value.get().map_err(|error| error.within(&format!("{field}[{key:?}]")))?;
        pairs.push((key.as_str(), value.map_or("", String::as_str)));
    }
    Ok(pairs.into_iter().collect())
}

fn required_terms(affinity: &Lenient<AffinityView>) -> Result<Option<Vec<NodeSelectorTerm>>, ModelError> {
    let Some(affinity) = affinity.at("spec.affinity")? else {
        return Ok(None);
    };
    let Some(node) = affinity.node_affinity.at("spec.affinity.nodeAffinity")? else {
        return Ok(None);
    };
    let Some(required) = node.required_during_scheduling_ignored_during_execution.at(REQUIRED_PATH)? else {
        return Ok(None);
    };
    read_terms(required, REQUIRED_PATH).map(Some)
}

/// The terms of a node selector at this path; none means that no node will do.
pub(crate) fn read_terms(selector: &SelectorView, path: &str) -> Result<Vec<NodeSelectorTerm>, ModelError> {
    let path = format!("{path}.nodeSelectorTerms");
    let terms = selector.node_selector_terms.at(&path)?.map_or(&[][..], Vec::as_slice);
    read_each(terms, read_term).map_err(|error| error.within(&path))
}

fn read_term(view: &TermView) -> Result<NodeSelectorTerm, ModelError> {
    Ok(NodeSelectorTerm {
        labels: read_requirements(&view.match_expressions, "matchExpressions")?,
        fields: read_requirements(&view.match_fields, "matchFields")?,
    })
}

/// Preferred node affinity, without terms that match nothing.
pub(crate) fn preferred_terms(
    affinity: &Lenient<AffinityView>,
) -> Result<Vec<Weighted<NodeSelectorTerm>>, ModelError> {
    // Shapes that are wrong further out were reported with the required terms.
    let affinity = affinity.get().ok().flatten();
    let Some(node) = affinity.and_then(|affinity| affinity.node_affinity.get().ok().flatten()) else {
        return Ok(Vec::new());
    };
    let terms = node.preferred_during_scheduling_ignored_during_execution.at(PREFERRED_PATH)?;
    let terms = terms.map_or(&[][..], Vec::as_slice);
    let terms = read_each(terms, |view| {
        let weight = read_weight(&view.weight)?;
        let term = match view.preference.at("preference")? {
            Some(term) => read_term(term).map_err(|error| error.within("preference"))?,
            None => NodeSelectorTerm::default(),
        };
        Ok(Weighted { term, weight })
    });
    let mut terms = terms.map_err(|error| error.within(PREFERRED_PATH))?;
    terms.retain(|term| !term.term.labels.is_empty() || !term.term.fields.is_empty());
    Ok(terms)
}

/// How much a preference counts.
pub(crate) fn read_weight(weight: &Lenient<i64>) -> Result<Weight, ModelError> {
    let weight = weight.at("weight")?;
    Weight::new(*weight.ok_or_else(|| ModelError::new("weight", "is missing"))?)
}

pub(crate) fn read_requirements(
    list: &Lenient<Vec<Lenient<RequirementView>>>,
    field: &str,
) -> Result<Vec<Requirement>, ModelError> {
    let Some(list) = list.at(field)? else {
        return Ok(Vec::new());
    };
    read_each(list, read_requirement).map_err(|error| error.within(field))
}

fn read_requirement(view: &RequirementView) -> Result<Requirement, ModelError> {
    let operator = match text(&view.operator, "operator")? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        other => return Err(unknown("operator", other)),
    };
    let values = match view.values.at("values")? {
        Some(values) => read_each(values, |value| Ok(Text::from(value.as_str())))
            .map_err(|error| error.within("values"))?,
        None => Vec::new(),
    };
    Requirement::new(text(&view.key, "key")?, operator, values)
}

/// The toleration, or what is wrong with it.
pub(crate) fn read_toleration(view: &TolerationView) -> Result<Toleration, ModelError> {
    let operator = match text(&view.operator, "operator")? {
        "" | "Equal" => TolerationOperator::Equal,
        "Exists" => TolerationOperator::Exists,
        "Lt" => TolerationOperator::Lt,
        "Gt" => TolerationOperator::Gt,
        other => return Err(unknown("operator", other)),
    };
    let effect = match text(&view.effect, "effect")? {
        "" => None,
        other => Some(read_effect(other)?),
    };
    Ok(Toleration {
        key: text(&view.key, "key")?.into(),
        operator,
        value: text(&view.value, "value")?.into(),
        effect,
    })
}

/// The effect of a taint or toleration.
pub(crate) fn read_effect(name: &str) -> Result<Effect, ModelError> {
    match name {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        other => Err(unknown("effect", other)),
    }
}

/// Text, empty if absent.
pub(crate) fn text<'a>(field: &'a Lenient<String>, name: &str) -> Result<&'a str, ModelError> {
    Ok(field.at(name)?.map_or("", String::as_str))
}

/// Translates every element; the first that cannot be is an error with its index. Null elements are skipped.
pub(crate) fn read_each<T, M>(
    list: &[Lenient<T>],
    read: impl Fn(&T) -> Result<M, ModelError>,
) -> Result<Vec<M>, ModelError> {
    let mut found = Vec::with_capacity(list.len());
    for (index, element) in list.iter().enumerate() {
        let element = element.get().and_then(|element| element.map(&read).transpose());
        found.extend(element.map_err(|error| error.within(&format!("[{index}]")))?);
    }
    Ok(found)
}

/// A word that is none of the known ones.
pub(crate) fn unknown(field: &str, value: &str) -> ModelError {
    let shown: String = value.chars().take(40).collect();
    ModelError::new(field, format!("{shown:?} is not known"))
}
