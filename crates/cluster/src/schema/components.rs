//! Component schemas of an API group's version, generated from the types themselves.

use super::{alpha, lists, releases};
use crate::registry::{Release, Resource, built_in};
use k8s_openapi::api::{
    apps, authentication, authorization, autoscaling, batch, coordination, core, events, policy, resource,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
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

/// Makes the generator know these types.
macro_rules! know {
    ($generator:ident: $($kind:ty),+ $(,)?) => {{ $($generator.subschema_for::<$kind>();)+ }};
}

/// All schemas of a version, those of its lists and of what requests and answers need included.
pub(super) fn of(release: Release, group: &str, version: &str) -> Components {
    let mut generator = generator();
    register(&mut generator, group, version);
    let mut components = generator.take_definitions(false);
    match (group, version) {
        ("scheduling.k8s.io", "v1alpha1") => components = alpha::v1alpha1(components),
        ("scheduling.k8s.io", "v1alpha2") => components = alpha::v1alpha2(components),
        _ => releases::adapt(release, &mut components),
    }
    for (resource, spelled) in served(release, group, version) {
        components.insert(list_name(resource, spelled), list_of(&kind_name(resource, spelled)));
    }
    add_patch(&mut components);
    for (name, schema) in &mut components {
        finish(name, schema);
    }
    for (resource, spelled) in served(release, group, version) {
        let list = format!("{}List", resource.kind);
        for (name, kind) in
            [(kind_name(resource, spelled), resource.kind), (list_name(resource, spelled), list.as_str())]
        {
            name_kind(&mut components, &name, json!([{"group": group, "version": version, "kind": kind}]));
        }
    }
    components
}

/// The schemas that every document needs, whatever its kinds.
pub(super) fn meta_components() -> Components {
    let mut generator = generator();
    know!(generator: meta::ObjectMeta, meta::ListMeta, meta::DeleteOptions, meta::Status, autoscaling::v1::Scale);
    let mut components = generator.take_definitions(false);
    add_patch(&mut components);
    for (name, schema) in &mut components {
        finish(name, schema);
    }
    components
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft07()
        .with(|settings| {
            settings.definitions_path = PLACE.into();
            settings.meta_schema = None;
        })
        .into_generator()
}

fn add_patch(components: &mut Components) {
    components.insert(
        format!("{META}.Patch"),
        json!({
            "description": "The body of a patch; its media type says what it means.", "type": "object",
        }),
    );
}

/// Resources that are served in this version, with the version as the registry spells it.
pub(super) fn served(
    release: Release,
    group: &str,
    version: &str,
) -> impl Iterator<Item = (&'static Resource, &'static str)> {
    built_in(release).iter().filter_map(move |r| r.served_as(group, version).map(|spelled| (r, spelled)))
}

/// The full name of a kind: `io.k8s.api.core.v1.Pod`.
pub(super) fn kind_name(resource: &Resource, version: &str) -> String {
    let (group, version) = version.split_once('/').unwrap_or((resource.group, version));
    if resource.custom.is_some() {
        return custom_kind_name(group, version, resource.kind);
    }
    if group == crate::custom::GROUP {
        return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{}", resource.kind);
    }
    let group = match group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("io.k8s.api.{group}.{version}.{}", resource.kind)
}

/// The full name of a custom kind: `com.example.v1.Widget`.
pub(super) fn custom_kind_name(group: &str, version: &str, kind: &str) -> String {
    let reversed: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", reversed.join("."))
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

/// Makes the generator know every type of this version. Older versions of workloads start from v1beta1.
fn register(generator: &mut SchemaGenerator, group: &str, version: &str) {
    know!(generator: meta::ListMeta, meta::DeleteOptions, meta::Status);
    match (group, version) {
        ("", "v1") => know!(generator:
            core::v1::Namespace, core::v1::Node, core::v1::Pod, core::v1::Event, core::v1::Binding,
            core::v1::ConfigMap, core::v1::Secret, core::v1::Service, core::v1::ServiceAccount,
            core::v1::PersistentVolume, core::v1::PersistentVolumeClaim, core::v1::ReplicationController,
            policy::v1::Eviction, autoscaling::v1::Scale,
        ),
        ("apiextensions.k8s.io", "v1") => know!(generator: apiextensions::CustomResourceDefinition),
        ("apps", "v1") => know!(generator:
            apps::v1::Deployment, apps::v1::ReplicaSet, apps::v1::StatefulSet, apps::v1::DaemonSet,
            autoscaling::v1::Scale,
        ),
        ("authentication.k8s.io", "v1") => {
            know!(generator: authentication::v1::SelfSubjectReview, authentication::v1::TokenReview);
        }
        ("authorization.k8s.io", "v1") => know!(generator:
            authorization::v1::LocalSubjectAccessReview, authorization::v1::SelfSubjectAccessReview,
            authorization::v1::SelfSubjectRulesReview, authorization::v1::SubjectAccessReview,
        ),
        ("batch", "v1") => know!(generator: batch::v1::Job, batch::v1::CronJob),
        ("coordination.k8s.io", "v1") => know!(generator: coordination::v1::Lease),
        ("events.k8s.io", "v1") => know!(generator: events::v1::Event),
        ("policy", "v1") => know!(generator: policy::v1::PodDisruptionBudget),
        ("resource.k8s.io", "v1") => know!(generator:
            resource::v1::ResourceClaim, resource::v1::ResourceClaimTemplate, resource::v1::DeviceClass,
            resource::v1::ResourceSlice, resource::v1::DeviceTaintRule,
        ),
        ("scheduling.k8s.io", "v1") => know!(generator: scheduling::v1::PriorityClass),
        ("scheduling.k8s.io", "v1alpha3") => know!(generator:
            scheduling::v1alpha3::Workload, scheduling::v1alpha3::PodGroup, scheduling::v1alpha3::CompositePodGroup,
        ),
        ("scheduling.k8s.io", _) => {
            know!(generator: scheduling::v1beta1::Workload, scheduling::v1beta1::PodGroup);
        }
        ("storage.k8s.io", "v1") => know!(generator:
            storage::v1::StorageClass, storage::v1::CSINode, storage::v1::CSIDriver,
            storage::v1::CSIStorageCapacity, storage::v1::VolumeAttachment,
        ),
        _ => {}
    }
}

pub(super) fn list_of(kind: &str) -> Value {
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

pub(super) fn name_kind(components: &mut Components, name: &str, kinds: Value) {
    if let Some(schema) = components.get_mut(name).and_then(Value::as_object_mut) {
        schema.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
    }
}

/// Turns a generated schema into what clients of Kubernetes expect.
pub(super) fn finish(name: &str, schema: &mut Value) {
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
            if lists::is_atomic_map(name, field) {
                property.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
            }
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
    let kind = match rule.map_keys {
        [] if rule.is_set => "set",
        [] => "atomic",
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
