//! Which annotations a group gets from what it is made of: a Job, a template of a Workload, the Workload.
//!
//! Templates have no annotations of their own. So a Workload speaks for all its templates by `tutti.dev/NAME`, and for one
//! of them by `TEMPLATE.tutti.dev/NAME`. Who is nearer is heard first: the object that the group is for, then its
//! template, then the Workload. Whoever says something about levels says all about levels, in whatever words, and so for
//! slices and for spreading. What a Workload says of all its templates is heard by those that it can mean: slices by
//! groups, spreading by composites.
//!
//! Values are handed on as they are. What is wrong with one is said on the group that has it, which alone waits for it.

use crate::marks::PREFIX;
use crate::topology::{Aspect, aspect};
use std::collections::{BTreeMap, BTreeSet};

/// Annotations by name.
pub type Annotations = BTreeMap<String, String>;

/// The annotations about topology of a group that is made for an object, such as a Job.
pub fn of_object(own: &Annotations) -> Annotations {
    nearest_first(&[own])
}

/// What is made of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A group of pods.
    Group,
    /// A group of groups.
    Composite,
}

impl Part {
    fn hears(self, aspect: Aspect) -> bool {
        match aspect {
            Aspect::Levels => true,
            Aspect::Slices => self == Self::Group,
            Aspect::Spread => self == Self::Composite,
        }
    }
}

/// The annotations about topology of what is made of a template of a Workload, for an object with annotations of its
/// own.
pub fn of_template(own: &Annotations, workload: &Annotations, template: &str, part: Part) -> Annotations {
    let prefix = format!("{template}.{PREFIX}");
    let for_template = workload.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(&prefix)?;
        Some((format!("{PREFIX}{name}"), value.clone()))
    });
    let for_all = workload.iter().filter(|(name, _)| aspect(name).is_some_and(|aspect| part.hears(aspect)));
    let for_all = for_all.map(|(name, value)| (name.clone(), value.clone()));
    nearest_first(&[own, &for_template.collect(), &for_all.collect()])
}

fn nearest_first(sources: &[&Annotations]) -> Annotations {
    let mut told: BTreeSet<Aspect> = BTreeSet::new();
    let mut all = Annotations::new();
    for source in sources {
        let about = source.iter().filter_map(|(name, value)| Some((aspect(name)?, name, value)));
        let new: Vec<_> = about.filter(|(aspect, ..)| !told.contains(aspect)).collect();
        for (aspect, name, value) in new {
            told.insert(aspect);
            all.insert(name.clone(), value.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LEVELS, ROLE, SLICE_SIZE, SLICE_TOPOLOGY, SPREAD_MOST, is_topology_annotation};

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const KUEUE_REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";

    #[test]
    fn a_group_gets_what_its_job_asks_of_the_topology_and_nothing_else() {
        let job = annotations(&[
            (LEVELS, "rack=required"),
            (SLICE_SIZE, "8"),
            ("volcano.sh/network-topology-mode", "hard"),
            (ROLE, "leader"),
            ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ]);
        let got = of_object(&job);
        assert_eq!(
            got.keys().map(String::as_str).collect::<Vec<_>>(),
            [SLICE_SIZE, LEVELS, "volcano.sh/network-topology-mode"]
        );
        assert!(got.keys().all(|name| is_topology_annotation(name)));
    }

    #[test]
    fn a_workload_speaks_for_all_its_templates_or_for_one() {
        let workload = annotations(&[
            (LEVELS, "block=required"),
            ("workers.tutti.dev/topology-levels", "rack=required"),
            (SPREAD_MOST, "2"),
        ]);
        let none = Annotations::new();
        let workers = of_template(&none, &workload, "workers", Part::Group);
        assert_eq!(workers, annotations(&[(LEVELS, "rack=required")]), "groups are not spread");
        let all = of_template(&none, &workload, "all", Part::Composite);
        assert_eq!(all, annotations(&[(LEVELS, "block=required"), (SPREAD_MOST, "2")]));
    }

    #[test]
    fn who_is_nearer_says_all_about_an_aspect_in_whatever_words() {
        let own = annotations(&[(KUEUE_REQUIRED, "rack")]);
        let workload =
            annotations(&[(LEVELS, "block=required"), (SLICE_SIZE, "4"), (SLICE_TOPOLOGY, "host")]);
        // Ours would be heard before Kueue's, if both were there.
        let got = of_template(&own, &workload, "t", Part::Group);
        assert_eq!(
            got,
            annotations(&[(KUEUE_REQUIRED, "rack"), (SLICE_SIZE, "4"), (SLICE_TOPOLOGY, "host")])
        );
    }
}
