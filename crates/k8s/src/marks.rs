//! What Tutti remembers of a gang on the pod group itself, so that it survives the scheduler, and what a group's
//! owner may ask of Tutti there.
//!
//! | annotation | value | written by |
//! |---|---|---|
//! | `tutti.dev/fully-bound` | since when all of its minimum was bound | Tutti |
//! | `tutti.dev/unwind-at` | when an incomplete start is taken back | Tutti, before it deletes the first member |
//! | `tutti.dev/when-broken` | `Keep` or `Unwind`: what becomes of a started gang that stays incomplete | people |
//! | `tutti.dev/when-gated` | `Hold` or `Start`: what becomes of a group while a member of it is gated | people |

use crate::error::Problems;
use crate::topology::Asker;
use jiff::Timestamp;
use std::collections::BTreeMap;
use tutti_model::{ModelError, Text, Time, WhenGated};

/// What all annotations of ours begin with; others are not read.
pub(crate) const PREFIX: &str = "tutti.dev/";
/// Since when the gang was once complete.
pub const FULLY_BOUND: &str = "tutti.dev/fully-bound";
/// When an incomplete start is taken back.
pub const UNWIND_AT: &str = "tutti.dev/unwind-at";
/// What becomes of a started gang that stays incomplete.
pub const WHEN_BROKEN: &str = "tutti.dev/when-broken";
/// What becomes of a group while scheduling gates hold back a member.
pub const WHEN_GATED: &str = "tutti.dev/when-gated";

/// The annotations that Tutti itself writes.
pub(crate) const WRITTEN: [&str; 2] = [FULLY_BOUND, UNWIND_AT];

/// What becomes of a gang that was complete, lost members, and stays incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WhenBroken {
    /// It is kept and reported.
    #[default]
    Keep,
    /// It is taken back as a whole, to start again.
    Unwind,
}

/// What is written on a group in annotations of ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupMarks {
    /// All of its minimum was bound once.
    pub fully_bound: bool,
    /// When it is to be unwound.
    pub unwind_at: Option<Time>,
    /// What its owner asks for; `None` leaves it to the configuration.
    pub when_broken: Option<WhenBroken>,
}

impl GroupMarks {
    pub(crate) fn read(annotations: Option<&BTreeMap<String, String>>, problems: &mut Problems) -> Self {
        let of = |key: &str| annotations.and_then(|annotations| annotations.get(key));
        let words = [("Keep", WhenBroken::Keep), ("Unwind", WhenBroken::Unwind)];
        let when_broken = problems.or_default(choice(annotations, WHEN_BROKEN, words));
        Self {
            fully_bound: of(FULLY_BOUND).is_some(),
            // One that cannot be read is as good as none: a new one is written before anything is deleted.
            unwind_at: of(UNWIND_AT)
                .and_then(|text| text.parse::<Timestamp>().ok())
                .map(|time| Time(time.as_millisecond())),
            when_broken,
        }
    }
}

/// What a group asks for in the case of gated members.
pub(crate) fn read_when_gated(
    annotations: Option<&BTreeMap<String, String>>,
    asker: Asker,
) -> Result<WhenGated, ModelError> {
    let asked = choice(annotations, WHEN_GATED, [("Hold", WhenGated::Hold), ("Start", WhenGated::Start)])?;
    if asked.is_some() && asker == Asker::Composite {
        let field = format!("metadata.annotations[{WHEN_GATED}]");
        return Err(ModelError::new(field, "is for groups; a composite has no members of its own"));
    }
    Ok(asked.unwrap_or_default())
}

/// The value of an annotation that is one of two words, if it is there.
fn choice<T>(
    annotations: Option<&BTreeMap<String, String>>,
    name: &str,
    [first, second]: [(&str, T); 2],
) -> Result<Option<T>, ModelError> {
    match annotations.and_then(|annotations| annotations.get(name)) {
        None => Ok(None),
        Some(word) if word == first.0 => Ok(Some(first.1)),
        Some(word) if word == second.0 => Ok(Some(second.1)),
        Some(other) => {
            let shown: String = other.chars().take(40).collect();
            let wrong = format!("want {} or {}, found {shown:?}", first.0, second.0);
            Err(ModelError::new(format!("metadata.annotations[{name}]"), wrong))
        }
    }
}

/// A time as annotations write it.
pub fn mark_time(time: Time) -> Text {
    crate::request::timestamp(time).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PodGroupView;
    use serde_json::{Value, json};

    fn marks(annotations: &Value) -> (GroupMarks, Vec<String>) {
        let view: PodGroupView = serde_json::from_value(json!({
            "metadata": {"name": "g", "namespace": "a", "uid": "u", "annotations": annotations},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        }))
        .unwrap();
        let reading = view.read("PodGroupScheduled");
        (reading.marks, reading.errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let at = Time(1_767_225_600_000);
        let (read, errors) = marks(&json!({
            FULLY_BOUND: mark_time(Time(0)).as_ref(), UNWIND_AT: mark_time(at).as_ref(), WHEN_BROKEN: "Unwind",
            "somebody.else/s": {"not": "even text"},
        }));
        let when_broken = Some(WhenBroken::Unwind);
        assert_eq!(read, GroupMarks { fully_bound: true, unwind_at: Some(at), when_broken });
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(marks(&Value::Null).0, GroupMarks::default());
    }

    #[test]
    fn a_wrong_wish_is_reported_and_a_wrong_time_is_none() {
        let (read, errors) = marks(&json!({WHEN_BROKEN: "Burn", UNWIND_AT: "soon"}));
        assert_eq!(read, GroupMarks::default());
        let wrong =
            "pod group a/g: metadata.annotations[tutti.dev/when-broken]: want Keep or Unwind, found \"Burn\"";
        assert_eq!(errors, [wrong]);
        let (_, errors) = marks(&json!({WHEN_GATED: "Go"}));
        let wrong =
            "pod group a/g: metadata.annotations[tutti.dev/when-gated]: want Hold or Start, found \"Go\"";
        assert_eq!(errors, [wrong]);
        let (_, errors) = marks(&json!({UNWIND_AT: 5}));
        assert!(errors[0].contains("metadata.annotations[tutti.dev/unwind-at]: want text"), "{errors:?}");
    }
}
