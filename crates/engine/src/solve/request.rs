//! What is asked for: members by shape, and the tree of groups that they belong to.

use crate::refusal::Scattered;
use crate::state::hierarchy::HierarchyId;
use crate::state::nodes::NodeId;
use crate::state::room::Style;
use crate::state::shape::ShapeId;
use std::sync::Arc;
use tutti_model::{Strength, Text};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    /// How many members of each kind want a seat. A kind is a shape; in a tree, a shape in one group and slice.
    pub(crate) shapes: Vec<(ShapeId, u32)>,
    /// How many of them, whichever, must get one for any to get one. At least 1, at most all. A tree says more.
    pub(crate) need: u32,
    /// How nodes are chosen among those that will do.
    pub(crate) style: Style,
    /// Groups that ask something of the topology, or several groups.
    pub(crate) tree: Option<Arc<Tree>>,
}

impl Request {
    /// The same request of somebody who would take any number of seats. Only for a pod or a group.
    pub(crate) fn for_any(mut self) -> Self {
        self.need = 1;
        if let Some(tree) = &mut self.tree
            && let [group] = &mut Arc::make_mut(tree).parts[..]
        {
            group.minimum = group.minimum.min(group.counted + 1);
        }
        self
    }

    pub(super) fn wanted(&self) -> u32 {
        self.shapes.iter().map(|&(_, count)| count).sum()
    }
}

/// Groups and composites.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tree {
    /// The root first, every parent before its children, children by name.
    pub(crate) parts: Vec<Part>,
    /// By index of the request's shapes: where they belong.
    pub(crate) kinds: Vec<Belonging>,
}

/// Where members of one kind belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Belonging {
    /// The group, as index of its part.
    pub(crate) part: usize,
    /// The slice that they are of, if ranks tell.
    pub(crate) slice: Option<u32>,
    /// Leads members that are in slices of any members.
    pub(crate) leads: bool,
}

/// A group or composite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// Its name, for explanations.
    pub(crate) name: Text,
    pub(crate) parent: Option<usize>,
    /// None if it is a group.
    pub(crate) children: Vec<usize>,
    pub(crate) is_group: bool,
    /// How many members, or children, must have their place.
    pub(crate) minimum: u32,
    /// How many members have theirs already.
    pub(crate) counted: u32,
    /// The domains that it asks for, and how much the first levels of them matter.
    pub(crate) hierarchy: Option<HierarchyId>,
    pub(crate) levels: Vec<Strength>,
    pub(crate) slices: Option<SliceRule>,
    pub(crate) spread: Option<ChildSpread>,
    /// Members, of a composite those of all its groups, that have a seat and keep it.
    pub(crate) running: Vec<RunningMember>,
    /// True if members have ranks: neighbours in rank are to be near.
    pub(crate) is_ranked: bool,
    /// Of a composite: its groups run in several domains of a level that it required, which is not among its levels any
    /// more.
    pub(crate) contradicted: Option<Scattered>,
    /// Of a group below such a composite: where its members have to go.
    pub(crate) fences: Vec<Fence>,
}

/// Domains of a level that a group of a composite runs in, to which it is bound because others run elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fence {
    pub(crate) hierarchy: HierarchyId,
    pub(crate) level: usize,
    /// Sorted.
    pub(crate) domains: Vec<u32>,
}

/// A member that has a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunningMember {
    pub(crate) node: NodeId,
    pub(crate) slice: Option<u32>,
    pub(crate) leads: bool,
}

/// Members share domains in parcels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SliceRule {
    /// Level of the part's hierarchy.
    pub(crate) level: usize,
    pub(crate) size: u32,
}

/// Children keep away from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChildSpread {
    /// Level of the part's hierarchy.
    pub(crate) level: usize,
    /// Children that may share a domain.
    pub(crate) most: u32,
}

impl Part {
    /// The narrowest level that is required.
    pub(crate) fn required(&self) -> Option<usize> {
        self.levels.iter().rposition(|strength| *strength == Strength::Required)
    }

    /// The narrowest level that is asked for in any way.
    pub(crate) fn narrowest(&self) -> Option<usize> {
        self.levels.len().checked_sub(1)
    }

    /// Members that must be placed for the group to have what it needs.
    pub(crate) fn need(&self) -> u32 {
        self.minimum.saturating_sub(self.counted)
    }
}

impl Tree {
    /// The only group, if there is just one.
    pub(crate) fn only_group(&self) -> Option<&Part> {
        match &self.parts[..] {
            [part] if part.is_group => Some(part),
            _ => None,
        }
    }

    /// Indices of the groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = usize> {
        (0..self.parts.len()).filter(|&at| self.parts[at].is_group)
    }

    /// True if so many new members of each group (by part) give every composite that must have it what it needs.
    pub(crate) fn is_met(&self, placed: &[u32]) -> bool {
        self.met(placed).first().copied().unwrap_or(false)
    }

    /// For every part, whether it has what it needs with so many new members of each group.
    pub(crate) fn met(&self, placed: &[u32]) -> Vec<bool> {
        let mut met = vec![false; self.parts.len()];
        for (at, part) in self.parts.iter().enumerate().rev() {
            let have = if part.is_group {
                part.counted + placed[at]
            } else {
                part.children.iter().filter(|&&child| met[child]).count() as u32
            };
            met[at] = have >= part.minimum;
        }
        met
    }
}
