//! Decoding that survives fields of the wrong shape.
//!
//! The API server validates what it stores, but not every server is as strict, and a list of 100,000 pods must
//! not be lost to one of them. So every field is read as [`Lenient`]: what has the wrong shape is skipped,
//! remembered, and reported when the object is translated. There is no buffering: well-formed input costs the
//! same as with derived types.

use serde::de::{
    self, Deserialize, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
    value::{MapAccessDeserializer, SeqAccessDeserializer},
};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use tutti_model::ModelError;

/// Longest piece of a wrong value that is repeated in a message.
const SHOWN_CHARS_MAX: usize = 40;

/// What a field looks like in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// True or false.
    Flag,
    /// A quantity: text or a number.
    Amount,
    /// A list.
    List,
    /// An object.
    Object,
    /// Text in one version of the API, an object in another.
    TextOrObject,
}

impl Shape {
    fn wanted(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "a whole number",
            Self::Flag => "true or false",
            Self::Amount => "a quantity",
            Self::List => "a list",
            Self::Object => "an object",
            Self::TextOrObject => "text or an object",
        }
    }
}

/// A type with a known shape. Types of shape `List` and `Object` must hold lenient fields only, so that reading
/// them fails on broken JSON alone.
pub trait Shaped {
    /// The shape.
    const SHAPE: Shape;
}

impl Shaped for String {
    const SHAPE: Shape = Shape::Text;
}
impl Shaped for i32 {
    const SHAPE: Shape = Shape::Integer;
}
impl Shaped for i64 {
    const SHAPE: Shape = Shape::Integer;
}
impl Shaped for bool {
    const SHAPE: Shape = Shape::Flag;
}
impl<T> Shaped for Vec<Lenient<T>> {
    const SHAPE: Shape = Shape::List;
}
impl<T> Shaped for BTreeMap<String, Lenient<T>> {
    const SHAPE: Shape = Shape::Object;
}

/// A quantity as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) String);

impl Shaped for Amount {
    const SHAPE: Shape = Shape::Amount;
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;
        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}

/// A field that may be absent or of the wrong shape.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Lenient<T> {
    /// Not there, or null.
    #[default]
    Absent,
    /// Read.
    Read(T),
    /// There, but not what it should be.
    Wrong(Box<str>),
}

impl<T> Lenient<T> {
    /// The value if it is there; an error if it has the wrong shape.
    pub fn get(&self) -> Result<Option<&T>, ModelError> {
        match self {
            Self::Absent => Ok(None),
            Self::Read(value) => Ok(Some(value)),
            Self::Wrong(message) => Err(ModelError::new("", message.as_ref())),
        }
    }

    /// As [`Lenient::get`], with an error that names the field.
    pub fn at(&self, field: &str) -> Result<Option<&T>, ModelError> {
        self.get().map_err(|error| error.within(field))
    }

    /// True unless the field is absent.
    pub fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

impl<T: Shaped> Lenient<T> {
    fn wrong(found: impl fmt::Display) -> Self {
        let found = found.to_string();
        let shown: String = found.chars().take(SHOWN_CHARS_MAX).collect();
        Self::Wrong(format!("want {}, found {shown}", T::SHAPE.wanted()).into())
    }
}

impl<'de, T: Shaped + Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<T> LenientVisitor<T> {
    /// Reads a scalar; one that does not fit is wrong, never fatal.
    fn scalar<'de, V>(value: V) -> Lenient<T>
    where
        T: Shaped + Deserialize<'de>,
        V: IntoDeserializer<'de, de::value::Error> + fmt::Display + Copy,
    {
        match T::SHAPE {
            Shape::List | Shape::Object => Lenient::wrong(value),
            _ => T::deserialize(value.into_deserializer())
                .map_or_else(|_| Lenient::wrong(value), Lenient::Read),
        }
    }
}

impl<'de, T: Shaped + Deserialize<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Lenient::Absent)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Lenient::Absent)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Self::scalar(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Self::scalar(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Self::scalar(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Self::scalar(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        if matches!(T::SHAPE, Shape::Text | Shape::Amount | Shape::TextOrObject) {
            let read = T::deserialize(IntoDeserializer::<de::value::Error>::into_deserializer(value));
            if let Ok(read) = read {
                return Ok(Lenient::Read(read));
            }
        }
        Ok(Lenient::wrong(format_args!("{value:?}")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if T::SHAPE == Shape::List {
            return T::deserialize(SeqAccessDeserializer::new(list)).map(Lenient::Read);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient::wrong("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if matches!(T::SHAPE, Shape::Object | Shape::TextOrObject) {
            return T::deserialize(MapAccessDeserializer::new(map)).map(Lenient::Read);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Lenient::wrong("an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner {
        name: Lenient<String>,
        count: Lenient<i32>,
        on: Lenient<bool>,
        cpu: Lenient<Amount>,
        items: Lenient<Vec<Lenient<Inner>>>,
    }

    impl Shaped for Inner {
        const SHAPE: Shape = Shape::Object;
    }

    fn read(json: &str) -> Inner {
        match serde_json::from_str::<Lenient<Inner>>(json).unwrap() {
            Lenient::Read(inner) => inner,
            other => panic!("not read: {other:?}"),
        }
    }

    fn complaint<T: fmt::Debug>(field: &Lenient<T>) -> String {
        field.get().expect_err("must be wrong").message
    }

    #[test]
    fn well_formed_fields_are_read_and_unknown_ones_dropped() {
        let inner = read(
            r#"{"name":"a","count":3,"on":true,"cpu":2,"unknown":{"x":[1]},"items":[{"cpu":"1500m"},null]}"#,
        );
        assert_eq!(inner.name.get().unwrap().map(String::as_str), Some("a"));
        assert_eq!(inner.count, Lenient::Read(3));
        assert_eq!(inner.on, Lenient::Read(true));
        assert_eq!(inner.cpu, Lenient::Read(Amount("2".to_owned())));
        let items = inner.items.get().unwrap().unwrap();
        let Lenient::Read(first) = &items[0] else { panic!() };
        assert_eq!(first.cpu, Lenient::Read(Amount("1500m".to_owned())));
        assert!(!items[1].is_present());
    }

    #[test]
    fn a_wrong_field_spoils_only_itself() {
        let inner = read(
            r#"{"name":{"deep":[1,{"x":2}]},"count":"3","on":[true],"items":"none","cpu":{"a":1},"extra":1}"#,
        );
        assert_eq!(complaint(&inner.name), "want text, found an object");
        assert_eq!(complaint(&inner.count), "want a whole number, found \"3\"");
        assert_eq!(complaint(&inner.on), "want true or false, found a list");
        assert_eq!(complaint(&inner.items), "want a list, found \"none\"");
        assert_eq!(complaint(&inner.cpu), "want a quantity, found an object");
    }

    #[test]
    fn a_wrong_element_spoils_only_itself() {
        let inner = read(r#"{"items":[1,{"count":5000000000},[2],{"count":5}]}"#);
        let items = inner.items.get().unwrap().unwrap();
        assert_eq!(complaint(&items[0]), "want an object, found 1");
        let Lenient::Read(second) = &items[1] else { panic!() };
        assert_eq!(complaint(&second.count), "want a whole number, found 5000000000");
        assert_eq!(complaint(&items[2]), "want an object, found a list");
        let Lenient::Read(last) = &items[3] else { panic!() };
        assert_eq!(last.count, Lenient::Read(5));
    }

    #[test]
    fn an_endless_value_is_not_repeated_in_full() {
        let json = format!(r#"{{"count":"{}"}}"#, "x".repeat(10_000));
        assert!(complaint(&read(&json).count).len() < 100);
    }
}
