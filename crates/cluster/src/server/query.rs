//! Options in the query string.

use super::path::percent_decode;
use crate::error::{ApiError, Cause, CauseReason};
use std::str::FromStr;

/// Nobody needs more options than this.
const PARAMETERS_MAX: usize = 64;

/// The query string, decoded. As in Kubernetes, unknown options are ignored and the first of several counts.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let mut parameters = Vec::new();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            if parameters.len() == PARAMETERS_MAX {
                return Err(ApiError::bad_request(format!("more than {PARAMETERS_MAX} query parameters")));
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            parameters.push((percent_decode(name, true)?, percent_decode(value, true)?));
        }
        Ok(Self(parameters))
    }

    /// The option, if it was given and is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(n, _)| n == name)?;
        (!value.is_empty()).then_some(value.as_str())
    }

    /// A switch: anything but `false` and `0` turns it on.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let (_, value) = self.0.iter().find(|(n, _)| n == name)?;
        Some(!(value.eq_ignore_ascii_case("false") || value == "0"))
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let parsed = value.parse();
        parsed
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("{name}: {value:?} is not a number that fits")))
    }

    /// True for `dryRun=All`. `kind` is that of the options, such as `CreateOptions`.
    pub(super) fn dry_run(&self, kind: &str) -> Result<bool, ApiError> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(unsupported(kind, "dryRun", &format!("[{other:?}]"), &["All"])),
        }
    }

    pub(super) fn field_validation(&self, kind: &str) -> Result<FieldValidation, ApiError> {
        match self.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some(other) => {
                let values = ["", "Ignore", "Strict", "Warn"];
                Err(unsupported(kind, "fieldValidation", &format!("{other:?}"), &values))
            }
        }
    }
}

/// 422 for an option with a value that is none of those that there are.
fn unsupported(kind: &str, option: &str, shown: &str, supported: &[&str]) -> ApiError {
    let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
    let message = format!("Unsupported value: {shown}: supported values: {}", list.join(", "));
    ApiError::invalid_options(kind, vec![Cause::new(CauseReason::NotSupported, option, message)])
}

/// 422 for an option of a list or watch that may not be given here.
pub(super) fn forbidden_option(option: &str, why: &str) -> ApiError {
    let cause = Cause::new(CauseReason::Forbidden, option, format!("Forbidden: {why}"));
    ApiError::invalid_options("ListOptions", vec![cause])
}

/// What to do about fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and say so.
    Warn,
    /// Refuse the request.
    Strict,
}

/// Which state of the store a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The newest.
    Newest,
    /// Whatever there is.
    Any,
    /// This or a newer one.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

impl Query {
    /// `resourceVersion` as a number, if given.
    pub(super) fn resource_version(&self) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get("resourceVersion") else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("resourceVersion: Invalid value: {text:?}: must be a whole number"))
        })
    }

    /// `resourceVersion` and `resourceVersionMatch` of a list.
    pub(super) fn wanted(&self) -> Result<Wanted, ApiError> {
        let revision = self.resource_version()?;
        match (self.get("resourceVersionMatch"), revision) {
            (None, None) => Ok(Wanted::Newest),
            (None | Some("NotOlderThan"), Some(0)) => Ok(Wanted::Any),
            (None | Some("NotOlderThan"), Some(revision)) => Ok(Wanted::NotOlderThan(revision)),
            (Some("Exact"), Some(0)) => Err(forbidden_option(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            )),
            (Some("Exact"), Some(revision)) => Ok(Wanted::Exact(revision)),
            (Some("Exact" | "NotOlderThan"), None) => Err(forbidden_option(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            )),
            (Some(other), _) => {
                let values = ["Exact", "NotOlderThan", ""];
                Err(unsupported("ListOptions", "resourceVersionMatch", &format!("{other:?}"), &values))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_values_counts_and_switches_are_lenient() {
        let query = Query::parse(Some("a=1&a=2&b&c=false&d=0&e=True&labelSelector=x%3Dy")).unwrap();
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.get("b"), None);
        assert_eq!(query.flag("b"), Some(true));
        assert_eq!(
            (query.flag("c"), query.flag("d"), query.flag("e")),
            (Some(false), Some(false), Some(true))
        );
        assert_eq!(query.flag("nope"), None);
        assert_eq!(query.get("labelSelector"), Some("x=y"));
    }

    #[test]
    fn bad_options_are_refused() {
        let refused = |text: &str, code: u16, read: fn(&Query) -> Option<ApiError>| {
            let error = read(&Query::parse(Some(text)).unwrap()).unwrap();
            assert_eq!(error.code, code, "{text}");
        };
        refused("limit=x", 400, |q| q.number::<usize>("limit").err());
        refused("limit=-1", 400, |q| q.number::<usize>("limit").err());
        refused("dryRun=Some", 422, |q| q.dry_run("CreateOptions").err());
        refused("fieldValidation=strict", 422, |q| q.field_validation("CreateOptions").err());
        refused("resourceVersion=abc", 400, |q| q.wanted().err());
        refused("resourceVersionMatch=Exact", 422, |q| q.wanted().err());
        refused("resourceVersion=5&resourceVersionMatch=Never", 422, |q| q.wanted().err());
        refused("resourceVersion=0&resourceVersionMatch=Exact", 422, |q| q.wanted().err());
        assert!(Query::parse(Some(&"a=b&".repeat(100))).is_err());
    }
}
