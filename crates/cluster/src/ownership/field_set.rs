//! A set of paths into an object, in the shape of `fieldsV1`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Deepest nesting of a set that comes from outside. Objects are not nested deeper either.
const DEPTH_MAX: usize = 128;

/// One step of a path, spelled as on the wire: `f:NAME` for a field, `k:{…}` for the entry of a list with
/// these keys, `v:VALUE` for a value of a set, `i:N` for a position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step(Box<str>);

impl Step {
    /// A field of an object or a key of a map.
    pub fn field(name: &str) -> Self {
        let mut text = String::with_capacity(name.len() + 2);
        text.push_str("f:");
        text.push_str(name);
        Self(text.into())
    }

    /// An entry of a list, by the values of its keys.
    pub fn keys(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", Value::Object(keys)).into())
    }

    /// A value of a list that is a set.
    pub fn value(value: &Value) -> Self {
        Self(format!("v:{value}").into())
    }

    /// Reads a step as it is on the wire; keys are brought into their one order.
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self(text.into())),
            "k" => match serde_json::from_str(rest).ok()? {
                Value::Object(keys) => Some(Self::keys(keys)),
                _ => None,
            },
            "v" => Some(Self::value(&serde_json::from_str(rest).ok()?)),
            "i" => rest.parse::<i64>().ok().map(|_| Self(text.into())),
            _ => None,
        }
    }

    /// The name, if this is a field.
    pub fn name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// The step in words, alone.
    pub(super) fn to_path(&self) -> String {
        let mut out = String::new();
        self.write_path(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        if self.0.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            out.extend(["\"", &self.0, "\""]);
        } else {
            out.push_str(&Value::from(&*self.0).to_string());
        }
    }

    /// The step in words: `.spec`, `[name="c"]`, `[="x"]`, `[3]`.
    fn write_path(&self, out: &mut String) {
        match self.0.split_at_checked(2) {
            Some(("f:", name)) => out.extend([".", name]),
            Some(("k:", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                out.extend(["[", &keys.join(","), "]"]);
            }
            Some(("v:", value)) => out.extend(["[=", value, "]"]),
            Some((_, index)) => out.extend(["[", index, "]"]),
            None => {}
        }
    }
}

/// A path of a set and what is below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// True if the path itself is in the set.
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    pub(super) fn is_empty(&self) -> bool {
        // No set holds empty nodes, so whatever is below counts.
        !self.member && self.below.0.is_empty()
    }
}

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet(BTreeMap<Step, Node>);

impl FieldSet {
    /// The set of these paths of plain fields.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let Some((last, parents)) = path.split_last() else { continue };
            let mut at = &mut set;
            for name in parents {
                at = &mut at.0.entry(Step::field(name)).or_default().below;
            }
            at.0.entry(Step::field(last)).or_default().member = true;
        }
        set
    }

    /// True if no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, step: &Step) -> Option<&Node> {
        self.0.get(step)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Step, &Node)> {
        self.0.iter()
    }

    /// Adds a node unless it is empty.
    pub(super) fn put(&mut self, step: Step, node: Node) {
        if node.is_empty() {
            return;
        }
        match self.0.entry(step) {
            Entry::Vacant(place) => {
                place.insert(node);
            }
            Entry::Occupied(mut place) => {
                place.get_mut().member |= node.member;
                let below = std::mem::take(&mut place.get_mut().below);
                place.get_mut().below = below.union(node.below);
            }
        }
    }

    /// All paths of either set.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        if self.0.is_empty() {
            return other;
        }
        for (step, node) in other.0 {
            self.put(step, node);
        }
        self
    }

    /// The paths of both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::default();
        for (step, node) in &self.0 {
            if let Some(theirs) = other.0.get(step) {
                let below = node.below.intersection(&theirs.below);
                out.put(step.clone(), Node { member: node.member && theirs.member, below });
            }
        }
        out
    }

    /// The paths of this set that are not in the other. A parent stays without its children and the other
    /// way round.
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, &|node, theirs| Node {
            member: node.member && !theirs.member,
            below: node.below.difference(&theirs.below),
        })
    }

    /// The paths of this set that are neither in the other nor below one of its paths.
    pub fn outside(&self, other: &Self) -> Self {
        self.without(other, &|node, theirs| {
            if theirs.member {
                Node::default()
            } else {
                Node { member: node.member, below: node.below.outside(&theirs.below) }
            }
        })
    }

    fn without(&self, other: &Self, rest: &dyn Fn(&Node, &Node) -> Node) -> Self {
        let mut out = Self::default();
        for (step, node) in &self.0 {
            let kept = other.0.get(step).map_or_else(|| node.clone(), |theirs| rest(node, theirs));
            out.put(step.clone(), kept);
        }
        out
    }

    /// All paths in words, parents first: `.spec.containers[name="c"].image`.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.write_paths(&mut String::new(), &mut out);
        out
    }

    fn write_paths(&self, prefix: &mut String, out: &mut Vec<String>) {
        let length = prefix.len();
        for (step, _) in self.0.iter().filter(|(_, node)| node.member) {
            step.write_path(prefix);
            out.push(prefix.clone());
            prefix.truncate(length);
        }
        for (step, node) in self.0.iter().filter(|(_, node)| !node.below.is_empty()) {
            step.write_path(prefix);
            node.below.write_paths(prefix, out);
            prefix.truncate(length);
        }
    }

    /// Writes the set as `fieldsV1`.
    pub fn write_json(&self, out: &mut String) {
        out.push('{');
        self.write_entries(out);
        out.push('}');
    }

    fn write_entries(&self, out: &mut String) {
        for (index, (step, node)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            step.write_json(out);
            out.push_str(":{");
            // A path whose children are in the set says so of itself; a path alone is understood.
            if node.member && !node.below.is_empty() {
                out.push_str("\".\":{},");
            }
            node.below.write_entries(out);
            out.push('}');
        }
    }

    /// Reads `fieldsV1`. `None` if it is none.
    pub fn from_json(value: &Value) -> Option<Self> {
        Self::parse(value.as_object()?, DEPTH_MAX)
    }

    fn parse(map: &Map<String, Value>, depth: usize) -> Option<Self> {
        let mut set = Self::default();
        for (key, value) in map.iter().filter(|(key, _)| *key != ".") {
            let children = value.as_object()?;
            let below = Self::parse(children, depth.checked_sub(1)?)?;
            let member = children.contains_key(".") || below.is_empty();
            set.put(Step::parse(key)?, Node { member, below });
        }
        Some(set)
    }
}
