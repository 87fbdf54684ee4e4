//! Resources and integer amounts of them: processor time in thousandths, everything else in whole units.

use crate::error::ModelError;
use crate::key::Text;
use crate::quantity::Quantity;
use std::fmt;

/// Largest amount of anything that is counted. Far above real hardware and low enough that sums over a node
/// stay within `i64`.
pub const AMOUNT_MAX: i64 = 1 << 56;

/// The name of a resource: `cpu`, `memory`, `pods`, `nvidia.com/gpu`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Text);

impl Resource {
    /// Processor time, counted in thousandths of a core.
    pub const CPU: &'static str = "cpu";
    /// Memory, in bytes.
    pub const MEMORY: &'static str = "memory";
    /// Seats for pods; every pod takes one.
    pub const PODS: &'static str = "pods";

    /// A resource by name.
    pub fn new(name: &str) -> Self {
        Self(Text::from(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Turns a quantity into the integer in which this resource is counted, rounded up.
    pub fn amount_of(&self, quantity: Quantity) -> i64 {
        let amount = if self.name() == Self::CPU { quantity.milli_ceil() } else { quantity.value_ceil() };
        amount.min(AMOUNT_MAX)
    }

    /// As [`Resource::amount_of`], but refuses what cannot be an amount: below zero.
    pub fn checked_amount_of(&self, quantity: Quantity) -> Result<i64, ModelError> {
        if quantity.is_negative() {
            return Err(ModelError::new(self.name(), format!("{quantity} is below zero")));
        }
        Ok(self.amount_of(quantity))
    }

    /// The amount as people write it: `1500m` for `cpu`, `16Gi` for memory, plain numbers otherwise.
    pub fn show(&self, amount: i64) -> String {
        let bytes = self.name() == Self::MEMORY
            || self.name() == "ephemeral-storage"
            || self.name().starts_with("hugepages-");
        if self.name() == Self::CPU {
            Quantity::from_milli(amount).to_string()
        } else if bytes {
            show_bytes(amount)
        } else {
            amount.to_string()
        }
    }
}

/// The largest binary suffix that loses nothing, or one decimal of a rounded one for odd numbers.
fn show_bytes(amount: i64) -> String {
    for (shift, suffix) in [(50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
        let unit = 1_i64 << shift;
        if amount != 0 && amount % unit == 0 {
            return format!("{}{suffix}", amount / unit);
        }
        if amount.unsigned_abs() >= 1 << (shift + 4) {
            // Sixteen units and more: a tenth of a unit says enough to a person.
            let tenths = i128::from(amount) * 10 / i128::from(unit);
            return format!("{}.{}{suffix}", tenths / 10, (tenths % 10).abs());
        }
    }
    amount.to_string()
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Amounts by resource, sorted by name; no entry means none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceList(Vec<(Resource, i64)>);

impl ResourceList {
    /// Nothing of anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The amount of one resource.
    pub fn get(&self, name: &str) -> i64 {
        self.find(name).map_or(0, |at| self.0[at].1)
    }

    /// True if there is an entry, be it of nothing.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Sets the amount of one resource.
    pub fn set(&mut self, resource: Resource, amount: i64) {
        match self.find(resource.name()) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (resource, amount)),
        }
    }

    /// Adds, resource by resource.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, |mine, theirs| mine.saturating_add(theirs).min(AMOUNT_MAX));
    }

    /// Takes the larger amount, resource by resource.
    pub fn raise_to(&mut self, other: &Self) {
        self.merge(other, i64::max);
    }

    /// Resources and amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Resource, i64)> {
        self.0.iter().map(|(resource, amount)| (resource, *amount))
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(resource, _)| resource.name().cmp(name))
    }

    fn merge(&mut self, other: &Self, rule: impl Fn(i64, i64) -> i64) {
        for (resource, amount) in other.iter() {
            match self.find(resource.name()) {
                Ok(at) => self.0[at].1 = rule(self.0[at].1, amount),
                Err(at) => self.0.insert(at, (resource.clone(), rule(0, amount))),
            }
        }
    }
}

impl FromIterator<(Resource, i64)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (Resource, i64)>>(entries: I) -> Self {
        let mut list = Self::new();
        for (resource, amount) in entries {
            list.set(resource, amount);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_counts_thousandths_and_the_rest_whole_units() {
        let quantity = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(Resource::new("cpu").amount_of(quantity("1.5")), 1500);
        assert_eq!(Resource::new("memory").amount_of(quantity("1Ki")), 1024);
        assert_eq!(Resource::new("nvidia.com/gpu").amount_of(quantity("8")), 8);
        assert_eq!(Resource::new("memory").amount_of(quantity("9E")), AMOUNT_MAX);
        let error = Resource::new("cpu").checked_amount_of(quantity("-1")).expect_err("below zero");
        assert_eq!(error.to_string(), "cpu: -1 is below zero");
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        for (name, amount, text) in [
            ("cpu", 1500, "1500m"),
            ("cpu", 4000, "4"),
            ("memory", 16 << 30, "16Gi"),
            ("memory", (16 << 30) + 1, "16.0Gi"),
            ("memory", 1000, "1000"),
            ("memory", 0, "0"),
            ("nvidia.com/gpu", 17, "17"),
        ] {
            assert_eq!(Resource::new(name).show(amount), text);
        }
    }

    #[test]
    fn lists_add_and_take_the_larger_by_name() {
        let list = |entries: &[(&str, i64)]| -> ResourceList {
            entries.iter().map(|&(name, amount)| (Resource::new(name), amount)).collect()
        };
        let mut sum = list(&[("memory", 5), ("cpu", 1)]);
        sum.add(&list(&[("cpu", 2), ("pods", 1)]));
        assert_eq!(sum, list(&[("cpu", 3), ("memory", 5), ("pods", 1)]));
        sum.raise_to(&list(&[("cpu", 9), ("memory", 1)]));
        assert_eq!((sum.get("cpu"), sum.get("memory"), sum.get("nothing")), (9, 5, 0));
    }
}
