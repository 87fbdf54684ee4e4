//! Component schemas of an API group's version, generated from the types themselves.

use super::{alpha, lists};
use crate::registry::{RESOURCES, Resource};
use k8s_openapi::api::{coordination, core, policy, scheduling};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// Schemas by full name, as in `io.k8s.api.core.v1.Pod`.
pub(super) type Components = Map<String, Value>;

/// Where documents keep their schemas.
const PLACE: &str = "/components/schemas";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// All schemas of a version, those of its lists and of what requests and answers need included.
pub(super) fn of(group: &str, version: &str) -> Components {
    let mut generator = SchemaSettings::draft07()
        .with(|settings| {
            settings.definitions_path = PLACE.into();
            settings.meta_schema = None;
        })
        .into_generator();
    register(&mut generator, group, version);
    let mut components = generator.take_definitions(false);
    if version == "v1alpha2" {
        components = alpha::from_beta(components);
    }
    for resource in served(group, version) {
        components.insert(list_name(resource, version), list_of(&kind_name(resource, version)));
    }
    components.insert(
        format!("{META}.Patch"),
        json!({
            "description": "The body of a patch; its media type says what it means.", "type": "object",
        }),
    );
    for (name, schema) in &mut components {
        finish(name, schema);
    }
    for resource in served(group, version) {
        name_kind(&mut components, &kind_name(resource, version), resource, version, resource.kind);
        let list = format!("{}List", resource.kind);
        name_kind(&mut components, &list_name(resource, version), resource, version, &list);
    }
    components
}

/// Resources that are served in this version.
pub(super) fn served(group: &str, version: &str) -> impl Iterator<Item = &'static Resource> {
    RESOURCES.iter().filter(move |r| r.group == group && r.versions.contains(&version))
}

/// The full name of a kind: `io.k8s.api.core.v1.Pod`.
pub(super) fn kind_name(resource: &Resource, version: &str) -> String {
    let group = match resource.group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("io.k8s.api.{group}.{version}.{}", resource.kind)
}

/// The full name of a kind's list.
pub(super) fn list_name(resource: &Resource, version: &str) -> String {
    format!("{}List", kind_name(resource, version))
}

/// `#/components/schemas/NAME`
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#{PLACE}/{name}")})
}

/// The name that a reference names.
pub(super) fn referenced(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref");
    let wrapped = || schema.get("allOf")?.get(0)?.get("$ref");
    direct.or_else(wrapped)?.as_str()?.strip_prefix("#")?.strip_prefix(PLACE)?.strip_prefix('/')
}

/// Makes the generator know every type of this version. v1alpha2 starts from v1beta1.
fn register(generator: &mut SchemaGenerator, group: &str, version: &str) {
    generator.subschema_for::<meta::ListMeta>();
    generator.subschema_for::<meta::DeleteOptions>();
    generator.subschema_for::<meta::Status>();
    match (group, version) {
        ("", "v1") => {
            generator.subschema_for::<core::v1::Namespace>();
            generator.subschema_for::<core::v1::Node>();
            generator.subschema_for::<core::v1::Pod>();
            generator.subschema_for::<core::v1::Event>();
            generator.subschema_for::<core::v1::Binding>();
            generator.subschema_for::<policy::v1::Eviction>();
        }
        ("coordination.k8s.io", "v1") => {
            generator.subschema_for::<coordination::v1::Lease>();
        }
        ("scheduling.k8s.io", "v1") => {
            generator.subschema_for::<scheduling::v1::PriorityClass>();
        }
        ("scheduling.k8s.io", "v1beta1" | "v1alpha2") => {
            generator.subschema_for::<scheduling::v1beta1::Workload>();
            generator.subschema_for::<scheduling::v1beta1::PodGroup>();
        }
        _ => {}
    }
}

fn list_of(kind: &str) -> Value {
    json!({
        "description": "A list of objects and the state of the cluster that it shows.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of this form of the list."},
            "kind": {"type": "string", "description": "Kind of the list."},
            "metadata": reference(&format!("{META}.ListMeta")),
            "items": {"type": "array", "description": "The objects.", "items": reference(kind)},
        },
    })
}

fn name_kind(components: &mut Components, name: &str, resource: &Resource, version: &str, kind: &str) {
    if let Some(schema) = components.get_mut(name).and_then(Value::as_object_mut) {
        let gvk = json!([{"group": resource.group, "version": version, "kind": kind}]);
        schema.insert("x-kubernetes-group-version-kind".to_owned(), gvk);
    }
}

/// Turns a generated schema into what clients of Kubernetes expect.
fn finish(name: &str, schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    match name {
        QUANTITY => either(schema, "number"),
        INT_OR_STRING => {
            either(schema, "integer");
            schema.insert("format".to_owned(), json!("int-or-string"));
        }
        _ => {}
    }
    if lists::is_atomic_object(name) {
        schema.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, property) in properties.into_iter().flatten() {
        if let Some(property) = property.as_object_mut() {
            wrap_reference(property);
            describe_list(name, field, property);
        }
    }
}

/// A number or a text.
fn either(schema: &mut Map<String, Value>, number: &str) {
    schema.remove("x-kubernetes-int-or-string");
    schema.insert("oneOf".to_owned(), json!([{"type": "string"}, {"type": number}]));
}

/// OpenAPI 3.0 ignores everything beside a `$ref`, so a reference with a description has to be wrapped.
fn wrap_reference(property: &mut Map<String, Value>) {
    if property.len() > 1
        && let Some(target) = property.remove("$ref")
    {
        property.insert("allOf".to_owned(), json!([{"$ref": target}]));
    }
}

fn describe_list(owner: &str, field: &str, property: &mut Map<String, Value>) {
    use super::ListMerge;
    if property.get("type").and_then(Value::as_str) != Some("array") {
        return;
    }
    let Some(rule) = lists::rule(owner, field) else {
        property.insert("x-kubernetes-list-type".to_owned(), json!("atomic"));
        return;
    };
    let kind = match (rule.map_keys, rule.patch) {
        ([], ListMerge::Set) => "set",
        ([], _) => "atomic",
        _ => "map",
    };
    property.insert("x-kubernetes-list-type".to_owned(), json!(kind));
    if !rule.map_keys.is_empty() {
        property.insert("x-kubernetes-list-map-keys".to_owned(), json!(rule.map_keys));
    }
    if rule.patch != ListMerge::Atomic {
        let strategy = if rule.retain_keys { "merge,retainKeys" } else { "merge" };
        property.insert("x-kubernetes-patch-strategy".to_owned(), json!(strategy));
    }
    if let ListMerge::ByKey(key) = rule.patch {
        property.insert("x-kubernetes-patch-merge-key".to_owned(), json!(key));
    }
}
