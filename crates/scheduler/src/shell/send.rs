//! Requests: every effect that is one becomes a future that ends in its answer, whatever happens.

use crate::config::Config;
use crate::core::message::{Answer, BindOutcome, Effect, EventKey, Lookup, WriteKey, WriteOutcome};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tutti_engine::Seat;
use tutti_k8s::request::{self, EventNote};
use tutti_k8s::{Capabilities, Condition, PodGroupView, PodView};
use tutti_model::{ObjectKey, Text};

/// A request under way.
pub(super) type Request = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Longest error text that is kept.
const ERROR_CHARS_MAX: usize = 300;

/// Sends requests.
pub(super) struct Sender {
    client: Client,
    timeout: Duration,
    reporter: String,
    pod_group: Option<kube::api::ApiResource>,
}

impl Sender {
    pub(super) fn new(client: Client, config: &Config, capabilities: &Capabilities) -> Self {
        Self {
            client,
            timeout: config.request_timeout,
            reporter: config.scheduler_names.first().cloned().unwrap_or_default(),
            pod_group: capabilities.pod_group.clone(),
        }
    }

    /// The request of an effect; `None` for effects that are none.
    pub(super) fn send(&self, effect: Effect) -> Option<Request> {
        let client = self.client.clone();
        let timeout = self.timeout;
        Some(match effect {
            Effect::Bind(seat) => Box::pin(async move {
                let outcome = bind_outcome(within(timeout, bind(client, &seat)).await);
                Answer::Bind { seat, outcome }
            }),
            Effect::GetPod { pod, uid } => Box::pin(async move {
                let found = match within(timeout, get_pod(client, &pod)).await {
                    Ok(found) => found,
                    Err(failure) => Lookup::Unknown(failure.text()),
                };
                Answer::Pod { pod, uid, found }
            }),
            Effect::PatchGroupCondition { group, uid, condition } => {
                let resource = self.pod_group.clone();
                Box::pin(async move {
                    let result =
                        within(timeout, patch_group(client, resource, &group, &uid, &condition)).await;
                    write_answer(WriteKey::Group(group), result)
                })
            }
            Effect::PatchPodCondition { pod, uid, version, condition } => Box::pin(async move {
                let body = request::pod_condition_patch(&uid, &version, &condition);
                let api = Api::<PodView>::namespaced(client, &pod.namespace);
                let params = PatchParams::default();
                let patch = Patch::Strategic(body);
                let sent = async { api.patch_status(&pod.name, &params, &patch).await.map(drop) };
                let result = within(timeout, sent).await;
                write_answer(WriteKey::Pod(pod), result)
            }),
            Effect::EmitEvent(note) => {
                let reporter = self.reporter.clone();
                Box::pin(async move {
                    let result = within(timeout, emit(client, &note, &reporter)).await;
                    let (uid, reason) = (note.regarding.uid, note.reason);
                    write_answer(WriteKey::Event(EventKey { uid, reason }), result)
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
    timeout: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(timeout, request).await {
        Ok(result) => result.map_err(Failure::Kube),
        Err(_) => Err(Failure::Timeout),
    }
}

async fn bind(client: Client, seat: &Seat) -> Result<(), kube::Error> {
    let body = request::binding(&seat.pod, &seat.uid, &seat.node);
    let api = Api::<PodView>::namespaced(client, &seat.pod.namespace);
    // The answer is a status; that it is one of success is all there is to know.
    api.create_subresource::<_, serde_json::Value>("binding", &seat.pod.name, &PostParams::default(), &body)
        .await
        .map(drop)
}

async fn get_pod(client: Client, pod: &ObjectKey) -> Result<Lookup, kube::Error> {
    let found = Api::<PodView>::namespaced(client, &pod.namespace).get_opt(&pod.name).await?;
    Ok(found.map_or(Lookup::Gone, |found| Lookup::Found { uid: found.uid(), node: found.read().pod.node }))
}

async fn patch_group(
    client: Client,
    resource: Option<kube::api::ApiResource>,
    group: &ObjectKey,
    uid: &Text,
    condition: &Condition,
) -> Result<(), kube::Error> {
    // Without the kind there is no group that could have been seen.
    let Some(resource) = resource else {
        return Ok(());
    };
    let body = request::group_condition_patch(uid, condition);
    Api::<PodGroupView>::namespaced_with(client, &group.namespace, &resource)
        .patch_status(&group.name, &PatchParams::default(), &Patch::Strategic(body))
        .await
        .map(drop)
}

async fn emit(client: Client, note: &EventNote, reporter: &str) -> Result<(), kube::Error> {
    let event = request::event(note, reporter, reporter);
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let created = Api::<Event>::namespaced(client, &namespace).create(&PostParams::default(), &event).await;
    match created {
        // A repeated try after a lost answer.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(drop),
    }
}

/// What an answer says about whether the binding was written. Only an answer that the server gives before it
/// writes is certain; after 5xx it may have been written nevertheless.
fn bind_outcome(result: Result<(), Failure>) -> BindOutcome {
    match result {
        Ok(()) => BindOutcome::Done,
        Err(failure) => match failure.code() {
            Some(404 | 409) => BindOutcome::Disputed(failure.text()),
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
            // A pod that has changed is seen in its new version soon.
            Some(409 | 429) => WriteOutcome::Failed(failure.text()),
            Some(400..=499) => WriteOutcome::Rejected(failure.text()),
            _ => WriteOutcome::Failed(failure.text()),
        },
    };
    Answer::Write { key, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn api(code: u16) -> Failure {
        let status = Status { code, ..Status::default() };
        Failure::Kube(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn only_what_is_refused_before_the_write_is_certain() {
        assert_eq!(bind_outcome(Ok(())), BindOutcome::Done);
        for code in [400, 401, 403, 422, 429] {
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

    #[test]
    fn writes_that_can_never_succeed_are_not_repeated() {
        let outcome = |code| match write_answer(WriteKey::Pod(ObjectKey::new("a", "b")), Err(api(code))) {
            Answer::Write { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        };
        for code in [403, 404, 422] {
            assert!(matches!(outcome(code), WriteOutcome::Rejected(_)), "{code}");
        }
        for code in [409, 429, 500, 503] {
            assert!(matches!(outcome(code), WriteOutcome::Failed(_)), "{code}");
        }
    }
}
