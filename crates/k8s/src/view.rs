//! Objects as they come over the wire, reduced to what scheduling reads.

use crate::error::{ObjectKind, Problems};
use crate::gangs::JobRef;
use crate::lenient::{Lenient, Shape, Shaped};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time as ApiTime};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use tutti_model::{Labels, ModelError, ObjectKey, Text, Time};

/// A kind of object that can be viewed.
pub trait Kind: Clone + fmt::Debug + Send + Sync + 'static {
    /// What is read of `spec`.
    type Spec: Shaped + DeserializeOwned + Clone + fmt::Debug + Send + Sync;
    /// What is read of `status`.
    type Status: Shaped + DeserializeOwned + Clone + fmt::Debug + Send + Sync;
    /// What must be known at run time to address it.
    type Dynamic: Send + Sync + 'static;
    /// Whether it lives in a namespace.
    type Scope;

    /// How it is addressed.
    fn names(dynamic: &Self::Dynamic) -> Names<'_>;
}

/// How a kind is addressed.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// API group; empty for the core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name in paths.
    pub plural: &'a str,
}

/// One object. It is for reading only: written back, it would lose every field that is not read here.
#[derive(Debug, Clone)]
pub struct View<K: Kind> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) metadata_errors: Vec<ModelError>,
    pub(crate) spec: Lenient<K::Spec>,
    pub(crate) status: Lenient<K::Status>,
}

impl<K: Kind> View<K> {
    /// Namespace (empty for objects without one) and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(
            self.metadata.namespace.as_deref().unwrap_or_default(),
            self.metadata.name.as_deref().unwrap_or_default(),
        )
    }

    /// Identity over time.
    pub fn uid(&self) -> Text {
        self.metadata.uid.as_deref().unwrap_or_default().into()
    }

    /// The resource version that was read.
    pub fn version(&self) -> Text {
        self.metadata.resource_version.as_deref().unwrap_or_default().into()
    }

    pub(crate) fn created(&self) -> Time {
        self.metadata
            .creation_timestamp
            .as_ref()
            .map_or(Time::default(), |time| Time(time.0.as_millisecond()))
    }

    pub(crate) fn labels(&self) -> Labels {
        let labels = self.metadata.labels.iter().flatten();
        labels.map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    /// True if a controller looks after it that makes it again if it is deleted. The node that a static pod belongs
    /// to does not count.
    pub(crate) fn is_controlled(&self) -> bool {
        let owners = self.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|owner| owner.controller == Some(true) && owner.kind != "Node")
    }

    /// Identity of the controller that it belongs to.
    pub(crate) fn controller_uid(&self) -> Option<Text> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str().into())
    }

    /// The Job that it belongs to.
    pub(crate) fn job(&self) -> Option<JobRef> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        let job = owners.find(|owner| owner.controller == Some(true)).filter(|owner| owner.kind == "Job")?;
        Some(JobRef { uid: job.uid.as_str().into(), name: job.name.as_str().into() })
    }

    /// The controller that it belongs to, if it is of a kind that keeps several pods that do the same.
    pub(crate) fn replicator(&self) -> Option<(ObjectKind, ObjectKey)> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let kinds = [ObjectKind::ReplicationController, ObjectKind::ReplicaSet, ObjectKind::StatefulSet];
        let kind = kinds.into_iter().find(|kind| kind.api() == Some((&owner.api_version, &owner.kind)))?;
        Some((kind, ObjectKey::new(self.key().namespace, owner.name.as_str())))
    }

    /// An annotation, if it is one of those that are read.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Problems of the metadata, to which the caller adds its own.
    pub(crate) fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        for error in &self.metadata_errors {
            problems.push(error.clone());
        }
        for (field, value) in [("metadata.name", &self.metadata.name), ("metadata.uid", &self.metadata.uid)] {
            if value.as_ref().is_none_or(String::is_empty) {
                problems.push(ModelError::new(field, "is missing"));
            }
        }
        problems
    }
}

/// The object itself; its fields are lenient, so this fails on broken JSON only.
#[derive(serde::Deserialize)]
#[serde(default, bound(deserialize = ""))]
struct Raw<K: Kind> {
    metadata: Lenient<Metadata>,
    spec: Lenient<K::Spec>,
    status: Lenient<K::Status>,
}

impl<K: Kind> Default for Raw<K> {
    fn default() -> Self {
        Self { metadata: Lenient::Absent, spec: Lenient::Absent, status: Lenient::Absent }
    }
}

impl<K: Kind> Shaped for Raw<K> {
    const SHAPE: Shape = Shape::Object;
}

impl<'de, K: Kind> Deserialize<'de> for View<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut errors = Vec::new();
        let raw = match Lenient::<Raw<K>>::deserialize(deserializer)? {
            Lenient::Read(raw) => raw,
            Lenient::Absent => Raw::default(),
            Lenient::Wrong(message) => {
                errors.push(ModelError::new("(the object)", message.as_ref()));
                Raw::default()
            }
        };
        let metadata = Metadata::read(raw.metadata, &mut errors);
        Ok(Self { metadata, metadata_errors: errors, spec: raw.spec, status: raw.status })
    }
}

/// What is read of `metadata`. Managed fields and other people's annotations are most of its bytes, and are left
/// out.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    name: Lenient<String>,
    namespace: Lenient<String>,
    uid: Lenient<String>,
    resource_version: Lenient<String>,
    generation: Lenient<i64>,
    creation_timestamp: Lenient<String>,
    deletion_timestamp: Lenient<String>,
    labels: Lenient<BTreeMap<String, Lenient<String>>>,
    annotations: Lenient<OwnAnnotations>,
    owner_references: Lenient<Vec<Lenient<OwnerView>>>,
}

/// True if an annotation is read at all: those of ours, their synonyms, those of storage, and the one by which Jobs say
/// that somebody else sees to their groups.
pub fn is_read_annotation(name: &str) -> bool {
    crate::topology::is_read_annotation(name)
        || crate::storage::ANNOTATIONS.contains(&name)
        || name == crate::gangs::DELEGATED_ANNOTATION
}

/// Annotations that are read; all others are skipped.
#[derive(Debug, Clone, Default)]
struct OwnAnnotations(BTreeMap<String, Lenient<String>>);

impl Shaped for OwnAnnotations {
    const SHAPE: Shape = Shape::Object;
}

impl<'de> Deserialize<'de> for OwnAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Own;
        impl<'de> Visitor<'de> for Own {
            type Value = OwnAnnotations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OwnAnnotations, A::Error> {
                let mut own = BTreeMap::new();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if is_read_annotation(&key) {
                        own.insert(key.into_owned(), map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(OwnAnnotations(own))
            }
        }
        deserializer.deserialize_map(Own)
    }
}

/// One of `metadata.ownerReferences`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnerView {
    api_version: Lenient<String>,
    kind: Lenient<String>,
    name: Lenient<String>,
    uid: Lenient<String>,
    controller: Lenient<bool>,
}

impl Shaped for OwnerView {
    const SHAPE: Shape = Shape::Object;
}

impl Shaped for Metadata {
    const SHAPE: Shape = Shape::Object;
}

impl Metadata {
    /// What could be read; the rest is added to the errors.
    pub(crate) fn read(metadata: Lenient<Self>, errors: &mut Vec<ModelError>) -> ObjectMeta {
        match metadata {
            Lenient::Read(metadata) => metadata.into_meta(errors),
            Lenient::Absent => ObjectMeta::default(),
            Lenient::Wrong(message) => {
                errors.push(ModelError::new("metadata", message.as_ref()));
                ObjectMeta::default()
            }
        }
    }

    fn into_meta(self, errors: &mut Vec<ModelError>) -> ObjectMeta {
        let mut meta = ObjectMeta {
            name: take(self.name, "metadata.name", errors),
            namespace: take(self.namespace, "metadata.namespace", errors),
            uid: take(self.uid, "metadata.uid", errors),
            resource_version: take(self.resource_version, "metadata.resourceVersion", errors),
            generation: take(self.generation, "metadata.generation", errors),
            ..ObjectMeta::default()
        };
        meta.creation_timestamp = timestamp(self.creation_timestamp, "metadata.creationTimestamp", errors);
        // Being deleted is what counts; an unreadable time of it must not hide that.
        let deleted = self.deletion_timestamp.is_present();
        meta.deletion_timestamp = timestamp(self.deletion_timestamp, "metadata.deletionTimestamp", errors)
            .or(deleted.then_some(ApiTime(Timestamp::UNIX_EPOCH)));
        if let Some(labels) = take(self.labels, "metadata.labels", errors) {
            let mut read = BTreeMap::new();
            for (key, value) in labels {
                if let Some(value) = take(value, "metadata.labels", errors) {
                    read.insert(key, value);
                }
            }
            meta.labels = Some(read);
        }
        if let Some(OwnAnnotations(annotations)) = take(self.annotations, "metadata.annotations", errors) {
            let read = annotations.into_iter().filter_map(|(key, value)| {
                let path = format!("metadata.annotations[{key}]");
                Some((key, take(value, &path, errors)?))
            });
            meta.annotations = Some(read.collect());
        }
        // Of owners only the controller matters, and of it only who it is. What is not an owner as it
        // should be is none.
        let owners = match self.owner_references {
            Lenient::Read(owners) => owners,
            _ => Vec::new(),
        };
        let is_controller = |owner: &OwnerView| matches!(owner.controller, Lenient::Read(true));
        meta.owner_references = Some(
            owners
                .into_iter()
                .filter_map(|owner| match owner {
                    Lenient::Read(owner) if is_controller(&owner) => Some(OwnerReference {
                        controller: Some(true),
                        api_version: text_of(owner.api_version),
                        kind: text_of(owner.kind),
                        name: text_of(owner.name),
                        uid: text_of(owner.uid),
                        ..OwnerReference::default()
                    }),
                    _ => None,
                })
                .collect(),
        );
        meta
    }
}

fn text_of(field: Lenient<String>) -> String {
    match field {
        Lenient::Read(text) => text,
        _ => String::new(),
    }
}

fn take<T>(field: Lenient<T>, path: &str, errors: &mut Vec<ModelError>) -> Option<T> {
    match field {
        Lenient::Absent => None,
        Lenient::Read(value) => Some(value),
        Lenient::Wrong(message) => {
            errors.push(ModelError::new(path, message.as_ref()));
            None
        }
    }
}

fn timestamp(field: Lenient<String>, path: &str, errors: &mut Vec<ModelError>) -> Option<ApiTime> {
    let text = take(field, path, errors)?;
    match text.parse::<Timestamp>() {
        Ok(time) => Some(ApiTime(time)),
        Err(_) => {
            let shown: String = text.chars().take(40).collect();
            errors.push(ModelError::new(path, format!("{shown:?} is not a time")));
            None
        }
    }
}

impl<K: Kind> kube::Resource for View<K> {
    type DynamicType = K::Dynamic;
    type Scope = K::Scope;

    fn kind(dynamic: &K::Dynamic) -> Cow<'_, str> {
        K::names(dynamic).kind.into()
    }

    fn group(dynamic: &K::Dynamic) -> Cow<'_, str> {
        K::names(dynamic).group.into()
    }

    fn version(dynamic: &K::Dynamic) -> Cow<'_, str> {
        K::names(dynamic).version.into()
    }

    fn plural(dynamic: &K::Dynamic) -> Cow<'_, str> {
        K::names(dynamic).plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
