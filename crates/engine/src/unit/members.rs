//! The members of a unit that want a seat, by kind, and how the groups of the unit stand.

use crate::agenda::sleepers::Needs;
use crate::decision::{Standing, UnitKey};
use crate::refusal::{Refusal, Scattered};
use crate::solve::{Belonging, Request, Style, Tree};
use crate::state::nodes::NodeId;
use crate::state::pods::PodRow;
use crate::state::shape::ShapeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_model::ObjectKey;

/// Members that want a seat, by kind.
#[derive(Debug)]
pub(crate) struct Members {
    by_kind: Vec<(ShapeId, Vec<ObjectKey>)>,
    /// Members that cannot be tried: those of groups that lack some, and those whose volume claims keep them.
    unready: Vec<ObjectKey>,
    /// Those among the members whom gates hold back: there must be room for them, but they get no seat.
    gated: BTreeSet<ObjectKey>,
    need: u32,
    style: Style,
    tree: Option<Arc<Tree>>,
    groups: Vec<GroupProgress>,
}

/// A group or composite of the unit.
#[derive(Debug, Clone)]
pub(crate) struct GroupProgress {
    pub(crate) unit: UnitKey,
    pub(crate) minimum: u32,
    pub(crate) counted: u32,
    /// Gated members that have room where the others were placed.
    pub(crate) gated: u32,
    /// Why it cannot be tried, whatever becomes of the rest.
    pub(crate) waits: Option<Refusal>,
    /// Members that run where they should not.
    pub(crate) scattered: Option<Scattered>,
}

impl Members {
    /// Members that are not part of any tree.
    pub(crate) fn flat(
        members: &[(&ObjectKey, &PodRow)],
        need: u32,
        style: Style,
        groups: Vec<GroupProgress>,
    ) -> Self {
        let mut this = Self::empty(need, style, groups);
        let mut sorter = Sorter::default();
        for (key, row) in members {
            this.add(&mut sorter, key, row, Belonging { part: 0, slice: None, leads: false });
        }
        this
    }

    /// Members of a tree, group by group; each with where it belongs.
    pub(crate) fn of_tree(
        members: &[(&ObjectKey, &PodRow, Belonging)],
        unready: Vec<ObjectKey>,
        mut tree: Tree,
        groups: Vec<GroupProgress>,
    ) -> Self {
        let mut this = Self { unready, ..Self::empty(1, Style::Pack, groups) };
        let mut sorter = Sorter::default();
        let mut in_order = members.to_vec();
        in_order
            .sort_by_key(|(_, row, belonging)| (belonging.part, !row.leader, row.rank.unwrap_or(u32::MAX)));
        for (key, row, belonging) in in_order {
            this.add(&mut sorter, key, row, belonging);
        }
        tree.kinds = sorter.kinds;
        this.need = tree.only_group().map_or(1, |group| group.need().max(1));
        this.tree = Some(Arc::new(tree));
        this
    }

    fn empty(need: u32, style: Style, groups: Vec<GroupProgress>) -> Self {
        let (by_kind, unready, gated) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { by_kind, unready, gated, need, style, tree: None, groups }
    }

    /// Kinds in the order of their first member, because numbers of shapes depend on history.
    fn add(&mut self, sorter: &mut Sorter, key: &ObjectKey, row: &PodRow, belonging: Belonging) {
        let at = *sorter.index.entry((belonging, row.shape)).or_insert_with(|| {
            self.by_kind.push((row.shape, Vec::new()));
            sorter.kinds.push(belonging);
            self.by_kind.len() - 1
        });
        self.by_kind[at].1.push(key.clone());
    }

    /// The same with members that cannot be tried.
    pub(crate) fn beside(mut self, blocked: Vec<ObjectKey>) -> Self {
        self.unready = blocked;
        self
    }

    /// The same with some of them held back by gates.
    pub(crate) fn with_gated(mut self, gated: BTreeSet<ObjectKey>) -> Self {
        self.gated = gated;
        self
    }

    /// Members that must have room although gates hold them back.
    pub(crate) fn gated_count(&self) -> u32 {
        self.gated.len() as u32
    }

    /// How many of them must get a seat; of a composite, one at least.
    pub(crate) fn need(&self) -> u32 {
        self.need
    }

    /// What is to be solved.
    pub(crate) fn request(&self) -> Request {
        let shapes = self.by_kind.iter().map(|(shape, members)| (*shape, members.len() as u32)).collect();
        Request { shapes, need: self.need, style: self.style, tree: self.tree.clone() }
    }

    /// The shape at an index of the request.
    pub(crate) fn shape(&self, index: usize) -> ShapeId {
        self.by_kind[index].0
    }

    /// All shapes.
    pub(crate) fn shapes(&self) -> Vec<ShapeId> {
        self.by_kind.iter().map(|(shape, _)| *shape).collect()
    }

    /// True if it matters to which domain a node belongs.
    pub(crate) fn reads_domains(&self) -> bool {
        self.tree.is_some()
    }

    /// True if a group of the unit has some of the members that it needs, but not all.
    pub(crate) fn are_incomplete(&self) -> bool {
        self.groups.iter().any(|group| group.counted > 0 && group.counted < group.minimum)
    }

    /// What must be there at least for the unit to be placed.
    pub(crate) fn needs(&self) -> Needs {
        let kinds: Vec<(ShapeId, u32)> =
            self.by_kind.iter().map(|(shape, members)| (*shape, members.len() as u32)).collect();
        let group = self.tree.as_deref().map(Tree::only_group);
        match (group, &kinds[..]) {
            (None, _) => Needs::Room(kinds, self.need),
            (Some(Some(group)), [(shape, _)]) => match (group.hierarchy, group.required()) {
                (Some(id), Some(level)) => Needs::RoomInADomain(*shape, self.need, id, level),
                _ => Needs::Room(kinds, self.need),
            },
            (Some(Some(_)), _) => Needs::Room(kinds, self.need),
            (Some(None), _) => Needs::Anything,
        }
    }

    /// Whom these seats are for, as [`Members::draw`] takes them out.
    pub(crate) fn seated<'a>(
        &'a self,
        seats: &'a [(usize, NodeId, u32)],
    ) -> impl Iterator<Item = (&'a ObjectKey, NodeId)> {
        let mut drawn = vec![0; self.by_kind.len()];
        seats.iter().flat_map(move |&(index, node, count)| {
            let next = self.by_kind[index].1.iter().skip(drawn[index]).take(count as usize);
            drawn[index] += count as usize;
            next.filter(|pod| !self.gated.contains(*pod)).map(move |pod| (pod, node))
        })
    }

    /// Takes out the next members of a kind, by rank and name. Those whom gates hold back are not told.
    pub(crate) fn draw(&mut self, index: usize, count: u32) -> Vec<ObjectKey> {
        let part = self.tree.as_ref().map_or(0, |tree| tree.kinds[index].part);
        let drawn = self.by_kind[index].1.drain(..count as usize);
        let drawn: Vec<ObjectKey> = drawn.filter(|pod| !self.gated.contains(pod)).collect();
        if let Some(group) = self.groups.get_mut(part) {
            group.counted += drawn.len() as u32;
            group.gated += count - drawn.len() as u32;
        }
        drawn
    }

    /// How the groups of the unit stand with the members that were taken out.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        standings(self.tree.as_deref(), &self.groups)
    }

    /// Everybody who is still here, by name.
    pub(crate) fn into_names(self) -> Vec<ObjectKey> {
        let left = self.by_kind.into_iter().flat_map(|(_, members)| members);
        let mut names: Vec<ObjectKey> = left.chain(self.unready).collect();
        names.retain(|pod| !self.gated.contains(pod));
        names.sort_unstable();
        names
    }
}

/// How groups and composites stand; without a tree there is just a group.
pub(crate) fn standings(tree: Option<&Tree>, groups: &[GroupProgress]) -> Vec<Standing> {
    let new = |tree: &Tree| -> Vec<u32> {
        let pairs = tree.parts.iter().zip(groups);
        pairs.map(|(part, group)| (group.counted + group.gated).saturating_sub(part.counted)).collect()
    };
    let met = tree.map(|tree| tree.met(&new(tree))).unwrap_or_default();
    let placed = |at: usize, group: &GroupProgress| match tree.map(|tree| &tree.parts[at]) {
        Some(part) if !part.is_group => part.children.iter().filter(|&&child| met[child]).count() as u32,
        _ => group.counted,
    };
    let standing = |(at, group): (usize, &GroupProgress)| Standing {
        group: group.unit.clone(),
        minimum: group.minimum,
        placed: placed(at, group),
        waits: group.waits.clone(),
        scattered: group.scattered.clone(),
    };
    groups.iter().enumerate().map(standing).collect()
}

/// Numbers of kinds while members are sorted into them.
#[derive(Default)]
struct Sorter {
    index: BTreeMap<(Belonging, ShapeId), usize>,
    kinds: Vec<Belonging>,
}
