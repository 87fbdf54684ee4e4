//! What could not be understood, and where.

use std::fmt;
use tutti_model::{ModelError, ObjectKey};

/// Kinds of objects that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A pod.
    Pod,
    /// A node.
    Node,
    /// A pod group.
    PodGroup,
    /// A group of groups.
    Composite,
    /// A namespace.
    Namespace,
    /// A volume claim.
    Claim,
    /// A volume.
    Volume,
    /// A class of volumes.
    StorageClass,
    /// The drivers of a node.
    CsiNode,
    /// A service.
    Service,
    /// A replication controller.
    ReplicationController,
    /// A replica set.
    ReplicaSet,
    /// A stateful set.
    StatefulSet,
    /// A priority class.
    PriorityClass,
    /// A disruption budget.
    Budget,
    /// A Job.
    Job,
}

impl ObjectKind {
    /// Kinds that scheduling can do without: less is known then, and nothing goes wrong by it.
    pub const OPTIONAL: [Self; 7] = [
        Self::Service,
        Self::ReplicationController,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::PriorityClass,
        Self::Budget,
        Self::Job,
    ];

    /// API version and kind, unless clusters differ in that.
    pub fn api(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::PodGroup | Self::Composite => return None,
            Self::Pod => ("v1", "Pod"),
            Self::Node => ("v1", "Node"),
            Self::Namespace => ("v1", "Namespace"),
            Self::Claim => ("v1", "PersistentVolumeClaim"),
            Self::Volume => ("v1", "PersistentVolume"),
            Self::StorageClass => ("storage.k8s.io/v1", "StorageClass"),
            Self::CsiNode => ("storage.k8s.io/v1", "CSINode"),
            Self::Service => ("v1", "Service"),
            Self::ReplicationController => ("v1", "ReplicationController"),
            Self::ReplicaSet => ("apps/v1", "ReplicaSet"),
            Self::StatefulSet => ("apps/v1", "StatefulSet"),
            Self::PriorityClass => ("scheduling.k8s.io/v1", "PriorityClass"),
            Self::Budget => ("policy/v1", "PodDisruptionBudget"),
            Self::Job => ("batch/v1", "Job"),
        })
    }

    /// As people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Node => "node",
            Self::PodGroup => "pod group",
            Self::Composite => "composite pod group",
            Self::Namespace => "namespace",
            Self::Claim => "persistent volume claim",
            Self::Volume => "persistent volume",
            Self::StorageClass => "storage class",
            Self::CsiNode => "CSI node",
            Self::Service => "service",
            Self::ReplicationController => "replication controller",
            Self::ReplicaSet => "replica set",
            Self::StatefulSet => "stateful set",
            Self::PriorityClass => "priority class",
            Self::Budget => "pod disruption budget",
            Self::Job => "job",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A field of an object that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectError {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Its name; the namespace is empty for nodes.
    pub key: ObjectKey,
    /// Path of the field, as in `spec.containers[0].resources.requests.cpu`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl ObjectError {
    /// The error of a field, with the object that it was found in.
    pub fn new(kind: ObjectKind, key: ObjectKey, error: ModelError) -> Self {
        Self { kind, key, field: error.field, message: error.message }
    }

    /// Field and message, for places that name the object themselves.
    pub fn detail(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, field, message } = self;
        if key.namespace.is_empty() {
            write!(f, "{kind} {}: {field}: {message}", key.name)
        } else {
            write!(f, "{kind} {key}: {field}: {message}")
        }
    }
}

impl std::error::Error for ObjectError {}

/// Gathers what is wrong with one object, so that one bad field does not hide the next.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<ModelError>);

/// More errors than this of one object tell nobody anything.
const PROBLEMS_MAX: usize = 16;

impl Problems {
    /// The value, or the default and a remembered error.
    pub(crate) fn or_default<T: Default>(&mut self, result: Result<T, ModelError>) -> T {
        result.unwrap_or_else(|error| {
            self.push(error);
            T::default()
        })
    }

    /// Reads what is below a field, which is spelt out only if there is something to tell of it.
    pub(crate) fn within<T>(
        &mut self,
        field: impl FnOnce() -> String,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut below = Self::default();
        let read = read(&mut below);
        if !below.is_empty() {
            let field = field();
            below.0.into_iter().for_each(|error| self.push(error.within(&field)));
        }
        read
    }

    pub(crate) fn push(&mut self, error: ModelError) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(error);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_errors(self, kind: ObjectKind, key: &ObjectKey) -> Vec<ObjectError> {
        self.0.into_iter().map(|error| ObjectError::new(kind, key.clone(), error)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_object_and_field() {
        let error = |kind, namespace: &str| {
            ObjectError::new(
                kind,
                ObjectKey::new(namespace, "x"),
                ModelError::new("spec.priority", "too large"),
            )
            .to_string()
        };
        assert_eq!(error(ObjectKind::Pod, "default"), "pod default/x: spec.priority: too large");
        assert_eq!(error(ObjectKind::Node, ""), "node x: spec.priority: too large");
    }
}
