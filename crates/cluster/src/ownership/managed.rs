//! The writers of an object and what each of them manages: `metadata.managedFields`.

use super::field_set::FieldSet;
use super::intern;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How a writer came to manage fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who writes, and through what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writer {
    /// Name that the client gave itself.
    pub manager: Box<str>,
    /// How it writes.
    pub operation: Operation,
    /// In which version of the API.
    pub api_version: Box<str>,
    /// Through which subresource; empty for the object itself.
    pub subresource: Box<str>,
}

impl Writer {
    /// True if both are one and the same. Whoever applies stays the same when the version changes.
    pub fn is_same(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// A set together with its JSON, which is sent far more often than the set is computed with.
#[derive(Debug)]
pub struct Fields {
    set: FieldSet,
    json: Box<str>,
}

impl Fields {
    /// A set, written out.
    pub(super) fn new(set: FieldSet) -> Self {
        let mut json = String::new();
        set.write_json(&mut json);
        Self { set, json: json.into() }
    }

    /// The paths.
    pub fn set(&self) -> &FieldSet {
        &self.set
    }

    /// The set as `fieldsV1`.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for Fields {}

impl Hash for Fields {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.json.hash(state);
    }
}

/// What one writer manages.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Who.
    pub writer: Arc<Writer>,
    /// Seconds since 1970 of the last write; not known for fields that were there already when they were first
    /// applied.
    pub time: Option<i64>,
    /// What.
    pub fields: Arc<Fields>,
}

/// All writers of one object. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Managed(Option<Arc<[Entry]>>);

impl Managed {
    /// The entries in their order on the wire. Entries without fields are dropped.
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.retain(|entry| !entry.fields.set().is_empty());
        entries.sort_by(|a, b| {
            let key = |e: &Entry| (e.writer.operation, e.time.unwrap_or(0));
            let names = |e: &'_ Entry| {
                let writer = &e.writer;
                (writer.manager.clone(), writer.api_version.clone(), writer.subresource.clone())
            };
            key(a).cmp(&key(b)).then_with(|| names(a).cmp(&names(b)))
        });
        Self((!entries.is_empty()).then(|| entries.into()))
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        self.0.as_deref().unwrap_or_default()
    }

    /// True if nobody manages anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// True if the same writers manage the same fields, whenever they wrote them.
    pub fn is_same(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.entries(), other.entries());
        mine.len() == theirs.len()
            && mine.iter().all(|a| {
                theirs.iter().any(|b| {
                    a.writer == b.writer && (Arc::ptr_eq(&a.fields, &b.fields) || a.fields == b.fields)
                })
            })
    }

    /// Appends the list as JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, entry) in self.entries().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let mut head = entry.head().to_string();
            head.pop();
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(b",\"fieldsV1\":");
            out.extend_from_slice(entry.fields.json().as_bytes());
            out.push(b'}');
        }
        out.push(b']');
    }

    /// The list as a JSON value.
    pub fn to_json(&self) -> Value {
        let mut bytes = Vec::new();
        self.write_json(&mut bytes);
        // Written by us a moment ago.
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Reads the list; `None` if it is malformed in any way.
    pub fn from_json(value: &Value) -> Option<Self> {
        let entries: Option<Vec<Entry>> = value.as_array()?.iter().map(Entry::from_json).collect();
        Some(Self::new(entries?))
    }
}

impl Entry {
    /// Everything but the fields.
    fn head(&self) -> Value {
        let mut head = Map::new();
        head.insert("manager".to_owned(), json!(&*self.writer.manager));
        head.insert("operation".to_owned(), json!(self.writer.operation.as_str()));
        head.insert("apiVersion".to_owned(), json!(&*self.writer.api_version));
        head.insert("fieldsType".to_owned(), json!("FieldsV1"));
        if let Some(time) = self.time.and_then(|time| Timestamp::from_second(time).ok()) {
            head.insert("time".to_owned(), json!(crate::store::rfc3339_seconds(time)));
        }
        if !self.writer.subresource.is_empty() {
            head.insert("subresource".to_owned(), json!(&*self.writer.subresource));
        }
        Value::Object(head)
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if text("fieldsType") != "FieldsV1" || text("apiVersion").is_empty() {
            return None;
        }
        let set = match value.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::default(),
            Some(fields) => FieldSet::from_json(fields)?,
        };
        let time = match value.get("time") {
            None | Some(Value::Null) => None,
            Some(time) => Some(time.as_str()?.parse::<Timestamp>().ok()?.as_second()),
        };
        let writer = Writer {
            manager: text("manager").into(),
            operation,
            api_version: text("apiVersion").into(),
            subresource: text("subresource").into(),
        };
        Some(Self { writer: Arc::new(writer), time, fields: intern::share(set) })
    }
}
