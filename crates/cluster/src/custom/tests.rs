//! Claims about definitions and about objects of the kinds that they define.

use super::*;
use crate::registry::find;
use serde_json::json;

fn definition(schema: &Value) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "conversion": {"strategy": "None"},
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    })
}

fn spec_schema(properties: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn problems(definition: &Value) -> Vec<String> {
    let crds = find(GROUP, "v1", "customresourcedefinitions").unwrap();
    let causes = crate::kinds::validate_create(crds, definition);
    causes.into_iter().map(|c| format!("{}: {}", c.field, c.message)).collect()
}

fn resource(schema: &Value) -> &'static Resource {
    definition::read(&definition(schema)).unwrap()
}

/// What is wrong with an object of a kind with these properties in its spec, after defaults.
fn found(properties: &Value, spec: &Value) -> (Value, Vec<String>) {
    let resource = resource(&spec_schema(properties));
    let mut object = json!({"spec": spec});
    let definition = resource.custom.unwrap();
    set_defaults(definition, resource, &mut object);
    let causes = validate_object(definition, resource, &object);
    let causes = causes.into_iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
    (object["spec"].take(), causes)
}

#[test]
fn each_rule_of_a_definition_is_named() {
    let base = definition(&json!({"type": "object"}));
    assert_eq!(problems(&base), [""; 0]);
    let with = |pointer: &str, value: Value| {
        let mut changed = base.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        problems(&changed)
    };
    let cases = [
        ("/metadata/name", json!("other.example.com"), "metadata.name: Invalid value"),
        ("/spec/scope", json!("Galaxy"), "spec.scope: Unsupported value"),
        ("/spec/versions", json!([]), "spec.versions: Required value"),
        (
            "/spec/versions/0/storage",
            json!(false),
            "spec.versions: Invalid value: storage: must have exactly one",
        ),
        ("/spec/versions/0/name", json!("V1"), "spec.versions[0].name: Invalid value"),
        ("/spec/versions/0/schema", json!({}), "spec.versions[0].schema.openAPIV3Schema: Required value"),
        ("/spec/names/kind", json!("No Kind"), "spec.names.kind: Invalid value"),
        ("/spec/conversion/strategy", json!("Webhook"), "spec.conversion.strategy: Unsupported value"),
    ];
    for (pointer, value, want) in cases {
        let found = with(pointer, value);
        assert!(
            found.len() == 1 && found[0].starts_with(want),
            "{pointer}: wanted {want:?}, found {found:?}"
        );
    }
    let mut group = base.clone();
    group["metadata"]["name"] = json!("widgets.widgets.k8s.io");
    group["spec"]["group"] = json!("widgets.k8s.io");
    assert!(problems(&group)[0].contains("api-approved.kubernetes.io"));
}

#[test]
fn only_structural_schemas_are_taken() {
    let root = "spec.versions[0].schema.openAPIV3Schema";
    let cases = [
        (json!({"type": "string"}), format!("{root}.type: Required value: must be object")),
        (
            spec_schema(&json!({"a": {}})),
            format!("{root}.properties[spec].properties[a].type: Required value"),
        ),
        (
            spec_schema(&json!({"a": {"type": "text"}})),
            format!("{root}.properties[spec].properties[a].type: Unsupported"),
        ),
        (
            spec_schema(&json!({"a": {"type": "array"}})),
            format!("{root}.properties[spec].properties[a].items: Required"),
        ),
        (
            spec_schema(
                &json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}}),
            ),
            format!("{root}.properties[spec].properties[a].additionalProperties: Forbidden"),
        ),
        (
            spec_schema(&json!({"a": {"type": "string", "pattern": "("}})),
            format!("{root}.properties[spec].properties[a].pattern: Invalid value"),
        ),
        (
            spec_schema(&json!({"a": {"type": "integer", "default": "one"}})),
            format!("{root}.properties[spec].properties[a].default: Invalid value"),
        ),
        (
            spec_schema(
                &json!({"a": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}}),
            ),
            format!("{root}.properties[spec].properties[a].x-kubernetes-list-map-keys: Required value"),
        ),
        (
            spec_schema(&json!({"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}})),
            format!("{root}.properties[spec].properties[a].uniqueItems: Forbidden"),
        ),
    ];
    for (schema, want) in cases {
        let found = problems(&definition(&schema));
        assert!(found.len() == 1 && found[0].starts_with(&want), "wanted {want:?}, found {found:?}");
    }
}

#[test]
fn values_are_checked_against_the_schema() {
    let properties = json!({
        "size": {"type": "integer", "minimum": 1, "maximum": 5},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "port": {"x-kubernetes-int-or-string": true},
        "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "maybe": {"type": "string", "nullable": true},
        "at": {"type": "string", "format": "date-time"},
        "either": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
            "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
    });
    let cases = [
        (json!({"size": 3, "mode": "a", "name": "ab", "port": 80, "tags": ["x"], "maybe": null}), ""),
        (
            json!({"port": "http", "labels": {"a": "b"}, "either": {"x": "1"}, "at": "2026-01-01T00:00:00Z"}),
            "",
        ),
        (
            json!({"size": "3"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer",
        ),
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"size": 6}),
            "spec.size: Invalid value: 6: spec.size in body should be less than or equal to 5",
        ),
        (json!({"mode": "c"}), "spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\""),
        (
            json!({"name": "a"}),
            "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars",
        ),
        (json!({"name": "abcde"}), "spec.name: Too long"),
        (
            json!({"name": "AB"}),
            "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'",
        ),
        (json!({"port": 1.5}), "spec.port: Invalid value: \"number\""),
        (json!({"tags": ["a", "b", "c"]}), "spec.tags: Too many: 3: must have at most 2 items"),
        (json!({"tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\""),
        (json!({"parts": [{"id": "1"}, {"id": "1"}]}), "spec.parts[1]: Duplicate value"),
        (json!({"parts": [{}]}), "spec.parts[0].id: Required value"),
        (json!({"labels": {"a": 1}}), "spec.labels[a]: Invalid value: \"integer\""),
        (json!({"at": "yesterday"}), "spec.at: Invalid value: \"yesterday\""),
        (
            json!({"either": {"x": "1", "y": "2"}}),
            "spec.either: Invalid value: \"object\": \"spec.either\" must validate one",
        ),
    ];
    for (spec, want) in cases {
        let (_, causes) = found(&properties, &spec);
        let right = if want.is_empty() {
            causes.is_empty()
        } else {
            causes.len() == 1 && causes[0].starts_with(want)
        };
        assert!(right, "{spec}\nwanted {want:?}\nfound  {causes:?}");
    }
}

#[test]
fn defaults_are_filled_in_at_every_depth() {
    let properties = json!({
        "size": {"type": "integer", "default": 1},
        "inner": {"type": "object", "default": {}, "properties": {"mode": {"type": "string", "default": "a"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}},
        "maybe": {"type": "string", "nullable": true, "default": "x"},
    });
    let (spec, causes) = found(&properties, &json!({"size": null, "list": [{}, {"n": 1}], "maybe": null}));
    assert_eq!(causes, [""; 0]);
    let want = json!({"size": 1, "inner": {"mode": "a"}, "list": [{"n": 7}, {"n": 1}], "maybe": null});
    assert_eq!(spec, want);
}

#[test]
fn unknown_fields_are_found_unless_the_schema_keeps_them() {
    let resource = resource(&spec_schema(&json!({
        "known": {"type": "string"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "closed": {"type": "object", "properties": {"a": {"type": "string"}}},
        }},
        "object": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {}},
    })));
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "nmae": "w"},
        "spec": {
            "known": "x", "unknown": 1, "open": {"anything": {"goes": 1}, "closed": {"a": "x", "b": 1}},
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
        },
        "status": {},
    });
    let mut unknown = crate::schema::unknown_fields(resource, "v1", &object);
    unknown.sort();
    assert_eq!(
        unknown,
        ["metadata.nmae", "spec.object.spec", "spec.open.closed.b", "spec.unknown", "status"]
    );
}

#[test]
fn the_first_definition_gets_the_names() {
    let first = definition(&json!({"type": "object"}));
    let mut second = first.clone();
    second["spec"]["names"]["plural"] = json!("gadgets");
    second["spec"]["names"]["singular"] = json!("gadget");
    second["metadata"]["name"] = json!("gadgets.example.com");
    let judged = judge([&first, &second].into_iter());
    assert!(judged[0].resource.is_ok());
    let status = judged[1].status(&second, "2026-01-01T00:00:00Z").unwrap();
    assert_eq!(status["conditions"][0]["reason"], "KindConflict");
    assert_eq!(status["conditions"][1]["status"], "False");
    let status = judged[0].status(&first, "2026-01-01T00:00:00Z").unwrap();
    assert_eq!(status["storedVersions"], json!(["v1"]));
    let mut told = first.clone();
    told["status"] = status;
    assert_eq!(judged[0].status(&told, "2026-01-02T00:00:00Z"), None, "nothing has changed");
}

#[test]
fn newer_and_more_stable_versions_come_first() {
    let mut versions = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1beta10", "v1"];
    versions.sort_by_key(|version| names::preference(version));
    assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]);
}
