//! Shapes and documents of custom kinds, from the schemas in their definitions.

use super::components::{
    Components, finish, kind_name, list_name, list_of, meta_components, name_kind, reference,
};
use super::openapi::{Document, add_paths, path_of};
use super::types::{Builder, ListRelation, Shape, ShapeId, Types};
use super::{ListMerge, OBJECT_META};
use crate::custom::{Definition, ListType, Schema, Type};
use crate::registry::Resource;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

impl Types {
    /// The graph of one custom kind. Values other than objects and lists are free in it: whether they are right is
    /// for the schema itself to say, in its own words.
    pub(crate) fn custom<'s>(
        group: &str,
        kind: &str,
        versions: impl Iterator<Item = (&'s str, &'s Schema)>,
    ) -> Self {
        let mut types = Self { shapes: vec![Shape::Any], kinds: HashMap::new(), atomic: HashSet::new() };
        let components = meta_components();
        let metadata = Builder { types: &mut types, components: &components, known: HashMap::new() }
            .component(OBJECT_META);
        for (version, schema) in versions {
            let root = Structural { types: &mut types, metadata }.node(schema, true);
            types.kinds.insert(super::components::custom_kind_name(group, version, kind), root);
        }
        types
    }
}

struct Structural<'a> {
    types: &'a mut Types,
    /// Shape of metadata.
    metadata: ShapeId,
}

impl Structural<'_> {
    fn node(&mut self, schema: &Schema, is_object_of_kubernetes: bool) -> ShapeId {
        let shape = if schema.kind == Some(Type::Array) {
            let item = schema.items.as_ref().map_or(0, |items| self.node(items, false));
            Shape::List(item, relation(&schema.list_type))
        } else if let Some(values) = &schema.additional {
            Shape::Map(self.node(values, false))
        } else if schema.kind == Some(Type::Object) || !schema.properties.is_empty() {
            self.object(schema, is_object_of_kubernetes || schema.embedded)
        } else {
            Shape::Any
        };
        self.types.shapes.push(shape);
        let id = self.types.shapes.len() - 1;
        if schema.map_atomic {
            self.types.atomic.insert(id);
        }
        id
    }

    fn object(&mut self, schema: &Schema, is_object_of_kubernetes: bool) -> Shape {
        let mut fields: BTreeMap<String, ShapeId> =
            schema.properties.iter().map(|(name, schema)| (name.clone(), self.node(schema, false))).collect();
        if is_object_of_kubernetes {
            fields.insert("apiVersion".to_owned(), 0);
            fields.insert("kind".to_owned(), 0);
            fields.insert("metadata".to_owned(), self.metadata);
        }
        if schema.preserve_unknown { Shape::Open(fields) } else { Shape::Object(fields) }
    }
}

fn relation(list: &ListType) -> ListRelation {
    let keys = match list {
        ListType::Map(keys) => keys.iter().map(|key| key.as_str().into()).collect(),
        ListType::Atomic | ListType::Set => Box::default(),
    };
    ListRelation { patch: ListMerge::Atomic, keys, is_set: *list == ListType::Set }
}

/// Documents of custom kinds, by their paths.
pub(crate) fn documents<'r>(resources: impl Iterator<Item = &'r Resource>) -> BTreeMap<String, Document> {
    let mut parts: BTreeMap<String, (Components, Map<String, Value>)> = BTreeMap::new();
    for resource in resources {
        let Some(definition) = resource.custom else { continue };
        for version in resource.versions {
            let (components, paths) = parts
                .entry(path_of(resource.group, version))
                .or_insert_with(|| (meta_components(), Map::new()));
            add_kind(resource, version, definition, components);
            add_paths(resource, resource.group, version, paths);
        }
    }
    let written = |(path, (components, paths))| {
        let document = json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes CRD Swagger", "version": env!("CARGO_PKG_VERSION")},
            "paths": paths,
            "components": {"schemas": components},
        });
        (path, Document::new(&document))
    };
    parts.into_iter().map(written).collect()
}

fn add_kind(resource: &Resource, version: &str, definition: &Definition, components: &mut Components) {
    let mut schema = definition.version(version).map(|v| v.written.clone()).unwrap_or_default();
    if let Some(schema) = schema.as_object_mut() {
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert(
                "apiVersion".to_owned(),
                json!({"type": "string", "description": "Version of this form of the object."}),
            );
            properties
                .insert("kind".to_owned(), json!({"type": "string", "description": "Kind of the object."}));
            properties.insert(
                "metadata".to_owned(),
                json!({"description": "Name, labels and what else all objects have.", "allOf": [reference(OBJECT_META)]}),
            );
        }
    }
    let (name, list) = (kind_name(resource, version), list_name(resource, version));
    components.insert(name.clone(), schema);
    let mut list_schema = list_of(&name);
    finish(&list, &mut list_schema);
    components.insert(list.clone(), list_schema);
    for (name, kind) in [(name, resource.kind.to_owned()), (list, format!("{}List", resource.kind))] {
        name_kind(components, &name, json!([{"group": resource.group, "version": version, "kind": kind}]));
    }
}
