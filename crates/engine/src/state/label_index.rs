//! Pods by namespace and labels, so that a new selector looks only at pods that it could select.
//!
//! Pods of one namespace with the same labels, such as those of a Deployment, are one *label set*. Their labels are
//! kept and compared once for all of them.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::hash::Hash;
use tutti_model::{Labels, ObjectKey, Operator, PodSelector, Requirement, Text};

/// A label set, as its namespace numbers it.
type SetId = u32;

/// All pods, by namespace and labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelIndex {
    namespaces: FxHashMap<Text, Namespace>,
}

#[derive(Debug, Clone, Default)]
struct Namespace {
    sets: Vec<Option<LabelSet>>,
    vacant: Vec<SetId>,
    ids: FxHashMap<Labels, SetId>,
    /// By key and value: the sets that have this label.
    by_label: FxHashMap<Text, FxHashMap<Text, Few<SetId>>>,
}

#[derive(Debug, Clone)]
struct LabelSet {
    labels: Labels,
    /// Names of the pods.
    pods: Few<Text>,
}

impl LabelIndex {
    /// Adds a pod; returns its labels in the form that it shares with others.
    pub(crate) fn insert(&mut self, pod: &ObjectKey, labels: &Labels) -> Labels {
        self.namespaces.entry(pod.namespace.clone()).or_default().insert(&pod.name, labels)
    }

    /// Removes a pod that was added with these labels.
    pub(crate) fn remove(&mut self, pod: &ObjectKey, labels: &Labels) {
        if let Some(namespace) = self.namespaces.get_mut(&pod.namespace) {
            namespace.remove(&pod.name, labels);
            if namespace.ids.is_empty() {
                self.namespaces.remove(&pod.namespace);
            }
        }
    }

    /// Pods that every one of these selectors selects.
    pub(crate) fn selected<'a>(
        &self,
        selectors: &[PodSelector],
        labels_of: impl Fn(&Text) -> &'a Labels,
    ) -> BTreeSet<ObjectKey> {
        let mut found = BTreeSet::new();
        let Some(requirements) = requirements(selectors) else { return found };
        let mut visit = |name: &Text, namespace: &Namespace| {
            if selectors.iter().all(|selector| selector.reaches(name, labels_of(name))) {
                namespace.select(name, &requirements, &mut found);
            }
        };
        let named = selectors.iter().filter(|selector| selector.namespace_selector.is_none());
        match named.min_by_key(|selector| selector.namespaces.len()) {
            Some(selector) => {
                for name in &selector.namespaces {
                    if let Some(namespace) = self.namespaces.get(name) {
                        visit(name, namespace);
                    }
                }
            }
            None => self.namespaces.iter().for_each(|(name, namespace)| visit(name, namespace)),
        }
        found
    }

    /// Pods of a namespace.
    pub(crate) fn in_namespace(&self, name: &Text) -> BTreeSet<ObjectKey> {
        let mut found = BTreeSet::new();
        if let Some(namespace) = self.namespaces.get(name) {
            namespace.select(name, &[], &mut found);
        }
        found
    }
}

/// All conditions on a pod's labels; `None` if no pod can be selected.
fn requirements(selectors: &[PodSelector]) -> Option<Vec<&Requirement>> {
    let mut all = Vec::new();
    for selector in selectors {
        all.extend(selector.labels.as_ref()?.requirements());
    }
    Some(all)
}

impl Namespace {
    fn insert(&mut self, pod: &Text, labels: &Labels) -> Labels {
        if let Some(&id) = self.ids.get(labels)
            && let Some(set) = &mut self.sets[id as usize]
        {
            set.pods.insert(pod.clone());
            return set.labels.clone();
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.sets.push(None);
            self.sets.len() as SetId - 1
        });
        for (key, value) in labels.pairs() {
            if !self.by_label.contains_key(key) {
                self.by_label.insert(key.clone(), FxHashMap::default());
            }
            let Some(values) = self.by_label.get_mut(key) else { continue };
            match values.get_mut(value) {
                Some(sets) => sets.insert(id),
                None => {
                    values.insert(value.clone(), Few::One(id));
                }
            }
        }
        self.sets[id as usize] = Some(LabelSet { labels: labels.clone(), pods: Few::One(pod.clone()) });
        self.ids.insert(labels.clone(), id);
        labels.clone()
    }

    fn remove(&mut self, pod: &Text, labels: &Labels) {
        let Some(&id) = self.ids.get(labels) else { return };
        let slot = &mut self.sets[id as usize];
        if !slot.as_mut().is_some_and(|set| set.pods.remove(pod)) {
            return;
        }
        *slot = None;
        self.vacant.push(id);
        self.ids.remove(labels);
        for (key, value) in labels.pairs() {
            let Some(values) = self.by_label.get_mut(key) else { continue };
            if values.get_mut(value).is_some_and(|sets| sets.remove(&id)) {
                values.remove(value);
            }
            if values.is_empty() {
                self.by_label.remove(key);
            }
        }
    }

    /// Adds the pods whose labels meet all requirements.
    fn select(&self, namespace: &Text, requirements: &[&Requirement], found: &mut BTreeSet<ObjectKey>) {
        let mut add = |set: &LabelSet| {
            let labels = &set.labels;
            if requirements.iter().all(|requirement| requirement.matches(labels.get(&requirement.key))) {
                set.pods.for_each(|name| {
                    found.insert(ObjectKey { namespace: namespace.clone(), name: name.clone() });
                });
            }
        };
        let positive = requirements.iter().filter_map(|requirement| self.with(requirement));
        let fewest = positive.min_by_key(|lists| lists.iter().map(|sets| sets.len()).sum::<usize>());
        match fewest {
            Some(lists) => {
                for sets in lists {
                    sets.for_each(|&id| {
                        if let Some(set) = &self.sets[id as usize] {
                            add(set);
                        }
                    });
                }
            }
            None => self.sets.iter().flatten().for_each(add),
        }
    }

    /// The sets that meet a requirement, each once; `None` if it can be met by pods without such a label.
    fn with(&self, requirement: &Requirement) -> Option<Vec<&Few<SetId>>> {
        let by_value = self.by_label.get(&requirement.key);
        match requirement.operator {
            Operator::In => {
                let of_value = |value| by_value.and_then(|by_value| by_value.get(value));
                Some(requirement.values.iter().filter_map(of_value).collect())
            }
            Operator::Exists => Some(by_value.into_iter().flat_map(FxHashMap::values).collect()),
            _ => None,
        }
    }
}

/// A set that mostly has one element.
#[derive(Debug, Clone)]
enum Few<T> {
    One(T),
    Many(Box<FxHashSet<T>>),
}

impl<T: Clone + Eq + Hash> Few<T> {
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(all) => all.len(),
        }
    }

    fn insert(&mut self, element: T) {
        match self {
            Self::One(one) if *one == element => {}
            Self::One(one) => *self = Self::Many(Box::new([one.clone(), element].into_iter().collect())),
            Self::Many(all) => {
                all.insert(element);
            }
        }
    }

    /// Takes an element out; true if the set is empty now and must not be used any more.
    fn remove(&mut self, element: &T) -> bool {
        match self {
            Self::One(one) => one == element,
            Self::Many(all) => {
                all.remove(element);
                all.is_empty()
            }
        }
    }

    fn for_each(&self, visit: impl FnMut(&T)) {
        match self {
            Self::One(one) => std::iter::once(one).for_each(visit),
            Self::Many(all) => all.iter().for_each(visit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::LabelSelector;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    /// Namespace, name and labels of a pod.
    type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    fn index(pods: &[Row<'_>]) -> LabelIndex {
        let mut index = LabelIndex::default();
        for (namespace, name, pairs) in pods {
            index.insert(&ObjectKey::new(*namespace, *name), &labels(pairs));
        }
        index
    }

    fn names(found: BTreeSet<ObjectKey>) -> Vec<String> {
        found.into_iter().map(|key| key.to_string()).collect()
    }

    fn in_a(selector: LabelSelector) -> [PodSelector; 1] {
        [PodSelector::in_namespace(&"a".into(), Some(selector))]
    }

    #[test]
    fn a_selector_finds_the_pods_of_its_namespace_that_have_what_it_requires() {
        let index = index(&[
            ("a", "web-0", &[("app", "web"), ("index", "0")]),
            ("a", "web-1", &[("app", "web"), ("index", "1")]),
            ("a", "db", &[("app", "db")]),
            ("a", "bare", &[]),
            ("b", "web", &[("app", "web")]),
        ]);
        let none = Labels::default();
        let found = |selector: LabelSelector| names(index.selected(&in_a(selector), |_| &none));
        assert_eq!(found(LabelSelector::of_labels([("app", "web")])), ["a/web-0", "a/web-1"]);
        assert_eq!(found(LabelSelector::of_labels([("app", "web"), ("index", "1")])), ["a/web-1"]);
        assert_eq!(found(LabelSelector::of_labels([("app", "mail")])), [""; 0]);
        let mut others = LabelSelector::default();
        others.exclude_value("app", "web");
        assert_eq!(found(others), ["a/bare", "a/db"]);
        assert_eq!(found(LabelSelector::default()).len(), 4);
        let has_index = Requirement::new("index", Operator::Exists, vec![]);
        let has_index = has_index.and_then(|requirement| LabelSelector::new([requirement]));
        assert_eq!(has_index.map(found), Ok(vec!["a/web-0".to_owned(), "a/web-1".to_owned()]));
        let nobody = [PodSelector::in_namespace(&"a".into(), None)];
        assert!(index.selected(&nobody, |_| &none).is_empty(), "an absent selector selects nothing");
    }

    #[test]
    fn namespaces_are_found_by_their_labels_too() {
        let index = index(&[("a", "p", &[("app", "x")]), ("b", "p", &[("app", "x")]), ("c", "p", &[])]);
        let (none, team) = (Labels::default(), labels(&[("team", "ml")]));
        let [mut selector] = in_a(LabelSelector::of_labels([("app", "x")]));
        selector.namespace_selector = Some(LabelSelector::of_labels([("team", "ml")]));
        let of = |name: &Text| if name.as_ref() == "a" { &none } else { &team };
        assert_eq!(names(index.selected(&[selector], of)), ["a/p", "b/p"], "by name and by label");
    }

    #[test]
    fn pods_with_equal_labels_share_them_and_nothing_is_left_of_pods_that_are_gone() {
        let mut index = LabelIndex::default();
        let (one, two) = (ObjectKey::new("a", "1"), ObjectKey::new("a", "2"));
        let shared = index.insert(&one, &labels(&[("app", "web")]));
        let again = index.insert(&two, &labels(&[("app", "web")]));
        assert!(std::ptr::eq(shared.pairs(), again.pairs()));
        index.remove(&one, &shared);
        assert_eq!(names(index.in_namespace(&"a".into())), ["a/2"]);
        index.remove(&two, &shared);
        assert!(index.namespaces.is_empty());
    }
}
