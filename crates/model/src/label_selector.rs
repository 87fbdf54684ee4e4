//! Selecting objects by their labels.

use crate::error::ModelError;
use crate::key::Text;
use crate::labels::Labels;
use crate::node_selector::{Operator, Requirement};

/// Conditions on labels that must all hold; no condition matches everything.
///
/// Kubernetes distinguishes a selector that is empty (everything) from one that is absent (nothing); an absent
/// one is an `Option` without value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    /// Sorted, each once, so that selectors that say the same are the same.
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// A selector from its conditions, in any order.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Result<Self, ModelError> {
        let mut selector = Self::default();
        for requirement in requirements {
            if matches!(requirement.operator, Operator::Gt | Operator::Lt) {
                let message = format!("{:?} is not an operator of label selectors", requirement.operator);
                return Err(ModelError::new("operator", message));
            }
            selector.require(requirement);
        }
        Ok(selector)
    }

    /// `matchLabels`: every pair must be there.
    pub fn of_labels<K: Into<Text>, V: Into<Text>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut selector = Self::default();
        for (key, value) in pairs {
            selector.require_value(key, value);
        }
        selector
    }

    /// Adds the condition that a key has this value, as `matchLabelKeys` does with the pod's own value.
    pub fn require_value(&mut self, key: impl Into<Text>, value: impl Into<Text>) {
        self.require(Requirement { key: key.into(), operator: Operator::In, values: vec![value.into()] });
    }

    /// Adds the condition that a key does not have this value, as `mismatchLabelKeys` does.
    pub fn exclude_value(&mut self, key: impl Into<Text>, value: impl Into<Text>) {
        self.require(Requirement { key: key.into(), operator: Operator::NotIn, values: vec![value.into()] });
    }

    /// Adds all conditions of another selector.
    pub fn require_all(&mut self, other: &Self) {
        for requirement in &other.requirements {
            self.require(requirement.clone());
        }
    }

    /// All conditions, sorted.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// True if there is no condition.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels.get(&requirement.key)))
    }

    fn require(&mut self, mut requirement: Requirement) {
        requirement.values.sort_unstable();
        requirement.values.dedup();
        if let Err(at) = self.requirements.binary_search(&requirement) {
            self.requirements.insert(at, requirement);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_that_say_the_same_are_the_same() {
        let values = |values: &[&str]| values.iter().map(|v| Text::from(*v)).collect::<Vec<_>>();
        let one = LabelSelector::new([
            Requirement::new("b", Operator::Exists, vec![]).unwrap(),
            Requirement::new("a", Operator::In, values(&["x", "y"])).unwrap(),
        ]);
        let other = LabelSelector::new([
            Requirement::new("a", Operator::In, values(&["y", "x", "y"])).unwrap(),
            Requirement::new("b", Operator::Exists, vec![]).unwrap(),
        ]);
        assert_eq!(one, other);
    }

    #[test]
    fn all_conditions_must_hold_and_none_matches_everything() {
        let labels: Labels = [("app", "train"), ("rank", "3")].into_iter().collect();
        assert!(LabelSelector::default().matches(&labels));
        let mut selector = LabelSelector::of_labels([("app", "train")]);
        assert!(selector.matches(&labels));
        selector.exclude_value("rank", "3");
        assert!(!selector.matches(&labels));
    }

    #[test]
    fn numeric_operators_are_for_nodes_only() {
        let numeric = Requirement::new("a", Operator::Gt, vec![Text::from("1")]).unwrap();
        assert!(LabelSelector::new([numeric]).is_err());
    }
}
