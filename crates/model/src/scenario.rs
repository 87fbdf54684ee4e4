//! A cluster and what is asked of it, as text that people read and write: tests, documents, bug reports.
//!
//! One object a line, `#` starts a comment:
//!
//! ```text
//! node  big      cpu=4 memory=8Gi gpu=8 label:zone=a taint:gpu=yes:NoSchedule
//! node  small x3 cpu=2 cordoned          # small-0, small-1, small-2
//! group train    gang=2 priority=5       # or: basic
//! pod   w x2     group=train cpu=2 select:zone=a tolerate:gpu
//! pod   old      on=big cpu=1
//! ```
//!
//! In a line with copies, `{i}` in the value of a label stands for the number of the copy and `{i/4}` for that number
//! divided by 4, rounded down: `node n x16 label:rack=r{i/4}` makes four racks of four nodes.
//!
//! Where members of a group are to be, by node labels from wide to narrow, and groups of groups:
//!
//! ```text
//! composite job gang=2 required:block spread:power:1   # at most 1 child per value of power
//! group a parent=job gang=8 preferred:rack slices:host:4
//! pod w x8 group=a ranked                              # ranks 0 to 7; or rank=3, or leader
//! ```
//!
//! What pods want of each other, with a topology key and a label that selects pods (`*` selects all):
//!
//! ```text
//! pod a label:app=web affinity:zone:app=db      # some app=db must be in the same zone
//! pod b label:app=web anti-affinity:host:app=web    # no other app=web on the same host
//! pod c label:app=web spread:zone:1:app=web   # zones differ by 1 at most; spread:zone:1:app=web:min=3
//! pod d port:8080 port:53/UDP               # ports of the node
//! ```
//!
//! Namespaces with labels, pods in them, and terms that speak of pods of all namespaces with a label (`@*`: of all):
//!
//! ```text
//! namespace team label:trusted=yes
//! pod e namespace=team label:app=db
//! pod f affinity:zone:app=db@trusted=yes
//! ```
//!
//! What pods would like, with a weight from 1 to 100, and images, which nodes list with their size:
//!
//! ```text
//! node n image:app:v1=500Mi
//! pod a prefer:zone=a:10              # a node with this label
//! pod b prefer-affinity:zone:app=db:5     # some app=db in the same zone
//! pod c prefer-anti-affinity:host:app=web:5   # no other app=web on the same host
//! pod d prefer-spread:zone:1:app=web    # zones that do not differ by more than 1
//! pod e like:app=web                  # spread by default with pods that do the same
//! pod f image:app:v1                  # once for every container
//! ```
//!
//! Volumes: classes, volumes, claims, and what nodes can attach (`mod storage`):
//!
//! ```text
//! class  local wait                                        # nobody makes volumes of it
//! volume v x2  class=local size=10Gi reach:host=a          # nodes with this label reach them
//! claim  data x2 class=local size=5Gi                      # or bound=VOLUME
//! node   n     attach:ebs.csi.aws.com=25
//! pod    p x2  claim:data-*                                # p-0 uses data-0
//! ```
//!
//! A pod stands for a single container: where it names no `cpu` or `memory`, it counts as Kubernetes counts such a
//! container when nodes are compared. Amounts are Kubernetes quantities; `gpu` is short for `nvidia.com/gpu`. A node has 110 `pods` unless it says
//! otherwise. Later lines are younger. Everything is in namespace `default`
//! but pods that say otherwise.
//!
//! What is to come of it: `expect train placed 2`, or `expect train waits 1 of 2 members fit`.

mod copies;
mod storage;

use crate::error::ModelError;
use crate::{
    AttachLimits, Effect, Group, HostPort, LabelSelector, Labels, Node, NodeImage, NodeSelectorTerm,
    ObjectKey, Operator, Padding, Phase, Pod, PodSelector, PodTerm, Quantity, Requirement, Resource,
    SpreadConstraint, Storage, Taint, Text, Time, Toleration, TolerationOperator, Weight, Weighted, image,
};
use std::collections::BTreeMap;
use std::sync::Arc;

mod group;

/// Copies that one line may make.
const COPIES_MAX: u32 = 1_000_000;

/// What a scenario describes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scenario {
    /// Namespaces that have labels, in order.
    pub namespaces: Vec<Namespace>,
    /// Nodes, in order.
    pub nodes: Vec<Node>,
    /// Groups, in order.
    pub groups: Vec<Group>,
    /// Composites, in order.
    pub composites: Vec<Group>,
    /// Pods, in order.
    pub pods: Vec<Pod>,
    /// Storage.
    pub storage: Storage,
    /// What is said to come out of it, in order.
    pub expectations: Vec<Expectation>,
}

/// A namespace and its labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: Text,
    /// Its labels.
    pub labels: Labels,
}

/// What a scenario says about the first decision on a group or on a pod without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The group or pod.
    pub name: Text,
    /// What is to become of it.
    pub outcome: Expected,
}

/// What is to become of a group or pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// So many members get a seat.
    Placed(u32),
    /// None does, and the reason contains this text.
    Waits(Text),
}

impl Scenario {
    /// Reads a scenario; an error names line and word.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let mut scenario = Self::default();
        each_line(text, |words, index| scenario.line(words, Time(index as i64)))?;
        storage::link(&mut scenario.storage);
        Ok(scenario)
    }

    /// Reads the nodes of a cluster: a scenario in which nothing else is described, and no name twice. An error names
    /// line and word.
    pub fn parse_nodes(text: &str) -> Result<Vec<Node>, ModelError> {
        let mut scenario = Self::default();
        let mut known: BTreeMap<Text, usize> = BTreeMap::new();
        each_line(text, |words, index| {
            if words[0] != "node" {
                return Err(ModelError::new(words[0], "only nodes are described here: want node NAME …"));
            }
            let before = scenario.nodes.len();
            scenario.line(words, Time(index as i64))?;
            for node in &scenario.nodes[before..] {
                if let Some(line) = known.insert(node.name.clone(), index) {
                    let why = format!("line {} has a node of this name already", line + 1);
                    return Err(ModelError::new(node.name.as_ref(), why));
                }
            }
            Ok(())
        })?;
        Ok(scenario.nodes)
    }

    fn line(&mut self, words: &[&str], created: Time) -> Result<(), ModelError> {
        let [what, name, rest @ ..] = words else {
            return Err(ModelError::new(
                "",
                "want: namespace|node|group|composite|pod|class|volume|claim NAME …",
            ));
        };
        if *what == "expect" {
            self.expectations.push(expectation(name, rest)?);
            return Ok(());
        }
        let (copies, rest) = copies(rest)?;
        let names = (0..copies.unwrap_or(1)).map(|i| match copies {
            Some(_) => format!("{name}-{i}"),
            None => (*name).to_owned(),
        });
        match *what {
            "node" => {
                let (node, limits) = node(rest)?;
                for (name, copy) in names.map(Text::from).zip(0..) {
                    let labels = copies::labels(&node.labels, copies.map(|_| copy))?;
                    self.nodes.push(Node { name: name.clone(), labels, ..node.clone() });
                    if !limits.is_empty() {
                        self.storage.limits.push(AttachLimits { node: name, limits: limits.clone() });
                    }
                }
            }
            "namespace" if copies.is_none() => {
                self.namespaces.push(Namespace { name: Text::from(*name), labels: namespace_labels(rest)? });
            }
            "group" if copies.is_none() => self.groups.push(group::group(name, rest, created)?),
            "composite" if copies.is_none() => {
                self.composites.push(group::composite(name, rest, created)?);
            }
            "pod" => {
                let is_ranked = rest.contains(&"ranked");
                let words: Vec<&str> = rest.iter().copied().filter(|word| *word != "ranked").collect();
                let pod = pod(&words, created)?;
                for (name, copy) in names.zip(0..) {
                    self.pods.push(Pod {
                        uid: Text::from(format!("uid-{name}")),
                        key: ObjectKey::new(pod.key.namespace.clone(), name.as_str()),
                        labels: copies::labels(&pod.labels, copies.map(|_| copy as usize))?,
                        volume_claims: storage::uses_of_copy(&pod.volume_claims, copy),
                        rank: if is_ranked { Some(copy) } else { pod.rank },
                        ..pod.clone()
                    });
                }
            }
            "class" if copies.is_none() => self.storage.classes.push(storage::class(name, rest)?),
            "volume" => {
                for name in names {
                    self.storage.volumes.push(storage::volume(&name, rest)?);
                }
            }
            "claim" => {
                for name in names {
                    self.storage.claims.push(storage::claim(&name, rest)?);
                }
            }
            other => {
                return Err(ModelError::new(
                    other,
                    "want namespace, node, group, composite, pod, class, volume, claim or expect (namespaces, groups \
                     and classes have no copies)",
                ));
            }
        }
        Ok(())
    }
}

/// Calls `read` with the words of every line that has any, and its position.
fn each_line(
    text: &str,
    mut read: impl FnMut(&[&str], usize) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            read(&words, index).map_err(|error| error.within(&format!("line {}", index + 1)))?;
        }
    }
    Ok(())
}

/// `placed N` or `waits SOME WORDS`.
fn expectation(name: &str, words: &[&str]) -> Result<Expectation, ModelError> {
    let outcome = match words {
        ["placed", count] => Expected::Placed(number(count, count)?),
        ["waits", reason @ ..] => Expected::Waits(Text::from(reason.join(" "))),
        _ => {
            return Err(ModelError::new(
                "expect",
                "want: expect NAME placed N, or expect NAME waits [REASON]",
            ));
        }
    };
    Ok(Expectation { name: Text::from(name), outcome })
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// `x3` right behind the name.
fn copies<'a>(words: &'a [&'a str]) -> Result<(Option<u32>, &'a [&'a str]), ModelError> {
    match words {
        [first, rest @ ..] if first.starts_with('x') && !first.contains(['=', ':']) => {
            match first[1..].parse() {
                Ok(copies) if copies <= COPIES_MAX => Ok((Some(copies), rest)),
                _ => Err(ModelError::new(*first, format!("want x0 to x{COPIES_MAX}"))),
            }
        }
        _ => Ok((None, words)),
    }
}

/// `label:KEY=VALUE`, as often as there are labels.
fn namespace_labels(words: &[&str]) -> Result<Labels, ModelError> {
    let label = |word: &&'_ str| match word.strip_prefix("label:") {
        Some(pair) => {
            Ok(pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (k.to_owned(), v.to_owned()))
        }
        None => Err(ModelError::new(*word, "want label:KEY=VALUE on a namespace")),
    };
    words.iter().map(label).collect()
}

/// The node, and how many volumes of which driver it can attach.
fn node(words: &[&str]) -> Result<(Node, BTreeMap<Text, u32>), ModelError> {
    let mut limits = BTreeMap::new();
    let mut node = Node::default();
    let mut labels: Vec<(&str, &str)> = Vec::new();
    let mut images: Vec<NodeImage> = Vec::new();
    node.allocatable.set(Resource::new(Resource::PODS), 110);
    for word in words {
        if *word == "cordoned" {
            node.unschedulable = true;
        } else if let Some(pair) = word.strip_prefix("label:") {
            labels.push(pair.split_once('=').unwrap_or((pair, "")));
        } else if let Some(text) = word.strip_prefix("taint:") {
            let (pair, effect) = text
                .rsplit_once(':')
                .ok_or_else(|| ModelError::new(*word, "want taint:KEY[=VALUE]:EFFECT"))?;
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            node.taints.push(Taint {
                key: key.into(),
                value: value.into(),
                effect: self::effect(effect, word)?,
            });
        } else if let Some(text) = word.strip_prefix("image:") {
            images.push(node_image(text, word)?);
        } else if let Some(feature) = word.strip_prefix("feature:") {
            node.features.push(Text::from(feature));
        } else if let Some(text) = word.strip_prefix("attach:") {
            let (driver, most) = storage::limit(text, word)?;
            limits.insert(driver, most);
        } else {
            let (resource, amount) = amount(word)?;
            node.allocatable.set(resource, amount);
        }
    }
    node.labels = labels.into_iter().collect();
    node.images = image::sorted(images);
    node.features.sort_unstable();
    node.features.dedup();
    Ok((node, limits))
}

/// `NAME=SIZE`.
fn node_image(text: &str, word: &str) -> Result<NodeImage, ModelError> {
    let (name, size) =
        text.rsplit_once('=').ok_or_else(|| ModelError::new(word, "want image:NAME=SIZE on a node"))?;
    let size: Quantity = size.parse().map_err(|error: ModelError| error.within(word))?;
    Ok(NodeImage { name: image::full_name(name), size: size.value_ceil() })
}

fn pod(words: &[&str], created: Time) -> Result<Pod, ModelError> {
    let mut pod = Pod { created, scheduler_name: Text::from("tutti"), ..Pod::new(key(""), "") };
    let mut selector: Vec<(&str, &str)> = Vec::new();
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for word in words {
        if let Some(pair) = word.strip_prefix("select:") {
            selector.push(pair.split_once('=').unwrap_or((pair, "")));
        } else if let Some(pair) = word.strip_prefix("label:") {
            labels.push(pair.split_once('=').unwrap_or((pair, "")));
        } else if let Some(text) = word.strip_prefix("affinity:") {
            pod.inter_pod.affinity.push(term(text, word)?);
        } else if let Some(text) = word.strip_prefix("anti-affinity:") {
            pod.inter_pod.anti_affinity.push(term(text, word)?);
        } else if let Some(text) = word.strip_prefix("spread:") {
            pod.inter_pod.spread.push(spread(text, word)?);
        } else if let Some(text) = word.strip_prefix("prefer-affinity:") {
            pod.preferences.affinity.push(weighted(text, word, term)?);
        } else if let Some(text) = word.strip_prefix("prefer-anti-affinity:") {
            pod.preferences.anti_affinity.push(weighted(text, word, term)?);
        } else if let Some(text) = word.strip_prefix("prefer-spread:") {
            pod.preferences.spread.push(spread(text, word)?);
        } else if let Some(text) = word.strip_prefix("like:") {
            pod.preferences.like = Some(Arc::new(label_selector(text)));
        } else if let Some(text) = word.strip_prefix("prefer:") {
            pod.preferences.nodes.push(weighted(text, word, node_term)?);
        } else if let Some(name) = word.strip_prefix("image:") {
            pod.images.push(image::full_name(name));
        } else if let Some(name) = word.strip_prefix("claim:") {
            pod.volume_claims.push(storage::uses(name, false));
        } else if let Some(name) = word.strip_prefix("own-claim:") {
            pod.volume_claims.push(storage::uses(name, true));
        } else if let Some(feature) = word.strip_prefix("feature:") {
            pod.features.push(Text::from(feature));
        } else if let Some(text) = word.strip_prefix("port:") {
            let (number, protocol) = text.split_once('/').unwrap_or((text, ""));
            pod.ports.push(HostPort::new(protocol, self::number(number, word)?, ""));
        } else if let Some(text) = word.strip_prefix("tolerate:") {
            pod.tolerations.push(toleration(text, word)?);
        } else {
            pod_word(&mut pod, word)?;
        }
    }
    own_namespace(&mut pod);
    pod.features.sort_unstable();
    pod.features.dedup();
    pod.affinity.selector = selector.into_iter().collect::<Labels>();
    pod.labels = labels.into_iter().collect();
    pod.padding = Padding::of_one_container(&pod.requests);
    Ok(pod)
}

/// Terms that name no namespaces speak of pods of the pod's own one.
fn own_namespace(pod: &mut Pod) {
    let namespace = pod.key.namespace.clone();
    let required = pod.inter_pod.affinity.iter_mut().chain(&mut pod.inter_pod.anti_affinity);
    let preferred = pod.preferences.affinity.iter_mut().chain(&mut pod.preferences.anti_affinity);
    for term in required.chain(preferred.map(|weighted| &mut weighted.term)) {
        if term.pods.namespace_selector.is_none() {
            term.pods.namespaces = vec![namespace.clone()];
        }
    }
}

/// `WISH:WEIGHT`.
fn weighted<T>(
    text: &str,
    word: &str,
    read: impl Fn(&str, &str) -> Result<T, ModelError>,
) -> Result<Weighted<T>, ModelError> {
    let (text, weight) =
        text.rsplit_once(':').ok_or_else(|| ModelError::new(word, "want a weight at the end"))?;
    let weight = Weight::new(number(weight, word)?).map_err(|error| error.within(word))?;
    Ok(Weighted { term: read(text, word)?, weight })
}

/// `LABEL=VALUE`.
fn node_term(text: &str, word: &str) -> Result<NodeSelectorTerm, ModelError> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let requirement = Requirement::new(key, Operator::In, vec![Text::from(value)]);
    let requirement = requirement.map_err(|error| error.within(word))?;
    Ok(NodeSelectorTerm { labels: vec![requirement], fields: Vec::new() })
}

/// `KEY:LABEL=VALUE` or `KEY:*`, and perhaps `@LABEL=VALUE` or `@*` for pods of other namespaces.
fn term(text: &str, word: &str) -> Result<PodTerm, ModelError> {
    let (key, selector) =
        text.split_once(':').ok_or_else(|| ModelError::new(word, "want TOPOLOGY-KEY:LABEL=VALUE"))?;
    let (selector, namespaces) = match selector.split_once('@') {
        Some((selector, namespaces)) => (selector, Some(label_selector(namespaces))),
        None => (selector, None),
    };
    let labels = Some(label_selector(selector));
    let pods = PodSelector { namespaces: Vec::new(), namespace_selector: namespaces, labels };
    Ok(PodTerm { pods, topology_key: Text::from(key) })
}

/// `KEY:SKEW:LABEL=VALUE`, and perhaps `:min=N`.
fn spread(text: &str, word: &str) -> Result<SpreadConstraint, ModelError> {
    let parts: Vec<&str> = text.split(':').collect();
    let (key, skew, selector, rest) = match parts[..] {
        [key, skew, selector, ref rest @ ..] if rest.len() <= 1 => (key, skew, selector, rest.first()),
        _ => {
            return Err(ModelError::new(word, "want spread:TOPOLOGY-KEY:SKEW:LABEL=VALUE[:min=N]"));
        }
    };
    let min_domains = match rest.map(|rest| rest.split_once('=')) {
        None => None,
        Some(Some(("min", minimum))) => Some(number(minimum, word)?),
        Some(_) => return Err(ModelError::new(word, "want min=N at the end")),
    };
    Ok(SpreadConstraint {
        max_skew: number(skew, word)?,
        topology_key: Text::from(key),
        labels: Some(label_selector(selector)),
        min_domains,
        honors_affinity: true,
        honors_taints: false,
    })
}

fn label_selector(text: &str) -> LabelSelector {
    if text == "*" {
        return LabelSelector::default();
    }
    LabelSelector::of_labels([text.split_once('=').unwrap_or((text, ""))])
}

fn pod_word(pod: &mut Pod, word: &str) -> Result<(), ModelError> {
    match word.split_once('=') {
        None if word == "gated" => pod.gates.push(Text::from("gate")),
        None if word == "terminating" => pod.terminating = true,
        None if word == "leader" => pod.leader = true,
        Some(("rank", rank)) => pod.rank = Some(number(rank, word)?),
        Some(("group", name)) => pod.group = Some(key(name)),
        Some(("on", name)) => {
            pod.node = Some(Text::from(name));
            pod.phase = Phase::Running;
        }
        Some(("nominated", name)) => pod.nominated = Some(Text::from(name)),
        Some(("priority", priority)) => pod.priority = number(priority, word)?,
        Some(("namespace", name)) => pod.key.namespace = Text::from(name),
        Some(("scheduler", name)) => pod.scheduler_name = Text::from(name),
        Some(("phase", "Succeeded")) => pod.phase = Phase::Succeeded,
        Some(("phase", "Failed")) => pod.phase = Phase::Failed,
        Some(("phase", "Pending")) => pod.phase = Phase::Pending,
        _ => {
            let (resource, amount) = amount(word)?;
            pod.requests.set(resource, amount);
        }
    }
    Ok(())
}

fn toleration(text: &str, word: &str) -> Result<Toleration, ModelError> {
    let (pair, effect) = match text.rsplit_once(':') {
        Some((pair, name)) => (pair, Some(effect(name, word)?)),
        None => (text, None),
    };
    Ok(match pair.split_once('=') {
        Some((key, value)) => {
            Toleration { key: key.into(), operator: TolerationOperator::Equal, value: value.into(), effect }
        }
        None => {
            Toleration { key: pair.into(), operator: TolerationOperator::Exists, value: "".into(), effect }
        }
    })
}

fn effect(name: &str, word: &str) -> Result<Effect, ModelError> {
    match name {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        _ => Err(ModelError::new(word, "want the effect NoSchedule, PreferNoSchedule or NoExecute")),
    }
}

/// `cpu=4`, `gpu=8`, `example.com/widget=1`.
fn amount(word: &str) -> Result<(Resource, i64), ModelError> {
    let (name, quantity) =
        word.split_once('=').ok_or_else(|| ModelError::new(word, "not a word of this format"))?;
    let known = ["cpu", "memory", "pods", "ephemeral-storage", "gpu"];
    if !known.contains(&name) && !name.contains('/') && !name.starts_with("hugepages-") {
        return Err(ModelError::new(word, format!("{name} is neither a resource nor a word of this format")));
    }
    let resource = Resource::new(if name == "gpu" { "nvidia.com/gpu" } else { name });
    let quantity: Quantity = quantity.parse().map_err(|error: ModelError| error.within(name))?;
    let amount = resource.checked_amount_of(quantity)?;
    Ok((resource, amount))
}

fn number<T: std::str::FromStr>(text: &str, word: &str) -> Result<T, ModelError> {
    text.parse().map_err(|_| ModelError::new(word, format!("{text:?} is not a number that is allowed here")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preferences;

    #[test]
    fn a_scenario_reads_as_it_is_documented() {
        let scenario = Scenario::parse(
            "node  big      cpu=4 memory=8Gi gpu=8 label:zone=a taint:gpu=yes:NoSchedule
             node  small x3 cpu=2 cordoned          # small-0, small-1, small-2
             group train    gang=2 priority=5
             pod   w x2     group=train cpu=2 select:zone=a tolerate:gpu
             pod   old      on=big cpu=1",
        )
        .unwrap();
        let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_ref()).collect();
        assert_eq!(names, ["big", "small-0", "small-1", "small-2"]);
        assert_eq!(scenario.nodes[0].allocatable.get("nvidia.com/gpu"), 8);
        assert!(scenario.nodes[3].unschedulable);
        assert_eq!(scenario.groups[0].policy.minimum(), 2);
        let [w0, w1, old] = &scenario.pods[..] else { panic!("three pods") };
        assert_eq!((w0.key.name.as_ref(), w1.key.name.as_ref()), ("w-0", "w-1"));
        assert!(w0.tolerations[0].tolerates(&scenario.nodes[0].taints[0]));
        assert_eq!((old.node.as_deref(), old.phase), (Some("big"), Phase::Running));
    }

    #[test]
    fn preferences_and_images_read_as_they_are_documented() {
        let scenario = Scenario::parse(
            "node n image:app:v1=500Mi image:app=1Ki
             pod p prefer:zone=a:10 prefer-affinity:zone:app=db:5 prefer-anti-affinity:host:app=web:7
             pod q prefer-spread:zone:1:app=web image:app:v1 image:app cpu=1 like:app=web",
        )
        .unwrap();
        let images: Vec<(&str, i64)> =
            scenario.nodes[0].images.iter().map(|image| (image.name.as_ref(), image.size)).collect();
        assert_eq!(images, [("app:latest", 1024), ("app:v1", 500 << 20)]);
        let [p, q] = &scenario.pods[..] else { panic!("two pods") };
        let Preferences { nodes, affinity, anti_affinity, spread, like } = &p.preferences;
        assert_eq!(
            (nodes[0].weight.get(), affinity[0].weight.get(), anti_affinity[0].weight.get()),
            (10, 5, 7)
        );
        assert_eq!(affinity[0].term.topology_key.as_ref(), "zone");
        assert!(nodes[0].term.matches("n", &[("zone", "a")].into_iter().collect()));
        assert!(spread.is_empty() && p.inter_pod.is_empty(), "a preference is no requirement");
        let web = LabelSelector::of_labels([("app", "web")]);
        assert_eq!((like.as_deref(), q.preferences.like.as_deref()), (None, Some(&web)));
        assert_eq!(p.padding, Padding { cpu: 100, memory: 200 << 20 });
        assert_eq!(q.preferences.spread.len(), 1);
        assert_eq!(q.images, [Text::from("app:v1"), Text::from("app:latest")]);
        assert_eq!(q.padding, Padding { cpu: 0, memory: 200 << 20 });
    }

    #[test]
    fn namespaces_read_as_they_are_documented() {
        let scenario = Scenario::parse(
            "namespace team label:trusted=yes
             pod a x2 namespace=team label:app=db anti-affinity:host:app=db
             pod b affinity:zone:app=db@trusted=yes affinity:zone:*@* affinity:host:app=web",
        )
        .unwrap();
        let [team] = &scenario.namespaces[..] else { panic!("one namespace") };
        let [a, _, b] = &scenario.pods[..] else { panic!("three pods") };
        assert_eq!(a.key, ObjectKey::new("team", "a-0"));
        let [trusted, all, own] = &b.inter_pod.affinity[..] else { panic!("three terms") };
        let (none, matches) = (Labels::default(), |term: &PodTerm, labels| {
            term.pods.matches(&a.key.namespace, labels, &a.labels)
        });
        assert!(matches(trusted, &team.labels) && !matches(trusted, &none));
        assert!(matches(all, &none) && !matches(own, &team.labels));
        assert!(matches(&a.inter_pod.anti_affinity[0], &none), "its own namespace");
        let error = Scenario::parse("namespace team trusted=yes").expect_err("not a label").to_string();
        assert!(error.starts_with("line 1.trusted=yes: want label:KEY=VALUE on a namespace"), "{error}");
    }

    #[test]
    fn copies_can_be_numbered_into_racks_and_zones() {
        let scenario =
            Scenario::parse("node n x5 label:rack=r{i/2}-{i} label:zone=z{i/4}\npod p x2 label:index={i}")
                .unwrap();
        let labels: Vec<(&str, &str)> = scenario
            .nodes
            .iter()
            .map(|node| (node.labels.get("rack").unwrap(), node.labels.get("zone").unwrap()))
            .collect();
        assert_eq!(labels, [("r0-0", "z0"), ("r0-1", "z0"), ("r1-2", "z0"), ("r1-3", "z0"), ("r2-4", "z1")]);
        assert_eq!(scenario.pods[1].labels.get("index"), Some("1"));
    }

    #[test]
    fn a_cluster_is_nodes_and_nothing_else_each_by_its_own_name() {
        let nodes = Scenario::parse_nodes("# two pools\nnode a x2 cpu=1\nnode b cpu=2 cordoned").unwrap();
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_ref()).collect();
        assert_eq!(names, ["a-0", "a-1", "b"]);
        for (text, message) in [
            ("node a\npod p", "line 2.pod: only nodes are described here"),
            ("node a x2\nnode a-1", "line 2.a-1: line 1 has a node of this name already"),
            ("node a x2 label:rack={j}", "line 1.label:rack.{j}: want {i}, or {i/N}"),
            ("node a x2 label:rack={i/0}", "line 1.label:rack.{i/0}: want {i}, or {i/N}"),
            ("node a x2 label:rack={i", "line 1.label:rack.{i: want {i}, or {i/N}"),
            ("node a label:rack={i}", "line 1.label:rack.{i}: want {i}, or {i/N}"),
        ] {
            let error = Scenario::parse_nodes(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text:?} gives {error:?}");
        }
    }

    #[test]
    fn an_error_names_line_and_word() {
        for (text, message) in [
            ("node", "line 1: want: namespace|node|group|composite|pod|class|volume|claim NAME …"),
            ("\nnode a cpu=x", "line 2.cpu: \"x\" is not a quantity"),
            ("group g gang=0", "line 1.gang=0: \"0\" is not a number that is allowed here"),
            ("pod p cpus=1", "line 1.cpus=1: cpus is neither a resource nor a word of this format"),
            ("expect g starts", "line 1.expect: want: expect NAME placed N"),
            (
                "table t",
                "line 1.table: want namespace, node, group, composite, pod, class, volume, claim or expect",
            ),
            ("pod p affinity:zone", "line 1.affinity:zone: want TOPOLOGY-KEY:LABEL=VALUE"),
            ("pod p spread:zone:0:*", "line 1.spread:zone:0:*: \"0\" is not a number"),
            ("pod p port:99999", "line 1.port:99999: \"99999\" is not a number"),
            ("pod p prefer:zone=a:0", "line 1.prefer:zone=a:0.weight: 0 is not a weight from 1 to 100"),
            ("pod p prefer-affinity:zone:5", "line 1.prefer-affinity:zone:5: want TOPOLOGY-KEY:LABEL=VALUE"),
            ("node a image:x", "line 1.image:x: want image:NAME=SIZE on a node"),
            ("node a taint:x", "line 1.taint:x: want taint:KEY[=VALUE]:EFFECT"),
        ] {
            let error = Scenario::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text:?} gives {error:?}");
        }
    }
}
