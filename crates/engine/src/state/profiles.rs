//! Which scheduler names are served, and by which profile.

use crate::config::NamedProfile;
use crate::score::{Profile, ProfileId};
use tutti_model::Text;

/// All profiles, in the order of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Profiles(Vec<NamedProfile>);

impl Profiles {
    pub(super) fn new(profiles: Vec<NamedProfile>) -> Self {
        Self(profiles)
    }

    /// True if this scheduler is to place pods that name it so.
    pub(crate) fn serve(&self, scheduler_name: &Text) -> bool {
        self.find(scheduler_name).is_some()
    }

    /// The profile for pods that name their scheduler so. The pods of another scheduler are never compared, so theirs
    /// does not matter.
    pub(crate) fn of(&self, scheduler_name: &Text) -> (ProfileId, Option<&Profile>) {
        let found = self.find(scheduler_name);
        found.map_or((ProfileId::default(), None), |(id, named)| (id, Some(&named.profile)))
    }

    /// A name under which pods ask for this scheduler.
    pub(crate) fn own_name(&self) -> Text {
        let mut names = self.0.iter().flat_map(|named| &named.scheduler_names);
        names.next().cloned().unwrap_or_default()
    }

    fn find(&self, scheduler_name: &Text) -> Option<(ProfileId, &NamedProfile)> {
        let mut numbered = (0..).map(ProfileId).zip(&self.0);
        numbered.find(|(_, named)| named.scheduler_names.contains(scheduler_name))
    }
}
