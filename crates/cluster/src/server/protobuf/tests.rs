use super::*;
use proptest::prelude::*;

/// A field that holds bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let what = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), bytes(1, &what), bytes(2, raw)].concat()
}

#[test]
fn every_line_of_the_table_is_understood() {
    let (written, understood) = table().counts();
    assert_eq!(written, understood);
    assert!(written > 1000, "{written}");
}

#[test]
fn every_served_kind_is_in_the_table_or_known_to_be_sent_as_json() {
    let only_json = ["CustomResourceDefinition"];
    for resource in crate::registry::RESOURCES {
        let group = if resource.group.is_empty() { "core" } else { resource.group };
        let group = group.split('.').next().unwrap_or_default();
        let name = format!("{group}.{}.{}", resource.hub, resource.kind);
        assert!(table().find(&name).is_some() || only_json.contains(&resource.kind), "{name}");
    }
}

#[test]
fn a_config_map_comes_out_as_it_went_in() {
    let metadata = [bytes(1, b"c"), bytes(3, b""), number(7, 0), bytes(8, b"")].concat();
    let entry = [bytes(1, b"key"), bytes(2, b"value")].concat();
    let raw =
        [bytes(1, &metadata), bytes(2, &entry), bytes(3, &[bytes(1, b"b"), bytes(2, b"\x00")].concat())];
    assert_eq!(
        decode(&enveloped("v1", "ConfigMap", &raw.concat())).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
            "data": {"key": "value"}, "binaryData": {"b": "AA=="},
        })
    );
}

#[test]
fn zeros_count_where_they_mean_something() {
    let spec = [number(1, 0), number(5, 0), number(7, 0)].concat();
    let deployment = decode(&enveloped("apps/v1", "Deployment", &bytes(2, &spec))).unwrap();
    assert_eq!(deployment["spec"], json!({"replicas": 0}));
    let class = decode(&enveloped("scheduling.k8s.io/v1", "PriorityClass", &number(2, 0))).unwrap();
    assert_eq!(class["value"], 0);
}

#[test]
fn special_types_are_spelled_as_json_does() {
    let quantity = |text: &[u8]| bytes(1, text);
    let limits = [bytes(1, b"cpu"), bytes(2, &quantity(b"500m"))].concat();
    let handler = bytes(2, &[bytes(1, b"/"), bytes(2, &[number(1, 0), number(2, 80)].concat())].concat());
    let probe = [bytes(1, &handler), number(2, 5)].concat();
    let container = [bytes(1, b"c"), bytes(8, &bytes(1, &limits)), bytes(10, &probe)].concat();
    let metadata = bytes(8, &number(1, 60));
    let pod = [bytes(1, &metadata), bytes(2, &bytes(2, &container))].concat();
    let pod = decode(&enveloped("v1", "Pod", &pod)).unwrap();
    assert_eq!(pod["metadata"]["creationTimestamp"], "1970-01-01T00:01:00Z");
    assert_eq!(
        pod["spec"]["containers"],
        json!([{
            "name": "c", "resources": {"limits": {"cpu": "500m"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 5},
        }])
    );
}

#[test]
fn options_of_a_deletion_are_read_in_any_version() {
    for version in ["v1", "policy/v1", "meta.k8s.io/v1"] {
        let raw = [number(1, 0), bytes(4, b"Background"), bytes(5, b"All")].concat();
        let options = decode(&enveloped(version, "DeleteOptions", &raw)).unwrap();
        assert_eq!(options["gracePeriodSeconds"], 0);
        assert_eq!(
            (&options["propagationPolicy"], &options["dryRun"]),
            (&json!("Background"), &json!(["All"]))
        );
    }
}

#[test]
fn what_is_not_known_is_refused_or_skipped() {
    let error = decode(&enveloped("example.com/v1", "Thing", b"")).unwrap_err();
    assert_eq!(error.code, 415);
    assert!(error.message.contains("example.com/v1 Thing"), "{}", error.message);
    let newer = [bytes(1, &bytes(1, b"n")), bytes(15, b"from the future"), number(14, 1)].concat();
    assert_eq!(decode(&enveloped("v1", "Namespace", &newer)).unwrap()["metadata"]["name"], "n");
}

#[test]
fn malformed_bodies_are_the_clients_fault() {
    for body in [
        b"".to_vec(),
        b"k8s".to_vec(),
        b"{}".to_vec(),
        [MAGIC, b"\x0a\xff"].concat(),
        [MAGIC, &[0xff; 20]].concat(),
        enveloped("v1", "Pod", b"\x0a\x05ab"),
        enveloped("v1", "Pod", &number(1, 1)),
        enveloped("v1", "Pod", &bytes(1, &bytes(1, b"\xff\xfe"))),
        enveloped("v1", "Pod", &bytes(1, &bytes(8, &[&[0x08], &[0xff; 8][..], &[0x7f]].concat()))),
    ] {
        assert_eq!(decode(&body).unwrap_err().code, 400, "{body:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(raw in prop::collection::vec(any::<u8>(), 0..200), kind in 0..4_usize) {
        let kind = ["Pod", "Node", "ConfigMap", "DeleteOptions"][kind];
        let _ = decode(&enveloped("v1", kind, &raw));
        let _ = decode(&raw);
    }
}
