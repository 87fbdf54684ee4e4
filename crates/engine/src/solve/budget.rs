//! How much work a search may do. Counted, never timed, so that the same question has the same answer everywhere.

/// Steps that one branch of the configured budget is worth. A step is about one multiplication of a tight loop, so
/// that the default of 200,000 branches lasts less than 50 ms on one core, whatever the search is busy with.
const STEPS_PER_BRANCH: u64 = 192;

/// Steps that a division takes.
pub(super) const DIVISION: usize = 10;

/// Work that may still be done.
#[derive(Debug)]
pub(crate) struct Budget {
    steps_left: u64,
}

impl Budget {
    pub(crate) fn of_branches(branches: u32) -> Self {
        Self { steps_left: u64::from(branches) * STEPS_PER_BRANCH }
    }

    /// Pays for work that is about to be done; false if there is not enough left for it.
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

    /// A part of the budget, for one piece of work. What is left of it is to be given back.
    pub(crate) fn split(&mut self, steps: u64) -> Self {
        let steps_left = steps.min(self.steps_left);
        self.steps_left -= steps_left;
        Self { steps_left }
    }

    /// Takes back what is left of a part.
    pub(crate) fn give_back(&mut self, part: Self) {
        self.steps_left += part.steps_left;
    }

    /// Steps that are left.
    pub(crate) fn steps_left(&self) -> u64 {
        self.steps_left
    }
}
