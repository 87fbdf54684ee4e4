//! Taints keep pods away from nodes; tolerations let some of them through.

use crate::key::Text;

/// What a taint does to a pod that does not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Keeps new pods away.
    NoSchedule,
    /// Keeps new pods away if there is another place.
    PreferNoSchedule,
    /// Keeps new pods away and drives running ones out.
    NoExecute,
}

impl Effect {
    /// True if a pod that does not tolerate the taint may not be placed.
    pub fn forbids_placement(self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key.
    pub key: Text,
    /// Value; may be empty.
    pub value: Text,
    /// Effect.
    pub effect: Effect,
}

/// How a toleration compares values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOperator {
    /// Any value.
    Exists,
    /// The same text.
    Equal,
    /// The taint's value is an integer below the toleration's.
    Lt,
    /// The taint's value is an integer above the toleration's.
    Gt,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Key; empty means every key (with `Exists`).
    pub key: Text,
    /// How values compare.
    pub operator: TolerationOperator,
    /// Value.
    pub value: Text,
    /// Effect; none means every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// True if a pod with this toleration may ignore the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => self.value == taint.value,
            TolerationOperator::Lt => compare(&taint.value, &self.value, |taint, own| taint < own),
            TolerationOperator::Gt => compare(&taint.value, &self.value, |taint, own| taint > own),
        }
    }
}

/// Compares two integers; text that is none never matches.
fn compare(taint: &str, own: &str, rule: fn(i64, i64) -> bool) -> bool {
    matches!((taint.parse(), own.parse()), (Ok(taint), Ok(own)) if rule(taint, own))
}

/// The first taint that keeps a pod with these tolerations away.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .find(|taint| taint.effect.forbids_placement() && !tolerations.iter().any(|t| t.tolerates(taint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{NoExecute, NoSchedule, PreferNoSchedule};
    use TolerationOperator::{Equal, Exists, Gt, Lt};

    fn taint(key: &str, value: &str, effect: Effect) -> Taint {
        Taint { key: key.into(), value: value.into(), effect }
    }

    fn toleration(
        key: &str,
        operator: TolerationOperator,
        value: &str,
        effect: Option<Effect>,
    ) -> Toleration {
        Toleration { key: key.into(), operator, value: value.into(), effect }
    }

    #[test]
    fn tolerations_match_key_value_and_effect() {
        let gpu = taint("gpu", "a100", NoSchedule);
        for (toleration, matches) in [
            (toleration("gpu", Equal, "a100", Some(NoSchedule)), true),
            (toleration("gpu", Equal, "a100", None), true),
            (toleration("gpu", Equal, "h100", None), false),
            (toleration("gpu", Exists, "", Some(NoExecute)), false),
            (toleration("gpu", Exists, "", None), true),
            (toleration("", Exists, "", None), true),
            (toleration("cpu", Exists, "", None), false),
        ] {
            assert_eq!(toleration.tolerates(&gpu), matches, "{toleration:?}");
        }
    }

    #[test]
    fn numeric_tolerations_compare_integers_only() {
        let reliability = taint("reliability", "95", NoSchedule);
        assert!(toleration("reliability", Gt, "90", None).tolerates(&reliability));
        assert!(!toleration("reliability", Lt, "90", None).tolerates(&reliability));
        assert!(!toleration("reliability", Gt, "high", None).tolerates(&reliability));
    }

    #[test]
    fn only_taints_that_forbid_keep_pods_away() {
        let taints = [taint("soft", "", PreferNoSchedule), taint("hard", "", NoExecute)];
        assert_eq!(untolerated(&taints, &[]).map(|t| t.key.as_ref()), Some("hard"));
        assert_eq!(untolerated(&taints, &[toleration("hard", Exists, "", None)]), None);
    }
}
