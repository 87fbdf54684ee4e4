//! Makes a question smaller for as long as the answers still differ, so that people see what it is about.

use super::generate::Question;
use serde_json::Value;

/// Passes over the question; each takes away whatever it can. Two are nearly always enough.
const PASSES_MAX: usize = 6;

/// The smallest question found for which `differs` is still true.
pub(super) fn shrink(question: &Question, differs: &mut impl FnMut(&Question) -> bool) -> Question {
    let mut smallest = question.clone();
    for _ in 0..PASSES_MAX {
        let before = size(&smallest);
        for candidate in (0..smallest.pods.len()).rev() {
            attempt(&mut smallest, differs, |question| {
                question.pods.remove(candidate);
            });
        }
        for candidate in (0..smallest.nodes.len()).rev() {
            attempt(&mut smallest, differs, |question| {
                let name = question.nodes.remove(candidate)["metadata"]["name"].clone();
                question.pods.retain(|pod| pod["spec"]["nodeName"] != name);
            });
        }
        for index in 0..smallest.nodes.len() {
            let paths = paths_of(&smallest.nodes[index]);
            for path in paths {
                attempt(&mut smallest, differs, |question| remove(&mut question.nodes[index], &path));
            }
        }
        for index in 0..smallest.pods.len() {
            let paths = paths_of(&smallest.pods[index]);
            for path in paths {
                attempt(&mut smallest, differs, |question| remove(&mut question.pods[index], &path));
            }
        }
        for path in paths_of(&smallest.pod) {
            attempt(&mut smallest, differs, |question| remove(&mut question.pod, &path));
        }
        if size(&smallest) == before {
            break;
        }
    }
    smallest
}

fn attempt(
    smallest: &mut Question,
    differs: &mut impl FnMut(&Question) -> bool,
    change: impl FnOnce(&mut Question),
) {
    let mut candidate = smallest.clone();
    change(&mut candidate);
    if size(&candidate) < size(smallest) && differs(&candidate) {
        *smallest = candidate;
    }
}

fn size(question: &Question) -> usize {
    serde_json::to_string(question).map_or(usize::MAX, |text| text.len())
}

/// Pointers to everything inside of an object that could be left out; what is deep comes last.
fn paths_of(object: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    let mut open = vec![(String::new(), object)];
    while let Some((path, value)) = open.pop() {
        let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = format!("{path}/{}", escaped(key));
                    paths.push(path.clone());
                    open.push((path, value));
                }
            }
            Value::Array(items) => {
                // From the end, so that a removal leaves the places of others alone.
                for (index, value) in items.iter().enumerate() {
                    let path = format!("{path}/{index}");
                    paths.push(path.clone());
                    open.push((path, value));
                }
            }
            _ => {}
        }
    }
    paths.sort_by_key(|path| path.matches('/').count());
    paths
}

fn remove(object: &mut Value, path: &str) {
    let Some((parent, key)) = path.rsplit_once('/') else {
        return;
    };
    let key = key.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&key);
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = key.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}
