//! The controllers without which objects would stay for ever: dependents go when all their owners are gone,
//! a terminating namespace goes when it is empty, and events go when they are old.
//!
//! [`Janitor::step`] does what is due now and touches no clock of its own, so a simulator can call it; in a
//! live cluster [`run_janitor`] calls it whenever something was written.

use super::collector::{Collector, delete};
use super::expiry::Expiry;
use super::propagation::Propagation;
use super::remains::Remains;
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

/// What the janitor knows.
#[derive(Debug, Default)]
pub struct Janitor {
    /// How far the events of each resource have been seen; nothing for one that must be listed first.
    seen: BTreeMap<ResourceId, u64>,
    collector: Collector,
    /// Namespaces that are being deleted.
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
        more |= self.collector.step(server);
        for key in self.terminating.clone() {
            more |= self.sweep_namespace(server, &key);
        }
        more |= server.sweep_definitions();
        more | self.drop_expired(server, now)
    }

    /// Drops what is old. True if there may be more.
    fn drop_expired(&mut self, server: &ApiServer, now: Timestamp) -> bool {
        for _ in 0..EXPIRED_MAX {
            match self.expiry.next_expired(&*server.store, now) {
                Some(object) => delete(server, &object, None),
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
        self.collector.note(event);
        if event.kind != EventKind::Deleted {
            self.observe_rest(object, now);
        } else if rules::is_namespace(object.id().resource()) {
            self.terminating.remove(object.key());
        }
    }

    fn observe(&mut self, object: &Object, now: Timestamp) {
        self.collector.observe(object);
        self.observe_rest(object, now);
    }

    /// What does not concern owners.
    fn observe_rest(&mut self, object: &Object, now: Timestamp) {
        self.expiry.observe(object, now);
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
        let mut remains = Remains::default();
        let before = server.store.revision();
        for id in server.catalog.ids().filter(|id| id.resource().namespaced) {
            let range = Range { namespace: Some(&key.name), ..Range::default() };
            let page = server.store.list(id, range);
            empty &= page.objects.is_empty();
            let (left, due): (Vec<_>, Vec<_>) =
                page.objects.iter().partition(|object| metadata::is_terminating(&object.value()));
            left.iter().for_each(|object| remains.note(object));
            for object in due.iter().take(SWEEP_MAX) {
                delete(server, object, Some(Propagation::Background));
            }
            more |= due.len() > SWEEP_MAX;
        }
        // Whatever was done here is worth another look: some of it may have to wait.
        more |= server.store.revision() != before;
        if let Some(value) = remains.said_in(&namespace.value(), server.store.environment().now()) {
            let content = Content { value, managed: namespace.managed().clone() };
            let change = Change::Replace { expected: namespace.revision(), content };
            // If it was written meanwhile, the event of that write brings us back here.
            let _ = server.store.commit(Commit { id: namespaces, key: key.clone(), change, guard: None });
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
