//! What a column is.

use serde_json::{Value, json};

/// One column.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
}

impl Column {
    /// As `columnDefinitions` has it.
    pub(super) fn to_json(&self) -> Value {
        let format = if self.name == "Name" { "name" } else { "" };
        json!({
            "name": self.name, "type": self.kind, "format": format, "description": self.description,
            "priority": i32::from(self.wide),
        })
    }
}

/// A column of text.
pub(super) const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", description, wide: false }
}

/// A column of text that only `-o wide` shows.
pub(super) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", description, wide: true }
}

/// A column of numbers.
pub(super) const fn number(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "integer", description, wide: false }
}

/// A column of truth values.
pub(super) const fn flag(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "boolean", description, wide: false }
}

/// Name of the object.
pub(super) const NAME: Column = text("Name", "Name of the object, unique for its kind within the namespace");
/// Age of the object.
pub(super) const AGE: Column = text("Age", "Time since the object was created");

/// What a kind that prints nothing of its own has.
pub(super) static PLAIN: [Column; 2] = [NAME, AGE];
