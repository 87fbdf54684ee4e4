use super::*;

fn pod() -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "1", "example.com/gpu": 1},
                              "limits": {"cpu": "2", "example.com/gpu": "1"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }],
            "initContainers": [{"name": "i", "image": "i"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
            "schedulingGroup": {"podGroupName": "g"},
            "schedulingGates": [{"name": "example.com/gate"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            ]}}},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            ],
        },
    })
}

const TERM: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

#[test]
fn each_rule_of_a_pods_containers_is_named() {
    check_each(
        |object| validate_create(resource("Pod"), object),
        &pod(),
        vec![
            ("/spec/containers", json!([]), "spec.containers: Required value"),
            ("/spec/containers/0/name", json!("C"), "spec.containers[0].name: Invalid value: \"C\""),
            ("/spec/containers/0/name", json!("i"), "spec.containers[0].name: Duplicate value: \"i\""),
            ("/spec/containers/0/image", json!(""), "spec.containers[0].image: Required value"),
            ("/spec/containers/0/image", json!(" i"), "spec.containers[0].image: Invalid value"),
            (
                "/spec/containers/0/imagePullPolicy",
                json!("Maybe"),
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Maybe\"",
            ),
            (
                "/spec/containers/0/resources/requests/cpu",
                json!("x"),
                "spec.containers[0].resources.requests[cpu]: Invalid value",
            ),
            (
                "/spec/containers/0/resources/requests/cpu",
                json!("-1"),
                "spec.containers[0].resources.requests[cpu]: Invalid value",
            ),
            (
                "/spec/containers/0/resources/requests/cpu",
                json!("2001m"),
                "spec.containers[0].resources.requests: Invalid value: \"2001m\": must be less than or equal to \
                 cpu limit of 2",
            ),
            ("/spec/containers/0/resources/requests/cpu", json!(2), ""),
            (
                "/spec/containers/0/resources/limits",
                json!({"cpu": 2}),
                "spec.containers[0].resources.limits: Required value",
            ),
            (
                "/spec/containers/0/resources/requests/gpu",
                json!(1),
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\"",
            ),
            (
                "/spec/containers/0/ports/0/containerPort",
                json!(0),
                "spec.containers[0].ports[0].containerPort: Invalid value: 0",
            ),
            (
                "/spec/containers/0/ports/0/hostPort",
                json!(70000),
                "spec.containers[0].ports[0].hostPort: Invalid value",
            ),
            (
                "/spec/containers/0/ports/0/protocol",
                json!("X"),
                "spec.containers[0].ports[0].protocol: Unsupported value",
            ),
            (
                "/spec/containers/0/volumeMounts/0/name",
                json!("w"),
                "spec.containers[0].volumeMounts[0].name: Not found",
            ),
            (
                "/spec/containers/0/volumeMounts/0/mountPath",
                json!(""),
                "spec.containers[0].volumeMounts[0].mountPath: Required",
            ),
        ],
    );
}

#[test]
fn devices_are_whole_and_not_overcommitted() {
    for (request, limit, want) in [
        (json!("1"), json!("1"), None),
        (json!("500m"), json!("500m"), Some("must be an integer")),
        (json!("1"), json!("2"), Some("must be equal to example.com/gpu limit of 2")),
    ] {
        let mut object = pod();
        object["spec"]["containers"][0]["resources"] =
            json!({"requests": {"example.com/gpu": request}, "limits": {"example.com/gpu": limit}});
        let found = lines(validate_create(resource("Pod"), &object));
        match want {
            None => assert_eq!(found, [""; 0]),
            Some(want) => assert!(found.iter().all(|f| f.contains(want)) && !found.is_empty(), "{found:?}"),
        }
    }
}

#[test]
fn two_containers_cannot_have_the_same_port_of_the_host() {
    let mut object = pod();
    let container = |name: &str| {
        json!({"name": name, "image": "i",
        "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]})
    };
    object["spec"]["containers"] = json!([container("a"), container("b")]);
    let found = lines(validate_create(resource("Pod"), &object));
    assert_eq!(found, ["spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\""]);
}

#[test]
fn each_rule_of_a_pods_placement_is_named() {
    let weighted = json!([{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]);
    let term = format!("{TERM}/0");
    let expression = format!("{TERM}/0/matchExpressions/0");
    let operator = format!("{expression}/operator");
    let values = format!("{expression}/values");
    let fields = format!("{term}/matchFields");
    check_each(
        |object| validate_create(resource("Pod"), object),
        &pod(),
        vec![
            ("/spec/nodeSelector", json!({"a b": "c"}), "spec.nodeSelector: Invalid value: \"a b\""),
            ("/spec/tolerations/0", json!({"operator": "Exists"}), ""),
            ("/spec/tolerations/0", json!({}), "spec.tolerations[0].operator: Invalid value"),
            ("/spec/tolerations/0", json!({"key": "a", "value": "b"}), ""),
            (
                "/spec/tolerations/0/operator",
                json!("Has"),
                "spec.tolerations[0].operator: Unsupported value: \"Has\"",
            ),
            ("/spec/tolerations/0/value", json!("x"), "spec.tolerations[0].operator: Invalid value: \"x\""),
            ("/spec/tolerations/0/effect", json!("NoSchedule"), "spec.tolerations[0].effect: Invalid value"),
            (
                TERM,
                json!([]),
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorT",
            ),
            (
                &operator,
                json!("in"),
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeS",
            ),
            (&operator, json!("Exists"), "spec.affinity"),
            (&operator, json!("Gt"), "spec.affinity"),
            (&values, json!([]), "spec.affinity"),
            (&fields, json!([{"key": "metadata.name", "operator": "In", "values": ["n1"]}]), ""),
            (&fields, json!([{"key": "spec.x", "operator": "In", "values": ["n1"]}]), "spec.affinity"),
            (
                "/spec/affinity/podAffinity",
                json!({"preferredDuringSchedulingIgnoredDuringExecution": weighted}),
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value",
            ),
            (
                "/spec/affinity/podAntiAffinity",
                json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}),
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required",
            ),
            (
                "/spec/topologySpreadConstraints/0/maxSkew",
                json!(0),
                "spec.topologySpreadConstraints[0].maxSkew: Inv",
            ),
            (
                "/spec/topologySpreadConstraints/0/whenUnsatisfiable",
                json!("x"),
                "spec.topologySpreadConstraints[0].when",
            ),
            (
                "/spec/topologySpreadConstraints/0/minDomains",
                json!(0),
                "spec.topologySpreadConstraints[0].minDomains",
            ),
        ],
    );
}

#[test]
fn each_other_rule_of_a_pod_is_named() {
    check_each(
        |object| validate_create(resource("Pod"), object),
        &pod(),
        vec![
            ("/spec/schedulingGroup", json!({}), "spec.schedulingGroup.podGroupName: Invalid value: null"),
            (
                "/spec/schedulingGroup/podGroupName",
                json!("G"),
                "spec.schedulingGroup.podGroupName: Invalid value: \"G\"",
            ),
            ("/spec/evictionResponders", json!([{"name": "x"}]), "spec.schedulingGroup: Forbidden"),
            (
                "/spec/schedulingGates",
                json!([{"name": "a"}, {"name": "a"}]),
                "spec.schedulingGates[1]: Duplicate value: \"a\"",
            ),
            (
                "/spec/nodeName",
                json!("n1"),
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates",
            ),
            (
                "/spec/restartPolicy",
                json!("Sometimes"),
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \
                 \"Never\"",
            ),
            ("/spec/dnsPolicy", json!("x"), "spec.dnsPolicy: Unsupported value"),
            ("/spec/activeDeadlineSeconds", json!(0), "spec.activeDeadlineSeconds: Invalid value: 0"),
            ("/spec/priority", json!(2_000_000_000), ""),
        ],
    );
}

#[test]
fn a_pod_can_hardly_be_changed() {
    let mut old = pod();
    old["spec"]["schedulingGates"] = json!([]);
    old["spec"]["activeDeadlineSeconds"] = json!(10);
    let refused = "spec: Forbidden: pod updates may not change fields other than";
    let toleration = old["spec"]["tolerations"][0].clone();
    check_each(
        |new| validate_update(resource("Pod"), &old, new),
        &old,
        vec![
            ("/metadata/labels", json!({"a": "b"}), ""),
            ("/spec/containers/0/image", json!("j"), ""),
            ("/spec/initContainers/0/image", json!("j"), ""),
            ("/spec/containers/0/name", json!("d"), refused),
            ("/spec/nodeName", json!("n1"), refused),
            ("/spec/nodeSelector/a", json!("b"), refused),
            ("/spec/schedulingGroup/podGroupName", json!("h"), refused),
            ("/spec/priority", json!(3), refused),
            ("/spec/terminationGracePeriodSeconds", json!(3), refused),
            ("/spec/imagePullSecrets", json!([]), ""),
            (
                "/spec/schedulingGates",
                json!([{"name": "g"}]),
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed",
            ),
            ("/spec/activeDeadlineSeconds", json!(9), ""),
            ("/spec/activeDeadlineSeconds", json!(11), "spec.activeDeadlineSeconds: Invalid value: 11"),
            ("/spec/activeDeadlineSeconds", json!(null), "spec.activeDeadlineSeconds: Invalid value"),
            ("/spec/tolerations", json!([{"operator": "Exists"}, toleration]), ""),
            ("/spec/tolerations/0/tolerationSeconds", json!(30), ""),
            ("/spec/tolerations", json!([]), "spec.tolerations: Forbidden"),
        ],
    );
}

#[test]
fn a_negative_grace_period_can_only_be_repaired() {
    let old = with(&pod(), "/spec/terminationGracePeriodSeconds", json!(-5));
    for (seconds, allowed) in [(1, true), (2, false)] {
        let new = with(&old, "/spec/terminationGracePeriodSeconds", json!(seconds));
        assert_eq!(validate_update(resource("Pod"), &old, &new).is_empty(), allowed, "{seconds}");
    }
}

#[test]
fn a_gated_pod_may_become_more_demanding_but_not_less() {
    let old = pod();
    let in_zone = json!({"key": "zone", "operator": "Exists"});
    let expressions = format!("{TERM}/0/matchExpressions");
    let first = old.pointer(&format!("{expressions}/0")).unwrap().clone();
    check_each(
        |new| validate_update(resource("Pod"), &old, new),
        &old,
        vec![
            ("/spec/schedulingGates", json!([]), ""),
            ("/spec/nodeSelector/zone", json!("a"), ""),
            ("/spec/nodeSelector/disk", json!("hdd"), "spec.nodeSelector: Invalid value"),
            ("/spec/nodeSelector", json!({}), "spec.nodeSelector: Invalid value"),
            (&expressions, json!([first, in_zone]), ""),
            (&expressions, json!([in_zone]), "spec.affinity.nodeAffinity"),
            (
                TERM,
                json!([{"matchExpressions": [first]}, {"matchExpressions": [in_zone]}]),
                "spec.affinity.nodeAffin",
            ),
            (
                "/spec/affinity/podAntiAffinity",
                json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}),
                "spec: Forbidden",
            ),
        ],
    );
}

#[test]
fn the_quality_of_service_of_a_pod_is_fixed_and_conditions_are_unique() {
    let old = with(&pod(), "/status", json!({"qosClass": "Burstable"}));
    let scheduled = json!({"type": "PodScheduled", "status": "True"});
    check_each(
        |new| validate_status(resource("Pod"), &old, new),
        &old,
        vec![
            ("/status/qosClass", json!("Guaranteed"), "status.qosClass: Invalid value"),
            ("/status/conditions", json!([scheduled]), ""),
            ("/status/conditions", json!([scheduled, scheduled]), "status.conditions[1]: Duplicate value"),
            ("/status/nominatedNodeName", json!("N"), "status.nominatedNodeName: Invalid value"),
        ],
    );
}

#[test]
fn the_same_amount_in_another_spelling_is_no_change() {
    let mut old = pod();
    set_defaults(resource("Pod"), &mut old);
    let resources = &old["spec"]["containers"][0]["resources"];
    assert_eq!(
        *resources,
        json!({
            "requests": {"cpu": "1", "example.com/gpu": "1"}, "limits": {"cpu": "2", "example.com/gpu": "1"},
        })
    );
    let mut new = with(&old, "/spec/containers/0/resources/requests/cpu", json!("1000m"));
    set_defaults(resource("Pod"), &mut new);
    assert_eq!(lines(validate_update(resource("Pod"), &old, &new)), [""; 0]);
}
