//! Taints: a pod tolerates every taint of its node with the effect `NoSchedule` or `NoExecute`.
//!
//! Kubernetes' `TaintToleration`. Taints with the effect `PreferNoSchedule` only make a node less welcome: that is the
//! score.

use crate::refusal::NodeReason;
use crate::score::SCORE_MAX;
use crate::state::shape::Shape;
use std::fmt;
use tutti_model::taint::untolerated;
use tutti_model::{Effect, Node, Taint, Toleration};

/// True if a shape tolerates all taints of a node.
pub(crate) fn tolerates(shape: &Shape, node: &Node) -> bool {
    untolerated(&node.taints, &shape.tolerations).is_none()
}

/// Why the rule keeps a shape off a node.
pub(crate) fn forbids(shape: &Shape, node: &Node) -> Option<NodeReason> {
    let taint = untolerated(&node.taints, &shape.tolerations)?;
    Some(NodeReason::Taint { key: taint.key.clone() })
}

/// True if the rule keeps no shape off a node.
pub(super) fn is_open(node: &Node) -> bool {
    node.taints.is_empty()
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Taint { .. })
}

/// The words of a refusal.
pub(crate) fn words(key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "untolerated taint {key}")
}

/// Taints that would rather keep the pod away.
pub(crate) fn count(taints: &[Taint], tolerations: &[Toleration]) -> i64 {
    let unwelcome = |taint: &&Taint| {
        taint.effect == Effect::PreferNoSchedule && !tolerations.iter().any(|t| t.tolerates(taint))
    };
    taints.iter().filter(unwelcome).count() as i64
}

/// The score of a node with so many, where the worst node that will do has `most`.
pub(crate) fn score(count: i64, most: i64) -> i64 {
    if most == 0 { SCORE_MAX } else { SCORE_MAX - SCORE_MAX * count / most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::TolerationOperator;

    #[test]
    fn only_untolerated_taints_that_prefer_count() {
        let taint = |key: &str, effect| Taint { key: key.into(), value: "v".into(), effect };
        let tolerate = |key: &str, effect| Toleration {
            key: key.into(),
            operator: TolerationOperator::Exists,
            value: "".into(),
            effect,
        };
        use Effect::{NoSchedule, PreferNoSchedule};
        let taints = [taint("a", PreferNoSchedule), taint("b", PreferNoSchedule), taint("c", NoSchedule)];
        for (tolerations, expected) in [
            (vec![], 2),
            (vec![tolerate("a", None)], 1),
            (vec![tolerate("a", Some(PreferNoSchedule)), tolerate("b", None)], 0),
            (vec![tolerate("a", Some(NoSchedule))], 2),
            (vec![tolerate("", None)], 0),
        ] {
            assert_eq!(count(&taints, &tolerations), expected, "{tolerations:?}");
        }
    }

    #[test]
    fn the_fewer_the_better() {
        for (count, most, expected) in
            [(0, 0, 100), (0, 2, 100), (1, 2, 50), (2, 2, 0), (1, 3, 67), (2, 3, 34)]
        {
            assert_eq!(score(count, most), expected, "{count} of {most}");
        }
    }
}
