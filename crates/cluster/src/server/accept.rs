//! What a client wants to get back, from its `Accept` header.

use super::query::Query;
use super::yaml::YAML;
use crate::error::ApiError;
use crate::table::IncludeObject;
use http::HeaderMap;
use http::header::ACCEPT;

/// The form of objects in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are.
    Plain,
    /// Rows of a table.
    Table(IncludeObject),
    /// Nothing but metadata.
    Metadata,
}

/// The form of discovery documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryForm {
    /// One document a group.
    Plain,
    /// All at once, in this version of `apidiscovery.k8s.io`.
    Aggregated(&'static str),
}

/// One entry of an `Accept` header.
struct Media<'a> {
    kind: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Media<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameters = parts.filter_map(|p| p.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect();
        Self { kind, parameters }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(k, _)| *k == name).map(|(_, v)| *v)
    }

    fn is_yaml(&self) -> bool {
        self.kind == YAML
    }

    fn is_json(&self) -> bool {
        matches!(self.kind, "" | "*/*" | "application/*" | "application/json")
    }
}

fn accepted(headers: &HeaderMap) -> impl Iterator<Item = Media<'_>> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(Media::parse)
}

/// The first form that is accepted and that we have.
pub(super) fn form(headers: &HeaderMap, query: &Query) -> Result<Form, ApiError> {
    let mut any = false;
    for media in accepted(headers) {
        any = true;
        if !media.is_json() && !media.is_yaml() {
            continue;
        }
        let of_meta = media.get("g") == Some("meta.k8s.io") && media.get("v") == Some("v1");
        match media.get("as") {
            None => return Ok(Form::Plain),
            Some("Table") if of_meta => return Ok(Form::Table(include_object(query)?)),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if of_meta => {
                return Ok(Form::Metadata);
            }
            Some(_) => {}
        }
    }
    if any { Err(not_acceptable()) } else { Ok(Form::Plain) }
}

/// True if the first form that is accepted and that we have is YAML.
pub(super) fn prefers_yaml(headers: &HeaderMap) -> bool {
    accepted(headers).find(|media| media.is_json() || media.is_yaml()).is_some_and(|media| media.is_yaml())
}

/// The form of the events of a watch, which come as JSON only.
pub(super) fn stream_form(headers: &HeaderMap, query: &Query) -> Result<Form, ApiError> {
    if prefers_yaml(headers) { Err(not_acceptable()) } else { form(headers, query) }
}

/// The first form of discovery that is accepted and that we have.
pub(super) fn discovery_form(headers: &HeaderMap) -> DiscoveryForm {
    for media in accepted(headers).filter(Media::is_json) {
        match (media.get("g"), media.get("v"), media.get("as")) {
            (Some("apidiscovery.k8s.io"), Some(version), Some("APIGroupDiscoveryList")) => match version {
                "v2" => return DiscoveryForm::Aggregated("v2"),
                "v2beta1" => return DiscoveryForm::Aggregated("v2beta1"),
                _ => {}
            },
            (_, _, None) => return DiscoveryForm::Plain,
            _ => {}
        }
    }
    DiscoveryForm::Plain
}

fn include_object(query: &Query) -> Result<IncludeObject, ApiError> {
    match query.get("includeObject") {
        None | Some("Metadata") => Ok(IncludeObject::Metadata),
        Some("None") => Ok(IncludeObject::None),
        Some("Object") => Ok(IncludeObject::Object),
        Some(other) => Err(ApiError::bad_request(format!(
            "includeObject: {other:?} is not supported; None, Metadata and Object are"
        ))),
    }
}

fn not_acceptable() -> ApiError {
    ApiError::new(
        406,
        "NotAcceptable",
        "only the following media types are served: application/json, application/yaml (but not for watches), and the \
         forms Table, PartialObjectMetadata and PartialObjectMetadataList of meta.k8s.io/v1",
    )
    .without_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        headers
    }

    #[test]
    fn the_first_form_that_is_served_wins() {
        let table = Form::Table(IncludeObject::Metadata);
        for (accept, expected) in [
            ("application/json", Some(Form::Plain)),
            ("*/*", Some(Form::Plain)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Form::Plain)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(table)),
            ("application/json;as=Table;v=v9;g=meta.k8s.io, application/json", Some(Form::Plain)),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Some(Form::Metadata)),
            ("application/json;as=Poem;g=meta.k8s.io;v=v1", None),
            ("text/html", None),
        ] {
            assert_eq!(form(&headers(accept), &Query::default()).ok(), expected, "{accept}");
        }
        assert_eq!(form(&HeaderMap::new(), &Query::default()), Ok(Form::Plain));
    }

    #[test]
    fn yaml_is_for_those_who_would_rather_have_it_and_not_for_watches() {
        for (accept, yaml) in [
            ("application/yaml", true),
            ("application/yaml, */*", true),
            ("application/vnd.kubernetes.protobuf,application/yaml,application/json", true),
            ("application/json,application/yaml", false),
            ("*/*", false),
        ] {
            assert_eq!(prefers_yaml(&headers(accept)), yaml, "{accept}");
            assert_eq!(form(&headers(accept), &Query::default()), Ok(Form::Plain), "{accept}");
            assert_eq!(stream_form(&headers(accept), &Query::default()).is_err(), yaml, "{accept}");
        }
    }

    #[test]
    fn discovery_is_aggregated_only_for_those_who_ask() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert_eq!(
            discovery_form(&headers(&format!("{v2},{beta},application/json"))),
            DiscoveryForm::Aggregated("v2")
        );
        assert_eq!(discovery_form(&headers(beta)), DiscoveryForm::Aggregated("v2beta1"));
        assert_eq!(discovery_form(&headers("application/json")), DiscoveryForm::Plain);
        assert_eq!(discovery_form(&HeaderMap::new()), DiscoveryForm::Plain);
    }
}
