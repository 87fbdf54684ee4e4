//! Lists: selection, chunks, and answers that are written while they are sent.

use super::accept::Form;
use super::path::Target;
use super::query::{Query, Wanted, forbidden_option};
use super::{ApiServer, reply};
use crate::error::{ApiError, Details};
use crate::registry::{Resource, api_version};
use crate::selector::{FieldSelector, LabelSelector};
use crate::store::{Key, Object, Page, Range, TooOld};
use axum::body::{Body, Bytes};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;

/// Objects that are read from the store at a time, so that no reader holds its lock for long.
const READ_MAX: usize = 4096;

/// Size of the pieces in which a list is sent.
const PIECE_BYTES: usize = 64 * 1024;

/// What a list or a watch selects.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
}

impl Selection {
    /// Reads both selectors.
    pub(super) fn from_query(resource: &Resource, query: &Query) -> Result<Self, ApiError> {
        Ok(Self {
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(resource, query.get("fieldSelector").unwrap_or_default())?,
        })
    }

    /// True if everything is selected.
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        (self.labels.is_empty() || self.labels.matches(&object.value()))
            && (self.fields.is_empty() || self.fields.matches(object.id().resource(), &object.value()))
    }
}

/// Where the next chunk of a list begins, and of which state.
#[derive(Debug, PartialEq, Eq)]
struct Continue {
    revision: u64,
    after: Key,
}

impl Continue {
    fn encode(&self) -> String {
        let text = json!({"rv": self.revision, "ns": &*self.after.namespace, "n": &*self.after.name});
        URL_SAFE_NO_PAD.encode(text.to_string())
    }

    fn decode(token: &str) -> Result<Self, ApiError> {
        let parse = || {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            let after = Key::new(value.get("ns")?.as_str()?, value.get("n")?.as_str()?);
            Some(Self { revision: value.get("rv")?.as_u64()?, after })
        };
        parse()
            .ok_or_else(|| ApiError::bad_request("continue key is not valid: it was not made by this server"))
    }
}

/// The selected objects, all as of one revision.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) revision: u64,
    /// Where to go on, if the limit cut the list off.
    next: Option<Key>,
    /// How many come after that, if all of them are selected.
    remaining: Option<usize>,
}

impl ApiServer {
    /// Answers `GET` of a collection.
    pub(super) fn list(&self, target: &Target, query: &Query, form: Form) -> Result<Response, ApiError> {
        let selection = Selection::from_query(target.id.resource(), query)?;
        if query.flag("sendInitialEvents").is_some() {
            return Err(forbidden_option("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        let limit = query.number::<usize>("limit")?.filter(|limit| *limit > 0);
        let selected = match query.get("continue") {
            Some(token) => {
                if query.get("resourceVersion").is_some_and(|version| version != "0") {
                    return Err(ApiError::bad_request(
                        "specifying resource version is not allowed when using continue",
                    ));
                }
                let Continue { revision, after } = Continue::decode(token)?;
                if revision > self.store.revision() {
                    return Err(ApiError::bad_request("continue key is not valid: it is of another cluster"));
                }
                self.select(target, &selection, Some(revision), Some(after), limit)
                    .map_err(|_| expired_continue())?
            }
            None => {
                let revision = self.wanted_revision(query)?;
                self.select(target, &selection, revision, None, limit).map_err(|error| expired(&error))?
            }
        };
        Ok(self.render_list(target, form, selected))
    }

    /// The revision that a list is pinned to; `None` is the newest.
    fn wanted_revision(&self, query: &Query) -> Result<Option<u64>, ApiError> {
        match query.wanted()? {
            Wanted::Newest | Wanted::Any => Ok(None),
            Wanted::NotOlderThan(revision) | Wanted::Exact(revision) if revision > self.store.revision() => {
                Err(too_large(revision, self.store.revision()))
            }
            Wanted::NotOlderThan(_) => Ok(None),
            Wanted::Exact(revision) => Ok(Some(revision)),
        }
    }

    /// Reads the selected objects of one state. The store is read in steps; all steps see the same revision.
    pub(super) fn select(
        &self,
        target: &Target,
        selection: &Selection,
        revision: Option<u64>,
        mut after: Option<Key>,
        limit: Option<usize>,
    ) -> Result<Selected, TooOld> {
        let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
        let scoped = namespace.is_some() || !target.id.resource().namespaced;
        let name = target.name.as_deref().or(selection.fields.name());
        if let (Some(name), None, None, true) = (name, revision, &after, scoped) {
            return Ok(self.select_one(target, selection, name));
        }
        let mut pinned = revision;
        let mut objects = Vec::new();
        loop {
            let wanted = limit.map_or(READ_MAX, |limit| limit.saturating_sub(objects.len()).min(READ_MAX));
            let range = Range { namespace, after: after.as_ref(), limit: Some(wanted.max(1)) };
            let Page { objects: found, revision, more } = match pinned {
                None => self.store.list(target.id, range),
                Some(revision) => self.store.list_at(target.id, revision, range)?,
            };
            pinned = Some(revision);
            let last = found.last().map(|object| object.key().clone());
            objects.extend(found.into_iter().filter(|object| selection.matches(object)));
            let full = limit.is_some_and(|limit| objects.len() >= limit);
            if !more || full || last.is_none() {
                let next = last.filter(|_| more);
                // Kubernetes counts the present, too, whichever state the list is of.
                let rest = next.as_ref().filter(|_| selection.is_empty());
                let remaining = rest.map(|after| {
                    self.store.count(target.id, Range { namespace, after: Some(after), limit: None })
                });
                return Ok(Selected { objects, revision, next, remaining });
            }
            after = last;
        }
    }

    /// `kubectl wait` and `kubectl get -w NAME` select one object by its name; no need to look at all others.
    fn select_one(&self, target: &Target, selection: &Selection, name: &str) -> Selected {
        let (object, revision) = self.store.get_with_revision(target.id, &Key::new(&target.namespace, name));
        let objects = object.into_iter().filter(|object| selection.matches(object)).collect();
        Selected { objects, revision, next: None, remaining: None }
    }

    pub(super) fn render_list(&self, target: &Target, form: Form, selected: Selected) -> Response {
        let Selected { objects, revision, next, remaining } = selected;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some(after) = next {
            metadata["continue"] = json!(Continue { revision, after }.encode());
        }
        // Lists of custom objects say so if there is nothing to go on with.
        if target.id.resource().custom.is_some() && metadata.get("continue").is_none() {
            metadata["continue"] = json!("");
        }
        if let Some(count) = remaining {
            metadata["remainingItemCount"] = json!(count);
        }
        let resource = target.id.resource();
        let version = target.version;
        match form {
            Form::Table(include) => {
                let objects: Vec<_> = objects.iter().map(|o| o.complete_in_version(version)).collect();
                let now = self.store.environment().now();
                reply::json(200, &reply::table(target, &objects, include, now, metadata, true))
            }
            Form::Plain => {
                let head = json!({
                    "kind": format!("{}List", resource.kind),
                    "apiVersion": api_version(resource.group, version),
                    "metadata": metadata,
                });
                stream_list(&head, objects, move |object, out| object.write_item(version, out))
            }
            Form::Metadata => {
                let head = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                });
                stream_list(&head, objects, |object, out| {
                    out.extend_from_slice(reply::partial_metadata(object).to_string().as_bytes());
                })
            }
        }
    }
}

/// Sends a list piece by piece: a hundred thousand objects are never in one buffer.
fn stream_list(
    head: &Value,
    objects: Vec<Arc<Object>>,
    encode: impl Fn(&Object, &mut Vec<u8>) + Send + 'static,
) -> Response {
    let mut head = head.to_string();
    // The head is a JSON object; its closing brace comes after the items.
    head.pop();
    head.push_str(",\"items\":[");
    let mut objects = objects.into_iter();
    let mut piece = Vec::from(head);
    let mut first = true;
    let mut fill = move |mut piece: Vec<u8>| -> (Vec<u8>, bool) {
        while piece.len() < PIECE_BYTES {
            let Some(object) = objects.next() else {
                piece.extend_from_slice(b"]}\n");
                return (piece, true);
            };
            if !std::mem::take(&mut first) {
                piece.push(b',');
            }
            encode(&object, &mut piece);
        }
        (piece, false)
    };
    let done;
    (piece, done) = fill(piece);
    if done {
        return reply::body(200, reply::JSON, piece);
    }
    let rest = stream::unfold((fill, false), |(mut fill, done)| async move {
        if done {
            return None;
        }
        let (piece, done) = fill(Vec::with_capacity(PIECE_BYTES + 8192));
        Some((Ok::<_, Infallible>(Bytes::from(piece)), (fill, done)))
    });
    let all = futures::StreamExt::chain(stream::iter([Ok(Bytes::from(piece))]), rest);
    reply::body(200, reply::JSON, Body::from_stream(all))
}

/// 410 for a revision whose events are no longer known.
pub(super) fn expired(error: &TooOld) -> ApiError {
    ApiError::new(410, "Expired", error.to_string())
}

fn expired_continue() -> ApiError {
    ApiError::new(
        410,
        "Expired",
        "the continue parameter is too old to go on with the same consistent list; start the list again without it",
    )
}

/// 504 for a revision that is in the future.
fn too_large(asked: u64, newest: u64) -> ApiError {
    let message = format!("Too large resource version: {asked}, current: {newest}");
    let mut error = ApiError::new(504, "Timeout", message);
    error.details = Some(Box::new(Details { retry_after_seconds: Some(1), ..Details::default() }));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_come_back_as_they_were() {
        let token = Continue { revision: 7, after: Key::new("a", "x.y-z") };
        assert_eq!(Continue::decode(&token.encode()).unwrap(), token);
        for bad in ["", "x", "e30", "W10", "bnVsbA", "eyJydiI6LTF9", "%%%"] {
            assert_eq!(Continue::decode(bad).unwrap_err().code, 400, "{bad}");
        }
    }
}
