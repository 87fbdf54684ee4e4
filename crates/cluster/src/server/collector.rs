//! Owners and dependents: who goes because somebody else goes, who waits for whom, and who is set free.

use super::delete::DeleteOptions;
use super::managers::Ownership;
use super::path::Target;
use super::propagation::{self, FOREGROUND, ORPHAN, Propagation};
use super::query::FieldValidation;
use super::update::Candidate;
use super::{ApiServer, WriteOptions, metadata};
use crate::registry::ResourceId;
use crate::store::{Event, EventKind, Key, Object};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The name under which references to owners and finalizers are taken away.
const MANAGER: &str = "kube-controller-manager";

/// Where an object is.
pub(super) type Place = (ResourceId, Key);

/// What depends on what.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// Dependents by the uid of an owner.
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// Owners that wait for their dependents, by uid.
    waiting: BTreeMap<String, Place>,
    /// Objects that have to be looked at.
    suspects: BTreeSet<Place>,
}

/// What became of the owners of an object.
#[derive(Debug, Default)]
struct Owners<'a> {
    /// Those that live.
    solid: usize,
    /// Uids of those that are gone.
    dangling: Vec<&'a str>,
    /// Uids of those that wait for their dependents to go.
    waiting: Vec<&'a str>,
}

impl Collector {
    /// Takes in a change of an object.
    pub(super) fn note(&mut self, event: &Event) {
        let object = &event.object;
        let place = (object.id(), object.key().clone());
        if let Some(previous) = &event.previous {
            for uid in owner_uids(&previous.value()) {
                if let Some(places) = self.dependents.get_mut(uid) {
                    places.remove(&place);
                    if places.is_empty() {
                        self.dependents.remove(uid);
                    }
                }
                // Whoever waits may have waited for this one.
                self.suspects.extend(self.waiting.get(uid).cloned());
            }
        }
        if event.kind == EventKind::Deleted {
            let value = object.value();
            let uid = metadata::text(&value, "uid");
            self.waiting.remove(uid);
            self.suspects.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        } else {
            self.observe(object);
        }
    }

    /// Takes in an object as it is.
    pub(super) fn observe(&mut self, object: &Object) {
        let value = object.value();
        let place = (object.id(), object.key().clone());
        let mut owned = false;
        for uid in owner_uids(&value) {
            self.dependents.entry(uid.to_owned()).or_default().insert(place.clone());
            owned = true;
        }
        if is_waiting(&value) {
            self.waiting.insert(metadata::text(&value, "uid").to_owned(), place.clone());
            self.suspects.insert(place);
        } else if owned && !metadata::is_terminating(&value) {
            // It may have been created after its owners went.
            self.suspects.insert(place);
        }
    }

    /// Does what is due. True if something was done, so that there may be more to do.
    pub(super) fn step(&mut self, server: &ApiServer) -> bool {
        let mut more = false;
        for (id, key) in std::mem::take(&mut self.suspects) {
            let Some(object) = server.store.get(id, &key) else { continue };
            let value = object.value();
            if is_waiting(&value) {
                more |= self.release(server, &object, &value);
            } else if !metadata::is_terminating(&value) {
                more |= self.judge(server, &object, &value);
            }
        }
        more
    }

    /// An object that lives: it goes if nobody owns it any longer.
    fn judge(&self, server: &ApiServer, object: &Object, value: &Value) -> bool {
        let owners = owners_of(server, object, value);
        if owners.solid > 0 {
            let gone: Vec<&str> = owners.dangling.into_iter().chain(owners.waiting).collect();
            return !gone.is_empty() && remove_owners(server, object, &gone);
        }
        if owners.dangling.is_empty() && owners.waiting.is_empty() {
            return false;
        }
        // Where the owner waits, dependents of dependents are waited for as well.
        let has_dependents = self.dependents.contains_key(metadata::text(value, "uid"));
        let foreground = !owners.waiting.is_empty() && has_dependents;
        delete(server, object, foreground.then_some(Propagation::Foreground));
        true
    }

    /// An owner that waits for its dependents: they are sent on their way, and it goes when none holds it.
    fn release(&mut self, server: &ApiServer, owner: &Object, value: &Value) -> bool {
        let uid = metadata::text(value, "uid");
        let dependents = self.dependents.get(uid).cloned().unwrap_or_default();
        let orphan = metadata::finalizers(value).any(|f| f == ORPHAN);
        let mut held = false;
        let mut done = false;
        for (id, key) in dependents {
            let Some(dependent) = server.store.get(id, &key) else { continue };
            if orphan {
                // One that cannot be written now holds its owner until it can.
                done |= remove_owners(server, &dependent, &[uid]);
                let now = server.store.get(id, &key);
                held |= now.is_some_and(|now| owner_uids(&now.value()).any(|owner| owner == uid));
                continue;
            }
            let dependent = dependent.value();
            let blocks = |owner: &&Value| owner.get("blockOwnerDeletion") == Some(&Value::Bool(true));
            let is_this = |owner: &&Value| owner.get("uid").and_then(Value::as_str) == Some(uid);
            held |= owners(&dependent).filter(is_this).any(|owner| blocks(&owner));
            if !metadata::is_terminating(&dependent) {
                self.suspects.insert((id, key));
                done = true;
            }
        }
        if held {
            return done;
        }
        self.waiting.remove(uid);
        change(server, owner, |object| {
            let kept: Vec<String> = metadata::finalizers(object)
                .filter(|f| !matches!(*f, FOREGROUND | ORPHAN))
                .map(str::to_owned)
                .collect();
            propagation::set_finalizers(object, &kept);
        })
    }
}

/// True if an object that is being deleted waits for its dependents.
fn is_waiting(object: &Value) -> bool {
    metadata::is_terminating(object) && metadata::finalizers(object).any(|f| matches!(f, FOREGROUND | ORPHAN))
}

/// Deletes an object, unless it is another one by now.
pub(super) fn delete(server: &ApiServer, object: &Object, propagation: Option<Propagation>) {
    let uid = Some(metadata::text(&object.value(), "uid").to_owned());
    let options = DeleteOptions { uid, propagation, ..DeleteOptions::default() };
    if let Err(error) = server.delete(&target_of(object), &options) {
        // Gone or replaced by another: nothing is left to do. Anything else shows up again with its next event.
        tracing::debug!(%error, resource = object.id().resource().plural, name = %object.key().name, "not collected");
    }
}

fn remove_owners(server: &ApiServer, object: &Object, uids: &[&str]) -> bool {
    change(server, object, |object| {
        let Some(metadata) = metadata::of_mut(object) else { return };
        let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else { return };
        owners
            .retain(|owner| !owner.get("uid").and_then(Value::as_str).is_some_and(|uid| uids.contains(&uid)));
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    })
}

/// Changes an object, unless it is another one by now. True if that worked.
fn change(server: &ApiServer, object: &Object, edit: impl Fn(&mut Value)) -> bool {
    let options = WriteOptions { dry_run: false, validation: FieldValidation::Ignore, manager: MANAGER };
    let uid = metadata::text(&object.value(), "uid").to_owned();
    let changed = server.update(&target_of(object), options, |stored| {
        let mut value = Value::clone(&stored.value());
        edit(&mut value);
        metadata::set(&mut value, "uid", Value::String(uid.clone()));
        Ok(Candidate { value, ownership: Ownership::Tracked { base: None } })
    });
    if let Err(error) = &changed {
        tracing::debug!(%error, resource = object.id().resource().plural, name = %object.key().name, "not changed");
    }
    changed.is_ok()
}

fn target_of(object: &Object) -> Target {
    let id = object.id();
    Target {
        id,
        version: id.resource().hub,
        namespace: object.key().namespace.to_string(),
        name: Some(object.key().name.to_string()),
        sub: None,
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let list = metadata::of(object).and_then(|m| m.get("ownerReferences")).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    owners(object).filter_map(|owner| owner.get("uid")?.as_str())
}

fn owners_of<'a>(server: &ApiServer, object: &Object, value: &'a Value) -> Owners<'a> {
    let mut out = Owners::default();
    for owner in owners(value) {
        let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        // Nobody can say that an owner of a kind that is not served is gone.
        let Some(id) = server.catalog.of_kind(group, text("kind")) else {
            out.solid += 1;
            continue;
        };
        let namespace = if id.resource().namespaced { &*object.key().namespace } else { "" };
        let found = server.store.get(id, &Key::new(namespace, text("name"))).map(|found| found.value());
        match found.filter(|found| metadata::text(found, "uid") == text("uid")) {
            None => out.dangling.push(text("uid")),
            Some(found) if is_waiting(&found) && metadata::finalizers(&found).any(|f| f == FOREGROUND) => {
                out.waiting.push(text("uid"));
            }
            Some(_) => out.solid += 1,
        }
    }
    out
}
