//! Where two JSON values differ.

use serde_json::Value;

/// One place where two answers differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// `body.metadata.labels.app`, `body.items[0]`
    pub(super) path: String,
    pub(super) real: Option<Value>,
    pub(super) embedded: Option<Value>,
}

/// All places, the innermost ones. Lists of different lengths differ as a whole.
pub(super) fn differences(real: &Value, embedded: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    compare("", Some(real), Some(embedded), &mut out);
    out
}

fn compare(path: &str, real: Option<&Value>, embedded: Option<&Value>, out: &mut Vec<Difference>) {
    match (real, embedded) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&inner, a.get(key), b.get(key), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), Some(a), Some(b), out);
            }
        }
        (real, embedded) if real == embedded => {}
        (real, embedded) => {
            out.push(Difference { path: path.to_owned(), real: real.cloned(), embedded: embedded.cloned() });
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        write!(
            f,
            "{}\n      real:     {}\n      embedded: {}",
            self.path,
            shown(&self.real),
            shown(&self.embedded)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_innermost_places_are_named() {
        let paths = |a: Value, b: Value| -> Vec<String> {
            differences(&a, &b).into_iter().map(|difference| difference.path).collect()
        };
        assert_eq!(paths(json!({"a": {"b": 1}}), json!({"a": {"b": 1}})), [""; 0]);
        assert_eq!(paths(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 2}})), ["a.b", "a.c"]);
        assert_eq!(paths(json!({"a": [1, 2]}), json!({"a": [1, 3]})), ["a[1]"]);
        assert_eq!(paths(json!({"a": [1, 2]}), json!({"a": [1]})), ["a"]);
    }
}
