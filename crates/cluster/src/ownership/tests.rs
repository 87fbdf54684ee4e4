use super::walk::{compare, merge, remove, set_of, with_named};
use super::*;
use crate::registry::find;
use crate::schema::KindVersions;
use proptest::prelude::*;
use serde_json::{Value, json};

fn pod_type() -> impl FieldType {
    KindVersions::of(find("", "v1", "pods").unwrap()).type_of("v1").unwrap()
}

fn set(fields: &Value) -> FieldSet {
    FieldSet::from_json(fields).unwrap()
}

fn shown(set: &FieldSet) -> Value {
    let mut text = String::new();
    set.write_json(&mut text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn sets_are_written_as_they_were_read() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a.b/c": {}, "f:\"quoted\"": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}, "f:list": {"v:1": {}, "i:3": {}}},
    });
    assert_eq!(shown(&set(&fields)), fields);
    // Keys have one order, whoever wrote them.
    let keys = |text: &str| set(&json!({text: {}}));
    assert_eq!(keys(r#"k:{"b":1,"a":2}"#), keys(r#"k:{"a":2,"b":1}"#));
}

#[test]
fn what_is_no_set_is_not_read() {
    let mut deep = json!({});
    for _ in 0..1000 {
        deep = json!({"f:a": deep});
    }
    for bad in [json!([]), json!({"x": {}}), json!({"f:a": 1}), json!({"k:[]": {}}), json!({"v:{": {}}), deep]
    {
        assert!(FieldSet::from_json(&bad).is_none(), "{bad}");
    }
}

#[test]
fn differences_leave_parents_and_children_alone() {
    let all = set(&json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}}));
    assert_eq!(shown(&all.difference(&set(&json!({"f:a": {}})))), json!({"f:a": {"f:b": {}, "f:c": {}}}));
    assert_eq!(
        shown(&all.difference(&set(&json!({"f:a": {"f:b": {}}})))),
        json!({"f:a": {".": {}, "f:c": {}}})
    );
    assert_eq!(shown(&all.outside(&set(&json!({"f:a": {}})))), json!({}));
    assert_eq!(all.paths(), [".a", ".a.b", ".a.c"]);
}

#[test]
fn a_comparison_tells_what_came_what_changed_and_what_went() {
    let old = json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"tolerations": [{"key": "x"}]}});
    let new = json!({"metadata": {"labels": {"b": "2", "c": "1"}}, "spec": {"nodeSelector": {"k": "v"}}});
    let found = compare(pod_type(), &old, &new);
    assert_eq!(found.added.paths(), [".metadata.labels.c", ".spec.nodeSelector"]);
    assert_eq!(found.modified.paths(), [".metadata.labels.b"]);
    assert_eq!(found.removed.paths(), [".metadata.labels.a", ".spec.tolerations"]);
}

#[test]
fn the_applied_order_of_a_list_wins_and_other_entries_stay_near_their_place() {
    let names = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": all}})
    };
    for (live, applied, expected) in [
        (&["a", "b"][..], &["b", "a"][..], &["b", "a"][..]),
        (&["a", "x", "b"], &["a", "b", "c"], &["a", "x", "b", "c"]),
        (&["x", "a", "y"], &["b", "a"], &["x", "b", "a", "y"]),
        (&["a", "b", "c"], &["c", "x", "a"], &["b", "c", "x", "a"]),
        (&[], &["b", "a"], &["b", "a"]),
        (&["a"], &[], &["a"]),
    ] {
        let merged = merge(pod_type(), &names(live), &names(applied)).unwrap();
        assert_eq!(merged, names(expected), "{live:?} and {applied:?}");
    }
}

#[test]
fn equal_sets_are_one_in_memory() {
    let make = || intern::share(set(&json!({"f:equal_sets_are_one": {}})));
    assert!(std::sync::Arc::ptr_eq(&make(), &make()));
}

/// Pods with few fields and few values, so that two of them have much in common.
fn any_pod() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["a", "b", "c"]);
    let labels = prop::collection::btree_map(text.clone(), text.clone(), 0..3);
    let container = (text.clone(), prop::option::of(text.clone())).prop_map(|(name, image)| {
        let mut container = json!({"name": name});
        if let Some(image) = image {
            container["image"] = json!(image);
        }
        container
    });
    let containers = prop::collection::vec(container, 0..3).prop_map(|mut all| {
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|c: &Value| seen.insert(c["name"].to_string()));
        all
    });
    let finalizers = prop::collection::btree_set(text, 0..3);
    (labels, containers, finalizers, any::<bool>()).prop_map(|(labels, containers, finalizers, empty)| {
        let mut pod = json!({"metadata": {}, "spec": {}});
        if !labels.is_empty() || empty {
            pod["metadata"]["labels"] = json!(labels);
        }
        if !finalizers.is_empty() {
            pod["metadata"]["finalizers"] = json!(finalizers);
        }
        if !containers.is_empty() {
            pod["spec"]["containers"] = json!(containers);
        }
        pod
    })
}

proptest! {
    #[test]
    fn a_merge_has_all_that_was_applied_and_loses_nothing(live in any_pod(), applied in any_pod()) {
        let merged = merge(pod_type(), &live, &applied).unwrap();
        // What was applied as an empty object may have content that others wrote.
        let paths = with_named(Some(pod_type()), &set_of(pod_type(), &merged));
        prop_assert!(set_of(pod_type(), &applied).difference(&paths).is_empty());
        let lost = compare(pod_type(), &live, &merged).removed;
        prop_assert!(lost.is_empty(), "{:?}", lost.paths());
        prop_assert_eq!(merge(pod_type(), &merged, &applied).unwrap(), merged);
    }

    #[test]
    fn equal_objects_do_not_differ_and_differences_mirror(a in any_pod(), b in any_pod()) {
        let same = compare(pod_type(), &a, &a);
        prop_assert!(same.added.is_empty() && same.modified.is_empty() && same.removed.is_empty());
        let (there, back) = (compare(pod_type(), &a, &b), compare(pod_type(), &b, &a));
        prop_assert_eq!(there.added, back.removed);
        prop_assert_eq!(there.modified, back.modified);
    }

    #[test]
    fn what_is_removed_is_gone(a in any_pod(), b in any_pod()) {
        let paths = set_of(pod_type(), &b);
        let rest = set_of(pod_type(), &remove(pod_type(), &a, &paths));
        // Whoever loses all its children is gone, or is left as an empty thing of its own.
        let left = rest.intersection(&paths);
        prop_assert!(left.is_empty(), "{:?}", left.paths());
    }

    #[test]
    fn unions_and_intersections_obey_their_laws(a in any_pod(), b in any_pod()) {
        let (a, b) = (set_of(pod_type(), &a), set_of(pod_type(), &b));
        prop_assert_eq!(a.clone().union(b.clone()), b.clone().union(a.clone()));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        let parts = a.difference(&b).union(a.intersection(&b));
        prop_assert_eq!(parts, a);
    }
}
