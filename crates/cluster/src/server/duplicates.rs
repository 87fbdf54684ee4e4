//! JSON with an eye on fields that come twice. The last one counts, as in Kubernetes, but clients can ask to be told.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Repeated fields that are remembered of one body.
const DUPLICATES_MAX: usize = 32;

/// Reads JSON, and the paths of fields that come twice.
pub(super) fn read(body: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let at = Place { path: &Path::Root, duplicates: &mut duplicates };
    let value = at.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, duplicates))
}

/// Where in a body a value stands. It is spelled out only for those who ask.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => f.write_str(name),
            Self::Field(holder, name) => write!(f, "{holder}.{name}"),
            Self::Item(holder, index) => write!(f, "{holder}[{index}]"),
        }
    }
}

/// A value that is still to be read.
struct Place<'a> {
    path: &'a Path<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path::Item(self.path, list.len());
            match items.next_element_seed(Place { path: &path, duplicates: &mut *self.duplicates })? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = Path::Field(self.path, &name);
            let value = fields.next_value_seed(Place { path: &path, duplicates: &mut *self.duplicates })?;
            if map.contains_key(&name) && self.duplicates.len() < DUPLICATES_MAX {
                let path = path.to_string();
                if !self.duplicates.contains(&path) {
                    self.duplicates.push(path);
                }
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_as_ever_and_the_last_of_two_counts() {
        let text = r#"{"a": [1, -2, 3.5, "x", null, true, {"b": {}}], "a": {"c": [{"d": 1, "d": 2, "d": 3}]}, "e": "f"}"#;
        let (value, duplicates) = read(text.as_bytes()).unwrap();
        assert_eq!(value, json!({"a": {"c": [{"d": 3}]}, "e": "f"}));
        assert_eq!(duplicates, ["a.c[0].d", "a"]);
        for text in ["null", "[]", r#"{"a": [1, -2, 3.5, 18446744073709551615, "x\u00e9", [[]]]}"#] {
            let (value, duplicates) = read(text.as_bytes()).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
            assert_eq!(duplicates, Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_refused() {
        for text in ["", "{", "{} {}", r#"{"a" 1}"#, &"[".repeat(100_000)] {
            assert!(read(text.as_bytes()).is_err(), "{text:.20}");
        }
    }

    #[test]
    fn no_body_makes_the_list_of_duplicates_long() {
        let text = format!(
            "{{{}}}",
            (0..100).map(|i| format!("\"f{i}\":1,\"f{i}\":2")).collect::<Vec<_>>().join(",")
        );
        assert_eq!(read(text.as_bytes()).unwrap().1.len(), DUPLICATES_MAX);
    }
}
