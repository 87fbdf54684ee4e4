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
    /// A pod of a group whose members start each for itself.
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
    /// Whoever makes volumes could not make one.
    ProvisionFailure,
    /// A volume that exists was kept for a claim.
    KeptVolume,
    /// Somebody else took a volume.
    StolenVolume,
}

impl Deed {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 31] = [
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
    ];
}

/// How often each has happened.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally([u64; Deed::ALL.len()]);

impl Tally {
    pub(crate) fn count(&mut self, deed: Deed) {
        self.0[deed as usize] += 1;
    }

    /// All deeds and how often they happened.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Deed, u64)> {
        Deed::ALL.into_iter().map(|deed| (deed, self.0[deed as usize]))
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counts()).finish()
    }
}
