//! What is known of one kind: all its objects, and those of each owner.

use crate::view::{Key, Unread, View, controller_of};
use std::collections::{BTreeMap, BTreeSet};

/// News about one kind.
#[derive(Debug, Clone)]
pub enum Change<V> {
    /// All objects that there are. Comes first, and again whenever a watch had to start over.
    Listed(Vec<V>),
    /// An object was added or changed.
    Seen(V),
    /// An object is gone; as it was last.
    Gone(V),
}

impl<V> Change<V> {
    /// The same news about something else.
    pub fn map<W>(self, convert: impl Fn(V) -> W) -> Change<W> {
        match self {
            Self::Listed(all) => Change::Listed(all.into_iter().map(convert).collect()),
            Self::Seen(one) => Change::Seen(convert(one)),
            Self::Gone(one) => Change::Gone(convert(one)),
        }
    }
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Cache<S = Unread, T = Unread> {
    objects: BTreeMap<Key, View<S, T>>,
    /// Objects by the uid of the owner that manages them.
    owned: BTreeMap<String, BTreeSet<Key>>,
    is_listed: bool,
    /// The newest version of any object that was seen.
    version: u64,
}

impl<S, T> Default for Cache<S, T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), owned: BTreeMap::new(), is_listed: false, version: 0 }
    }
}

impl<S, T> Cache<S, T> {
    /// Takes in what happened. Returns every object that was touched, as it was before and as it is now.
    pub fn apply(&mut self, change: Change<View<S, T>>) -> Vec<(Option<View<S, T>>, Key)> {
        match change {
            Change::Listed(views) => {
                self.is_listed = true;
                let mut gone = std::mem::take(&mut self.objects);
                self.owned.clear();
                let mut touched = Vec::with_capacity(views.len());
                for view in views {
                    let key = view.key();
                    touched.push((gone.remove(&key), key));
                    self.insert(view);
                }
                touched.extend(gone.into_iter().map(|(key, view)| (Some(view), key)));
                touched
            }
            Change::Seen(view) => {
                let key = view.key();
                let before = self.remove(&key);
                self.insert(view);
                vec![(before, key)]
            }
            Change::Gone(view) => {
                self.note_version(&view);
                let key = view.key();
                vec![(self.remove(&key).or(Some(view)), key)]
            }
        }
    }

    fn insert(&mut self, view: View<S, T>) {
        self.note_version(&view);
        let key = view.key();
        if let Some(owner) = controller_of(&view.metadata) {
            self.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.objects.insert(key, view);
    }

    fn remove(&mut self, key: &Key) -> Option<View<S, T>> {
        let view = self.objects.remove(key)?;
        if let Some(owner) = controller_of(&view.metadata)
            && let Some(keys) = self.owned.get_mut(&owner.uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
        Some(view)
    }

    fn note_version(&mut self, view: &View<S, T>) {
        // Versions of one kind are ordered numbers. Where they are not, writes are waited for by time alone.
        self.version = self.version.max(view.version().parse().unwrap_or(0));
    }

    /// True once all objects were seen.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// True if a write that gave this version has been seen, or something later.
    pub fn has_seen(&self, version: u64) -> bool {
        self.version >= version
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<&View<S, T>> {
        self.objects.get(key)
    }

    /// All objects, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &View<S, T>> {
        self.objects.values()
    }

    /// All objects of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a View<S, T>> {
        let from = Key::new(namespace, "");
        self.objects.range(from..).take_while(move |(key, _)| key.namespace == namespace).map(|(_, v)| v)
    }

    /// The objects that the owner with this uid manages.
    pub fn owned_by<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a View<S, T>> {
        self.owned.get(uid).into_iter().flatten().filter_map(|key| self.objects.get(key))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(name: &str, version: u64, owner: Option<&str>) -> View {
        let owners: Vec<_> = owner
            .map(|uid| json!({"apiVersion": "v1", "kind": "K", "name": "o", "uid": uid, "controller": true}))
            .into_iter()
            .collect();
        serde_json::from_value(json!({"metadata": {
            "name": name, "namespace": "a", "resourceVersion": version.to_string(), "ownerReferences": owners,
        }}))
        .unwrap()
    }

    fn names<'a>(views: impl Iterator<Item = &'a View>) -> Vec<&'a str> {
        views.map(View::name).collect()
    }

    #[test]
    fn a_new_list_forgets_what_is_not_in_it_and_says_so() {
        let mut cache: Cache = Cache::default();
        assert!(!cache.is_listed());
        cache.apply(Change::Listed(vec![view("x", 1, Some("o")), view("y", 2, Some("o"))]));
        assert!(cache.is_listed() && cache.has_seen(2) && !cache.has_seen(3));
        assert_eq!(names(cache.owned_by("o")), ["x", "y"]);
        let touched = cache.apply(Change::Listed(vec![view("y", 5, Some("other")), view("z", 4, None)]));
        let keys: Vec<(bool, &str)> = touched.iter().map(|(b, k)| (b.is_some(), k.name.as_str())).collect();
        assert_eq!(keys, [(true, "y"), (false, "z"), (true, "x")]);
        assert_eq!(names(cache.owned_by("o")), [""; 0]);
        assert_eq!(names(cache.owned_by("other")), ["y"]);
    }

    #[test]
    fn an_object_that_changes_owners_belongs_to_the_new_one() {
        let mut cache: Cache = Cache::default();
        cache.apply(Change::Seen(view("x", 1, Some("a"))));
        cache.apply(Change::Seen(view("x", 2, Some("b"))));
        assert_eq!((cache.owned_by("a").count(), cache.owned_by("b").count()), (0, 1));
        cache.apply(Change::Gone(view("x", 3, None)));
        assert_eq!((cache.owned_by("b").count(), cache.len()), (0, 0));
        assert!(cache.has_seen(3), "a deletion has a version of its own");
    }

    #[test]
    fn a_namespace_is_a_range_of_its_own() {
        let mut cache: Cache = Cache::default();
        for namespace in ["a", "b", "a-b"] {
            let mut object = view("x", 1, None);
            object.metadata.namespace = Some(namespace.to_owned());
            cache.apply(Change::Seen(object));
        }
        assert_eq!(cache.in_namespace("a").count(), 1);
        assert_eq!(cache.iter().count(), 3);
    }
}
