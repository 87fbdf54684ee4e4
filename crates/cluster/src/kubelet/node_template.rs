//! Simulated nodes to put into a cluster, complete with the status that their kubelet would give them.

use super::node_status::{node_info, ready_conditions, standard_labels};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tutti_model::{Effect, Node, NodeImage, Quantity, Resource, Taint};

/// Label that names the rack of a node.
pub const RACK_LABEL: &str = "tutti.dev/rack";
/// The resource that GPUs are counted as.
pub const GPU: &str = "nvidia.com/gpu";

const NODES_PER_RACK: u32 = 4;
const RACKS_PER_ZONE: u32 = 4;

/// A node to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTemplate {
    /// Its name, also its host name.
    pub name: String,
    /// Capacity and allocatable.
    pub capacity: BTreeMap<String, String>,
    /// Labels, besides those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Its address; without one the simulated kubelets choose.
    pub address: Option<Ipv4Addr>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// Images that it has.
    pub images: Vec<NodeImage>,
    /// Features that it declares. Simulated kubelets have none of their own.
    pub features: Vec<String>,
}

impl NodeTemplate {
    /// A node with this capacity, such as `[("cpu", "4")]`. Pods are limited to 110 unless it says otherwise.
    pub fn new<'a>(name: impl Into<String>, capacity: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all: BTreeMap<String, String> =
            capacity.into_iter().map(|(resource, amount)| (resource.to_owned(), amount.to_owned())).collect();
        all.entry("pods".to_owned()).or_insert_with(|| "110".to_owned());
        Self { name: name.into(), capacity: all, ..Self::default() }
    }

    /// The node that a scenario describes.
    pub fn of_model(node: &Node) -> Self {
        let amount = |(resource, amount): (&Resource, i64)| {
            let shown = resource.show(amount);
            // What is shown to people may be rounded; what a node has is not.
            let exact = shown.parse().ok().and_then(|q: Quantity| resource.checked_amount_of(q).ok());
            let text = if exact == Some(amount) { shown } else { amount.to_string() };
            (resource.name().to_owned(), text)
        };
        Self {
            name: node.name.to_string(),
            capacity: node.allocatable.iter().map(amount).collect(),
            labels: node.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            address: None,
            taints: node.taints.clone(),
            unschedulable: node.unschedulable,
            images: node.images.clone(),
            features: node.features.iter().map(ToString::to_string).collect(),
        }
    }

    /// Node number `index` of a cluster of `count` like ones: 64 CPUs, 256 GiB and some GPUs, in racks of 4
    /// nodes and zones of 4 racks. Names have leading zeros so that they sort by number.
    pub fn numbered(index: u32, count: u32, gpus: u32) -> Self {
        let width = count.saturating_sub(1).max(index).to_string().len();
        let mut node = Self::new(format!("node-{index:0width$}"), [("cpu", "64"), ("memory", "256Gi")]);
        if gpus > 0 {
            node.capacity.insert(GPU.to_owned(), gpus.to_string());
        }
        let rack = index / NODES_PER_RACK;
        let kind = if gpus > 0 { format!("simulated-gpu-{gpus}") } else { "simulated-cpu".to_owned() };
        node = node
            .label(RACK_LABEL, format!("rack-{rack}"))
            .label("topology.kubernetes.io/zone", format!("zone-{}", rack / RACKS_PER_ZONE))
            .label("node.kubernetes.io/instance-type", kind);
        // 172.16.0.0/12 has room for a million; later nodes are given an address by their kubelet.
        node.address = index
            .checked_add(1)
            .filter(|&offset| offset < 1 << 20)
            .map(|offset| Ipv4Addr::from_bits(Ipv4Addr::new(172, 16, 0, 0).to_bits() + offset));
        node
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// The node as an object, Ready as of `now`.
    pub fn to_object(&self, now: Timestamp) -> Value {
        let mut labels: Map<String, Value> = self.labels.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        for (key, value) in standard_labels(&self.name) {
            labels.entry(key).or_insert_with(|| json!(value));
        }
        let mut addresses = vec![json!({"type": "Hostname", "address": self.name})];
        if let Some(address) = self.address {
            addresses.insert(0, json!({"type": "InternalIP", "address": address.to_string()}));
        }
        let taints: Vec<Value> = self
            .taints
            .iter()
            .map(|taint| json!({"key": *taint.key, "value": *taint.value, "effect": effect(taint.effect)}))
            .collect();
        let mut spec = Map::new();
        if !taints.is_empty() {
            spec.insert("taints".to_owned(), taints.into());
        }
        if self.unschedulable {
            spec.insert("unschedulable".to_owned(), json!(true));
        }
        let images: Vec<Value> = self
            .images
            .iter()
            .map(|image| json!({"names": [*image.name], "sizeBytes": image.size}))
            .collect();
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": spec,
            "status": {
                "images": images,
                "capacity": self.capacity,
                "allocatable": self.capacity,
                "conditions": ready_conditions(now),
                "addresses": addresses,
                "nodeInfo": node_info(&self.name),
            },
        });
        if !self.features.is_empty() {
            object["status"]["declaredFeatures"] = json!(self.features);
        }
        object
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_number() {
        let mut names: Vec<String> = (0..101).map(|i| NodeTemplate::numbered(i, 101, 0).name).collect();
        assert_eq!(names[7], "node-007");
        let in_order = names.clone();
        names.sort();
        assert_eq!(names, in_order);
        assert_eq!(NodeTemplate::numbered(0, 1, 0).name, "node-0");
        assert_eq!(NodeTemplate::numbered(0, 0, 0).name, "node-0");
    }

    #[test]
    fn gpus_are_there_only_where_there_are_some() {
        assert_eq!(NodeTemplate::numbered(0, 1, 8).capacity.get(GPU).map(String::as_str), Some("8"));
        assert_eq!(NodeTemplate::numbered(0, 1, 0).capacity.get(GPU), None);
    }

    #[test]
    fn no_two_nodes_share_an_address_and_racks_fill_up_in_order() {
        let nodes: Vec<NodeTemplate> = (0..600).map(|i| NodeTemplate::numbered(i, 600, 0)).collect();
        let addresses: std::collections::BTreeSet<_> = nodes.iter().filter_map(|n| n.address).collect();
        assert_eq!(addresses.len(), 600);
        assert_eq!(nodes[3].labels[RACK_LABEL], "rack-0");
        assert_eq!(nodes[4].labels[RACK_LABEL], "rack-1");
        assert_eq!(nodes[16].labels["topology.kubernetes.io/zone"], "zone-1");
    }

    #[test]
    fn a_node_of_a_scenario_keeps_all_that_is_said_of_it() {
        let text = "node n cpu=1500m memory=1000001 gpu=8 pods=20 label:rack=r1 taint:k=v:NoExecute image:app=5Mi cordoned";
        let node = &tutti_model::scenario::Scenario::parse_nodes(text).unwrap()[0];
        let object = NodeTemplate::of_model(node).to_object(Timestamp::UNIX_EPOCH);
        assert_eq!(
            object["status"]["capacity"],
            json!({"cpu": "1500m", "memory": "1000001", "nvidia.com/gpu": "8", "pods": "20"})
        );
        assert_eq!(object["metadata"]["labels"]["rack"], "r1");
        let taints = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
        assert_eq!(object["spec"], json!({"taints": taints, "unschedulable": true}));
        assert_eq!(object["status"]["images"], json!([{"names": ["app:latest"], "sizeBytes": 5 << 20}]));
    }

    #[test]
    fn a_created_node_needs_nothing_more_from_its_kubelet() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut object = NodeTemplate::numbered(0, 1, 8).to_object(now);
        object["metadata"]["resourceVersion"] = json!("1");
        let object: kube::core::DynamicObject = serde_json::from_value(object).unwrap();
        let view = super::super::NodeView::read(&object).unwrap();
        let mut core = super::super::Core::new(super::super::Options::default());
        assert_eq!(core.step(super::super::Input::NodesListed(vec![view]), now), []);
    }
}
