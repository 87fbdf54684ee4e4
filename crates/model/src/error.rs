//! What is wrong with something that came from outside.

/// A field that cannot be understood. The path is relative to the object; whoever knows the object adds its
/// name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ModelError {
    /// Path of the field, as in `spec.containers[0].resources.requests.cpu`.
    pub field: String,
    /// What is wrong with it, and with which value.
    pub message: String,
}

impl ModelError {
    /// An error at a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The same error seen from one level further out.
    #[must_use]
    pub fn within(self, parent: &str) -> Self {
        let field = match self.field.as_str() {
            "" => parent.to_owned(),
            child if child.starts_with('[') => format!("{parent}{child}"),
            child => format!("{parent}.{child}"),
        };
        Self { field, message: self.message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_gathers_its_path_on_the_way_out() {
        let error =
            ModelError::new("cpu", "not a number").within("requests").within("[0]").within("containers");
        assert_eq!(error.to_string(), "containers[0].requests.cpu: not a number");
    }
}
