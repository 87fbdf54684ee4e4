//! Conditions in the status of objects.

use crate::lenient::{Lenient, Shape, Shaped};
use crate::selector::text;
use tutti_model::{ModelError, Text, Time};

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl ConditionStatus {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Which condition.
    pub kind: Text,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Text,
    /// Why, in a sentence.
    pub message: Text,
    /// Generation of the object that it speaks of; 0 if it does not say.
    pub observed_generation: i64,
    /// When the status last changed.
    pub changed: Option<Time>,
}

impl Condition {
    /// True if it holds.
    pub fn holds(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// True if writing `other` over this would tell nobody anything new. Times do not count.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.observed_generation == other.observed_generation
    }
}

/// One of `status.conditions`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ConditionView {
    r#type: Lenient<String>,
    status: Lenient<String>,
    reason: Lenient<String>,
    message: Lenient<String>,
    observed_generation: Lenient<i64>,
    last_transition_time: Lenient<String>,
}

impl Shaped for ConditionView {
    const SHAPE: Shape = Shape::Object;
}

/// The condition of one type. An unreadable one counts as not being there: it will be written anew.
pub(crate) fn find(conditions: &Lenient<Vec<Lenient<ConditionView>>>, kind: &str) -> Option<Condition> {
    let conditions = conditions.get().ok().flatten()?;
    conditions
        .iter()
        .filter_map(|condition| condition.get().ok().flatten())
        .find(|condition| text(&condition.r#type, "").is_ok_and(|found| found == kind))
        .and_then(|condition| read(condition).ok())
}

fn read(view: &ConditionView) -> Result<Condition, ModelError> {
    let status = match text(&view.status, "status")? {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    Ok(Condition {
        kind: text(&view.r#type, "type")?.into(),
        status,
        reason: text(&view.reason, "reason")?.into(),
        message: text(&view.message, "message")?.into(),
        observed_generation: view.observed_generation.get()?.copied().unwrap_or(0),
        changed: text(&view.last_transition_time, "lastTransitionTime")?
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|time| Time(time.as_millisecond())),
    })
}
