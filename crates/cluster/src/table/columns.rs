//! Columns of every kind, in the order of `kubectl get`.

use crate::registry::Resource;
use serde_json::{Value, json};

/// One column.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
}

impl Column {
    /// As `columnDefinitions` has it.
    pub(super) fn to_json(&self) -> Value {
        let format = if self.name == "Name" { "name" } else { "" };
        json!({
            "name": self.name, "type": self.kind, "format": format, "description": self.description,
            "priority": i32::from(self.wide),
        })
    }
}

const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", description, wide: false }
}

const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", description, wide: true }
}

const fn number(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "integer", description, wide: false }
}

const NAME: Column = text("Name", "Name of the object, unique for its kind within the namespace");
const AGE: Column = text("Age", "Time since the object was created");

static NAMESPACE: [Column; 3] = [NAME, text("Status", "Phase of the namespace"), AGE];

static NODE: [Column; 10] = [
    NAME,
    text("Status", "Whether the node is ready, and whether new pods are kept away"),
    text("Roles", "Roles that the node's labels name"),
    AGE,
    text("Version", "Version of the kubelet"),
    wide("Internal-IP", "Address inside of the cluster"),
    wide("External-IP", "Address outside of the cluster"),
    wide("OS-Image", "Operating system of the node"),
    wide("Kernel-Version", "Kernel of the node"),
    wide("Container-Runtime", "Container runtime and its version"),
];

static POD: [Column; 9] = [
    NAME,
    text("Ready", "Containers that are ready, of all that stay"),
    text("Status", "The one word that says most about the pod"),
    text("Restarts", "Restarts of all containers, and when the last one was"),
    AGE,
    wide("IP", "Address of the pod"),
    wide("Node", "Node that the pod is bound to"),
    wide("Nominated Node", "Node that is being made free for the pod"),
    wide("Readiness Gates", "Readiness gates that are passed, of all"),
];

static EVENT: [Column; 10] = [
    text("Last Seen", "Time since it happened last"),
    text("Type", "Normal or Warning"),
    text("Reason", "Why it happened, as one word"),
    text("Object", "What it is about"),
    wide("Subobject", "Part of the object that it is about"),
    wide("Source", "Who says so"),
    text("Message", "What happened"),
    wide("First Seen", "Time since it happened first"),
    Column { name: "Count", kind: "integer", description: "How often it happened", wide: true },
    wide("Name", "Name of the event"),
];

static LEASE: [Column; 3] = [NAME, text("Holder", "Who holds the lease"), AGE];

static PRIORITY_CLASS: [Column; 5] = [
    NAME,
    number("Value", "Priority of pods of this class"),
    Column {
        name: "Global-Default",
        kind: "boolean",
        description: "Whether pods without a class get this one",
        wide: false,
    },
    AGE,
    text("PreemptionPolicy", "Whether pods of this class may take the place of lower ones"),
];

static POD_GROUP: [Column; 5] = [
    NAME,
    text("Policy", "Gang or Basic"),
    text("Workload", "Workload that the group was made from"),
    text("Status", "What became of the group"),
    AGE,
];

static PLAIN: [Column; 2] = [NAME, AGE];

/// The columns of a resource.
pub(super) fn of(resource: &Resource) -> &'static [Column] {
    match resource.kind {
        "Namespace" => &NAMESPACE,
        "Node" => &NODE,
        "Pod" => &POD,
        "Event" => &EVENT,
        "Lease" => &LEASE,
        "PriorityClass" => &PRIORITY_CLASS,
        "PodGroup" => &POD_GROUP,
        _ => &PLAIN,
    }
}
