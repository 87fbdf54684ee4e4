//! Service.

use super::defaults::{child, each, first_status, set};
use super::field::Field;
use super::metadata::check_labels;
use super::names::{dns_label, dns_subdomain};
use crate::error::Cause;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PORT_MAX: i64 = 65535;
/// The address of a service that has none: its pods are found by name.
const HEADLESS: &str = "None";

/// Defaults of a Service.
pub(super) fn defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"loadBalancer": {}}));
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "sessionAffinity", json!("None"));
    set(spec, "type", json!("ClusterIP"));
    for port in each(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        if let Some(number) = port.get("port").cloned() {
            set(port, "targetPort", number);
        }
    }
    if spec.get("type").and_then(Value::as_str) != Some("ExternalName") {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
        set(spec, "ipFamilyPolicy", json!("SingleStack"));
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
}

/// What is wrong with a Service.
pub(super) fn validate(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (metadata, spec) = (root.get("metadata"), root.get("spec"));
    metadata.get("name").check_text(dns_label, out);
    spec.get("type").check_enum(&TYPES, out);
    spec.get("sessionAffinity").check_enum(&["ClientIP", "None"], out);
    check_labels(&spec.get("selector"), out);
    let (kind, address) = (spec.get("type").text(), spec.get("clusterIP"));
    if kind == "ExternalName" {
        spec.get("externalName").check_required_text(dns_subdomain, out);
        if !address.text().is_empty() {
            out.push(address.forbidden("may not be set when `type` is 'ExternalName'"));
        }
    } else {
        let ports = spec.get("ports");
        if ports.len() == 0 && address.text() != HEADLESS {
            out.push(ports.required(""));
        }
        check_ports(&ports, out);
        let text = address.text();
        if !text.is_empty() && text != HEADLESS && text.parse::<IpAddr>().is_err() {
            out.push(address.invalid("must be empty, 'None', or a valid IP address"));
        }
    }
    for address in spec.get("externalIPs").items() {
        if address.text().parse::<IpAddr>().is_err() {
            out.push(address.invalid("must be a valid IP address"));
        }
    }
}

/// What is wrong with replacing a Service: an address that clients know stays.
pub(super) fn validate_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    let internal = |spec: &Field<'_, '_>| spec.get("type").text() != "ExternalName";
    if internal(&old) && internal(&new) && !old.get("clusterIP").text().is_empty() {
        new.get("clusterIP").check_unchanged(&old.get("clusterIP"), out);
    }
}

fn check_port(port: &Field<'_, '_>, least: i64, out: &mut Vec<Cause>) {
    if port.int().is_some_and(|number| !(least..=PORT_MAX).contains(&number)) {
        out.push(port.invalid(&format!("must be between {least} and {PORT_MAX}, inclusive")));
    }
}

fn check_ports(ports: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let several = ports.len() > 1;
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports.items() {
        let (name, number, target) = (port.get("name"), port.get("port"), port.get("targetPort"));
        if name.text().is_empty() {
            if several {
                out.push(name.required(""));
            }
        } else {
            name.check_text(dns_label, out);
            if !names.insert(name.text()) {
                out.push(name.duplicate());
            }
        }
        if number.is_set() {
            check_port(&number, 1, out);
        } else {
            out.push(number.required(""));
        }
        check_port(&target, 1, out);
        check_port(&port.get("nodePort"), 0, out);
        port.get("protocol").check_enum(&PROTOCOLS, out);
        if !numbers.insert((number.int(), port.get("protocol").text())) {
            out.push(port.duplicate());
        }
    }
}
