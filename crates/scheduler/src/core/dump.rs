//! What the core knows beyond the objects of the cluster, as data; and what it would decide, from that and the objects.
//!
//! Objects are in the API server and are dumped as they are there. The rest – seats that are taken but not written yet,
//! promises, units that are not to be tried, and when – is only here.

use super::groups::GangState;
use super::message::Input;
use super::{Core, UnitKey};
use crate::config::Config;
use std::collections::BTreeMap;
use tutti_engine::{Decision, Event, HeldSeat, Hold, HoldReason, WaitState};
use tutti_k8s::Capabilities;
use tutti_model::{ObjectKey, Resource, Time};

/// Decisions of one replay. More would be a loop.
const DECISIONS_MAX: usize = 1_000_000;

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl From<&ObjectKey> for Name {
    fn from(key: &ObjectKey) -> Self {
        Self { namespace: key.namespace.to_string(), name: key.name.to_string() }
    }
}

impl Name {
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_str(), self.name.as_str())
    }
}

/// What is decided as one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// A group.
    Group(Name),
    /// A composite of groups.
    Composite(Name),
    /// A pod on its own.
    Pod(Name),
}

impl From<&UnitKey> for Unit {
    fn from(unit: &UnitKey) -> Self {
        match unit {
            UnitKey::Group(key) => Self::Group(key.into()),
            UnitKey::Composite(key) => Self::Composite(key.into()),
            UnitKey::Pod(key) => Self::Pod(key.into()),
        }
    }
}

impl Unit {
    fn key(&self) -> UnitKey {
        match self {
            Self::Group(name) => UnitKey::Group(name.key()),
            Self::Composite(name) => UnitKey::Composite(name.key()),
            Self::Pod(name) => UnitKey::Pod(name.key()),
        }
    }
}

/// A pod that was given a seat which the API server does not know of yet.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumed {
    /// The pod.
    pub pod: Name,
    /// Its identity.
    pub uid: String,
    /// Where it is to go.
    pub node: String,
}

/// Seats that are promised.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Promise {
    /// To which unit.
    pub unit: Unit,
    /// Units of a higher priority than this may take them.
    pub priority: i32,
    /// Until when, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// Why: `told`, `nominated`, `vacated`, `claimed` or `planned`.
    pub reason: Reason,
    /// Where, and how much.
    pub seats: Vec<PromisedSeat>,
}

/// Why seats are promised, see [`HoldReason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "explained where the engine defines them")]
pub enum Reason {
    Told,
    Nominated,
    Vacated,
    Claimed,
    Planned,
}

/// Seats on one node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromisedSeat {
    /// The node.
    pub node: String,
    /// How many pods.
    pub count: u32,
    /// What one pod takes, by resource; of processors in thousandths.
    pub requests: BTreeMap<String, i64>,
}

/// A unit that waits.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Queued {
    /// Which.
    pub unit: Unit,
    /// For its turn, for the end of a pause, or for something to happen.
    pub place: String,
    /// When a pause ends, in milliseconds since 1970.
    pub until_ms: Option<i64>,
}

/// A gang below its minimum.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialGang {
    /// Its group.
    pub group: Name,
    /// What is done about it.
    pub state: GangState,
}

/// What the core knows beyond the objects of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Extras {
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether it knows the cluster and may act.
    pub acting: bool,
    /// Seats that are taken and not written yet.
    pub assumed: Vec<Assumed>,
    /// Promises.
    pub holds: Vec<Promise>,
    /// Units that are not to be tried.
    pub suspended: Vec<Unit>,
    /// Units that wait, the next one first.
    pub queue: Vec<Queued>,
    /// Gangs below their minimum.
    pub gangs: Vec<PartialGang>,
}

impl Core {
    /// What it knows beyond the objects of the cluster.
    pub fn extras(&self, now: Time) -> Extras {
        let queued = |(unit, place): (UnitKey, WaitState)| Queued {
            unit: (&unit).into(),
            place: place.as_str().to_owned(),
            until_ms: place.until().map(|until| until.0),
        };
        Extras {
            now_ms: now.0,
            acting: self.is_acting(now),
            assumed: self
                .engine
                .assumed()
                .into_iter()
                .map(|seat| Assumed {
                    pod: (&seat.pod).into(),
                    uid: seat.uid.to_string(),
                    node: seat.node.to_string(),
                })
                .collect(),
            holds: self.engine.holds().iter().map(promise_of).collect(),
            suspended: self.engine.suspended().iter().map(Unit::from).collect(),
            queue: self.engine.waiters().into_iter().map(queued).collect(),
            gangs: self
                .groups
                .partial()
                .map(|(group, state, _)| PartialGang { group: group.into(), state })
                .collect(),
        }
    }
}

fn promise_of(hold: &Hold) -> Promise {
    let seat = |seat: &HeldSeat| PromisedSeat {
        node: seat.node.to_string(),
        count: seat.count,
        requests: seat.requests.iter().map(|(name, amount)| (name.name().to_owned(), amount)).collect(),
    };
    Promise {
        unit: (&hold.unit).into(),
        priority: hold.priority,
        expires_ms: hold.expires.map(|expires| expires.0),
        reason: match hold.reason {
            HoldReason::Told => Reason::Told,
            HoldReason::Nominated => Reason::Nominated,
            HoldReason::Vacated => Reason::Vacated,
            HoldReason::Usable => Reason::Claimed,
            HoldReason::Planned => Reason::Planned,
        },
        seats: hold.seats.iter().map(seat).collect(),
    }
}

fn hold_of(promise: &Promise) -> Hold {
    let seat = |seat: &PromisedSeat| HeldSeat {
        node: seat.node.as_str().into(),
        count: seat.count,
        requests: seat
            .requests
            .iter()
            .map(|(name, amount)| (Resource::new(name.as_str()), *amount))
            .collect(),
    };
    Hold {
        unit: promise.unit.key(),
        priority: promise.priority,
        expires: promise.expires_ms.map(Time),
        reason: match promise.reason {
            Reason::Told => HoldReason::Told,
            Reason::Nominated => HoldReason::Nominated,
            Reason::Vacated => HoldReason::Vacated,
            Reason::Claimed => HoldReason::Usable,
            Reason::Planned => HoldReason::Planned,
        },
        seats: promise.seats.iter().map(seat).collect(),
    }
}

/// What would be decided by a scheduler that has seen these objects and knows what a dump says beyond them: every
/// placement, and for every unit that waits the reason. Nothing is sent.
pub fn replay(
    config: Config,
    capabilities: Capabilities,
    objects: impl IntoIterator<Item = Input>,
    extras: &Extras,
) -> Vec<Decision> {
    let now = Time(extras.now_ms);
    let mut core = Core::standby(config, capabilities);
    core.step(objects, now);
    for seat in &extras.assumed {
        let known = core.pods.get(&seat.pod.key()).filter(|known| *known.uid == *seat.uid);
        if let Some(mut pod) = known.and_then(|known| known.unbound().cloned()).map(Box::new) {
            pod.node = Some(seat.node.as_str().into());
            core.engine.apply(Event::PodSet(pod), now);
        }
    }
    for unit in &extras.suspended {
        core.engine.apply(Event::Suspend(unit.key()), now);
    }
    for promise in &extras.holds {
        core.engine.apply(Event::Hold(Box::new(hold_of(promise))), now);
    }
    let mut decisions = Vec::new();
    while decisions.len() < DECISIONS_MAX {
        match core.engine.decide(now) {
            Decision::Idle { .. } => break,
            Decision::More => {}
            decision => decisions.push(decision),
        }
    }
    decisions
}
