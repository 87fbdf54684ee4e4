//! Rules for PodGroup, and for the parts it shares with the templates of a Workload.

use super::conditions;
use super::field::Field;
use super::names::{dns_label, dns_subdomain, qualified_name};
use crate::error::Cause;
use std::collections::BTreeSet;

/// Most claims of a group.
const CLAIMS_MAX: usize = 4;
/// Most topology constraints of a group.
const TOPOLOGY_MAX: usize = 1;
/// Highest priority that users may have; those above are for the system's own pods.
const PRIORITY_MAX: i64 = 1_000_000_000;
const PREEMPTION_POLICIES: [&str; 2] = ["Never", "PreemptLowerPriority"];

/// What is wrong with the spec of a PodGroup.
pub(super) fn validate_pod_group(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_origin(&spec, out);
    let (parent, reference) = (spec.get("parentCompositePodGroupName"), spec.get("workloadRef"));
    if parent.is_set() && !reference.is_set() {
        out.push(reference.required("must be set when parentCompositePodGroupName is set"));
    }
    check_group(&spec, "minCount", out);
}

/// What is wrong with the spec of a CompositePodGroup.
pub(super) fn validate_composite(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_origin(&spec, out);
    let reference = spec.get("workloadRef");
    if !reference.is_set() {
        out.push(reference.required(""));
    }
    check_group(&spec, "minGroupCount", out);
}

/// What is wrong with replacing the spec of a CompositePodGroup: anything.
pub(super) fn validate_composite_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    validate_pod_group_update(old, new, out);
    check_policy_unchanged(old, new, out);
}

/// What is wrong with the status of a CompositePodGroup.
pub(super) fn validate_composite_status(_: &Field<'_, '_>, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    conditions::validate(&root.get("status").get("conditions"), out);
}

/// What is wrong with replacing the spec of a PodGroup before 1.37, when not even the size of a gang could change.
pub(super) fn validate_pod_group_update_before_1_37(
    old: &Field<'_, '_>,
    new: &Field<'_, '_>,
    out: &mut Vec<Cause>,
) {
    check_policy_unchanged(old, new, out);
    check_origin_frozen(old, new, out);
    check_fields_frozen(&old.get("spec"), &new.get("spec"), out);
}

fn check_policy_unchanged(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    new.get("schedulingPolicy").check_frozen(&old.get("schedulingPolicy"), out);
}

fn check_origin(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let reference = spec.get("workloadRef");
    if reference.is_set() {
        reference.get("workloadName").check_required_text(dns_subdomain, out);
        reference.get("templateName").check_required_text(dns_label, out);
    }
    let parent = spec.get("parentCompositePodGroupName");
    if parent.is_set() {
        parent.check_required_text(dns_subdomain, out);
    }
}

/// What is wrong with replacing the spec of a PodGroup. These are the rules of 1.37, where the size of a gang
/// may change.
pub(super) fn validate_pod_group_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check_origin_frozen(old, new, out);
    check_frozen(&old.get("spec"), &new.get("spec"), out);
}

fn check_origin_frozen(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    for field in ["workloadRef", "parentCompositePodGroupName"] {
        new.get(field).check_frozen(&old.get(field), out);
    }
}

/// What is wrong with the status of a PodGroup.
pub(super) fn validate_pod_group_status(_: &Field<'_, '_>, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let status = root.get("status");
    conditions::validate(&status.get("conditions"), out);
    let (spec, statuses) = (root.get("spec"), status.get("resourceClaimStatuses"));
    let claims = spec.get("resourceClaims");
    let known: BTreeSet<&str> = claims.items().filter_map(|c| c.value()?.get("name")?.as_str()).collect();
    statuses.check_len(CLAIMS_MAX, out);
    statuses.check_unique("name", out);
    for entry in statuses.items() {
        let name = entry.get("name");
        if name.text().is_empty() {
            out.push(name.required(""));
        } else if !known.contains(name.text()) {
            out.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        entry.get("resourceClaimName").check_text(dns_subdomain, out);
    }
}

/// What PodGroups, PodGroup templates and composite templates have in common. `count` is the name of the
/// number that a gang needs: of pods, or of groups.
pub(super) fn check_group(spec: &Field<'_, '_>, count: &'static str, out: &mut Vec<Cause>) {
    check_policy(&spec.get("schedulingPolicy"), count, out);
    check_constraints(&spec.get("schedulingConstraints"), out);
    check_claims(&spec.get("resourceClaims"), out);
    let mode = spec.get("disruptionMode");
    if mode.is_set() {
        check_union(&mode, &["single", "all"], out);
    }
    let class = spec.get("priorityClassName");
    if !class.text().is_empty() {
        class.check_text(dns_subdomain, out);
    }
    spec.get("priority").check_range(i64::from(i32::MIN), PRIORITY_MAX, out);
    spec.get("preemptionPolicy").check_enum(&PREEMPTION_POLICIES, out);
}

/// Fields of a group or template that never change, and the policy, of which only the gang's number may.
pub(super) fn check_frozen(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check_fields_frozen(old, new, out);
    let (old, new) = (old.get("schedulingPolicy"), new.get("schedulingPolicy"));
    new.get("basic").check_frozen(&old.get("basic"), out);
    let (old, new) = (old.get("gang"), new.get("gang"));
    match (old.is_set(), new.is_set()) {
        (true, false) => out.push(new.invalid_value("null", "field cannot be cleared once set")),
        (false, true) => out.push(new.invalid_value("null", "field cannot be set once created")),
        _ => {}
    }
}

fn check_fields_frozen(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for field in [
        "schedulingConstraints",
        "resourceClaims",
        "disruptionMode",
        "priorityClassName",
        "priority",
        "preemptionPolicy",
    ] {
        new.get(field).check_frozen(&old.get(field), out);
    }
}

fn check_policy(policy: &Field<'_, '_>, count: &'static str, out: &mut Vec<Cause>) {
    check_union(policy, &["basic", "gang"], out);
    let gang = policy.get("gang");
    if gang.is_set() {
        let number = gang.get(count);
        // Zero is how a number that is not there reads.
        if number.int().unwrap_or(0) == 0 {
            out.push(number.required(""));
        } else {
            number.check_range(1, i64::from(i32::MAX), out);
        }
    }
}

/// What is wrong with where a group wants to be.
pub(super) fn check_constraints(constraints: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let topology = constraints.get("topology");
    topology.check_len(TOPOLOGY_MAX, out);
    for constraint in topology.items() {
        constraint.get("key").check_required_text(qualified_name, out);
    }
}

/// What is wrong with the claims of a group.
pub(super) fn check_claims(claims: &Field<'_, '_>, out: &mut Vec<Cause>) {
    claims.check_len(CLAIMS_MAX, out);
    claims.check_unique_entries("name", out);
    for claim in claims.items() {
        claim.get("name").check_required_text(dns_label, out);
        check_union(&claim, &["resourceClaimName", "resourceClaimTemplateName"], out);
        claim.get("resourceClaimName").check_text(dns_subdomain, out);
        claim.get("resourceClaimTemplateName").check_text(dns_subdomain, out);
    }
}

/// Reports a union that has not exactly one of its members.
pub(super) fn check_union(union: &Field<'_, '_>, members: &[&'static str], out: &mut Vec<Cause>) {
    let set: Vec<&str> = members.iter().filter(|member| union.get(member).is_set()).copied().collect();
    check_members(union, members, &set, out);
}

/// As [`check_union`], where the caller knows which members are there.
pub(super) fn check_members(union: &Field<'_, '_>, members: &[&str], set: &[&str], out: &mut Vec<Cause>) {
    let list: Vec<String> = members.iter().map(|m| format!("`{m}`")).collect();
    let list = list.join(", ");
    match set {
        [_] => {}
        [] => out.push(union.invalid_value("\"\"", &format!("must specify one of: {list}"))),
        several => {
            let shown = format!("\"{{{}}}\"", several.join(", "));
            out.push(union.invalid_value(&shown, &format!("must specify exactly one of: {list}")));
        }
    }
}
