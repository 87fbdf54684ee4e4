//! Rules for what a pod says about nodes: tolerations, node selector, affinity and spreading.

use super::field::Field;
use super::metadata::check_labels;
use super::names::{dns_label, label_value, qualified_name};
use crate::error::Cause;
use std::collections::BTreeSet;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NODE_OPERATORS: [&str; 6] = ["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"];
const LABEL_OPERATORS: [&str; 4] = ["DoesNotExist", "Exists", "In", "NotIn"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WEIGHT_MAX: i64 = 100;

/// What is wrong with where a pod wants to be.
pub(super) fn validate(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check_labels(&spec.get("nodeSelector"), out);
    for toleration in spec.get("tolerations").items() {
        check_toleration(&toleration, out);
    }
    let affinity = spec.get("affinity");
    check_node_affinity(&affinity.get("nodeAffinity"), out);
    check_pod_affinity(&affinity.get("podAffinity"), out);
    check_pod_affinity(&affinity.get("podAntiAffinity"), out);
    check_spreading(&spec.get("topologySpreadConstraints"), out);
}

/// What is wrong with a taint of a node; duplicates are the caller's business.
pub(super) fn check_taint(taint: &Field<'_, '_>, out: &mut Vec<Cause>) {
    taint.get("key").check_required_text(qualified_name, out);
    taint.get("value").check_text(label_value, out);
    let effect = taint.get("effect");
    if effect.text().is_empty() {
        out.push(effect.required(""));
    } else {
        effect.check_enum(&EFFECTS, out);
    }
}

fn check_toleration(toleration: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let key = toleration.get("key");
    let operator = toleration.get("operator");
    let value = toleration.get("value");
    let effect = toleration.get("effect");
    if !key.text().is_empty() {
        key.check_text(qualified_name, out);
    } else if operator.text() != "Exists" {
        out.push(operator.invalid("must be Exists when `key` is empty, which means all keys"));
    }
    match operator.text() {
        "" | "Equal" => value.check_text(label_value, out),
        "Exists" if !value.text().is_empty() => {
            out.push(operator.invalid_value(
                &format!("{:?}", value.text()),
                "value must be empty when `operator` is 'Exists'",
            ));
        }
        "Exists" => {}
        // Kubernetes has these behind a gate that is off by default; here they can be tried.
        "Gt" | "Lt" => {
            if value.text().parse::<i64>().is_err() {
                out.push(value.invalid("must be a whole number when `operator` is 'Lt' or 'Gt'"));
            }
        }
        _ => out.push(operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.text().is_empty() {
        effect.check_enum(&EFFECTS, out);
    }
    if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        out.push(effect.invalid("must be NoExecute when `tolerationSeconds` is set"));
    }
}

fn check_node_affinity(affinity: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let required = affinity.get(REQUIRED);
    if required.is_set() {
        let terms = required.get("nodeSelectorTerms");
        if terms.len() == 0 {
            out.push(terms.required("must have at least one node selector term"));
        }
        for term in terms.items() {
            check_node_term(&term, out);
        }
    }
    for preferred in affinity.get(PREFERRED).items() {
        check_weight(&preferred, out);
        check_node_term(&preferred.get("preference"), out);
    }
}

fn check_node_term(term: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for expression in term.get("matchExpressions").items() {
        expression.get("key").check_required_text(qualified_name, out);
        check_operator(&expression, &NODE_OPERATORS, out);
    }
    for expression in term.get("matchFields").items() {
        expression.get("key").check_enum(&["metadata.name"], out);
        check_operator(&expression, &["In", "NotIn"], out);
        let values = expression.get("values");
        if values.len() > 1 {
            out.push(values.invalid("must have exactly one value when it selects a field"));
        }
    }
}

/// The operator says how many values there must be.
fn check_operator(expression: &Field<'_, '_>, supported: &[&str], out: &mut Vec<Cause>) {
    let (operator, values) = (expression.get("operator"), expression.get("values"));
    if !supported.contains(&operator.text()) {
        out.push(if operator.is_set() {
            operator.invalid("not a valid selector operator")
        } else {
            operator.required("")
        });
        return;
    }
    match operator.text() {
        "In" | "NotIn" if values.len() == 0 => {
            out.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if values.len() > 0 => {
            out.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" => {
            let number = values.items().next().and_then(|v| v.text().parse::<i64>().ok());
            if values.len() != 1 || number.is_none() {
                out.push(values.invalid("must be one whole number when `operator` is 'Lt' or 'Gt'"));
            }
        }
        _ => {}
    }
}

fn check_pod_affinity(affinity: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for term in affinity.get(REQUIRED).items() {
        check_pod_term(&term, out);
    }
    for preferred in affinity.get(PREFERRED).items() {
        check_weight(&preferred, out);
        check_pod_term(&preferred.get("podAffinityTerm"), out);
    }
}

fn check_pod_term(term: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let topology = term.get("topologyKey");
    if topology.text().is_empty() {
        out.push(topology.required("can not be empty"));
    } else {
        topology.check_text(qualified_name, out);
    }
    check_label_selector(&term.get("labelSelector"), out);
    check_label_selector(&term.get("namespaceSelector"), out);
    for namespace in term.get("namespaces").items() {
        namespace.check_text(dns_label, out);
    }
}

/// What is wrong with a label selector; absence is fine.
pub(super) fn check_label_selector(selector: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check_labels(&selector.get("matchLabels"), out);
    for expression in selector.get("matchExpressions").items() {
        expression.get("key").check_required_text(qualified_name, out);
        check_operator(&expression, &LABEL_OPERATORS, out);
        for value in expression.get("values").items() {
            value.check_text(label_value, out);
        }
    }
}

fn check_weight(preferred: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let weight = preferred.get("weight");
    if weight.is_set() {
        if weight.int().is_some_and(|number| !(1..=WEIGHT_MAX).contains(&number)) {
            out.push(weight.invalid(&format!("must be in the range 1-{WEIGHT_MAX}")));
        }
    } else {
        out.push(weight.required("must be in the range 1-100"));
    }
}

fn check_spreading(constraints: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for constraint in constraints.items() {
        let topology = constraint.get("topologyKey");
        let otherwise = constraint.get("whenUnsatisfiable");
        let skew = constraint.get("maxSkew");
        if skew.int().is_none_or(|n| n < 1) {
            out.push(skew.invalid("must be greater than zero"));
        }
        topology.check_required_text(qualified_name, out);
        if otherwise.is_set() {
            otherwise.check_enum(&["DoNotSchedule", "ScheduleAnyway"], out);
        } else {
            out.push(otherwise.required(""));
        }
        if !seen.insert((topology.text(), otherwise.text())) {
            out.push(constraint.duplicate());
        }
        let domains = constraint.get("minDomains");
        domains.check_range(1, i64::from(i32::MAX), out);
        if domains.is_set() && otherwise.text() != "DoNotSchedule" {
            out.push(domains.invalid("can only use `minDomains` if `whenUnsatisfiable` is DoNotSchedule"));
        }
        constraint.get("nodeAffinityPolicy").check_enum(&["Honor", "Ignore"], out);
        constraint.get("nodeTaintsPolicy").check_enum(&["Honor", "Ignore"], out);
        check_label_selector(&constraint.get("labelSelector"), out);
    }
}
