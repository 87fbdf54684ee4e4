//! The kind of pod that room is counted for.

use std::str::FromStr;
use tutti_model::scenario::Scenario;
use tutti_model::{InterPod, ModelError, Pod};

/// A kind of pod, in the words of scenarios: `cpu=4,gpu=8`, `gpu=1,tolerate:gpu,select:pool=a`.
#[derive(Debug, Clone)]
pub(super) struct PodShape {
    /// As it was given.
    pub(super) words: String,
    /// A pod of this kind.
    pub(super) pod: Pod,
}

impl FromStr for PodShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> =
            text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Err("want amounts such as cpu=4,gpu=8".to_owned());
        }
        let line = format!("pod shape {}", words.join(" "));
        // There is but one line, and nobody wrote it.
        let blame = |error: ModelError| {
            let word = error.field.strip_prefix("line 1").unwrap_or(&error.field).trim_start_matches('.');
            format!("{word}: {}", error.message)
        };
        let scenario = Scenario::parse(&line).map_err(blame)?;
        let [pod] = &scenario.pods[..] else { return Err("want one kind of pod".to_owned()) };
        let is_lone = pod.group.is_none() && pod.node.is_none() && pod.volume_claims.is_empty();
        if !is_lone || pod.inter_pod != InterPod::default() {
            let why = "room is counted for pods by themselves: want amounts, select:, tolerate: and port:";
            return Err(why.to_owned());
        }
        Ok(Self { words: words.join(","), pod: pod.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_in_the_words_of_scenarios() {
        let shape: PodShape = "cpu=4, gpu=8,tolerate:gpu".parse().unwrap();
        assert_eq!(shape.words, "cpu=4,gpu=8,tolerate:gpu");
        assert_eq!((shape.pod.requests.get("cpu"), shape.pod.requests.get("nvidia.com/gpu")), (4000, 8));
        assert_eq!(shape.pod.tolerations.len(), 1);
    }

    #[test]
    fn what_is_no_shape_is_refused_with_the_word() {
        for (wrong, why) in [
            ("", "want amounts"),
            ("cpu=many", "cpu: \"many\" is not a quantity"),
            ("eight", "eight"),
            ("cpu=1,affinity:zone:app=db", "by themselves"),
            ("cpu=1,group=g", "by themselves"),
            ("x2,cpu=1", "want one kind of pod"),
        ] {
            let error = wrong.parse::<PodShape>().unwrap_err();
            assert!(error.contains(why) && !error.contains("line"), "{wrong:?}: {error}");
        }
    }
}
