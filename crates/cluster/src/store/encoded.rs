//! An object as JSON, without its managed fields but with a place for them: they are shared between objects, the
//! text is not.

use crate::ownership::Managed;
use serde_json::Value;

/// The JSON of an object.
#[derive(Debug)]
pub(super) struct Encoded {
    text: Box<[u8]>,
    /// Where the fields of `metadata` begin; nothing if it has none.
    metadata_at: Option<usize>,
}

impl Encoded {
    pub(super) fn new(value: &Value) -> Self {
        let mut text = Vec::new();
        let mut metadata_at = None;
        match value {
            Value::Object(map) => {
                text.push(b'{');
                for (index, (name, value)) in map.iter().enumerate() {
                    if index > 0 {
                        text.push(b',');
                    }
                    encode(name, &mut text);
                    text.push(b':');
                    if name == "metadata" && value.as_object().is_some_and(|map| !map.is_empty()) {
                        metadata_at = Some(text.len() + 1);
                    }
                    encode(value, &mut text);
                }
                text.push(b'}');
            }
            other => encode(other, &mut text),
        }
        Self { text: text.into_boxed_slice(), metadata_at }
    }

    /// Appends the JSON, with the managed fields in their place.
    pub(super) fn write(&self, managed: &Managed, out: &mut Vec<u8>) {
        let split = self.metadata_at.and_then(|at| self.text.split_at_checked(at));
        let Some((head, tail)) = split.filter(|_| !managed.is_empty()) else {
            out.extend_from_slice(&self.text);
            return;
        };
        out.extend_from_slice(head);
        out.extend_from_slice(b"\"managedFields\":");
        managed.write_json(out);
        out.push(b',');
        out.extend_from_slice(tail);
    }

    /// The value that was encoded.
    pub(super) fn parse(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }
}

fn encode(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // JSON values have only string keys and no foreign serialisers, and a vector takes every write.
    let _ = serde_json::to_writer(out, value);
}
