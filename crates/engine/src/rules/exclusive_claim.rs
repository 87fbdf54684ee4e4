//! Exclusive claim: a volume claim with the access mode `ReadWriteOncePod` has one pod in the whole cluster.
//!
//! The part of Kubernetes' `VolumeRestrictions` about that mode. A claim that a pod with a node uses already keeps other
//! pods from being tried at all ([`crate::ClaimProblem::InUse`]). What is left for the solver are members of one request
//! that name the same claim: one of them can be placed.

use super::{Cost, Scope};
use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use tutti_model::ObjectKey;

/// The words of a refusal.
pub(crate) const WORDS: &str = "volume claim for one pod only";

/// The claims that members of a problem compete for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExclusiveClaims {
    /// By claim and kind: which kinds use it.
    used_by: Vec<Vec<bool>>,
}

impl ExclusiveClaims {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        let mut claims: Vec<&ObjectKey> =
            scope.shapes.iter().flat_map(|shape| &shape.volumes.exclusive).collect();
        claims.sort_unstable();
        claims.dedup();
        let users = |claim: &ObjectKey| {
            scope.shapes.iter().map(|shape| shape.volumes.exclusive.contains(claim)).collect()
        };
        Self { used_by: claims.into_iter().map(users).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used_by.is_empty()
    }

    /// True if at most one member of a kind can be placed.
    pub(crate) fn binds(&self, kind: usize) -> bool {
        self.used_by.iter().any(|users| users[kind])
    }

    pub(super) fn cost(&self) -> Cost {
        Cost { look: 2 * self.used_by.len(), hold: 8 * self.used_by.len(), hold_per_member: 0 }
    }
}

/// Members that use a claim, in a partial placement.
#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    rules: &'a ExclusiveClaims,
    /// By claim.
    users: Vec<u32>,
}

impl<'a> Load<'a> {
    pub(super) fn new(rules: &'a ExclusiveClaims) -> Self {
        Self { rules, users: vec![0; rules.used_by.len()] }
    }

    pub(super) fn put(&mut self, kind: usize) {
        self.used_by(kind).for_each(|users| *users += 1);
    }

    pub(super) fn take(&mut self, kind: usize) {
        self.used_by(kind).for_each(|users| *users -= 1);
    }

    fn used_by(&mut self, kind: usize) -> impl Iterator<Item = &mut u32> {
        let claims = self.rules.used_by.iter().zip(&mut self.users);
        claims.filter(move |(by, _)| by[kind]).map(|(_, users)| users)
    }

    pub(super) fn admits(&self, kind: usize) -> bool {
        !self.rules.used_by.iter().zip(&self.users).any(|(by, users)| by[kind] && *users > 0)
    }

    pub(super) fn why_not(&self, kind: usize) -> Option<NodeReason> {
        (!self.admits(kind)).then_some(NodeReason::ExclusiveClaim)
    }
}

/// True if the rule never concerns the shape.
pub(super) fn ignores(shape: &Shape) -> bool {
    shape.volumes.exclusive.is_empty()
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::ExclusiveClaim)
}
