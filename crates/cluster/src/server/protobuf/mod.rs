//! Request bodies in Kubernetes' protobuf, which kubectl's imperative commands and Go programs send. Only requests:
//! every client that sends it also reads JSON.
//!
//! The messages are a table, `messages.txt`; there is no code per kind. Fields that it does not know are skipped,
//! as every protobuf reader does.

mod table;
#[cfg(test)]
mod tests;
mod wire;

use crate::error::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use table::{Field, MessageId, Shape, Type, table};
use wire::{Reader, WireValue};

/// The media type.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Deepest nesting of messages. The same as for JSON.
const DEPTH_MAX: usize = super::DEPTH_MAX;

/// Why a body could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum DecodeError {
    #[error("it does not begin with the mark of Kubernetes' protobuf")]
    NoMagic,
    #[error("it ends in the middle of a field")]
    Truncated,
    #[error("a number is longer than ten bytes")]
    LongNumber,
    #[error("field {field} of {message} is not what its type says")]
    WrongType { message: String, field: u32 },
    #[error("a text is not UTF-8")]
    NotText,
    #[error("a time is out of range")]
    Time,
    #[error("embedded JSON is malformed: {0}")]
    Json(String),
    #[error("it is nested deeper than {DEPTH_MAX} levels")]
    Depth,
}

/// Reads a body into the object that it stands for.
pub(super) fn decode(body: &[u8]) -> Result<Value, ApiError> {
    let malformed = |error: DecodeError| {
        ApiError::bad_request(format!("the body of the request is not valid protobuf: {error}"))
    };
    let envelope = Envelope::read(body).map_err(malformed)?;
    let Some(message) = envelope.message() else {
        let (api_version, kind) = (&envelope.api_version, &envelope.kind);
        return Err(super::body::unsupported(&format!(
            "protobuf bodies of {api_version} {kind} are not read by this server; send JSON or YAML. With kubectl, \
             write the object to a file and use `kubectl create -f FILE`"
        )));
    };
    let mut object = decode_message(message, envelope.raw, DEPTH_MAX).map_err(malformed)?;
    object.insert("apiVersion".to_owned(), json!(envelope.api_version));
    object.insert("kind".to_owned(), json!(envelope.kind));
    Ok(Value::Object(object))
}

/// What is around every object: what it is, and its bytes.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut out = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        let mut reader = Reader::new(body.strip_prefix(MAGIC).ok_or(DecodeError::NoMagic)?);
        while let Some((number, value)) = reader.field()? {
            match (number, value) {
                (1, WireValue::Bytes(bytes)) => {
                    let mut reader = Reader::new(bytes);
                    while let Some((number, value)) = reader.field()? {
                        match (number, value) {
                            (1, WireValue::Bytes(bytes)) => out.api_version = text(bytes)?.to_owned(),
                            (2, WireValue::Bytes(bytes)) => out.kind = text(bytes)?.to_owned(),
                            _ => {}
                        }
                    }
                }
                (2, WireValue::Bytes(bytes)) => out.raw = bytes,
                _ => {}
            }
        }
        Ok(out)
    }

    /// The message of the object. The options of a deletion go by the version of whatever they delete.
    fn message(&self) -> Option<MessageId> {
        if self.kind == "DeleteOptions" {
            return table().find("meta.v1.DeleteOptions");
        }
        let (group, version) = self.api_version.split_once('/').unwrap_or(("core", &self.api_version));
        let group = group.split('.').next().unwrap_or(group);
        table().find(&format!("{group}.{version}.{}", self.kind))
    }
}

fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::NotText)
}

fn decode_message(id: MessageId, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, DecodeError> {
    let depth = depth.checked_sub(1).ok_or(DecodeError::Depth)?;
    let mut out = Map::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.field()? {
        let Some(field) = table().field(id, number) else { continue };
        let wrong = || DecodeError::WrongType { message: table().name(id).to_owned(), field: number };
        match field.shape {
            Shape::Inlined => {
                let (Type::Message(inner), WireValue::Bytes(bytes)) = (&field.of, value) else {
                    return Err(wrong());
                };
                out.extend(decode_message(*inner, bytes, depth)?);
            }
            Shape::One { keeps_zero } => {
                let value = decode_value(&field.of, value, depth)?.ok_or_else(wrong)?;
                if keeps_zero || !is_zero(&value) {
                    out.insert(field.name.clone(), value);
                }
            }
            Shape::List => {
                let entries = out.entry(&field.name).or_insert_with(|| json!([]));
                let value = decode_value(&field.of, value, depth)?.ok_or_else(wrong)?;
                entries.as_array_mut().ok_or_else(wrong)?.push(value);
            }
            Shape::Map => {
                let WireValue::Bytes(bytes) = value else { return Err(wrong()) };
                let (key, value) = decode_entry(field, bytes, depth, &wrong)?;
                let entries = out.entry(&field.name).or_insert_with(|| json!({}));
                entries.as_object_mut().ok_or_else(wrong)?.insert(key, value);
            }
        }
    }
    Ok(out)
}

fn decode_entry(
    field: &Field,
    bytes: &[u8],
    depth: usize,
    wrong: &dyn Fn() -> DecodeError,
) -> Result<(String, Value), DecodeError> {
    let mut key = String::new();
    // A value that is left out is the empty one of its type.
    let mut entry = decode_value(&field.of, WireValue::Bytes(&[]), depth)?.unwrap_or_default();
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.field()? {
        match (number, value) {
            (1, WireValue::Bytes(bytes)) => key = text(bytes)?.to_owned(),
            (2, value) => entry = decode_value(&field.of, value, depth)?.ok_or_else(wrong)?,
            _ => {}
        }
    }
    Ok((key, entry))
}

/// A value as JSON spells it; `None` if it is not of its type.
fn decode_value(of: &Type, value: WireValue<'_>, depth: usize) -> Result<Option<Value>, DecodeError> {
    let value = match (of, value) {
        (Type::Int, WireValue::Number(number)) => json!(number.cast_signed()),
        (Type::Bool, WireValue::Number(number)) => json!(number != 0),
        (Type::Text, WireValue::Bytes(bytes)) => json!(text(bytes)?),
        (Type::Bytes, WireValue::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Type::Message(id), WireValue::Bytes(bytes)) => Value::Object(decode_message(*id, bytes, depth)?),
        (Type::Quantity, WireValue::Bytes(bytes)) => json!(text(Parts::read(bytes)?.bytes[0])?),
        (Type::Time, WireValue::Bytes(bytes)) => time(&Parts::read(bytes)?, "%Y-%m-%dT%H:%M:%SZ")?,
        (Type::MicroTime, WireValue::Bytes(bytes)) => time(&Parts::read(bytes)?, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
        (Type::IntOrText, WireValue::Bytes(bytes)) => {
            let parts = Parts::read(bytes)?;
            if parts.numbers[0] == 0 { json!(parts.numbers[1]) } else { json!(text(parts.bytes[2])?) }
        }
        (Type::Json, WireValue::Bytes(bytes)) => match Parts::read(bytes)?.bytes[0] {
            [] => Value::Null,
            raw => serde_json::from_slice(raw).map_err(|error| DecodeError::Json(error.to_string()))?,
        },
        (Type::Items(of), WireValue::Bytes(bytes)) => {
            let depth = depth.checked_sub(1).ok_or(DecodeError::Depth)?;
            let mut items = Vec::new();
            let mut reader = Reader::new(bytes);
            while let Some((_, value)) = reader.field()? {
                let Some(item) = decode_value(of, value, depth)? else { return Ok(None) };
                items.push(item);
            }
            Value::Array(items)
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

/// The first fields of a small message, whatever they are.
#[derive(Default)]
struct Parts<'a> {
    numbers: [i64; 3],
    bytes: [&'a [u8]; 3],
}

impl<'a> Parts<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut out = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.field()? {
            let place = (number as usize).wrapping_sub(1);
            match value {
                WireValue::Number(number) => {
                    if let Some(slot) = out.numbers.get_mut(place) {
                        *slot = number.cast_signed();
                    }
                }
                WireValue::Bytes(bytes) => {
                    if let Some(slot) = out.bytes.get_mut(place) {
                        *slot = bytes;
                    }
                }
                WireValue::Fixed => {}
            }
        }
        Ok(out)
    }
}

/// Seconds and nanoseconds; none of both is no time at all.
fn time(parts: &Parts<'_>, format: &str) -> Result<Value, DecodeError> {
    let [seconds, nanoseconds, _] = parts.numbers;
    if (seconds, nanoseconds) == (0, 0) {
        return Ok(Value::Null);
    }
    let nanoseconds = i32::try_from(nanoseconds).map_err(|_| DecodeError::Time)?;
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| DecodeError::Time)?;
    Ok(json!(time.strftime(format).to_string()))
}

/// True for what Go leaves out of JSON.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}
