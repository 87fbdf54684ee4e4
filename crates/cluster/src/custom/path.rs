//! The part of JSONPath that definitions use: fields, indices, and the entries of a list that have a value.

use serde_json::Value;

/// Steps of a path; a longer one is refused.
const STEPS_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Every,
    /// Entries whose field, named by these steps, has this value.
    Where(Vec<String>, String),
}

/// A path into an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

impl Path {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().strip_prefix('$').unwrap_or(text.trim());
        while !rest.is_empty() {
            if steps.len() >= STEPS_MAX {
                return None;
            }
            if let Some(after) = rest.strip_prefix('[') {
                let (inside, after) = bracket(after)?;
                steps.push(bracketed(inside)?);
                rest = after;
                continue;
            }
            let after = rest.strip_prefix('.')?;
            let (name, after) = field_name(after);
            if name.is_empty() {
                return None;
            }
            steps.push(if name == "*" { Step::Every } else { Step::Field(name) });
            rest = after;
        }
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// The first value that the path leads to.
    pub(crate) fn first<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
        }
        found.into_iter().next()
    }

    /// The same place as a JSON pointer, if the path consists of fields only.
    pub(super) fn pointer(&self) -> Option<String> {
        let mut out = String::new();
        for step in &self.0 {
            let Step::Field(name) = step else { return None };
            out.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
        }
        Some(out)
    }
}

impl Step {
    fn apply<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => value.get(index).into_iter().collect(),
            Self::Every => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            },
            Self::Where(path, wanted) => {
                let matches = |item: &&Value| {
                    let field = path.iter().try_fold(*item, |value, name| value.get(name));
                    field.is_some_and(|field| match field {
                        Value::String(text) => text == wanted,
                        other => serde_json::from_str(wanted).is_ok_and(|wanted: Value| wanted == *other),
                    })
                };
                value.as_array().into_iter().flatten().filter(matches).collect()
            }
        }
    }
}

/// Splits at the closing bracket. Brackets within quotes do not count.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, ']') => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn bracketed(inside: &str) -> Option<Step> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Step::Every);
    }
    if let Ok(index) = inside.parse() {
        return Some(Step::Index(index));
    }
    if let Some(name) = unquoted(inside) {
        return Some(Step::Field(name.to_owned()));
    }
    let condition = inside.strip_prefix("?(")?.strip_suffix(')')?;
    let (field, wanted) = condition.split_once("==")?;
    let field = field.trim().strip_prefix("@.")?;
    let wanted = wanted.trim();
    let wanted = unquoted(wanted).unwrap_or(wanted);
    Some(Step::Where(field.split('.').map(str::to_owned).collect(), wanted.to_owned()))
}

fn unquoted(text: &str) -> Option<&str> {
    ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

/// A field name up to the next step; a backslash keeps a dot within it.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (name, &text[at..]),
            c => name.push(c),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({
            "spec": {"size": 3, "a.b": "dotted", "list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [
                {"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"},
            ]},
        });
        let cases = [
            (".spec.size", Some(json!(3))),
            ("$.spec.size", Some(json!(3))),
            (".spec.list[1].n", Some(json!(2))),
            (".spec.list[*].n", Some(json!(1))),
            (".spec.a\\.b", Some(json!("dotted"))),
            (".spec['a.b']", Some(json!("dotted"))),
            (".status.conditions[?(@.type==\"Ready\")].status", Some(json!("True"))),
            (".status.conditions[?(@.type=='Gone')].status", None),
            (".spec.nothing.at.all", None),
        ];
        for (text, want) in cases {
            let path = Path::parse(text).unwrap_or_else(|| panic!("{text} is a path"));
            assert_eq!(path.first(&object).cloned(), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let long = ".a".repeat(100);
        for text in ["", "spec", ".", "..a", ".a[", ".a[?(x)]", ".a[?(@.b)]", "[", &long] {
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_of_fields_is_a_pointer() {
        assert_eq!(Path::parse(".spec.replicas").unwrap().pointer().as_deref(), Some("/spec/replicas"));
        assert_eq!(Path::parse(".spec.list[0]").unwrap().pointer(), None);
    }
}
