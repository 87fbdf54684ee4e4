//! The row of a pod. Its status is the one word that says most: not the phase, but what keeps the pod from
//! being well, if anything does.

use super::age;
use super::cells::{NONE, condition, holds, name, text_or};
use super::columns::{AGE, Column, NAME, text, wide};
use crate::kinds::field::Field;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the containers of a pod add up to.
struct Summary {
    word: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

pub(super) static POD: [Column; 9] = [
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

/// The cells of a pod.
pub(super) fn cells(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let summary = summarise(root);
    let restarts = match summary.last_restart {
        Some(at) if summary.restarts > 0 => {
            let at = json!(at.to_string());
            format!("{} ({} ago)", summary.restarts, age::or_unknown(&Field::root(&at), now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        json!(name(root)),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.word),
        json!(restarts),
        json!(super::cells::age(root, now)),
        json!(text_or(&status.get("podIP"), NONE)),
        json!(text_or(&spec.get("nodeName"), NONE)),
        json!(text_or(&status.get("nominatedNodeName"), NONE)),
        json!(readiness_gates(root)),
    ]
}

fn readiness_gates(root: &Field<'_, '_>) -> String {
    let spec = root.get("spec");
    let gates = spec.get("readinessGates");
    if gates.len() == 0 {
        return NONE.to_owned();
    }
    let passed = gates.items().filter(|g| holds(condition(root, g.get("conditionType").text()))).count();
    format!("{passed}/{}", gates.len())
}

fn summarise(root: &Field<'_, '_>) -> Summary {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let (init, containers) = (spec.get("initContainers"), spec.get("containers"));
    // Init containers that are restarted for ever are sidecars: they stay and count as containers.
    let sidecars: BTreeSet<&str> = init
        .items()
        .filter(|c| c.get("restartPolicy").text() == "Always")
        .map(|c| c.get("name").text())
        .collect();
    let mut summary = Summary {
        word: first_word(root).to_owned(),
        ready: 0,
        total: containers.len() + sidecars.len(),
        restarts: 0,
        last_restart: None,
    };
    let init_statuses = status.get("initContainerStatuses");
    let initialising = summary.read_init(&init_statuses, init.len(), &sidecars);
    if !initialising || holds(condition(root, "Initialized")) {
        // Restarts of finished init containers are history; those of sidecars are not.
        summary.restarts = 0;
        summary.last_restart = None;
        for one in init_statuses.items().filter(|s| sidecars.contains(s.get("name").text())) {
            summary.count_restarts(&one);
        }
        summary.read_containers(&status.get("containerStatuses"), holds(condition(root, "Ready")));
    }
    let phase = status.get("phase").text();
    if root.get("metadata").get("deletionTimestamp").is_set() {
        if status.get("reason").text() == "NodeLost" {
            "Unknown".clone_into(&mut summary.word);
        } else if phase != "Succeeded" && phase != "Failed" {
            "Terminating".clone_into(&mut summary.word);
        }
    }
    summary
}

/// What the pod says about itself, before its containers are asked.
fn first_word<'v>(root: &Field<'_, 'v>) -> &'v str {
    let gated = condition(root, "PodScheduled").and_then(|c| c.get("reason")).and_then(Value::as_str);
    if gated == Some("SchedulingGated") {
        return "SchedulingGated";
    }
    let status = root.get("status");
    let phase = status.get("phase").text();
    text_or(&status.get("reason"), phase)
}

impl Summary {
    /// True if an init container is still to finish.
    fn read_init(&mut self, statuses: &Field<'_, '_>, count: usize, sidecars: &BTreeSet<&str>) -> bool {
        for (index, one) in statuses.items().enumerate() {
            self.count_restarts(&one);
            let state = one.get("state");
            let (ended, waiting) = (state.get("terminated"), state.get("waiting"));
            if ended.is_set() && ended.get("exitCode").int() == Some(0) {
                continue;
            }
            if sidecars.contains(one.get("name").text()) && one.get("started").is_true() {
                self.ready += usize::from(one.get("ready").is_true());
                continue;
            }
            let reason = waiting.get("reason").text();
            self.word = if ended.is_set() {
                format!("Init:{}", end_word(&ended))
            } else if !reason.is_empty() && reason != "PodInitializing" {
                format!("Init:{reason}")
            } else {
                format!("Init:{index}/{count}")
            };
            return true;
        }
        false
    }

    fn read_containers(&mut self, statuses: &Field<'_, '_>, pod_ready: bool) {
        let mut running = false;
        let mut word = None;
        for one in statuses.items() {
            self.count_restarts(&one);
            let state = one.get("state");
            let (ended, waiting) = (state.get("terminated"), state.get("waiting").get("reason").text());
            // The first container with something to say has the word.
            if !waiting.is_empty() {
                word.get_or_insert_with(|| waiting.to_owned());
            } else if ended.is_set() {
                word.get_or_insert_with(|| end_word(&ended));
            } else if one.get("ready").is_true() && state.get("running").is_set() {
                running = true;
                self.ready += 1;
            }
        }
        if let Some(word) = word {
            self.word = word;
        }
        // One finished container does not make a pod completed while another one still runs.
        if self.word == "Completed" && running {
            let word = if pod_ready { "Running" } else { "NotReady" };
            word.clone_into(&mut self.word);
        }
    }

    fn count_restarts(&mut self, one: &Field<'_, '_>) {
        self.restarts = self.restarts.saturating_add(one.get("restartCount").int().unwrap_or(0));
        let ended = one.get("lastState").get("terminated").get("finishedAt").str();
        let ended = ended.and_then(|text| text.parse::<Timestamp>().ok());
        self.last_restart = self.last_restart.max(ended);
    }
}

fn end_word(ended: &Field<'_, '_>) -> String {
    let signal = ended.get("signal").int().unwrap_or(0);
    match ended.get("reason").text() {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", ended.get("exitCode").int().unwrap_or(0)),
        reason => reason.to_owned(),
    }
}
