//! Rules for names, label keys and label values. Each rule answers with what is wrong.

/// Longest DNS label.
const LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
const SUBDOMAIN_MAX: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
     or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
     is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
     must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
     or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
     end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
     alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or \
     'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
     '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// True if every byte passes and the first and last are `edge` bytes.
fn spelled(text: &str, edge: fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    edge(*first) && edge(*last) && bytes.iter().all(|b| edge(*b) || inner.contains(b))
}

fn at_most(text: &str, most: usize) -> Result<(), String> {
    if text.len() > most { Err(format!("must be no more than {most} bytes")) } else { Ok(()) }
}

/// `a-b`, at most 63 bytes.
pub(crate) fn dns_label(text: &str) -> Result<(), String> {
    at_most(text, LABEL_MAX)?;
    if spelled(text, lower_or_digit, b"-") {
        return Ok(());
    }
    // A name that would be a subdomain has only this wrong with it.
    let dotted = text.contains('.') && dns_subdomain(text).is_ok();
    Err(if dotted { "must not contain dots" } else { LABEL }.to_owned())
}

/// `a-b.c`, at most 253 bytes.
pub(crate) fn dns_subdomain(text: &str) -> Result<(), String> {
    at_most(text, SUBDOMAIN_MAX)?;
    let parts_fine = text.split('.').all(|part| spelled(part, lower_or_digit, b"-"));
    if parts_fine { Ok(()) } else { Err(SUBDOMAIN.to_owned()) }
}

/// A label, annotation, taint or finalizer key: `name` or `prefix/name`.
pub(crate) fn qualified_name(text: &str) -> Result<(), String> {
    let name = match text.split_once('/') {
        None => text,
        Some(("", _)) => return Err("prefix part must be non-empty".to_owned()),
        Some((prefix, name)) => {
            dns_subdomain(prefix).map_err(|why| format!("prefix part {why}"))?;
            name
        }
    };
    if name.is_empty() {
        return Err("name part must be non-empty".to_owned());
    }
    at_most(name, LABEL_MAX).map_err(|why| format!("name part {why}"))?;
    if spelled(name, |b| b.is_ascii_alphanumeric(), b"-_.") { Ok(()) } else { Err(NAME_PART.to_owned()) }
}

/// An annotation key: as a qualified name, but the prefix may be written in any case.
pub(crate) fn annotation_key(text: &str) -> Result<(), String> {
    qualified_name(&text.to_ascii_lowercase())
}

/// A label value; may be empty.
pub(crate) fn label_value(text: &str) -> Result<(), String> {
    at_most(text, LABEL_MAX)?;
    if text.is_empty() || spelled(text, |b| b.is_ascii_alphanumeric(), b"-_.") {
        Ok(())
    } else {
        Err(LABEL_VALUE.to_owned())
    }
}

/// Something that can stand as one segment of a URL path.
pub(crate) fn path_segment(text: &str) -> Result<(), String> {
    match text {
        "." | ".." => Err(format!("may not be '{text}'")),
        _ if text.contains('/') => Err("may not contain '/'".to_owned()),
        _ if text.contains('%') => Err("may not contain '%'".to_owned()),
        _ => Ok(()),
    }
}

/// A condition's reason: CamelCase with `_`, `,` and `:` inside.
pub(crate) fn condition_reason(text: &str) -> Result<(), String> {
    /// Longest reason of a standard condition.
    const REASON_MAX: usize = 1024;
    at_most(text, REASON_MAX)?;
    let bytes = text.as_bytes();
    let first_fine = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let last_fine = bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if first_fine && last_fine && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"_,:".contains(b)) {
        Ok(())
    } else {
        Err(REASON.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Result<(), String>, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(rule(text), Ok(()), "{text:?} should pass");
        }
        for text in bad {
            assert!(rule(text).is_err(), "{text:?} should not pass");
        }
    }

    #[test]
    fn names_follow_the_rules_of_dns() {
        let long = "a".repeat(64);
        check(dns_label, &["a", "a-1", "1"], &["", "-a", "a-", "A", "a.b", "a_b", "é", &long]);
        let longer = "a.".repeat(127);
        check(dns_subdomain, &["a", "a.b-c.d", &long], &["", "a..b", ".a", "a.", "a.-b", "A.b", &longer]);
    }

    #[test]
    fn keys_have_an_optional_prefix_and_values_may_be_empty() {
        let long = "a".repeat(64);
        check(
            qualified_name,
            &["app", "example.com/App_1.x", "a/b"],
            &["", "/a", "a/", "a/b/c", "A/b", "-a", "a b", &long],
        );
        check(annotation_key, &["Example.com/a", "a"], &["", "a b/c"]);
        check(label_value, &["", "a", "A.b_c-d"], &["-", "a/b", "ü", &long]);
    }

    #[test]
    fn path_segments_cannot_escape_and_reasons_are_camel_case() {
        check(path_segment, &["Job", "a.b", "..a"], &[".", "..", "a/b", "%2f"]);
        check(condition_reason, &["Scheduled", "A", "a_b:c,D_"], &["", "1a", "a b", "a:", "a-b"]);
    }
}
