//! ConfigMap, Secret and ServiceAccount.

use super::defaults::{child, set};
use super::field::{Field, same};
use crate::error::Cause;
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

/// Bytes of all values of a ConfigMap or Secret together.
const DATA_BYTES_MAX: usize = 1 << 20;
/// Longest key.
const KEY_BYTES_MAX: usize = 253;
/// Fields that an immutable ConfigMap or Secret keeps.
const DATA_FIELDS: [&str; 2] = ["data", "binaryData"];

/// What is wrong with a ConfigMap.
pub(super) fn validate_config_map(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (text, binary) = (root.get("data"), root.get("binaryData"));
    check_keys(&text, out);
    check_keys(&binary, out);
    for (key, entry) in text.entries() {
        if binary.value().and_then(|binary| binary.get(key)).is_some() {
            out.push(entry.invalid_value(&format!("{key:?}"), "duplicate of key present in binaryData"));
        }
    }
    check_size(root, &[&text, &binary], out);
}

/// What is wrong with a Secret.
pub(super) fn validate_secret(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let data = root.get("data");
    check_keys(&data, out);
    for (key, value) in data.entries() {
        if STANDARD.decode(value.text()).is_err() {
            out.push(data.invalid_value(&format!("{key:?}"), "the value must be base64"));
        }
    }
    check_size(root, &[&data], out);
    let required: &[&str] = match root.get("type").text() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    // Of these two, one will do.
    let [name, password] = ["username", "password"].map(|key| data.value().and_then(|data| data.get(key)));
    let required = match root.get("type").text() {
        "kubernetes.io/basic-auth" if name.is_none() && password.is_none() => &["username", "password"],
        _ => required,
    };
    for key in required {
        if data.value().and_then(|data| data.get(key)).is_none() {
            out.push(Cause { field: format!("data[{key}]"), ..data.required("") });
        }
    }
}

/// What is wrong with replacing a Secret: its type is what others rely on.
pub(super) fn validate_secret_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    new.get("type").check_unchanged(&old.get("type"), out);
    validate_config_map_update(old, new, out);
}

/// What is wrong with replacing a ConfigMap or Secret that was said to be immutable.
pub(super) fn validate_config_map_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    if !old.get("immutable").is_true() {
        return;
    }
    if !new.get("immutable").is_true() {
        out.push(new.get("immutable").forbidden("field is immutable when `immutable` is set"));
    }
    for field in DATA_FIELDS {
        if !same(new.get(field).value(), old.get(field).value()) {
            out.push(new.get(field).forbidden("field is immutable when `immutable` is set"));
        }
    }
}

fn check_keys(data: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for (key, entry) in data.entries() {
        let spelled = key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if key.is_empty() || key.len() > KEY_BYTES_MAX || !spelled || matches!(key, "." | "..") {
            out.push(entry.invalid_value(
                &format!("{key:?}"),
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ));
        }
    }
}

fn check_size(root: &Field<'_, '_>, parts: &[&Field<'_, '_>], out: &mut Vec<Cause>) {
    let bytes: usize =
        parts.iter().flat_map(|part| part.entries().map(|(_, v)| v.text().len()).collect::<Vec<_>>()).sum();
    if bytes > DATA_BYTES_MAX {
        out.push(Cause { field: "data".to_owned(), ..root.too_long(DATA_BYTES_MAX) });
    }
}
