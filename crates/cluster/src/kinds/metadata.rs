//! Rules for `metadata` that hold for every kind.

use super::field::Field;
use super::names::{annotation_key, dns_label, dns_subdomain, label_value, qualified_name};
use crate::error::Cause;
use crate::registry::Resource;

/// Keys and values of all annotations of an object, together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// What is wrong with the metadata of an object.
pub(super) fn validate(resource: &Resource, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let metadata = root.get("metadata");
    let name = metadata.get("name");
    if name.text().is_empty() {
        out.push(name.required("name or generateName is required"));
    } else if resource.group.is_empty() && resource.kind == "Namespace" {
        name.check_text(dns_label, out);
    } else {
        name.check_text(dns_subdomain, out);
    }
    let namespace = metadata.get("namespace");
    if resource.namespaced {
        namespace.check_required_text(dns_label, out);
    } else if !namespace.text().is_empty() {
        out.push(namespace.forbidden("not allowed on this type"));
    }
    check_labels(&metadata.get("labels"), out);
    check_annotations(&metadata.get("annotations"), out);
    check_owners(&metadata.get("ownerReferences"), out);
    for finalizer in metadata.get("finalizers").items() {
        finalizer.check_required_text(qualified_name, out);
        let standard = STANDARD_FINALIZERS.contains(&finalizer.text());
        if !finalizer.text().is_empty() && !standard && !finalizer.text().contains('/') {
            out.push(
                finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"),
            );
        }
    }
}

/// What is wrong with the metadata of a replacement. That an object being deleted gets no new finalizers is the
/// server's own rule, since it decides what a deletion waits for.
pub(super) fn validate_update(
    resource: &Resource,
    old: &Field<'_, '_>,
    new: &Field<'_, '_>,
    out: &mut Vec<Cause>,
) {
    validate(resource, new, out);
    let (old, new) = (old.get("metadata"), new.get("metadata"));
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        new.get(field).check_unchanged(&old.get(field), out);
    }
}

/// Reports keys and values of a label map that are not allowed.
pub(super) fn check_labels(labels: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for (key, value) in labels.entries() {
        if let Err(why) = qualified_name(key) {
            out.push(labels.invalid_value(&format!("{key:?}"), &why));
        }
        if let Err(why) = label_value(value.text()) {
            out.push(labels.invalid_value(&format!("{:?}", value.text()), &why));
        }
    }
}

/// Reports keys of annotations that are not allowed, and too many of them.
pub(super) fn check_annotations(annotations: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let mut bytes = 0;
    for (key, value) in annotations.entries() {
        if let Err(why) = annotation_key(key) {
            out.push(annotations.invalid_value(&format!("{key:?}"), &why));
        }
        bytes += key.len() + value.text().len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        out.push(annotations.too_long(ANNOTATIONS_BYTES_MAX));
    }
}

fn check_owners(owners: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let mut controllers = 0;
    for owner in owners.items() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            let field = owner.get(field);
            if field.text().is_empty() {
                out.push(field.required("must not be empty"));
            }
        }
        controllers += usize::from(owner.get("controller").is_true());
    }
    if controllers > 1 {
        out.push(owners.invalid("only one reference can have controller set to true"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;
    use serde_json::{Value, json};

    fn problems(kind: &str, metadata: &Value) -> Vec<String> {
        let resource = RESOURCES.iter().find(|r| r.kind == kind).unwrap();
        let object = json!({"metadata": metadata});
        let mut out = Vec::new();
        validate(resource, &Field::root(&object), &mut out);
        out.into_iter().map(|c| format!("{}: {}", c.field, c.message)).collect()
    }

    #[test]
    fn good_metadata_passes() {
        let metadata = json!({
            "name": "a.b", "namespace": "n", "labels": {"app": "", "example.com/x": "Y_1"},
            "annotations": {"Example.com/x": "anything at all"}, "finalizers": ["example.com/f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}],
        });
        assert_eq!(problems("Pod", &metadata), [""; 0]);
    }

    #[test]
    fn each_mistake_is_named_with_its_path() {
        let owner = json!({"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": true});
        let big = "x".repeat(ANNOTATIONS_BYTES_MAX);
        let cases = [
            (
                "Pod",
                json!({"namespace": "n"}),
                "metadata.name: Required value: name or generateName is required",
            ),
            (
                "Pod",
                json!({"name": "A", "namespace": "n"}),
                "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case \
                 alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            ),
            (
                "Namespace",
                json!({"name": "a.b"}),
                "metadata.name: Invalid value: \"a.b\": must not contain dots",
            ),
            ("Pod", json!({"name": "a"}), "metadata.namespace: Required value"),
            (
                "Node",
                json!({"name": "a", "namespace": "n"}),
                "metadata.namespace: Forbidden: not allowed on this type",
            ),
            (
                "Node",
                json!({"name": "a", "labels": {"-": "x"}}),
                "metadata.labels: Invalid value: \"-\": name part",
            ),
            (
                "Node",
                json!({"name": "a", "labels": {"x": "-"}}),
                "metadata.labels: Invalid value: \"-\": a valid label",
            ),
            (
                "Node",
                json!({"name": "a", "annotations": {"a b": ""}}),
                "metadata.annotations: Invalid value: \"a b\"",
            ),
            (
                "Node",
                json!({"name": "a", "annotations": {"a": big}}),
                "metadata.annotations: Too long: may not be more than 262144 bytes",
            ),
            (
                "Node",
                json!({"name": "a", "finalizers": ["x.y/a b"]}),
                "metadata.finalizers[0]: Invalid value: \"x.y/a b\": name part",
            ),
            (
                "Node",
                json!({"name": "a", "finalizers": ["plain"]}),
                "metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard finalizer name",
            ),
            (
                "Node",
                json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j"}]}),
                "metadata.ownerReferences[0].uid: Required value",
            ),
            (
                "Node",
                json!({"name": "a", "ownerReferences": [owner, owner]}),
                "metadata.ownerReferences: Invalid value",
            ),
        ];
        for (kind, metadata, want) in cases {
            let found = problems(kind, &metadata);
            assert!(found.len() == 1 && found[0].starts_with(want), "wanted {want:?}, found {found:?}");
        }
    }

    #[test]
    fn what_identifies_an_object_never_changes() {
        let nodes = RESOURCES.iter().find(|r| r.kind == "Node").unwrap();
        let old = json!({"metadata": {"name": "a", "uid": "1"}});
        let new = json!({"metadata": {"name": "a", "uid": "2"}});
        let mut out = Vec::new();
        validate_update(nodes, &Field::root(&old), &Field::root(&new), &mut out);
        assert_eq!(out.iter().map(|c| c.field.as_str()).collect::<Vec<_>>(), ["metadata.uid"]);
    }
}
