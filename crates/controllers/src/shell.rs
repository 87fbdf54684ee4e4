//! Connects a [`Core`] to an API server: watches in, bounded requests out, the clock beside it.

use crate::action::{Action, Edit, Note, Plan, Severity, Told, Written};
use crate::cache::Change;
use crate::core::Core;
use crate::event;
use crate::meter::{Meter, Sent};
use crate::queue::{Outcome, Queue};
use crate::view::{Key, View};
use futures::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Plans that are carried out at once.
const PLANS_MAX: usize = 64;
/// Requests under way at once, over all plans. Enough to keep an API server busy, too few to drown it.
const REQUESTS_MAX: usize = 32;
/// A request that takes longer has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// News that are taken in before somebody looks.
const EVENTS_PER_STEP_MAX: usize = 1024;
/// The longest sleep, which also covers a clock that was set back.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Events that tell of one plan. A thousand pods are made without a thousand sentences.
const NOTES_PER_PLAN_MAX: usize = 20;
/// How long requests under way may take to finish at the end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The watches of a core.
pub struct Watches<E> {
    client: Client,
    streams: SelectAll<BoxStream<'static, E>>,
}

impl<E> fmt::Debug for Watches<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").field("count", &self.streams.len()).finish_non_exhaustive()
    }
}

impl<E: Send + 'static> Watches<E> {
    /// None yet.
    pub fn new(client: Client) -> Self {
        Self { client, streams: SelectAll::new() }
    }

    /// Watches all objects of a kind.
    #[must_use]
    pub fn add<S, T>(mut self, resource: &ApiResource, event: fn(Change<View<S, T>>) -> E) -> Self
    where
        S: DeserializeOwned + Default + Clone + fmt::Debug + Send + 'static,
        T: DeserializeOwned + Default + Clone + fmt::Debug + Send + 'static,
    {
        let api: Api<View<S, T>> = Api::all_with(self.client.clone(), resource);
        let plural = resource.plural.clone();
        let mut listing = Vec::new();
        let mut is_refused = false;
        let stream = watcher(api, watcher::Config::default()).default_backoff().filter_map(move |news| {
            let change = match news {
                Ok(watcher::Event::Init) => {
                    listing = Vec::new();
                    None
                }
                Ok(watcher::Event::InitApply(view)) => {
                    listing.push(view);
                    None
                }
                Ok(watcher::Event::InitDone) => {
                    is_refused = false;
                    Some(Change::Listed(std::mem::take(&mut listing)))
                }
                Ok(watcher::Event::Apply(view)) => Some(Change::Seen(view)),
                Ok(watcher::Event::Delete(view)) => Some(Change::Gone(view)),
                // Nothing is done without it, so somebody should know; once, until it works again.
                Err(error) if is_refusal(&error) && !is_refused => {
                    is_refused = true;
                    tracing::warn!(plural, %error, "controllers may not watch this; they wait until they may");
                    None
                }
                Err(error) => {
                    // Watches end all the time, for good reasons; the watcher starts over by itself.
                    tracing::debug!(plural, %error, "watch of controllers was interrupted");
                    None
                }
            };
            std::future::ready(change.map(event))
        });
        self.streams.push(stream.boxed());
        self
    }
}

/// Runs controllers until `shutdown` completes; then what is under way may finish within a moment. `manager` is who
/// writes, as managed fields and events tell.
pub async fn run<C: Core>(
    mut core: C,
    watches: Watches<C::Event>,
    manager: &'static str,
    meter: Meter,
    shutdown: impl Future<Output = ()> + Send,
) {
    let requests = Arc::new(Semaphore::new(REQUESTS_MAX));
    let writer = Writer { client: watches.client, manager, requests, meter: meter.clone() };
    let mut news = watches.streams.ready_chunks(EVENTS_PER_STEP_MAX);
    let mut queue: Queue<C::Task> = Queue::default();
    let mut under_way = FuturesUnordered::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let now = Timestamp::now();
        while core.is_ready()
            && under_way.len() < PLANS_MAX
            && let Some(task) = queue.pop(now, |written| core.has_seen(written))
        {
            meter.looked();
            let Plan { actions, look_again } = core.plan(&task, now);
            if actions.is_empty() {
                queue.done(&task, Outcome::default(), look_again, now);
            } else {
                let writer = writer.clone();
                under_way.push(async move { (writer.carry_out(actions).await, task, look_again) }.boxed());
            }
        }
        meter.ready(core.is_ready());
        meter.queue(queue.len(), queue.retrying());
        let due = queue.next_due().filter(|_| core.is_ready() && under_way.len() < PLANS_MAX);
        tokio::select! {
            () = &mut shutdown => break,
            Some(events) = news.next() => {
                meter.news(events.len());
                for event in events {
                    for task in core.observe(event, now) {
                        queue.ask(task, now);
                    }
                }
            }
            Some((outcome, task, look_again)) = under_way.next(), if !under_way.is_empty() => {
                queue.done(&task, outcome, look_again, Timestamp::now());
            }
            () = tokio::time::sleep(time_until(due, now)) => {}
        }
    }
    let rest = async { while under_way.next().await.is_some() {} };
    if tokio::time::timeout(SHUTDOWN_GRACE, rest).await.is_err() {
        tracing::debug!(
            manager,
            "requests were still under way at the end; whoever runs next sees what came of them"
        );
    }
    meter.end();
}

fn time_until(wake: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(wake) = wake else { return SLEEP_MAX };
    // A wake in the past is due at once.
    Duration::try_from(wake.duration_since(now)).unwrap_or(Duration::ZERO).min(SLEEP_MAX)
}

/// Sends requests.
#[derive(Clone)]
struct Writer {
    client: Client,
    manager: &'static str,
    requests: Arc<Semaphore>,
    meter: Meter,
}

/// What a request did, for the record.
#[derive(Default)]
struct Answer {
    written: Option<Written>,
    note: Option<Note>,
    failed: bool,
    /// Somebody else changed or made the object meanwhile.
    lost_race: bool,
}

impl Writer {
    async fn carry_out(self, actions: Vec<Action>) -> Outcome {
        let start = Instant::now();
        let answers = futures::stream::iter(actions)
            .map(|action| self.answer(action))
            .buffer_unordered(REQUESTS_MAX)
            .collect::<Vec<_>>()
            .await;
        let mut outcome = Outcome::default();
        let mut notes = Vec::new();
        for answer in answers {
            outcome.failed |= answer.failed;
            outcome.written.extend(answer.written);
            notes.extend(answer.note);
        }
        for note in notes.iter().take(NOTES_PER_PLAN_MAX) {
            self.tell(note).await;
        }
        self.meter.worked(start.elapsed());
        outcome
    }

    async fn answer(&self, action: Action) -> Answer {
        // Nobody closes the semaphore.
        let _permit = self.requests.acquire().await;
        let verb = match &action {
            Action::Create { .. } => "create",
            Action::Patch { .. } => "patch",
            Action::Delete { .. } => "delete",
            Action::Tell(note) => return Answer { note: Some(note.clone()), ..Answer::default() },
        };
        let answer = match tokio::time::timeout(REQUEST_TIMEOUT, self.send(action)).await {
            Ok(answer) => answer,
            Err(_) => Answer { failed: true, ..Answer::default() },
        };
        let sent = match (&answer.failed, answer.lost_race) {
            (_, true) => Sent::Conflict,
            (true, false) => Sent::Failed,
            (false, false) => Sent::Done,
        };
        self.meter.sent(verb, sent);
        answer
    }

    async fn send(&self, action: Action) -> Answer {
        match action {
            Action::Create { resource, namespace, object, told_on } => {
                self.create(&resource, &namespace, *object, told_on).await
            }
            Action::Patch { resource, key, edit } => {
                let result = self.patch(&resource, &key, &edit).await;
                self.judge(result, &resource, &key)
            }
            Action::Delete { resource, key, uid, now, first, told_on } => {
                if let Some(edit) = first
                    && let Err(error) = self.patch(&resource, &key, &edit).await
                    && code(&error) != Some(404)
                {
                    return self.judge(Err(error), &resource, &key);
                }
                let result = self.delete(&resource, &key, uid, now).await;
                let done = result.is_ok();
                let mut answer = self.judge(result, &resource, &key);
                if let (true, Some(about)) = (done, told_on) {
                    answer.note = Some(Note {
                        about,
                        severity: Severity::Normal,
                        reason: "SuccessfulDelete",
                        message: format!("Deleted {}: {}", resource.kind.to_lowercase(), key.name),
                    });
                }
                answer
            }
            Action::Tell(note) => Answer { note: Some(note), ..Answer::default() },
        }
    }

    async fn create(
        &self,
        resource: &ApiResource,
        namespace: &str,
        object: Value,
        told_on: Option<Told>,
    ) -> Answer {
        let kind = resource.kind.to_lowercase();
        let result = async {
            let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
            let params = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
            self.api(resource, namespace).create(&params, &object).await
        }
        .await;
        let note = told_on.map(|Told { about, created, failed }| {
            let (severity, reason, message) = match &result {
                Ok(object) => {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    (Severity::Normal, created, format!("Created {kind}: {name}"))
                }
                Err(error) => (Severity::Warning, failed, format!("Error creating {kind}: {error}")),
            };
            Note { about, severity, reason, message }
        });
        match result {
            Ok(created) => Answer { written: trace(resource, &created), note, ..Answer::default() },
            Err(error) if code(&error) == Some(409) => {
                // Somebody made it already, or it is being made by an answer that was lost: the watch will tell.
                Answer { failed: true, lost_race: true, ..Answer::default() }
            }
            Err(error) => {
                tracing::debug!(kind, namespace, %error, "not created");
                Answer { note, failed: true, ..Answer::default() }
            }
        }
    }

    async fn patch(
        &self,
        resource: &ApiResource,
        key: &Key,
        edit: &Edit,
    ) -> Result<Option<Written>, kube::Error> {
        let params = PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() };
        let api = self.api(resource, &key.namespace);
        let patch = if edit.strategic { Patch::Strategic(&edit.body) } else { Patch::Merge(&edit.body) };
        let written = if edit.of_status {
            api.patch_status(&key.name, &params, &patch).await?
        } else {
            api.patch(&key.name, &params, &patch).await?
        };
        Ok(trace(resource, &written))
    }

    async fn delete(
        &self,
        resource: &ApiResource,
        key: &Key,
        uid: String,
        now: bool,
    ) -> Result<Option<Written>, kube::Error> {
        let only_this = Preconditions { uid: Some(uid), resource_version: None };
        let mut params = DeleteParams::background().preconditions(only_this);
        if now {
            params = params.grace_period(0);
        }
        let deleted = self.api(resource, &key.namespace).delete(&key.name, &params).await?;
        Ok(deleted.left().and_then(|object| trace(resource, &object)))
    }

    /// A lost race is no failure: whoever won it shows up in the watch, and the next look decides anew.
    fn judge(
        &self,
        result: Result<Option<Written>, kube::Error>,
        resource: &ApiResource,
        key: &Key,
    ) -> Answer {
        match result {
            Ok(written) => Answer { written, ..Answer::default() },
            Err(error) if code(&error) == Some(404) => Answer::default(),
            Err(error) => {
                tracing::debug!(manager = self.manager, kind = resource.kind, %key, %error, "not written");
                Answer { failed: true, lost_race: code(&error) == Some(409), ..Answer::default() }
            }
        }
    }

    async fn tell(&self, note: &Note) {
        let event = event::event(note, self.manager, Timestamp::now());
        let result = async {
            let event: Event = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
            let api: Api<Event> = Api::namespaced(self.client.clone(), event::namespace_of(note));
            api.create(&PostParams::default(), &event).await
        };
        if let Ok(Err(error)) = tokio::time::timeout(REQUEST_TIMEOUT, result).await {
            tracing::debug!(%error, "cannot write an event");
        }
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, resource)
        }
    }
}

/// True if the server does not serve a kind, or not to us.
fn is_refusal(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(code(error), Some(403..=405))
}

fn trace(resource: &ApiResource, object: &DynamicObject) -> Option<Written> {
    let version = object.metadata.resource_version.as_ref()?.parse().ok()?;
    Some(Written { plural: resource.plural.clone(), version })
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
