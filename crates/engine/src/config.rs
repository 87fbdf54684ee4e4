//! What can be chosen.

use crate::score::Profile;
use crate::solve::Limits;
use std::num::NonZeroU32;
use tutti_model::Text;

/// How long a gang waits for room before any is kept for it, unless told otherwise.
const PATIENCE_SECONDS: u32 = 1_800;

/// What can be chosen.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who is served, and how. A name belongs to the first profile that has it.
    pub profiles: Vec<NamedProfile>,
    /// How much work one call of [`crate::Engine::decide`] may do, in branches of a search: 200,000 are worth less than
    /// 50 ms on one core. An attempt gets half of it, and three quarters when there is nothing else to do.
    pub branches_max: u32,
    /// Up to which size each way of solving is tried.
    pub limits: Limits,
    /// After so many seconds without room, what becomes free is kept for a gang; `None` never does.
    pub patience_seconds: Option<NonZeroU32>,
}

/// A profile and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProfile {
    /// Names under which pods ask for this scheduler.
    pub scheduler_names: Vec<Text>,
    /// How nodes are compared for those of them that are on their own. Groups fill nodes up.
    pub profile: Profile,
}

impl NamedProfile {
    /// A profile for these names.
    pub fn new(scheduler_names: &[&str], profile: Profile) -> Self {
        Self { scheduler_names: scheduler_names.iter().map(|name| Text::from(*name)).collect(), profile }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profiles: vec![NamedProfile::new(&["tutti"], Profile::default())],
            branches_max: 200_000,
            limits: Limits::default(),
            patience_seconds: NonZeroU32::new(PATIENCE_SECONDS),
        }
    }
}

impl Config {
    /// After how many seconds without room some is kept for a gang.
    pub(crate) fn patience(&self) -> Option<i64> {
        self.patience_seconds.map(|seconds| i64::from(seconds.get()))
    }
}
