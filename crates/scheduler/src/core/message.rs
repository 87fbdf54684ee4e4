//! What goes into the core and what comes out of it.

use super::groups::GangState;
use std::time::Duration;
use tutti_engine::{Seat, UnitKey};
use tutti_k8s::gangs::JobReading;
use tutti_k8s::request::EventNote;
use tutti_k8s::{
    BudgetReading, ClaimReading, ClassReading, Condition, GroupReading, LimitsReading, NodeReading,
    ObjectError, ObjectKind, PodReading, PriorityClassReading, SelectorReading, VolumeReading,
};
use tutti_model::{Labels, ObjectKey, Text, Time};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// A list of all objects of a kind begins: the first one, or one after a watch broke.
    ListStarted(ObjectKind),
    /// The list is complete. What was known and is not in it has vanished meanwhile.
    ListDone(ObjectKind),
    /// The cluster does not let us list a kind: it does not serve it, or we have no right to see it.
    ListRefused {
        /// The kind.
        kind: ObjectKind,
        /// What the server says.
        why: Text,
    },
    /// A pod was seen.
    PodSet(Box<PodReading>),
    /// A pod is gone.
    PodGone(ObjectKey),
    /// A node was seen.
    NodeSet(Box<NodeReading>),
    /// A node is gone.
    NodeGone(Text),
    /// A pod group was seen.
    GroupSet(Box<GroupReading>),
    /// A pod group is gone.
    GroupGone(ObjectKey),
    /// A composite of groups was seen.
    CompositeSet(Box<GroupReading>),
    /// A composite of groups is gone.
    CompositeGone(ObjectKey),
    /// A namespace was seen; its labels matter to wishes that select namespaces by label.
    NamespaceSet {
        /// Its name.
        name: Text,
        /// Its labels.
        labels: Labels,
    },
    /// A namespace is gone.
    NamespaceGone(Text),
    /// A volume claim was seen.
    ClaimSet(Box<ClaimReading>),
    /// A volume claim is gone.
    ClaimGone(ObjectKey),
    /// A volume was seen.
    VolumeSet(Box<VolumeReading>),
    /// A volume is gone.
    VolumeGone(Text),
    /// A class of volumes was seen.
    ClassSet(Box<ClassReading>),
    /// A class of volumes is gone.
    ClassGone(Text),
    /// It was seen what a node can attach.
    LimitsSet(Box<LimitsReading>),
    /// It is not known any more what a node can attach.
    LimitsGone(Text),
    /// A service or a controller of pods was seen.
    SelectorSet(Box<SelectorReading>),
    /// A service or a controller of pods is gone.
    SelectorGone(ObjectKind, ObjectKey),
    /// A priority class was seen.
    PriorityClassSet(Box<PriorityClassReading>),
    /// A priority class is gone.
    PriorityClassGone(Text),
    /// A disruption budget was seen.
    BudgetSet(Box<BudgetReading>),
    /// A disruption budget is gone.
    BudgetGone(ObjectKey),
    /// A Job was seen.
    JobSet(Box<JobReading>),
    /// A Job is gone.
    JobGone(ObjectKey),
    /// A request was answered, or will not be. Every request has exactly one answer.
    Answer(Answer),
    /// We are the leader, by a lease that lasts until a time, and nothing of an earlier leader was under way any more when
    /// the lists began. A core that was made by [`Core::standby`] sends nothing before this.
    ///
    /// [`Core::standby`]: crate::Core::standby
    Elected {
        /// When the lease ends unless it is renewed. Nothing is sent from then on, even if no message says so.
        until: Time,
    },
    /// The lease was renewed.
    Renewed {
        /// When it ends unless it is renewed again.
        until: Time,
    },
    /// Time has passed.
    Tick,
    /// Decide nothing any more; finish what was begun, see [`Core::is_drained`].
    ///
    /// [`Core::is_drained`]: crate::Core::is_drained
    Stop,
}

/// How a request ended.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Of [`Effect::Bind`].
    Bind {
        /// Which pod was to go where.
        seat: Seat,
        /// How it ended.
        outcome: BindOutcome,
    },
    /// Of [`Effect::GetPod`].
    Pod {
        /// The pod that was asked for.
        pod: ObjectKey,
        /// The identity that was asked for.
        uid: Text,
        /// What was found.
        found: Lookup,
    },
    /// Of [`Effect::GetGroup`].
    Group {
        /// The group or composite that was asked for.
        group: UnitKey,
        /// What was found.
        found: GroupLookup,
    },
    /// Of every other request, see [`WriteKey`].
    Write {
        /// Which write.
        key: WriteKey,
        /// How it ended.
        outcome: WriteOutcome,
    },
}

/// How a binding ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindOutcome {
    /// It was written.
    Done,
    /// It was certainly not written.
    Refused(Text),
    /// It was certainly not written, because the server has too much to do.
    Throttled {
        /// What the server says.
        why: Text,
        /// How long it asks to be left alone, if it says so.
        pause: Option<Duration>,
    },
    /// The pod is not as we believe: gone, another one, or bound already. A look at it tells.
    Disputed(Text),
    /// It is not known whether it was or will be written.
    Unknown(Text),
}

/// What a look at a pod found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// There is a pod of that name.
    Found {
        /// Its identity.
        uid: Text,
        /// Where it is.
        node: Option<Text>,
    },
    /// There is none.
    Gone,
    /// Not found out, because the server has too much to do.
    Throttled {
        /// What it said.
        why: Text,
        /// How long it asks to be left alone.
        pause: Option<Duration>,
    },
    /// No answer.
    Unknown(Text),
}

/// What a look at a group found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupLookup {
    /// There is a group of that name.
    Found(Box<GroupReading>),
    /// There is none.
    Gone,
    /// Not found out, because the server has too much to do.
    Throttled {
        /// What it said.
        why: Text,
        /// How long it asks to be left alone.
        pause: Option<Duration>,
    },
    /// No answer.
    Unknown(Text),
}

/// How any other write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It was written.
    Done,
    /// It was not, and trying again is useless: the object is gone or the request is not allowed.
    Rejected(Text),
    /// It may be written if it is tried again.
    Failed(Text),
    /// It was not, because the object is not what it was thought to be: it must be looked at first.
    Conflict(Text),
    /// It was not, because the server has too much to do.
    Throttled {
        /// What the server says.
        why: Text,
        /// How long it asks to be left alone, if it says so.
        pause: Option<Duration>,
    },
}

/// Names a write of less worth than a binding. There is at most one of a key under way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteKey {
    /// Of [`Effect::PatchGroupCondition`].
    Group(UnitKey),
    /// Of [`Effect::PatchGroupMarks`].
    Marks(ObjectKey),
    /// Of [`Effect::PatchPodCondition`].
    Pod(ObjectKey),
    /// Of [`Effect::MarkDisrupted`] and [`Effect::DeletePod`].
    Eviction(ObjectKey),
    /// Of [`Effect::SelectNode`] and [`Effect::KeepVolume`].
    Storage(StorageKey),
    /// Of [`Effect::EmitEvent`].
    Event(EventKey),
}

/// A claim or a volume that is written to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageKey {
    /// A volume claim.
    Claim(ObjectKey),
    /// A volume.
    Volume(Text),
}

/// Events of equal key become one while they wait to be written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// Identity of the object.
    pub uid: Text,
    /// Reason.
    pub reason: &'static str,
}

/// Annotations to be set, and, without a value, to be removed.
pub type Annotations = Vec<(Text, Option<Text>)>;

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Put a pod on a node.
    Bind(Seat),
    /// Look where a pod is.
    GetPod {
        /// The pod.
        pod: ObjectKey,
        /// The identity that is expected.
        uid: Text,
    },
    /// Read a pod group or composite as it is now, not as a cache has it.
    GetGroup(UnitKey),
    /// Set annotations of a pod group, and remove those without a value.
    PatchGroupMarks {
        /// The group.
        group: ObjectKey,
        /// Its identity.
        uid: Text,
        /// The version that this is about. A group that has changed since is left as it is: a slow request must not
        /// undo what was written after it was sent.
        version: Text,
        /// What it is to be marked with, see [`tutti_k8s::marks`].
        marks: Annotations,
    },
    /// Say on a pod that it is about to be deleted, and why.
    MarkDisrupted {
        /// The pod.
        pod: ObjectKey,
        /// Its identity.
        uid: Text,
        /// The condition.
        condition: Box<Condition>,
    },
    /// Delete a pod, if it is still the same.
    DeletePod {
        /// The pod.
        pod: ObjectKey,
        /// Its identity.
        uid: Text,
    },
    /// Ask for a volume that is made where this node reaches it; without a node, ask no longer.
    SelectNode {
        /// The claim.
        claim: ObjectKey,
        /// Its identity.
        uid: Text,
        /// The node.
        node: Option<Text>,
    },
    /// Keep a volume for a claim, if the volume is still at this version.
    KeepVolume {
        /// The volume.
        volume: Text,
        /// The version that was decided on.
        version: Text,
        /// The claim.
        claim: ObjectKey,
        /// Its identity.
        uid: Text,
    },
    /// Set a condition of a pod group or of a composite.
    PatchGroupCondition {
        /// The group or composite.
        group: UnitKey,
        /// Its identity.
        uid: Text,
        /// The version that is known, unless what is said is final: a slow request must not undo that.
        version: Option<Text>,
        /// The condition.
        condition: Box<Condition>,
    },
    /// Set a condition of a pod, if it is still at this version.
    PatchPodCondition {
        /// The pod.
        pod: ObjectKey,
        /// Its identity.
        uid: Text,
        /// The version that was decided on.
        version: Text,
        /// The condition.
        condition: Box<Condition>,
    },
    /// Write an event.
    EmitEvent(Box<EventNote>),
    /// A line for the log. Needs no answer.
    Report(Fact),
}

impl Effect {
    /// What kind of request it is, as metrics call it; `None` if it is none.
    pub fn request_kind(&self) -> Option<&'static str> {
        Some(match self {
            Self::Bind(_) => "bind",
            Self::GetPod { .. } => "get-pod",
            Self::GetGroup(_) => "get-group",
            Self::PatchGroupMarks { .. } => "group-marks",
            Self::MarkDisrupted { .. } => "pod-disruption",
            Self::DeletePod { .. } => "delete-pod",
            Self::SelectNode { .. } => "claim",
            Self::KeepVolume { .. } => "volume",
            Self::PatchGroupCondition { .. } => "group-condition",
            Self::PatchPodCondition { .. } => "pod-condition",
            Self::EmitEvent(_) => "event",
            Self::Report(_) => return None,
        })
    }
}

/// Something worth a line in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A gang below its minimum has come into another state.
    Gang {
        /// The group.
        group: ObjectKey,
        /// The state.
        state: GangState,
        /// Members that count to the minimum.
        counted: u32,
        /// The minimum.
        minimum: u32,
        /// Why, in a sentence.
        why: Text,
    },
    /// A group or composite was not as the watch had told; the placement was taken back.
    StaleGroup {
        /// Its name.
        group: ObjectKey,
    },
    /// The cluster does not let us list a kind.
    Unavailable {
        /// The kind.
        kind: ObjectKind,
        /// What the server says.
        why: Text,
    },
    /// All lists are in; decisions begin.
    Synced {
        /// Pods.
        pods: usize,
        /// Nodes.
        nodes: usize,
        /// Groups.
        groups: usize,
    },
    /// A unit was placed, and its bindings go out.
    Placed {
        /// Which unit.
        unit: UnitKey,
        /// How many pods.
        pods: usize,
        /// On how many nodes.
        nodes: usize,
        /// Members that got no seat.
        left_out: usize,
    },
    /// A unit has a place and waits for volumes before it is bound.
    WaitsForVolumes {
        /// Which unit.
        unit: UnitKey,
        /// How many claims are not bound yet.
        claims: usize,
    },
    /// A unit cannot start.
    Waiting {
        /// Which unit.
        unit: UnitKey,
        /// Why.
        message: Text,
        /// True if the unit is merely not complete yet.
        gathering: bool,
    },
    /// The engine broke over a unit, which is set aside for a while.
    SetAside {
        /// Which unit.
        unit: UnitKey,
        /// What the panic said.
        why: Text,
    },
    /// A binding did certainly not happen.
    BindFailed {
        /// The pod.
        pod: ObjectKey,
        /// Where it was to go.
        node: Text,
        /// Why not.
        why: Text,
    },
    /// It is not known whether a binding happened; the seat stays taken until it is.
    BindUnknown {
        /// The pod.
        pod: ObjectKey,
        /// Where it was to go.
        node: Text,
        /// What is known.
        why: Text,
    },
    /// Another scheduler bound the pod to another node.
    BoundElsewhere {
        /// The pod.
        pod: ObjectKey,
        /// Where we wanted it.
        wanted: Text,
        /// Where it is.
        found: Text,
    },
    /// An object was not understood.
    BadObject(ObjectError),
    /// A condition or event was given up after its last try.
    WriteGivenUp {
        /// Which write.
        key: WriteKey,
        /// Why.
        why: Text,
    },
    /// A queue of writes is full; told once until it has drained.
    WritesDropped {
        /// What is dropped.
        what: &'static str,
        /// How many since the start.
        total: u64,
    },
}
