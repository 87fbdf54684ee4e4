//! What a controller wants done.

use crate::view::Key;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ApiResource;
use serde_json::Value;
use std::sync::Arc;

/// What is to be done about one object now. The actions do not depend on each other; what has to come after
/// them is planned when their effect has been seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Requests to send.
    pub actions: Vec<Action>,
    /// Look again then, even if nothing happens.
    pub look_again: Option<Timestamp>,
}

impl Plan {
    /// Nothing is to be done.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// One action.
    pub fn one(action: Action) -> Self {
        Self { actions: vec![action], look_again: None }
    }

    /// Looks again at this time or earlier.
    pub fn again_at(&mut self, time: Timestamp) {
        self.look_again = Some(self.look_again.map_or(time, |other| other.min(time)));
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create an object.
    Create {
        /// Of this kind.
        resource: Arc<ApiResource>,
        /// In this namespace.
        namespace: String,
        /// This one.
        object: Box<Value>,
        /// Whose events tell of it.
        told_on: Option<Arc<ObjectReference>>,
    },
    /// Merge-patch an object. The patch names the version that it was made from, so it never undoes what somebody
    /// else wrote meanwhile.
    Patch {
        /// Of this kind.
        resource: Arc<ApiResource>,
        /// This one.
        key: Key,
        /// Its status rather than the rest.
        of_status: bool,
        /// The patch.
        patch: Box<Value>,
    },
    /// Delete an object, if it still has this uid.
    Delete {
        /// Of this kind.
        resource: Arc<ApiResource>,
        /// This one.
        key: Key,
        /// Its uid.
        uid: String,
        /// At once, without the grace that it asks for.
        now: bool,
        /// A patch to write before; whether it is one of the status.
        first: Option<(Box<Value>, bool)>,
        /// Whose events tell of it.
        told_on: Option<Arc<ObjectReference>>,
    },
    /// Tell people.
    Tell(Note),
}

impl Action {
    /// A patch of the status.
    pub fn status(resource: &Arc<ApiResource>, key: Key, patch: Value) -> Self {
        Self::Patch { resource: Arc::clone(resource), key, of_status: true, patch: Box::new(patch) }
    }

    /// A patch of everything else.
    pub fn patch(resource: &Arc<ApiResource>, key: Key, patch: Value) -> Self {
        Self::Patch { resource: Arc::clone(resource), key, of_status: false, patch: Box::new(patch) }
    }
}

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For the record.
    Normal,
    /// Somebody should look.
    Warning,
}

/// An event to record.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// What it is about.
    pub about: Arc<ObjectReference>,
    /// How serious it is.
    pub severity: Severity,
    /// One word for machines.
    pub reason: &'static str,
    /// One sentence for people.
    pub message: String,
}

/// The trace of a write: nothing is planned before it has been seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Plural name and group of the resource.
    pub plural: String,
    /// The version that it gave.
    pub version: u64,
}
