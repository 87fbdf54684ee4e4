//! Where the members of a group or composite are to be, relative to each other.
//!
//! A *level* is a node label; the nodes with one value of it are a *domain*. Levels are listed from wide to narrow, and a
//! domain of a narrow level lies within one domain of every wider level that is listed: it is known by the values of all
//! of them. So two racks that are both called `r1`, in different blocks, are different racks for whoever lists
//! block and rack.

use crate::error::ModelError;
use crate::key::Text;
use std::num::NonZeroU32;

/// Levels that one group or composite may list.
pub const LEVELS_MAX: usize = 16;

/// How much a level matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// All members are in one domain, or none starts.
    Required,
    /// All members are in one domain if that is possible.
    Preferred,
}

/// A label key, and whether all members must or should share its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// The label key.
    pub key: Text,
    /// Must or should.
    pub strength: Strength,
}

/// Members come in parcels that must not be torn apart, such as the 8 workers of one NVLink island.
///
/// If every member has a rank, those with ranks `size * n` up to `size * n + size - 1` are a slice. Otherwise any
/// members will do; they take no more slices than their number asks for. A leader belongs to the first slice and does
/// not count to its size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slices {
    /// Members of a slice.
    pub size: NonZeroU32,
    /// Each slice is in one domain of this label key.
    pub key: Text,
}

/// The children of a composite keep away from each other, so that one failure does not take them all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spread {
    /// Each child is in one domain of this label key.
    pub key: Text,
    /// So many children may share a domain.
    pub most: NonZeroU32,
}

/// Everything that a group or composite asks of the topology.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topology {
    /// From wide to narrow.
    pub levels: Vec<Level>,
    /// Parcels of members; groups only.
    pub slices: Option<Slices>,
    /// Distance between children; composites only.
    pub spread: Option<Spread>,
}

impl Topology {
    /// One required level, as Kubernetes has it.
    pub fn required(key: impl Into<Text>) -> Self {
        Self { levels: vec![Level { key: key.into(), strength: Strength::Required }], ..Self::default() }
    }

    /// True if nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty() && self.slices.is_none() && self.spread.is_none()
    }

    /// All label keys that are named, from wide to narrow: the levels, then what slices and spreading add.
    pub fn keys(&self) -> Vec<Text> {
        let mut keys: Vec<Text> = self.levels.iter().map(|level| level.key.clone()).collect();
        let slices = self.slices.iter().map(|slices| &slices.key);
        for key in slices.chain(self.spread.iter().map(|spread| &spread.key)) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    /// Tells what is wrong with it: a level that is listed twice, or too many levels.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.levels.len() > LEVELS_MAX {
            let message = format!("{} levels are more than {LEVELS_MAX}", self.levels.len());
            return Err(ModelError::new("levels", message));
        }
        for (index, level) in self.levels.iter().enumerate() {
            if self.levels[..index].iter().any(|wider| wider.key == level.key) {
                return Err(ModelError::new(
                    format!("levels[{index}]"),
                    format!("{} is listed twice", level.key),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(key: &str) -> Level {
        Level { key: key.into(), strength: Strength::Preferred }
    }

    #[test]
    fn keys_are_listed_once_and_from_wide_to_narrow() {
        let slices = |key: &str| Some(Slices { size: NonZeroU32::MIN, key: key.into() });
        let levels = vec![level("block"), level("rack")];
        let narrower = Topology { levels: levels.clone(), slices: slices("host"), spread: None };
        assert_eq!(narrower.keys(), ["block", "rack", "host"].map(Text::from));
        let listed = Topology { levels, slices: slices("rack"), spread: None };
        assert_eq!(listed.keys(), ["block", "rack"].map(Text::from));
        assert!(!listed.is_empty() && Topology::default().is_empty());
    }

    #[test]
    fn a_level_that_is_listed_twice_and_too_many_levels_are_errors() {
        let twice = Topology { levels: vec![level("rack"), level("rack")], ..Topology::default() };
        assert_eq!(twice.check().unwrap_err().to_string(), "levels[1]: rack is listed twice");
        let levels = (0..=LEVELS_MAX).map(|number| level(&number.to_string())).collect();
        let many = Topology { levels, ..Topology::default() };
        assert_eq!(many.check().unwrap_err().to_string(), "levels: 17 levels are more than 16");
    }
}
