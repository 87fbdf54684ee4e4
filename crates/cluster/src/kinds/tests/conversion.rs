use super::*;
use crate::kinds::convert::stash::HUB_FIELDS;
use proptest::prelude::*;
use serde_json::Map;

fn group_hub() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "parentCompositePodGroupName": "p", "preemptionPolicy": "Never",
            "schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}},
        },
        "status": {"conditions": [{"type": "PodGroupInitiallyScheduled"}, {"type": "DisruptionTarget"}]},
    })
}

#[test]
fn a_pod_group_reads_as_each_version_spells_it() {
    let alpha = from_hub(resource("PodGroup"), "v1alpha2", &group_hub());
    assert_eq!(alpha["apiVersion"], "scheduling.k8s.io/v1alpha2");
    assert_eq!(
        alpha["spec"],
        json!({
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            "schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup",
        })
    );
    assert_eq!(alpha["status"]["conditions"][0]["type"], "PodGroupScheduled");
    assert_eq!(alpha["status"]["conditions"][1]["type"], "DisruptionTarget");
    assert_eq!(to_hub(resource("PodGroup"), "v1alpha2", alpha).unwrap(), group_hub());
}

#[test]
fn a_change_through_the_old_version_keeps_fields_that_it_does_not_have() {
    let mut alpha = from_hub(resource("PodGroup"), "v1alpha2", &group_hub());
    alpha["metadata"]["labels"] = json!({"a": "b"});
    let hub = to_hub(resource("PodGroup"), "v1alpha2", alpha).unwrap();
    assert_eq!(hub["spec"]["preemptionPolicy"], "Never");
    assert_eq!(hub["spec"]["parentCompositePodGroupName"], "p");
    assert!(hub["metadata"].get("annotations").is_none(), "the annotation is not stored");
}

#[test]
fn a_client_that_drops_the_annotation_is_refused_and_loses_nothing() {
    let mut alpha = from_hub(resource("PodGroup"), "v1alpha2", &group_hub());
    alpha["metadata"].as_object_mut().unwrap().remove("annotations");
    let hub = to_hub(resource("PodGroup"), "v1alpha2", alpha).unwrap();
    let found = lines(validate_update(resource("PodGroup"), &group_hub(), &hub));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn fields_of_the_hub_in_an_old_body_are_unknown_there() {
    let alpha = json!({"spec": {"workloadRef": {"workloadName": "w"}, "preemptionPolicy": "Never"}});
    let hub = to_hub(resource("PodGroup"), "v1alpha2", alpha).unwrap();
    assert_eq!(hub["spec"], json!({}));
}

#[test]
fn what_the_hub_cannot_express_is_refused_with_its_path() {
    let stash = json!({"metadata": {"annotations": {HUB_FIELDS: "no json"}}});
    let cases = [
        ("PodGroup", json!(3), 400, "the body must be an object"),
        ("PodGroup", stash, 400, "metadata.annotations[tutti.dev/v1beta1-fields] must be a JSON object"),
        (
            "PodGroup",
            json!({"metadata": {"name": "g"}, "spec": {"disruptionMode": "All"}}),
            422,
            "PodGroup.scheduling.k8s.io \"g\" is invalid: spec.disruptionMode: Unsupported value: \"All\": \
             supported values: \"Pod\", \"PodGroup\"",
        ),
        (
            "PodGroup",
            json!({"spec": {"disruptionMode": {"single": {}}}}),
            422,
            "spec.disruptionMode: Invalid value",
        ),
        (
            "PodGroup",
            json!({"spec": {"podGroupTemplateRef": "w"}}),
            422,
            "spec.podGroupTemplateRef: Invalid value",
        ),
        (
            "PodGroup",
            json!({"spec": {"podGroupTemplateRef": {}}}),
            422,
            "podGroupTemplateRef.workload: Required value",
        ),
        (
            "PodGroup",
            json!({"spec": {"podGroupTemplateRef": {"workload": 1}}}),
            422,
            "workload: Invalid value",
        ),
        (
            "Workload",
            json!({"spec": {"podGroupTemplates": [{}, {"disruptionMode": 1}]}}),
            422,
            "spec.podGroupTemplates[1].disruptionMode: Invalid value",
        ),
    ];
    for (kind, body, code, text) in cases {
        let error = to_hub(resource(kind), "v1alpha2", body).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(text), "wanted {text:?} in {:?}", error.message);
    }
}

#[test]
fn conversion_survives_any_shape() {
    let shapes = [
        json!(null),
        json!([1]),
        json!({"spec": null, "metadata": 3, "status": {"conditions": [null, {"type": 1}, "x"]}}),
        json!({"spec": {"podGroupTemplates": [null, "x", {"name": 3, "disruptionMode": null}]}}),
        json!({"spec": {"workloadRef": 3, "disruptionMode": [], "preemptionPolicy": {"a": 1}}, "metadata": "m"}),
    ];
    for kind in ["PodGroup", "Workload", "Pod"] {
        for shape in &shapes {
            from_hub(resource(kind), "v1alpha2", shape);
            let _ = to_hub(resource(kind), "v1alpha2", shape.clone());
        }
    }
}

#[test]
fn findings_are_told_in_the_words_of_the_version_that_was_written() {
    let cause = |field: &str| Cause {
        reason: crate::error::CauseReason::Required,
        field: field.to_owned(),
        message: String::new(),
    };
    let cases = [
        ("spec.workloadRef", "spec.podGroupTemplateRef.workload"),
        ("spec.workloadRef.workloadName", "spec.podGroupTemplateRef.workload.workloadName"),
        ("spec.workloadRef.templateName", "spec.podGroupTemplateRef.workload.podGroupTemplateName"),
        ("spec.workloadReference", "spec.workloadReference"),
        ("spec.priority", "spec.priority"),
    ];
    for (hub, alpha) in cases {
        assert_eq!(causes_in_version(resource("PodGroup"), "v1alpha2", vec![cause(hub)])[0].field, alpha);
        assert_eq!(causes_in_version(resource("PodGroup"), "v1beta1", vec![cause(hub)])[0].field, hub);
    }
}

fn maybe(
    name: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Option<(&'static str, Value)>> {
    proptest::option::of(value.prop_map(move |v| (name, v)))
}

fn object(fields: Vec<Option<(&'static str, Value)>>) -> Value {
    Value::Object(fields.into_iter().flatten().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())
}

fn name() -> impl Strategy<Value = Value> {
    "[a-z]{1,4}".prop_map(Value::from)
}

fn hub_group() -> impl Strategy<Value = Value> {
    let condition = prop_oneof![Just("PodGroupScheduled"), Just("PodGroupInitiallyScheduled"), Just("Other")]
        .prop_map(|t| json!({"type": t, "status": "True"}));
    let spec = (
        maybe(
            "workloadRef",
            (name(), name()).prop_map(|(w, t)| json!({"workloadName": w, "templateName": t})),
        ),
        maybe("disruptionMode", prop_oneof![Just(json!({"single": {}})), Just(json!({"all": {}}))]),
        maybe("preemptionPolicy", name()),
        maybe("parentCompositePodGroupName", name()),
        maybe("priority", any::<i32>().prop_map(Value::from)),
        maybe("schedulingConstraints", Just(Value::Null)),
    )
        .prop_map(|(a, b, c, d, e, f)| object(vec![a, b, c, d, e, f]));
    let annotations = proptest::option::of(name().prop_map(|v| json!({"a": v})));
    (spec, proptest::collection::vec(condition, 0..3), annotations).prop_map(
        |(spec, conditions, annotations)| {
            json!({
                "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
                "metadata": object(vec![annotations.map(|a| ("annotations", a))]),
                "spec": spec, "status": {"conditions": conditions},
            })
        },
    )
}

fn hub_workload() -> impl Strategy<Value = Value> {
    let template = (
        maybe("disruptionMode", prop_oneof![Just(json!({"single": {}})), Just(json!({"all": {}}))]),
        maybe("preemptionPolicy", name()),
        maybe("priorityClassName", name()),
    )
        .prop_map(|(a, b, c)| object(vec![a, b, c]));
    let composites =
        maybe("compositePodGroupTemplates", name().prop_map(|n| json!([{"name": n, "x": {"y": []}}])));
    (proptest::collection::vec(template, 0..4), composites).prop_map(|(mut templates, composites)| {
        for (index, template) in templates.iter_mut().enumerate() {
            template["name"] = json!(format!("t{index}"));
        }
        json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": {},
            "spec": object(vec![Some(("podGroupTemplates", json!(templates))), composites]),
        })
    })
}

proptest! {
    #[test]
    fn stored_objects_survive_the_way_through_the_old_version(group in hub_group(), workload in hub_workload()) {
        for (kind, stored) in [("PodGroup", group), ("Workload", workload)] {
            let alpha = from_hub(resource(kind), "v1alpha2", &stored);
            let back = to_hub(resource(kind), "v1alpha2", alpha.clone()).unwrap();
            prop_assert_eq!(&back, &stored);
            // The other direction: what a client of the old version wrote is what it reads back.
            prop_assert_eq!(from_hub(resource(kind), "v1alpha2", &back), alpha);
        }
    }
}
