//! Priorities of groups that name only a class. Kubernetes' own API server fills in what the class stands for; where it
//! does not, that is done here.
//!
//! What a class stood for when its group was first understood stays, as it would if it had been filled in.

use super::super::facts::{Source, cluster_key, kind_of};
use super::super::{Core, UnitKey};
use std::collections::BTreeMap;
use tutti_k8s::group::PRIORITY_CLASS;
use tutti_k8s::{GroupReading, ObjectError, ObjectKind, PriorityClassReading};
use tutti_model::{ModelError, ObjectKey, Text, Time};

/// Classes, and groups that wait for one.
#[derive(Debug, Default)]
pub(in super::super) struct Priorities {
    classes: BTreeMap<Text, i32>,
    /// As they were read.
    waiting: BTreeMap<UnitKey, GroupReading>,
}

impl Priorities {
    /// Names of all classes.
    pub(in super::super) fn names(&self) -> Vec<ObjectKey> {
        self.classes.keys().map(cluster_key).collect()
    }

    /// A group is gone.
    pub(in super::super) fn leaves(&mut self, unit: &UnitKey) {
        self.waiting.remove(unit);
    }
}

impl Core {
    pub(in super::super) fn priority_class_set(&mut self, reading: PriorityClassReading, now: Time) {
        let PriorityClassReading { name, value, uid, errors } = reading;
        let understood = self.understood(ObjectKind::PriorityClass, &cluster_key(&name), &uid, errors, now);
        match value.filter(|_| understood) {
            Some(value) => {
                self.priorities.classes.insert(name.clone(), value);
                self.ask_groups_again(|class| *class == name, now);
            }
            None => self.priority_class_gone(&name),
        }
    }

    pub(in super::super) fn priority_class_gone(&mut self, name: &Text) {
        self.priorities.classes.remove(name);
    }

    /// All classes are known, or will never be.
    pub(in super::super) fn priority_classes_listed(&mut self, now: Time) {
        self.ask_groups_again(|_| true, now);
    }

    fn ask_groups_again(&mut self, names: impl Fn(&Text) -> bool, now: Time) {
        let concerned = |reading: &GroupReading| reading.priority_class.as_ref().is_some_and(&names);
        let waiting = self.priorities.waiting.iter().filter(|(_, reading)| concerned(reading));
        let waiting: Vec<(UnitKey, GroupReading)> = waiting.map(|(u, r)| (u.clone(), r.clone())).collect();
        for (unit, reading) in waiting {
            self.unit_set(&unit, reading, Source::Kept, now);
        }
    }

    /// Fills in the priority of a group or composite that names only its class. Without the class it is not understood.
    pub(in super::super) fn fill_in_priority(&mut self, unit: &UnitKey, reading: &mut GroupReading) {
        self.priorities.waiting.remove(unit);
        let Some(class) = reading.priority_class.clone() else { return };
        let Some(group) = &mut reading.group else { return };
        let known = self.groups.object(unit).filter(|known| known.uid == reading.uid);
        let filled_in = known.and_then(|known| known.asks.as_ref()?.priority);
        group.priority = filled_in.or_else(|| self.priorities.classes.get(&class).copied());
        // Where classes cannot be read, members have the last word.
        if group.priority.is_some() || !self.may_be_listed(ObjectKind::PriorityClass) {
            return;
        }
        self.priorities.waiting.insert(unit.clone(), reading.clone());
        reading.group = None;
        if !self.unlisted.contains(&ObjectKind::PriorityClass) {
            let message = format!("there is no priority class {class:?}; the group waits for it");
            let error = ModelError::new(PRIORITY_CLASS, message);
            reading.errors.push(ObjectError::new(kind_of(unit), reading.key.clone(), error));
        }
    }
}
