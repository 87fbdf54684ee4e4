//! Templates in the tree of a Workload.

use serde_json::Value;

/// Levels of a tree, the leaves included. The API server takes no more.
const LEVELS_MAX: usize = 4;

/// A template of pods, and the composites around it from the outermost to the innermost.
#[derive(Debug, PartialEq)]
pub(super) struct Found<'a> {
    pub(super) leaf: &'a Value,
    pub(super) composites: Vec<&'a Value>,
}

/// Finds a template by its name. The error says what is there instead.
pub(super) fn find<'a>(spec: &'a Value, name: &str) -> Result<Found<'a>, String> {
    let mut around = Vec::new();
    match search(spec, name, &mut around) {
        Some(Place::Leaf(leaf)) => Ok(Found { leaf, composites: around }),
        Some(Place::Composite) => {
            Err(format!("template {name} is one of groups; pods belong to a template of pods"))
        }
        None => Err(format!("there is no template {name}")),
    }
}

/// The name of a template.
pub(super) fn name_of(template: &Value) -> &str {
    template.get("name").and_then(Value::as_str).unwrap_or_default()
}

enum Place<'a> {
    Leaf(&'a Value),
    Composite,
}

fn search<'a>(parent: &'a Value, name: &str, around: &mut Vec<&'a Value>) -> Option<Place<'a>> {
    if let Some(leaf) = list(parent, "podGroupTemplates").find(|leaf| name_of(leaf) == name) {
        return Some(Place::Leaf(leaf));
    }
    for composite in list(parent, "compositePodGroupTemplates") {
        if name_of(composite) == name {
            return Some(Place::Composite);
        }
        if around.len() + 1 < LEVELS_MAX {
            around.push(composite);
            if let Some(found) = search(composite, name, around) {
                return Some(found);
            }
            around.pop();
        }
    }
    None
}

fn list<'a>(parent: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    parent.get(field).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_leaf_is_found_with_what_is_around_it() {
        let spec = json!({"compositePodGroupTemplates": [
            {"name": "other", "podGroupTemplates": [{"name": "x"}]},
            {"name": "top", "podGroupTemplates": [{"name": "driver"}], "compositePodGroupTemplates": [
                {"name": "middle", "podGroupTemplates": [{"name": "worker"}]}]}]});
        let names = |name: &str| {
            find(&spec, name).map(|found| found.composites.iter().map(|one| name_of(one)).collect::<Vec<_>>())
        };
        assert_eq!(names("worker"), Ok(vec!["top", "middle"]));
        assert_eq!(names("driver"), Ok(vec!["top"]));
        assert_eq!(names("x"), Ok(vec!["other"]));
        assert!(names("middle").unwrap_err().contains("is one of groups"));
        assert_eq!(names("nobody"), Err("there is no template nobody".to_owned()));
        let flat = json!({"podGroupTemplates": [{"name": "a"}]});
        assert_eq!(find(&flat, "a").unwrap().composites, Vec::<&Value>::new());
        assert!(find(&json!("nonsense"), "a").is_err());
    }

    #[test]
    fn a_tree_without_end_is_given_up() {
        let mut deep = json!({"podGroupTemplates": [{"name": "leaf"}]});
        for level in 0..50 {
            let inner = json!({"name": level.to_string(), "compositePodGroupTemplates": deep["compositePodGroupTemplates"],
                               "podGroupTemplates": deep["podGroupTemplates"]});
            deep = json!({"compositePodGroupTemplates": [inner]});
        }
        assert!(find(&deep, "leaf").is_err());
    }
}
