//! The cluster as it is.

pub(crate) mod counts;
pub(crate) mod digest;
pub(crate) mod hierarchy;
pub(crate) mod holds;
pub(crate) mod images;
pub(crate) mod index;
pub(crate) mod label_index;
pub(crate) mod nodes;
pub(crate) mod pods;
pub(crate) mod relations;
pub(crate) mod room;
pub(crate) mod room_sums;
pub(crate) mod selector_index;
pub(crate) mod shape;
pub(crate) mod topology;
pub(crate) mod txn;
pub(crate) mod volumes;
