//! Simulated kubelets: they make nodes Ready and let pods run by the clock, with nothing behind them.
//!
//! They are clients of the API like any other, so the same code works against the embedded cluster and
//! against a real control plane. All behaviour is in [`Core`], which has no clock and no IO; [`run`] connects
//! it to watches and requests.
//!
//! What they do:
//! - **Nodes** without a Ready condition are adopted: they become Ready and get what a kubelet adds, such as an
//!   address, the standard labels, and a capacity if they have none. Nodes whose kubelet is somebody else are left alone, and
//!   so are the pods on them.
//! - **Pods** that are bound to an adopted node are admitted in the order in which they arrive, if their
//!   requests fit beside what is there, or fail with `OutOfcpu` and the like. Admitted ones run after
//!   a short delay. Init containers end at once; readiness gates are not waited for.
//! - A pod with the annotation [`RUN_SECONDS`] ends after that many seconds of running, **whatever its restart
//!   policy says**: with [`EXIT_CODE`] 0 (the default) as Succeeded, else as Failed. Every other pod runs until
//!   it is deleted.
//! - Pods that are being deleted stop after their grace period or a short delay, whichever is less, and are
//!   then removed.

mod addresses;
mod core;
mod node_status;
mod node_template;
mod pod_status;
mod pods;
mod register;
mod rules;
mod shell;
#[cfg(test)]
mod tests;
mod view;
mod writes;

pub use self::core::{Core, Input};
pub use self::node_template::{GPU, NodeTemplate, RACK_LABEL};
pub use self::register::create;
pub use self::shell::run;
pub use self::view::{Malformed, NodeView, Phase, PodRef, PodView};
pub use self::writes::{Effect, Outcome, Target};

use std::time::Duration;

/// Annotation of a pod: seconds of running after which it ends, a whole number from 0 to 4294967295.
pub const RUN_SECONDS: &str = "tutti.dev/run-seconds";
/// Annotation of a pod with [`RUN_SECONDS`]: the exit code of its containers, from 0 to 255.
pub const EXIT_CODE: &str = "tutti.dev/exit-code";
/// The version that simulated kubelets report. It is also how they know their nodes again after a restart.
pub const KUBELET_VERSION: &str = "v1.37.0-tutti";

/// How fast simulated time passes, and what is cleaned up.
#[derive(Debug, Clone)]
pub struct Options {
    /// From admission to Running.
    pub start_delay: Duration,
    /// The most that a pod takes to stop; a shorter grace period of its own is respected.
    pub stop_delay: Duration,
    /// How often `lastHeartbeatTime` of a node is renewed.
    pub heartbeat_interval: Duration,
    /// Removes pods whose node is gone for so long. `None` where a pod garbage collector does that.
    pub orphan_delay: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            start_delay: Duration::from_millis(300),
            stop_delay: Duration::from_millis(300),
            // As often as a real kubelet reports a status that did not change.
            heartbeat_interval: Duration::from_secs(300),
            orphan_delay: Some(Duration::from_secs(5)),
        }
    }
}
