//! Rules for the containers of a pod: names, images, resources, ports and mounts.

use super::field::Field;
use super::names::{dns_label, qualified_name};
use super::quantity;
use crate::error::Cause;
use std::collections::BTreeSet;
use tutti_model::Quantity;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PORT_MAX: i64 = 65535;
/// Resources without a domain that a container may name.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What is wrong with the containers of a pod.
pub(super) fn validate(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let containers = spec.get("containers");
    if containers.len() == 0 {
        out.push(containers.required(""));
    }
    let volumes = spec.get("volumes");
    volumes.check_unique("name", out);
    let mut volume_names = BTreeSet::new();
    for volume in volumes.items() {
        let name = volume.get("name");
        name.check_required_text(dns_label, out);
        volume_names.insert(name.text());
    }
    let host_network = spec.get("hostNetwork").is_true();
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        for container in spec.get(list).items() {
            check_container(&container, &volume_names, out);
            let name = container.get("name");
            if !name.text().is_empty() && !names.insert(name.text()) {
                out.push(name.duplicate());
            }
            for port in container.get("ports").items() {
                check_port(&port, host_network, out);
                // Init containers run one after the other, so they may share a port of the host.
                let number = port.get("hostPort");
                let key = (number.int(), port.get("hostIP").text(), port.get("protocol").text());
                if list == "containers" && number.int().is_some_and(|n| n != 0) && !host_ports.insert(key) {
                    let shown = format!("\"{}/{}/{}\"", key.2, key.1, key.0.unwrap_or_default());
                    out.push(number.duplicate_value(&shown));
                }
            }
        }
    }
}

fn check_container(container: &Field<'_, '_>, volumes: &BTreeSet<&str>, out: &mut Vec<Cause>) {
    container.get("name").check_required_text(dns_label, out);
    let image = container.get("image");
    if image.text().is_empty() {
        out.push(image.required(""));
    } else if image.text().trim() != image.text() {
        out.push(image.invalid("must not have leading or trailing whitespace"));
    }
    container.get("imagePullPolicy").check_enum(&PULL_POLICIES, out);
    check_resources(&container.get("resources"), out);
    for variable in container.get("env").items() {
        let name = variable.get("name");
        if name.text().is_empty() {
            out.push(name.required(""));
        }
    }
    let mounts = container.get("volumeMounts");
    mounts.check_unique("mountPath", out);
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.text().is_empty() {
            out.push(name.required(""));
        } else if !volumes.contains(name.text()) {
            out.push(name.not_found());
        }
        if path.text().is_empty() {
            out.push(path.required(""));
        }
    }
}

fn check_port(port: &Field<'_, '_>, host_network: bool, out: &mut Vec<Cause>) {
    let (inner, outer) = (port.get("containerPort"), port.get("hostPort"));
    if inner.is_set() {
        check_port_number(&inner, out);
    } else {
        out.push(inner.required(""));
    }
    // 0 is how Go's types spell "no host port".
    if outer.int() != Some(0) {
        check_port_number(&outer, out);
        if host_network && outer.is_set() && outer.int() != inner.int() {
            out.push(inner.invalid("must match `hostPort` when `hostNetwork` is true"));
        }
    }
    port.get("protocol").check_enum(&PROTOCOLS, out);
}

fn check_port_number(port: &Field<'_, '_>, out: &mut Vec<Cause>) {
    if port.int().is_some_and(|number| !(1..=PORT_MAX).contains(&number)) {
        out.push(port.invalid(&format!("must be between 1 and {PORT_MAX}, inclusive")));
    }
}

/// What is wrong with requests and limits.
pub(super) fn check_resources(resources: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (requests, limits) = (resources.get("requests"), resources.get("limits"));
    for list in [&limits, &requests] {
        for (name, amount) in list.entries() {
            check_resource_name(name, &amount, out);
            if check_amount(&amount, out).is_some_and(|a| !a.is_whole()) && is_extended(name) {
                out.push(amount.invalid("must be an integer"));
            }
        }
    }
    for (name, request) in requests.entries() {
        let limit = limits.value().and_then(|l| l.get(name));
        // Devices and huge pages cannot be shared, so asking for some and being allowed more makes no sense.
        let exact = is_extended(name) || name.starts_with("hugepages-");
        match (request.value().and_then(quantity::of), limit.and_then(quantity::of)) {
            (Some(asked), Some(most)) if exact && asked != most => {
                let detail = format!("must be equal to {name} limit of {}", shown(limit));
                out.push(requests.invalid_value(&shown_json(&request), &detail));
            }
            (Some(asked), Some(most)) if asked > most => {
                let detail = format!("must be less than or equal to {name} limit of {}", shown(limit));
                out.push(requests.invalid_value(&shown_json(&request), &detail));
            }
            (Some(_), None) if exact && limit.is_none() => {
                out.push(limits.required(&format!("{name} cannot be overcommitted, so a limit must be set")));
            }
            _ => {}
        }
    }
}

fn shown_json(field: &Field<'_, '_>) -> String {
    field.value().map_or_else(String::new, ToString::to_string)
}

fn shown(value: Option<&serde_json::Value>) -> String {
    value.map_or_else(String::new, |v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
}

/// Checks a map of resource amounts, such as a node's capacity.
pub(super) fn check_amounts(amounts: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for (name, amount) in amounts.entries() {
        if let Err(why) = qualified_name(name) {
            out.push(amount.invalid_value(&format!("{name:?}"), &why));
        }
        check_amount(&amount, out);
    }
}

fn check_amount(amount: &Field<'_, '_>, out: &mut Vec<Cause>) -> Option<Quantity> {
    let parsed = amount.value().and_then(quantity::of);
    match parsed {
        None => out.push(amount.invalid("must be a quantity such as 2, 500m or 1.5Gi")),
        Some(number) if number.is_negative() => {
            out.push(amount.invalid("must be greater than or equal to 0"));
        }
        Some(_) => {}
    }
    parsed
}

fn check_resource_name(name: &str, amount: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let problem = match qualified_name(name) {
        Err(why) => why,
        Ok(()) if name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-") => return,
        Ok(()) => {
            "must be a standard resource for containers or have a domain, as in example.com/device".to_owned()
        }
    };
    out.push(amount.invalid_value(&format!("{name:?}"), &problem));
}

/// True for resources of third parties: a domain that is not Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}
