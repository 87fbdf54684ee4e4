//! Which Kubernetes a cluster is like.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// The release of Kubernetes whose interface is served. It decides which versions of the workload API there
/// are, and how a pod names its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Release {
    /// Pod groups are parts of a Workload.
    V1_35,
    /// `scheduling.k8s.io/v1alpha2`
    V1_36,
    /// `scheduling.k8s.io/v1beta1` and `v1alpha3`
    V1_37,
    /// All that any of them serves, and otherwise the newest one.
    #[default]
    All,
}

impl Release {
    /// Every choice.
    pub const CHOICES: [Self; 4] = [Self::V1_35, Self::V1_36, Self::V1_37, Self::All];

    /// Minor version of Kubernetes, as `/version` says it.
    pub fn minor(self) -> u32 {
        match self {
            Self::V1_35 => 35,
            Self::V1_36 => 36,
            Self::V1_37 | Self::All => 37,
        }
    }

    /// True if what came or went with `other` is served.
    pub fn includes(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
            Self::All => "all",
        })
    }
}

/// A value for each release, made on first use.
pub(crate) struct PerRelease<T>([OnceLock<T>; Release::CHOICES.len()]);

impl<T> PerRelease<T> {
    pub(crate) const fn new() -> Self {
        Self([const { OnceLock::new() }; Release::CHOICES.len()])
    }

    pub(crate) fn get_or_init(&self, release: Release, make: impl FnOnce() -> T) -> &T {
        let [v1_35, v1_36, v1_37, all] = &self.0;
        let slot = match release {
            Release::V1_35 => v1_35,
            Release::V1_36 => v1_36,
            Release::V1_37 => v1_37,
            Release::All => all,
        };
        slot.get_or_init(make)
    }
}

/// A text that names no release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of 1.35, 1.36, 1.37 and all")]
pub struct UnknownRelease(String);

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::CHOICES.into_iter().find(|release| release.to_string() == text);
        found.ok_or_else(|| UnknownRelease(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_written_as_they_are_read() {
        for release in Release::CHOICES {
            assert_eq!(release.to_string().parse(), Ok(release));
            assert!(release.includes(release) && Release::All.includes(release));
        }
        assert!(!Release::V1_36.includes(Release::V1_37));
        assert_eq!(
            "1.34".parse::<Release>().unwrap_err().to_string(),
            "\"1.34\" is none of 1.35, 1.36, 1.37 and all"
        );
    }
}
