//! The tree of domains: nodes, room and who sits where.

use super::levels::Warning;
use super::shape::PodShape;
use super::source::Cluster;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::Survey;
use tutti_model::{Node, ObjectKey, Pod, Text};

/// All of a node.
pub(super) const WHOLE: u32 = 1000;

/// Everything that is shown.
#[derive(Debug, Serialize)]
pub(super) struct Tree {
    /// Label keys, wide to narrow.
    pub(super) levels: Vec<String>,
    /// The kinds of pods that room is counted for.
    pub(super) shapes: Vec<String>,
    /// All nodes.
    pub(super) cluster: Domain,
    /// Groups with pods, by name.
    pub(super) groups: Vec<GroupRow>,
    /// What is wrong with labels.
    pub(super) warnings: Vec<Warning>,
}

/// Nodes that share some values.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Domain {
    /// The value of its own level; of the whole cluster, nothing.
    pub(super) value: String,
    /// How many nodes are here and below.
    pub(super) nodes_count: usize,
    /// Pods that have a seat here.
    pub(super) pods_count: usize,
    /// How many pods of each shape it takes now.
    pub(super) room: Vec<u64>,
    /// How many it would take if nobody was there.
    pub(super) room_empty: Vec<u64>,
    /// Domains of the next level.
    pub(super) domains: Vec<Domain>,
    /// Nodes that are in no domain of the next level.
    pub(super) nodes: Vec<NodeRow>,
}

/// A node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeRow {
    pub(super) name: String,
    /// How many pods of each shape it takes now.
    pub(super) room: Vec<u64>,
    /// How many it would take if nobody was there.
    pub(super) room_empty: Vec<u64>,
    /// Who sits there: groups by name, then pods of none.
    pub(super) seats: Vec<Share>,
}

/// What the members of a group have of a node.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Share {
    /// Position in the list of groups; nothing for pods without one.
    #[serde(skip)]
    pub(super) group: Option<usize>,
    /// Its name.
    #[serde(rename = "group")]
    pub(super) name: Option<String>,
    pub(super) pods: usize,
    /// The part of the node that they take, of whatever they take most, in thousandths.
    pub(super) thousandths: u32,
}

/// A group, and how far it is scattered.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct GroupRow {
    pub(super) name: String,
    /// Its pods that have not ended.
    pub(super) pods: usize,
    /// Those of them that have a seat.
    pub(super) seated: usize,
    /// Domains that these are in, by level.
    pub(super) domains: Vec<Vec<String>>,
}

impl Tree {
    /// Draws up the tree of these levels.
    pub(super) fn new(
        cluster: &Cluster,
        levels: &[Text],
        shapes: &[PodShape],
        warnings: Vec<Warning>,
    ) -> Self {
        let kinds: Vec<Pod> = shapes.iter().map(|shape| shape.pod.clone()).collect();
        let now = cluster.engine().survey(levels, &kinds);
        let empty = cluster.empty_engine().survey(levels, &kinds);
        let mut names: BTreeSet<&ObjectKey> = BTreeSet::new();
        names.extend(live(cluster).filter_map(|pod| pod.group.as_ref()));
        let index: BTreeMap<&ObjectKey, usize> = names.into_iter().zip(0..).collect();
        let mut groups: Vec<GroupRow> = index
            .keys()
            .map(|key| GroupRow {
                name: key.to_string(),
                pods: 0,
                seated: 0,
                domains: vec![Vec::new(); levels.len()],
            })
            .collect();
        let mut rows = node_rows(cluster, &index, &now, &empty);
        for pod in live(cluster) {
            if let Some(&group) = pod.group.as_ref().and_then(|key| index.get(key)) {
                groups[group].pods += 1;
                groups[group].seated += usize::from(pod.node.is_some());
            }
        }
        let root_room = |survey: &Survey| sums(survey.by_node.values(), kinds.len());
        let mut root = Domain { room: root_room(&now), room_empty: root_room(&empty), ..Domain::default() };
        for (domain, of_empty) in now.domains.iter().zip(&empty.domains) {
            note_groups(domain, &rows, &mut groups);
            let Some((value, wider)) = domain.path.split_last() else { continue };
            let here = Domain {
                value: value.to_string(),
                room: domain.room.clone(),
                room_empty: of_empty.room.clone(),
                ..Domain::default()
            };
            root.within(wider).domains.push(here);
        }
        // The narrowest domain of a node comes last.
        let mut home: BTreeMap<&Text, &[Text]> = BTreeMap::new();
        for domain in &now.domains {
            home.extend(domain.nodes.iter().map(|node| (node, domain.path.as_slice())));
        }
        for node in &cluster.nodes {
            if let Some(row) = rows.remove(&node.name) {
                root.within(home.get(&node.name).copied().unwrap_or_default()).nodes.push(row);
            }
        }
        root.finish();
        let shapes = shapes.iter().map(|shape| shape.words.clone()).collect();
        let levels = levels.iter().map(ToString::to_string).collect();
        Self { levels, shapes, cluster: root, groups, warnings }
    }
}

impl Domain {
    /// The domain at a path below this one, whose domains were added before.
    fn within(&mut self, path: &[Text]) -> &mut Self {
        let Some((value, rest)) = path.split_first() else { return self };
        let at = match self.domains.iter().rposition(|domain| *domain.value == **value) {
            Some(at) => at,
            None => {
                self.domains.push(Self { value: value.to_string(), ..Self::default() });
                self.domains.len() - 1
            }
        };
        self.domains[at].within(rest)
    }

    /// Counts what is below, and sorts by name as people do.
    fn finish(&mut self) {
        self.nodes_count = self.nodes.len();
        self.pods_count = self.nodes.iter().flat_map(|node| &node.seats).map(|share| share.pods).sum();
        for domain in &mut self.domains {
            domain.finish();
            self.nodes_count += domain.nodes_count;
            self.pods_count += domain.pods_count;
        }
        self.domains.sort_by(|a, b| natural(&a.value, &b.value));
        self.nodes.sort_by(|a, b| natural(&a.name, &b.name));
    }
}

/// Pods that have not ended.
fn live(cluster: &Cluster) -> impl Iterator<Item = &Pod> {
    cluster.pods.iter().filter(|pod| !pod.phase.is_terminal())
}

fn node_rows(
    cluster: &Cluster,
    groups: &BTreeMap<&ObjectKey, usize>,
    now: &Survey,
    empty: &Survey,
) -> BTreeMap<Text, NodeRow> {
    let mut seated: BTreeMap<&Text, Vec<&Pod>> = BTreeMap::new();
    for pod in live(cluster) {
        if let Some(node) = &pod.node {
            seated.entry(node).or_default().push(pod);
        }
    }
    let row = |node: &Node| {
        let pods = seated.get(&node.name).map_or(&[][..], Vec::as_slice);
        let room = |survey: &Survey| survey.by_node.get(&node.name).cloned().unwrap_or_default();
        let row = NodeRow {
            name: node.name.to_string(),
            room: room(now),
            room_empty: room(empty),
            seats: shares(node, pods, groups),
        };
        (node.name.clone(), row)
    };
    cluster.nodes.iter().map(row).collect()
}

fn shares(node: &Node, pods: &[&Pod], groups: &BTreeMap<&ObjectKey, usize>) -> Vec<Share> {
    let mut by_group: BTreeMap<(bool, Option<&ObjectKey>), (usize, u64)> = BTreeMap::new();
    for pod in pods {
        let group = pod.group.as_ref();
        let (count, taken) = by_group.entry((group.is_none(), group)).or_default();
        *count += 1;
        *taken += u64::from(dominant_share(node, pod));
    }
    let share = |((_, group), (pods, taken)): ((bool, Option<&ObjectKey>), (usize, u64))| Share {
        group: group.and_then(|key| groups.get(key)).copied(),
        name: group.map(ToString::to_string),
        pods,
        thousandths: u32::try_from(taken).unwrap_or(u32::MAX),
    };
    by_group.into_iter().map(share).collect()
}

/// The largest part of anything of a node that a pod takes, in thousandths.
fn dominant_share(node: &Node, pod: &Pod) -> u32 {
    let part = |(resource, amount): (&tutti_model::Resource, i64)| {
        let all = i128::from(node.allocatable.get(resource.name()).max(1));
        let part = i128::from(amount.max(0)) * i128::from(WHOLE) / all;
        u32::try_from(part).unwrap_or(WHOLE).min(WHOLE)
    };
    pod.requests.iter().map(part).max().unwrap_or(0)
}

fn note_groups(domain: &tutti_engine::DomainRoom, rows: &BTreeMap<Text, NodeRow>, groups: &mut [GroupRow]) {
    let seats = domain.nodes.iter().filter_map(|node| rows.get(node)).flat_map(|row| &row.seats);
    let here: BTreeSet<usize> = seats.filter_map(|share| share.group).collect();
    for group in here {
        groups[group].domains[domain.path.len() - 1].push(domain.path.join("/"));
    }
}

fn sums<'a>(rows: impl Iterator<Item = &'a Vec<u64>>, width: usize) -> Vec<u64> {
    rows.fold(vec![0; width], |sums, row| sums.iter().zip(row).map(|(sum, room)| sum + room).collect())
}

/// The last part of a label key.
pub(super) fn short_key(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// Compares names with the numbers in them as numbers: `rack-9` is before `rack-10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (number, rest) = digits(left);
            let (other, other_rest) = digits(right);
            // Without leading zeros the longer one is the larger one.
            let order = number.len().cmp(&other.len()).then_with(|| number.cmp(other));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (rest, other_rest);
        } else if x == y {
            (left, right) = (&left[x.len_utf8()..], &right[y.len_utf8()..]);
        } else {
            return x.cmp(&y);
        }
    }
}

/// The number that a text begins with, without leading zeros, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::scenario::Scenario;

    fn tree(text: &str, levels: &[&str], shape: &str) -> Tree {
        let cluster = Cluster::of_scenario(Scenario::parse(text).unwrap()).unwrap();
        let levels: Vec<Text> = levels.iter().map(|&level| level.into()).collect();
        Tree::new(&cluster, &levels, &[shape.parse().unwrap()], Vec::new())
    }

    const TEXT: &str = "
        node a x4 gpu=8 cpu=64 label:block=1 label:rack=r{i/2}
        node b x2 gpu=8 cpu=64 label:block=2 label:rack=r10
        node half gpu=8 cpu=64 label:block=2
        node bare gpu=8 cpu=64
        group train gang=3 required:block required:rack
        pod t x3 group=train gpu=4
        pod plain on=bare gpu=2
        pod done on=bare gpu=6 phase=Succeeded";

    #[test]
    fn every_node_is_once_in_the_tree_where_its_labels_end() {
        let tree = tree(TEXT, &["block", "rack"], "gpu=4");
        let values = |domain: &Domain| domain.domains.iter().map(|d| d.value.clone()).collect::<Vec<_>>();
        let names = |domain: &Domain| domain.nodes.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
        let [one, two] = &tree.cluster.domains[..] else { panic!("{tree:?}") };
        assert_eq!((values(one), values(two)), (vec!["r0".into(), "r1".into()], vec!["r10".into()]));
        assert_eq!((names(&tree.cluster), names(two)), (vec!["bare".into()], vec!["half".into()]));
        assert_eq!(names(&one.domains[1]), ["a-2", "a-3"]);
        assert_eq!((tree.cluster.nodes_count, one.nodes_count, two.nodes_count), (8, 4, 3));
    }

    #[test]
    fn room_is_told_as_it_is_and_as_it_would_be() {
        let tree = tree(TEXT, &["block", "rack"], "gpu=4");
        let [one, two] = &tree.cluster.domains[..] else { panic!("{tree:?}") };
        assert_eq!((&one.room[..], &one.room_empty[..]), (&[5][..], &[8][..]));
        assert_eq!((two.room[0], two.room_empty[0]), (6, 6));
        assert_eq!((tree.cluster.room[0], tree.cluster.room_empty[0]), (12, 16));
    }

    #[test]
    fn a_group_is_where_its_members_sit() {
        let tree = tree(TEXT, &["block", "rack"], "gpu=4");
        let train = &tree.groups[0];
        assert_eq!((train.name.as_str(), train.pods, train.seated), ("default/train", 3, 3));
        assert_eq!(train.domains, [["1"], ["1/r0"]]);
        assert_eq!((tree.cluster.pods_count, tree.cluster.domains[0].pods_count), (4, 3));
        let first = &tree.cluster.domains[0].domains[0].nodes[0];
        let share = Share { group: Some(0), name: Some("default/train".into()), pods: 2, thousandths: WHOLE };
        assert_eq!((first.name.as_str(), &first.seats[..]), ("a-0", &[share][..]));
        let bare = &tree.cluster.nodes[0].seats[0];
        assert_eq!((bare.group, bare.pods, bare.thousandths), (None, 1, 250));
    }

    #[test]
    fn names_are_ordered_by_the_numbers_in_them() {
        let mut names = ["rack-10", "rack-9", "rack", "a1b10", "a1b9", "rack-09", "é", "rack-9x"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a1b9", "a1b10", "rack", "rack-09", "rack-9", "rack-9x", "rack-10", "é"]);
    }
}
