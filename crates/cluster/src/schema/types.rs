//! The schemas as a compact graph: what strict decoding and patches ask of every write is answered by walking
//! an object and this graph side by side.

use super::components::{self, Components, kind_name, referenced, served};
use super::{ListMerge, lists};
use crate::error::{Cause, CauseReason};
use crate::registry::{PerRelease, Release, Resource};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Index into the shapes of the graph.
pub(super) type ShapeId = usize;

/// What a value may look like.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// Anything: not ours to judge.
    Any,
    Text,
    Time,
    Bool,
    Number,
    Int32,
    Int64,
    IntOrText,
    Quantity,
    List(ShapeId, ListRelation),
    Map(ShapeId),
    Object(BTreeMap<String, ShapeId>),
    /// An object that may have other fields too.
    Open(BTreeMap<String, ShapeId>),
}

/// How the entries of a list relate.
#[derive(Debug, Clone)]
pub(super) struct ListRelation {
    /// To strategic merge patch.
    pub(super) patch: ListMerge,
    /// What tells entries apart for server-side apply; empty for sets, and for lists that it replaces.
    pub(super) keys: Box<[Box<str>]>,
    /// Server-side apply merges it as a set of plain values.
    pub(super) is_set: bool,
}

impl ListRelation {
    /// The list is replaced as a whole.
    fn atomic() -> Self {
        Self { patch: ListMerge::Atomic, keys: Box::default(), is_set: false }
    }
}

impl Shape {
    fn name(&self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Text => "string",
            Self::Time => "RFC 3339 time",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::Int32 => "32-bit integer",
            Self::Int64 => "integer",
            Self::IntOrText => "integer or string",
            Self::Quantity => "quantity (string or number)",
            Self::List(..) => "array",
            Self::Map(_) | Self::Object(_) | Self::Open(_) => "object",
        }
    }
}

/// All types of all served versions.
#[derive(Debug)]
pub(crate) struct Types {
    pub(super) shapes: Vec<Shape>,
    /// Kinds by their full name.
    pub(super) kinds: HashMap<String, ShapeId>,
    /// Objects and maps that server-side apply replaces as a whole.
    pub(super) atomic: HashSet<ShapeId>,
}

/// Types whose content is free.
const FREE: [&str; 5] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
];

/// A type that may be another one or a list of it, of which only the former is of use here.
const SINGLE: (&str, &str) = (
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
);

/// The graph that a resource is in; made on first use.
pub(super) fn types(resource: &Resource) -> &'static Types {
    static TYPES: PerRelease<Types> = PerRelease::new();
    match resource.custom {
        Some(definition) => &definition.types,
        None => TYPES.get_or_init(resource.release, || Types::build(resource.release)),
    }
}

impl Types {
    fn build(release: Release) -> Self {
        let mut types = Self { shapes: vec![Shape::Any], kinds: HashMap::new(), atomic: HashSet::new() };
        for (group, version) in super::group_versions(release) {
            let components = components::of(release, group, version);
            Builder { types: &mut types, components: &components, known: HashMap::new() }
                .add_kinds(release, group, version);
        }
        types
    }

    pub(super) fn shape(&self, id: ShapeId) -> &Shape {
        // Ids come only from `Builder::push`; the first shape accepts everything, should that ever change.
        self.shapes.get(id).unwrap_or(&Shape::Any)
    }

    fn root(&self, resource: &Resource, version: &str) -> Option<&Shape> {
        self.root_id(resource, version).map(|id| self.shape(id))
    }

    pub(super) fn root_id(&self, resource: &Resource, version: &str) -> Option<ShapeId> {
        self.kinds.get(&kind_name(resource, version)).copied()
    }

    /// True if server-side apply replaces values of this shape as a whole.
    pub(super) fn is_atomic(&self, id: ShapeId) -> bool {
        self.atomic.contains(&id)
    }

    /// How strategic merge patch treats the list at this path.
    pub(super) fn list_merge(&self, resource: &Resource, version: &str, path: &[&str]) -> ListMerge {
        let mut shape = self.root(resource, version).unwrap_or(&Shape::Any);
        for name in path {
            // Entries are skipped in paths: a name after a list is a field of its entries.
            while let Shape::List(item, _) = shape {
                shape = self.shape(*item);
            }
            let next = match shape {
                Shape::Object(fields) | Shape::Open(fields) => fields.get(*name),
                Shape::Map(value) => Some(value),
                _ => None,
            };
            let Some(next) = next else {
                return ListMerge::Atomic;
            };
            shape = self.shape(*next);
        }
        match shape {
            Shape::List(_, relation) => relation.patch,
            _ => ListMerge::Atomic,
        }
    }

    /// Visits every value together with its shape, and reports fields without one.
    fn walk<'v>(&self, shape: &Shape, value: &'v Value, path: &mut Path<'v>, visitor: &mut impl Visitor) {
        if value.is_null() {
            return;
        }
        if !visitor.value(shape, value, path) {
            return;
        }
        match (shape, value) {
            (Shape::Object(fields) | Shape::Open(fields), Value::Object(object)) => {
                for (name, value) in object {
                    path.steps.push(Step::Field(name));
                    match fields.get(name) {
                        Some(field) => self.walk(self.shape(*field), value, path, visitor),
                        None if matches!(shape, Shape::Open(_)) => {}
                        None => visitor.unknown(path),
                    }
                    path.steps.pop();
                }
            }
            (Shape::Map(item), Value::Object(object)) => {
                for (key, value) in object {
                    path.steps.push(Step::Key(key));
                    self.walk(self.shape(*item), value, path, visitor);
                    path.steps.pop();
                }
            }
            (Shape::List(item, _), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    path.steps.push(Step::Index(index));
                    self.walk(self.shape(*item), value, path, visitor);
                    path.steps.pop();
                }
            }
            _ => {}
        }
    }

    /// Paths of fields that no schema has.
    pub(super) fn unknown_fields(&self, resource: &Resource, version: &str, object: &Value) -> Vec<String> {
        let mut unknown = UnknownFields(Vec::new());
        if let Some(root) = self.root(resource, version) {
            self.walk(root, object, &mut Path::default(), &mut unknown);
        }
        unknown.0
    }

    /// Values of the wrong type.
    pub(super) fn wrong_types(&self, resource: &Resource, version: &str, object: &Value) -> Vec<Cause> {
        let mut wrong = WrongTypes(Vec::new());
        if let Some(root) = self.root(resource, version) {
            self.walk(root, object, &mut Path::default(), &mut wrong);
        }
        wrong.0
    }

    /// Removes fields that no schema has.
    pub(super) fn prune(&self, resource: &Resource, version: &str, object: &mut Value) {
        let drop_unknown = &mut |shape: &Shape, value: &mut Value| {
            if let (Shape::Object(fields), Value::Object(object)) = (shape, value) {
                object.retain(|name, _| fields.contains_key(name));
            }
        };
        if let Some(root) = self.root(resource, version) {
            self.change(root, object, drop_unknown);
        }
    }

    /// Calls `change` for every quantity.
    pub(super) fn for_each_quantity(
        &self,
        resource: &Resource,
        version: &str,
        object: &mut Value,
        change: fn(&mut Value),
    ) {
        let only_quantities = &mut |shape: &Shape, value: &mut Value| {
            if matches!(shape, Shape::Quantity) {
                change(value);
            }
        };
        if let Some(root) = self.root(resource, version) {
            self.change(root, object, only_quantities);
        }
    }

    /// Calls `change` for every value that has a shape, from the outside in.
    fn change(&self, shape: &Shape, value: &mut Value, change: &mut impl FnMut(&Shape, &mut Value)) {
        change(shape, value);
        match (shape, value) {
            (Shape::Object(fields) | Shape::Open(fields), Value::Object(object)) => {
                for (name, value) in object {
                    if let Some(field) = fields.get(name) {
                        self.change(self.shape(*field), value, change);
                    }
                }
            }
            (Shape::Map(item), Value::Object(object)) => {
                for value in object.values_mut() {
                    self.change(self.shape(*item), value, change);
                }
            }
            (Shape::List(item, _), Value::Array(list)) => {
                for value in list {
                    self.change(self.shape(*item), value, change);
                }
            }
            _ => {}
        }
    }
}

/// What a walk is for.
trait Visitor {
    /// A value; false to stay out of it.
    fn value(&mut self, shape: &Shape, value: &Value, path: &Path<'_>) -> bool;
    /// A field without a shape.
    fn unknown(&mut self, path: &Path<'_>);
}

struct UnknownFields(Vec<String>);

impl Visitor for UnknownFields {
    fn value(&mut self, _: &Shape, _: &Value, _: &Path<'_>) -> bool {
        true
    }

    fn unknown(&mut self, path: &Path<'_>) {
        self.0.push(path.to_text());
    }
}

struct WrongTypes(Vec<Cause>);

impl Visitor for WrongTypes {
    fn value(&mut self, shape: &Shape, value: &Value, path: &Path<'_>) -> bool {
        let right = fits(shape, value);
        if !right {
            self.0.push(Cause {
                reason: CauseReason::TypeInvalid,
                field: path.to_text(),
                message: format!("Invalid value: {}: must be of type {}", shown(value), shape.name()),
            });
        }
        right
    }

    fn unknown(&mut self, _: &Path<'_>) {}
}

fn fits(shape: &Shape, value: &Value) -> bool {
    match shape {
        Shape::Any => true,
        Shape::Text => value.is_string(),
        Shape::Time => value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
        Shape::Bool => value.is_boolean(),
        Shape::Number => value.is_number(),
        Shape::Int32 => value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        Shape::Int64 => value.is_i64(),
        Shape::IntOrText => value.is_string() || fits(&Shape::Int32, value),
        Shape::Quantity => value.is_string() || value.is_number(),
        Shape::List(..) => value.is_array(),
        Shape::Map(_) | Shape::Object(_) | Shape::Open(_) => value.is_object(),
    }
}

/// The value for a message; large ones are not worth repeating.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        other => other.to_string(),
    }
}

/// Where a walk is.
#[derive(Default)]
struct Path<'v> {
    steps: Vec<Step<'v>>,
}

enum Step<'v> {
    Field(&'v str),
    Key(&'v str),
    Index(usize),
}

impl Path<'_> {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for step in &self.steps {
            match step {
                Step::Field(name) if out.is_empty() => out.push_str(name),
                Step::Field(name) => out.push_str(&format!(".{name}")),
                Step::Key(key) => out.push_str(&format!("[{key}]")),
                Step::Index(index) => out.push_str(&format!("[{index}]")),
            }
        }
        out
    }
}

/// Turns the schemas of one version into shapes.
pub(super) struct Builder<'a> {
    pub(super) types: &'a mut Types,
    pub(super) components: &'a Components,
    /// Shapes of components; a component gets its id before its fields are read, since types may be recursive.
    pub(super) known: HashMap<String, ShapeId>,
}

impl Builder<'_> {
    fn add_kinds(&mut self, release: Release, group: &str, version: &str) {
        for (resource, spelled) in served(release, group, version) {
            let name = kind_name(resource, spelled);
            let id = self.component(&name);
            self.types.kinds.insert(name, id);
        }
    }

    fn push(&mut self, shape: Shape) -> ShapeId {
        self.types.shapes.push(shape);
        self.types.shapes.len() - 1
    }

    pub(super) fn component(&mut self, name: &str) -> ShapeId {
        let name = if name == SINGLE.0 { SINGLE.1 } else { name };
        if let Some(id) = self.known.get(name) {
            return *id;
        }
        let id = self.push(Shape::Any);
        self.known.insert(name.to_owned(), id);
        if lists::is_atomic_object(name) {
            self.types.atomic.insert(id);
        }
        let components = self.components;
        if let Some(schema) = components.get(name)
            && !FREE.contains(&name)
        {
            let shape = self.shape(name, schema);
            if let Some(place) = self.types.shapes.get_mut(id) {
                *place = shape;
            }
        }
        id
    }

    fn field(&mut self, owner: &str, field: &str, schema: &Value) -> ShapeId {
        if let Some(name) = referenced(schema) {
            return self.component(name);
        }
        let shape = match (self.shape(owner, schema), lists::rule(owner, field)) {
            (Shape::List(item, _), Some(rule)) => {
                let keys = rule.map_keys.iter().map(|key| (*key).into()).collect();
                Shape::List(item, ListRelation { patch: rule.patch, keys, is_set: rule.is_set })
            }
            (other, _) => other,
        };
        let id = self.push(shape);
        if lists::is_atomic_map(owner, field) {
            self.types.atomic.insert(id);
        }
        id
    }

    fn shape(&mut self, owner: &str, schema: &Value) -> Shape {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        if schema.get("oneOf").is_some() {
            return if text("format") == "int-or-string" { Shape::IntOrText } else { Shape::Quantity };
        }
        match (text("type"), text("format")) {
            ("string", "date-time") => Shape::Time,
            ("string", _) => Shape::Text,
            ("boolean", _) => Shape::Bool,
            ("number", _) => Shape::Number,
            ("integer", "int32") => Shape::Int32,
            ("integer", _) => Shape::Int64,
            ("array", _) => {
                let item = schema.get("items").map_or(0, |items| self.field(owner, "", items));
                Shape::List(item, ListRelation::atomic())
            }
            ("object", _) => match schema.get("additionalProperties") {
                Some(values) => Shape::Map(self.field(owner, "", values)),
                None => self.object(owner, schema),
            },
            _ => Shape::Any,
        }
    }

    fn object(&mut self, owner: &str, schema: &Value) -> Shape {
        let properties = schema.get("properties").and_then(Value::as_object);
        let fields = properties.into_iter().flatten();
        Shape::Object(fields.map(|(name, schema)| (name.clone(), self.field(owner, name, schema))).collect())
    }
}
