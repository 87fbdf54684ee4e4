//! Selectors by what they require, so that a pod looks only at selectors that could select it.
//!
//! A selector is entered under one label that it requires (the one with the fewest selectors so far), in every namespace
//! that it names. A selector that requires no label is tried for every pod of its namespaces.

use crate::state::counts::SelectorId;
use rustc_hash::FxHashMap;
use tutti_model::{Labels, Operator, PodSelector, Requirement, Text};

/// Values of one label under which a selector is entered; with more it is entered under the key.
const VALUES_MAX: usize = 16;

/// All live selectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct SelectorIndex {
    by_namespace: FxHashMap<Text, Entries>,
    /// Selectors that find namespaces by label.
    anywhere: Entries,
}

#[derive(Debug, Clone, Default)]
struct Entries {
    by_label: FxHashMap<Text, FxHashMap<Text, Vec<SelectorId>>>,
    by_key: FxHashMap<Text, Vec<SelectorId>>,
    rest: Vec<SelectorId>,
}

/// Under what a selector is entered.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `None` if it finds namespaces by label.
    namespaces: Option<Vec<Text>>,
    label: Option<(Text, Vec<Text>)>,
}

impl SelectorIndex {
    /// Enters a selector that consists of these; `None` if it can select nothing.
    pub(crate) fn insert(&mut self, id: SelectorId, selectors: &[PodSelector]) -> Option<Entry> {
        let mut requirements: Vec<&Requirement> = Vec::new();
        for selector in selectors {
            requirements.extend(selector.labels.as_ref()?.requirements());
        }
        let named = selectors.iter().filter(|selector| selector.namespace_selector.is_none());
        let named = named.min_by_key(|selector| selector.namespaces.len());
        let mut namespaces = named.map(|selector| selector.namespaces.clone());
        if let Some(names) = &mut namespaces {
            names.sort_unstable();
            names.dedup();
        }
        // One namespace stands for all when it is decided which label is the rarest.
        let sample = match &namespaces {
            Some(names) => self.by_namespace.get(names.first()?),
            None => Some(&self.anywhere),
        };
        let positive = requirements.iter().filter(|r| matches!(r.operator, Operator::In | Operator::Exists));
        let rarest = positive.min_by_key(|requirement| {
            let is_broad = requirement.operator == Operator::Exists || requirement.values.len() > VALUES_MAX;
            let crowd = sample.map_or(0, |entries| entries.crowd(requirement));
            (is_broad, crowd, requirement.values.len())
        });
        let label = rarest.map(|requirement| {
            let is_few = requirement.values.len() <= VALUES_MAX;
            (requirement.key.clone(), if is_few { requirement.values.clone() } else { Vec::new() })
        });
        let entry = Entry { namespaces, label };
        self.each(&entry, |entries, label| entries.insert(id, label));
        Some(entry)
    }

    /// Takes a selector out.
    pub(crate) fn remove(&mut self, id: SelectorId, entry: &Entry) {
        self.each(entry, |entries, label| entries.remove(id, label));
        for name in entry.namespaces.iter().flatten() {
            if self.by_namespace.get(name).is_some_and(Entries::is_empty) {
                self.by_namespace.remove(name);
            }
        }
    }

    /// Selectors that could select a pod, each once and in no meaningful order.
    pub(crate) fn candidates(&self, namespace: &Text, labels: &Labels, mut visit: impl FnMut(SelectorId)) {
        for entries in self.by_namespace.get(namespace).into_iter().chain([&self.anywhere]) {
            entries.rest.iter().copied().for_each(&mut visit);
            if entries.by_label.is_empty() && entries.by_key.is_empty() {
                continue;
            }
            for (key, value) in labels.iter() {
                let by_label = entries.by_label.get(key).and_then(|values| values.get(value));
                let found = by_label.into_iter().chain(entries.by_key.get(key));
                found.flatten().copied().for_each(&mut visit);
            }
        }
    }

    /// True if the labels of namespaces decide about any selector.
    pub(crate) fn looks_at_namespaces(&self) -> bool {
        !self.anywhere.is_empty()
    }

    fn each(&mut self, entry: &Entry, mut change: impl FnMut(&mut Entries, Option<&(Text, Vec<Text>)>)) {
        let label = entry.label.as_ref();
        match &entry.namespaces {
            Some(names) => {
                for name in names {
                    change(self.by_namespace.entry(name.clone()).or_default(), label);
                }
            }
            None => change(&mut self.anywhere, label),
        }
    }
}

impl Entries {
    fn is_empty(&self) -> bool {
        self.by_label.is_empty() && self.by_key.is_empty() && self.rest.is_empty()
    }

    /// How many selectors are entered under what a requirement requires.
    fn crowd(&self, requirement: &Requirement) -> usize {
        let by_key = self.by_key.get(&requirement.key).map_or(0, Vec::len);
        let values = self.by_label.get(&requirement.key);
        let of_value = |value| values.and_then(|values| values.get(value)).map_or(0, Vec::len);
        by_key + requirement.values.iter().take(VALUES_MAX).map(of_value).sum::<usize>()
    }

    fn insert(&mut self, id: SelectorId, label: Option<&(Text, Vec<Text>)>) {
        match label {
            None => self.rest.push(id),
            Some((key, values)) if values.is_empty() => {
                self.by_key.entry(key.clone()).or_default().push(id);
            }
            Some((key, values)) => {
                let by_value = self.by_label.entry(key.clone()).or_default();
                for value in values {
                    by_value.entry(value.clone()).or_default().push(id);
                }
            }
        }
    }

    fn remove(&mut self, id: SelectorId, label: Option<&(Text, Vec<Text>)>) {
        match label {
            None => take_out(&mut self.rest, id),
            Some((key, values)) if values.is_empty() => take_out_of(&mut self.by_key, key, id),
            Some((key, values)) => {
                let Some(by_value) = self.by_label.get_mut(key) else { return };
                for value in values {
                    take_out_of(by_value, value, id);
                }
                if by_value.is_empty() {
                    self.by_label.remove(key);
                }
            }
        }
    }
}

fn take_out(ids: &mut Vec<SelectorId>, id: SelectorId) {
    if let Some(at) = ids.iter().position(|&other| other == id) {
        ids.swap_remove(at);
    }
}

fn take_out_of(lists: &mut FxHashMap<Text, Vec<SelectorId>>, name: &Text, id: SelectorId) {
    if let Some(ids) = lists.get_mut(name) {
        take_out(ids, id);
        if ids.is_empty() {
            lists.remove(name);
        }
    }
}
