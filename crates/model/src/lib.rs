//! The nouns of scheduling: quantities, pods, nodes, groups. Plain data with Kubernetes' exact meaning, and no
//! Kubernetes types, no IO, no clock, no randomness.
//!
//! Everything that comes from outside is checked when it becomes one of these types; a [`ModelError`] names
//! the field that was wrong. What holds a value of these types may rely on it.

pub mod amount;
pub mod error;
pub mod group;
pub mod image;
pub mod inter_pod;
pub mod key;
pub mod label_selector;
pub mod labels;
pub mod node;
pub mod node_selector;
pub mod pod;
pub mod port;
pub mod preference;
pub mod quantity;
pub mod requests;
pub mod scenario;
pub mod taint;
pub mod time;
pub mod topology;
pub mod tree;
pub mod volume;

pub use amount::{Resource, ResourceList};
pub use error::ModelError;
pub use group::{ClaimSource, Disruption, Group, GroupClaim, Policy, Preemption, WhenGated};
pub use image::NodeImage;
pub use inter_pod::{InterPod, PodSelector, PodTerm, SpreadConstraint};
pub use key::{ObjectKey, Text};
pub use label_selector::LabelSelector;
pub use labels::Labels;
pub use node::Node;
pub use node_selector::{NodeAffinity, NodeSelectorTerm, Operator, Requirement};
pub use pod::{Phase, Pod};
pub use port::HostPort;
pub use preference::{Preferences, Weight, Weighted};
pub use quantity::Quantity;
pub use requests::Padding;
pub use taint::{Effect, Taint, Toleration, TolerationOperator};
pub use time::Time;
pub use topology::{Level, Slices, Spread, Strength, Topology};
pub use volume::{
    AccessMode, AttachLimits, ClaimRef, Disk, Storage, StorageClass, Volume, VolumeClaim, VolumeUse,
};
