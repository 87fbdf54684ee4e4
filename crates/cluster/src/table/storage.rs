//! Columns and cells of configuration, services, storage and devices.

use super::cells::{NONE, age, labels_text, name, text_or};
use super::columns::{AGE, Column, NAME, flag, number, text, wide};
use crate::kinds::field::Field;
use jiff::Timestamp;
use serde_json::{Value, json};

const UNSET: &str = "<unset>";
/// Marks the class that claims without one get.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// How access modes are abbreviated, in the order in which they are shown.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub(super) static CONFIG_MAP: [Column; 3] = [NAME, text("Data", "Number of entries"), AGE];

pub(super) fn config_map(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let entries = entries_of(root, "data") + entries_of(root, "binaryData");
    vec![json!(name(root)), json!(entries), json!(age(root, now))]
}

pub(super) static SECRET: [Column; 4] =
    [NAME, text("Type", "What the secret is for"), text("Data", "Number of entries"), AGE];

pub(super) fn secret(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(root)),
        json!(root.get("type").text()),
        json!(entries_of(root, "data")),
        json!(age(root, now)),
    ]
}

pub(super) static SERVICE: [Column; 7] = [
    NAME,
    text("Type", "How the service is reached"),
    text("Cluster-IP", "Address inside of the cluster"),
    text("External-IP", "Address outside of the cluster"),
    text("Port(s)", "Ports of the service, with those on nodes"),
    AGE,
    wide("Selector", "What selects the pods"),
];

pub(super) fn service(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    let addresses = spec.get("clusterIPs");
    let ports = spec.get("ports");
    let ports: Vec<String> = ports.items().map(|port| service_port(&port)).collect();
    let address =
        addresses.items().next().map_or(NONE, |first| first.value().and_then(Value::as_str).unwrap_or(NONE));
    vec![
        json!(name(root)),
        json!(spec.get("type").text()),
        json!(address),
        json!(external_address(root)),
        json!(if ports.is_empty() { NONE.to_owned() } else { ports.join(",") }),
        json!(age(root, now)),
        labels_text(&spec.get("selector")),
    ]
}

fn service_port(port: &Field<'_, '_>) -> String {
    let (number, protocol) = (port.get("port").int().unwrap_or(0), port.get("protocol").text());
    match port.get("nodePort").int() {
        Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_address(root: &Field<'_, '_>) -> String {
    let spec = root.get("spec");
    let own = spec.get("externalIPs");
    let mut addresses: Vec<&str> = own.items().filter_map(|ip| ip.value()?.as_str()).collect();
    match spec.get("type").text() {
        "ExternalName" => return spec.get("externalName").text().to_owned(),
        "LoadBalancer" => {
            let points = root.value().and_then(|r| r.pointer("/status/loadBalancer/ingress"));
            let points = points.and_then(Value::as_array).into_iter().flatten();
            let found = points.filter_map(|p| p.get("ip").or_else(|| p.get("hostname"))?.as_str());
            addresses.splice(0..0, found);
            if addresses.is_empty() {
                return "<pending>".to_owned();
            }
        }
        _ if addresses.is_empty() => return NONE.to_owned(),
        _ => {}
    }
    addresses.join(",")
}

pub(super) static VOLUME: [Column; 11] = [
    NAME,
    text("Capacity", "Size of the volume"),
    text("Access Modes", "How the volume can be mounted"),
    text("Reclaim Policy", "What becomes of the volume without its claim"),
    text("Status", "Phase of the volume"),
    text("Claim", "Claim that has the volume"),
    text("StorageClass", "Class of the volume"),
    text("VolumeAttributesClass", "Class of the volume's attributes"),
    text("Reason", "Why the volume is as it is"),
    AGE,
    wide("VolumeMode", "Whether the volume is a file system or a device"),
];

pub(super) fn volume(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let claim = spec.get("claimRef");
    let claimed_by = if claim.is_set() {
        format!("{}/{}", claim.get("namespace").text(), claim.get("name").text())
    } else {
        String::new()
    };
    vec![
        json!(name(root)),
        json!(size(&spec.get("capacity"))),
        json!(access_modes(&spec.get("accessModes"))),
        json!(spec.get("persistentVolumeReclaimPolicy").text()),
        json!(phase(root)),
        json!(claimed_by),
        json!(spec.get("storageClassName").text()),
        json!(text_or(&spec.get("volumeAttributesClassName"), UNSET)),
        json!(status.get("reason").text()),
        json!(age(root, now)),
        json!(text_or(&spec.get("volumeMode"), UNSET)),
    ]
}

pub(super) static CLAIM: [Column; 9] = [
    NAME,
    text("Status", "Phase of the claim"),
    text("Volume", "Volume that the claim has"),
    text("Capacity", "Size of that volume"),
    text("Access Modes", "How that volume can be mounted"),
    text("StorageClass", "Class that the claim asks for"),
    text("VolumeAttributesClass", "Class of the volume's attributes"),
    AGE,
    wide("VolumeMode", "Whether the volume is a file system or a device"),
];

pub(super) fn claim(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let bound = !spec.get("volumeName").text().is_empty();
    let capacity = if bound { size(&status.get("capacity")) } else { String::new() };
    let modes = if bound { access_modes(&status.get("accessModes")) } else { String::new() };
    vec![
        json!(name(root)),
        json!(phase(root)),
        json!(spec.get("volumeName").text()),
        json!(capacity),
        json!(modes),
        json!(spec.get("storageClassName").text()),
        json!(text_or(&spec.get("volumeAttributesClassName"), UNSET)),
        json!(age(root, now)),
        json!(text_or(&spec.get("volumeMode"), UNSET)),
    ]
}

pub(super) static STORAGE_CLASS: [Column; 6] = [
    NAME,
    text("Provisioner", "Who makes volumes of this class"),
    text("ReclaimPolicy", "What becomes of volumes without their claims"),
    text("VolumeBindingMode", "When claims are bound"),
    text("AllowVolumeExpansion", "Whether volumes may grow"),
    AGE,
];

pub(super) fn storage_class(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let is_default =
        annotations.value().and_then(|a| a.get(DEFAULT_CLASS)).and_then(Value::as_str) == Some("true");
    let mark = if is_default { " (default)" } else { "" };
    vec![
        json!(format!("{}{mark}", name(root))),
        json!(root.get("provisioner").text()),
        json!(text_or(&root.get("reclaimPolicy"), "Delete")),
        json!(text_or(&root.get("volumeBindingMode"), "Immediate")),
        json!(root.get("allowVolumeExpansion").is_true()),
        json!(age(root, now)),
    ]
}

pub(super) static CSI_NODE: [Column; 3] = [NAME, number("Drivers", "Drivers on the node"), AGE];

pub(super) fn csi_node(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![json!(name(root)), json!(root.get("spec").get("drivers").len()), json!(age(root, now))]
}

pub(super) static CSI_DRIVER: [Column; 8] = [
    NAME,
    flag("AttachRequired", "Whether volumes are attached before they are mounted"),
    flag("PodInfoOnMount", "Whether the driver is told about the pod"),
    flag("StorageCapacity", "Whether the driver says how much it has left"),
    text("TokenRequests", "Audiences of the tokens that the driver gets"),
    flag("RequiresRepublish", "Whether volumes are mounted again and again"),
    text("Modes", "Kinds of volumes"),
    AGE,
];

pub(super) fn csi_driver(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    let (tokens, modes) = (spec.get("tokenRequests"), spec.get("volumeLifecycleModes"));
    let audiences: Vec<&str> = tokens.items().filter_map(|t| t.value()?.get("audience")?.as_str()).collect();
    let modes: Vec<&str> = modes.items().filter_map(|m| m.value()?.as_str()).collect();
    vec![
        json!(name(root)),
        json!(spec.get("attachRequired").value() != Some(&json!(false))),
        json!(spec.get("podInfoOnMount").is_true()),
        json!(spec.get("storageCapacity").is_true()),
        json!(if tokens.is_set() { audiences.join(",") } else { UNSET.to_owned() }),
        json!(spec.get("requiresRepublish").is_true()),
        json!(if modes.is_empty() { NONE.to_owned() } else { modes.join(",") }),
        json!(age(root, now)),
    ]
}

pub(super) static STORAGE_CAPACITY: [Column; 3] =
    [NAME, text("StorageClassName", "Class of the storage"), text("Capacity", "How much of it is left")];

pub(super) fn storage_capacity(root: &Field<'_, '_>, _: Timestamp) -> Vec<Value> {
    vec![
        json!(name(root)),
        json!(root.get("storageClassName").text()),
        json!(text_or(&root.get("capacity"), UNSET)),
    ]
}

pub(super) static ATTACHMENT: [Column; 6] = [
    NAME,
    text("Attacher", "Driver that attaches the volume"),
    text("PV", "Volume"),
    text("Node", "Node that the volume is attached to"),
    flag("Attached", "Whether it is done"),
    AGE,
];

pub(super) fn attachment(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    vec![
        json!(name(root)),
        json!(spec.get("attacher").text()),
        json!(spec.get("source").get("persistentVolumeName").text()),
        json!(spec.get("nodeName").text()),
        json!(root.get("status").get("attached").is_true()),
        json!(age(root, now)),
    ]
}

pub(super) static RESOURCE_CLAIM: [Column; 3] = [NAME, text("State", "What has become of the claim"), AGE];

pub(super) fn resource_claim(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let status = root.get("status");
    let deleting = root.get("metadata").get("deletionTimestamp").is_set();
    let mut words = Vec::new();
    if deleting {
        words.push("deleted");
    }
    if status.get("allocation").is_set() {
        words.push("allocated");
    } else if !deleting {
        words.push("pending");
    }
    if status.get("reservedFor").len() > 0 {
        words.push("reserved");
    }
    vec![json!(name(root)), json!(words.join(",")), json!(age(root, now))]
}

pub(super) static RESOURCE_SLICE: [Column; 5] = [
    NAME,
    text("Node", "Node that the devices are on"),
    text("Driver", "Driver of the devices"),
    text("Pool", "Pool that the devices belong to"),
    AGE,
];

pub(super) fn resource_slice(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    vec![
        json!(name(root)),
        json!(spec.get("nodeName").text()),
        json!(spec.get("driver").text()),
        json!(spec.get("pool").get("name").text()),
        json!(age(root, now)),
    ]
}

fn entries_of(root: &Field<'_, '_>, field: &'static str) -> usize {
    root.get(field).object().map_or(0, serde_json::Map::len)
}

fn size(amounts: &Field<'_, '_>) -> String {
    let storage = amounts.get("storage");
    text_or(&storage, "0").to_owned()
}

fn phase<'v>(root: &Field<'_, 'v>) -> &'v str {
    let deleting = root.get("metadata").get("deletionTimestamp").is_set();
    if deleting { "Terminating" } else { root.get("status").get("phase").text() }
}

fn access_modes(modes: &Field<'_, '_>) -> String {
    let has = |mode: &str| modes.items().any(|m| m.text() == mode);
    let short: Vec<&str> =
        ACCESS_MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}
