//! An object as JSON, without its managed fields but with a place for them: they are shared between objects, the
//! text is not.

use crate::ownership::Managed;
use serde_json::Value;

/// Fields that say what an object is. The list that an object is in says it for all of its items.
const TYPE_FIELDS: [&str; 2] = ["kind", "apiVersion"];

/// The JSON of an object.
#[derive(Debug)]
pub(super) struct Encoded {
    text: Box<[u8]>,
    /// Where the fields behind those of the type begin, which come first.
    content_at: usize,
    /// Where the fields of `metadata` begin; nothing if it has none.
    metadata_at: Option<usize>,
}

impl Encoded {
    pub(super) fn new(value: &Value) -> Self {
        let mut text = vec![b'{'];
        let mut content_at = text.len();
        let mut metadata_at = None;
        // The store holds nothing but objects.
        let map = value.as_object();
        let types = TYPE_FIELDS.iter().filter_map(|name| map?.get_key_value(*name));
        let others = map.into_iter().flatten().filter(|(name, _)| !TYPE_FIELDS.contains(&name.as_str()));
        for (is_type, (name, value)) in types.map(|field| (true, field)).chain(others.map(|f| (false, f))) {
            encode(name, &mut text);
            text.push(b':');
            if name == "metadata" && value.as_object().is_some_and(|map| !map.is_empty()) {
                metadata_at = Some(text.len() + 1);
            }
            encode(value, &mut text);
            text.push(b',');
            if is_type {
                content_at = text.len();
            }
        }
        if text.len() > 1 {
            text.pop();
        }
        content_at = content_at.min(text.len());
        text.push(b'}');
        Self { text: text.into_boxed_slice(), content_at, metadata_at }
    }

    /// Appends the JSON, with the managed fields in their place.
    pub(super) fn write(&self, managed: &Managed, out: &mut Vec<u8>) {
        self.write_from(0, managed, out);
    }

    /// Appends the JSON as an item of a list that says what its items are.
    pub(super) fn write_item(&self, managed: &Managed, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_from(self.content_at, managed, out);
    }

    /// Appends what stands behind an offset, which is not behind the start of the metadata.
    fn write_from(&self, start: usize, managed: &Managed, out: &mut Vec<u8>) {
        let text = self.text.get(start..).unwrap_or_default();
        let split = self.metadata_at.and_then(|at| text.split_at_checked(at.checked_sub(start)?));
        let Some((head, tail)) = split.filter(|_| !managed.is_empty()) else {
            out.extend_from_slice(text);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole_and_item(value: &Value) -> (Value, Value) {
        let encoded = Encoded::new(value);
        let parse = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{value}: {error}"))
        };
        let managed = Managed::default();
        assert_eq!(encoded.parse(), *value);
        (parse(&|out| encoded.write(&managed, out)), parse(&|out| encoded.write_item(&managed, out)))
    }

    #[test]
    fn an_item_of_a_list_does_not_say_what_it_is() {
        for (value, item) in [
            (
                json!({"apiVersion": "v1", "data": {"a": "b"}, "kind": "X", "metadata": {"name": "n"}}),
                json!({"data": {"a": "b"}, "metadata": {"name": "n"}}),
            ),
            (json!({"metadata": {"name": "n"}}), json!({"metadata": {"name": "n"}})),
            (json!({"apiVersion": "v1", "kind": "X"}), json!({})),
            (json!({}), json!({})),
        ] {
            assert_eq!(whole_and_item(&value), (value.clone(), item));
        }
    }
}
