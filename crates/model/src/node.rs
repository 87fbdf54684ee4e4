//! A machine that pods can be placed on.

use crate::amount::ResourceList;
use crate::image::NodeImage;
use crate::key::Text;
use crate::labels::Labels;
use crate::taint::Taint;

/// A node, as far as scheduling reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Name.
    pub name: Text,
    /// Labels.
    pub labels: Labels,
    /// What pods can have of it.
    pub allocatable: ResourceList,
    /// Taints.
    pub taints: Vec<Taint>,
    /// True if it was cordoned.
    pub unschedulable: bool,
    /// Images that it has, see [`crate::image::sorted`].
    pub images: Vec<NodeImage>,
    /// Names of features that it declares to have, sorted, each once.
    pub features: Vec<Text>,
}
