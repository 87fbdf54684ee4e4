//! Refusals of the API server, as Kubernetes clients know them: an HTTP code, a reason and a `Status` body.

use crate::registry::Resource;
use serde_json::{Value, json};

/// One field of an object that was found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable: `FieldValueRequired`, `FieldValueInvalid`, …
    pub reason: CauseReason,
    /// Path of the field, as in `spec.schedulingPolicy.gang.minCount`.
    pub field: String,
    /// What is wrong, without the path: `Invalid value: 0: must be greater than or equal to 1`.
    pub message: String,
}

impl Cause {
    /// A finding about a field, in full.
    pub fn new(reason: CauseReason, field: &str, message: impl Into<String>) -> Self {
        Self { reason, field: field.to_owned(), message: message.into() }
    }
}

/// Kinds of field errors that Kubernetes distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseReason {
    /// The field must be there.
    Required,
    /// The value is not allowed.
    Invalid,
    /// Two entries of a list have the same key.
    Duplicate,
    /// The value is none of an enumeration.
    NotSupported,
    /// The field may not be set or changed here.
    Forbidden,
    /// The value or list is too long.
    TooLong,
    /// The list has too many entries.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// Another manager has the field.
    FieldManagerConflict,
    /// The value names something that is not there.
    NotFound,
    /// The namespace of the object is on its way out.
    NamespaceTerminating,
    /// A disruption budget has nothing left to give.
    DisruptionBudget,
}

impl CauseReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::FieldManagerConflict => "FieldManagerConflict",
            Self::NotFound => "FieldValueNotFound",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::DisruptionBudget => "DisruptionBudget",
        }
    }
}

/// An answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Kubernetes' reason, such as `NotFound`.
    pub reason: &'static str,
    /// One sentence for people.
    pub message: String,
    /// `details` of the Status; boxed, so that results stay small.
    pub details: Option<Box<Details>>,
}

/// What an error is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Object name.
    pub name: String,
    /// API group of the object.
    pub group: String,
    /// Plural resource name; Kubernetes puts the resource here, not the kind – except for `Invalid`.
    pub kind: String,
    /// Fields at fault.
    pub causes: Vec<Cause>,
    /// When to try again, for 429.
    pub retry_after_seconds: Option<u32>,
}

impl ApiError {
    /// An error without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    /// 400
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for an object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", qualified(resource)))
            .about(resource, name)
    }

    /// 404 for a path.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").without_object()
    }

    /// 405
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).without_object()
    }

    /// 409 on create.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", qualified(resource)))
            .about(resource, name)
    }

    /// 409 on a write that does not apply to the stored object; `why` says what to do about it.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(resource)),
        )
        .about(resource, name)
    }

    /// 403
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} {name:?} is forbidden: {why}", qualified(resource)))
            .about(resource, name)
    }

    /// 422 with the fields at fault; the message lists them all.
    pub fn invalid(resource: &Resource, name: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_kind(resource.group, resource.kind, name, causes)
    }

    /// 422 for options of a request, which are objects of their own to Kubernetes.
    pub fn invalid_options(kind: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_kind("meta.k8s.io", kind, "", causes)
    }

    /// 422 for a patch that makes of an object what cannot be read as one.
    pub fn invalid_patch(why: &str) -> Self {
        let cause = Cause::new(CauseReason::Invalid, "patch", format!("Invalid value: {why}"));
        Self::invalid_kind("", "", "", vec![cause])
    }

    fn invalid_kind(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let list: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        let list = if list.len() == 1 { list.concat() } else { format!("[{}]", list.join(", ")) };
        let shown = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut error = Self::new(422, "Invalid", format!("{shown} {name:?} is invalid: {list}"));
        error.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            retry_after_seconds: None,
        }));
        error
    }

    /// Says which field is the reason.
    pub fn because(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Details that name nothing, which is what requests about no object are answered with.
    pub fn without_object(mut self) -> Self {
        self.details = Some(Box::default());
        self
    }

    /// Names the object that the error is about.
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: resource.group.to_owned(),
            kind: resource.plural.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// The body to send.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, value) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind)] {
            if !value.is_empty() {
                out.insert(key.to_owned(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self
                .causes
                .iter()
                .map(|c| json!({"reason": c.reason.as_str(), "message": c.message, "field": c.field}))
                .collect();
            out.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            out.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(out)
    }
}

fn qualified(resource: &Resource) -> String {
    if resource.group.is_empty() {
        resource.plural.to_owned()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    #[test]
    fn invalid_names_every_field_in_message_and_causes() {
        let groups = find("scheduling.k8s.io", "v1beta1", "podgroups").unwrap();
        let cause = Cause {
            reason: CauseReason::Invalid,
            field: "spec.schedulingPolicy.gang.minCount".to_owned(),
            message: "Invalid value: 0: must be greater than or equal to 1".to_owned(),
        };
        let status = ApiError::invalid(groups, "g", vec![cause]).to_status();
        assert_eq!(
            status["message"],
            "PodGroup.scheduling.k8s.io \"g\" is invalid: spec.schedulingPolicy.gang.minCount: \
             Invalid value: 0: must be greater than or equal to 1"
        );
        assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueInvalid");
        assert_eq!(status["code"], 422);
    }

    #[test]
    fn not_found_speaks_of_the_plural() {
        let pods = find("", "v1", "pods").unwrap();
        let status = ApiError::not_found(pods, "x").to_status();
        assert_eq!(status["message"], "pods \"x\" not found");
        assert_eq!(status["details"]["kind"], "pods");
    }
}
