//! Trees of groups: a composite has composites and groups as children; the root decides for all of them.

use crate::error::ModelError;
use crate::key::ObjectKey;

/// Levels that a tree may have, that of the groups included.
pub const TREE_DEPTH_MAX: usize = 4;

/// The way from a group up to its root, itself first.
///
/// `parent_of` tells the parent of a composite: `None` if the composite was not seen, `Some(None)` if it has no
/// parent. A tree that goes round in circles or is too deep is an error; so is one whose upper part was not seen yet,
/// with [`Ancestry::Incomplete`].
pub fn ancestry(
    group: &ObjectKey,
    parent: Option<&ObjectKey>,
    parent_of: impl Fn(&ObjectKey) -> Option<Option<ObjectKey>>,
) -> Result<Ancestry, ModelError> {
    let mut path = vec![group.clone()];
    let mut next = parent.cloned();
    while let Some(composite) = next {
        if path[1..].contains(&composite) {
            return Err(ModelError::new(
                "spec.parentCompositePodGroupName",
                format!("composite {composite} is its own ancestor"),
            ));
        }
        path.push(composite.clone());
        if path.len() > TREE_DEPTH_MAX {
            return Err(ModelError::new(
                "spec.parentCompositePodGroupName",
                format!("the tree above {group} has more than {TREE_DEPTH_MAX} levels"),
            ));
        }
        match parent_of(&composite) {
            Some(parent) => next = parent,
            None => return Ok(Ancestry::Incomplete { missing: composite }),
        }
    }
    Ok(Ancestry::Complete(path))
}

/// Where a group stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ancestry {
    /// From the group to its root.
    Complete(Vec<ObjectKey>),
    /// A composite on the way was not seen yet.
    Incomplete {
        /// Its name.
        missing: ObjectKey,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    /// `a>b` means that b is the parent of a; `a` alone is a root.
    fn climb(tree: &[&str], parent: Option<&str>) -> Result<Ancestry, ModelError> {
        let parent_of = |child: &ObjectKey| {
            let line = tree.iter().find(|line| line.split('>').next() == Some(&child.name))?;
            Some(line.split_once('>').map(|(_, parent)| key(parent)))
        };
        ancestry(&key("leaf"), parent.map(key).as_ref(), parent_of)
    }

    #[test]
    fn a_group_finds_its_root() {
        let path = |names: &[&str]| Ok(Ancestry::Complete(names.iter().map(|name| key(name)).collect()));
        assert_eq!(climb(&[], None), path(&["leaf"]));
        assert_eq!(climb(&["a>b", "b"], Some("a")), path(&["leaf", "a", "b"]));
    }

    #[test]
    fn a_tree_whose_top_was_not_seen_is_incomplete() {
        assert_eq!(climb(&["a>b"], Some("a")), Ok(Ancestry::Incomplete { missing: key("b") }));
    }

    #[test]
    fn circles_and_towers_are_errors_that_name_the_field() {
        for (tree, message) in [
            (&["a>b", "b>a"][..], "composite default/a is its own ancestor"),
            (&["a>a"][..], "composite default/a is its own ancestor"),
            (&["a>b", "b>c", "c>d", "d"][..], "more than 4 levels"),
        ] {
            let error = climb(tree, Some("a")).expect_err("must not be accepted").to_string();
            assert!(error.starts_with("spec.parentCompositePodGroupName"), "{error}");
            assert!(error.contains(message), "{error}");
        }
    }
}
