//! Which resource, object or subresource a path names.

use crate::error::ApiError;
use crate::registry::{Catalog, ResourceId, StatusRule, Subresource};
use crate::store::Key;

/// A longer path names nothing.
const PATH_BYTES_MAX: usize = 4096;

/// What a path under `/api/v1` or `/apis/GROUP/VERSION` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) id: ResourceId,
    /// The version in which the client speaks.
    pub(super) version: &'static str,
    /// Empty for cluster-scoped resources and for all namespaces.
    pub(super) namespace: String,
    /// `None` names the collection.
    pub(super) name: Option<String>,
    pub(super) sub: Option<Sub>,
}

/// Subresources that have endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sub {
    Status,
    Binding,
    Eviction,
    Log,
    Scale,
    Resize,
}

impl Target {
    /// The key of the named object.
    pub(super) fn key(&self) -> Result<Key, ApiError> {
        let name = self.name.as_deref().ok_or_else(ApiError::no_such_path)?;
        Ok(Key::new(&self.namespace, name))
    }

    /// The same place with a name.
    pub(super) fn named(&self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), sub: None, ..self.clone() }
    }

    /// The older way to bind: which pod is meant, the body says.
    fn bindings(catalog: &Catalog, namespace: &str) -> Option<Self> {
        let (id, version) = catalog.find("", "v1", "pods")?;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty())?.to_owned();
        Some(Self { id, version, namespace, name: None, sub: Some(Sub::Binding) })
    }

    /// Reads the part of a path behind group and version.
    pub(super) fn parse(catalog: &Catalog, group: &str, version: &str, rest: &[String]) -> Option<Self> {
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        if let (("", "v1"), ["namespaces", namespace, "bindings"]) = ((group, version), rest.as_slice()) {
            return Self::bindings(catalog, namespace);
        }
        // `namespaces/NAME/status` is a subresource, `namespaces/NAME/pods` is a collection.
        if let ["namespaces", namespace, plural, tail @ ..] = rest.as_slice()
            && let Some((id, version)) = catalog.find(group, version, plural)
        {
            if !id.resource().namespaced || namespace.is_empty() {
                return None;
            }
            return Self::item(id, version, namespace, tail);
        }
        let (plural, tail) = rest.split_first()?;
        let (id, version) = catalog.find(group, version, plural)?;
        if id.resource().namespaced && !tail.is_empty() {
            return None;
        }
        Self::item(id, version, "", tail)
    }

    fn item(id: ResourceId, version: &'static str, namespace: &str, tail: &[&str]) -> Option<Self> {
        let (name, sub) = match tail {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, sub] => (Some(*name), Some(subresource(id, sub)?)),
            _ => return None,
        };
        if name == Some("") {
            return None;
        }
        let namespace = namespace.to_owned();
        Some(Self { id, version, namespace, name: name.map(str::to_owned), sub })
    }
}

fn subresource(id: ResourceId, name: &str) -> Option<Sub> {
    let has = |subresource| id.resource().subresources.contains(&subresource);
    match name {
        "status" if id.resource().status != StatusRule::None => Some(Sub::Status),
        "binding" if has(Subresource::Binding) => Some(Sub::Binding),
        "eviction" if has(Subresource::Eviction) => Some(Sub::Eviction),
        "log" if has(Subresource::Log) => Some(Sub::Log),
        "scale" if has(Subresource::Scale) => Some(Sub::Scale),
        "resize" if has(Subresource::Resize) => Some(Sub::Resize),
        _ => None,
    }
}

/// The parts of a path between its slashes, decoded.
pub(super) fn segments(path: &str) -> Result<Vec<String>, ApiError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(ApiError::new(414, "BadRequest", "the path is too long"));
    }
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    path.split('/').map(|part| percent_decode(part, false)).collect()
}

/// Undoes percent-encoding; in queries a plus is a space.
pub(super) fn percent_decode(text: &str, plus_is_space: bool) -> Result<String, ApiError> {
    let bad = || ApiError::bad_request(format!("the URL is not well encoded: {text:?}"));
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(bad());
                };
                out.push(u8::try_from(high * 16 + low).map_err(|_| bad())?);
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(
        group: &str,
        version: &str,
        path: &str,
    ) -> Option<(String, String, Option<String>, Option<Sub>)> {
        let catalog = Catalog::new(crate::registry::Release::All);
        let target = Target::parse(&catalog, group, version, &segments(path).unwrap())?;
        let plural = target.id.resource().plural.to_owned();
        Some((plural, target.namespace, target.name, target.sub))
    }

    #[test]
    fn paths_name_collections_items_and_subresources() {
        let some = |plural: &str, namespace: &str, name: Option<&str>, sub| {
            Some((plural.to_owned(), namespace.to_owned(), name.map(str::to_owned), sub))
        };
        for (path, expected) in [
            ("pods", some("pods", "", None, None)),
            ("namespaces/a/pods", some("pods", "a", None, None)),
            ("namespaces/a/pods/x", some("pods", "a", Some("x"), None)),
            ("namespaces/a/pods/x/binding", some("pods", "a", Some("x"), Some(Sub::Binding))),
            ("namespaces/a/bindings", some("pods", "a", None, Some(Sub::Binding))),
            ("namespaces//bindings", None),
            ("namespaces/a/pods/x/status", some("pods", "a", Some("x"), Some(Sub::Status))),
            ("namespaces", some("namespaces", "", None, None)),
            ("namespaces/a", some("namespaces", "", Some("a"), None)),
            ("namespaces/a/status", some("namespaces", "", Some("a"), Some(Sub::Status))),
            ("nodes/n%2E1", some("nodes", "", Some("n.1"), None)),
            ("pods/x", None),
            ("namespaces/a/nodes", None),
            ("namespaces/a/events/x/status", None),
            ("nodes/n/binding", None),
            ("nodes/n/status/x", None),
            ("namespaces//pods", None),
            ("nothings", None),
        ] {
            assert_eq!(parse("", "v1", path), expected, "{path}");
        }
        assert!(parse("scheduling.k8s.io", "v1alpha2", "podgroups").is_some());
        assert!(parse("scheduling.k8s.io", "v1", "podgroups").is_none());
    }

    #[test]
    fn bad_encodings_are_refused() {
        for text in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(percent_decode(text, false).unwrap_err().code, 400, "{text}");
        }
        assert_eq!(percent_decode("a%20b+c", true).unwrap(), "a b c");
    }
}
