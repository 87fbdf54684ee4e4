//! Claims about configuration, services and storage.

use super::*;

fn created(kind: &'static str) -> impl Fn(&Value) -> Vec<Cause> {
    move |object| validate_create(resource(kind), object)
}

#[test]
fn configuration_has_keys_and_can_be_frozen() {
    let base = json!({"metadata": {"name": "c", "namespace": "n"}, "data": {"a.b": "x"}, "binaryData": {}, "immutable": true});
    check_each(
        created("ConfigMap"),
        &base,
        vec![
            ("/data", json!({"a b": "x"}), "data[a b]: Invalid value: \"a b\": a valid config key"),
            ("/data", json!({"..": "x"}), "data[..]: Invalid value: \"..\""),
            ("/binaryData", json!({"a.b": "eA=="}), "data[a.b]: Invalid value: \"a.b\": duplicate"),
            ("/data", json!({"a": "x".repeat((1 << 20) + 1)}), "data: Too long"),
        ],
    );
    check_each(
        |new| validate_update(resource("ConfigMap"), &base, new),
        &base,
        vec![
            ("/data/a.b", json!("y"), "data: Forbidden: field is immutable when `immutable` is set"),
            ("/immutable", json!(false), "immutable: Forbidden"),
        ],
    );
    let secret =
        json!({"metadata": {"name": "s", "namespace": "n"}, "type": "Opaque", "data": {"a": "eA=="}});
    check_each(
        created("Secret"),
        &secret,
        vec![
            ("/data/a", json!("not base64"), "data: Invalid value: \"a\": the value must be base64"),
            ("/type", json!("kubernetes.io/ssh-auth"), "data[ssh-privatekey]: Required value"),
        ],
    );
    let other = with(&secret, "/type", json!("example.com/other"));
    assert_eq!(validate_update(resource("Secret"), &secret, &other).len(), 1);
}

#[test]
fn the_text_of_a_secret_wins_over_its_data() {
    let mut secret = json!({"data": {"a": "b2xk", "b": "a2VwdA=="}, "stringData": {"a": "new"}});
    set_defaults(resource("Secret"), &mut secret);
    assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "bmV3", "b": "a2VwdA=="}}));
}

#[test]
fn each_rule_of_a_service_is_named() {
    let mut base = json!({
        "metadata": {"name": "s", "namespace": "n"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    });
    set_defaults(resource("Service"), &mut base);
    assert_eq!(base["spec"]["ports"][0], json!({"port": 80, "protocol": "TCP", "targetPort": 80}));
    check_each(
        created("Service"),
        &base,
        vec![
            ("/spec/ports", json!([]), "spec.ports: Required value"),
            ("/spec/ports/0/port", json!(0), "spec.ports[0].port: Invalid value: 0"),
            ("/spec/ports/0/targetPort", json!("http"), ""),
            ("/spec/type", json!("Tunnel"), "spec.type: Unsupported value"),
            ("/spec/clusterIP", json!("here"), "spec.clusterIP: Invalid value"),
            ("/spec/externalIPs", json!(["x"]), "spec.externalIPs[0]: Invalid value"),
            (
                "/spec/ports",
                json!([{"port": 1, "name": "a", "protocol": "TCP"}, {"port": 2, "name": "a", "protocol": "TCP"}]),
                "spec.ports[1].name: Duplicate value",
            ),
        ],
    );
    let addressed = with(&base, "/spec/clusterIP", json!("10.96.0.9"));
    let moved = with(&base, "/spec/clusterIP", json!("10.96.0.10"));
    assert_eq!(validate_update(resource("Service"), &addressed, &moved).len(), 1);
}

#[test]
fn volumes_and_claims_say_how_large_they_are() {
    let volume = json!({
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
    });
    check_each(
        created("PersistentVolume"),
        &volume,
        vec![
            ("/spec/capacity", json!({}), "spec.capacity: Required value"),
            ("/spec/accessModes", json!([]), "spec.accessModes: Required value"),
            ("/spec/accessModes", json!(["Always"]), "spec.accessModes[0]: Unsupported value"),
            ("/spec/hostPath", json!(null), "spec: Required value: must specify a volume type"),
            (
                "/spec/nfs",
                json!({"server": "s", "path": "/"}),
                "spec: Forbidden: may not specify more than 1",
            ),
        ],
    );
    let claim = json!({
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
    });
    check_each(
        created("PersistentVolumeClaim"),
        &claim,
        vec![
            ("/spec/resources/requests", json!({}), "spec.resources[storage]: Required value"),
            ("/spec/resources/requests/storage", json!("0"), "spec.resources[storage]: Invalid value"),
            ("/spec/volumeMode", json!("Tape"), "spec.volumeMode: Unsupported value"),
        ],
    );
    check_each(
        |new| validate_update(resource("PersistentVolumeClaim"), &claim, new),
        &claim,
        vec![
            ("/spec/volumeName", json!("v"), ""),
            ("/spec/resources/requests/storage", json!("2Gi"), ""),
            (
                "/spec/resources/requests/storage",
                json!("500Mi"),
                "spec.resources.requests.storage: Forbidden",
            ),
            ("/spec/accessModes", json!(["ReadOnlyMany"]), "spec: Forbidden: spec is immutable"),
        ],
    );
}

#[test]
fn a_storage_class_does_not_change_its_mind() {
    let base = json!({"metadata": {"name": "s"}, "provisioner": "example.com/disk", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"});
    check_each(
        created("StorageClass"),
        &base,
        vec![
            ("/provisioner", json!(""), "provisioner: Required value"),
            ("/reclaimPolicy", json!("Burn"), "reclaimPolicy: Unsupported value"),
            ("/volumeBindingMode", json!("Later"), "volumeBindingMode: Unsupported value"),
        ],
    );
    check_each(
        |new| validate_update(resource("StorageClass"), &base, new),
        &base,
        vec![
            (
                "/provisioner",
                json!("example.com/other"),
                "provisioner: Forbidden: updates to provisioner are forbidden.",
            ),
            ("/allowVolumeExpansion", json!(true), ""),
        ],
    );
}

#[test]
fn claims_of_devices_ask_for_one_unless_they_say_more() {
    let mut claim = json!({"spec": {"devices": {"requests": [
        {"name": "a", "exactly": {"deviceClassName": "gpu"}},
        {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "gpu", "allocationMode": "All"}]},
    ]}}});
    set_defaults(resource("ResourceClaim"), &mut claim);
    let requests = &claim["spec"]["devices"]["requests"];
    assert_eq!(requests[0]["exactly"]["count"], 1);
    assert_eq!(requests[0]["exactly"]["allocationMode"], "ExactCount");
    assert!(requests[1]["firstAvailable"][0].get("count").is_none());
}
