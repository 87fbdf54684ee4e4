//! Controllers: they look at what is there and at what is wanted, and do what is missing.
//!
//! Every controller is a pure function from observed objects and the time to a [`Plan`]. What they share is
//! here: a [`Cache`] of objects, a [`Queue`] of objects to look at, and a [`shell`] that connects a [`Core`] to
//! the watches and requests of an API server. Nothing here knows which cluster it runs in.

mod action;
mod cache;
mod core;
mod event;
pub mod gangs;
mod meter;
mod pod;
pub mod process;
pub mod protection;
mod queue;
pub mod shell;
pub mod stamp;
mod view;
pub mod webhooks;

pub use self::action::{Action, Edit, Note, Plan, Severity, Told, Written};
pub use self::cache::{Cache, Change};
pub use self::core::Core;
pub use self::meter::{Meter, Meters};
pub use self::pod::{
    ContainerStatus, PodSpec, PodStatus, PodView, Terminated, condition_of, is_active, is_ready, pods,
};
pub use self::queue::{Outcome, Queue};
pub use self::view::{Checked, Condition, Key, Loose, Unread, View, controller_of, stamp};
