//! How welcome nodes are, by node and plugin, compared.

use std::collections::{BTreeMap, BTreeSet};

/// Weighted scores by node and plugin.
pub(crate) type Scores = BTreeMap<String, BTreeMap<String, i64>>;

/// The first plugin whose scores differ, and how.
///
/// kube-scheduler leaves a plugin out when it has nothing to say about a pod. That is the same as a score that is equal
/// for all nodes.
pub(crate) fn difference(theirs: &Scores, ours: &Scores) -> Option<(String, String)> {
    let plugins: BTreeSet<&str> = [theirs, ours].into_iter().flat_map(plugins).collect();
    plugins.into_iter().find_map(|plugin| {
        let (their_scores, our_scores) = (of_plugin(theirs, plugin), of_plugin(ours, plugin));
        let agree =
            if their_scores.is_empty() { !tells_apart(ours, plugin) } else { their_scores == our_scores };
        let text = || format!("{plugin}: kube-scheduler scores {their_scores:?}, the engine {our_scores:?}");
        (!agree).then(|| (plugin.to_owned(), text()))
    })
}

/// Plugins whose scores are not the same for all nodes.
pub(crate) fn that_tell_apart(scores: &Scores) -> Vec<&str> {
    plugins(scores).into_iter().filter(|plugin| tells_apart(scores, plugin)).collect()
}

fn plugins(scores: &Scores) -> BTreeSet<&str> {
    scores.values().flat_map(|scores| scores.keys().map(String::as_str)).collect()
}

fn of_plugin<'a>(scores: &'a Scores, plugin: &str) -> BTreeMap<&'a str, i64> {
    let of_node =
        |(node, scores): (&'a String, &BTreeMap<String, i64>)| Some((node.as_str(), *scores.get(plugin)?));
    scores.iter().filter_map(of_node).collect()
}

fn tells_apart(scores: &Scores, plugin: &str) -> bool {
    let values: BTreeSet<i64> = of_plugin(scores, plugin).into_values().collect();
    values.len() > 1
}
