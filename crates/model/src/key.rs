//! Names of objects.

use std::fmt;
use std::sync::Arc;

/// Shared, immutable text.
pub type Text = Arc<str>;

/// Namespace and name of a namespaced object. Its kind follows from where it is used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace.
    pub namespace: Text,
    /// Name.
    pub name: Text,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
