//! Volumes, claims of volumes, and what describes where volumes come from.

use super::defaults::{child, first_status, set};
use serde_json::{Map, Value, json};

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
