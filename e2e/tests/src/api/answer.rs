//! An answer, and what of it is the same on every server that behaves alike.

use super::script::Variables;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    content_type: String,
    warnings: Vec<String>,
    /// JSON, a list of the events of a watch, or the text of anything else.
    pub(super) body: Value,
}

impl Answer {
    pub(super) fn read(head: &http::response::Parts, bytes: &[u8], watch: bool) -> anyhow::Result<Self> {
        let header = |name: &str| {
            let values = head.headers.get_all(name).iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>()
        };
        let content_type = header("content-type").concat();
        let json = content_type.starts_with("application/json");
        let body = if watch && head.status.is_success() {
            let events = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
            Value::Array(events.collect::<Result<Vec<_>, _>>()?)
        } else if json {
            serde_json::from_slice(bytes)?
        } else if content_type.starts_with("application/yaml") {
            serde_saphyr::from_slice(bytes)?
        } else {
            Value::String(String::from_utf8_lossy(bytes).into_owned())
        };
        Ok(Self { code: head.status.as_u16(), content_type, warnings: header("warning"), body })
    }

    /// The answer without what is different each time: identities, times, versions, and names that the run made up.
    /// `keep` names fields that would be left out.
    pub(super) fn normalised(&self, variables: &Variables, keep: &BTreeSet<String>) -> Value {
        let normaliser = Normaliser { variables, keep };
        let mut body = normaliser.value(&self.body);
        if let Value::Array(events) = &mut body {
            events.retain(|event| !is_passing_bookmark(event));
        }
        json!({
            "code": self.code,
            "contentType": self.content_type,
            "warnings": self.warnings.iter().map(|text| normaliser.text(text)).collect::<Vec<_>>(),
            "body": body,
        })
    }
}

/// How far a watch has got is told now and then; only the bookmark after the initial events comes at a fixed point.
fn is_passing_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null()
}

struct Normaliser<'a> {
    variables: &'a Variables,
    keep: &'a BTreeSet<String>,
}

impl Normaliser<'_> {
    fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                Value::Object(map.iter().filter_map(|(key, value)| self.field(map, key, value)).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect()),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    fn field(&self, object: &Map<String, Value>, key: &str, value: &Value) -> Option<(String, Value)> {
        let key = key.to_owned();
        let placeholder = |text: &str| Some((key.clone(), json!(text)));
        match (key.as_str(), value) {
            // Who wrote what: of interest to server-side apply only.
            ("managedFields", _) if !self.keep.contains("managedFields") => None,
            // Sorted by time, which is of seconds: those of one second by name, those of two not.
            ("managedFields", Value::Array(entries)) => {
                let mut entries: Vec<Value> = entries.iter().map(|entry| self.value(entry)).collect();
                entries.sort_by_key(|entry| {
                    ["manager", "operation", "subresource", "apiVersion"].map(|key| entry[key].to_string())
                });
                Some((key, Value::Array(entries)))
            }
            // Sentences for people about fields and columns, not behaviour.
            ("description", _) if object.contains_key("name") && object.contains_key("type") => None,
            // Names of storage formats and addresses of this very server.
            ("storageVersionHash" | "serverAddressByClientCIDRs", _) => None,
            ("resourceVersion", Value::String(text)) if !text.is_empty() => placeholder("<version>"),
            ("continue", Value::String(text)) if !text.is_empty() => placeholder("<continue>"),
            ("name", Value::String(name)) => match object.get("generateName") {
                Some(Value::String(prefix)) => Some((key, json!(generated(prefix, name)))),
                _ => Some((key, self.value(value))),
            },
            ("cells", Value::Array(cells)) => {
                let cells =
                    cells.iter().map(|cell| if is_age(cell) { json!("<age>") } else { self.value(cell) });
                Some((key, cells.collect()))
            }
            _ => Some((key, self.value(value))),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in self.variables {
            // A short value, such as a version, would be found where it is not meant.
            if value.len() >= VARIABLE_BYTES_MIN {
                out = out.replace(value, &format!("<{name}>"));
            }
        }
        out = replace_all(&out, uuid_at, "<uid>");
        out = replace_all(&out, time_at, "<time>");
        if out.to_lowercase().replace(' ', "").contains("resourceversion") {
            out = replace_all(&out, digits_at, "<version>");
        }
        out
    }
}

/// Values that are shorter are not looked for in texts.
const VARIABLE_BYTES_MIN: usize = 5;
/// Letters at the end of a generated name.
const GENERATED_LETTERS: usize = 5;

/// `prefix<generated>` if the name is made as Kubernetes makes it, and the name itself if not.
fn generated(prefix: &str, name: &str) -> String {
    let letters = name.strip_prefix(prefix).unwrap_or_default();
    let made = letters.len() == GENERATED_LETTERS && letters.bytes().all(|b| b.is_ascii_alphanumeric());
    if made { format!("{prefix}<generated>") } else { name.to_owned() }
}

/// `5s`, `3m12s`
fn is_age(cell: &Value) -> bool {
    let Some(text) = cell.as_str() else { return false };
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    starts
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.bytes().all(|b| b.is_ascii_digit() || b"smhdy".contains(&b))
}

/// Replaces what a pattern finds: it says how long its match at the start of a text is.
fn replace_all(text: &str, pattern: fn(&str) -> Option<usize>, by: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match pattern(rest) {
            Some(length) if length > 0 => {
                out.push_str(by);
                rest = &rest[length..];
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// Matches a shape letter by letter: `x` is a hexadecimal digit, `9` a digit, all else itself.
fn shape_at(text: &str, shape: &str) -> Option<usize> {
    let fits = |(letter, form): (u8, u8)| match form {
        b'x' => letter.is_ascii_hexdigit(),
        b'9' => letter.is_ascii_digit(),
        form => letter == form,
    };
    let long_enough = text.len() >= shape.len();
    (long_enough && text.bytes().zip(shape.bytes()).all(fits)).then_some(shape.len())
}

fn uuid_at(text: &str) -> Option<usize> {
    shape_at(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn time_at(text: &str) -> Option<usize> {
    // Fractions stay: some fields have them and some must not.
    shape_at(text, "9999-99-99T99:99:99Z")
}

fn digits_at(text: &str) -> Option<usize> {
    Some(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Two descriptions of what is served, cut down to what both serve: an embedded cluster has fewer kinds, and all
/// versions of them at once.
pub(super) fn cut_to_common(real: &mut Value, embedded: &mut Value) {
    match (real, embedded) {
        (Value::Object(real), Value::Object(embedded)) => {
            for (key, value) in real.iter_mut() {
                if let Some(other) = embedded.get_mut(key) {
                    cut_to_common(value, other);
                }
            }
        }
        (Value::Array(real), Value::Array(embedded)) => {
            let keys =
                |items: &[Value]| -> Option<BTreeSet<String>> { items.iter().map(discovery_key).collect() };
            let (Some(of_real), Some(of_embedded)) = (keys(real), keys(embedded)) else { return };
            for items in [&mut *real, &mut *embedded] {
                items.retain(|item| {
                    discovery_key(item)
                        .is_some_and(|key| of_real.contains(&key) && of_embedded.contains(&key))
                });
                items.sort_by_key(discovery_key);
            }
            for (real, embedded) in real.iter_mut().zip(embedded) {
                cut_to_common(real, embedded);
            }
        }
        _ => {}
    }
}

/// What an entry of a discovery document is called, at whichever level it is.
fn discovery_key(item: &Value) -> Option<String> {
    if let Some(metadata) = item.get("metadata") {
        // The core group has no name.
        return Some(metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned());
    }
    let name = ["resource", "subresource", "name", "version"].iter().find_map(|key| item.get(key));
    name?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(body: Value) -> Value {
        let variables = Variables::from([("ns".to_owned(), "api-12345".to_owned())]);
        let answer = Answer { code: 200, content_type: String::new(), warnings: Vec::new(), body };
        answer.normalised(&variables, &BTreeSet::new())["body"].take()
    }

    #[test]
    fn what_a_run_makes_up_is_named_not_shown() {
        let found = normalised(json!({
            "metadata": {
                "name": "a-x7k2p", "generateName": "a-", "namespace": "api-12345", "resourceVersion": "77",
                "uid": "0b5e4f3a-0000-4000-8000-0123456789ab", "creationTimestamp": "2026-01-02T03:04:05Z",
                "managedFields": [],
            },
            "message": "Too large resource version: 9, current: 8",
            "rows": [{"cells": ["a", "5m12s", "1/1"]}],
        }));
        let expected = json!({
            "metadata": {
                "name": "a-<generated>", "generateName": "a-", "namespace": "<ns>", "resourceVersion": "<version>",
                "uid": "<uid>", "creationTimestamp": "<time>",
            },
            "message": "Too large resource version: <version>, current: <version>",
            "rows": [{"cells": ["a", "<age>", "1/1"]}],
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_that_is_not_generated_as_it_should_be_is_shown() {
        let found = normalised(json!({"metadata": {"name": "a-x7k2p9", "generateName": "a-"}}));
        assert_eq!(found["metadata"]["name"], "a-x7k2p9");
    }

    #[test]
    fn only_the_bookmark_after_initial_events_counts() {
        let last = json!({"type": "BOOKMARK", "object": {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}});
        let passing = json!({"type": "BOOKMARK", "object": {"metadata": {}}});
        assert_eq!(normalised(json!([passing, last])).as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn discovery_is_compared_for_what_both_serve() {
        let mut real = json!({"resources": [{"name": "pods", "verbs": ["get"]}, {"name": "secrets"}]});
        let mut embedded = json!({"resources": [{"name": "others"}, {"name": "pods", "verbs": []}]});
        cut_to_common(&mut real, &mut embedded);
        assert_eq!(real, json!({"resources": [{"name": "pods", "verbs": ["get"]}]}));
        assert_eq!(embedded, json!({"resources": [{"name": "pods", "verbs": []}]}));
    }
}
