//! Which nodes a pod may use, by their labels and names.

use crate::error::ModelError;
use crate::key::Text;
use crate::labels::Labels;

/// How a requirement compares a node's value with its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The value is one of these.
    In,
    /// The key is absent or its value is none of these.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The value is an integer above the given one.
    Gt,
    /// The value is an integer below the given one.
    Lt,
}

/// One condition on a label or field of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// Label key, or `metadata.name` in field requirements.
    pub key: Text,
    /// Comparison.
    pub operator: Operator,
    /// Values; their number is fixed by the operator.
    pub values: Vec<Text>,
}

impl Requirement {
    /// A requirement with the number of values that its operator wants.
    pub fn new(key: impl Into<Text>, operator: Operator, values: Vec<Text>) -> Result<Self, ModelError> {
        let key = key.into();
        let wrong = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => Some("wants at least one value"),
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => Some("wants no values"),
            Operator::Gt | Operator::Lt if values.len() != 1 => Some("wants exactly one value"),
            Operator::Gt | Operator::Lt if values[0].parse::<i64>().is_err() => Some("wants an integer"),
            _ => None,
        };
        match wrong {
            Some(wrong) => {
                Err(ModelError::new("values", format!("operator {operator:?} of key {key:?} {wrong}")))
            }
            None => Ok(Self { key, operator, values }),
        }
    }

    /// True if a node whose value for the key is this satisfies the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let contains = |value: &str| self.values.iter().any(|v| v.as_ref() == value);
        match self.operator {
            Operator::In => value.is_some_and(contains),
            Operator::NotIn => !value.is_some_and(contains),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => self.compare(value, |node, own| node > own),
            Operator::Lt => self.compare(value, |node, own| node < own),
        }
    }

    fn compare(&self, value: Option<&str>, rule: fn(i64, i64) -> bool) -> bool {
        let own = self.values.first().and_then(|v| v.parse().ok());
        let node = value.and_then(|v| v.parse().ok());
        matches!((node, own), (Some(node), Some(own)) if rule(node, own))
    }
}

/// Conditions that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelectorTerm {
    /// On labels.
    pub labels: Vec<Requirement>,
    /// On fields; `metadata.name` is the only one there is.
    pub fields: Vec<Requirement>,
}

impl NodeSelectorTerm {
    /// True if the node satisfies the term. A term without conditions matches nothing, as in Kubernetes.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        if self.labels.is_empty() && self.fields.is_empty() {
            return false;
        }
        self.labels.iter().all(|r| r.matches(labels.get(&r.key)))
            && self.fields.iter().all(|r| r.key.as_ref() == "metadata.name" && r.matches(Some(name)))
    }
}

/// Required node affinity and node selector of a pod, together.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAffinity {
    /// `spec.nodeSelector`: every pair must be on the node.
    pub selector: Labels,
    /// Required affinity: one of the terms must match. `None` asks for nothing, an empty list matches nothing.
    pub required: Option<Vec<NodeSelectorTerm>>,
}

impl NodeAffinity {
    /// True if a pod may use the node.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.required.as_ref().is_none_or(|terms| terms.iter().any(|t| t.matches(name, labels)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement::new(key, operator, values.iter().map(|v| Text::from(*v)).collect()).unwrap()
    }

    #[test]
    fn operators_compare_as_kubernetes_does() {
        use Operator::*;
        for (operator, values, node, holds) in [
            (In, vec!["a", "b"], Some("b"), true),
            (In, vec!["a"], None, false),
            (NotIn, vec!["a"], None, true),
            (NotIn, vec!["a"], Some("a"), false),
            (Exists, vec![], Some(""), true),
            (DoesNotExist, vec![], None, true),
            (Gt, vec!["5"], Some("6"), true),
            (Gt, vec!["5"], Some("5"), false),
            (Lt, vec!["5"], Some("x"), false),
            (Lt, vec!["5"], None, false),
        ] {
            assert_eq!(
                requirement("k", operator, &values).matches(node),
                holds,
                "{operator:?} {values:?} {node:?}"
            );
        }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_term_matches_nothing() {
        let labels: Labels = [("zone", "a")].into_iter().collect();
        let zone = |z: &str| NodeSelectorTerm {
            labels: vec![requirement("zone", Operator::In, &[z])],
            fields: vec![],
        };
        let affinity = |terms| NodeAffinity { selector: Labels::default(), required: Some(terms) };
        assert!(affinity(vec![zone("b"), zone("a")]).matches("n", &labels));
        assert!(!affinity(vec![NodeSelectorTerm::default()]).matches("n", &labels));
        assert!(!affinity(vec![]).matches("n", &labels));
        let by_name = NodeSelectorTerm {
            labels: vec![],
            fields: vec![requirement("metadata.name", Operator::In, &["n"])],
        };
        assert!(affinity(vec![by_name.clone()]).matches("n", &labels));
        assert!(!affinity(vec![by_name]).matches("m", &labels));
    }

    #[test]
    fn a_requirement_with_the_wrong_values_is_refused() {
        for (operator, values) in [
            (Operator::In, vec![]),
            (Operator::Exists, vec![Text::from("x")]),
            (Operator::Gt, vec![Text::from("x")]),
            (Operator::Lt, vec![]),
        ] {
            assert!(Requirement::new("k", operator, values).is_err());
        }
    }
}
