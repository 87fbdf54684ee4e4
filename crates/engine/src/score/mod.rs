//! Which node is liked best, among those that will do.
//!
//! One file for each score of kube-scheduler's default plugins, with the same numbers for the same facts: pure
//! functions on plain inputs. [`rating`] puts together what depends on a node alone, [`total`] what depends on all
//! nodes that will do. Scores choose; they never decide whether a placement is valid.

mod balanced;
mod double;
pub mod fit;
mod image_locality;
mod inter_pod;
pub(crate) mod packing;
pub mod profile;
pub(crate) mod rating;
mod topology_spread;
pub(crate) mod total;

pub use fit::{Curve, CurveError, Strategy};
pub(crate) use profile::ProfileId;
pub use profile::{Aspect, Profile, Weights};

/// The best score that a plugin gives; the worst is 0.
pub(crate) const SCORE_MAX: i64 = 100;

/// Use of one resource of a node, without and with the pod. A capacity of zero means that the node does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) before: i64,
    pub(crate) after: i64,
    pub(crate) capacity: i64,
}
