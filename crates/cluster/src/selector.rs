//! Label and field selectors, as query strings spell them.

use crate::error::ApiError;
use crate::kinds;
use crate::registry::Resource;
use serde_json::{Value, json};

/// A query string longer than this is not a selector that anybody wrote.
const SELECTOR_BYTES_MAX: usize = 64 * 1024;

/// Conditions on labels, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In { key: String, values: Vec<String> },
    NotIn { key: String, values: Vec<String> },
    Exists(String),
    Absent(String),
}

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        check_length(text)?;
        let mut parser = Parser { text, at: 0 };
        let mut requirements = Vec::new();
        if parser.peek() == Token::End {
            return Ok(Self(requirements));
        }
        loop {
            requirements.push(parser.requirement().map_err(|why| {
                ApiError::bad_request(format!("unable to parse label selector {text:?}: {why}"))
            })?);
            match parser.next() {
                Token::End => return Ok(Self(requirements)),
                Token::Comma => {}
                other => {
                    return Err(ApiError::bad_request(format!(
                        "unable to parse label selector {text:?}: expected ',' or the end, found {other}"
                    )));
                }
            }
        }
    }

    /// True if it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the labels of the object meet all conditions.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.get("metadata").and_then(|m| m.get("labels"));
        let label = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            Requirement::In { key, values } => label(key).is_some_and(|v| values.iter().any(|x| x == v)),
            // As in Kubernetes, an object without the label is "not in".
            Requirement::NotIn { key, values } => label(key).is_none_or(|v| values.iter().all(|x| x != v)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Comma,
    Open,
    Close,
    Equals,
    NotEquals,
    Not,
    Foreign(char),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) => write!(f, "{word:?}"),
            Self::Comma => f.write_str("','"),
            Self::Open => f.write_str("'('"),
            Self::Close => f.write_str("')'"),
            Self::Equals => f.write_str("'='"),
            Self::NotEquals => f.write_str("'!='"),
            Self::Not => f.write_str("'!'"),
            Self::Foreign(c) => write!(f, "{c:?}"),
            Self::End => f.write_str("the end"),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        Parser { text: self.text, at: self.at }.next()
    }

    fn next(&mut self) -> Token<'a> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        let start = self.at + (rest.len() - trimmed.len());
        let Some(first) = trimmed.chars().next() else {
            return Token::End;
        };
        let (token, length) = match first {
            ',' => (Token::Comma, 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '=' if trimmed.starts_with("==") => (Token::Equals, 2),
            '=' => (Token::Equals, 1),
            '!' if trimmed.starts_with("!=") => (Token::NotEquals, 2),
            '!' => (Token::Not, 1),
            c if is_word(c) => {
                let length = trimmed.find(|c| !is_word(c)).unwrap_or(trimmed.len());
                (Token::Word(trimmed.get(..length).unwrap_or_default()), length)
            }
            c => (Token::Foreign(c), c.len_utf8()),
        };
        self.at = start + length;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let key = match self.next() {
            Token::Not => return Ok(Requirement::Absent(self.key()?)),
            Token::Word(word) => checked_key(word)?,
            other => return Err(format!("expected a label key, found {other}")),
        };
        match self.peek() {
            Token::End | Token::Comma => Ok(Requirement::Exists(key)),
            Token::Equals => {
                self.next();
                Ok(Requirement::In { key, values: vec![self.value()?] })
            }
            Token::NotEquals => {
                self.next();
                Ok(Requirement::NotIn { key, values: vec![self.value()?] })
            }
            Token::Word("in") => {
                self.next();
                Ok(Requirement::In { key, values: self.values()? })
            }
            Token::Word("notin") => {
                self.next();
                Ok(Requirement::NotIn { key, values: self.values()? })
            }
            other => Err(format!("expected '=', '==', '!=', 'in' or 'notin' after {key:?}, found {other}")),
        }
    }

    fn key(&mut self) -> Result<String, String> {
        match self.next() {
            Token::Word(word) => checked_key(word),
            other => Err(format!("expected a label key, found {other}")),
        }
    }

    /// A value may be empty: `a=` selects objects with an empty label.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::Word(word) => {
                self.next();
                checked_value(word)
            }
            Token::End | Token::Comma | Token::Close => Ok(String::new()),
            other => Err(format!("expected a label value, found {other}")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Open => {}
            other => return Err(format!("expected '(', found {other}")),
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.next() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => return Err(format!("expected ',' or ')', found {other}")),
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')
}

fn checked_key(word: &str) -> Result<String, String> {
    let (prefix, name) = match word.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, word),
    };
    let prefix_fits = prefix.is_none_or(|p| !p.is_empty() && p.len() <= 253 && !p.contains('_'));
    if prefix_fits && !name.is_empty() && is_label_name(name) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "{word:?} is not a label key: a name of at most 63 letters, digits, '-', '_' or '.', that begins \
                 and ends with a letter or digit, is needed, and a DNS subdomain before an optional '/'"
    ))
}

fn checked_value(word: &str) -> Result<String, String> {
    if is_label_name(word) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "{word:?} is not a label value: at most 63 letters, digits, '-', '_' or '.' are allowed, \
                 with a letter or digit at both ends"
    ))
}

fn is_label_name(word: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    word.len() <= 63 && !word.contains('/') && edge(word.chars().next()) && edge(word.chars().next_back())
}

/// Conditions on fields, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldTerm>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    label: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses `a=b,c!=d`; a backslash takes the meaning from `,`, `=` and itself. Labels that the resource
    /// does not offer are refused.
    pub fn parse(resource: &Resource, text: &str) -> Result<Self, ApiError> {
        check_length(text)?;
        let mut terms = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let term = FieldTerm::parse(term).map_err(|why| {
                ApiError::bad_request(format!("unable to parse field selector {text:?}: {why}"))
            })?;
            if field(resource, &term.label, &json!({})).is_none() {
                return Err(ApiError::bad_request(format!("field label not supported: {}", term.label)));
            }
            terms.push(term);
        }
        Ok(Self(terms))
    }

    /// True if it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the fields of the object (in hub form) meet all conditions.
    pub fn matches(&self, resource: &Resource, object: &Value) -> bool {
        self.0.iter().all(|term| {
            field(resource, &term.label, object).is_some_and(|value| (value == term.value) == term.equal)
        })
    }

    /// The name that every selected object has, if the selector fixes it.
    pub fn name(&self) -> Option<&str> {
        self.0.iter().find(|t| t.equal && t.label == "metadata.name").map(|t| t.value.as_str())
    }
}

impl FieldTerm {
    fn parse(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let operator = match byte {
                b'\\' => {
                    at += 2;
                    continue;
                }
                b'!' if bytes.get(at + 1) == Some(&b'=') => Some((2, false)),
                b'=' if bytes.get(at + 1) == Some(&b'=') => Some((2, true)),
                b'=' => Some((1, true)),
                _ => None,
            };
            if let Some((length, equal)) = operator {
                let label = text.get(..at).unwrap_or_default().trim().to_owned();
                let value = unescape(text.get(at + length..).unwrap_or_default())?;
                return Ok(Self { label, value, equal });
            }
            at += 1;
        }
        Err(format!("{text:?} has none of '=', '==' and '!='"))
    }
}

/// The value of a selectable field; names and namespaces can be selected for every resource.
fn field(resource: &Resource, label: &str, object: &Value) -> Option<String> {
    let metadata = |key: &str| {
        let value = object.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str);
        Some(value.unwrap_or_default().to_owned())
    };
    match label {
        "metadata.name" => metadata("name"),
        "metadata.namespace" if resource.namespaced => metadata("namespace"),
        _ => kinds::selectable_field(resource, label, object),
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(text.get(start..).unwrap_or_default());
    terms
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("'\\{c}' is not an escape; '\\\\', '\\,' and '\\=' are")),
                None => return Err("a backslash at the end escapes nothing".to_owned()),
            },
            '=' => return Err(format!("the '=' in value {text:?} must be escaped")),
            c => out.push(c),
        }
    }
    Ok(out)
}

fn check_length(text: &str) -> Result<(), ApiError> {
    if text.len() <= SELECTOR_BYTES_MAX {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("a selector may have at most {SELECTOR_BYTES_MAX} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    fn selects(selector: &str, labels: &Value) -> bool {
        let object = json!({"metadata": {"labels": labels}});
        LabelSelector::parse(selector).unwrap().matches(&object)
    }

    #[test]
    fn label_selectors_mean_what_kubernetes_means() {
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            (" app = web , tier ", true),
            ("app=api", false),
            ("app!=api", true),
            ("app!=web", false),
            ("missing!=web", true),
            ("app in (web, api)", true),
            ("app in (api)", false),
            ("app notin (api,db)", true),
            ("missing notin (api)", true),
            ("app", true),
            ("missing", false),
            ("!missing", true),
            ("!app", false),
            ("tier=", true),
            ("tier in ()", true),
            ("x.io/role=a_b.c-d", true),
            ("app,!missing,x.io/role in (a_b.c-d)", true),
        ] {
            let labels = json!({"app": "web", "tier": "", "x.io/role": "a_b.c-d"});
            assert_eq!(selects(selector, &labels), expected, "{selector:?}");
        }
    }

    #[test]
    fn bad_label_selectors_are_refused_with_the_reason() {
        for (selector, why) in [
            ("a b", "expected '='"),
            ("a=b c", "expected ',' or the end"),
            ("=b", "expected a label key"),
            ("a,,b", "expected a label key"),
            ("a in b", "expected '('"),
            ("a in (b", "expected ',' or ')'"),
            ("a=(", "expected a label value"),
            ("!", "expected a label key"),
            ("a=b%", "found '%'"),
            ("-a=b", "is not a label key"),
            ("/a", "is not a label key"),
            ("a=b-", "is not a label value"),
            ("é", "expected a label key, found 'é'"),
        ] {
            let error = LabelSelector::parse(selector).unwrap_err();
            assert_eq!(error.code, 400);
            assert!(error.message.contains(why), "{selector:?}: {}", error.message);
        }
    }

    #[test]
    fn field_selectors_compare_and_unescape() {
        let pods = find("", "v1", "pods").unwrap();
        let object = json!({"metadata": {"name": "a,b=c", "namespace": "n"}});
        for (selector, expected) in [
            ("", true),
            ("metadata.namespace=n", true),
            ("metadata.namespace==n,", true),
            ("metadata.namespace!=n", false),
            ("metadata.namespace!=m", true),
            (r"metadata.name=a\,b\=c", true),
            (r"metadata.name=a\,b\=c,metadata.namespace=m", false),
        ] {
            let parsed = FieldSelector::parse(pods, selector).unwrap();
            assert_eq!(parsed.matches(pods, &object), expected, "{selector:?}");
        }
        assert_eq!(FieldSelector::parse(pods, "metadata.name=x").unwrap().name(), Some("x"));
    }

    #[test]
    fn bad_field_selectors_are_refused_with_the_reason() {
        let nodes = find("", "v1", "nodes").unwrap();
        for (selector, why) in [
            ("spec.nope=1", "field label not supported: spec.nope"),
            ("metadata.namespace=x", "field label not supported: metadata.namespace"),
            ("metadata.name", "has none of"),
            ("metadata.name=a=b", "must be escaped"),
            (r"metadata.name=a\", "escapes nothing"),
            (r"metadata.name=\x", "is not an escape"),
        ] {
            let error = FieldSelector::parse(nodes, selector).unwrap_err();
            assert_eq!(error.code, 400);
            assert!(error.message.contains(why), "{selector:?}: {}", error.message);
        }
    }
}
