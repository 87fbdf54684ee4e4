//! What a unit asks for right now.

pub(crate) mod attempt;
pub(crate) mod members;
mod tree;
pub(crate) mod trial;
