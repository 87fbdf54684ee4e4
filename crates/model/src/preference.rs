//! What a pod would like but does not require. Preferences choose among the nodes that will do; they never rule
//! one out.

use crate::error::ModelError;
use crate::inter_pod::{PodTerm, SpreadConstraint};
use crate::label_selector::LabelSelector;
use crate::node_selector::NodeSelectorTerm;
use std::sync::Arc;

/// Smallest and largest weight that Kubernetes allows.
const WEIGHT_MIN: i64 = 1;
const WEIGHT_MAX: i64 = 100;

/// How much a preference counts, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u8);

impl Weight {
    /// A weight, if it is one.
    pub fn new(weight: i64) -> Result<Self, ModelError> {
        match u8::try_from(weight) {
            Ok(small) if (WEIGHT_MIN..=WEIGHT_MAX).contains(&weight) => Ok(Self(small)),
            _ => {
                let message = format!("{weight} is not a weight from {WEIGHT_MIN} to {WEIGHT_MAX}");
                Err(ModelError::new("weight", message))
            }
        }
    }

    /// As a number.
    pub fn get(self) -> i64 {
        i64::from(self.0)
    }
}

/// Something that is wished for, and how much.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weighted<T> {
    /// What.
    pub term: T,
    /// How much.
    pub weight: Weight,
}

/// All preferences of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Preferences {
    /// Nodes that are welcome. A term without conditions matches nothing.
    pub nodes: Vec<Weighted<NodeSelectorTerm>>,
    /// Pods that are welcome near.
    pub affinity: Vec<Weighted<PodTerm>>,
    /// Pods that are unwelcome near.
    pub anti_affinity: Vec<Weighted<PodTerm>>,
    /// Unevenness that is unwelcome (`ScheduleAnyway`).
    pub spread: Vec<SpreadConstraint>,
    /// Pods that do the same as this one, by the services and the controller that it belongs to; of its own
    /// namespace. They are spread by default unless the pod has constraints of its own.
    pub like: Option<Arc<LabelSelector>>,
}

impl Preferences {
    /// True if other pods do not matter.
    pub fn ignores_pods(&self) -> bool {
        self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.spread.is_empty()
            && self.like.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_between_1_and_100() {
        for (weight, is_valid) in
            [(0, false), (1, true), (100, true), (101, false), (-1, false), (257, false)]
        {
            assert_eq!(Weight::new(weight).is_ok(), is_valid, "{weight}");
        }
        let error = Weight::new(101).expect_err("too much").to_string();
        assert_eq!(error, "weight: 101 is not a weight from 1 to 100");
    }
}
