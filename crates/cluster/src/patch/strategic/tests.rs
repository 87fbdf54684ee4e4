use super::*;
use serde_json::json;

/// A small schema: `c` is merged by `name`, its `p` by `port`, `s` is a set, everything else is atomic.
fn lists(path: &[&str]) -> ListMerge {
    match path {
        ["c"] | ["m", "c"] => ListMerge::ByKey("name"),
        ["c", "p"] => ListMerge::ByKey("port"),
        ["s"] => ListMerge::Set,
        _ => ListMerge::Atomic,
    }
}

fn patched(object: &Value, patch: &Value) -> Result<Value, ApiError> {
    let mut object = object.clone();
    apply(&mut object, patch, &lists)?;
    Ok(object)
}

// Cases read as data: values, not references to them.
#[allow(clippy::needless_pass_by_value)]
fn check(object: Value, patch: Value, expected: Value) {
    assert_eq!(patched(&object, &patch).unwrap(), expected, "{object} patched with {patch}");
}

#[test]
fn plain_fields_are_set_and_nulls_remove() {
    check(json!({"a": 1, "b": 2}), json!({"a": 3, "c": 4}), json!({"a": 3, "b": 2, "c": 4}));
    check(json!({"a": 1, "b": 2}), json!({"a": null, "x": null}), json!({"b": 2}));
    check(
        json!({"m": {"a": 1}}),
        json!({"m": {"b": {"c": 1, "d": null}}}),
        json!({"m": {"a": 1, "b": {"c": 1}}}),
    );
    check(json!({"m": 5}), json!({"m": {"b": 1}}), json!({"m": {"b": 1}}));
    check(json!({"m": {"b": 1}}), json!({"m": 5}), json!({"m": 5}));
}

#[test]
fn lists_are_merged_as_the_schema_says() {
    let object = json!({"c": [{"name": "a", "v": 1, "w": 1}, {"name": "b", "v": 2}]});
    check(
        object.clone(),
        json!({"c": [{"name": "b", "v": 3}, {"name": "z", "x": null}]}),
        json!({"c": [{"name": "a", "v": 1, "w": 1}, {"name": "b", "v": 3}, {"name": "z"}]}),
    );
    check(
        object,
        json!({"c": [{"name": "a", "p": [{"port": 1}], "w": null}]}),
        json!({"c": [{"name": "a", "v": 1, "p": [{"port": 1}]}, {"name": "b", "v": 2}]}),
    );
    check(
        json!({"c": [{"name": "a", "p": [{"port": 1, "x": 1}, {"port": 2}]}]}),
        json!({"c": [{"name": "a", "p": [{"port": 1, "y": 1}, {"port": 2, "$patch": "delete"}]}]}),
        json!({"c": [{"name": "a", "p": [{"port": 1, "x": 1, "y": 1}]}]}),
    );
    check(json!({"s": ["x", "y"]}), json!({"s": ["y", "z"]}), json!({"s": ["x", "y", "z"]}));
    // What is new comes before what the patch does not name.
    check(
        json!({"c": [{"name": "a"}]}),
        json!({"c": [{"name": "b"}]}),
        json!({"c": [{"name": "b"}, {"name": "a"}]}),
    );
    check(json!({"l": [1, 2]}), json!({"l": [{"a": 1, "b": null}]}), json!({"l": [{"a": 1}]}));
}

#[test]
fn patch_directives_replace_delete_and_merge() {
    check(
        json!({"m": {"a": 1, "b": 2}}),
        json!({"m": {"$patch": "replace", "c": 3}}),
        json!({"m": {"c": 3}}),
    );
    check(json!({"m": {"a": 1}}), json!({"m": {"$patch": "delete", "c": 3}}), json!({"m": {}}));
    check(json!({"m": {"a": 1}}), json!({"m": {"$patch": "merge", "c": 3}}), json!({"m": {"a": 1, "c": 3}}));
    let object = json!({"c": [{"name": "a"}, {"name": "b"}]});
    check(object.clone(), json!({"c": [{"name": "a", "$patch": "delete"}]}), json!({"c": [{"name": "b"}]}));
    check(object.clone(), json!({"c": [{"name": "nope", "$patch": "delete"}]}), object.clone());
    check(
        object,
        json!({"c": [{"$patch": "replace"}, {"name": "z", "v": null}]}),
        json!({"c": [{"name": "z"}]}),
    );
}

#[test]
fn primitive_lists_lose_what_is_named() {
    check(
        json!({"s": ["x", "y", "z"]}),
        json!({"$deleteFromPrimitiveList/s": ["x", "z", "q"]}),
        json!({"s": ["y"]}),
    );
    check(
        json!({"s": ["x", "y"]}),
        json!({"$deleteFromPrimitiveList/s": ["x"], "s": ["w"]}),
        json!({"s": ["w", "y"]}),
    );
    check(json!({}), json!({"$deleteFromPrimitiveList/s": ["x"]}), json!({}));
}

#[test]
fn order_directives_order_what_they_name() {
    check(
        json!({"c": [{"name": "a"}, {"name": "b"}]}),
        json!({"$setElementOrder/c": [{"name": "z"}, {"name": "b"}, {"name": "a"}], "c": [{"name": "z"}]}),
        json!({"c": [{"name": "z"}, {"name": "b"}, {"name": "a"}]}),
    );
    // An entry that somebody else added stays where it was.
    check(
        json!({"c": [{"name": "x"}, {"name": "a"}, {"name": "b"}]}),
        json!({"$setElementOrder/c": [{"name": "a"}, {"name": "b"}], "c": [{"name": "b", "v": 1}]}),
        json!({"c": [{"name": "x"}, {"name": "a"}, {"name": "b", "v": 1}]}),
    );
    check(
        json!({"s": ["a", "b", "c"]}),
        json!({"$setElementOrder/s": ["c", "a"]}),
        json!({"s": ["b", "c", "a"]}),
    );
    check(json!({"l": [2, 1]}), json!({"$setElementOrder/l": [1, 2]}), json!({"l": [2, 1]}));
}

#[test]
fn retained_keys_are_all_that_stays() {
    check(
        json!({"m": {"a": 1, "b": 2, "c": 3}}),
        json!({"m": {"$retainKeys": ["a", "d"], "d": 4}}),
        json!({"m": {"a": 1, "d": 4}}),
    );
}

#[test]
fn malformed_patches_are_refused_with_the_reason() {
    for (patch, why) in [
        (json!([]), "must be an object"),
        (json!({"$patch": "burn"}), "replace, delete and merge"),
        (json!({"$patch": 1}), "replace, delete and merge"),
        (json!({"c": [{"v": 1}]}), "does not contain its merge key \"name\""),
        (json!({"c": [1]}), "is not an object"),
        (json!({"m": {"$retainKeys": ["a"], "b": 1}}), "not named in $retainKeys"),
        (json!({"m": {"$retainKeys": "a"}}), "must be a list"),
        (json!({"$deleteFromPrimitiveList/s": 1}), "must be a list"),
        (json!({"$setElementOrder/c": 1}), "must be a list"),
    ] {
        let error = patched(&json!({"c": [{"name": "a"}]}), &patch).unwrap_err();
        assert_eq!(error.code, 400);
        assert!(error.message.contains(why), "{patch}: {}", error.message);
    }
}

#[test]
fn applying_a_patch_twice_is_applying_it_once() {
    let object = json!({"c": [{"name": "a"}, {"name": "b"}], "s": ["x"], "m": {"a": 1}});
    let patch = json!({
        "c": [{"name": "b", "$patch": "delete"}, {"name": "z", "v": 1}], "$setElementOrder/c": [{"name": "z"}],
        "s": ["y"], "$deleteFromPrimitiveList/s": ["x"], "m": {"$retainKeys": ["b"], "b": 2},
    });
    let once = patched(&object, &patch).unwrap();
    assert_eq!(patched(&once, &patch).unwrap(), once);
}
