//! Objects as controllers read them: metadata without its bulk, and of spec and status what somebody asks for.

use crate::action::Edit;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Namespace (empty for objects without one) and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{}", self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// One object. It is for reading only: written back, it would lose every field that is not read here.
#[derive(Debug, Clone, PartialEq)]
pub struct View<S = Unread, T = Unread> {
    /// `metadata` without `managedFields`.
    pub metadata: ObjectMeta,
    /// What is read of `spec`.
    pub spec: S,
    /// What is read of `status`.
    pub status: T,
}

impl<S, T> View<S, T> {
    /// Where it lives.
    pub fn key(&self) -> Key {
        Key::new(self.metadata.namespace.clone().unwrap_or_default(), self.name())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its identity over time.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The resource version that was read.
    pub fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// True if it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// When it was made; the beginning of time for one that does not say.
    pub fn created(&self) -> Timestamp {
        self.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// True if it waits for this finalizer before it goes.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers().any(|finalizer| finalizer == name)
    }

    /// The change that takes a finalizer away, as long as the object is the one that was read.
    pub fn without_finalizer(&self, name: &str) -> Edit {
        self.with_finalizers(&self.finalizers().filter(|finalizer| *finalizer != name).collect::<Vec<_>>())
    }

    /// The change that adds a finalizer, as long as the object is the one that was read.
    pub fn with_finalizer(&self, name: &str) -> Edit {
        self.with_finalizers(&self.finalizers().chain([name]).collect::<Vec<_>>())
    }

    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.metadata.finalizers.iter().flatten().map(String::as_str)
    }

    fn with_finalizers(&self, all: &[&str]) -> Edit {
        Edit::merge(serde_json::json!({"metadata": {
            "uid": self.uid(), "resourceVersion": self.version(), "finalizers": all,
        }}))
    }
}

/// The owner that manages an object.
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// A time as the API writes it: whole seconds.
pub fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl<'de, S, T> Deserialize<'de> for View<S, T>
where
    S: DeserializeOwned + Default,
    T: DeserializeOwned + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::<S, T>::deserialize(deserializer)?;
        Ok(Self {
            metadata: raw.metadata.into(),
            spec: raw.spec.unwrap_or_default(),
            status: raw.status.unwrap_or_default(),
        })
    }
}

#[derive(serde::Deserialize)]
struct Raw<S, T> {
    #[serde(default)]
    metadata: Metadata,
    spec: Option<S>,
    status: Option<T>,
}

/// `metadata` but for its managed fields, which are most of its bytes.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
}

/// What kubectl writes of a whole manifest into an annotation; nobody here reads it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl From<Metadata> for ObjectMeta {
    fn from(mut metadata: Metadata) -> Self {
        if let Some(annotations) = &mut metadata.annotations {
            annotations.remove(LAST_APPLIED);
        }
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: metadata.owner_references,
            finalizers: metadata.finalizers,
            ..Self::default()
        }
    }
}

impl<S, T> kube::Resource for View<S, T> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// A part of an object that somebody else wrote: read, or why it cannot be. One bad object must not spoil a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<T>(pub Result<T, String>);

impl<T: Default> Default for Checked<T> {
    fn default() -> Self {
        Self(Ok(T::default()))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Checked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(serde_json::from_value(value).map_err(|error| error.to_string())))
    }
}

/// A field that is as good as absent if it cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loose<T>(pub T);

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(serde_json::from_value(value).unwrap_or_default()))
    }
}

/// A part of an object that nobody reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A condition, as most kinds have them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// `Ready` and the like.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word for machines.
    pub reason: Option<String>,
    /// When `status` last changed.
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// True if it holds.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Since when it is so.
    pub fn since(&self) -> Option<Timestamp> {
        self.last_transition_time.as_ref().map(|time| time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_of_the_wrong_type_is_an_error_of_that_part_only() {
        type Numbered = View<Checked<BTreeMap<String, i64>>, Loose<Vec<String>>>;
        let object = json!({"metadata": {"name": "a"}, "spec": {"x": "one"}, "status": {"not": "a list"}});
        let view: Numbered = serde_json::from_value(object).unwrap();
        assert_eq!(view.name(), "a");
        assert!(view.spec.0.unwrap_err().contains("one"));
        assert_eq!(view.status.0, Vec::<String>::new());
        let view: Numbered = serde_json::from_value(json!({"metadata": {}, "spec": null})).unwrap();
        assert_eq!(view.spec.0, Ok(BTreeMap::new()));
    }

    #[test]
    fn a_finalizer_is_taken_away_under_the_version_that_was_read() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["a", "b"]}});
        let view: View = serde_json::from_value(object).unwrap();
        assert_eq!(
            *view.without_finalizer("a").body,
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["b"]}})
        );
    }
}
