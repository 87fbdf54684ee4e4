//! Which objects that run several pods get groups, and how these are written: by one rule, for everybody who has to know.
//!
//! The controller that makes groups, the scheduler that holds pods back until their group is there, and the webhook
//! that names the group in pods all ask here.
//!
//! * `kinds`: where each kind says what it runs – one row a kind;
//! * `wish`: what an object wants, by the rules of its cluster;
//! * `names`: what its Workload, templates and groups are called;
//! * `api`: how they are written in the versions that clusters serve.

mod api;
mod job;
mod kinds;
mod names;
mod wish;

pub use self::api::{Api, workload_of};
pub use self::job::{JobReading, JobRef, JobView};
pub(crate) use self::kinds::DELEGATED_ANNOTATION;
pub use self::kinds::{Asks, GANG_ANNOTATION, JOB, Row};
pub use self::names::{group as group_name, of_job as group_of_job, workload as workload_name};

/// Whether groups are made for Jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Integration {
    /// If the cluster's own controller does not, which gets a moment.
    #[default]
    Auto,
    /// At once.
    On,
    /// Never.
    Off,
}
