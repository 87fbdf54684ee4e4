//! Volumes, claims of volumes, and what describes where volumes come from.

use super::containers::check_amounts;
use super::defaults::{child, first_status, set};
use super::field::{Field, same};
use super::names::{dns_subdomain, qualified_name};
use super::placement::check_label_selector;
use super::quantity;
use crate::error::Cause;
use serde_json::{Map, Value, json};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Defaults of a PersistentVolume.
pub(super) fn volume_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"phase": "Pending"}));
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
    set(spec, "volumeMode", json!("Filesystem"));
}

/// Defaults of a PersistentVolumeClaim.
pub(super) fn claim_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"phase": "Pending"}));
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "volumeMode", json!("Filesystem"));
}

/// Defaults of a StorageClass.
pub(super) fn class_defaults(object: &mut Map<String, Value>) {
    set(object, "reclaimPolicy", json!("Delete"));
    set(object, "volumeBindingMode", json!("Immediate"));
}

/// Defaults of a CSIDriver.
pub(super) fn driver_defaults(object: &mut Map<String, Value>) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "attachRequired", json!(true));
    set(spec, "podInfoOnMount", json!(false));
    set(spec, "storageCapacity", json!(false));
    set(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    set(spec, "requiresRepublish", json!(false));
    set(spec, "seLinuxMount", json!(false));
}

/// What is wrong with a PersistentVolume.
pub(super) fn validate_volume(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_modes(&spec, out);
    let capacity = spec.get("capacity");
    if capacity.object().is_none_or(Map::is_empty) {
        out.push(capacity.required(""));
    }
    check_amounts(&capacity, out);
    spec.get("persistentVolumeReclaimPolicy").check_enum(&RECLAIM_POLICIES, out);
    let class = spec.get("storageClassName");
    if !class.text().is_empty() {
        class.check_text(dns_subdomain, out);
    }
    let sources = [
        "hostPath",
        "local",
        "csi",
        "nfs",
        "iscsi",
        "fc",
        "cephfs",
        "rbd",
        "awsElasticBlockStore",
        "gcePersistentDisk",
        "azureDisk",
        "azureFile",
        "vsphereVolume",
        "portworxVolume",
        "scaleIO",
        "flexVolume",
        "cinder",
        "glusterfs",
        "flocker",
        "storageos",
        "photonPersistentDisk",
        "quobyte",
    ];
    match sources.iter().filter(|source| spec.get(source).is_set()).count() {
        0 => out.push(spec.required("must specify a volume type")),
        1 => {}
        _ => out.push(spec.forbidden("may not specify more than 1 volume type")),
    }
    if spec.get("local").is_set() && !spec.get("nodeAffinity").is_set() {
        out.push(spec.get("nodeAffinity").required("Local volume requires node affinity"));
    }
}

/// What is wrong with replacing a PersistentVolume.
pub(super) fn validate_volume_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    new.get("volumeMode").check_unchanged(&old.get("volumeMode"), out);
    if old.get("nodeAffinity").is_set() {
        new.get("nodeAffinity").check_unchanged(&old.get("nodeAffinity"), out);
    }
    for source in ["csi", "hostPath", "local", "nfs"] {
        if old.get(source).is_set() && !same(new.get(source).value(), old.get(source).value()) {
            out.push(new.get(source).forbidden("spec.persistentvolumesource is immutable after creation"));
        }
    }
}

/// What is wrong with a PersistentVolumeClaim.
pub(super) fn validate_claim(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_modes(&spec, out);
    check_label_selector(&spec.get("selector"), out);
    let resources = spec.get("resources");
    let requests = resources.get("requests");
    let size = requests.get("storage");
    match size.value().map(quantity::of) {
        None => out.push(Cause { field: "spec.resources[storage]".to_owned(), ..size.required("") }),
        Some(amount) if amount.is_none_or(|a| a.is_negative() || a.value_ceil() == 0) => {
            out.push(Cause {
                field: "spec.resources[storage]".to_owned(),
                ..size.invalid("must be greater than zero")
            });
        }
        Some(_) => {}
    }
    let class = spec.get("storageClassName");
    if !class.text().is_empty() {
        class.check_text(dns_subdomain, out);
    }
}

/// What is wrong with replacing a PersistentVolumeClaim: once made, it may only be bound and grow.
pub(super) fn validate_claim_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let bound = !old.get("spec").get("volumeName").text().is_empty();
    let frozen = |root: &Field<'_, '_>| {
        let mut spec = root.get("spec").object().cloned().unwrap_or_default();
        spec.remove("resources");
        spec.remove("volumeAttributesClassName");
        if !bound {
            spec.remove("volumeName");
            spec.remove("storageClassName");
        }
        Value::Object(spec)
    };
    if !same(Some(&frozen(old)), Some(&frozen(new))) {
        out.push(new.get("spec").forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    let size = |root: &Field<'_, '_>| {
        root.value().and_then(|r| r.pointer("/spec/resources/requests/storage")).and_then(quantity::of)
    };
    if let (Some(before), Some(after)) = (size(old), size(new))
        && after < before
    {
        out.push(Cause {
            field: "spec.resources.requests.storage".to_owned(),
            ..new.get("spec").forbidden("field can not be less than status.capacity")
        });
    }
}

fn check_modes(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let modes = spec.get("accessModes");
    if modes.len() == 0 {
        out.push(modes.required("at least 1 access mode is required"));
    }
    for mode in modes.items() {
        mode.check_enum(&ACCESS_MODES, out);
    }
    if modes.len() > 1 && modes.items().any(|mode| mode.text() == "ReadWriteOncePod") {
        out.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
    spec.get("volumeMode").check_enum(&VOLUME_MODES, out);
}

/// What is wrong with a StorageClass.
pub(super) fn validate_class(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    root.get("provisioner").check_required_text(qualified_name, out);
    root.get("reclaimPolicy").check_enum(&["Delete", "Retain"], out);
    root.get("volumeBindingMode").check_enum(&["Immediate", "WaitForFirstConsumer"], out);
}

/// What is wrong with replacing a StorageClass: volumes were made as it said.
pub(super) fn validate_class_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !same(new.get(field).value(), old.get(field).value()) {
            out.push(new.get(field).forbidden(&format!("updates to {field} are forbidden.")));
        }
    }
    new.get("volumeBindingMode").check_unchanged(&old.get("volumeBindingMode"), out);
}
