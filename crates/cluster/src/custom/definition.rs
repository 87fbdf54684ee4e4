//! A definition, read and kept.

use super::path::Path;
use super::schema::{self, Schema};
use crate::error::Cause;
use crate::registry::{Access, Release, Resource, StatusRule, Subresource};
use crate::schema::Types;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Definitions that one process reads. Each is read once and kept for good, since objects of its kind may outlive
/// it in the history of the store; a change of a definition is another one.
const DEFINITIONS_MAX: usize = 4096;

/// What a definition says beyond names and versions.
#[derive(Debug)]
pub(crate) struct Definition {
    versions: Vec<Version>,
    /// Where the replicas of an object are, if it can be scaled.
    pub(crate) scale: Option<ScalePaths>,
    /// The kinds of all versions, for strict decoding and server-side apply.
    pub(crate) types: Types,
}

/// One version of a custom kind.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: &'static str,
    pub(crate) schema: Schema,
    /// The schema as it was written, for OpenAPI documents.
    pub(crate) written: Value,
    pub(crate) columns: Vec<Column>,
    /// Fields that field selectors may name.
    pub(crate) selectable: Vec<(String, Path)>,
}

/// A column of `kubectl get`.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: Path,
}

/// JSON pointers to the parts of a scale.
#[derive(Debug)]
pub(crate) struct ScalePaths {
    pub(crate) replicas: String,
    pub(crate) current: String,
    pub(crate) selector: Option<String>,
}

impl Definition {
    /// A version by its name.
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
}

/// The resource that a definition describes, or what is wrong with the definition.
pub(super) fn read(definition: &Value) -> Result<&'static Resource, Vec<Cause>> {
    static KNOWN: Mutex<Option<HashMap<String, &'static Resource>>> = Mutex::new(None);
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let key = spec.to_string();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(resource) = known.get(&key) {
        return Ok(resource);
    }
    if known.len() >= DEFINITIONS_MAX {
        return Err(vec![Cause {
            reason: crate::error::CauseReason::Forbidden,
            field: "spec".to_owned(),
            message: format!(
                "Forbidden: this process has read {DEFINITIONS_MAX} definitions and changes of definitions; restart it"
            ),
        }]);
    }
    let resource: &'static Resource = Box::leak(Box::new(resource_of(spec)?));
    known.insert(key, resource);
    Ok(resource)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.into())
}

fn leaked_list(value: Option<&Value>) -> &'static [&'static str] {
    let texts = value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    texts.map(leaked).collect::<Vec<_>>().leak()
}

/// Whether a version is what is asked about it.
fn is(version: &Value, field: &str) -> bool {
    version.get(field).and_then(Value::as_bool).unwrap_or(false)
}

fn resource_of(spec: &Value) -> Result<Resource, Vec<Cause>> {
    let mut causes = Vec::new();
    let listed = spec.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let versions: Vec<Version> =
        listed.iter().enumerate().map(|(index, version)| read_version(version, index, &mut causes)).collect();
    if !causes.is_empty() {
        return Err(causes);
    }
    let name_of = |wanted: &Value| leaked(text(wanted, "/name"));
    let stored = listed.iter().find(|version| is(version, "storage"));
    let hub = stored.map_or("", name_of);
    let mut served: Vec<&'static str> = listed.iter().filter(|v| is(v, "served")).map(name_of).collect();
    served.sort_by_key(|version| super::names::preference(version));
    let (group, kind) = (leaked(text(spec, "/group")), leaked(text(spec, "/names/kind")));
    let scale = stored.and_then(|version| version.pointer("/subresources/scale")).and_then(scale_paths);
    let has_status = stored.is_some_and(|version| version.pointer("/subresources/status").is_some());
    let types = Types::custom(group, kind, versions.iter().map(|v| (v.name, &v.schema)));
    let subresources: &'static [Subresource] = if scale.is_some() { &[Subresource::Scale] } else { &[] };
    Ok(Resource {
        group,
        versions: served.leak(),
        hub,
        kind,
        plural: leaked(text(spec, "/names/plural")),
        singular: leaked(text(spec, "/names/singular")),
        short_names: leaked_list(spec.pointer("/names/shortNames")),
        categories: leaked_list(spec.pointer("/names/categories")),
        namespaced: text(spec, "/scope") == "Namespaced",
        status: if has_status { StatusRule::Separate } else { StatusRule::None },
        subresources,
        access: Access::Stored,
        release: Release::All,
        by_release: None,
        custom: Some(Box::leak(Box::new(Definition { versions, scale, types }))),
    })
}

fn read_version(version: &Value, index: usize, causes: &mut Vec<Cause>) -> Version {
    let place = format!("spec.versions[{index}]");
    let written = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
    let schema = schema::read(&written, &format!("{place}.schema.openAPIV3Schema"), causes);
    let listed = |field: &str| version.get(field).and_then(Value::as_array).into_iter().flatten().enumerate();
    let mut path_of = |entry: &Value, field: String| {
        let path = Path::parse(text(entry, "/jsonPath"));
        if path.is_none() {
            causes.push(Cause {
                reason: crate::error::CauseReason::Invalid,
                field: format!("{field}.jsonPath"),
                message: format!("Invalid value: {:?}: is an invalid path", text(entry, "/jsonPath")),
            });
        }
        path
    };
    let mut columns = Vec::new();
    for (index, column) in listed("additionalPrinterColumns") {
        if let Some(path) = path_of(column, format!("{place}.additionalPrinterColumns[{index}]")) {
            columns.push(Column {
                name: text(column, "/name").to_owned(),
                kind: text(column, "/type").to_owned(),
                format: text(column, "/format").to_owned(),
                description: text(column, "/description").to_owned(),
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                path,
            });
        }
    }
    let mut selectable = Vec::new();
    for (index, field) in listed("selectableFields") {
        if let Some(path) = path_of(field, format!("{place}.selectableFields[{index}]")) {
            selectable.push((text(field, "/jsonPath").trim_start_matches('.').to_owned(), path));
        }
    }
    Version { name: leaked(text(version, "/name")), schema, written, columns, selectable }
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let pointer = |field: &str| Path::parse(text(scale, field))?.pointer();
    Some(ScalePaths {
        replicas: pointer("/specReplicasPath")?,
        current: pointer("/statusReplicasPath")?,
        selector: pointer("/labelSelectorPath"),
    })
}
