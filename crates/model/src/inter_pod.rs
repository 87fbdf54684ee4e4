//! Wishes that pods have about each other: affinity, anti-affinity, spreading.

use crate::key::Text;
use crate::label_selector::LabelSelector;
use crate::labels::Labels;
use std::num::NonZeroU32;

/// Which pods a term speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSelector {
    /// Namespaces by name; sorted. The pod's own one is here if the term names none.
    pub namespaces: Vec<Text>,
    /// Namespaces by their labels, in addition.
    pub namespace_selector: Option<LabelSelector>,
    /// Pods by their labels; an absent selector selects none.
    pub labels: Option<LabelSelector>,
}

impl PodSelector {
    /// Pods of one namespace.
    pub fn in_namespace(namespace: &Text, labels: Option<LabelSelector>) -> Self {
        Self { namespaces: vec![namespace.clone()], namespace_selector: None, labels }
    }

    /// True if a pod with these labels is selected; `namespace_labels` are those of its namespace.
    pub fn matches(&self, namespace: &Text, namespace_labels: &Labels, labels: &Labels) -> bool {
        self.reaches(namespace, namespace_labels)
            && self.labels.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// True if pods of a namespace with these labels can be selected.
    pub fn reaches(&self, namespace: &Text, namespace_labels: &Labels) -> bool {
        self.namespaces.contains(namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| selector.matches(namespace_labels))
    }
}

/// One wish about other pods in the same domain. A domain is the set of nodes with one value of the topology key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// Which pods.
    pub pods: PodSelector,
    /// Which label divides nodes into domains.
    pub topology_key: Text,
}

/// A limit to how unevenly pods may be spread over domains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpreadConstraint {
    /// How many more a domain may have than the emptiest one.
    pub max_skew: NonZeroU32,
    /// Which label divides nodes into domains.
    pub topology_key: Text,
    /// Which pods count; those of the pod's own namespace. An absent selector counts none.
    pub labels: Option<LabelSelector>,
    /// With fewer domains than this, the emptiest one counts as empty.
    pub min_domains: Option<NonZeroU32>,
    /// Nodes that the pod's node affinity excludes do not count.
    pub honors_affinity: bool,
    /// Nodes whose taints the pod does not tolerate do not count.
    pub honors_taints: bool,
}

/// All required wishes of a pod about other pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterPod {
    /// Pods that must be near.
    pub affinity: Vec<PodTerm>,
    /// Pods that must not be near.
    pub anti_affinity: Vec<PodTerm>,
    /// Limits to unevenness.
    pub spread: Vec<SpreadConstraint>,
}

impl InterPod {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.affinity.is_empty() && self.anti_affinity.is_empty() && self.spread.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_selects_by_namespace_name_or_label_and_by_pod_label() {
        let none = Labels::default();
        let team: Labels = [("team", "ml")].into_iter().collect();
        let app: Labels = [("app", "a")].into_iter().collect();
        let pods = LabelSelector::of_labels([("app", "a")]);
        let (here, there) = (Text::from("here"), Text::from("there"));
        let mut selector = PodSelector::in_namespace(&here, Some(pods));
        assert!(selector.matches(&here, &none, &app));
        assert!(!selector.matches(&there, &none, &app));
        assert!(!selector.matches(&here, &none, &none));
        selector.namespace_selector = Some(LabelSelector::of_labels([("team", "ml")]));
        assert!(selector.matches(&there, &team, &app));
        selector.labels = None;
        assert!(!selector.matches(&here, &none, &app), "an absent selector selects nothing");
    }
}
