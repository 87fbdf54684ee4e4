//! Nodes.

use crate::error::{ObjectError, ObjectKind};
use crate::images::{ImageView, read_node_images};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::resources::{Amounts, read_amounts};
use crate::selector::{read_each, read_effect, text};
use crate::view::{Kind, Names, View};
use kube::core::ClusterResourceScope;
use tutti_model::{ModelError, Node, Taint, Text};

/// A node, as far as scheduling reads it.
pub type NodeView = View<NodeKind>;

/// Marks views of nodes.
#[derive(Debug, Clone)]
pub struct NodeKind;

impl Kind for NodeKind {
    type Spec = NodeSpecView;
    type Status = NodeStatusView;
    type Dynamic = ();
    type Scope = ClusterResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: "", version: "v1", kind: "Node", plural: "nodes" }
    }
}

/// `spec`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct NodeSpecView {
    unschedulable: Lenient<bool>,
    taints: Lenient<Vec<Lenient<TaintView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct TaintView {
    key: Lenient<String>,
    value: Lenient<String>,
    effect: Lenient<String>,
}

/// `status`. Whether the node is ready is not read: Kubernetes taints a node that is not.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatusView {
    allocatable: Amounts,
    images: Lenient<Vec<Lenient<ImageView>>>,
    declared_features: Lenient<Vec<Lenient<String>>>,
}

impl Shaped for NodeSpecView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for TaintView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for NodeStatusView {
    const SHAPE: Shape = Shape::Object;
}

/// What was understood of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReading {
    /// The node. With errors it counts as cordoned: what runs there stays counted, nothing new goes there,
    /// because the part that could not be read may be what keeps pods away.
    pub node: Node,
    /// Identity over time.
    pub uid: Text,
    /// Resource version.
    pub version: Text,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl NodeView {
    /// The node in our terms.
    pub fn read(&self) -> NodeReading {
        let mut problems = self.problems();
        let key = self.key();
        let no_spec = NodeSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let no_status = NodeStatusView::default();
        let status = problems.or_default(self.status.at("status")).unwrap_or(&no_status);
        let cordoned = problems.or_default(spec.unschedulable.at("spec.unschedulable")).copied();
        let mut node = Node {
            name: key.name.clone(),
            labels: self.labels(),
            allocatable: read_amounts(&status.allocatable, "status.allocatable", &mut problems),
            taints: problems.or_default(read_taints(&spec.taints)),
            unschedulable: cordoned.unwrap_or(false),
            images: read_node_images(&status.images),
            features: problems.or_default(read_features(&status.declared_features)),
        };
        node.unschedulable |= !problems.is_empty();
        NodeReading {
            node,
            uid: self.uid(),
            version: self.version(),
            errors: problems.into_errors(ObjectKind::Node, &key),
        }
    }
}

fn read_features(declared: &Lenient<Vec<Lenient<String>>>) -> Result<Vec<Text>, ModelError> {
    const FIELD: &str = "status.declaredFeatures";
    let declared = declared.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    let name = |name: &String| Ok(Text::from(name.as_str()));
    let mut features = read_each(declared, name).map_err(|error| error.within(FIELD))?;
    features.sort_unstable();
    features.dedup();
    Ok(features)
}

fn read_taints(taints: &Lenient<Vec<Lenient<TaintView>>>) -> Result<Vec<Taint>, ModelError> {
    let taints = taints.at("spec.taints")?.map_or(&[][..], Vec::as_slice);
    read_each(taints, |taint| {
        Ok(Taint {
            key: text(&taint.key, "key")?.into(),
            value: text(&taint.value, "value")?.into(),
            effect: read_effect(text(&taint.effect, "effect")?)?,
        })
    })
    .map_err(|error| error.within("spec.taints"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tutti_model::Effect;

    fn node(spec: &Value, allocatable: &Value) -> NodeReading {
        let view: NodeView = serde_json::from_value(json!({
            "metadata": {"name": "n1", "uid": "u", "labels": {"zone": "a"}},
            "spec": spec,
            "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "False"}]},
        }))
        .unwrap();
        view.read()
    }

    #[test]
    fn a_node_is_read_with_all_that_scheduling_needs() {
        let reading = node(
            &json!({"unschedulable": false, "taints": [{"key": "gpu", "effect": "NoSchedule"}]}),
            &json!({"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}),
        );
        assert_eq!(reading.errors, []);
        let node = reading.node;
        assert_eq!((node.name.as_ref(), node.labels.get("zone")), ("n1", Some("a")));
        assert_eq!(node.allocatable.get("cpu"), 8000);
        assert_eq!(node.allocatable.get("pods"), 110);
        assert_eq!(node.taints[0].effect, Effect::NoSchedule);
        assert!(!node.unschedulable, "readiness is told by taints alone");
    }

    #[test]
    fn a_node_that_is_not_understood_takes_nothing_new() {
        let reading = node(&json!({"taints": [{"key": "x", "effect": "Sometimes"}]}), &json!({"cpu": "8"}));
        assert!(reading.node.unschedulable);
        assert_eq!(
            reading.errors[0].to_string(),
            "node n1: spec.taints[0].effect: \"Sometimes\" is not known"
        );
        assert!(node(&json!({}), &json!({"cpu": "many"})).node.unschedulable);
    }
}
