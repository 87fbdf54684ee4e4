//! Groups out of the templates of Workloads, for whoever asks by annotations (KEP-6089): a PodGroup for every Job or pod
//! that names a template, and the CompositePodGroups around it.
//!
//! [`Stamps`] decides without IO; [`run`] connects it to a cluster. Every object has a name that follows from who asks
//! for it, and composites come before what is in them, so a crash between two creations loses nothing: the next look
//! finds what is missing.
//!
//! * `reference`: what an annotated object asks for;
//! * `template`: where that is in a Workload;
//! * `known`: what there is;
//! * `make`: what is missing, as requests.

mod known;
mod make;
mod reference;
mod template;
#[cfg(test)]
mod tests;

pub use self::reference::{JobView, PARENT, PodView, TEMPLATE, WORKLOAD};

use self::known::{Known, Made, Referrer};
use self::make::Missing;
use self::reference::{Reference, Target};
use crate::action::{Action, Note, Plan, Severity, Written};
use crate::cache::Change;
use crate::core::Core;
use crate::gangs::{Api, Integration};
use crate::meter::Meter;
use crate::pod::pods;
use crate::shell::{self, Watches};
use crate::view::Key;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use kube::core::ApiResource;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long the cluster's own controllers have for a Job, and whoever makes Workloads for theirs, before this one acts
/// or complains.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// For whom.
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
    Job(Change<JobView>),
    /// About a pod.
    Pod(Change<PodView>),
    /// About a Workload.
    Workload(Change<Made>),
    /// About a group.
    Group(Change<Made>),
    /// About a composite.
    Composite(Change<Made>),
}

/// Runs until `shutdown` completes. `manager` is who writes.
pub async fn run(
    client: Client,
    api: Api,
    composites: Option<&ApiResource>,
    options: Options,
    manager: &'static str,
    meter: Meter,
    shutdown: impl Future<Output = ()> + Send,
) {
    let Some(workloads) = api.workloads.clone().filter(|_| options.integration != Integration::Off) else {
        return shutdown.await;
    };
    let watches = Watches::new(client)
        .add(&ApiResource::erase::<Job>(&()), Event::Job)
        .add(&pods(), Event::Pod)
        .add(&workloads, Event::Workload)
        .add(&api.groups, Event::Group);
    let watches = match composites {
        Some(composites) => watches.add(composites, Event::Composite),
        None => watches,
    };
    let stamps = Stamps::new(api, composites.cloned().map(Arc::new), options);
    shell::run(stamps, watches, manager, meter, shutdown).await;
}

/// The controller.
#[derive(Debug)]
pub struct Stamps {
    options: Options,
    known: Known,
    /// What was last said about references that cannot be met, by the group they are for, so that it is said once.
    told: BTreeMap<Key, String>,
}

impl Stamps {
    /// One that has seen nothing yet.
    pub fn new(api: Api, composites: Option<Arc<ApiResource>>, options: Options) -> Self {
        Self { options, known: Known::new(api, composites), told: BTreeMap::new() }
    }

    /// The next step towards a group that is asked for; the error says why there is none, to the one who asks.
    fn step(&self, key: &Key, reference: &Reference, now: Timestamp) -> Result<Plan, String> {
        let act_at = reference.since.checked_add(PATIENCE).unwrap_or(Timestamp::MAX);
        let is_early = now < act_at;
        let wait = Plan { look_again: Some(act_at), ..Plan::nothing() };
        let workload = match self.known.workload(&key.namespace, &reference.target) {
            Ok(workload) => workload,
            // Whoever owns the referrer may be about to make it.
            Err(_) if is_early => return Ok(wait),
            Err(why) => return Err(why),
        };
        if let Some(group) = self.known.group(key) {
            return Ok(self.known.follow(group, workload, reference));
        }
        if !reference.is_open || workload.is_terminating() || self.has_another_group(reference) {
            return Ok(Plan::nothing());
        }
        let missing = Missing::new(&self.known, key, workload, reference)?;
        let is_jobs = reference.owner.is_some();
        if is_jobs && is_early && self.options.integration == Integration::Auto {
            // The cluster's own Job controller may do the same.
            return Ok(wait);
        }
        missing.next().map(Plan::one)
    }

    /// True if somebody else has made a group for the referrer.
    fn has_another_group(&self, reference: &Reference) -> bool {
        let uid = reference.owner_uid.as_deref();
        uid.is_some_and(|uid| self.known.groups_of_owner(uid).next().is_some())
    }

    /// Says why something cannot be done, once.
    fn complain(&mut self, key: &Key, about: &Reference, why: String) -> Plan {
        if self.told.get(key) == Some(&why) {
            return Plan::nothing();
        }
        self.told.insert(key.clone(), why.clone());
        Plan::one(Action::Tell(Note {
            about: Arc::clone(&about.about),
            severity: Severity::Warning,
            reason: "FailedGroupStamping",
            message: why,
        }))
    }

    /// Who decides about a group – the one by whom it was made, else the first – and one who asks for something else under the same name.
    fn asked(&self, key: &Key) -> Option<(Reference, Option<Reference>)> {
        let all = || self.known.references(key);
        let made_of = self.known.group(key).and_then(|group| template_of(&group.spec));
        let first = all().find(|one| made_of == Some(&one.template)).or_else(|| all().next())?;
        Some((first.clone(), all().find(|other| !other.agrees_with(first)).cloned()))
    }

    fn plan_group(&mut self, key: &Key, now: Timestamp) -> Plan {
        let Some((first, differs)) = self.asked(key) else {
            self.told.remove(key);
            return Plan::nothing();
        };
        match (self.step(key, &first, now), differs) {
            (Err(why), _) => self.complain(key, &first, why),
            (Ok(plan), Some(other)) if plan == Plan::nothing() => {
                let by = first.about.name.as_deref().unwrap_or_default();
                let why = format!("group {} is made as {by} asks for it, which is something else", key.name);
                self.complain(key, &other, why)
            }
            (Ok(plan), None) if plan == Plan::nothing() => {
                self.told.remove(key);
                plan
            }
            (Ok(plan), _) => plan,
        }
    }

    fn serves(&self) -> impl Fn(&str) -> bool {
        |name| self.options.scheduler_names.iter().any(|served| served == name)
    }
}

impl Core for Stamps {
    type Event = Event;
    /// A group that somebody asks for.
    type Task = Key;

    fn observe(&mut self, event: Event, _now: Timestamp) -> Vec<Key> {
        match event {
            Event::Job(change) => {
                let change = change.map(|job| (job.key(), Reference::of_job(&job, self.serves())));
                self.known.see_references(Referrer::Job, change)
            }
            Event::Pod(change) => {
                let change = change.map(|pod| (pod.key(), Reference::of_pod(&pod, self.serves())));
                self.known.see_references(Referrer::Pod, change)
            }
            Event::Workload(change) => self.known.see_workloads(change),
            Event::Group(change) => self.known.see_groups(change),
            Event::Composite(change) => self.known.see_composites(change),
        }
    }

    fn is_ready(&self) -> bool {
        self.known.is_listed()
    }

    fn has_seen(&self, written: &Written) -> bool {
        self.known.has_seen(written)
    }

    fn plan(&mut self, key: &Key, now: Timestamp) -> Plan {
        self.plan_group(key, now)
    }
}

/// The template that the spec of a group names, in any version.
fn template_of(group_spec: &Value) -> Option<&str> {
    let places = ["/workloadRef/templateName", "/podGroupTemplateRef/workload/podGroupTemplateName"];
    places.into_iter().find_map(|place| group_spec.pointer(place)).and_then(Value::as_str)
}

/// True if nobody but the referrers sees to a Workload, so that what they name is made for them.
fn is_by_name(target: &Target) -> bool {
    matches!(target, Target::Named(_))
}
