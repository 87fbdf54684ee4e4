//! What groups and composites ask of a placement, said once more and independently: which are valid, and what makes one
//! better than another. On plain objects, by definition, with none of the engine's tables.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::{Group, Node, ObjectKey, Phase, Pod, Strength, Text, WhenGated};

/// Everything that is there. Pods that wait have no node.
#[derive(Debug, Clone, Copy)]
pub struct Cluster<'a> {
    /// Nodes.
    pub nodes: &'a [Node],
    /// Groups.
    pub groups: &'a [Group],
    /// Composites.
    pub composites: &'a [Group],
    /// Pods as they were before the placement.
    pub pods: &'a [Pod],
}

/// How good a placement is; the better one is greater. The choice of nodes within domains is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worth {
    /// Members that are placed.
    pub placed: u32,
    /// Members that run where new ones go, where those that run are scattered.
    pub pull: u32,
    /// By level, widest first: groups and composites whose preferred level is met.
    pub met: Vec<u32>,
    /// Fewer domains of the narrowest levels.
    pub domains: Reverse<u32>,
    /// Less room in them.
    pub room: Reverse<u64>,
    /// How full they are, in thousandths.
    pub full: u64,
}

/// The values of some labels of a node, if it has them all.
type Domain<'a> = Vec<&'a str>;

/// A placement beside everything that is there: pods and the names of their nodes.
pub struct Judge<'a> {
    cluster: Cluster<'a>,
    placed: &'a [(&'a Pod, &'a Node)],
}

impl<'a> Judge<'a> {
    /// A placement of pods that wait.
    pub fn new(cluster: Cluster<'a>, placed: &'a [(&'a Pod, &'a Node)]) -> Self {
        Self { cluster, placed }
    }

    /// What is wrong, as far as groups and composites are concerned.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for group in self.active(self.cluster.groups, true) {
            if !self.is_met(group, true) {
                wrong.push(format!("group {} has fewer members than it needs", group.key));
            }
            wrong.extend(self.straddles(group, true));
            wrong.extend(self.slices(group));
            wrong.extend(self.waits_for_gated(group));
            wrong.extend(self.strands_gated(group));
        }
        for composite in self.active(self.cluster.composites, false) {
            if !self.is_met(composite, false) {
                wrong.push(format!("composite {} has fewer children than it needs", composite.key));
            }
            wrong.extend(self.straddles(composite, false));
            wrong.extend(self.spread(composite));
        }
        wrong
    }

    /// Members that gates hold back, of a group.
    fn gated(&self, group: &Group) -> Vec<&'a Pod> {
        let is_gated = |pod: &&Pod| pod.group.as_ref() == Some(&group.key) && !pod.gates.is_empty();
        let waits = |pod: &&Pod| pod.node.is_none() && !pod.phase.is_terminal() && !pod.terminating;
        self.cluster.pods.iter().filter(is_gated).filter(waits).collect()
    }

    /// Whether a group starts although gates hold back a member, which it did not ask for. One that has begun may go on.
    fn waits_for_gated(&self, group: &Group) -> Option<String> {
        let have = self.succeeded(group) + self.kin(group, true).len();
        let has_begun = have > 0 && have < group.policy.minimum() as usize;
        let is_held = group.when_gated == WhenGated::Hold && !has_begun && group.parent.is_none();
        (is_held && !self.gated(group).is_empty())
            .then(|| format!("{} starts without gated members", group.key))
    }

    /// Whether gated members have less room in the domain that their group goes to than they ask for.
    fn strands_gated(&self, group: &Group) -> Option<String> {
        let levels = &group.topology.levels;
        let required = levels.iter().rposition(|level| level.strength == Strength::Required)?;
        let keys: Vec<Text> = levels[..=required].iter().map(|level| level.key.clone()).collect();
        let gated = self.gated(group);
        let here = self.new_members(group, true).first().and_then(|(_, node)| domain(node, &keys))?;
        if gated.is_empty() || !self.kin(group, true).is_empty() || group.when_gated == WhenGated::Hold {
            return None;
        }
        let nodes = self.cluster.nodes.iter().filter(|node| domain(node, &keys).as_ref() == Some(&here));
        let nodes: Vec<&Node> = nodes.collect();
        let is_here = |name: &Text| nodes.iter().any(|node| node.name == *name);
        let running = self.cluster.pods.iter().filter(|pod| !pod.phase.is_terminal());
        let running = running.filter(|pod| pod.node.as_ref().is_some_and(is_here));
        let new = self.placed.iter().filter(|(_, node)| is_here(&node.name)).map(|(pod, _)| *pod);
        let there: Vec<&Pod> = running.chain(new).chain(gated.iter().copied()).collect();
        let mut asked = gated.iter().flat_map(|pod| pod.requests.iter()).map(|(resource, _)| resource.name());
        let is_short = |name: &str| {
            let used: i128 = there.iter().map(|pod| i128::from(pod.requests.get(name))).sum();
            used > nodes.iter().map(|node| i128::from(node.allocatable.get(name))).sum()
        };
        asked
            .find(|name| is_short(name))
            .map(|name| format!("gated members of {} have too little {name} where it goes", group.key))
    }

    /// How good it is.
    pub fn worth(&self) -> Worth {
        let (mut pull, mut met, mut domains, mut room, mut full) = (0, Vec::new(), 0, 0, 0);
        for (objects, is_group) in [(self.cluster.groups, true), (self.cluster.composites, false)] {
            for object in self.active(objects, is_group) {
                pull += self.pull(object, is_group);
                for level in self.met_levels(object, is_group) {
                    if met.len() <= level {
                        met.resize(level + 1, 0);
                    }
                    met[level] += 1;
                }
            }
        }
        for group in self.active(self.cluster.groups, true).filter(|group| !group.topology.levels.is_empty())
        {
            let (cells, size, share) = self.cells(group);
            domains += cells;
            room += size;
            full += share;
        }
        while met.last() == Some(&0) {
            met.pop();
        }
        let placed = self.placed.len() as u32;
        Worth { placed, pull, met, domains: Reverse(domains), room: Reverse(room), full }
    }

    /// Groups or composites that get new members.
    fn active(&self, objects: &'a [Group], is_group: bool) -> impl Iterator<Item = &'a Group> + '_ {
        objects.iter().filter(move |object| !self.new_members(object, is_group).is_empty())
    }

    /// Keys of the groups below a composite, or the group itself.
    fn groups_below(&self, object: &Group, is_group: bool) -> Vec<&'a ObjectKey> {
        if is_group {
            return self
                .cluster
                .groups
                .iter()
                .filter(|group| group.key == object.key)
                .map(|g| &g.key)
                .collect();
        }
        let groups = self.cluster.groups.iter().filter(|group| group.parent.as_ref() == Some(&object.key));
        let composites = self.cluster.composites.iter().filter(|c| c.parent.as_ref() == Some(&object.key));
        let below = composites.flat_map(|composite| self.groups_below(composite, false));
        groups.map(|group| &group.key).chain(below).collect()
    }

    fn new_members(&self, object: &Group, is_group: bool) -> Vec<(&'a Pod, &'a Node)> {
        let groups = self.groups_below(object, is_group);
        let of_these = |pod: &Pod| pod.group.as_ref().is_some_and(|group| groups.contains(&group));
        self.placed.iter().copied().filter(|(pod, _)| of_these(pod)).collect()
    }

    /// Members that run and stay.
    fn kin(&self, object: &Group, is_group: bool) -> Vec<(&'a Pod, Option<&'a Node>)> {
        let groups = self.groups_below(object, is_group);
        let of_these = |pod: &&Pod| pod.group.as_ref().is_some_and(|group| groups.contains(&group));
        let stays = |pod: &&Pod| pod.node.is_some() && !pod.phase.is_terminal() && !pod.terminating;
        let node = |pod: &Pod| self.cluster.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref());
        self.cluster.pods.iter().filter(of_these).filter(stays).map(|pod| (pod, node(pod))).collect()
    }

    fn succeeded(&self, group: &Group) -> usize {
        let of_group = |pod: &&Pod| pod.group.as_ref() == Some(&group.key) && pod.phase == Phase::Succeeded;
        self.cluster.pods.iter().filter(of_group).count()
    }

    fn is_met(&self, object: &Group, is_group: bool) -> bool {
        let have = if is_group {
            self.succeeded(object) + self.kin(object, true).len() + self.new_members(object, true).len()
        } else {
            let child = |child: &&Group| child.parent.as_ref() == Some(&object.key);
            let groups = self.cluster.groups.iter().filter(child).filter(|group| self.is_met(group, true));
            let composites = self.cluster.composites.iter().filter(child).filter(|c| self.is_met(c, false));
            groups.count() + composites.count()
        };
        have >= object.policy.minimum() as usize
    }

    /// Domains in which members run.
    fn homes(&self, object: &Group, is_group: bool, keys: &[Text]) -> BTreeMap<Domain<'a>, u32> {
        let mut homes = BTreeMap::new();
        for (_, node) in self.kin(object, is_group) {
            if let Some(domain) = node.and_then(|node| domain(node, keys)) {
                *homes.entry(domain).or_default() += 1;
            }
        }
        homes
    }

    /// Whether new members are not in one domain of the required levels, or not where members run.
    fn straddles(&self, object: &Group, is_group: bool) -> Option<String> {
        let levels = &object.topology.levels;
        let new = self.new_members(object, is_group);
        let required = |(_, level): &(usize, &tutti_model::Level)| level.strength == Strength::Required;
        for (at, _) in levels.iter().enumerate().rev().filter(required) {
            let keys: Vec<Text> = levels[..=at].iter().map(|level| level.key.clone()).collect();
            let homes = self.homes(object, is_group, &keys);
            if is_group || homes.len() < 2 {
                return self.not_one_of(&keys, &new, &homes).map(|what| format!("{}: {what}", object.key));
            }
            // Groups of a composite run in several domains: each stays where it is, and none is added.
            for key in self.groups_below(object, false) {
                let group = self.cluster.groups.iter().find(|group| group.key == *key)?;
                let own = self.homes(group, true, &keys);
                let is_away = |(_, node): &(&Pod, &Node)| {
                    domain(node, &keys).is_none_or(|domain| !own.contains_key(&domain))
                };
                if self.new_members(group, true).iter().any(is_away) {
                    return Some(format!(
                        "{key} is not where it runs, and {} runs in several domains",
                        object.key
                    ));
                }
            }
        }
        None
    }

    fn not_one_of(
        &self,
        keys: &[Text],
        new: &[(&Pod, &'a Node)],
        homes: &BTreeMap<Domain<'a>, u32>,
    ) -> Option<String> {
        let domains: BTreeSet<Option<Domain<'_>>> = new.iter().map(|(_, node)| domain(node, keys)).collect();
        match domains.into_iter().collect::<Vec<_>>().as_slice() {
            [] => None,
            [Some(one)] if homes.is_empty() || homes.contains_key(one) => None,
            [Some(_)] => Some(format!("new members are not in the domain of {keys:?} where members run")),
            _ => Some(format!("new members are not in one domain of {keys:?}")),
        }
    }

    /// Whether groups of a composite run in several domains of the narrowest level that it requires.
    fn is_scattered(&self, composite: &Group) -> bool {
        let levels = &composite.topology.levels;
        let required = levels.iter().rposition(|level| level.strength == Strength::Required);
        required.is_some_and(|required| {
            let keys: Vec<Text> = levels[..=required].iter().map(|level| level.key.clone()).collect();
            self.homes(composite, false, &keys).len() > 1
        })
    }

    /// Children of a composite with all that is said about them.
    fn children(&self, composite: &Group) -> Vec<(&'a Group, bool)> {
        let child = |child: &&Group| child.parent.as_ref() == Some(&composite.key);
        let groups = self.cluster.groups.iter().filter(child).map(|group| (group, true));
        groups.chain(self.cluster.composites.iter().filter(child).map(|c| (c, false))).collect()
    }

    fn spread(&self, composite: &Group) -> Vec<String> {
        let Some(spread) = &composite.topology.spread else { return Vec::new() };
        let keys = up_to(composite, &spread.key);
        let mut wrong = Vec::new();
        for (child, is_group) in self.children(composite) {
            let new = self.new_members(child, is_group);
            let homes = self.homes(child, is_group, &keys);
            wrong.extend(self.not_one_of(&keys, &new, &homes));
            let Some(here) = new.first().and_then(|(_, node)| domain(node, &keys)) else { continue };
            let is_here = |&&(other, is_group): &&(&Group, bool)| {
                let new = self.new_members(other, is_group);
                self.homes(other, is_group, &keys).contains_key(&here)
                    || new.iter().any(|(_, node)| domain(node, &keys).as_ref() == Some(&here))
            };
            if self.children(composite).iter().filter(is_here).count() > spread.most.get() as usize {
                wrong.push(format!("too many children of {} are in {here:?}", composite.key));
            }
        }
        wrong
    }

    /// True if ranks tell which slice a member is of.
    fn goes_by_rank(&self, group: &Group) -> bool {
        let is_live = |pod: &&Pod| !pod.phase.is_terminal() && !pod.terminating;
        let members = self.cluster.pods.iter().filter(|pod| pod.group.as_ref() == Some(&group.key));
        members.filter(is_live).all(|pod| pod.leader || pod.rank.is_some())
    }

    fn slices(&self, group: &Group) -> Vec<String> {
        let Some(slices) = &group.topology.slices else { return Vec::new() };
        let (keys, size) = (up_to(group, &slices.key), slices.size.get());
        let new = self.new_members(group, true);
        if self.goes_by_rank(group) {
            let slice_of = |pod: &Pod| if pod.leader { 0 } else { pod.rank.unwrap_or(0) / size };
            let numbers: BTreeSet<u32> = new.iter().map(|(pod, _)| slice_of(pod)).collect();
            let wrong = numbers.into_iter().filter_map(|number| {
                let of_slice = |&&(pod, _): &&(&Pod, &Node)| slice_of(pod) == number;
                let new: Vec<(&Pod, &Node)> = new.iter().filter(of_slice).copied().collect();
                let mut homes = BTreeMap::new();
                for (pod, node) in self.kin(group, true) {
                    if let Some(domain) = node.and_then(|node| domain(node, &keys))
                        && slice_of(pod) == number
                    {
                        *homes.entry(domain).or_default() += 1;
                    }
                }
                self.not_one_of(&keys, &new, &homes).map(|what| format!("slice {number}: {what}"))
            });
            return wrong.collect();
        }
        let mut wrong = Vec::new();
        let mut before: BTreeMap<Domain<'_>, u32> = BTreeMap::new();
        for (pod, node) in self.kin(group, true) {
            if let Some(domain) = node.and_then(|node| domain(node, &keys))
                && !pod.leader
            {
                *before.entry(domain).or_default() += 1;
            }
        }
        let mut after = before.clone();
        for (pod, node) in &new {
            match domain(node, &keys) {
                None => wrong.push(format!("{} is on a node without {keys:?}", pod.key)),
                Some(domain) if !pod.leader => *after.entry(domain).or_default() += 1,
                Some(_) => {}
            }
        }
        let begun =
            |counts: &BTreeMap<_, u32>| counts.values().map(|count| count.div_ceil(size)).sum::<u32>();
        if begun(&after) > begun(&before).max(after.values().sum::<u32>().div_ceil(size)) {
            wrong.push(format!("{} is cut into more slices than it needs", group.key));
        }
        let leaders = new.iter().filter(|(pod, _)| pod.leader);
        let with: BTreeSet<Option<Domain<'_>>> = leaders.map(|(_, node)| domain(node, &keys)).collect();
        let is_alone = |with: &Option<Domain<'_>>| with.as_ref().is_none_or(|with| !after.contains_key(with));
        if with.len() > 1 || with.iter().any(is_alone) {
            wrong.push(format!("the leader of {} is not with a slice", group.key));
        }
        wrong
    }

    /// Members that run where new ones go, if those that run are in several domains.
    fn pull(&self, object: &Group, is_group: bool) -> u32 {
        let new = self.new_members(object, is_group);
        let at = |keys: &[Text], homes: &BTreeMap<Domain<'_>, u32>, new: &[(&Pod, &Node)]| {
            let here = new.first().and_then(|(_, node)| domain(node, keys));
            here.and_then(|here| homes.get(&here)).copied().filter(|_| homes.len() > 1).unwrap_or(0)
        };
        let levels = &object.topology.levels;
        let required = levels.iter().rposition(|level| level.strength == Strength::Required);
        let own = required.filter(|_| is_group || !self.is_scattered(object)).map_or(0, |required| {
            let keys: Vec<Text> = levels[..=required].iter().map(|level| level.key.clone()).collect();
            at(&keys, &self.homes(object, is_group, &keys), &new)
        });
        let spread = object.topology.spread.as_ref().filter(|_| !is_group);
        let of_children = spread.map_or(0, |spread| {
            let keys = up_to(object, &spread.key);
            let children = self.children(object).into_iter();
            let pull = |(child, is_group): (&Group, bool)| {
                at(&keys, &self.homes(child, is_group, &keys), &self.new_members(child, is_group))
            };
            children.map(pull).sum()
        });
        own + of_children
    }

    /// Preferred levels of which all members, new and old, share a domain.
    fn met_levels(&self, object: &Group, is_group: bool) -> Vec<usize> {
        let levels = &object.topology.levels;
        let is_met = |&level: &usize| {
            let keys: Vec<Text> = levels[..=level].iter().map(|level| level.key.clone()).collect();
            let new = self.new_members(object, is_group).into_iter().map(|(_, node)| domain(node, &keys));
            let old = self.kin(object, is_group).into_iter();
            let old = old.map(|(_, node)| node.and_then(|node| domain(node, &keys)));
            let all: BTreeSet<Option<Domain<'_>>> = new.chain(old).collect();
            levels[level].strength == Strength::Preferred && all.len() == 1 && !all.contains(&None)
        };
        (0..levels.len()).filter(is_met).collect()
    }

    /// How many cells a group is in, and how much room there is in those where new members go, and how full they are.
    fn cells(&self, group: &Group) -> (u32, u64, u64) {
        let keys: Vec<Text> = group.topology.levels.iter().map(|level| level.key.clone()).collect();
        let new: BTreeSet<Domain<'_>> =
            self.new_members(group, true).iter().map(|(_, node)| cell(node, &keys)).collect();
        let old = self.kin(group, true).into_iter();
        let old = old.map(|(_, node)| node.map(|node| cell(node, &keys)).unwrap_or_default());
        let all: BTreeSet<Domain<'_>> = new.iter().cloned().chain(old).collect();
        let is_there = |node: &&Node| new.contains(&cell(node, &keys));
        let there: Vec<&Node> = self.cluster.nodes.iter().filter(is_there).collect();
        let room = there.iter().map(|node| self.room(group, node)).sum();
        (all.len() as u32, room, self.share(group, &there))
    }

    /// The part of some nodes that is used, in thousandths, on average over what members that wait ask for.
    fn share(&self, group: &Group, nodes: &[&Node]) -> u64 {
        let waits = |pod: &&Pod| pod.group.as_ref() == Some(&group.key) && pod.node.is_none();
        let asks = self.cluster.pods.iter().filter(waits).flat_map(|pod| pod.requests.iter());
        let asked: BTreeSet<&str> =
            asks.filter(|(_, amount)| *amount > 0).map(|(resource, _)| resource.name()).collect();
        let is_here = |pod: &&Pod| {
            !pod.phase.is_terminal() && nodes.iter().any(|node| Some(&node.name) == pod.node.as_ref())
        };
        let share = |name: &&str| {
            let there: i64 = nodes.iter().map(|node| node.allocatable.get(name)).sum();
            let used: i64 = self.cluster.pods.iter().filter(is_here).map(|pod| pod.requests.get(name)).sum();
            (there > 0).then(|| (used.min(there) * 1000 / there) as u64)
        };
        let shares: Vec<u64> = asked.iter().filter(|name| **name != "pods").filter_map(share).collect();
        if shares.is_empty() { 0 } else { shares.iter().sum::<u64>() / shares.len() as u64 }
    }

    /// Copies of a group's waiting members that a node takes, each kind of member by itself.
    fn room(&self, group: &Group, node: &Node) -> u64 {
        let waits = |pod: &&Pod| pod.group.as_ref() == Some(&group.key) && pod.node.is_none();
        let mut kinds: Vec<&Pod> = Vec::new();
        for pod in self.cluster.pods.iter().filter(waits) {
            let alike = |other: &&Pod| {
                other.requests == pod.requests
                    && other.affinity == pod.affinity
                    && other.tolerations == pod.tolerations
                    && other.features == pod.features
            };
            if !kinds.iter().any(alike) {
                kinds.push(pod);
            }
        }
        kinds.into_iter().map(|pod| copies(self.cluster.pods, node, pod)).sum()
    }
}

/// Copies of a pod that a node takes beside what runs there.
pub fn copies(pods: &[Pod], node: &Node, pod: &Pod) -> u64 {
    if super::forbidden(pod, node).is_some() {
        return 0;
    }
    let here = |other: &&Pod| other.node.as_ref() == Some(&node.name) && !other.phase.is_terminal();
    let copies = |(resource, amount): (&tutti_model::Resource, i64)| {
        let used: i64 = pods.iter().filter(here).map(|other| other.requests.get(resource.name())).sum();
        ((node.allocatable.get(resource.name()) - used).max(0) / amount) as u64
    };
    pod.requests.iter().filter(|&(_, amount)| amount > 0).map(copies).min().unwrap_or(u64::from(u32::MAX))
}

/// Keys from the widest level to this one.
fn up_to(object: &Group, key: &Text) -> Vec<Text> {
    let mut keys = object.topology.keys();
    let at = keys.iter().position(|other| other == key);
    keys.truncate(at.map_or(0, |at| at + 1));
    keys
}

fn domain<'n>(node: &'n Node, keys: &[Text]) -> Option<Domain<'n>> {
    keys.iter().map(|key| node.labels.get(key)).collect()
}

/// The narrowest domain that a node is in: the values that it has before the first that it lacks.
fn cell<'n>(node: &'n Node, keys: &[Text]) -> Domain<'n> {
    keys.iter().map_while(|key| node.labels.get(key)).collect()
}
