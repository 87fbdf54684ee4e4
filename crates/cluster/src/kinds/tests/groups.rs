use super::*;

fn group() -> Value {
    json!({
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {
            "workloadRef": {"workloadName": "w.x", "templateName": "t"},
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]},
            "resourceClaims": [{"name": "c", "resourceClaimName": "claim"}],
            "disruptionMode": {"single": {}}, "priorityClassName": "high", "priority": 1000,
        },
        "status": {},
    })
}

fn workload() -> Value {
    json!({
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
            "podGroupTemplates": [
                {"name": "a", "schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 1},
                {"name": "b", "schedulingPolicy": {"basic": {}}, "priority": 1},
            ],
        },
    })
}

/// Composite templates nested so many levels deep, with one leaf at the end.
fn nested(levels: usize) -> Value {
    let policy = json!({"basic": {}});
    let mut inner = json!({"podGroupTemplates": [{"name": "leaf", "schedulingPolicy": policy}]});
    for level in (0..levels).rev() {
        inner["name"] = json!(format!("c{level}"));
        inner["schedulingPolicy"] = json!({"gang": {"minGroupCount": 1}});
        inner = json!({"compositePodGroupTemplates": [inner]});
    }
    json!({"metadata": {"name": "w", "namespace": "n"}, "spec": inner})
}

#[test]
fn each_rule_of_a_pod_group_is_named() {
    let claim = |n: &str| json!({"name": n, "resourceClaimTemplateName": "t"});
    let find = |object: &Value| validate_create(resource("PodGroup"), object);
    check_each(
        find,
        &group(),
        vec![
            (
                "/spec",
                json!({}),
                "spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
            ),
            ("/spec/workloadRef", json!(null), ""),
            (
                "/spec/workloadRef/workloadName",
                json!("W"),
                "spec.workloadRef.workloadName: Invalid value: \"W\"",
            ),
            ("/spec/workloadRef/templateName", json!(""), "spec.workloadRef.templateName: Required value"),
            ("/spec/workloadRef/templateName", json!("a.b"), "spec.workloadRef.templateName: Invalid value"),
            ("/spec/parentCompositePodGroupName", json!("p"), ""),
            (
                "/spec/parentCompositePodGroupName",
                json!("P"),
                "spec.parentCompositePodGroupName: Invalid value",
            ),
            ("/spec/schedulingPolicy", json!({"basic": {}}), ""),
            (
                "/spec/schedulingPolicy",
                json!({}),
                "spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
            ),
            (
                "/spec/schedulingPolicy",
                json!({"basic": {}, "gang": {"minCount": 1}}),
                "spec.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one of",
            ),
            (
                "/spec/schedulingPolicy/gang/minCount",
                json!(-1),
                "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
            ),
            (
                "/spec/schedulingPolicy/gang/minCount",
                json!(0),
                "spec.schedulingPolicy.gang.minCount: Required value",
            ),
            ("/spec/schedulingPolicy/gang", json!({}), "spec.schedulingPolicy.gang.minCount: Required value"),
            (
                "/spec/schedulingConstraints/topology",
                json!([{"key": "a"}, {"key": "b"}]),
                "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
            ),
            (
                "/spec/schedulingConstraints/topology/0/key",
                json!("a b"),
                "spec.schedulingConstraints.topology[0].key: Invalid value",
            ),
            (
                "/spec/resourceClaims",
                json!([claim("a"), claim("b"), claim("c"), claim("d"), claim("e")]),
                "spec.resourceClaims: Too many: 5: must have at most 4 items",
            ),
            (
                "/spec/resourceClaims",
                json!([claim("a"), claim("a")]),
                "spec.resourceClaims[1]: Duplicate value: {\"name\":\"a\"",
            ),
            (
                "/spec/resourceClaims/0/resourceClaimTemplateName",
                json!("t"),
                "spec.resourceClaims[0]: Invalid value",
            ),
            ("/spec/disruptionMode", json!({}), "spec.disruptionMode: Invalid value: \"\""),
            ("/spec/disruptionMode", json!({"single": {}, "all": {}}), "spec.disruptionMode: Invalid value"),
            ("/spec/priorityClassName", json!("_"), "spec.priorityClassName: Invalid value"),
            (
                "/spec/priority",
                json!(1_000_000_001),
                "spec.priority: Invalid value: 1000000001: must be less",
            ),
            (
                "/spec/preemptionPolicy",
                json!("Always"),
                "spec.preemptionPolicy: Unsupported value: \"Always\": supported values: \"Never\", \"PreemptLower",
            ),
        ],
    );
}

#[test]
fn a_group_with_a_parent_needs_its_workload() {
    let mut object = with(&group(), "/spec/parentCompositePodGroupName", json!("p"));
    object["spec"].as_object_mut().unwrap().remove("workloadRef");
    let found = lines(validate_create(resource("PodGroup"), &object));
    assert!(found.len() == 1 && found[0].starts_with("spec.workloadRef: Required value"), "{found:?}");
}

#[test]
fn of_a_pod_group_only_the_size_of_the_gang_may_change() {
    let old = group();
    check_each(
        |new| validate_update(resource("PodGroup"), &old, new),
        &old,
        vec![
            ("/spec/schedulingPolicy/gang/minCount", json!(3), ""),
            ("/spec/workloadRef/workloadName", json!("v"), "spec.workloadRef: Invalid value"),
            (
                "/spec/schedulingConstraints",
                json!(null),
                "spec.schedulingConstraints: Invalid value: null: field is imm",
            ),
            ("/spec/resourceClaims", json!([]), "spec.resourceClaims: Invalid value"),
            ("/spec/disruptionMode", json!({"all": {}}), "spec.disruptionMode: Invalid value"),
            ("/spec/priorityClassName", json!("low"), "spec.priorityClassName: Invalid value"),
            ("/spec/priority", json!(1), "spec.priority: Invalid value: null: field is immutable"),
            ("/spec/preemptionPolicy", json!("Never"), "spec.preemptionPolicy: Invalid value"),
            ("/metadata/name", json!("h"), "metadata.name: Invalid value: \"h\": field is immutable"),
        ],
    );
    let new = with(&old, "/spec/schedulingPolicy", json!({"basic": {}}));
    let found = lines(validate_update(resource("PodGroup"), &old, &new));
    assert_eq!(
        found,
        [
            "spec.schedulingPolicy.basic: Invalid value: null: field is immutable",
            "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set",
        ]
    );
}

#[test]
fn conditions_and_claim_statuses_of_a_group_are_checked() {
    let condition = json!({
        "type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    });
    let mut base = group();
    base["status"] = json!({"conditions": [condition], "resourceClaimStatuses": [{"name": "c"}]});
    check_each(
        |new| validate_status(resource("PodGroup"), &group(), new),
        &base,
        vec![
            ("/status/conditions/0/type", json!(""), "status.conditions[0].type: Required value"),
            (
                "/status/conditions/0/status",
                json!("Yes"),
                "status.conditions[0].status: Unsupported value: \"Yes\": supported values: \"False\", \"True\"",
            ),
            ("/status/conditions/0/reason", json!("a b"), "status.conditions[0].reason: Invalid value"),
            ("/status/conditions/0/reason", json!(null), "status.conditions[0].reason: Required value"),
            (
                "/status/conditions/0/lastTransitionTime",
                json!(null),
                "status.conditions[0].lastTransitionTime: Req",
            ),
            (
                "/status/conditions/0/observedGeneration",
                json!(-1),
                "status.conditions[0].observedGeneration: Inv",
            ),
            ("/status/conditions", json!([condition, condition]), "status.conditions[1]: Duplicate value"),
            (
                "/status/resourceClaimStatuses/0/name",
                json!("x"),
                "status.resourceClaimStatuses[0].name: Invalid",
            ),
            (
                "/status/resourceClaimStatuses/0/resourceClaimName",
                json!("X"),
                "status.resourceClaimStatuses[0].res",
            ),
        ],
    );
}

#[test]
fn each_rule_of_a_workload_is_named() {
    let leaf = |n: usize| json!({"name": format!("t{n}"), "schedulingPolicy": {"basic": {}}});
    let nine: Vec<Value> = (0..9).map(leaf).collect();
    check_each(
        |object| validate_create(resource("Workload"), object),
        &workload(),
        vec![
            ("/spec", json!({}), "spec: Invalid value: \"\": must specify one of: `podGroupTemplates`"),
            ("/spec/podGroupTemplates", json!([]), "spec: Invalid value: \"\""),
            (
                "/spec/compositePodGroupTemplates",
                json!([{"name": "c", "schedulingPolicy": {"basic": {}}, "priority": 1,
                    "podGroupTemplates": [{"name": "d", "schedulingPolicy": {"basic": {}}, "priority": 1}]}]),
                "spec: Invalid value",
            ),
            (
                "/spec/podGroupTemplates",
                json!(nine),
                "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            ),
            (
                "/spec/podGroupTemplates/1/name",
                json!("a"),
                "spec.podGroupTemplates[1].name: Duplicate value: \"a\"",
            ),
            ("/spec/podGroupTemplates/1/name", json!("A"), "spec.podGroupTemplates[1].name: Invalid value"),
            (
                "/spec/podGroupTemplates/1/priority",
                json!(0),
                "spec: Invalid value: null: detected multiple priority",
            ),
            ("/spec/podGroupTemplates/1/priorityClassName", json!("x"), "spec: Invalid value"),
            (
                "/spec/podGroupTemplates/0/schedulingPolicy",
                json!(null),
                "spec.podGroupTemplates[0].schedulingPolicy",
            ),
            ("/spec/controllerRef/apiGroup", json!(""), ""),
            ("/spec/controllerRef/apiGroup", json!("B"), "spec.controllerRef.apiGroup: Invalid value"),
            ("/spec/controllerRef/kind", json!("a/b"), "spec.controllerRef.kind: Invalid value"),
            ("/spec/controllerRef/name", json!(""), "spec.controllerRef.name: Required value"),
        ],
    );
}

#[test]
fn a_tree_of_groups_has_at_most_four_levels_and_no_barren_branch() {
    for levels in 1..=3 {
        assert_eq!(lines(validate_create(resource("Workload"), &nested(levels))), [""; 0], "{levels} levels");
    }
    for levels in [4, 5, 60] {
        let found = lines(validate_create(resource("Workload"), &nested(levels)));
        assert!(found.len() == 1 && found[0].contains("at most 4 levels"), "{levels} levels: {found:?}");
    }
    let barren = with(&nested(1), "/spec/compositePodGroupTemplates/0/podGroupTemplates", json!([]));
    let found = lines(validate_create(resource("Workload"), &barren));
    let expected = "spec.compositePodGroupTemplates[0]: Invalid value: \"c0\": must have at least one child";
    assert!(found[0].starts_with(expected), "{found:?}");
    let twice = with(&nested(1), "/spec/compositePodGroupTemplates/0/podGroupTemplates/0/name", json!("c0"));
    let found = lines(validate_create(resource("Workload"), &twice));
    assert!(found.len() == 1 && found[0].contains("Duplicate value: \"c0\""), "{found:?}");
}

#[test]
fn of_a_workload_only_the_sizes_of_gangs_may_change() {
    let old = workload();
    let fewer = json!([{"name": "a", "schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 1}]);
    let other = with(&old, "/spec/podGroupTemplates/0/schedulingPolicy", json!({"basic": {}}));
    let found = lines(validate_update(resource("Workload"), &old, &other));
    assert!(
        found.iter().all(|line| line.starts_with("spec.podGroupTemplates[0].schedulingPolicy.")),
        "{found:?}"
    );
    assert_eq!(found.len(), 2, "neither policy may come or go: {found:?}");
    check_each(
        |new| validate_update(resource("Workload"), &old, new),
        &old,
        vec![
            ("/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", json!(5), ""),
            ("/spec/podGroupTemplates", fewer, "spec.podGroupTemplates: Forbidden: item may not be removed"),
            (
                "/spec/podGroupTemplates/0/disruptionMode",
                json!({"all": {}}),
                "spec.podGroupTemplates[0].disruptionMode",
            ),
            ("/spec/controllerRef/name", json!("k"), "spec.controllerRef: Invalid value"),
        ],
    );
}
