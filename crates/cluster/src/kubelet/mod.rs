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
//! - The containers of a pod with the annotation [`RUN_SECONDS`] end after that many seconds of running, with
//!   [`EXIT_CODE`], 0 unless it is given. Its restart policy says what that means: the pod has Succeeded or Failed,
//!   or its containers are started again, at once the first time and then more and more slowly
//!   (`CrashLoopBackOff`). Every other pod runs until it is deleted.
//! - Pods that are being deleted stop after their grace period or a short delay, whichever is less, and are
//!   then removed.
//! - Signs of life are leases in `kube-node-lease`, and now and then a full status. A node with the annotation
//!   [`FAILED`] gives none, and nothing happens to its pods: that is what a dead machine looks like from outside.
//!   When the annotation goes, the kubelet is back.

mod addresses;
mod core;
mod lease;
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
/// Annotation of a node: while it is `true`, the kubelet of the node is silent.
pub const FAILED: &str = "tutti.dev/failed";
/// The version that simulated kubelets report. It is also how they know their nodes again after a restart.
pub const KUBELET_VERSION: &str = "v1.37.0-tutti";

/// How fast simulated time passes.
#[derive(Debug, Clone)]
pub struct Options {
    /// From admission to Running.
    pub start_delay: Duration,
    /// The most that a pod takes to stop; a shorter grace period of its own is respected.
    pub stop_delay: Duration,
    /// How often the full status of a node is reported although nothing changed.
    pub heartbeat_interval: Duration,
    /// How often the lease of a node is renewed. With very many nodes it is less often, so that all of them together
    /// write no more than some hundred leases a second.
    pub lease_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            start_delay: Duration::from_millis(300),
            stop_delay: Duration::from_millis(300),
            // As often as a real kubelet reports a status that did not change.
            heartbeat_interval: Duration::from_secs(300),
            // Likewise.
            lease_interval: Duration::from_secs(10),
        }
    }
}
