//! Up to which size each way of solving is tried. They are configuration so that tests can force every one of them to
//! answer by itself.

/// Limits of the tiers of the solver. The defaults are what runs in earnest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Whether identical members are decided by closed forms.
    pub closed_forms: bool,
    /// Whether members without terms about each other are searched for bin by bin.
    pub cover: bool,
    /// Whether constructions are tried before a search.
    pub constructions: bool,
    /// Whether a search may decide.
    pub search: bool,
    /// Members for whom the largest number that can be placed is searched for, beyond the minimum.
    pub most_members: u32,
    /// Nodes on which that is done.
    pub most_nodes: usize,
    /// Groups of a tree for which every choice of domains is looked at.
    pub exact_groups: usize,
    /// Members of such a tree.
    pub exact_members: u32,
    /// Cells of each group of such a tree; every subset of them is looked at.
    pub exact_cells: usize,
    /// Ways to divide the members of such a tree into those who are placed and those who are not.
    pub exact_targets: usize,
    /// Whether one large group is solved for domain by domain.
    pub regions: bool,
    /// Whether large trees are placed by construction.
    pub build: bool,
    /// Domains of a preferred level that are tried before a wider one is.
    pub regions_per_level: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            closed_forms: true,
            cover: true,
            constructions: true,
            search: true,
            most_members: 32,
            most_nodes: 64,
            exact_groups: 6,
            exact_members: 64,
            exact_cells: 6,
            exact_targets: 4_096,
            regions: true,
            build: true,
            regions_per_level: 64,
        }
    }
}

impl Limits {
    /// Names of the tiers that can be forced.
    pub const TIERS: [&'static str; 7] =
        ["search", "cover", "construct", "exact", "regions", "build", "bounds"];

    /// Limits with which only one tier, and bounds, can answer as far as that is possible; nothing for an unknown name.
    /// What the tier does not decide stays undecided.
    pub fn forced(tier: &str) -> Option<Self> {
        let none = Self {
            closed_forms: false,
            cover: false,
            constructions: false,
            search: false,
            most_members: 0,
            exact_groups: 0,
            regions: false,
            build: false,
            ..Self::default()
        };
        let Self { most_members, exact_groups, .. } = Self::default();
        Some(match tier {
            // In trees, all choices of domains with a search for each.
            "search" => Self { search: true, most_members, exact_groups, ..none },
            // In trees, domain by domain.
            "cover" => Self { cover: true, search: true, most_members, regions: true, ..none },
            "construct" => Self { constructions: true, regions: true, build: true, ..none },
            "exact" => Self { constructions: true, search: true, most_members, exact_groups, ..none },
            "regions" => {
                Self { cover: true, constructions: true, search: true, most_members, regions: true, ..none }
            }
            "build" => Self { constructions: true, build: true, ..none },
            "bounds" => none,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn every_tier_has_limits_of_its_own() {
        for tier in Limits::TIERS {
            assert!(Limits::forced(tier).is_some_and(|limits| limits != Limits::default()), "{tier}");
        }
        assert_eq!(Limits::forced("magic"), None);
    }
}
