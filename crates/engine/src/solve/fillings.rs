//! What a bin can hold: all fillings to which no member could be added.
//!
//! If a placement exists then one exists in which every bin holds such a filling, or what is left of one after seats
//! that nobody needs were given up. Bins of a class are alike, so fillings are listed once a class.

use super::budget::{Budget, DIVISION};
use super::problem::Problem;

/// Fillings that are listed for one class of bins; a class with more is not searched completely.
const PER_CLASS_MAX: usize = 4_096;
/// Numbers that all lists hold together; bounds memory and the cost of looking at each filling once.
const NUMBERS_MAX: usize = 1 << 20;
/// Partial fillings that are looked at for each filling that may be listed; bounds the time for a class in which
/// most are not full.
const VISITS_PER_FILLING: usize = 16;

/// The fillings of all classes of bins. Counts are in the order of [`Problem::by_difficulty`].
#[derive(Debug)]
pub(super) struct Fillings {
    classes: Vec<Class>,
    is_all: bool,
}

/// The fillings of one class of bins.
#[derive(Debug)]
pub(super) struct Class {
    kinds: usize,
    count: usize,
    /// `rows[filling * kinds + kind]`: members.
    rows: Vec<u32>,
    /// The same by kind, `columns[kind * count + filling]`, because sums over all fillings are the hot loop.
    columns: Vec<u32>,
}

impl Fillings {
    /// Lists them.
    pub(super) fn new(problem: &Problem, kinds: &[usize], budget: &mut Budget) -> Self {
        let numbers_max = NUMBERS_MAX / problem.classes_count.max(1) / kinds.len().max(1);
        let fillings_max = numbers_max.clamp(1, PER_CLASS_MAX);
        let mut classes: Vec<Option<Class>> = (0..problem.classes_count).map(|_| None).collect();
        let mut is_all = true;
        budget.charge(4 * problem.bins.len());
        for (bin, &class) in problem.class_of.iter().enumerate() {
            let class = &mut classes[class as usize];
            if class.is_none() {
                let mut listing = Listing::new(problem, kinds, bin, fillings_max);
                listing.kind(0, budget);
                is_all &= listing.is_all;
                *class = Some(Class::new(kinds.len(), listing.rows));
            }
        }
        Self { classes: classes.into_iter().flatten().collect(), is_all }
    }

    /// True if no filling is missing.
    pub(super) fn is_all(&self) -> bool {
        self.is_all
    }

    /// The fillings of a class.
    pub(super) fn of_class(&self, class: usize) -> &Class {
        &self.classes[class]
    }

    /// How many numbers all lists hold together.
    pub(super) fn numbers(&self) -> usize {
        self.classes.iter().map(Class::size).sum()
    }

    /// All classes.
    pub(super) fn classes(&self) -> &[Class] {
        &self.classes
    }
}

impl Class {
    fn new(kinds: usize, rows: Vec<u32>) -> Self {
        let count = rows.len() / kinds.max(1);
        let mut columns = vec![0; rows.len()];
        for (filling, row) in rows.chunks_exact(kinds.max(1)).enumerate() {
            for (kind, &members) in row.iter().enumerate() {
                columns[kind * count + filling] = members;
            }
        }
        Self { kinds, count, rows, columns }
    }

    /// How many numbers there are to look at.
    pub(super) fn size(&self) -> usize {
        self.rows.len()
    }

    /// How many fillings there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Members of each kind.
    pub(super) fn row(&self, filling: usize) -> &[u32] {
        &self.rows[filling * self.kinds..(filling + 1) * self.kinds]
    }

    /// What every filling is worth at these prices.
    pub(super) fn values(&self, prices: &[u32], values: &mut Vec<u64>) {
        values.clear();
        values.resize(self.count, 0);
        for (&price, column) in prices.iter().zip(self.columns.chunks_exact(self.count.max(1))) {
            if price > 0 {
                for (value, &members) in values.iter_mut().zip(column) {
                    *value += u64::from(price) * u64::from(members);
                }
            }
        }
    }
}

/// Lists the fillings of one bin.
struct Listing<'a> {
    problem: &'a Problem,
    kinds: &'a [usize],
    bin: usize,
    filling: Vec<u32>,
    free: Vec<i64>,
    rows: Vec<u32>,
    numbers_max: usize,
    visits_left: usize,
    is_all: bool,
}

impl<'a> Listing<'a> {
    fn new(problem: &'a Problem, kinds: &'a [usize], bin: usize, fillings_max: usize) -> Self {
        Self {
            problem,
            kinds,
            bin,
            filling: vec![0; kinds.len()],
            free: problem.free_in(bin).to_vec(),
            rows: Vec::new(),
            numbers_max: fillings_max * kinds.len(),
            visits_left: fillings_max * VISITS_PER_FILLING,
            is_all: true,
        }
    }

    /// Tries all numbers of members of the kinds from this one on, large numbers first.
    fn kind(&mut self, at: usize, budget: &mut Budget) {
        let Some(&kind) = self.kinds.get(at) else {
            // Paid for here and missed by the next visit, if the budget is used up.
            budget.charge(DIVISION * self.kinds.len() * self.free.len());
            if self.is_full() {
                self.rows.extend_from_slice(&self.filling);
            }
            return;
        };
        let most = self.copies(at);
        // Of the last kind, fewer than fit would leave room for one more.
        let least = if at + 1 == self.kinds.len() { most } else { 0 };
        for count in (least..=most).rev() {
            let can_go_on = self.visits_left > 0
                && self.rows.len() < self.numbers_max
                && budget.spend(DIVISION * (1 + self.free.len()));
            if !can_go_on {
                self.is_all = false;
                return;
            }
            self.visits_left -= 1;
            self.shift(kind, -i64::from(count));
            self.filling[at] = count;
            self.kind(at + 1, budget);
            self.filling[at] = 0;
            self.shift(kind, i64::from(count));
        }
    }

    /// Members of a kind that fit beside the others and exist.
    fn copies(&self, at: usize) -> u32 {
        let kind = self.kinds[at];
        if !self.problem.is_allowed(kind, self.bin) {
            return 0;
        }
        let others = self.problem.kinds[kind].count - self.filling[at];
        self.problem.copies(kind, &self.free).min(u64::from(others)) as u32
    }

    /// True if no member could be added.
    fn is_full(&self) -> bool {
        (0..self.kinds.len()).all(|at| self.copies(at) == 0)
    }

    fn shift(&mut self, kind: usize, count: i64) {
        for (free, demand) in self.free.iter_mut().zip(&self.problem.kinds[kind].demand) {
            *free += demand * count;
        }
    }
}
