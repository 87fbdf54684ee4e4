use super::*;

#[test]
fn each_rule_of_a_node_is_named() {
    let taint = json!({"key": "a", "value": "b", "effect": "NoSchedule"});
    let base = json!({
        "metadata": {"name": "n1"}, "spec": {"taints": [taint], "providerID": "x"},
        "status": {"capacity": {"cpu": "4", "example.com/gpu": 2}, "allocatable": {}},
    });
    check_each(
        |object| validate_create(resource("Node"), object),
        &base,
        vec![
            ("/spec/taints/0/key", json!(""), "spec.taints[0].key: Required value"),
            ("/spec/taints/0/effect", json!(null), "spec.taints[0].effect: Required value"),
            ("/spec/taints/0/effect", json!("No"), "spec.taints[0].effect: Unsupported value: \"No\""),
            ("/spec/taints/0/value", json!("b c"), "spec.taints[0].value: Invalid value"),
            ("/spec/taints", json!([taint, {"key": "a", "effect": "NoExecute"}]), ""),
            ("/spec/taints", json!([taint, taint]), "spec.taints[1]: Duplicate value"),
            ("/status/capacity/cpu", json!("four"), "status.capacity[cpu]: Invalid value: \"four\""),
            ("/status/allocatable/cpu", json!("-4"), "status.allocatable[cpu]: Invalid value"),
        ],
    );
    let other = with(&base, "/spec/providerID", json!("y"));
    assert_eq!(validate_update(resource("Node"), &base, &other).len(), 1);
}

#[test]
fn each_rule_of_a_priority_class_is_named() {
    let base = json!({"metadata": {"name": "high"}, "value": 10, "preemptionPolicy": "Never"});
    check_each(
        |object| validate_create(resource("PriorityClass"), object),
        &base,
        vec![
            ("/value", json!(1_000_000_001), "value: Forbidden: maximum allowed value"),
            ("/metadata/name", json!("system-x"), "metadata.name: Forbidden"),
            ("/preemptionPolicy", json!("x"), "preemptionPolicy: Unsupported value"),
        ],
    );
    check_each(
        |new| validate_update(resource("PriorityClass"), &base, new),
        &base,
        vec![
            ("/value", json!(11), "value: Forbidden"),
            ("/preemptionPolicy", json!("PreemptLowerPriority"), "preemptionPolicy: Invalid value"),
            ("/description", json!("x"), ""),
        ],
    );
}

#[test]
fn a_lease_has_a_duration_and_an_event_is_beside_its_object() {
    check_each(
        |object| validate_create(resource("Lease"), object),
        &json!({"metadata": {"name": "l", "namespace": "n"}, "spec": {"leaseDurationSeconds": 15}}),
        vec![
            ("/spec/leaseDurationSeconds", json!(0), "spec.leaseDurationSeconds: Invalid value: 0"),
            ("/spec/leaseTransitions", json!(-1), "spec.leaseTransitions: Invalid value"),
            // Whoever hands over leaves nobody behind.
            ("/spec/holderIdentity", json!(""), ""),
        ],
    );
    check_each(
        |object| validate_create(resource("Event"), object),
        &json!({"metadata": {"name": "e", "namespace": "n"}, "involvedObject": {"namespace": "n"}}),
        vec![("/involvedObject/namespace", json!("m"), "involvedObject.namespace: Invalid value: \"m\"")],
    );
}

#[test]
fn values_of_the_wrong_type_are_named_before_any_rule_is_tried() {
    let cases = [
        ("Pod", json!({"spec": "x"}), "spec: Invalid value: \"x\": must be of type object"),
        (
            "Pod",
            json!({"spec": {"containers": {}}}),
            "spec.containers: Invalid value: an object: must be of type array",
        ),
        (
            "Pod",
            json!({"spec": {"containers": [{"resources": {"limits": {"cpu": []}}}]}}),
            "spec.containers[0].resources.limits[cpu]: Invalid value: an array: must be of type quantity",
        ),
        ("Node", json!({"spec": {"unschedulable": "yes"}}), "spec.unschedulable: Invalid value: \"yes\""),
        (
            "Node",
            json!({"metadata": {"creationTimestamp": "now"}}),
            "metadata.creationTimestamp: Invalid value: \"now\"",
        ),
        (
            "PriorityClass",
            json!({"value": 5_000_000_000_i64}),
            "value: Invalid value: 5000000000: must be of type 32-bit",
        ),
        ("PodGroup", json!({"spec": {"priority": 1.5}}), "spec.priority: Invalid value: 1.5"),
    ];
    for (kind, object, want) in cases {
        for found in [
            validate_create(resource(kind), &object),
            validate_update(resource(kind), &object, &object),
            validate_status(resource(kind), &object, &object),
        ] {
            let found = lines(found);
            assert!(found.len() == 1 && found[0].starts_with(want), "wanted {want:?}, found {found:?}");
        }
    }
}
