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
        /// Whose events tell of it, and how.
        told_on: Option<Told>,
    },
    /// Change an object.
    Patch {
        /// Of this kind.
        resource: Arc<ApiResource>,
        /// This one.
        key: Key,
        /// What to change.
        edit: Edit,
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
        /// What to change before.
        first: Option<Edit>,
        /// Whose events tell of it.
        told_on: Option<Arc<ObjectReference>>,
    },
    /// Tell people.
    Tell(Note),
}

impl Action {
    /// A change.
    pub fn patch(resource: &Arc<ApiResource>, key: Key, edit: Edit) -> Self {
        Self::Patch { resource: Arc::clone(resource), key, edit }
    }
}

/// How events tell of a creation.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What they are about.
    pub about: Arc<ObjectReference>,
    /// The reason when it was made.
    pub created: &'static str,
    /// The reason when it could not be.
    pub failed: &'static str,
}

impl From<Arc<ObjectReference>> for Told {
    /// In the words of controllers that make pods.
    fn from(about: Arc<ObjectReference>) -> Self {
        Self { about, created: "SuccessfulCreate", failed: "FailedCreate" }
    }
}

/// A change of an object. A merge names the version that it was made from, so it never undoes what somebody else
/// wrote meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// Changes the status rather than the rest.
    pub of_status: bool,
    /// Lists are merged by their keys rather than replaced.
    pub strategic: bool,
    /// The patch.
    pub body: Box<Value>,
}

impl Edit {
    /// A merge into everything but the status.
    pub fn merge(body: Value) -> Self {
        Self { of_status: false, strategic: false, body: Box::new(body) }
    }

    /// A merge into the status.
    pub fn status(body: Value) -> Self {
        Self { of_status: true, strategic: false, body: Box::new(body) }
    }

    /// A merge into the status that keeps conditions of other types.
    pub fn conditions(body: Value) -> Self {
        Self { of_status: true, strategic: true, body: Box::new(body) }
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
