//! Rules for Job and CronJob.

use super::field::{Field, same};
use super::groups::{check_claims, check_constraints, check_union};
use super::jobs::UID_LABELS;
use super::replicas::check_template;
use crate::error::Cause;
use serde_json::{Map, Value};

const COUNT_MAX: i64 = i32::MAX as i64;
/// Most pods at a time of a job whose pods are numbered.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;
/// Completions above which a job with a limit for each index has to be modest.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
/// Pods at a time of such a job, and indexes of it that may fail.
const HIGH_COMPLETIONS_MAX: i64 = 10_000;

/// What is wrong with a Job.
pub(super) fn validate_job(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_job(&spec, out);
    if !spec.get("selector").is_set() {
        out.push(spec.get("selector").required(""));
    }
}

/// What else is wrong with a new Job: a selector of somebody else's pods.
pub(super) fn validate_new_job(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (metadata, spec) = (root.get("metadata"), root.get("spec"));
    let template = spec.get("template");
    let template = template.get("metadata");
    let labels = template.get("labels");
    let selector = spec.get("selector");
    if !super::label_selector::matches(selector.value(), labels.object()) {
        out.push(labels.invalid("`selector` does not match template `labels`"));
        return;
    }
    if spec.get("manualSelector").is_true() {
        return;
    }
    let [uid_label, _] = UID_LABELS;
    let own = |field: &Field<'_, '_>| {
        field.value().and_then(|v| v.get(uid_label)).and_then(Value::as_str) == metadata.get("uid").str()
    };
    let selected = selector.get("matchLabels");
    let only = selected.object().is_some_and(|labels| labels.len() == 1)
        && selector.get("matchExpressions").len() == 0;
    if !own(&labels) || !own(&selected) || !only {
        out.push(selector.invalid("`selector` not auto-generated"));
    }
}

/// What is wrong with a CronJob.
pub(super) fn validate_cron_job(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let (schedule, template) = (spec.get("schedule"), spec.get("jobTemplate"));
    if schedule.text().is_empty() {
        out.push(schedule.required(""));
    } else if !schedule.text().starts_with('@') && schedule.text().split_whitespace().count() != 5 {
        out.push(schedule.invalid("must have five fields: minute, hour, day of month, month, day of week"));
    }
    spec.get("concurrencyPolicy").check_enum(&["Allow", "Forbid", "Replace"], out);
    for field in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.get(field).check_range(0, i64::MAX, out);
    }
    let job = template.get("spec");
    check_job(&job, out);
    if job.get("manualSelector").is_true() {
        out.push(job.get("manualSelector").not_supported(&["nil", "false"]));
    }
}

fn check_job(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.get(field).check_range(0, i64::MAX, out);
    }
    let per_index = spec.get("backoffLimitPerIndex");
    if spec.get("maxFailedIndexes").is_set() && !per_index.is_set() {
        out.push(per_index.required("when maxFailedIndexes is specified"));
    }
    let mode = spec.get("completionMode");
    mode.check_enum(&["NonIndexed", "Indexed"], out);
    if mode.text() == "Indexed" {
        check_indexed(spec, out);
    } else {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if spec.get(field).is_set() {
                out.push(spec.get(field).invalid("requires indexed completion mode"));
            }
        }
    }
    let replaces = spec.get("podReplacementPolicy");
    if spec.get("podFailurePolicy").is_set() {
        replaces.check_enum(&["Failed"], out);
    } else {
        replaces.check_enum(&["Failed", "TerminatingOrFailed"], out);
    }
    check_scheduling(spec, out);
    let template = spec.get("template");
    check_template(&template, out);
    let pod = template.get("spec");
    let restart = pod.get("restartPolicy");
    match restart.text() {
        "" | "Always" => out.push(restart.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if spec.get("podFailurePolicy").is_set() => {
            out.push(restart.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
        }
        _ => {}
    }
}

fn check_indexed(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (completions, parallelism) = (spec.get("completions"), spec.get("parallelism"));
    let failed = spec.get("maxFailedIndexes");
    let above = |field: &Field<'_, '_>, most: i64| field.int().is_some_and(|n| n > most);
    if !completions.is_set() {
        out.push(completions.required("when completion mode is Indexed"));
    }
    if above(&parallelism, INDEXED_PARALLELISM_MAX) {
        let why = format!(
            "must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
        );
        out.push(parallelism.invalid(&why));
    }
    if completions.is_set() && above(&failed, completions.int().unwrap_or(COUNT_MAX)) {
        out.push(failed.invalid("must be less than or equal to completions"));
    }
    if above(&completions, COMPLETIONS_SOFT_MAX) && spec.get("backoffLimitPerIndex").is_set() {
        let why = format!(
            "must be less than or equal to {HIGH_COMPLETIONS_MAX} when completions are above {COMPLETIONS_SOFT_MAX} \
             and used with backoff limit per index"
        );
        if !failed.is_set() {
            out.push(
                failed
                    .required(&format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}")),
            );
        }
        for field in [&parallelism, &failed] {
            if above(field, HIGH_COMPLETIONS_MAX) {
                out.push(field.invalid(&why));
            }
        }
    }
}

/// What is wrong with how a job wants its pods scheduled. Unlike in a group, the size of a gang may be left out: it
/// is the job's parallelism then.
fn check_scheduling(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let scheduling = spec.get("scheduling");
    if !scheduling.is_set() {
        return;
    }
    let (policy, mode) = (scheduling.get("schedulingPolicy"), scheduling.get("disruptionMode"));
    if policy.is_set() {
        check_union(&policy, &["basic", "gang"], out);
        let gang = policy.get("gang");
        let count = gang.get("minCount");
        count.check_range(1, COUNT_MAX, out);
        let parallelism = spec.get("parallelism").int().unwrap_or(1);
        if count.int().is_some_and(|count| count > parallelism) {
            out.push(count.invalid(&format!("must not be greater than parallelism ({parallelism})")));
        }
    }
    if mode.is_set() {
        check_union(&mode, &["single", "all"], out);
        if mode.get("all").is_set() && policy.get("basic").is_set() && !policy.get("gang").is_set() {
            out.push(mode.invalid("`all` cannot be combined with the basic scheduling policy"));
        }
    }
    check_constraints(&scheduling.get("schedulingConstraints"), out);
    check_claims(&scheduling.get("resourceClaims"), out);
}

/// What is wrong with replacing a Job.
pub(super) fn validate_job_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let started = old.get("status").get("startTime").is_set();
    let (old, new) = (old.get("spec"), new.get("spec"));
    for field in [
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        new.get(field).check_unchanged(&old.get(field), out);
    }
    let completions = new.get("completions");
    if new.get("completionMode").text() != "Indexed" {
        completions.check_unchanged(&old.get("completions"), out);
    } else if !same(completions.value(), old.get("completions").value())
        && !same(completions.value(), new.get("parallelism").value())
    {
        out.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
    // A job that waits and has not run yet may still be told where to run.
    let directions = old.get("suspend").is_true() && !started;
    let (before, after) = (frozen_template(&old, directions), frozen_template(&new, directions));
    if !same(before.as_ref(), after.as_ref()) {
        out.push(new.get("template").invalid_value("template", "field is immutable"));
    }
    let (old, new) = (old.get("scheduling"), new.get("scheduling"));
    for field in ["schedulingConstraints", "disruptionMode", "resourceClaims"] {
        new.get(field).check_unchanged(&old.get(field), out);
    }
    let (old, new) = (old.get("schedulingPolicy"), new.get("schedulingPolicy"));
    if ["basic", "gang"].iter().any(|variant| old.get(variant).is_set() != new.get(variant).is_set()) {
        out.push(new.invalid_value(
            "null",
            "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be \
             updated",
        ));
    }
}

/// The template without what may change.
fn frozen_template(spec: &Field<'_, '_>, without_directions: bool) -> Option<Value> {
    let mut template = spec.get("template").value().cloned()?;
    if without_directions {
        for (place, fields) in [
            ("/metadata", &["labels", "annotations"][..]),
            ("/spec", &["nodeSelector", "tolerations", "schedulingGates"]),
            ("/spec/affinity", &["nodeAffinity"]),
        ] {
            if let Some(map) = template.pointer_mut(place).and_then(Value::as_object_mut) {
                map.retain(|name, _| !fields.contains(&name.as_str()));
            }
        }
        for (holder, field) in [("/spec", "affinity"), ("", "metadata")] {
            let map = template.pointer_mut(holder).and_then(Value::as_object_mut);
            if let Some(map) =
                map.filter(|m| m.get(field).and_then(Value::as_object).is_some_and(Map::is_empty))
            {
                map.remove(field);
            }
        }
    }
    Some(template)
}
