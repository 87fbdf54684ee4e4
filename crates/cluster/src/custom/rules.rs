//! Rules for CustomResourceDefinition itself.

use super::definition;
use crate::error::Cause;
use crate::kinds::defaults::{child, existing, set};
use crate::kinds::field::Field;
use crate::kinds::names::{dns_label, dns_subdomain};
use serde_json::{Map, Value, json};

/// Versions of one kind.
const VERSIONS_MAX: usize = 32;

/// Defaults of a definition.
pub(crate) fn defaults(object: &mut Map<String, Value>) {
    let Some(spec) = existing(object, "spec") else { return };
    if let Some(names) = existing(spec, "names") {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            set(names, "singular", json!(kind.to_lowercase()));
            set(names, "listKind", json!(format!("{kind}List")));
        }
    }
    if let Some(conversion) = child(spec, "conversion") {
        set(conversion, "strategy", json!("None"));
    }
}

/// What is wrong with a definition.
pub(crate) fn validate(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (metadata, spec) = (root.get("metadata"), root.get("spec"));
    let (names, group) = (spec.get("names"), spec.get("group"));
    group.check_required_text(dns_subdomain, out);
    if !group.text().is_empty() && !group.text().contains('.') {
        out.push(group.invalid("should be a domain with at least one dot"));
    }
    names.get("plural").check_required_text(dns_label, out);
    names.get("singular").check_text(dns_label, out);
    names.get("kind").check_required_text(kind_name, out);
    names.get("listKind").check_text(kind_name, out);
    for list in ["shortNames", "categories"] {
        for name in names.get(list).items() {
            name.check_text(dns_label, out);
        }
    }
    let expected = format!("{}.{}", names.get("plural").text(), group.text());
    let name = metadata.get("name");
    if name.text() != expected {
        out.push(name.invalid("must be spec.names.plural+\".\"+spec.group"));
    }
    let scope = spec.get("scope");
    if scope.is_set() {
        scope.check_enum(&["Cluster", "Namespaced"], out);
    } else {
        out.push(scope.required(""));
    }
    if spec.get("preserveUnknownFields").is_true() {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        out.push(spec.get("preserveUnknownFields").invalid(detail));
    }
    // Webhooks would have to be called; nobody is there to answer in a cluster of one process.
    spec.get("conversion").get("strategy").check_enum(&["None"], out);
    check_versions(&spec.get("versions"), out);
    // What schemas and paths say is only looked at once the rest is right: their causes name places in it.
    if out.is_empty()
        && let Some(object) = root.value()
        && let Err(causes) = definition::read(object)
    {
        out.extend(causes);
    }
}

/// What is wrong with a new definition.
pub(crate) fn validate_new(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (metadata, spec) = (root.get("metadata"), root.get("spec"));
    let group = spec.get("group").text();
    // Groups of the Kubernetes project are only for those whom it let in.
    let protected = group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    let approved =
        metadata.get("annotations").value().and_then(|a| a.get("api-approved.kubernetes.io")).is_some();
    if protected && !approved {
        let annotations = metadata.get("annotations");
        out.push(annotations.required(
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
}

/// What is wrong with replacing a definition: what objects are already there under may not change.
pub(crate) fn validate_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    for field in ["group", "scope"] {
        new.get(field).check_unchanged(&old.get(field), out);
    }
    let (old_names, new_names) = (old.get("names"), new.get("names"));
    for field in ["kind", "plural"] {
        new_names.get(field).check_unchanged(&old_names.get(field), out);
    }
}

fn check_versions(versions: &Field<'_, '_>, out: &mut Vec<Cause>) {
    if versions.len() == 0 {
        out.push(versions.required("must have at least one version"));
        return;
    }
    versions.check_len(VERSIONS_MAX, out);
    versions.check_unique("name", out);
    let mut stored = 0;
    for version in versions.items() {
        version.get("name").check_required_text(dns_label, out);
        stored += usize::from(version.get("storage").is_true());
        let schema = version.get("schema");
        if !schema.get("openAPIV3Schema").is_set() {
            out.push(schema.get("openAPIV3Schema").required(""));
        }
        for column in version.get("additionalPrinterColumns").items() {
            let name = column.get("name");
            if name.text().is_empty() {
                out.push(name.required(""));
            }
            let kind = column.get("type");
            if kind.is_set() {
                kind.check_enum(&["integer", "number", "string", "boolean", "date"], out);
            } else {
                out.push(kind.required(""));
            }
        }
    }
    if stored != 1 {
        out.push(
            versions.invalid_value("storage", "must have exactly one version marked as storage version"),
        );
    }
}

/// A kind: as a DNS label, but with capitals.
fn kind_name(text: &str) -> Result<(), String> {
    dns_label(&text.to_lowercase())
}
