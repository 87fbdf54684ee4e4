//! Node affinity: the labels and the name of a node match the pod's `nodeSelector` and its required node affinity.
//!
//! Kubernetes' `NodeAffinity`. Preferred terms only make a node more welcome: that is the score.

use crate::refusal::NodeReason;
use crate::score::SCORE_MAX;
use crate::state::shape::Shape;
use tutti_model::{Node, NodeSelectorTerm, Weighted};

/// The words of a refusal.
pub(crate) const WORDS: &str = "not selected by node selector or affinity";

/// True if a shape selects a node.
pub(crate) fn selects(shape: &Shape, node: &Node) -> bool {
    shape.affinity.matches(&node.name, &node.labels)
}

/// Why the rule keeps a shape off a node.
pub(crate) fn forbids(shape: &Shape, node: &Node) -> Option<NodeReason> {
    (!selects(shape, node)).then_some(NodeReason::Affinity)
}

/// True if the rule keeps the shape off no node.
pub(super) fn is_undemanding(shape: &Shape) -> bool {
    shape.selects_all
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Affinity)
}

/// The sum of the weights of the terms that match.
pub(crate) fn sum(terms: &[Weighted<NodeSelectorTerm>], node: &Node) -> i64 {
    let matching = terms.iter().filter(|term| term.term.matches(&node.name, &node.labels));
    matching.map(|term| term.weight.get()).sum()
}

/// The score of a node with this sum, where the best node that will do has `most`.
pub(crate) fn score(sum: i64, most: i64) -> i64 {
    if most == 0 { 0 } else { SCORE_MAX * sum / most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::{Operator, Requirement, Weight};

    #[test]
    fn weights_of_matching_terms_add_up() {
        let term = |key: &str, value: &str, weight| Weighted {
            term: NodeSelectorTerm {
                labels: vec![Requirement::new(key, Operator::In, vec![value.into()]).unwrap()],
                fields: vec![],
            },
            weight: Weight::new(weight).unwrap(),
        };
        let empty = Weighted { term: NodeSelectorTerm::default(), weight: Weight::new(50).unwrap() };
        let terms = [term("zone", "a", 2), term("zone", "b", 4), term("disk", "fast", 5), empty];
        let node =
            |labels: &[(&str, &str)]| Node { labels: labels.iter().copied().collect(), ..Node::default() };
        assert_eq!(sum(&terms, &node(&[])), 0);
        assert_eq!(sum(&terms, &node(&[("zone", "b")])), 4);
        assert_eq!(sum(&terms, &node(&[("zone", "a"), ("disk", "fast")])), 7);
    }

    #[test]
    fn the_score_is_the_share_of_the_best() {
        for (sum, most, expected) in [(0, 0, 0), (0, 7, 0), (2, 7, 28), (5, 7, 71), (7, 7, 100)] {
            assert_eq!(score(sum, most), expected, "{sum} of {most}");
        }
    }
}
