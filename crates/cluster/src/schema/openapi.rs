//! OpenAPI v3 documents: one for each served version of each group.

use super::components::{self, kind_name, list_name, reference, served};
use crate::registry::{Access, PerRelease, Release, Resource, StatusRule, Subresource, api_version};
use axum::body::Bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const PATCH_TYPES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
/// Custom kinds do not say how strategic merge patches would merge their lists.
const CUSTOM_PATCH_TYPES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
const JSON: &str = "application/json";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// A document, written out: it is served far more often than it is looked into.
#[derive(Debug, Clone)]
pub struct Document {
    /// JSON.
    pub text: Bytes,
    /// Changes when the text does: clients keep what they have until then.
    pub hash: String,
}

impl Document {
    pub(super) fn new(value: &Value) -> Self {
        let text = value.to_string();
        // FNV-1a, 64 bits. Nothing relies on it against malice.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { text: text.into(), hash: format!("{hash:016X}") }
    }
}

/// All documents of a release by path; made on first use.
pub(super) fn documents(release: Release) -> &'static BTreeMap<String, Document> {
    static DOCUMENTS: PerRelease<BTreeMap<String, Document>> = PerRelease::new();
    DOCUMENTS.get_or_init(release, || {
        super::group_versions(release)
            .map(|(group, version)| {
                (path_of(group, version), Document::new(&document(release, group, version)))
            })
            .collect()
    })
}

pub(super) fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(release: Release, group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    for (resource, spelled) in served(release, group, version) {
        add_paths(resource, group, spelled, &mut paths);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": components::of(release, group, version)},
    })
}

/// One operation, in the words that clients look for.
struct Operation<'a> {
    resource: &'a Resource,
    version: &'a str,
    /// Kubernetes' verb: `list`, `post`, …
    action: &'a str,
    /// Kind of the body where it is not the resource's own, with its group and version.
    other_kind: Option<(&'a str, &'a str, &'a str)>,
    /// Full name of the type in the answer.
    answer: String,
    /// Full name of the type in the body, if there is one.
    body: Option<String>,
    query: &'a [&'a str],
}

const LIST_QUERY: [&str; 8] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "timeoutSeconds",
    "watch",
];
const WRITE_QUERY: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH_QUERY: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETE_QUERY: [&str; 3] = ["dryRun", "gracePeriodSeconds", "propagationPolicy"];

impl Operation<'_> {
    fn to_json(&self) -> Value {
        let own = self.version.split_once('/').unwrap_or((self.resource.group, self.version));
        let (group, version, kind) = self.other_kind.unwrap_or((own.0, own.1, self.resource.kind));
        let parameters: Vec<Value> = self.query.iter().map(|name| query_parameter(name)).collect();
        let mut operation = json!({
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {JSON: {"schema": reference(&self.answer)}}}},
        });
        if let Some(body) = &self.body {
            let types: &[&str] = match self.action {
                // kubectl sends strategic merge patches to whoever says that they are understood.
                "patch" if self.resource.custom.is_some() => &CUSTOM_PATCH_TYPES,
                "patch" => &PATCH_TYPES,
                _ => &[JSON],
            };
            let content: Map<String, Value> =
                types.iter().map(|t| ((*t).to_owned(), json!({"schema": reference(body)}))).collect();
            operation["requestBody"] = json!({"content": content, "required": self.action != "delete"});
        }
        operation
    }
}

fn query_parameter(name: &str) -> Value {
    let kind = match name {
        "allowWatchBookmarks" | "force" | "watch" => "boolean",
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

fn path_parameters(resource: &Resource, item: bool) -> Value {
    let names = [(item, "name"), (resource.namespaced, "namespace")];
    names
        .iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, name)| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
        })
        .collect()
}

pub(super) fn add_paths(resource: &Resource, group: &str, version: &str, paths: &mut Map<String, Value>) {
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let prefix = format!("{root}/{}", api_version(group, version));
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{prefix}{place}/{}", resource.plural);
    let item = format!("{collection}/{{name}}");
    let list = operation(resource, version, "list", list_name(resource, version), false, &LIST_QUERY);
    let kind = kind_name(resource, version);
    if resource.access == Access::Asked {
        let post = operation(resource, version, "post", kind, true, &WRITE_QUERY);
        paths.insert(collection, json!({"post": post, "parameters": path_parameters(resource, false)}));
        return;
    }
    if resource.namespaced {
        paths.insert(format!("{prefix}/{}", resource.plural), json!({"get": list}));
    }
    let status = format!("{META}.Status");
    paths.insert(
        collection,
        json!({
            "get": list,
            "post": operation(resource, version, "post", kind.clone(), true, &WRITE_QUERY),
            "delete": operation(resource, version, "deletecollection", status, true, &DELETE_QUERY),
            "parameters": path_parameters(resource, false),
        }),
    );
    let mut item_operations = object_operations(resource, version);
    item_operations["delete"] = operation(resource, version, "delete", kind, true, &DELETE_QUERY);
    paths.insert(item.clone(), item_operations);
    if resource.status != StatusRule::None {
        paths.insert(format!("{item}/status"), object_operations(resource, version));
    }
    for subresource in resource.subresources {
        let (name, operations) = subresource_operations(resource, version, *subresource);
        paths.insert(format!("{item}/{name}"), operations);
    }
}

/// Reading and writing one object, or its status.
fn object_operations(resource: &Resource, version: &str) -> Value {
    let kind = kind_name(resource, version);
    json!({
        "get": operation(resource, version, "get", kind.clone(), false, &[]),
        "put": operation(resource, version, "put", kind.clone(), true, &WRITE_QUERY),
        "patch": operation(resource, version, "patch", kind, true, &PATCH_QUERY),
        "parameters": path_parameters(resource, true),
    })
}

fn operation(
    resource: &Resource,
    version: &str,
    action: &str,
    answer: String,
    has_body: bool,
    query: &[&str],
) -> Value {
    let body = match action {
        "patch" => format!("{META}.Patch"),
        "delete" | "deletecollection" => format!("{META}.DeleteOptions"),
        _ => kind_name(resource, version),
    };
    let body = Some(body).filter(|_| has_body);
    Operation { resource, version, action, other_kind: None, answer, body, query }.to_json()
}

fn subresource_operations(
    resource: &Resource,
    version: &str,
    subresource: Subresource,
) -> (&'static str, Value) {
    let post = |kind: (&str, &str, &str), component: &str| {
        let posted = Operation {
            resource,
            version,
            action: "post",
            other_kind: Some(kind),
            answer: component.to_owned(),
            body: Some(component.to_owned()),
            query: &WRITE_QUERY,
        };
        json!({"post": posted.to_json(), "parameters": path_parameters(resource, true)})
    };
    match subresource {
        Subresource::Scale => ("scale", scale_operations(resource, version)),
        Subresource::Resize => ("resize", object_operations(resource, version)),
        Subresource::Binding => ("binding", post(("", "v1", "Binding"), "io.k8s.api.core.v1.Binding")),
        Subresource::Eviction => {
            ("eviction", post(("policy", "v1", "Eviction"), "io.k8s.api.policy.v1.Eviction"))
        }
        Subresource::Log => {
            let mut get =
                operation(resource, version, "get", kind_name(resource, version), false, &["container"]);
            get["responses"] = json!({
                "200": {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}},
            });
            ("log", json!({"get": get, "parameters": path_parameters(resource, true)}))
        }
    }
}

fn scale_operations(resource: &Resource, version: &str) -> Value {
    let one = |action: &str, body: Option<String>, query: &[&str]| {
        let other_kind = Some(("autoscaling", "v1", "Scale"));
        Operation { resource, version, action, other_kind, answer: SCALE.to_owned(), body, query }.to_json()
    };
    json!({
        "get": one("get", None, &[]),
        "put": one("put", Some(SCALE.to_owned()), &WRITE_QUERY),
        "patch": one("patch", Some(format!("{META}.Patch")), &PATCH_QUERY),
        "parameters": path_parameters(resource, true),
    })
}
