//! From Jobs to gangs: a Workload and a PodGroup for every Job that wants its pods to start together.
//!
//! [`Gangs`] decides without IO; [`run`] connects it to a cluster. Who gets what, and under which names, says
//! [`tutti_k8s::gangs`], because the scheduler has to know it, too. What is made is owned by the object it is for and
//! goes with it. The Workload comes first and the groups when it has been seen, so a crash between the two loses
//! nothing: the next look finds what is missing by its name.
//!
//! * `known`: what there is, and for whom;
//! * `make`: what is missing, as requests.

mod known;
mod make;
#[cfg(test)]
mod tests;

pub use tutti_k8s::gangs::{Api, GANG_ANNOTATION, Integration, JOB, Row};

use self::known::Known;
pub(crate) use self::known::{MADE_BY, is_ours};
pub(crate) use self::make::differs;
use crate::action::{Action, Note, Plan, Severity, Written};
use crate::cache::Change;
use crate::core::Core;
use crate::meter::Meter;
use crate::shell::{self, Watches};
use crate::view::{Key, View};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::Value;
use std::collections::BTreeMap;

/// How long the cluster's own controllers have for an object before this one acts. Times of creation are whole
/// seconds, so it is between one and two. One that comes later finds what was made here under the names that it would
/// have given, and goes on with that.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// For whom, and when.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether at all.
    pub integration: Integration,
    /// Names of the schedulers that understand groups; pods of others are left alone.
    pub scheduler_names: Vec<String>,
}

/// News from a watch.
#[derive(Debug)]
pub enum Event {
    /// About a Job.
    Owner(Change<View<Value, Value>>),
    /// About a Workload.
    Workload(Change<View<Value>>),
    /// About a group.
    Group(Change<View<Value>>),
}

/// Runs until `shutdown` completes. `manager` is who writes.
pub async fn run(
    client: Client,
    api: Api,
    options: Options,
    manager: &'static str,
    meter: Meter,
    shutdown: impl Future<Output = ()> + Send,
) {
    if options.integration == Integration::Off {
        return shutdown.await;
    }
    let gangs = Gangs::new(&JOB, api, options);
    let mut watches = Watches::new(client).add(&gangs.known.owners_resource, Event::Owner);
    if let Some(workloads) = &gangs.known.api.workloads {
        watches = watches.add(workloads, Event::Workload);
    }
    let watches = watches.add(&gangs.known.api.groups, Event::Group);
    shell::run(gangs, watches, manager, meter, shutdown).await;
}

/// The controller.
#[derive(Debug)]
pub struct Gangs {
    options: Options,
    known: Known,
    /// What was last said about objects that nothing can be made for, so that it is said once. It is kept for as long
    /// as the object is there.
    told: BTreeMap<Key, String>,
}

impl Gangs {
    /// One that has seen nothing yet.
    pub fn new(row: &'static Row, api: Api, options: Options) -> Self {
        Self { options, known: Known::new(row, api), told: BTreeMap::new() }
    }

    fn plan_owner(&mut self, key: &Key, now: Timestamp) -> Plan {
        let Some(owner) =
            self.known.owner(key).filter(|owner| !owner.is_terminating() && !owner.spec.has_ended)
        else {
            return Plan::nothing();
        };
        let serves = |name: &str| self.options.scheduler_names.iter().any(|served| served == name);
        let Some(templates) = owner.spec.templates(owner.name(), &self.known.api, serves) else {
            return Plan::nothing();
        };
        if self.known.others_act(owner) {
            return Plan::nothing();
        }
        let act_at = owner.created().checked_add(PATIENCE).unwrap_or(Timestamp::MAX);
        if self.options.integration == Integration::Auto && now < act_at {
            return Plan { look_again: Some(act_at), ..Plan::nothing() };
        }
        match self.known.users_workload(owner, templates.len()) {
            Ok(None) => self.known.make(owner, &templates),
            Ok(Some((workload, templates))) => self.known.make_groups(owner, workload, &templates),
            Err(why) => {
                let note = Note {
                    about: self.known.about(owner),
                    severity: Severity::Warning,
                    reason: "FailedWorkloadCompilation",
                    message: why.clone(),
                };
                let is_new = self.told.insert(key.clone(), why.clone()) != Some(why);
                if is_new { Plan::one(Action::Tell(note)) } else { Plan::nothing() }
            }
        }
    }
}

impl Core for Gangs {
    type Event = Event;
    /// A Job.
    type Task = Key;

    fn observe(&mut self, event: Event, _now: Timestamp) -> Vec<Key> {
        match event {
            Event::Owner(change) => {
                let keys = self.known.see_owners(change);
                for key in &keys {
                    if self.known.owner(key).is_none() {
                        self.told.remove(key);
                    }
                }
                keys
            }
            Event::Workload(change) => self.known.see_workloads(change),
            Event::Group(change) => self.known.see_groups(change),
        }
    }

    fn is_ready(&self) -> bool {
        self.known.is_listed()
    }

    fn has_seen(&self, written: &Written) -> bool {
        self.known.has_seen(written)
    }

    fn plan(&mut self, key: &Key, now: Timestamp) -> Plan {
        self.plan_owner(key, now)
    }
}
