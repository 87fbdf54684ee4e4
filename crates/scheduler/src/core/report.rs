//! The words of conditions and events. Nothing here changes anything.

use super::groups::tree::CHILDREN_MAX;
use std::collections::BTreeSet;
use tutti_engine::{Refusal, Seat, Standing, UnitKey};
use tutti_k8s::request::Regarding;
use tutti_model::{ObjectKey, Text};

/// Added for a gang that has waited for very long.
pub(super) const ROOM_IS_KEPT: &str = "; what becomes free is kept for it";
/// Users who run the scheduler without the controller should not have to guess.
pub(super) const WHO_MAKES_IT: &str =
    ", which tutti controller makes (jobIntegration Off does not wait for it)";
/// Reasons, as users know them.
pub(super) const FAILED_SCHEDULING: &str = "FailedScheduling";
/// There is no room. Autoscalers make nodes for pods that say so, and for no others.
pub(super) const UNSCHEDULABLE: &str = "Unschedulable";
/// Room is not what is missing.
pub(super) const NOT_READY: &str = "NotReadyForScheduling";
/// Objects contradict each other or cannot be read, or the scheduler broke.
pub(super) const SCHEDULER_ERROR: &str = "SchedulerError";
/// Reason of events on objects that were not understood.
pub(super) const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// Where members find the numbers: those change all the time, and there are many members.
const SEE_GROUP: &str = "see its condition for what is missing";

/// True if a unit is merely not complete yet.
pub(super) fn is_gathering(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::GroupMissing { .. }
            | Refusal::CompositeMissing { .. }
            | Refusal::TooFewMembers { .. }
            | Refusal::TooFewGroups { .. }
            | Refusal::Gated { .. }
    )
}

/// The reason of the condition. Only missing room is called [`UNSCHEDULABLE`]: an autoscaler would make nodes for it.
pub(super) fn reason_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoRoom(_) | Refusal::Undecided(_) => UNSCHEDULABLE,
        Refusal::Contradiction(_) | Refusal::Inconsistent { .. } => SCHEDULER_ERROR,
        Refusal::GroupMissing { .. }
        | Refusal::CompositeMissing { .. }
        | Refusal::TooFewGroups { .. }
        | Refusal::TooFewMembers { .. }
        | Refusal::Gated { .. }
        | Refusal::Unsupported(_)
        | Refusal::Claim { .. } => NOT_READY,
    }
}

/// What members of a group or composite are told. It stays the same while only numbers change: those are on the group.
pub(super) fn for_members(
    kind: &str,
    key: &ObjectKey,
    refusal: &Refusal,
    sentence: &Text,
    kept: &str,
) -> Text {
    let name = &key.name;
    let what = match refusal {
        Refusal::NoRoom(_) => "has no room for as many members as it must have",
        Refusal::Undecided(_) => "found no room within the search budget, though there may be some",
        Refusal::TooFewMembers { .. } => "waits for more members",
        Refusal::TooFewGroups { .. } => "waits for more of its groups",
        Refusal::Gated { .. } => "waits for members that scheduling gates hold back",
        Refusal::GroupMissing { .. }
        | Refusal::CompositeMissing { .. }
        | Refusal::Contradiction(_)
        | Refusal::Unsupported(_)
        | Refusal::Inconsistent { .. }
        | Refusal::Claim { .. } => return Text::from(format!("{kind} {name}: {sentence}")),
    };
    Text::from(format!("{kind} {name} {what}{kept}; {SEE_GROUP}"))
}

/// What is wrong with a composite that too many groups are part of.
pub(super) fn too_large(composite: &ObjectKey, children: usize) -> Text {
    Text::from(format!(
        "{children} groups are part of composite pod group {composite}; at most {CHILDREN_MAX} can be placed together"
    ))
}

pub(super) fn about_pod(key: &ObjectKey, uid: Text) -> Regarding {
    Regarding { api_version: "v1".into(), kind: "Pod".into(), key: key.clone(), uid }
}

/// What a group or composite is told that has what it needs.
pub(super) fn met(standing: &Standing, seats: &[&Seat]) -> Text {
    let nodes: BTreeSet<&Text> = seats.iter().map(|seat| &seat.node).collect();
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut message = format!("{} placed on {}", count(seats.len(), "member"), count(nodes.len(), "node"));
    if let UnitKey::Composite(_) = standing.group {
        let Standing { placed, minimum, .. } = standing;
        message = format!("{placed} of at least {minimum} groups have what they need: {message}");
    }
    if let Some(scattered) = &standing.scattered {
        message = format!("{message}; {scattered}");
    }
    Text::from(message)
}

/// What is said of a unit over which the scheduler broke.
pub(super) fn set_aside(seconds: u64) -> Text {
    Text::from(format!(
        "the scheduler broke over it, which is a mistake of the scheduler; it is tried again in {seconds} s"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_engine::ReasonCode;
    use tutti_engine::refusal::{ClaimProblem, Contradiction, LevelShortage, NoRoom, Unsupported};

    /// Whether room is what is missing, of every kind of reason. A new one has to be added here.
    fn is_about_room(code: ReasonCode) -> bool {
        match code {
            ReasonCode::NoNodes
            | ReasonCode::NoDomain
            | ReasonCode::NoRoomInDomain
            | ReasonCode::NoRoom
            | ReasonCode::Undecided => true,
            ReasonCode::GroupMissing
            | ReasonCode::CompositeMissing
            | ReasonCode::TooFewGroups
            | ReasonCode::TooFewMembers
            | ReasonCode::Gated
            | ReasonCode::Contradiction
            | ReasonCode::Unsupported
            | ReasonCode::ClaimNotReady
            | ReasonCode::Inconsistent => false,
        }
    }

    /// Every kind of reason, one after the other. A new one has to be added here, and to [`refusals`].
    fn after(code: ReasonCode) -> Option<ReasonCode> {
        Some(match code {
            ReasonCode::GroupMissing => ReasonCode::CompositeMissing,
            ReasonCode::CompositeMissing => ReasonCode::TooFewGroups,
            ReasonCode::TooFewGroups => ReasonCode::TooFewMembers,
            ReasonCode::TooFewMembers => ReasonCode::Gated,
            ReasonCode::Gated => ReasonCode::Contradiction,
            ReasonCode::Contradiction => ReasonCode::Unsupported,
            ReasonCode::Unsupported => ReasonCode::ClaimNotReady,
            ReasonCode::ClaimNotReady => ReasonCode::NoNodes,
            ReasonCode::NoNodes => ReasonCode::NoDomain,
            ReasonCode::NoDomain => ReasonCode::NoRoomInDomain,
            ReasonCode::NoRoomInDomain => ReasonCode::NoRoom,
            ReasonCode::NoRoom => ReasonCode::Undecided,
            ReasonCode::Undecided => ReasonCode::Inconsistent,
            ReasonCode::Inconsistent => return None,
        })
    }

    /// A refusal of every kind, and of every kind of problem where there are several.
    fn refusals() -> Vec<Refusal> {
        let key = ObjectKey::new("a", "g");
        let claim = |problem| Refusal::Claim { pod: key.clone(), claim: "c".into(), problem };
        let level = |best| LevelShortage {
            group: None,
            key: "rack".into(),
            domains: 0,
            short: 0,
            best,
            needed: 2,
            is_pinned: false,
            missing_labels: vec![],
        };
        let in_levels = |levels| Refusal::NoRoom(NoRoom { nodes: 1, levels, ..NoRoom::default() });
        vec![
            Refusal::GroupMissing { group: key.clone() },
            Refusal::CompositeMissing { composite: key.clone() },
            Refusal::TooFewGroups { minimum: 2, ready: 1 },
            Refusal::TooFewMembers { minimum: 2, observed: 1, gated: 0 },
            Refusal::Gated { pod: key.clone(), gated: 1 },
            Refusal::TooFewMembers { minimum: 2, observed: 1, gated: 1 },
            Refusal::Gated { pod: key.clone(), gated: 1 },
            Refusal::Contradiction(Contradiction::Tree("circle".into())),
            Refusal::Contradiction(Contradiction::Scattered {
                composite: "top".into(),
                key: "rack".into(),
                domains: vec![],
            }),
            Refusal::Contradiction(Contradiction::SchedulerNames(vec![])),
            Refusal::Contradiction(Contradiction::Priorities { group: None, members: vec![] }),
            Refusal::Unsupported(Unsupported::DeviceClaim("d".into())),
            claim(ClaimProblem::Missing),
            claim(ClaimProblem::OfAnotherPod),
            claim(ClaimProblem::Terminating),
            claim(ClaimProblem::Lost),
            claim(ClaimProblem::VolumeMissing { volume: "v".into() }),
            claim(ClaimProblem::Unbound),
            claim(ClaimProblem::ClassMissing { class: "c".into() }),
            claim(ClaimProblem::InUse { pod: "p".into() }),
            Refusal::NoRoom(NoRoom::default()),
            in_levels(vec![level(None)]),
            in_levels(vec![level(Some(("r".into(), 1)))]),
            in_levels(vec![]),
            Refusal::Undecided(NoRoom::default()),
            Refusal::Inconsistent { what: "x".into() },
        ]
    }

    #[test]
    fn only_missing_room_is_called_unschedulable() {
        let refusals = refusals();
        for refusal in &refusals {
            let is_called_so = reason_of(refusal) == UNSCHEDULABLE;
            assert_eq!(is_called_so, is_about_room(refusal.reason().code), "{refusal:?}");
        }
        let mut codes = std::iter::successors(Some(ReasonCode::GroupMissing), |code| after(*code));
        let untried = codes.find(|code| refusals.iter().all(|refusal| refusal.reason().code != *code));
        assert_eq!(untried, None, "no refusal of this kind was tried");
    }

    #[test]
    fn members_are_told_the_same_while_only_numbers_change() {
        let key = ObjectKey::new("a", "g");
        let told = |fit| {
            let refusal = Refusal::NoRoom(NoRoom { needed: 8, fit, ..NoRoom::default() });
            for_members("pod group", &key, &refusal, &refusal.to_string().into(), "")
        };
        assert_eq!(told(0), told(1));
        assert!(told(0).starts_with("pod group g has no room"));
        let held_by = |pod: &str, gated| {
            let refusal = Refusal::Gated { pod: ObjectKey::new("a", pod), gated };
            for_members("pod group", &key, &refusal, &refusal.to_string().into(), "")
        };
        assert_eq!(held_by("p", 1), held_by("q", 2));
    }
}
