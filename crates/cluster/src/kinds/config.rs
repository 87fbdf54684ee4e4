//! ConfigMap, Secret and ServiceAccount.

use super::defaults::{child, set};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Defaults of a Secret. `stringData` is how people write values; it is never stored.
pub(super) fn secret_defaults(object: &mut Map<String, Value>) {
    set(object, "type", json!("Opaque"));
    let plain = match object.get("stringData") {
        None => return,
        Some(Value::Null) => Map::new(),
        Some(Value::Object(plain)) if plain.values().all(Value::is_string) => plain.clone(),
        // Of the wrong type, which validation reports.
        Some(_) => return,
    };
    object.remove("stringData");
    if plain.is_empty() {
        return;
    }
    if let Some(data) = child(object, "data") {
        for (key, value) in plain {
            data.insert(key, json!(STANDARD.encode(value.as_str().unwrap_or_default())));
        }
    }
}
