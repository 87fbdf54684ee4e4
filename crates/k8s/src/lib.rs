//! Translation between Kubernetes objects and the model. Nothing is decided here.
//!
//! *In*: [`PodView`], [`NodeView`] and [`PodGroupView`] decode only what scheduling reads, and decode it
//! leniently: a field of the wrong shape never fails a list or a watch. `read()` turns a view into the model
//! and names every field that could not be understood.
//!
//! *Out*: [`request`] builds the bodies that a scheduler sends.
//!
//! *Which cluster, which API*: [`connect`] makes a client, [`Capabilities::discover`] asks what the cluster serves.

mod claims;
pub mod condition;
pub mod connect;
pub mod discovery;
pub mod error;
mod features;
pub mod flat;
pub mod gangs;
pub mod group;
mod images;
pub mod inheritance;
mod inter_pod;
pub mod kin;
mod lenient;
pub mod marks;
pub mod namespace;
pub mod node;
pub mod pod;
mod pod_spec;
pub mod priority;
pub mod request;
mod resources;
mod selector;
pub mod storage;
pub mod throttle;
pub mod topology;
pub mod view;
pub mod workload;

pub use condition::{Condition, ConditionStatus};
pub use discovery::{Capabilities, GroupLink};
pub use error::{ObjectError, ObjectKind};
pub use group::{CompositeView, GroupReading, PodGroupView};
pub use kin::{
    BudgetReading, BudgetView, ReplicaSetView, ReplicationControllerView, SelectorReading, ServiceView,
    StatefulSetView,
};
pub use marks::{GroupMarks, WhenBroken};
pub use namespace::NamespaceView;
pub use node::{NodeReading, NodeView};
pub use pod::{PodReading, PodView};
pub use priority::{PriorityClassReading, PriorityClassView};
pub use storage::{
    ClaimReading, ClaimView, ClassReading, ClassView, CsiNodeView, LimitsReading, VolumeReading, VolumeView,
};
pub use workload::{WorkloadReading, WorkloadView};
