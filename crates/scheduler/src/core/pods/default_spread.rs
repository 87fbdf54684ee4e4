//! Which pods do the same, by the services and the controllers that they belong to. They are spread by default.
//!
//! A pod is looked at while it waits; what it was like when it got its place stays with it, because it matters to
//! nobody else.

use super::super::Core;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_engine::Event;
use tutti_k8s::{ObjectKind, SelectorReading};
use tutti_model::{LabelSelector, ObjectKey, Pod, Text, Time};

/// A kind and an object of it.
type Object = (ObjectKind, ObjectKey);

/// Services, controllers, and the pods that wait.
#[derive(Debug, Default)]
pub(in super::super) struct DefaultSpread {
    /// Only those that select pods.
    services: BTreeMap<ObjectKey, LabelSelector>,
    controllers: BTreeMap<Object, LabelSelector>,
    /// Pods that wait on their own, and the controllers that keep them.
    waiting: BTreeMap<ObjectKey, Option<Object>>,
    /// Namespaces where pods may have become like others.
    touched: BTreeSet<Text>,
    /// Selectors in use: pods of one controller share one.
    shared: BTreeSet<Arc<LabelSelector>>,
}

impl DefaultSpread {
    /// Whom a pod is like; nothing if it does not wait on its own.
    ///
    /// Upstream's rule: labels that all services ask for that select the pod, and what its controller asks for.
    fn of(&mut self, pod: &Pod) -> Option<Arc<LabelSelector>> {
        let controller = self.waiting.get(&pod.key)?;
        let namespace = &pod.key.namespace;
        let first = ObjectKey::new(namespace.clone(), "");
        let mut like = LabelSelector::default();
        let services = self.services.range(first..).take_while(|(key, _)| key.namespace == *namespace);
        for (_, selector) in services.filter(|(_, selector)| selector.matches(&pod.labels)) {
            like.require_all(selector);
        }
        if let Some(selector) = controller.as_ref().and_then(|controller| self.controllers.get(controller)) {
            like.require_all(selector);
        }
        (!like.is_empty()).then(|| self.share(like))
    }

    fn share(&mut self, selector: LabelSelector) -> Arc<LabelSelector> {
        if let Some(shared) = self.shared.get(&selector) {
            return Arc::clone(shared);
        }
        // As often as there are twice as many as are in use, so that it costs next to nothing for each.
        if self.shared.len() >= 2 * self.waiting.len() {
            self.shared.retain(|shared| Arc::strong_count(shared) > 1);
        }
        let shared = Arc::new(selector);
        self.shared.insert(Arc::clone(&shared));
        shared
    }

    fn set(&mut self, object: Object, selector: Option<LabelSelector>) {
        let namespace = object.1.namespace.clone();
        match (object, selector) {
            ((ObjectKind::Service, key), Some(selector)) => self.services.insert(key, selector),
            ((ObjectKind::Service, key), None) => self.services.remove(&key),
            (object, Some(selector)) => self.controllers.insert(object, selector),
            (object, None) => self.controllers.remove(&object),
        };
        self.touched.insert(namespace);
    }

    fn get(&self, (kind, key): &Object) -> Option<&LabelSelector> {
        match kind {
            ObjectKind::Service => self.services.get(key),
            _ => self.controllers.get(&(*kind, key.clone())),
        }
    }

    /// A pod waits no longer.
    pub(in super::super) fn leaves(&mut self, pod: &ObjectKey) {
        self.waiting.remove(pod);
    }

    /// Names of all objects of a kind.
    pub(in super::super) fn names(&self, kind: ObjectKind) -> Vec<ObjectKey> {
        match kind {
            ObjectKind::Service => self.services.keys().cloned().collect(),
            _ => self.controllers.keys().filter(|(of, _)| *of == kind).map(|(_, key)| key.clone()).collect(),
        }
    }
}

impl Core {
    /// Takes in a service or controller. One that was not understood says nothing.
    pub(in super::super) fn selector_set(&mut self, reading: SelectorReading, now: Time) {
        let SelectorReading { kind, key, uid, selector, errors } = reading;
        let understood = self.understood(kind, &key, &uid, errors, now);
        let (object, selector) = ((kind, key), selector.filter(|_| understood));
        if self.default_spread.get(&object) != selector.as_ref() {
            self.default_spread.set(object, selector);
        }
    }

    /// A service or controller is gone.
    pub(in super::super) fn selector_gone(&mut self, kind: ObjectKind, key: &ObjectKey) {
        let object = (kind, key.clone());
        if self.default_spread.get(&object).is_some() {
            self.default_spread.set(object, None);
        }
    }

    /// Says on a pod whom it is like: now if it waits on its own, and else what it was when it got its place.
    pub(in super::super) fn set_default_spread(
        &mut self,
        pod: &mut Pod,
        controller: Option<Object>,
        waits: bool,
    ) {
        if waits && pod.group.is_none() {
            self.default_spread.waiting.insert(pod.key.clone(), controller);
        } else {
            self.default_spread.waiting.remove(&pod.key);
        }
        let Some(known) = self.pods.get_mut(&pod.key) else { return };
        if waits {
            known.like = self.default_spread.of(pod);
        }
        pod.preferences.like.clone_from(&known.like);
    }

    /// Tells of pods that wait and that have become like others, or no longer are.
    pub(in super::super) fn review_default_spread(&mut self, now: Time) {
        for namespace in std::mem::take(&mut self.default_spread.touched) {
            let first = ObjectKey::new(namespace.clone(), "");
            let near =
                self.default_spread.waiting.range(first..).take_while(|(key, _)| key.namespace == namespace);
            for key in near.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.spread_again(&key, now);
            }
        }
    }

    fn spread_again(&mut self, key: &ObjectKey, now: Time) {
        // On its way to a node it stays as it was decided on.
        if self.starts.bindings.contains(key) {
            return;
        }
        let Some(known) = self.pods.get_mut(key) else { return };
        let Some(pod) = known.pod.as_mut().filter(|pod| pod.node.is_none()) else { return };
        let like = self.default_spread.of(pod);
        if like != known.like {
            known.like.clone_from(&like);
            pod.preferences.like = like;
            let pod = pod.clone();
            self.tell(Event::PodSet(pod), now);
        }
    }
}
