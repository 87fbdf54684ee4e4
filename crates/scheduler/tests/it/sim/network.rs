//! What becomes of requests: they are lost, late, refused, or carried out and the answer is lost.

use super::server::{Binder, reading_of};
use super::tally::Deed;
use super::{Happening, Sim};
use std::time::Duration;
use tutti_model::{ClaimRef, Text};
use tutti_scheduler::core::message::{
    Answer, BindOutcome, Effect, EventKey, GroupLookup, Lookup, StorageKey, WriteKey, WriteOutcome,
};

/// How long a process waits for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);
/// How long a request can be under way in the server.
const SLOW_MS: u64 = 50_000;

/// A request on its way.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) incarnation: u64,
    pub(super) term: u64,
    pub(super) effect: Effect,
    fate: Fate,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is carried out and answered.
    Good,
    /// It is carried out, and nobody hears of it.
    Mute,
    /// It is carried out, and the answer is an error.
    ErrorAfter,
    /// It is not carried out, and the answer is an error.
    ErrorBefore,
    /// The server has too much to do.
    Throttled,
    /// It is not allowed.
    Forbidden,
    /// It is not carried out, and the answer is that the object is not what it was thought to be.
    Conflict,
}

impl Sim {
    pub(super) fn send(&mut self, index: usize, effect: Effect) {
        let replica = &self.replicas[index];
        let (incarnation, term) = (replica.incarnation, replica.term);
        let timeout = TIMEOUT.as_millis() as u64;
        let mut arrives = Some(1 + self.dice.below(5));
        let mut fate = Fate::Good;
        if self.trouble.on && self.dice.once_in(self.trouble.requests_one_in) {
            self.tally.count(Deed::Fault);
            let deed = match self.dice.below(8) {
                0 => {
                    arrives = None;
                    Deed::LostRequest
                }
                1 => {
                    fate = Fate::Mute;
                    Deed::LostAnswer
                }
                2 => {
                    let slow = 100 + self.dice.below(SLOW_MS);
                    arrives = Some(slow);
                    fate = if slow < timeout { Fate::Good } else { Fate::Mute };
                    Deed::SlowRequest
                }
                3 => {
                    fate = Fate::ErrorAfter;
                    Deed::ErrorAfter
                }
                4 => {
                    fate = Fate::ErrorBefore;
                    Deed::ErrorBefore
                }
                5 => {
                    fate = Fate::Throttled;
                    Deed::Throttle
                }
                6 => {
                    fate = Fate::Forbidden;
                    Deed::Forbid
                }
                _ => {
                    fate = Fate::Conflict;
                    Deed::ConflictAnswer
                }
            };
            self.tally.count(deed);
        }
        if arrives.is_none() || fate == Fate::Mute {
            let answer = no_answer(&effect, "no answer in time");
            self.schedule(timeout, Happening::Answer(incarnation, Box::new(answer)));
        }
        if let Some(arrives) = arrives {
            let request = Request { incarnation, term, effect, fate };
            self.schedule(arrives, Happening::Arrive(Box::new(request)));
        }
    }

    pub(super) fn arrive(&mut self, request: Request) -> Result<(), String> {
        let Request { incarnation, term, effect, fate } = request;
        let answer = if self.down {
            // The connection breaks; whether the request got through before, nobody knows.
            no_answer(&effect, "connection lost")
        } else {
            match fate {
                Fate::Good | Fate::Mute => self.carry_out(effect, term)?,
                Fate::ErrorAfter => {
                    let answer = no_answer(&effect, "internal error");
                    self.carry_out(effect, term)?;
                    answer
                }
                Fate::ErrorBefore => no_answer(&effect, "internal error"),
                Fate::Throttled => self.throttled(&effect),
                Fate::Forbidden => {
                    if let Effect::PatchGroupMarks { group, .. } = &effect {
                        self.refused_marks.insert(group.clone());
                    }
                    forbidden(&effect)
                }
                Fate::Conflict => conflict(&effect),
            }
        };
        if fate != Fate::Mute {
            let delay = 1 + self.dice.below(5);
            self.schedule(delay, Happening::Answer(incarnation, Box::new(answer)));
        }
        self.spread_news();
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect, term: u64) -> Result<Answer, String> {
        let is_late = term != self.terms;
        Ok(match effect {
            Effect::Bind(seat) => {
                let outcome = self.bind(&seat, if is_late { Binder::Late } else { Binder::Leader })?;
                Answer::Bind { seat, outcome }
            }
            Effect::GetPod { pod, uid } => {
                let found = self.server.pods.get(&pod).map_or(Lookup::Gone, |found| Lookup::Found {
                    uid: found.pod.uid.clone(),
                    node: found.pod.node.clone(),
                });
                Answer::Pod { pod, uid, found }
            }
            Effect::GetGroup(group) => {
                let found = match reading_of(&self.server, &group) {
                    Some(reading) => {
                        let minimum = reading.group.as_ref().map_or(1, |group| group.policy.minimum());
                        self.confirmed.insert(group.clone(), minimum);
                        GroupLookup::Found(Box::new(reading))
                    }
                    None => GroupLookup::Gone,
                };
                Answer::Group { group, found }
            }
            Effect::PatchGroupCondition { group, uid, version, condition } => {
                let outcome = self.server.set_group_condition(&group, &uid, version, *condition)?;
                Answer::Write { key: WriteKey::Group(group), outcome }
            }
            Effect::PatchGroupMarks { group, uid, version, marks } => {
                let outcome = self.server.set_marks(&group, &uid, &version, &marks);
                if outcome == WriteOutcome::Done {
                    self.refused_marks.remove(&group);
                }
                Answer::Write { key: WriteKey::Marks(group), outcome }
            }
            Effect::PatchPodCondition { pod, uid, condition, .. } => {
                let waits = self.server.pods.get(&pod).is_some_and(|found| found.pod.node.is_none());
                let done =
                    waits && self.server.change_pod(&pod, &uid, |pod| pod.condition = Some(*condition));
                written(WriteKey::Pod(pod), done)
            }
            Effect::MarkDisrupted { pod, uid, .. } => {
                let done = self.server.change_pod(&pod, &uid, |pod| pod.disrupted = true);
                written(WriteKey::Eviction(pod), done)
            }
            Effect::DeletePod { pod, uid } => {
                let exists = self.server.pods.get(&pod).is_some_and(|found| found.pod.uid == uid);
                if exists {
                    self.check_eviction(&pod, is_late)?;
                    self.count_eviction(&pod);
                    self.delete_gracefully(&pod);
                }
                written(WriteKey::Eviction(pod), exists)
            }
            Effect::EmitEvent(note) => {
                let key = EventKey { uid: note.regarding.uid, reason: note.reason };
                written(WriteKey::Event(key), true)
            }
            Effect::SelectNode { claim, uid, node } => {
                if node.is_some() {
                    let delay = 10 + self.dice.below(10_000);
                    self.schedule(delay, Happening::Provision(claim.clone(), uid.clone()));
                }
                let done = self.server.select_node(&claim, &uid, node);
                written(WriteKey::Storage(StorageKey::Claim(claim)), done)
            }
            Effect::KeepVolume { volume, version, claim, uid } => {
                let kept_for = ClaimRef { key: claim, uid: Some(uid) };
                let outcome = self.server.keep_volume(&volume, &version, kept_for);
                let delay = 10 + self.dice.below(10_000);
                self.schedule(delay, Happening::BindVolume(volume.clone()));
                Answer::Write { key: WriteKey::Storage(StorageKey::Volume(volume)), outcome }
            }
            Effect::Report(_) => return Err(format!("{effect:?} is no request")),
        })
    }

    fn throttled(&mut self, effect: &Effect) -> Answer {
        let pause = self.dice.once_in(2).then(|| Duration::from_secs(1 + self.dice.below(5)));
        let why = Text::from("too many requests");
        match no_answer(effect, "too many requests") {
            Answer::Bind { seat, .. } => {
                Answer::Bind { seat, outcome: BindOutcome::Throttled { why, pause } }
            }
            Answer::Write { key, .. } => {
                Answer::Write { key, outcome: WriteOutcome::Throttled { why, pause } }
            }
            Answer::Pod { pod, uid, .. } => Answer::Pod { pod, uid, found: Lookup::Throttled { why, pause } },
            Answer::Group { group, .. } => {
                Answer::Group { group, found: GroupLookup::Throttled { why, pause } }
            }
        }
    }
}

fn forbidden(effect: &Effect) -> Answer {
    match no_answer(effect, "forbidden") {
        Answer::Bind { seat, .. } => Answer::Bind { seat, outcome: BindOutcome::Refused("forbidden".into()) },
        Answer::Write { key, .. } => {
            Answer::Write { key, outcome: WriteOutcome::Rejected("forbidden".into()) }
        }
        other => other,
    }
}

fn conflict(effect: &Effect) -> Answer {
    match no_answer(effect, "conflict") {
        Answer::Bind { seat, .. } => Answer::Bind { seat, outcome: BindOutcome::Disputed("conflict".into()) },
        Answer::Write { key, .. } => {
            Answer::Write { key, outcome: WriteOutcome::Conflict("conflict".into()) }
        }
        other => other,
    }
}

/// The answer of a process to itself when there is none.
fn no_answer(effect: &Effect, why: &str) -> Answer {
    let why = Text::from(why);
    let key = match effect.clone() {
        Effect::Bind(seat) => return Answer::Bind { seat, outcome: BindOutcome::Unknown(why) },
        Effect::GetPod { pod, uid } => return Answer::Pod { pod, uid, found: Lookup::Unknown(why) },
        Effect::GetGroup(group) => return Answer::Group { group, found: GroupLookup::Unknown(why) },
        Effect::PatchGroupCondition { group, .. } => WriteKey::Group(group),
        Effect::PatchGroupMarks { group, .. } => WriteKey::Marks(group),
        Effect::PatchPodCondition { pod, .. } => WriteKey::Pod(pod),
        Effect::MarkDisrupted { pod, .. } | Effect::DeletePod { pod, .. } => WriteKey::Eviction(pod),
        Effect::SelectNode { claim, .. } => WriteKey::Storage(StorageKey::Claim(claim)),
        Effect::KeepVolume { volume, .. } => WriteKey::Storage(StorageKey::Volume(volume)),
        Effect::EmitEvent(note) => WriteKey::Event(EventKey { uid: note.regarding.uid, reason: note.reason }),
        Effect::Report(_) => unreachable!("these are no requests"),
    };
    Answer::Write { key, outcome: WriteOutcome::Failed(why) }
}

fn written(key: WriteKey, done: bool) -> Answer {
    let outcome = if done { WriteOutcome::Done } else { WriteOutcome::Rejected("not found".into()) };
    Answer::Write { key, outcome }
}
