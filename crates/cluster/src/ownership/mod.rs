//! Who manages which field of an object: what `metadata.managedFields` says, kept for every write, and what
//! server-side apply decides with it.
//!
//! The pieces, from the bottom up: a [`FieldSet`] is a set of paths; [`Managed`] is one such set for every
//! writer of an object; `walk` reads sets out of values, and merges and prunes values by sets, as a
//! [`FieldType`] says; `update` and `apply` are the two ways in which a write changes who manages what.
//!
//! Sets are never stored as JSON values. Objects of one kind tend to be written alike, so sets are shared:
//! a hundred thousand pods of one template have one set between them (see [`intern`]).

pub mod apply;
mod conflict;
mod field_set;
mod field_type;
pub mod intern;
mod managed;
#[cfg(test)]
mod tests;
mod update;
mod walk;

pub use field_set::{FieldSet, Step};
pub use field_type::{FieldType, Relation};
pub use managed::{Entry, Fields, Managed, Operation, Writer};
pub use update::{Versions, created, updated};
