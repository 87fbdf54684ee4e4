//! The schema of a custom kind, read once: what `openAPIV3Schema` says, as values can be checked against it.
//!
//! Only structural schemas are read. Rules in CEL (`x-kubernetes-validations`) are kept in the definition and shown
//! to clients, but not evaluated.

use crate::error::{Cause, CauseReason};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Largest compiled pattern, so that a definition cannot take the memory of the server.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// What JSON type a value must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// The word in schemas.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|kind| kind.name() == text)
    }
}

/// How the entries of a list relate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Plain values, each once.
    Set,
    /// Objects that these fields tell apart.
    Map(Vec<String>),
}

/// One node of a schema.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Nothing if any type will do.
    pub(crate) kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    /// Fields that are not named are kept.
    pub(crate) preserve_unknown: bool,
    /// The value is an object of Kubernetes with metadata of its own.
    pub(crate) embedded: bool,
    pub(crate) properties: BTreeMap<String, Schema>,
    /// Schema of the values of a map.
    pub(crate) additional: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) list_type: ListType,
    /// Server-side apply replaces the object as a whole.
    pub(crate) map_atomic: bool,
    pub(crate) default: Option<Value>,
    pub(super) limits: Limits,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
}

/// What is asked of a value beyond its type.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) required: Vec<String>,
    pub(super) allowed: Vec<Value>,
    pub(super) minimum: Option<(f64, bool)>,
    pub(super) maximum: Option<(f64, bool)>,
    pub(super) multiple_of: Option<f64>,
    pub(super) length: (Option<u64>, Option<u64>),
    pub(super) items: (Option<u64>, Option<u64>),
    pub(super) properties: (Option<u64>, Option<u64>),
    pub(super) pattern: Option<Regex>,
    pub(super) format: Option<String>,
}

/// Reads the schema of a version; `path` is where it stands in the definition. Everything that is wrong with it is
/// reported, and what is returned then is of no use.
pub(super) fn read(schema: &Value, path: &str, out: &mut Vec<Cause>) -> Schema {
    let mut reader = Reader { out };
    let read = reader.node(schema, path, true);
    if read.kind != Some(Type::Object) {
        reader.complain(
            CauseReason::Required,
            &format!("{path}.type"),
            "Required value: must be object at the root",
        );
    }
    read
}

struct Reader<'a> {
    out: &'a mut Vec<Cause>,
}

impl Reader<'_> {
    fn complain(&mut self, reason: CauseReason, field: &str, message: &str) {
        self.out.push(Cause { reason, field: field.to_owned(), message: message.to_owned() });
    }

    fn forbid(&mut self, field: String, why: &str) {
        self.out.push(Cause { reason: CauseReason::Forbidden, field, message: format!("Forbidden: {why}") });
    }

    /// Reads a node. Nodes that only restrict (`anyOf` and its like) are not structural: they need no type.
    fn node(&mut self, schema: &Value, path: &str, structural: bool) -> Schema {
        let Some(map) = schema.as_object() else {
            self.complain(CauseReason::Required, path, "Required value: schemas are objects");
            return Schema::default();
        };
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let mut node = Schema {
            kind: map.get("type").and_then(Value::as_str).and_then(Type::parse),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            map_atomic: map.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            default: map.get("default").cloned(),
            ..Schema::default()
        };
        self.check_words(map, path, structural, &node);
        self.children(map, path, structural, &mut node);
        node.list_type = self.list_type(map, path, &node);
        node.limits = self.limits(map, path);
        for (name, list) in
            [("allOf", &mut node.all_of), ("anyOf", &mut node.any_of), ("oneOf", &mut node.one_of)]
        {
            let alternatives = map.get(name).and_then(Value::as_array).into_iter().flatten();
            for (index, schema) in alternatives.enumerate() {
                list.push(self.node(schema, &format!("{path}.{name}[{index}]"), false));
            }
        }
        if let Some(default) = &node.default {
            super::values::validate(&node, default, &format!("{path}.default"), self.out);
        }
        node.not = map.get("not").map(|schema| Box::new(self.node(schema, &format!("{path}.not"), false)));
        node
    }

    fn check_words(&mut self, map: &Map<String, Value>, path: &str, structural: bool, node: &Schema) {
        match map.get("type").and_then(Value::as_str) {
            Some("") | None if structural && !node.int_or_string && !node.preserve_unknown => {
                let field = format!("{path}.type");
                self.complain(
                    CauseReason::Required,
                    &field,
                    "Required value: must not be empty for specified object fields",
                );
            }
            Some(kind) if !kind.is_empty() && node.kind.is_none() => {
                let field = format!("{path}.type");
                let message = format!(
                    "Unsupported value: {kind:?}: supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""
                );
                self.complain(CauseReason::NotSupported, &field, &message);
            }
            _ => {}
        }
        if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.complain(CauseReason::Invalid, &field, "Invalid value: false: must be true or undefined");
        }
        if map.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.forbid(
                format!("{path}.uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
        for word in ["$ref", "definitions", "dependencies", "patternProperties", "additionalItems"] {
            if map.get(word).is_some_and(|v| !v.is_null()) {
                self.forbid(format!("{path}.{word}"), &format!("{word} is not supported"));
            }
        }
        if !structural && (map.contains_key("default") || map.contains_key("additionalProperties")) {
            self.forbid(path.to_owned(), "must not have default or additionalProperties to be structural");
        }
    }

    fn children(&mut self, map: &Map<String, Value>, path: &str, structural: bool, node: &mut Schema) {
        let properties = map.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let child = self.node(schema, &format!("{path}.properties[{name}]"), structural);
            node.properties.insert(name.clone(), child);
        }
        match map.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => node.preserve_unknown = true,
            Some(schema) => {
                let child = self.node(schema, &format!("{path}.additionalProperties"), structural);
                node.additional = Some(Box::new(child));
            }
        }
        if !node.properties.is_empty() && node.additional.is_some() {
            let field = format!("{path}.additionalProperties");
            self.forbid(field, "additionalProperties and properties are mutual exclusive");
        }
        match map.get("items") {
            None | Some(Value::Null) => {
                if structural && node.kind == Some(Type::Array) {
                    self.complain(
                        CauseReason::Required,
                        &format!("{path}.items"),
                        "Required value: must be specified",
                    );
                }
            }
            Some(Value::Array(_)) => {
                self.forbid(format!("{path}.items"), "items must be a schema object and not an array");
            }
            Some(schema) => {
                node.items = Some(Box::new(self.node(schema, &format!("{path}.items"), structural)));
            }
        }
    }

    fn list_type(&mut self, map: &Map<String, Value>, path: &str, node: &Schema) -> ListType {
        let keys = map.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
        let keys: Vec<String> = keys.filter_map(Value::as_str).map(str::to_owned).collect();
        match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
            None | Some("atomic") => ListType::Atomic,
            Some("set") => ListType::Set,
            Some("map") => {
                let field = format!("{path}.x-kubernetes-list-map-keys");
                if keys.is_empty() {
                    self.complain(
                        CauseReason::Required,
                        &field,
                        "Required value: must not be empty if x-kubernetes-list-type is map",
                    );
                }
                for key in &keys {
                    let known = node.items.as_ref().is_some_and(|items| items.properties.contains_key(key));
                    if !known {
                        let message =
                            format!("Invalid value: {key:?}: entries must all be names of item properties");
                        self.complain(CauseReason::Invalid, &field, &message);
                    }
                }
                ListType::Map(keys)
            }
            Some(other) => {
                let message =
                    format!("Unsupported value: {other:?}: supported values: \"atomic\", \"map\", \"set\"");
                self.complain(CauseReason::NotSupported, &format!("{path}.x-kubernetes-list-type"), &message);
                ListType::Atomic
            }
        }
    }

    fn limits(&mut self, map: &Map<String, Value>, path: &str) -> Limits {
        let number = |name: &str| map.get(name).and_then(Value::as_f64);
        let count = |name: &str| map.get(name).and_then(Value::as_u64);
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let texts = map.get("required").and_then(Value::as_array).into_iter().flatten();
        let pattern = map.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
        let pattern = pattern.and_then(|text| {
            let compiled = regex::RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
            match compiled {
                Ok(pattern) => Some(pattern),
                Err(_) => {
                    let message = format!(
                        "Invalid value: {text:?}: must be a valid regular expression of reasonable size"
                    );
                    self.complain(CauseReason::Invalid, &format!("{path}.pattern"), &message);
                    None
                }
            }
        });
        Limits {
            required: texts.filter_map(Value::as_str).map(str::to_owned).collect(),
            allowed: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            minimum: number("minimum").map(|n| (n, flag("exclusiveMinimum"))),
            maximum: number("maximum").map(|n| (n, flag("exclusiveMaximum"))),
            multiple_of: number("multipleOf").filter(|n| *n > 0.0),
            length: (count("minLength"), count("maxLength")),
            items: (count("minItems"), count("maxItems")),
            properties: (count("minProperties"), count("maxProperties")),
            pattern,
            format: map.get("format").and_then(Value::as_str).map(str::to_owned),
        }
    }
}
