//! Identities as a Secret holds them.

use super::identity::Identity;
use super::plan::Shared;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The names of the parts of one identity, in the data of the Secret.
struct Parts {
    authority: &'static str,
    certificate: &'static str,
    key: &'static str,
    /// What else is known of it, as JSON.
    about: &'static str,
}

/// Who serves, by the names that Secrets with certificates have.
const CURRENT: Parts = Parts { authority: "ca.crt", certificate: "tls.crt", key: "tls.key", about: "about" };
const NEXT: Parts =
    Parts { authority: "next-ca.crt", certificate: "next.crt", key: "next.key", about: "about-next" };
const OLD_AUTHORITY: &str = "old-ca.crt";

/// What cannot be told from a certificate without taking it apart.
#[derive(serde::Serialize, serde::Deserialize)]
struct About {
    expires: Timestamp,
    names: Vec<String>,
}

/// The data of a Secret; parts that are not there are `null`, so that a patch takes them away.
pub(super) fn data(shared: &Shared) -> Value {
    let mut data = Map::new();
    for (parts, identity) in [(CURRENT, Some(&shared.current)), (NEXT, shared.next.as_ref())] {
        let about = identity.map(|identity| {
            json!(About { expires: identity.expires, names: identity.names.clone() }).to_string()
        });
        for (name, text) in [
            (parts.authority, identity.map(|identity| identity.authority.as_str())),
            (parts.certificate, identity.map(|identity| identity.certificate.as_str())),
            (parts.key, identity.map(|identity| identity.key.as_str())),
            (parts.about, about.as_deref()),
        ] {
            data.insert(name.to_owned(), encoded(text));
        }
    }
    data.insert(OLD_AUTHORITY.to_owned(), encoded(shared.old_authority.as_deref()));
    Value::Object(data)
}

fn encoded(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| json!(ByteString(text.as_bytes().to_vec())))
}

/// What a Secret holds, if it can be used. People may have changed it.
pub(super) fn read(secret: &Secret) -> Option<Shared> {
    let data = secret.data.as_ref()?;
    let current = identity(data, &CURRENT)?;
    let next = identity(data, &NEXT);
    Some(Shared { current, next, old_authority: text(data, OLD_AUTHORITY) })
}

fn identity(data: &BTreeMap<String, ByteString>, parts: &Parts) -> Option<Identity> {
    let about: About = serde_json::from_str(&text(data, parts.about)?).ok()?;
    let identity = Identity {
        authority: text(data, parts.authority)?,
        certificate: text(data, parts.certificate)?,
        key: text(data, parts.key)?,
        expires: about.expires,
        names: about.names,
    };
    identity.certified().is_ok().then_some(identity)
}

fn text(data: &BTreeMap<String, ByteString>, name: &str) -> Option<String> {
    String::from_utf8(data.get(name)?.0.clone()).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn identity() -> Identity {
        Identity::generate(&["hooks".to_owned()], Timestamp::now(), Duration::from_secs(60)).unwrap()
    }

    /// The Secret after a patch with this data.
    fn stored(data: Value) -> Secret {
        let Value::Object(mut data) = data else { panic!("data is an object") };
        data.retain(|_, part| !part.is_null());
        serde_json::from_value(json!({"data": data})).unwrap()
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let alone = Shared::new(identity());
        let old_authority = Some(identity().authority);
        for shared in [
            Shared { next: Some(identity()), ..alone.clone() },
            Shared { old_authority, ..alone.clone() },
            alone,
        ] {
            assert_eq!(read(&stored(data(&shared))), Some(shared));
        }
    }

    #[test]
    fn a_secret_that_somebody_broke_is_as_good_as_none() {
        assert_eq!(read(&Secret::default()), None);
        let shared = Shared::new(identity());
        for part in ["ca.crt", "tls.crt", "tls.key", "about"] {
            let mut broken = data(&shared);
            broken[part] = encoded(Some("something else"));
            // Nobody can tell an authority from another one; that it is trusted is seen by who calls.
            assert_eq!(read(&stored(broken)).is_some(), part == "ca.crt", "{part}");
            let mut lacking = data(&shared);
            lacking[part] = Value::Null;
            assert_eq!(read(&stored(lacking)), None, "{part}");
        }
    }
}
