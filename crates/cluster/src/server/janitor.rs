//! The controllers without which objects would stay for ever: dependents go when all their owners are gone,
//! a terminating namespace goes when it is empty, and events go when they are old.
//!
//! [`Janitor::step`] does what is due now and touches no clock of its own, so a simulator can call it; in a
//! live cluster [`run_janitor`] calls it whenever something was written.

use super::delete::DeleteOptions;
use super::expiry::Expiry;
use super::path::Target;
use super::{ApiServer, metadata, rules};
use crate::registry::ResourceId;
use crate::store::{Change, Commit, Content, Event, EventKind, Guard, Key, Object, Range};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Events that are read at a time.
const BATCH_MAX: usize = 1024;

/// Objects that are dropped in one step because they are old.
const EXPIRED_MAX: usize = 1024;

/// Longest time without a step: objects grow old without any write.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// Objects of one namespace that are deleted in one step.
const SWEEP_MAX: usize = 1024;

/// Steps that follow each other without a pause.
const STEPS_MAX: usize = 256;

/// Shortest time between two steps. A burst of writes is looked at once.
const STEP_INTERVAL: Duration = Duration::from_millis(20);

type Place = (ResourceId, Key);

/// State of the collector: what depends on what.
#[derive(Debug, Default)]
pub struct Janitor {
    /// How far the events of each resource have been seen; nothing for one that must be listed first.
    seen: BTreeMap<ResourceId, u64>,
    /// Dependents by the uid of an owner.
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// Objects whose owners have to be looked at.
    suspects: BTreeSet<Place>,
    terminating: BTreeSet<Key>,
    expiry: Expiry,
}

/// Runs a janitor until the task is dropped.
pub async fn run_janitor(server: Arc<ApiServer>) {
    let mut janitor = Janitor::default();
    let mut changed = server.store.subscribe_all();
    loop {
        changed.borrow_and_update();
        let mut more = true;
        for _ in 0..STEPS_MAX {
            more = janitor.step(&server);
            if !more {
                break;
            }
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(STEP_INTERVAL).await;
        if !more && matches!(tokio::time::timeout(IDLE_INTERVAL, changed.changed()).await, Ok(Err(_))) {
            return;
        }
    }
}

impl Janitor {
    /// Looks at what was written since the last step and deletes what is due. True if there is more to do.
    pub fn step(&mut self, server: &ApiServer) -> bool {
        let now = server.store.environment().now();
        let mut more = false;
        for id in server.catalog.ids() {
            more |= self.catch_up(server, id, now);
        }
        for (id, key) in std::mem::take(&mut self.suspects) {
            if let Some(object) = server.store.get(id, &key)
                && is_orphan(server, &object)
            {
                delete(server, &object);
                more = true;
            }
        }
        for key in self.terminating.clone() {
            more |= self.sweep_namespace(server, &key);
        }
        more | self.drop_expired(server, now)
    }

    /// Drops what is old. True if there may be more.
    fn drop_expired(&mut self, server: &ApiServer, now: Timestamp) -> bool {
        for _ in 0..EXPIRED_MAX {
            match self.expiry.next_expired(&server.store, now) {
                Some(object) => delete(server, &object),
                None => return false,
            }
        }
        true
    }

    /// Takes in the events of one resource. True if there are more.
    fn catch_up(&mut self, server: &ApiServer, id: ResourceId, now: Timestamp) -> bool {
        let known = self.seen.get(&id).and_then(|seen| server.store.events(id, *seen, BATCH_MAX).ok());
        let Some(batch) = known else {
            // The first step, or one that came so late that events were lost: start from the present state.
            let page = server.store.list(id, Range::default());
            for object in &page.objects {
                self.observe(object, now);
            }
            self.seen.insert(id, page.revision);
            return false;
        };
        for event in &batch.events {
            self.note(event, now);
        }
        self.seen.insert(id, batch.revision);
        batch.events.len() == BATCH_MAX
    }

    fn note(&mut self, event: &Event, now: Timestamp) {
        let object = &event.object;
        let place = || (object.id(), object.key().clone());
        if let Some(previous) = &event.previous {
            for uid in owner_uids(&previous.value()) {
                if let Some(places) = self.dependents.get_mut(uid) {
                    places.remove(&place());
                    if places.is_empty() {
                        self.dependents.remove(uid);
                    }
                }
            }
        }
        if event.kind == EventKind::Deleted {
            self.terminating
                .retain(|key| !(rules::is_namespace(object.id().resource()) && key == object.key()));
            if let Some(places) = self.dependents.get(metadata::text(&object.value(), "uid")) {
                self.suspects.extend(places.iter().cloned());
            }
        } else {
            self.observe(object, now);
        }
    }

    fn observe(&mut self, object: &Object, now: Timestamp) {
        self.expiry.observe(object, now);
        let place = (object.id(), object.key().clone());
        let mut owned = false;
        for uid in owner_uids(&object.value()) {
            self.dependents.entry(uid.to_owned()).or_default().insert(place.clone());
            owned = true;
        }
        if owned && !metadata::is_terminating(&object.value()) {
            // It may have been created after its owners went.
            self.suspects.insert(place);
        }
        if rules::is_namespace(object.id().resource()) && metadata::is_terminating(&object.value()) {
            self.terminating.insert(object.key().clone());
        }
    }

    /// Deletes what is in a terminating namespace, and the namespace itself once nothing is. True if some of
    /// its content was not yet asked to go.
    fn sweep_namespace(&mut self, server: &ApiServer, key: &Key) -> bool {
        let Some(namespaces) = rules::namespaces() else {
            return false;
        };
        let Some(namespace) = server.store.get(namespaces, key) else {
            self.terminating.remove(key);
            return false;
        };
        let (mut empty, mut more) = (true, false);
        for id in server.catalog.ids().filter(|id| id.resource().namespaced) {
            let range = Range { namespace: Some(&key.name), ..Range::default() };
            let page = server.store.list(id, range);
            empty &= page.objects.is_empty();
            let going = |object: &&Arc<Object>| !metadata::is_terminating(&object.value());
            let mut due = page.objects.iter().filter(going);
            for object in due.by_ref().take(SWEEP_MAX) {
                delete(server, object);
            }
            more |= due.next().is_some();
        }
        if empty && metadata::finalizers(&namespace.value()).next().is_none() {
            let managed = namespace.managed().clone();
            let last = Content { value: Value::clone(&namespace.value()), managed };
            let change = Change::Remove { expected: namespace.revision(), last };
            let guard = Some(Guard::NamespaceEmpty(Arc::clone(&key.name)));
            // If it was written or filled meanwhile, the event of that write brings us back here.
            let _ = server.store.commit(Commit { id: namespaces, key: key.clone(), change, guard });
        }
        more
    }
}

fn delete(server: &ApiServer, object: &Object) {
    let id = object.id();
    let target = Target {
        id,
        version: id.resource().hub,
        namespace: object.key().namespace.to_string(),
        name: Some(object.key().name.to_string()),
        sub: None,
    };
    let uid = Some(metadata::text(&object.value(), "uid").to_owned());
    if let Err(error) = server.delete(&target, &DeleteOptions { uid, ..DeleteOptions::default() }) {
        // Gone or replaced by another: nothing is left to do. Anything else shows up again with its next event.
        tracing::debug!(%error, resource = id.resource().plural, name = %object.key().name, "not collected");
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let list = metadata::of(object).and_then(|m| m.get("ownerReferences")).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    owners(object).filter_map(|owner| owner.get("uid")?.as_str())
}

/// True if an object has owners and none of them exists.
fn is_orphan(server: &ApiServer, object: &Object) -> bool {
    if metadata::is_terminating(&object.value()) {
        return false;
    }
    let mut owned = false;
    for owner in owners(&object.value()) {
        owned = true;
        if owner_exists(server, object, owner) {
            return false;
        }
    }
    owned
}

fn owner_exists(server: &ApiServer, object: &Object, owner: &Value) -> bool {
    let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    // Nobody can say that an owner of a kind that is not served is gone.
    let Some(id) = server.catalog.of_kind(group, text("kind")) else {
        return true;
    };
    let namespace = if id.resource().namespaced { &*object.key().namespace } else { "" };
    let found = server.store.get(id, &Key::new(namespace, text("name")));
    found.is_some_and(|found| metadata::text(&found.value(), "uid") == text("uid"))
}
