//! Watches: a stream of events from a revision on, until the client or the clock ends it.

use super::accept::Form;
use super::list::{Selection, expired};
use super::path::Target;
use super::query::{Query, Wanted, forbidden_option};
use super::{ApiServer, reply};
use crate::error::ApiError;
use crate::registry::api_version;
use crate::store::{Event, EventKind, Object};
use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Events that are read from the store, and written into one piece of the body, at a time.
const BATCH_MAX: usize = 256;

/// Bytes after which a piece of the body is sent.
const PIECE_BYTES: usize = 64 * 1024;

/// A watch without a timeout of its own ends after a time between these.
const TIMEOUT_SECONDS: std::ops::Range<u64> = 30 * 60..60 * 60;

/// Longest timeout that a client may ask for.
const TIMEOUT_SECONDS_MAX: u64 = 24 * 3600;

/// Annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Where a watch begins.
enum Start {
    /// With the present state as `ADDED` events; the flag asks for a bookmark behind them.
    State { bookmark: bool },
    /// With what happens after this revision.
    After(u64),
}

struct Watch {
    server: Arc<ApiServer>,
    target: Target,
    selection: Selection,
    form: Form,
    bookmarks: bool,
    /// The next piece ends the initial events with a bookmark.
    initial_bookmark: bool,
    headers_sent: bool,
    /// Present objects that are still to be sent.
    initial: VecDeque<Arc<Object>>,
    /// Everything up to here has been sent.
    revision: u64,
    changed: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    ends_at: Instant,
    bookmark_at: Instant,
    ended: bool,
}

/// Answers `GET` of a collection with `watch=true`.
pub(super) fn watch(
    server: &Arc<ApiServer>,
    target: Target,
    query: &Query,
    form: Form,
) -> Result<Response, ApiError> {
    let selection = Selection::from_query(target.id.resource(), query)?;
    let bookmarks = query.flag("allowWatchBookmarks").unwrap_or(false);
    let start = start(server, query, bookmarks)?;
    let timeout = match query.number::<u64>("timeoutSeconds")? {
        Some(seconds) if seconds > 0 => seconds.min(TIMEOUT_SECONDS_MAX),
        _ => {
            // Watches that began together, after a restart, should not end together.
            let spread = TIMEOUT_SECONDS.end - TIMEOUT_SECONDS.start;
            TIMEOUT_SECONDS.start + server.store.environment().random() % spread
        }
    };
    // Subscribed before the state is read: what happens in between is announced.
    let changed = server.store.subscribe(target.id);
    let (initial, revision, initial_bookmark) = match start {
        Start::State { bookmark } => {
            let selected =
                server.select(&target, &selection, None, None, None).map_err(|error| expired(&error))?;
            (selected.objects.into(), selected.revision, bookmark)
        }
        Start::After(revision) => {
            server.store.events(target.id, revision, 0).map_err(|error| expired(&error))?;
            (VecDeque::new(), revision, false)
        }
    };
    let now = Instant::now();
    let watch = Watch {
        closing: server.closing.subscribe(),
        ends_at: now + Duration::from_secs(timeout),
        bookmark_at: now + server.options.bookmark_interval,
        server: Arc::clone(server),
        target,
        selection,
        form,
        bookmarks,
        initial_bookmark,
        headers_sent: false,
        initial,
        revision,
        changed,
        ended: false,
    };
    let pieces = stream::unfold(watch, |mut watch| async move {
        let piece = watch.next_piece().await?;
        Some((Ok::<_, Infallible>(Bytes::from(piece)), watch))
    });
    Ok(reply::body(200, reply::JSON, Body::from_stream(pieces)))
}

fn start(server: &ApiServer, query: &Query, bookmarks: bool) -> Result<Start, ApiError> {
    let initial = query.flag("sendInitialEvents");
    let not_older = query.get("resourceVersionMatch") == Some("NotOlderThan");
    match initial {
        Some(_) if !not_older => {
            return Err(forbidden_option(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        None if query.get("resourceVersionMatch").is_some() => {
            return Err(forbidden_option(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        _ => {}
    }
    // A match of its own makes no difference here: without a version it is the newest state.
    let revision = match (query.resource_version()?, initial) {
        (None, _) => Wanted::Newest,
        (Some(0), _) => Wanted::Any,
        (Some(revision), Some(true)) => Wanted::NotOlderThan(revision),
        (Some(revision), _) => Wanted::Exact(revision),
    };
    let newest = server.store.revision();
    match (revision, initial) {
        // A future version is one of another life of this cluster. Only "expired" makes clients list again.
        (Wanted::NotOlderThan(revision) | Wanted::Exact(revision), _) if revision > newest => {
            let message = format!("Too large resource version: {revision}, current: {newest}");
            Err(ApiError::new(410, "Expired", message))
        }
        (_, Some(true)) => Ok(Start::State { bookmark: bookmarks }),
        (Wanted::Newest | Wanted::Any, Some(false)) => Ok(Start::After(newest)),
        (Wanted::Newest | Wanted::Any, None) => Ok(Start::State { bookmark: false }),
        (Wanted::NotOlderThan(revision) | Wanted::Exact(revision), _) => Ok(Start::After(revision)),
    }
}

impl Watch {
    /// The next part of the body, as soon as there is something to say. `None` ends the watch.
    async fn next_piece(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.ended || *self.closing.borrow() {
                return None;
            }
            let mut piece = Vec::new();
            self.write_initial(&mut piece);
            if self.initial.is_empty() && piece.len() < PIECE_BYTES {
                self.write_events(&mut piece);
            }
            if Instant::now() >= self.bookmark_at {
                self.bookmark_at = Instant::now() + self.server.options.bookmark_interval;
                // While the initial events are still going out, a bookmark would promise too much.
                if self.bookmarks && !self.ended && self.initial.is_empty() {
                    self.write_bookmark(&mut piece, false);
                }
            }
            if !piece.is_empty() {
                return Some(piece);
            }
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                () = sleep_until(self.bookmark_at) => {}
                () = sleep_until(self.ends_at) => self.ended = true,
                _ = self.closing.changed() => self.ended = true,
            }
        }
    }

    fn write_initial(&mut self, piece: &mut Vec<u8>) {
        while piece.len() < PIECE_BYTES {
            let Some(object) = self.initial.pop_front() else {
                break;
            };
            self.write(piece, "ADDED", &object);
        }
        if self.initial.is_empty() && std::mem::take(&mut self.initial_bookmark) {
            self.write_bookmark(piece, true);
        }
    }

    fn write_events(&mut self, piece: &mut Vec<u8>) {
        // Marked as seen before the read: a write after the read wakes the watch again.
        self.changed.borrow_and_update();
        let batch = match self.server.store.events(self.target.id, self.revision, BATCH_MAX) {
            Ok(batch) => batch,
            Err(error) => {
                // The client was too slow, and only a new list can help it.
                let status = expired(&error).to_status();
                write_line(piece, "ERROR", status.to_string().as_bytes());
                self.ended = true;
                return;
            }
        };
        for event in &batch.events {
            if let Some((kind, object)) = self.as_seen(event) {
                self.write(piece, kind, &object);
            }
        }
        self.revision = batch.revision;
        if batch.events.len() == BATCH_MAX {
            // There may be more; do not wait for another write.
            self.changed.mark_changed();
        }
    }

    /// What an event is for one who sees only the selected objects.
    fn as_seen(&self, event: &Event) -> Option<(&'static str, Arc<Object>)> {
        let object = &event.object;
        let namespace = &self.target.namespace;
        if !namespace.is_empty() && *object.key().namespace != **namespace {
            return None;
        }
        if self.target.name.as_deref().is_some_and(|name| *object.key().name != *name) {
            return None;
        }
        let is = event.kind != EventKind::Deleted && self.selection.matches(object);
        let was = event.previous.as_ref().filter(|previous| self.selection.matches(previous));
        match (was, is) {
            (None, false) => None,
            (None, true) => Some(("ADDED", Arc::clone(object))),
            (Some(_), true) => Some(("MODIFIED", Arc::clone(object))),
            (Some(_), false) if event.kind == EventKind::Deleted => Some(("DELETED", Arc::clone(object))),
            // It left the selection: the client is told of the last state that it could have seen.
            (Some(previous), false) => Some(("DELETED", Arc::new(previous.at_revision(object.revision())))),
        }
    }

    fn write(&mut self, piece: &mut Vec<u8>, kind: &str, object: &Object) {
        let now = self.server.store.environment().now();
        let headers = !std::mem::replace(&mut self.headers_sent, true);
        let json = reply::object_json(&self.target, object, self.form, now, headers);
        write_line(piece, kind, &json);
    }

    fn write_bookmark(&mut self, piece: &mut Vec<u8>, ends_initial_events: bool) {
        let resource = self.target.id.resource();
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let (kind, api_version) = match self.form {
            Form::Plain => (resource.kind, api_version(resource.group, self.target.version)),
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            Form::Table(_) => ("Table", "meta.k8s.io/v1".to_owned()),
        };
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        if matches!(self.form, Form::Table(_)) {
            object["columnDefinitions"] = Value::Null;
            object["rows"] = Value::Array(Vec::new());
        }
        write_line(piece, "BOOKMARK", object.to_string().as_bytes());
    }
}

fn write_line(piece: &mut Vec<u8>, kind: &str, object: &[u8]) {
    piece.extend_from_slice(b"{\"type\":\"");
    piece.extend_from_slice(kind.as_bytes());
    piece.extend_from_slice(b"\",\"object\":");
    piece.extend_from_slice(object);
    piece.extend_from_slice(b"}\n");
}
