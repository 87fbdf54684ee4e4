//! Which node labels are levels of a topology, from wide to narrow, and which nodes do not keep to them.

use crate::console::count;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tutti_model::{Node, Text};

/// What levels are called, wide to narrow: the whole key of a label, or a word of its last part.
const KNOWN: [&str; 20] = [
    "region",
    "zone",
    "datacenter",
    "hall",
    "room",
    "row",
    "topology.k8s.aws/network-node-layer-1",
    "spine",
    "superblock",
    "topology.k8s.aws/network-node-layer-2",
    "block",
    "subblock",
    "topology.k8s.aws/network-node-layer-3",
    "leaf",
    "rack",
    "switch",
    "chassis",
    "island",
    "nvlink",
    "clique",
];
/// Labels about something else, however they may nest.
const ELSEWHERE: [&str; 13] = [
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "node.kubernetes.io/",
    "node-role.kubernetes.io/",
    "feature.node.kubernetes.io/",
    "nvidia.com/",
    "amd.com/",
    "cloud.google.com/",
    "eks.amazonaws.com/",
    "k8s.io/",
    "karpenter.sh/",
    "kubernetes.azure.com/",
];
/// Names that a warning lists.
const NAMES_MAX: usize = 5;

/// A label, and its value on every node.
struct Column<'a> {
    key: &'a str,
    values: Vec<Option<&'a str>>,
    count: usize,
}

impl Column<'_> {
    /// True if nodes that share a value of `other` share one of this label, too.
    fn contains(&self, other: &Self) -> bool {
        let mut homes: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        let both = other.values.iter().zip(&self.values);
        both.filter_map(|(inner, outer)| Some(((*inner)?, *outer)))
            .all(|(inner, outer)| *homes.entry(inner).or_insert(outer) == outer)
    }

    fn is_same_as(&self, other: &Self) -> bool {
        self.count == other.count && self.contains(other) && other.contains(self)
    }

    /// True if it divides what `wider` leaves whole.
    fn lies_within(&self, wider: &Self) -> bool {
        self.count > wider.count && wider.contains(self)
    }

    /// True if some nodes share a value, so that it is more than another name of the node.
    fn gathers(&self) -> bool {
        self.count < self.values.iter().flatten().count()
    }
}

/// How wide a level of this name is; nothing if the name does not tell.
fn known_rank(key: &str) -> Option<usize> {
    let last = key.rsplit('/').next().unwrap_or(key);
    let words: Vec<&str> = last.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    KNOWN.iter().position(|known| *known == key || words.contains(known))
}

/// The levels that labels of nodes suggest, wide to narrow.
///
/// Labels whose names say that they are levels come first, in the order that their names say. Others are levels if they
/// lie exactly between two of these or within the narrowest; or within each other, where no name tells anything.
/// Labels with one value say nothing, and those about other things are left out.
pub(super) fn infer(nodes: &[Node]) -> Vec<Text> {
    let mut columns = columns(nodes);
    columns.retain(|column| column.count > 1);
    columns.sort_by_key(|column| {
        // Of two labels that say the same, the standard one is kept.
        let is_standard = column.key.starts_with("topology.kubernetes.io/");
        (known_rank(column.key), column.count, !is_standard, column.key)
    });
    let (known, unknown): (Vec<Column<'_>>, Vec<Column<'_>>) =
        columns.into_iter().partition(|column| known_rank(column.key).is_some());
    let mut chain: Vec<Column<'_>> = Vec::new();
    for column in known.into_iter().filter(|column| !is_elsewhere(column.key, true)) {
        if !chain.iter().any(|level| level.is_same_as(&column)) {
            chain.push(column);
        }
    }
    let names_tell = !chain.is_empty();
    for column in unknown.into_iter().filter(|column| !is_elsewhere(column.key, false) && column.gathers()) {
        let at = chain.iter().position(|level| !column.lies_within(level)).unwrap_or(chain.len());
        let below = chain.get(at).is_none_or(|narrower| narrower.lies_within(&column));
        // Above what is known by name there are pools, teams and prices.
        if below && (at > 0 || !names_tell) {
            chain.insert(at, column);
        }
    }
    chain.into_iter().map(|column| Text::from(column.key)).collect()
}

/// A known word outweighs the company it keeps, but not where Kubernetes itself says the same in another label.
fn is_elsewhere(key: &str, is_known: bool) -> bool {
    let old = key.starts_with("failure-domain.beta.kubernetes.io/");
    old || (!is_known && ELSEWHERE.iter().any(|prefix| key.starts_with(prefix)))
}

fn columns(nodes: &[Node]) -> Vec<Column<'_>> {
    let mut by_key: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for (key, value) in node.labels.iter() {
            by_key.entry(key).or_insert_with(|| vec![None; nodes.len()])[index] = Some(value);
        }
    }
    let count = |values: &[Option<&str>]| values.iter().flatten().collect::<BTreeSet<_>>().len();
    by_key.into_iter().map(|(key, values)| Column { key, count: count(&values), values }).collect()
}

/// Something about labels that makes a topology other than it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Warning {
    /// What is wrong.
    pub(super) message: String,
    /// Nodes that it is about, by name.
    pub(super) nodes: Vec<String>,
}

/// What is wrong with the labels of nodes, if these are the levels.
pub(super) fn check(levels: &[Text], nodes: &[Node]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (depth, key) in levels.iter().enumerate() {
        lacking(key, &levels[depth + 1..], nodes, &mut warnings);
        if depth > 0 {
            straddling(&levels[..depth], key, nodes, &mut warnings);
        }
    }
    warnings
}

fn lacking(key: &Text, narrower: &[Text], nodes: &[Node], warnings: &mut Vec<Warning>) {
    let without: Vec<&Node> = nodes.iter().filter(|node| node.labels.get(key).is_none()).collect();
    if without.is_empty() {
        return;
    }
    let names: Vec<String> = without.iter().map(|node| node.name.to_string()).collect();
    let verb = if names.len() == 1 { "has" } else { "have" };
    let mut message = format!("{} {verb} no {key}: {}", count(names.len() as u64, "node"), some(&names));
    let cut_off = narrower.iter().find(|key| without.iter().any(|node| node.labels.get(key).is_some()));
    if let Some(narrower) = cut_off {
        let _ = write!(message, "; without it {narrower} does not count either");
    }
    warnings.push(Warning { message, nodes: names });
}

/// Nodes of one value, by the values of wider levels that they have.
type Homes<'a> = BTreeMap<Vec<&'a str>, Vec<String>>;

fn straddling(wider: &[Text], key: &Text, nodes: &[Node], warnings: &mut Vec<Warning>) {
    let mut homes_of: BTreeMap<&str, Homes<'_>> = BTreeMap::new();
    for node in nodes {
        let path: Option<Vec<&str>> = wider.iter().map(|key| node.labels.get(key)).collect();
        if let (Some(value), Some(path)) = (node.labels.get(key), path) {
            homes_of.entry(value).or_default().entry(path).or_default().push(node.name.to_string());
        }
    }
    let above = &wider[wider.len() - 1];
    let values_count = homes_of.len();
    homes_of.retain(|_, homes| homes.len() > 1);
    if homes_of.len() > 1 && homes_of.len() * 2 > values_count {
        let message = format!(
            "{} of {} repeat in several values of {above}; they count as different ones",
            homes_of.len(),
            count(values_count as u64, "value") + " of " + key,
        );
        warnings.push(Warning { message, nodes: Vec::new() });
        return;
    }
    for (value, homes) in homes_of {
        // The home of most is taken for the right one, of equals the first.
        let Some((home, most)) =
            homes.iter().max_by(|a, b| a.1.len().cmp(&b.1.len()).then_with(|| b.0.cmp(a.0)))
        else {
            continue;
        };
        let strays: Vec<String> =
            homes.iter().filter(|(path, _)| *path != home).flat_map(|(_, names)| names.clone()).collect();
        let message = format!(
            "{key} {value} is in several values of {above}: in {} with {}, elsewhere with {}",
            home.join("/"),
            count(most.len() as u64, "node"),
            some(&strays),
        );
        warnings.push(Warning { message, nodes: strays });
    }
}

/// The first few names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::scenario::Scenario;

    fn nodes(text: &str) -> Vec<Node> {
        Scenario::parse_nodes(text).unwrap()
    }

    fn inferred(text: &str) -> String {
        infer(&nodes(text)).join(" > ")
    }

    #[test]
    fn levels_are_known_by_their_names_whatever_the_order_of_labels() {
        let cloud = "node n x32 label:topology.kubernetes.io/zone=z{i/16} label:example.com/rack=r{i/4}
            label:net-block=b{i/8} label:kubernetes.io/hostname=n{i} label:kubernetes.io/os=linux";
        let one_line = cloud.replace('\n', " ");
        assert_eq!(inferred(&one_line), "topology.kubernetes.io/zone > net-block > example.com/rack");
        assert_eq!(
            inferred(
                "node n x8 label:topology.k8s.aws/network-node-layer-2=b{i/2} \
                 label:topology.k8s.aws/network-node-layer-1=a{i/4}"
            ),
            "topology.k8s.aws/network-node-layer-1 > topology.k8s.aws/network-node-layer-2"
        );
    }

    #[test]
    fn racks_whose_names_repeat_in_every_block_are_within_blocks() {
        let text = (0..3).map(|b| format!("node b{b} x4 label:block={b} label:rack=r{{i/2}}\n"));
        let text: String = text.collect();
        assert_eq!(inferred(&text), "block > rack");
        let warnings = check(&["block".into(), "rack".into()], &nodes(&text));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(
            warnings[0].message,
            "2 of 2 values of rack repeat in several values of block; they count as different ones"
        );
    }

    #[test]
    fn a_label_of_any_name_is_a_level_where_it_nests_between_others() {
        let text = "node n x32 label:zone=z{i/16} label:rack=r{i/4} label:fabric=f{i/8} label:pool=p";
        assert_eq!(inferred(text), "zone > fabric > rack");
        assert_eq!(inferred("node n x16 label:x=a{i/8} label:y=b{i/2}"), "x > y", "no name tells anything");
        assert_eq!(inferred("node n x16 label:rack=r{i/4} label:pool=p{i/8}"), "rack", "pools are above");
        assert_eq!(inferred("node n x16 label:rack=r{i/4} label:serial=s{i}"), "rack", "one for each node");
        let crossing =
            "node a x4 label:rack=r{i/2} label:fabric=a\nnode b x4 label:rack=r{i/2} label:fabric=b";
        assert_eq!(inferred(crossing), "rack");
    }

    #[test]
    fn what_says_nothing_is_no_level() {
        assert_eq!(inferred("node n x4 label:zone=only label:kubernetes.io/arch=arm"), "");
        assert_eq!(inferred(""), "");
        let twice = "node n x4 label:topology.kubernetes.io/zone=z{i/2} label:failure-domain.beta.kubernetes.io/zone=z{i/2}";
        assert_eq!(inferred(twice), "topology.kubernetes.io/zone");
        assert_eq!(
            inferred("node n x4 label:rack=r{i/2} label:leaf=l{i/2}"),
            "leaf",
            "the same by two names"
        );
    }

    #[test]
    fn nodes_without_a_label_are_named_and_so_is_what_they_lose_by_it() {
        let text =
            "node n x4 label:block=1 label:rack=r{i/2}\nnode stray x7 label:rack=r9\nnode bare label:block=1";
        let warnings = check(&["block".into(), "rack".into()], &nodes(text));
        let messages: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "7 nodes have no block: stray-0, stray-1, stray-2, stray-3, stray-4 and 2 more; without it rack does not \
                 count either",
                "1 node has no rack: bare",
            ]
        );
        assert_eq!((warnings[0].nodes.len(), warnings[1].nodes[0].as_str()), (7, "bare"));
    }

    #[test]
    fn a_node_that_breaks_the_nesting_is_named() {
        let text = "node n x8 label:block=b{i/4} label:rack=r{i/2}\nnode wrong label:block=b0 label:rack=r3";
        let warnings = check(&["block".into(), "rack".into()], &nodes(text));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(
            warnings[0].message,
            "rack r3 is in several values of block: in b1 with 2 nodes, elsewhere with wrong"
        );
        assert_eq!(warnings[0].nodes, ["wrong"]);
    }
}
