//! Requests: every effect that is one becomes a future that ends in its answer, whatever happens.

use super::connections::Connections;
use super::groups::Groups;
use super::term::Term;
use crate::config::Config;
use crate::core::message::{
    Answer, BindOutcome, Effect, EventKey, GroupLookup, Lookup, StorageKey, WriteKey, WriteOutcome,
};
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource as _};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tutti_engine::Seat;
use tutti_k8s::request::{self, EventNote};
use tutti_k8s::{Capabilities, ClaimView, PodView, VolumeView, throttle};
use tutti_model::{ObjectKey, Text};

/// A request under way.
pub(super) type Request = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Longest error text that is kept.
const ERROR_CHARS_MAX: usize = 300;

/// Sends requests.
pub(super) struct Sender {
    client: Arc<Client>,
    timeout: Duration,
    /// Requests must end before another process could lead.
    term: Option<Term>,
    reporter: String,
    /// Which of several replicas reports.
    instance: String,
    groups: Groups,
}

impl Sender {
    pub(super) fn new(
        connections: &Connections,
        config: &Config,
        capabilities: &Capabilities,
        term: Option<Term>,
    ) -> Self {
        let reporter = config.scheduler_names().next().map(ToString::to_string).unwrap_or_default();
        Self {
            groups: Groups::new(connections.client.clone(), capabilities),
            client: Arc::new(connections.client.clone()),
            timeout: config.request_timeout,
            term,
            instance: connections.identity.clone().unwrap_or_else(|| reporter.clone()),
            reporter,
        }
    }

    /// When a request that is sent now must have ended. If it has to wait before it goes out, that counts.
    fn deadline(&self) -> Instant {
        let now = Instant::now();
        match self.term.as_ref().map(Term::until) {
            None => now + self.timeout,
            Some(Some(until)) => until.min(now + self.timeout),
            Some(None) => now,
        }
    }

    /// The request of an effect; `None` for effects that are none.
    pub(super) fn send(&self, effect: Effect) -> Option<Request> {
        let client = Arc::clone(&self.client);
        let deadline = self.deadline();
        Some(match effect {
            Effect::Bind(seat) => Box::pin(async move {
                let outcome = bind_outcome(within(deadline, bind(&client, &seat)).await);
                Answer::Bind { seat, outcome }
            }),
            Effect::GetPod { pod, uid } => Box::pin(async move {
                let found = match within(deadline, get_pod(&client, &pod)).await {
                    Ok(found) => found,
                    Err(failure) if failure.code() == Some(429) => {
                        Lookup::Throttled { pause: failure.pause(), why: failure.text() }
                    }
                    Err(failure) => Lookup::Unknown(failure.text()),
                };
                Answer::Pod { pod, uid, found }
            }),
            Effect::PatchGroupCondition { group, uid, version, condition } => {
                let groups = self.groups.clone();
                Box::pin(async move {
                    let set = groups.set_condition(&group, &uid, version.as_deref(), &condition);
                    let result = within(deadline, set).await;
                    write_answer(WriteKey::Group(group), result)
                })
            }
            Effect::PatchPodCondition { pod, uid, version, condition } => Box::pin(async move {
                let body = request::pod_condition_patch(&uid, Some(&version), &condition);
                let result = within(deadline, patch_pod_status(&client, &pod, body)).await;
                write_answer(WriteKey::Pod(pod), result)
            }),
            Effect::MarkDisrupted { pod, uid, condition } => Box::pin(async move {
                let body = request::pod_condition_patch(&uid, None, &condition);
                let result = within(deadline, patch_pod_status(&client, &pod, body)).await;
                write_answer(WriteKey::Eviction(pod), result)
            }),
            Effect::DeletePod { pod, uid } => Box::pin(async move {
                let result = within(deadline, delete_pod(&client, &pod, &uid)).await;
                write_answer(WriteKey::Eviction(pod), result)
            }),
            Effect::GetGroup(group) => {
                let groups = self.groups.clone();
                Box::pin(async move {
                    let found = match within(deadline, groups.get(&group)).await {
                        Ok(found) => found,
                        Err(failure) if failure.code() == Some(429) => {
                            GroupLookup::Throttled { pause: failure.pause(), why: failure.text() }
                        }
                        Err(failure) => GroupLookup::Unknown(failure.text()),
                    };
                    Answer::Group { group, found }
                })
            }
            Effect::PatchGroupMarks { group, uid, version, marks } => {
                let groups = self.groups.clone();
                Box::pin(async move {
                    let result = within(deadline, groups.set_marks(&group, &uid, &version, marks)).await;
                    write_answer(WriteKey::Marks(group), result)
                })
            }
            Effect::SelectNode { claim, uid, node } => Box::pin(async move {
                let body = Patch::Merge(request::selected_node_patch(&uid, node.as_deref()));
                let api = Api::<ClaimView>::namespaced(Client::clone(&client), &claim.namespace);
                let params = PatchParams::default();
                let sent = async { api.patch(&claim.name, &params, &body).await.map(drop) };
                let result = within(deadline, sent).await;
                write_answer(WriteKey::Storage(StorageKey::Claim(claim)), result)
            }),
            Effect::KeepVolume { volume, version, claim, uid } => Box::pin(async move {
                let body = Patch::Merge(request::kept_volume_patch(&version, &claim, &uid));
                let (api, params) = (Api::<VolumeView>::all(Client::clone(&client)), PatchParams::default());
                let sent = async { api.patch(&volume, &params, &body).await.map(drop) };
                let result = within(deadline, sent).await;
                write_answer(WriteKey::Storage(StorageKey::Volume(volume)), result)
            }),
            Effect::EmitEvent(note) => {
                let (reporter, instance) = (self.reporter.clone(), self.instance.clone());
                let key = EventKey { uid: note.regarding.uid.clone(), reason: note.reason };
                let note = self.groups.addressed(*note);
                Box::pin(async move {
                    let result = within(deadline, emit(&client, &note, &reporter, &instance)).await;
                    write_answer(WriteKey::Event(key), result)
                })
            }
            Effect::Report(_) => return None,
        })
    }
}

/// Why there is no good answer.
enum Failure {
    Kube(kube::Error),
    Timeout,
}

impl Failure {
    /// The status code, if the server answered at all.
    fn code(&self) -> Option<u16> {
        match self {
            Self::Kube(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// How long the server asks to be left alone.
    fn pause(&self) -> Option<Duration> {
        let Self::Kube(kube::Error::Api(status)) = self else {
            return None;
        };
        throttle::retry_after(status)
    }

    fn text(&self) -> Text {
        let text = match self {
            Self::Kube(kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
            Self::Kube(error) => error.to_string(),
            Self::Timeout => "no answer in time".to_owned(),
        };
        Text::from(text.chars().take(ERROR_CHARS_MAX).collect::<String>())
    }
}

async fn within<T>(
    deadline: Instant,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Failure> {
    // A future is polled before its time is looked at, and a request that is polled is sent.
    if Instant::now() >= deadline {
        return Err(Failure::Timeout);
    }
    match tokio::time::timeout_at(deadline.into(), request).await {
        Ok(result) => result.map_err(Failure::Kube),
        Err(_) => Err(Failure::Timeout),
    }
}

async fn bind(client: &Client, seat: &Seat) -> Result<(), kube::Error> {
    let Seat { pod, uid, node } = seat;
    let url = PodView::url_path(&(), Some(&pod.namespace));
    let body = serde_json::to_vec(&request::binding(pod, uid, node)).map_err(kube::Error::SerdeError)?;
    let params = PostParams::default();
    post(client, kube::core::Request::new(url).create_subresource("binding", &pod.name, &params, body)).await
}

/// Creates something of which the server tells us nothing new: that it answers with success is all there is to know. But
/// JSON the answer must be: the page of a proxy says nothing about what the server has done.
async fn post(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<(), kube::Error> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

async fn get_pod(client: &Client, pod: &ObjectKey) -> Result<Lookup, kube::Error> {
    let found = Api::<PodView>::namespaced(client.clone(), &pod.namespace).get_opt(&pod.name).await?;
    Ok(found.map_or(Lookup::Gone, |found| Lookup::Found { uid: found.uid(), node: found.read().pod.node }))
}

async fn patch_pod_status(client: &Client, pod: &ObjectKey, body: Value) -> Result<(), kube::Error> {
    let api = Api::<PodView>::namespaced(client.clone(), &pod.namespace);
    api.patch_status(&pod.name, &PatchParams::default(), &Patch::Strategic(body)).await.map(drop)
}

async fn delete_pod(client: &Client, pod: &ObjectKey, uid: &Text) -> Result<(), kube::Error> {
    let preconditions = Preconditions { uid: Some(uid.to_string()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    Api::<PodView>::namespaced(client.clone(), &pod.namespace).delete(&pod.name, &params).await.map(drop)
}

async fn emit(client: &Client, note: &EventNote, reporter: &str, instance: &str) -> Result<(), kube::Error> {
    let event = request::event(note, reporter, instance);
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let url = Event::url_path(&(), Some(&namespace));
    let body = serde_json::to_vec(&event).map_err(kube::Error::SerdeError)?;
    match post(client, kube::core::Request::new(url).create(&PostParams::default(), body)).await {
        // A repeated try after a lost answer.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other,
    }
}

/// What an answer says about whether the binding was written. Only an answer that the server gives before it
/// writes is certain; after 5xx it may have been written all the same.
fn bind_outcome(result: Result<(), Failure>) -> BindOutcome {
    match result {
        Ok(()) => BindOutcome::Done,
        Err(failure) => match failure.code() {
            Some(404 | 409) => BindOutcome::Disputed(failure.text()),
            Some(429) => BindOutcome::Throttled { pause: failure.pause(), why: failure.text() },
            Some(400..=499) => BindOutcome::Refused(failure.text()),
            // The answer was read but not understood: it was one of success.
            None if matches!(failure, Failure::Kube(kube::Error::SerdeError(_))) => {
                BindOutcome::Disputed(failure.text())
            }
            _ => BindOutcome::Unknown(failure.text()),
        },
    }
}

fn write_answer(key: WriteKey, result: Result<(), Failure>) -> Answer {
    let outcome = match result {
        Ok(()) => WriteOutcome::Done,
        Err(failure) => match failure.code() {
            Some(409) => WriteOutcome::Conflict(failure.text()),
            Some(429) => WriteOutcome::Throttled { pause: failure.pause(), why: failure.text() },
            Some(400..=499) => WriteOutcome::Rejected(failure.text()),
            _ => WriteOutcome::Failed(failure.text()),
        },
    };
    Answer::Write { key, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use kube::core::Status;

    fn api(code: u16) -> Failure {
        let status = Status { code, ..Status::default() };
        Failure::Kube(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn only_what_is_refused_before_the_write_is_certain() {
        assert_eq!(bind_outcome(Ok(())), BindOutcome::Done);
        assert!(matches!(bind_outcome(Err(api(429))), BindOutcome::Throttled { .. }));
        for code in [400, 401, 403, 422] {
            assert!(matches!(bind_outcome(Err(api(code))), BindOutcome::Refused(_)), "{code}");
        }
        for code in [404, 409] {
            assert!(matches!(bind_outcome(Err(api(code))), BindOutcome::Disputed(_)), "{code}");
        }
        for code in [500, 502, 503, 504] {
            assert!(matches!(bind_outcome(Err(api(code))), BindOutcome::Unknown(_)), "{code}");
        }
        assert!(matches!(bind_outcome(Err(Failure::Timeout)), BindOutcome::Unknown(_)));
    }

    #[tokio::test]
    async fn the_page_of_a_proxy_does_not_say_that_a_pod_is_bound() {
        for (code, body) in [(200, "<html>"), (302, "<html>"), (302, ""), (201, "")] {
            let proxy = tower::service_fn(move |_: http::Request<Body>| async move {
                http::Response::builder().status(code).body(Body::from(body.as_bytes().to_vec()))
            });
            let seat = Seat { pod: ObjectKey::new("a", "p"), uid: "u".into(), node: "n".into() };
            let answer = bind(&Client::new(proxy, "default"), &seat).await;
            let outcome = bind_outcome(answer.map_err(Failure::Kube));
            assert!(matches!(outcome, BindOutcome::Disputed(_)), "{code} {body:?}: {outcome:?}");
        }
    }

    #[tokio::test]
    async fn a_request_whose_time_is_over_is_not_sent() {
        let sent = std::cell::Cell::new(false);
        let request = async {
            sent.set(true);
            Ok(())
        };
        let answer = within(Instant::now(), request).await;
        assert!(matches!(answer, Err(Failure::Timeout)) && !sent.get(), "another process may lead by now");
    }

    #[test]
    fn writes_that_can_never_succeed_are_not_repeated() {
        let outcome = |code| match write_answer(WriteKey::Pod(ObjectKey::new("a", "b")), Err(api(code))) {
            Answer::Write { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        };
        for code in [403, 404, 422] {
            assert!(matches!(outcome(code), WriteOutcome::Rejected(_)), "{code}");
        }
        assert!(matches!(outcome(429), WriteOutcome::Throttled { .. }));
        assert!(matches!(outcome(409), WriteOutcome::Conflict(_)));
        for code in [500, 503] {
            assert!(matches!(outcome(code), WriteOutcome::Failed(_)), "{code}");
        }
    }
}
