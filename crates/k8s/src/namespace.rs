//! Namespaces: only their labels matter, to pods whose wishes select namespaces by label.

use crate::lenient::{Shape, Shaped};
use crate::view::{Kind, Names, View};
use kube::core::ClusterResourceScope;
use tutti_model::Labels;

/// A namespace, as far as scheduling reads it.
pub type NamespaceView = View<NamespaceKind>;

/// Marks views of namespaces.
#[derive(Debug, Clone)]
pub struct NamespaceKind;

impl Kind for NamespaceKind {
    type Spec = Nothing;
    type Status = Nothing;
    type Dynamic = ();
    type Scope = ClusterResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: "", version: "v1", kind: "Namespace", plural: "namespaces" }
    }
}

/// A part of which nothing is read.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub struct Nothing {}

impl Shaped for Nothing {
    const SHAPE: Shape = Shape::Object;
}

impl NamespaceView {
    /// The labels. One that cannot be read counts as absent.
    pub fn read_labels(&self) -> Labels {
        self.labels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_of_a_namespace_are_read_whatever_else_it_has() {
        let view: NamespaceView = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "team", "labels": {"tier": "gold"}}, "spec": 7, "status": {"phase": "Active"},
        }))
        .unwrap();
        assert_eq!(view.key().name.as_ref(), "team");
        assert_eq!(view.read_labels().get("tier"), Some("gold"));
    }
}
