//! The types of built-in kinds, as server-side apply sees them.

use super::types::{Shape, ShapeId, Types, types};
use crate::kinds;
use crate::ownership::{FieldType, Relation, Versions};
use crate::registry::{Resource, api_version};
use serde_json::{Value, json};

/// A shape of the graph.
#[derive(Clone, Copy)]
pub struct ShapeType {
    types: &'static Types,
    id: ShapeId,
}

impl std::fmt::Debug for ShapeType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.types.shape(self.id).fmt(f)
    }
}

impl ShapeType {
    fn at(self, id: ShapeId) -> Self {
        Self { id, ..self }
    }
}

impl FieldType for ShapeType {
    fn relation(&self) -> Relation<'_> {
        if self.types.is_atomic(self.id) {
            return Relation::Whole;
        }
        match self.types.shape(self.id) {
            Shape::Any => Relation::Unknown,
            Shape::Map(_) | Shape::Object(_) | Shape::Open(_) => Relation::Fields,
            Shape::List(_, list) if !list.keys.is_empty() => Relation::Keyed(&list.keys),
            Shape::List(_, list) if list.is_set => Relation::Set,
            _ => Relation::Whole,
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        match self.types.shape(self.id) {
            Shape::Object(fields) | Shape::Open(fields) => fields.get(name).map(|id| self.at(*id)),
            _ => None,
        }
    }

    fn element(&self) -> Option<Self> {
        match self.types.shape(self.id) {
            Shape::Map(value) => Some(self.at(*value)),
            Shape::List(entry, _) => Some(self.at(*entry)),
            _ => None,
        }
    }

    fn key_default(&self, key: &str) -> Option<Value> {
        // Of all keys of all lists, only the protocol of a port has a default.
        (key == "protocol" && self.field(key).is_some()).then(|| json!("TCP"))
    }
}

/// The served versions of a built-in kind.
#[derive(Debug, Clone, Copy)]
pub struct KindVersions {
    resource: &'static Resource,
}

impl KindVersions {
    /// The versions of a resource.
    pub fn of(resource: &'static Resource) -> Self {
        Self { resource }
    }

    /// The version as the registry spells it.
    fn spelled(&self, wanted: &str) -> Option<&'static str> {
        self.resource.versions.iter().copied().find(|v| api_version(self.resource.group, v) == wanted)
    }
}

impl Versions for KindVersions {
    type Type = ShapeType;

    fn type_of(&self, api_version: &str) -> Option<ShapeType> {
        let types = types(self.resource);
        let id = types.root_id(self.resource, self.spelled(api_version)?)?;
        Some(ShapeType { types, id })
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Option<Value> {
        let (from, to) = (self.spelled(from)?, self.spelled(to)?);
        let hub = if from == self.resource.hub {
            object.clone()
        } else {
            kinds::to_hub(self.resource, from, object.clone()).ok()?
        };
        Some(kinds::from_hub(self.resource, to, &hub))
    }
}
