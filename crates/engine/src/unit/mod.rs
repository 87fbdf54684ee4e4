//! What a unit asks for.

pub(crate) mod attempt;
pub(crate) mod incomplete;
pub(crate) mod members;
pub(crate) mod rank;
pub(crate) mod tree;
