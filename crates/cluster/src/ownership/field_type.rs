//! What has to be known about the type of a value to say who manages which part of it.

use serde_json::Value;

/// How the parts of a value relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation<'a> {
    /// One thing with one manager: a plain value, or an object or list that is replaced as a whole.
    Whole,
    /// An object or a map: every field has managers of its own.
    Fields,
    /// A list of distinct plain values.
    Set,
    /// A list of objects that are told apart by the values of these fields.
    Keyed(&'a [Box<str>]),
    /// No type is known: objects have fields, everything else is one thing.
    Unknown,
}

/// A type, as far as ownership goes. Built-in kinds bring theirs from their schemas, custom resources from
/// their structural schema.
pub trait FieldType: Copy {
    /// How the parts of a value of this type relate.
    fn relation(&self) -> Relation<'_>;

    /// The type of a field that the schema names; `None` for keys of maps and for fields it does not know.
    fn field(&self, name: &str) -> Option<Self>;

    /// The type of the entries of a list or of the values of a map; `None` if there is nothing but named fields.
    fn element(&self) -> Option<Self>;

    /// The value that a key of a list's entry has if the entry leaves it out; asked of the entry's type.
    fn key_default(&self, key: &str) -> Option<Value>;
}
