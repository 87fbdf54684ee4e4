//! What a valid placement is, said once more and independently: on plain objects, with none of the engine's
//! tables. Tests hold every placement against it.

use rustc_hash::FxHashMap;
use tutti_model::taint::untolerated;
use tutti_model::{Node, Pod};

/// What is wrong with a final state in which `placed` were put beside `running`; every pod names its node.
///
/// Only what the placed pods are answerable for counts: a node that was overcommitted before is not their fault
/// unless they ask for more of what is short.
pub fn violations(nodes: &[Node], running: &[Pod], placed: &[Pod]) -> Vec<String> {
    let by_name: FxHashMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_ref(), node)).collect();
    let mut wrong = Vec::new();
    for pod in placed {
        let Some(node) = pod.node.as_deref().and_then(|name| by_name.get(name)) else {
            wrong.push(format!("{} is on a node that does not exist", pod.key));
            continue;
        };
        if let Some(why) = forbidden(pod, node) {
            wrong.push(format!("{} may not be on {}: {why}", pod.key, node.name));
        }
    }
    for node in nodes {
        let on_node =
            |pod: &&Pod| pod.node.as_deref() == Some(node.name.as_ref()) && !pod.phase.is_terminal();
        for pod in placed.iter().filter(on_node) {
            for (resource, amount) in pod.requests.iter().filter(|&(_, amount)| amount > 0) {
                let others = running.iter().chain(placed).filter(on_node);
                let asked: i128 = others
                    .map(|pod| i128::from(pod.requests.get(resource.name())))
                    .sum();
                let there = node.allocatable.get(resource.name());
                if asked > i128::from(there) {
                    wrong.push(format!(
                        "{} has {there} {resource} and {asked} are asked ({} by {})",
                        node.name, amount, pod.key
                    ));
                }
            }
        }
    }
    wrong
}

/// Why a pod may not be on a node whatever is free there.
pub fn forbidden(pod: &Pod, node: &Node) -> Option<String> {
    let cordon = tutti_model::Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: tutti_model::Effect::NoSchedule,
    };
    if node.unschedulable && !pod.tolerations.iter().any(|t| t.tolerates(&cordon)) {
        return Some("it is cordoned".to_owned());
    }
    if let Some(taint) = untolerated(&node.taints, &pod.tolerations) {
        return Some(format!("taint {} is not tolerated", taint.key));
    }
    (!pod.affinity.matches(&node.name, &node.labels)).then(|| "its labels do not match".to_owned())
}
