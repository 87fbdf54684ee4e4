//! What watches and looks tell of groups and composites.

use super::super::facts::{Sighting, Source, kind_of};
use super::super::{Core, UnitKey};
use super::GroupObject;
use tutti_engine::Event;
use tutti_k8s::{GroupReading, ObjectError};
use tutti_model::{Group, ObjectKey, Text, Time};

impl Core {
    /// Takes in a group or composite. One that was not understood counts as not being there: its members wait, because a
    /// guess at its minimum could start a gang in parts.
    pub(in super::super) fn unit_set(
        &mut self,
        unit: &UnitKey,
        mut reading: GroupReading,
        source: Source,
        now: Time,
    ) {
        let GroupReading { key, uid, version, .. } = &reading;
        if !self.admits(&Sighting { kind: kind_of(unit), key, uid, version }, source) {
            return;
        }
        let known = self.groups.object(unit);
        let watched = known.and_then(|known| known.watched.clone());
        if known.is_some_and(|known| known.uid != reading.uid) {
            self.unit_gone(unit, now);
        }
        self.fill_in_priority(unit, &mut reading);
        let (marks, job) = (reading.marks.clone(), reading.job.clone());
        let watched = if source == Source::Watch { Some(reading.uid.clone()) } else { watched };
        let Some(seen) = self.see_group(unit, reading, watched) else {
            return;
        };
        let changed = seen.changed;
        match unit {
            UnitKey::Composite(composite) => {
                self.tell_seen(unit, seen, now);
                if changed {
                    self.composite_changed(composite);
                }
            }
            UnitKey::Group(group) | UnitKey::Pod(group) => {
                self.gang_seen(group, &marks);
                self.tell_seen(unit, seen, now);
                if let Some(job) = job {
                    let concerned = self.job_pods.group_seen(&job, group);
                    self.read_kept(&concerned, now);
                }
            }
        }
    }

    /// A group or composite is gone.
    pub(in super::super) fn unit_gone(&mut self, unit: &UnitKey, now: Time) {
        match unit {
            UnitKey::Composite(composite) => self.composite_gone(composite, now),
            UnitKey::Group(group) | UnitKey::Pod(group) => self.group_gone(group, now),
        }
    }

    fn group_gone(&mut self, key: &ObjectKey, now: Time) {
        let unit = UnitKey::Group(key.clone());
        if self.groups.object(&unit).is_none() {
            return;
        }
        self.abort_starts_of(key, now);
        let Some(known) = self.groups.gone(&unit) else {
            return;
        };
        self.priorities.leaves(&UnitKey::Group(key.clone()));
        self.group_writes.cancel(&UnitKey::Group(key.clone()));
        self.tree_changed(key);
        self.leave_tree(&UnitKey::Group(key.clone()), now);
        self.job_pods.group_gone(key);
        self.withdraw_complaint(&known.uid);
        self.gang_gone(key, now);
        self.waits_no_longer(&UnitKey::Group(key.clone()), now);
        self.tell(Event::GroupGone(key.clone()), now);
    }

    fn composite_gone(&mut self, key: &ObjectKey, now: Time) {
        let unit = UnitKey::Composite(key.clone());
        if self.groups.object(&unit).is_none() {
            return;
        }
        self.abort_starts_below(key, now);
        let Some(known) = self.groups.gone(&unit) else {
            return;
        };
        self.priorities.leaves(&UnitKey::Composite(key.clone()));
        self.group_writes.cancel(&UnitKey::Composite(key.clone()));
        self.composite_changed(key);
        self.leave_tree(&UnitKey::Composite(key.clone()), now);
        self.withdraw_complaint(&known.uid);
        self.waits_no_longer(&unit, now);
        self.forget_row(&unit, now);
        self.tell(Event::CompositeGone(key.clone()), now);
    }

    /// Keeps what was read of a group or composite; `None` if it cannot be kept.
    fn see_group(
        &mut self,
        unit: &UnitKey,
        reading: GroupReading,
        watched: Option<Text>,
    ) -> Option<SeenGroup> {
        let GroupReading { key, uid, generation, version, group, scheduled, errors, .. } = reading;
        if !self.can_be_named(&key, &errors) {
            return None;
        }
        let (known, is_new) = self.groups.seen(unit, GroupObject::new(uid, version.clone(), generation));
        let changed = is_new || known.asks.as_deref() != group.as_ref();
        let mut childless = None;
        let mut has_moved = false;
        let mut parents = Vec::new();
        if changed {
            let before = known.asks.as_ref().map(|asks| &asks.parent);
            has_moved =
                before.is_some_and(|before| group.as_ref().is_none_or(|group| group.parent != *before));
            known.said_again_at = None;
            self.groups.set_asks(unit, group.clone().map(Box::new));
            let parent = group.as_ref().and_then(|group| group.parent.clone());
            let before = self.groups.parent(unit).cloned();
            if before != parent {
                // What it leaves may lack something from now on.
                match unit {
                    UnitKey::Composite(composite) => self.composite_changed(composite),
                    UnitKey::Group(group) | UnitKey::Pod(group) => self.tree_changed(group),
                }
                childless = self.groups.set_parent(unit, parent.as_ref());
                parents.extend([before, parent].into_iter().flatten());
            }
        }
        let known = self.groups.object_mut(unit)?;
        known.trouble = errors.first().map(|error| Text::from(error.detail()));
        known.generation = generation;
        known.watched = watched;
        known.version = version.clone();
        known.scheduled.see(scheduled);
        if known.scheduled.holds() {
            // Another scheduler has started it; what waits to be written is out of date.
            self.group_writes.cancel_unless(unit, |(_, condition)| condition.holds());
        }
        let report = !errors.is_empty() && known.reported.as_ref() != Some(&version);
        if report {
            known.reported = Some(version);
        }
        Some(SeenGroup {
            group,
            changed,
            has_moved,
            parents,
            childless,
            errors: if report { errors } else { Vec::new() },
        })
    }

    fn tell_seen(&mut self, unit: &UnitKey, seen: SeenGroup, now: Time) {
        self.forget_childless(seen.childless, now);
        match unit {
            UnitKey::Group(group) if seen.has_moved => self.abort_starts_of(group, now),
            UnitKey::Composite(composite) if seen.has_moved => self.abort_starts_below(composite, now),
            _ => {}
        }
        match (unit, seen.group.clone()) {
            (UnitKey::Composite(composite), _) => self.tell_composite(composite, now),
            (_, Some(group)) => self.tell(Event::GroupSet(Box::new(group)), now),
            (_, None) => self.tell(Event::GroupGone(unit.object().clone()), now),
        }
        for parent in &seen.parents {
            self.children_changed(parent, now);
        }
        if let UnitKey::Composite(composite) = unit
            && seen.changed
            && self.groups.is_too_large(composite)
        {
            self.say_too_large(composite, now);
        }
        if seen.changed {
            self.take_back(unit, now);
            if let UnitKey::Group(group) = unit {
                self.take_back(&self.unit_of_group(group), now);
            }
        }
        if seen.changed && seen.group.is_some() {
            self.repeat_refusal(unit, now);
        }
        if !seen.errors.is_empty() {
            self.bad_group(unit, seen.errors, now);
        }
    }
}

/// What is new about a group or composite.
struct SeenGroup {
    /// `None` if it was not understood.
    group: Option<Group>,
    /// True if its condition has to speak of another one than before.
    changed: bool,
    /// True if it is part of something else than before.
    has_moved: bool,
    /// Composites that it has become part of, or is not part of any more.
    parents: Vec<ObjectKey>,
    /// The composite that it was the last part of before.
    childless: Option<ObjectKey>,
    /// What was not understood, unless that was said already.
    errors: Vec<ObjectError>,
}
