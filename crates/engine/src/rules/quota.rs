//! Quota: at most so many members of some kinds in a domain.
//!
//! Not a rule of a pod but of a pod group: slices. Members of a group with slices of a size share domains in parcels of
//! that size, so that a division of slices among domains limits how many members each domain takes. The tree search
//! chooses the division; a refusal names the level, not a reason per node.

use super::{Cost, pick};

/// At most so many members of some kinds in each domain.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    /// Kinds that count.
    pub(crate) kinds: Vec<bool>,
    /// Domain of a bin; bins that are in none take no members that count.
    pub(crate) domain: Vec<u32>,
    /// By domain.
    pub(crate) most: Vec<u32>,
}

/// All quotas of a problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quotas(Vec<Quota>);

impl Quotas {
    /// Quotas for some of the bins that they speak of.
    pub(super) fn of(quotas: &[Quota], bins: &[usize]) -> Self {
        let narrow = |quota: &Quota| Quota { domain: pick(&quota.domain, bins), ..quota.clone() };
        Self(quotas.iter().map(narrow).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn cost(&self) -> Cost {
        Cost { look: 2 * self.0.len(), ..Cost::default() }
    }

    /// What the rule sees of every bin.
    pub(super) fn seen(&self) -> impl Iterator<Item = Vec<u32>> {
        self.0.iter().map(|quota| quota.domain.clone())
    }
}

/// Members that count, in a partial placement.
#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    rules: &'a Quotas,
    /// By quota and domain.
    placed: Vec<Vec<u32>>,
}

impl<'a> Load<'a> {
    pub(super) fn new(rules: &'a Quotas) -> Self {
        Self { rules, placed: rules.0.iter().map(|quota| vec![0; quota.most.len()]).collect() }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        self.counted(kind, bin).for_each(|placed| *placed += 1);
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        self.counted(kind, bin).for_each(|placed| *placed -= 1);
    }

    fn counted(&mut self, kind: usize, bin: usize) -> impl Iterator<Item = &mut u32> {
        let quotas = self.rules.0.iter().zip(&mut self.placed).filter(move |(quota, _)| quota.kinds[kind]);
        quotas.filter_map(move |(quota, placed)| placed.get_mut(quota.domain[bin] as usize))
    }

    pub(super) fn admits(&self, kind: usize, bin: usize) -> bool {
        self.rules.0.iter().zip(&self.placed).all(|(quota, placed)| {
            let domain = quota.domain[bin] as usize;
            !quota.kinds[kind] || placed.get(domain).is_some_and(|placed| *placed < quota.most[domain])
        })
    }
}
