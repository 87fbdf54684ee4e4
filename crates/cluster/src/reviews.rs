//! Reviews: questions about who somebody is and what they may do. They are answered and forgotten.
//!
//! There is one user, whose certificate is in the kubeconfig and who may do everything; nobody else gets in.

use crate::error::{ApiError, Cause};
use crate::kinds::field::Field;
use crate::registry::Resource;
use crate::tls::{ADMIN_GROUP, ADMIN_USER};
use serde_json::{Value, json};

/// The group of everybody who got in.
const AUTHENTICATED: &str = "system:authenticated";

/// Answers a review that has passed the checks of its types.
pub(crate) fn answer(resource: &Resource, mut review: Value) -> Result<Value, ApiError> {
    let mut causes = Vec::new();
    let status = match resource.kind {
        "SelfSubjectReview" => json!({"userInfo": user()}),
        "SelfSubjectRulesReview" => rules(&Field::root(&review))?,
        "SelfSubjectAccessReview" => {
            check_attributes(&Field::root(&review), &mut causes);
            decision(true)
        }
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let root = Field::root(&review);
            check_attributes(&root, &mut causes);
            check_subject(&root, &mut causes);
            if resource.namespaced {
                check_namespace(&root, &mut causes);
            }
            decision(is_admin(&root))
        }
        "TokenReview" => {
            let root = Field::root(&review);
            let (spec, token) = (root.get("spec"), "token");
            if spec.get(token).text().is_empty() {
                return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
            }
            json!({"user": {}, "error": "this cluster gives out no tokens; clients have certificates"})
        }
        _ => return Err(ApiError::no_such_path()),
    };
    if !causes.is_empty() {
        return Err(ApiError::invalid(resource, "", causes));
    }
    if let Some(map) = review.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
    Ok(review)
}

fn user() -> Value {
    json!({"username": ADMIN_USER, "groups": [ADMIN_GROUP, AUTHENTICATED]})
}

fn decision(allowed: bool) -> Value {
    let reason = if allowed {
        format!("members of {ADMIN_GROUP} may do everything")
    } else {
        format!("nobody but members of {ADMIN_GROUP} may do anything")
    };
    json!({"allowed": allowed, "reason": reason})
}

fn rules(root: &Field<'_, '_>) -> Result<Value, ApiError> {
    if root.get("spec").get("namespace").text().is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    Ok(json!({
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": false,
    }))
}

fn is_admin(root: &Field<'_, '_>) -> bool {
    let spec = root.get("spec");
    spec.get("user").text() == ADMIN_USER
        || spec.get("groups").items().any(|group| group.text() == ADMIN_GROUP)
}

fn check_attributes(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    if spec.get("resourceAttributes").is_set() == spec.get("nonResourceAttributes").is_set() {
        out.push(
            spec.invalid("exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        );
    }
}

fn check_subject(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    if spec.get("user").text().is_empty() && spec.get("groups").len() == 0 {
        out.push(spec.get("user").invalid("at least one of user or group must be specified"));
    }
}

fn check_namespace(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (spec, metadata) = (root.get("spec"), root.get("metadata"));
    let (about, own) = (spec.get("resourceAttributes"), metadata.get("namespace"));
    if about.is_set() && about.get("namespace").text() != own.text() {
        out.push(about.get("namespace").invalid("must match metadata.namespace"));
    }
    if spec.get("nonResourceAttributes").is_set() {
        out.push(spec.get("nonResourceAttributes").invalid("disallowed on this kind of request"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;

    fn ask(kind: &str, spec: &Value) -> Result<Value, ApiError> {
        let resource = RESOURCES.iter().find(|r| r.kind == kind).unwrap();
        answer(resource, json!({"metadata": {"namespace": "n"}, "spec": spec})).map(|r| r["status"].clone())
    }

    #[test]
    fn the_one_user_may_do_everything_and_nobody_else_anything() {
        let what = json!({"verb": "create", "resource": "pods", "namespace": "n"});
        assert_eq!(
            ask("SelfSubjectAccessReview", &json!({"resourceAttributes": what})).unwrap()["allowed"],
            true
        );
        for kind in ["SubjectAccessReview", "LocalSubjectAccessReview"] {
            let admin =
                ask(kind, &json!({"resourceAttributes": what, "groups": ["system:masters"]})).unwrap();
            assert_eq!(admin["allowed"], true, "{kind}");
            let other = ask(kind, &json!({"resourceAttributes": what, "user": "eve"})).unwrap();
            assert_eq!(other["allowed"], false, "{kind}");
        }
        assert_eq!(ask("SelfSubjectReview", &json!({})).unwrap()["userInfo"]["username"], ADMIN_USER);
        let rules = ask("SelfSubjectRulesReview", &json!({"namespace": "n"})).unwrap();
        assert_eq!(rules["resourceRules"][0]["verbs"], json!(["*"]));
        assert!(ask("TokenReview", &json!({"token": "t"})).unwrap().get("authenticated").is_none());
    }

    #[test]
    fn half_asked_questions_are_refused() {
        let what = json!({"verb": "get"});
        let cases = [
            ("SelfSubjectAccessReview", json!({}), 422),
            (
                "SelfSubjectAccessReview",
                json!({"resourceAttributes": what, "nonResourceAttributes": what}),
                422,
            ),
            ("SubjectAccessReview", json!({"resourceAttributes": what}), 422),
            ("LocalSubjectAccessReview", json!({"resourceAttributes": {"namespace": "m"}, "user": "u"}), 422),
            ("LocalSubjectAccessReview", json!({"nonResourceAttributes": what, "user": "u"}), 422),
            ("SelfSubjectRulesReview", json!({}), 400),
            ("TokenReview", json!({}), 400),
        ];
        for (kind, spec, code) in cases {
            assert_eq!(ask(kind, &spec).unwrap_err().code, code, "{kind} {spec}");
        }
    }
}
