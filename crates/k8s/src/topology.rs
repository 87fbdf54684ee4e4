//! What annotations ask of the topology, in our words and in those of others.
//!
//! Kubernetes has one required level a group. More is asked for by annotations of the group or composite; what of others
//! means the same is understood, too. Ours are heard first: whoever lists levels in our words is not asked in others'.
//!
//! | ours | Kueue | KAI |
//! |---|---|---|
//! | [`LEVELS`] | `podset-required-topology`, `podset-preferred-topology` | `topology-required-placement`, `topology-preferred-placement` |
//! | [`SLICE_SIZE`], [`SLICE_TOPOLOGY`] | `podset-slice-size`, `podset-slice-required-topology` | `segment-size`, `segment-topology-required-placement` |
//!
//! Volcano numbers its tiers from the narrowest up. Which labels they are, [`NETWORK_TIERS`] tells.

use crate::error::{ObjectKind, Problems};
use crate::marks::PREFIX;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use tutti_model::{Labels, Level, ModelError, Slices, Spread, Strength, Text, Topology};

/// Label keys from wide to narrow, each `required` or `preferred`: `block=required,rack=preferred`.
pub const LEVELS: &str = "tutti.dev/topology-levels";
/// How many members make a slice.
pub const SLICE_SIZE: &str = "tutti.dev/slice-size";
/// The label key whose value the members of a slice share.
pub const SLICE_TOPOLOGY: &str = "tutti.dev/slice-topology";
/// The label key over whose values the children of a composite are spread.
pub const SPREAD_TOPOLOGY: &str = "tutti.dev/spread-topology";
/// How many children may share one value; 1 unless given.
pub const SPREAD_MOST: &str = "tutti.dev/spread-most";
/// Label keys of Volcano's tiers, tier 1 (the narrowest) first.
pub const NETWORK_TIERS: &str = "tutti.dev/network-tiers";
/// On a pod: the label of the pod that holds its rank.
pub const RANK_LABEL: &str = "tutti.dev/rank-label";
/// On a pod, as annotation or label: `leader` if it leads the others.
pub const ROLE: &str = "tutti.dev/role";

const VOLCANO_MODE: &str = "volcano.sh/network-topology-mode";
const VOLCANO_TIER: &str = "volcano.sh/network-topology-highest-tier";

/// Labels that hold ranks without anybody saying so, the first one that a pod has.
const RANK_LABELS: [&str; 2] = ["batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index"];

/// A name of an annotation for everything that others can ask for, too.
struct Dialect {
    required: &'static str,
    preferred: &'static str,
    slice_size: &'static str,
    slice_topology: &'static str,
}

const KUEUE: Dialect = Dialect {
    required: "kueue.x-k8s.io/podset-required-topology",
    preferred: "kueue.x-k8s.io/podset-preferred-topology",
    slice_size: "kueue.x-k8s.io/podset-slice-size",
    slice_topology: "kueue.x-k8s.io/podset-slice-required-topology",
};

const KAI: Dialect = Dialect {
    required: "kai.scheduler/topology-required-placement",
    preferred: "kai.scheduler/topology-preferred-placement",
    slice_size: "kai.scheduler/segment-size",
    slice_topology: "kai.scheduler/segment-topology-required-placement",
};

/// Annotations of others that are read.
pub(crate) const SYNONYMS: [&str; 10] = [
    KUEUE.required,
    KUEUE.preferred,
    KUEUE.slice_size,
    KUEUE.slice_topology,
    KAI.required,
    KAI.preferred,
    KAI.slice_size,
    KAI.slice_topology,
    VOLCANO_MODE,
    VOLCANO_TIER,
];

/// What an annotation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aspect {
    Levels,
    Slices,
    Spread,
}

/// What an annotation asks of the topology, in whatever words.
pub(crate) fn aspect(name: &str) -> Option<Aspect> {
    match name {
        LEVELS | NETWORK_TIERS | VOLCANO_MODE | VOLCANO_TIER => Some(Aspect::Levels),
        SLICE_SIZE | SLICE_TOPOLOGY => Some(Aspect::Slices),
        SPREAD_TOPOLOGY | SPREAD_MOST => Some(Aspect::Spread),
        _ => [KUEUE, KAI].iter().find_map(|dialect| match name {
            name if [dialect.required, dialect.preferred].contains(&name) => Some(Aspect::Levels),
            name if [dialect.slice_size, dialect.slice_topology].contains(&name) => Some(Aspect::Slices),
            _ => None,
        }),
    }
}

/// True if an annotation asks something of the topology: whoever makes a group of another object hands these on, see
/// [`crate::inheritance`].
pub fn is_topology_annotation(name: &str) -> bool {
    aspect(name).is_some()
}

/// Whose annotations are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A group, whose members are pods.
    Group,
    /// A composite, whose members are groups.
    Composite,
}

impl Asker {
    pub(crate) fn kind(self) -> ObjectKind {
        match self {
            Self::Group => ObjectKind::PodGroup,
            Self::Composite => ObjectKind::Composite,
        }
    }
}

/// Adds to the levels that an object asks for natively what its annotations ask for.
pub(crate) fn read(
    native: Topology,
    annotations: Option<&BTreeMap<String, String>>,
    asker: Asker,
    problems: &mut Problems,
) -> Topology {
    let Some(annotations) = annotations.map(Annotations) else { return native };
    let mut topology = Topology {
        levels: problems.or_default(annotations.levels()),
        slices: problems.or_default(annotations.slices()),
        spread: problems.or_default(annotations.spread()),
    };
    if asker == Asker::Composite && topology.slices.is_some() {
        problems.push(wrong(SLICE_SIZE, "is for groups; a composite has no slices"));
    }
    if asker == Asker::Group && topology.spread.is_some() {
        problems.push(wrong(SPREAD_TOPOLOGY, "is for composites; a group is not spread"));
    }
    for level in native.levels.into_iter().rev() {
        match topology.levels.iter_mut().find(|listed| listed.key == level.key) {
            // What is required natively is not weakened by a list.
            Some(listed) => listed.strength = level.strength,
            None => topology.levels.insert(0, level),
        }
    }
    problems.or_default(
        topology
            .check()
            .map_err(|error| ModelError::new(field(LEVELS), format!("{}: {}", error.field, error.message))),
    );
    topology
}

/// The rank of a member among the members of its group.
pub(crate) fn read_rank(
    labels: &Labels,
    annotations: Option<&BTreeMap<String, String>>,
) -> Result<Option<u32>, ModelError> {
    let named = annotations.and_then(|annotations| annotations.get(RANK_LABEL));
    let found = match named {
        Some(label) => match labels.get(label) {
            Some(rank) => Some((label.as_str(), rank)),
            None => {
                let message = format!("the pod has no label {}", shown(label));
                return Err(ModelError::new(field(RANK_LABEL), message));
            }
        },
        None => RANK_LABELS.iter().find_map(|label| Some((*label, labels.get(label)?))),
    };
    let Some((label, rank)) = found else { return Ok(None) };
    let wrong =
        || ModelError::new(format!("metadata.labels[{label}]"), format!("{} is no rank", shown(rank)));
    rank.parse().map(Some).map_err(|_| wrong())
}

/// Whether a member leads the others.
pub(crate) fn read_leader(
    labels: &Labels,
    annotations: Option<&BTreeMap<String, String>>,
) -> Result<bool, ModelError> {
    let annotation = annotations.and_then(|annotations| annotations.get(ROLE)).map(String::as_str);
    let (place, role) = match (annotation, labels.get(ROLE)) {
        (Some(role), _) => ("annotations", role),
        (None, Some(role)) => ("labels", role),
        (None, None) => return Ok(false),
    };
    match role {
        "leader" => Ok(true),
        "worker" => Ok(false),
        other => {
            let message = format!("want leader or worker, found {}", shown(other));
            Err(ModelError::new(format!("metadata.{place}[{ROLE}]"), message))
        }
    }
}

struct Annotations<'a>(&'a BTreeMap<String, String>);

impl Annotations<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim())
    }

    fn levels(&self) -> Result<Vec<Level>, ModelError> {
        if let Some(list) = self.get(LEVELS) {
            return list.split(',').map(read_level).collect();
        }
        for dialect in [KUEUE, KAI] {
            let mut levels = Vec::new();
            for (name, strength) in
                [(dialect.required, Strength::Required), (dialect.preferred, Strength::Preferred)]
            {
                if let Some(key) = self.key(name)? {
                    levels.push(Level { key, strength });
                }
            }
            if !levels.is_empty() {
                return Ok(levels);
            }
        }
        Ok(self.volcano()?.into_iter().collect())
    }

    /// Volcano's highest tier: members must (`hard`) or should (`soft`) be within one domain of it.
    fn volcano(&self) -> Result<Option<Level>, ModelError> {
        let Some(mode) = self.get(VOLCANO_MODE) else { return Ok(None) };
        let strength = match mode {
            "hard" => Strength::Required,
            "soft" => Strength::Preferred,
            other => {
                return Err(wrong(VOLCANO_MODE, format!("want hard or soft, found {}", shown(other))));
            }
        };
        // Without a number only the narrowest tier is allowed.
        let tier = self.count(VOLCANO_TIER)?.unwrap_or(NonZeroU32::MIN).get() as usize;
        let keys = self.get(NETWORK_TIERS).unwrap_or_default();
        let Some(key) = keys.split(',').map(str::trim).nth(tier - 1).filter(|key| !key.is_empty()) else {
            let message =
                format!("no label is known for tier {tier}; {NETWORK_TIERS} lists those of tiers 1, 2, …");
            return Err(wrong(VOLCANO_TIER, message));
        };
        let key = label_key(key).map_err(|message| wrong(NETWORK_TIERS, message))?;
        Ok(Some(Level { key, strength }))
    }

    fn slices(&self) -> Result<Option<Slices>, ModelError> {
        for (size_name, key_name) in [
            (SLICE_SIZE, SLICE_TOPOLOGY),
            (KUEUE.slice_size, KUEUE.slice_topology),
            (KAI.slice_size, KAI.slice_topology),
        ] {
            match (self.count(size_name)?, self.key(key_name)?) {
                (Some(size), Some(key)) => return Ok(Some(Slices { size, key })),
                (None, None) => {}
                (Some(_), None) => return Err(wrong(size_name, format!("wants {key_name}, too"))),
                (None, Some(_)) => return Err(wrong(key_name, format!("wants {size_name}, too"))),
            }
        }
        Ok(None)
    }

    fn spread(&self) -> Result<Option<Spread>, ModelError> {
        match (self.key(SPREAD_TOPOLOGY)?, self.count(SPREAD_MOST)?) {
            (Some(key), most) => Ok(Some(Spread { key, most: most.unwrap_or(NonZeroU32::MIN) })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(wrong(SPREAD_MOST, format!("wants {SPREAD_TOPOLOGY}, too"))),
        }
    }

    fn count(&self, name: &str) -> Result<Option<NonZeroU32>, ModelError> {
        let read = |text: &str| {
            text.parse().map_err(|_| wrong(name, format!("want a count, found {}", shown(text))))
        };
        self.get(name).map(read).transpose()
    }

    fn key(&self, name: &str) -> Result<Option<Text>, ModelError> {
        self.get(name).map(|key| label_key(key).map_err(|message| wrong(name, message))).transpose()
    }
}

fn read_level(item: &str) -> Result<Level, ModelError> {
    let (key, strength) = match item.trim().rsplit_once('=') {
        Some((key, "required")) => (key, Strength::Required),
        Some((key, "preferred")) => (key, Strength::Preferred),
        _ => {
            return Err(wrong(
                LEVELS,
                format!("want KEY=required or KEY=preferred, found {}", shown(item.trim())),
            ));
        }
    };
    Ok(Level { key: label_key(key).map_err(|message| wrong(LEVELS, message))?, strength })
}

/// The longest key that a label can have: a prefix, a slash and a name.
const LABEL_KEY_CHARS_MAX: usize = 253 + 1 + 63;

fn label_key(key: &str) -> Result<Text, String> {
    let part = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        part.chars().all(allowed) && ends(part.chars().next()) && ends(part.chars().next_back())
    };
    let is_key = key.len() <= LABEL_KEY_CHARS_MAX && key.split('/').count() <= 2 && key.split('/').all(part);
    if is_key { Ok(Text::from(key)) } else { Err(format!("{} is no label key", shown(key))) }
}

fn wrong(annotation: &str, message: impl Into<String>) -> ModelError {
    ModelError::new(field(annotation), message.into())
}

fn field(annotation: &str) -> String {
    format!("metadata.annotations[{annotation}]")
}

/// Characters of a bad value that are repeated.
const SHOWN_CHARS_MAX: usize = 40;

fn shown(value: &str) -> String {
    format!("{:?}", value.chars().take(SHOWN_CHARS_MAX).collect::<String>())
}

/// True if an annotation says something about groups or topology.
pub(crate) fn is_read_annotation(name: &str) -> bool {
    name.starts_with(PREFIX) || SYNONYMS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PodGroupView, PodView};
    use serde_json::{Value, json};

    fn group(annotations: &Value, native: &Value) -> Result<Topology, String> {
        let view: PodGroupView = serde_json::from_value(json!({
            "metadata": {"name": "g", "namespace": "a", "uid": "u", "annotations": annotations},
            "spec": {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": native}},
        }))
        .unwrap();
        let reading = view.read("PodGroupScheduled");
        match reading.errors.first() {
            Some(error) => {
                assert_eq!(reading.group, None, "what is not understood does not start");
                Err(error.to_string())
            }
            None => Ok(reading.group.unwrap().topology),
        }
    }

    fn level(key: &str, strength: Strength) -> Level {
        Level { key: key.into(), strength }
    }

    fn slices(size: u32, key: &str) -> Option<Slices> {
        Some(Slices { size: NonZeroU32::new(size).unwrap(), key: key.into() })
    }

    #[test]
    fn levels_and_slices_are_read_in_the_words_of_all() {
        let (required, preferred) = (Strength::Required, Strength::Preferred);
        let both = vec![level("example.com/block", required), level("rack", preferred)];
        for (annotations, levels, slices) in [
            (json!({LEVELS: "example.com/block=required, rack=preferred"}), both.clone(), None),
            (json!({SLICE_SIZE: "8", SLICE_TOPOLOGY: "island"}), vec![], slices(8, "island")),
            (
                json!({KUEUE.required: "example.com/block", KUEUE.preferred: "rack",
                       KUEUE.slice_size: "4", KUEUE.slice_topology: "host"}),
                both.clone(),
                slices(4, "host"),
            ),
            (
                json!({KAI.required: "example.com/block", KAI.preferred: "rack", KAI.slice_size: "2",
                       KAI.slice_topology: "host"}),
                both,
                slices(2, "host"),
            ),
            (
                json!({VOLCANO_MODE: "hard", VOLCANO_TIER: "2", NETWORK_TIERS: "rack, block"}),
                vec![level("block", required)],
                None,
            ),
            (json!({VOLCANO_MODE: "soft", NETWORK_TIERS: "rack"}), vec![level("rack", preferred)], None),
            (json!({LEVELS: "rack=required", KUEUE.required: "zone"}), vec![level("rack", required)], None),
        ] {
            let topology = group(&annotations, &json!([]));
            assert_eq!(topology, Ok(Topology { levels, slices, spread: None }), "{annotations}");
        }
    }

    #[test]
    fn the_native_key_is_the_widest_level_and_stays_required() {
        let native = json!([{"key": "zone"}]);
        let topology = group(&json!({LEVELS: "rack=preferred"}), &native).unwrap();
        let levels = vec![level("zone", Strength::Required), level("rack", Strength::Preferred)];
        assert_eq!(topology.levels, levels);
        let topology = group(&json!({LEVELS: "block=preferred,zone=preferred"}), &native).unwrap();
        let levels = vec![level("block", Strength::Preferred), level("zone", Strength::Required)];
        assert_eq!(topology.levels, levels);
    }

    #[test]
    fn what_cannot_be_read_names_the_object_and_the_annotation() {
        for (annotations, annotation, message) in [
            (json!({LEVELS: "rack"}), LEVELS, "want KEY=required or KEY=preferred, found \"rack\""),
            (json!({LEVELS: ""}), LEVELS, "want KEY=required or KEY=preferred, found \"\""),
            (json!({LEVELS: "a b=required"}), LEVELS, "\"a b\" is no label key"),
            (json!({LEVELS: "r=required,r=preferred"}), LEVELS, "levels[1]: r is listed twice"),
            (json!({SLICE_SIZE: "0", SLICE_TOPOLOGY: "x"}), SLICE_SIZE, "want a count, found \"0\""),
            (json!({SLICE_SIZE: "8"}), SLICE_SIZE, "wants tutti.dev/slice-topology, too"),
            (
                json!({KUEUE.slice_topology: "x"}),
                KUEUE.slice_topology,
                "wants kueue.x-k8s.io/podset-slice-size, too",
            ),
            (json!({SPREAD_TOPOLOGY: "zone"}), SPREAD_TOPOLOGY, "is for composites; a group is not spread"),
            (json!({VOLCANO_MODE: "firm"}), VOLCANO_MODE, "want hard or soft, found \"firm\""),
            (
                json!({VOLCANO_MODE: "hard", VOLCANO_TIER: "3", NETWORK_TIERS: "rack"}),
                VOLCANO_TIER,
                "no label is known for tier 3; tutti.dev/network-tiers lists those of tiers 1, 2, …",
            ),
            (json!({KAI.required: 7}), KAI.required, "want text, found 7"),
        ] {
            let error = group(&annotations, &json!([])).unwrap_err();
            assert_eq!(error, format!("pod group a/g: metadata.annotations[{annotation}]: {message}"));
        }
    }

    fn member(labels: &Value, annotations: &Value) -> Result<(Option<u32>, bool), String> {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u", "labels": labels, "annotations": annotations},
            "spec": {"schedulingGroup": {"podGroupName": "g"}},
        }))
        .unwrap();
        let pod = view.read().complete().map_err(|error| error.to_string())?;
        Ok((pod.rank, pod.leader))
    }

    #[test]
    fn members_have_the_rank_and_the_role_that_their_labels_tell() {
        let [job, set] = RANK_LABELS;
        for (labels, annotations, rank, leads) in [
            (json!({job: "3", set: "9"}), json!({}), Some(3), false),
            (json!({set: "9"}), json!({}), Some(9), false),
            (json!({"x/index": "5", job: "3"}), json!({RANK_LABEL: "x/index"}), Some(5), false),
            (json!({ROLE: "leader"}), json!({}), None, true),
            (json!({ROLE: "worker"}), json!({ROLE: "leader"}), None, true),
            (json!({}), json!({}), None, false),
        ] {
            assert_eq!(member(&labels, &annotations), Ok((rank, leads)), "{labels} {annotations}");
        }
        for (labels, annotations, error) in [
            (json!({job: "first"}), json!({}), format!("metadata.labels[{job}]: \"first\" is no rank")),
            (
                json!({job: "1"}),
                json!({RANK_LABEL: "x"}),
                format!("metadata.annotations[{RANK_LABEL}]: the pod has no label \"x\""),
            ),
            (
                json!({ROLE: "boss"}),
                json!({}),
                format!("metadata.labels[{ROLE}]: want leader or worker, found \"boss\""),
            ),
        ] {
            assert_eq!(member(&labels, &annotations), Err(format!("pod a/p: {error}")));
        }
    }

    #[test]
    fn a_pod_of_a_job_has_its_rank_before_it_is_known_which_group_it_is_in() {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {
                "name": "p", "namespace": "a", "uid": "u", "labels": {RANK_LABELS[0]: "3"},
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j1", "controller": true},
                ],
            },
            "spec": {},
        }))
        .unwrap();
        assert_eq!(view.read().pod.rank, Some(3));
    }

    #[test]
    fn pods_without_a_group_are_not_asked_for_a_rank() {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u", "labels": {RANK_LABELS[0]: "x", ROLE: "boss"}},
            "spec": {},
        }))
        .unwrap();
        assert!(view.read().complete().is_ok());
    }
}
