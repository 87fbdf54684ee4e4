//! How much work an attempt may do. Counted, never timed, so that the same question has the same answer everywhere.

/// Steps that one branch of the configured budget is worth. A step is about one multiplication of a tight loop, so
/// that the default of 200,000 branches lasts less than 50 ms on one core, whatever the attempt is busy with.
const STEPS_PER_BRANCH: u64 = 192;

/// Steps that a division takes.
pub(super) const DIVISION: usize = 10;

/// One part in this many of a budget is kept for the explanation of a refusal.
const EXPLANATION_SHARE: u64 = 8;

/// Work that may still be done: for everything that one attempt does, from reading the tables to the explanation.
#[derive(Debug)]
pub(crate) struct Budget {
    /// What may be spent now.
    steps_left: u64,
    /// What is kept for later: see [`Budget::share`] and [`Budget::for_explanation`].
    kept: u64,
    /// What is kept for the explanation.
    explanation: u64,
    /// What was there at first.
    all: u64,
}

/// A part of a budget that is kept for later.
#[derive(Debug)]
pub(super) struct Kept(u64);

impl Budget {
    /// A budget that lasts for so many branches of a search.
    pub(crate) fn of_branches(branches: u32) -> Self {
        Self::of_steps(u64::from(branches) * STEPS_PER_BRANCH)
    }

    fn of_steps(all: u64) -> Self {
        let explanation = all / EXPLANATION_SHARE;
        Self { steps_left: all - explanation, kept: 0, explanation, all }
    }

    /// Pays for work that is about to be done; false if there is not enough left for it.
    #[must_use]
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        match self.steps_left.checked_sub(steps as u64) {
            Some(left) => {
                self.steps_left = left;
                true
            }
            None => {
                self.steps_left = 0;
                false
            }
        }
    }

    /// Pays for work that has to be done; if there is not enough left, the next piece of work finds nothing.
    pub(super) fn charge(&mut self, steps: usize) {
        self.steps_left = self.steps_left.saturating_sub(steps as u64);
    }

    /// Steps that may be spent now.
    pub(crate) fn steps_left(&self) -> u64 {
        self.steps_left
    }

    /// Does some work with one part in `share` of what is left, so that something stays for what comes after it.
    pub(super) fn share<T>(&mut self, share: u64, work: impl FnOnce(&mut Self) -> T) -> T {
        let kept = self.keep(share);
        let result = work(self);
        self.restore(kept);
        result
    }

    /// Does some work with all but one part in `share` of what is left.
    pub(super) fn most<T>(&mut self, share: u64, work: impl FnOnce(&mut Self) -> T) -> T {
        let kept = Kept(self.steps_left / share.max(1));
        self.steps_left -= kept.0;
        self.kept += kept.0;
        let result = work(self);
        self.restore(kept);
        result
    }

    /// Leaves one part in `share` of what is left, until what is kept is restored.
    pub(super) fn keep(&mut self, share: u64) -> Kept {
        let kept = self.steps_left - self.steps_left / share.max(1);
        self.steps_left -= kept;
        self.kept += kept;
        Kept(kept)
    }

    /// See [`Budget::keep`].
    pub(super) fn restore(&mut self, Kept(kept): Kept) {
        self.kept -= kept;
        self.steps_left += kept;
    }

    /// A part of the budget, for one attempt. What is left of it is to be given back.
    pub(crate) fn split(&mut self, steps: u64) -> Self {
        let steps = steps.min(self.steps_left);
        self.steps_left -= steps;
        Self::of_steps(steps)
    }

    /// Takes back what is left of a part.
    #[allow(clippy::needless_pass_by_value, reason = "what was given back must not be spent")]
    pub(crate) fn give_back(&mut self, part: Self) {
        let Self { steps_left, kept, explanation, .. } = part;
        self.steps_left += steps_left + kept + explanation;
    }

    /// From now on the explanation may use what was kept for it.
    pub(super) fn for_explanation(&mut self) {
        self.steps_left += std::mem::take(&mut self.explanation);
    }

    /// Steps that were spent so far.
    pub(crate) fn steps_spent(&self) -> u64 {
        self.all - self.steps_left - self.kept - self.explanation
    }

    /// Steps that can be spent in all.
    pub(crate) fn steps_max(&self) -> u64 {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_used_up_leaves_the_rest() {
        let mut budget = Budget::of_branches(8);
        let at_first = budget.steps_left();
        let is_enough = budget.share(2, |budget| budget.spend(at_first as usize));
        assert!(!is_enough);
        assert_eq!(budget.steps_left(), at_first - at_first / 2);
        assert_eq!(budget.steps_spent(), at_first / 2);
    }

    #[test]
    fn the_explanation_has_its_part_when_everything_else_is_spent() {
        let mut budget = Budget::of_branches(8);
        assert!(!budget.spend(usize::MAX));
        assert!(!budget.spend(1));
        budget.for_explanation();
        assert!(budget.spend(8 * STEPS_PER_BRANCH as usize / EXPLANATION_SHARE as usize));
        assert_eq!(budget.steps_spent(), budget.steps_max());
    }
}
