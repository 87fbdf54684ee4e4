//! Label selectors as objects have them: `matchLabels` and `matchExpressions`.

use serde_json::{Map, Value};

/// True if a selector selects an object with these labels. An empty selector selects all; none selects nothing.
pub(crate) fn matches(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let Some(selector) = selector.and_then(Value::as_object) else {
        return false;
    };
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    wanted.into_iter().all(|(key, value)| label(key) == value.as_str())
        && expressions.into_iter().all(|expression| {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
            let found = label(text("key"));
            let values = expression.get("values").and_then(Value::as_array);
            let listed = || values.into_iter().flatten().any(|value| value.as_str() == found);
            match text("operator") {
                "In" => found.is_some() && listed(),
                "NotIn" => found.is_none() || !listed(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_operator_means_what_it_says() {
        let labels = json!({"app": "web", "tier": "a"});
        let with = |expression: Value| json!({"matchExpressions": [expression]});
        let cases = [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (json!({"matchLabels": {"app": "web", "none": "x"}}), false),
            (with(json!({"key": "tier", "operator": "In", "values": ["a", "b"]})), true),
            (with(json!({"key": "none", "operator": "In", "values": ["a"]})), false),
            (with(json!({"key": "tier", "operator": "NotIn", "values": ["a"]})), false),
            (with(json!({"key": "none", "operator": "NotIn", "values": ["a"]})), true),
            (with(json!({"key": "tier", "operator": "Exists"})), true),
            (with(json!({"key": "none", "operator": "DoesNotExist"})), true),
            (with(json!({"key": "tier", "operator": "Near"})), false),
        ];
        for (selector, want) in cases {
            assert_eq!(matches(Some(&selector), labels.as_object()), want, "{selector}");
        }
        assert!(!matches(None, labels.as_object()));
        assert!(matches(Some(&json!({})), None));
    }
}
