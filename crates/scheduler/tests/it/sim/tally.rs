//! What happens in stories, counted: stories that avoid what they are about prove nothing.

use std::fmt;

/// Something that stories are about. Each has to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Step,
    Bind,
    /// A binding of a deposed leader.
    LateBind,
    /// A pod is sent to a node where pods of other schedulers are known to be.
    BindBesideOthers,
    /// A pod of a group whose members start one by one.
    BasicBind,
    /// A pod whose claim has got a volume for it.
    VolumeBind,
    /// A pod that was held back by a gate.
    UngatedBind,
    Fault,
    Crash,
    Election,
    /// A leader has finished what it began and has given its lease back.
    HandOver,
    /// A leader that was to end could not finish what it began, and its lease runs out.
    LateStop,
    /// One that was elected was to end before it began, and its lease runs out.
    StopInGap,
    /// A leader has lost its lease.
    Deposed,
    /// A leader goes on with other settings.
    Reload,
    Eviction,
    /// A member of a gang that was complete once and is to be unwound nevertheless.
    BrokenEviction,
    Partial,
    Kept,
    Unwound,
    /// A group was not what a watch had told of it.
    Stale,
    /// By a kubelet.
    Rejection,
    TreeStart,
    Cordon,
    Taint,
    Relabel,
    Shrink,
    /// A volume was made for a claim.
    Provision,
    /// The provisioner could not make a volume.
    ProvisionFailure,
    /// A volume that exists was kept for a claim.
    KeptVolume,
    /// Another client took a volume.
    StolenVolume,
    /// A request never arrives.
    LostRequest,
    /// A request is carried out, and nobody hears of it.
    LostAnswer,
    /// A request takes long to arrive.
    SlowRequest,
    /// A request is carried out, and the answer is an error.
    ErrorAfter,
    /// A request is not carried out, and the answer is an error.
    ErrorBefore,
    /// The server has too much to do.
    Throttle,
    /// A request is not allowed.
    Forbid,
    /// An object is said not to be what it was thought to be.
    ConflictAnswer,
    WatchBreak,
    WatchStall,
    /// A list is told bit by bit, while things change.
    SlowList,
    ServerRestart,
    Pause,
    /// A group asks for another minimum.
    NewPolicy,
    /// A group is replaced by another of its name.
    NewGroup,
    /// A composite is deleted, and perhaps replaced.
    NewComposite,
    /// A group becomes part of another composite, or of none.
    Move,
    NodeJoin,
    NodeLoss,
    /// Of a pod, by somebody.
    Deletion,
    /// Of a pod.
    Failure,
    /// Of a pod.
    Success,
    /// A pod of another scheduler takes a seat.
    Intrusion,
    /// Another scheduler binds one of our pods.
    OtherBinder,
    GateOpening,
    /// A Job whose pods wait for the group that is made for it.
    NewJob,
    /// Such a Job is deleted, or is made known again.
    JobGone,
    /// A pod of such a Job.
    JobBind,
    /// A priority class is deleted.
    ClassGone,
    /// The missing members of a broken gang are about to be sent.
    BrokenStart,
    /// A story about nothing but gangs and schedulers that are killed.
    OnlyKills,
    /// A leader is killed while a gang is in part.
    CrashInPart,
    /// A new gang is sent while a broken one is not, because that one does not fit.
    PassedOver,
}

impl Deed {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 64] = [
        Self::Step,
        Self::Bind,
        Self::LateBind,
        Self::BindBesideOthers,
        Self::BasicBind,
        Self::VolumeBind,
        Self::UngatedBind,
        Self::Fault,
        Self::Crash,
        Self::Election,
        Self::HandOver,
        Self::LateStop,
        Self::StopInGap,
        Self::Deposed,
        Self::Reload,
        Self::Eviction,
        Self::BrokenEviction,
        Self::Partial,
        Self::Kept,
        Self::Unwound,
        Self::Stale,
        Self::Rejection,
        Self::TreeStart,
        Self::Cordon,
        Self::Taint,
        Self::Relabel,
        Self::Shrink,
        Self::Provision,
        Self::ProvisionFailure,
        Self::KeptVolume,
        Self::StolenVolume,
        Self::LostRequest,
        Self::LostAnswer,
        Self::SlowRequest,
        Self::ErrorAfter,
        Self::ErrorBefore,
        Self::Throttle,
        Self::Forbid,
        Self::ConflictAnswer,
        Self::WatchBreak,
        Self::WatchStall,
        Self::SlowList,
        Self::ServerRestart,
        Self::Pause,
        Self::NewPolicy,
        Self::NewGroup,
        Self::NewComposite,
        Self::Move,
        Self::NodeJoin,
        Self::NodeLoss,
        Self::Deletion,
        Self::Failure,
        Self::Success,
        Self::Intrusion,
        Self::OtherBinder,
        Self::GateOpening,
        Self::NewJob,
        Self::JobGone,
        Self::JobBind,
        Self::ClassGone,
        Self::BrokenStart,
        Self::OnlyKills,
        Self::CrashInPart,
        Self::PassedOver,
    ];
}

/// How often each has happened, and in how many stories.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: [u64; Deed::ALL.len()],
    stories: [u64; Deed::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self { counts: [0; Deed::ALL.len()], stories: [0; Deed::ALL.len()] }
    }
}

impl Tally {
    pub(crate) fn count(&mut self, deed: Deed) {
        self.counts[deed as usize] += 1;
        self.stories[deed as usize] = 1;
    }

    /// All deeds, how often they happened, and in how many stories.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Deed, u64, u64)> {
        Deed::ALL.into_iter().map(|deed| (deed, self.counts[deed as usize], self.stories[deed as usize]))
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.counts.iter_mut().zip(other.counts) {
            *sum += more;
        }
        for (sum, more) in self.stories.iter_mut().zip(other.stories) {
            *sum += more;
        }
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counts().map(|(deed, count, _)| (deed, count))).finish()
    }
}
