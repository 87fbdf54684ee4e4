//! Objects without a `spec`: what they say is in the object itself.

use crate::error::Problems;
use crate::lenient::{Lenient, Shape, Shaped};
use crate::view::{Metadata, Names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ClusterResourceScope;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use std::borrow::Cow;
use std::fmt;
use tutti_model::{ModelError, ObjectKey, Text};

/// A kind of such objects, none of which is in a namespace.
pub trait FlatKind: Clone + fmt::Debug + Send + Sync + 'static {
    /// What is read of the object besides its metadata.
    type Fields: DeserializeOwned + Clone + Default + fmt::Debug + Send + Sync;

    /// How it is addressed.
    const NAMES: Names<'static>;
}

/// One object. It is for reading only, like a [`View`].
///
/// [`View`]: crate::view::View
#[derive(Debug, Clone)]
pub struct FlatView<K: FlatKind> {
    metadata: ObjectMeta,
    metadata_errors: Vec<ModelError>,
    pub(crate) fields: K::Fields,
}

impl<K: FlatKind> FlatView<K> {
    /// Its name.
    pub fn name(&self) -> Text {
        self.metadata.name.as_deref().unwrap_or_default().into()
    }

    /// Identity over time.
    pub fn uid(&self) -> Text {
        self.metadata.uid.as_deref().unwrap_or_default().into()
    }

    /// The name, as that of an object in no namespace.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new("", self.name())
    }

    /// Problems of the metadata, to which the caller adds its own.
    pub(crate) fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        for error in &self.metadata_errors {
            problems.push(error.clone());
        }
        problems
    }
}

/// The object itself; its fields are lenient, so this fails on broken JSON only.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = ""))]
struct Raw<K: FlatKind> {
    #[serde(default)]
    metadata: Lenient<Metadata>,
    #[serde(flatten)]
    fields: K::Fields,
}

impl<K: FlatKind> Shaped for Raw<K> {
    const SHAPE: Shape = Shape::Object;
}

impl<'de, K: FlatKind> Deserialize<'de> for FlatView<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut errors = Vec::new();
        let raw = match Lenient::<Raw<K>>::deserialize(deserializer)? {
            Lenient::Read(raw) => raw,
            Lenient::Absent => Raw { metadata: Lenient::Absent, fields: K::Fields::default() },
            Lenient::Wrong(message) => {
                errors.push(ModelError::new("(the object)", message.as_ref()));
                Raw { metadata: Lenient::Absent, fields: K::Fields::default() }
            }
        };
        let metadata = Metadata::read(raw.metadata, &mut errors);
        Ok(Self { metadata, metadata_errors: errors, fields: raw.fields })
    }
}

impl<K: FlatKind> kube::Resource for FlatView<K> {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::NAMES.kind.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        K::NAMES.group.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        K::NAMES.version.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::NAMES.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
