//! Whether the API server answers those who ask it for as long as they live: watches, and the task that asks which APIs there
//! are.
//!
//! A watch that has nothing to tell looks like one that hears nothing. So it is answers that count, not events: a request
//! that is answered well shows that the watch works, even if nothing happens for days.

use super::watch::REFUSALS;
use axum::http::Request;
use kube::Client;
use kube::client::Body;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A task that was not answered well for this long knows too little for decisions to be trusted. Longer than a restart of an
/// API server takes, and than the first pauses between tries together.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(30);

/// All clients that ask and go on asking.
#[derive(Debug, Default)]
pub(crate) struct Pulses(Mutex<Vec<Weak<Pulse>>>);

impl Pulses {
    /// A client, named as in "no answer to …", until the last client that observes it is dropped. With
    /// `may_be_refused`, to hear that something is not served, or not to us, is as good as any answer.
    pub(super) fn of(&self, asker: String, may_be_refused: bool) -> Arc<Pulse> {
        let pulse = Arc::new(Pulse { asker, may_be_refused, unanswered_since: Mutex::default() });
        let mut pulses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|pulse| pulse.strong_count() > 0);
        pulses.push(Arc::downgrade(&pulse));
        pulse
    }

    /// Who has not been answered for longer than [`SILENCE_MAX`], and for how long: the one who has waited longest.
    pub(super) fn longest_silence(&self, now: Instant) -> Option<(String, Duration)> {
        let pulses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silences = pulses.iter().filter_map(Weak::upgrade).filter_map(|pulse| {
            let silence = now.saturating_duration_since(pulse.unanswered_since()?);
            Some((pulse.asker.clone(), silence))
        });
        silences.filter(|(_, silence)| *silence > SILENCE_MAX).max_by_key(|(_, silence)| *silence)
    }
}

/// One client that asks.
#[derive(Debug)]
pub(super) struct Pulse {
    asker: String,
    may_be_refused: bool,
    /// When the first request was sent of those that were not answered well since the last that was.
    unanswered_since: Mutex<Option<Instant>>,
}

impl Pulse {
    /// A client whose requests are those of this one.
    pub(super) fn observe(self: &Arc<Self>, client: &Client) -> Client {
        let (pulse, inner) = (Arc::clone(self), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (pulse, inner) = (Arc::clone(&pulse), inner.clone());
            async move {
                pulse.asks(Instant::now());
                let answer = inner.send(request).await;
                if let Ok(answer) = &answer {
                    pulse.answered(answer.status().as_u16());
                }
                answer
            }
        });
        Client::new(service, client.default_namespace())
    }

    pub(super) fn asks(&self, now: Instant) {
        self.unanswered_since.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
    }

    fn answered(&self, code: u16) {
        if (200..300).contains(&code) || (self.may_be_refused && REFUSALS.contains(&code)) {
            *self.unanswered_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn unanswered_since(&self) -> Option<Instant> {
        *self.unanswered_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body as Answer, Bytes};
    use axum::http::Response;
    use futures::StreamExt as _;
    use k8s_openapi::api::core::v1::Node;
    use kube::Api;
    use kube::runtime::watcher::{Config, watcher};
    use serde_json::json;
    use std::convert::Infallible;
    use tokio::sync::watch;

    const LATER: Duration = Duration::from_secs(31);

    /// What the server does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Mood {
        /// It has no objects, and never tells of one.
        Quiet,
        Forbids,
        Down,
        Silent,
    }

    fn server(mood: watch::Receiver<Mood>) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let mut mood = mood.clone();
            async move {
                let now = *mood.borrow_and_update();
                let answer = |code: u16, body| {
                    Response::builder().status(code).body(body).map_err(std::io::Error::other)
                };
                match now {
                    Mood::Down => Err(std::io::Error::other("connection refused")),
                    Mood::Silent => {
                        let _ = mood.changed().await;
                        Err(std::io::Error::other("connection reset"))
                    }
                    Mood::Forbids => answer(403, Answer::from(r#"{"kind":"Status","code":403}"#)),
                    Mood::Quiet if request.uri().query().is_some_and(|query| query.contains("watch=")) => {
                        let changed = async move {
                            let _ = mood.changed().await;
                            None::<Result<Bytes, Infallible>>
                        };
                        let stream = futures::stream::once(changed).filter_map(std::future::ready);
                        answer(200, Answer::from_stream(stream))
                    }
                    Mood::Quiet => {
                        let list = json!({"kind": "NodeList", "apiVersion": "v1", "items": [],
                                          "metadata": {"resourceVersion": "1"}});
                        answer(200, Answer::from(list.to_string()))
                    }
                }
            }
        });
        Client::new(service, "default")
    }

    /// A watch that goes on forever.
    fn start(pulses: &Pulses, may_be_refused: bool, client: &Client) -> tokio::task::JoinHandle<()> {
        let client = pulses.of("the watch of nodes".to_owned(), may_be_refused).observe(client);
        tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher(Api::<Node>::all(client), Config::default()));
            while let Some(event) = events.next().await {
                if event.is_err() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        })
    }

    async fn silent(pulses: &Pulses, expected: bool) {
        for _ in 0..2000 {
            if pulses.longest_silence(Instant::now() + LATER).is_some() == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!(
            "{:?}, and silence was {expected} to be found",
            pulses.longest_silence(Instant::now() + LATER)
        );
    }

    #[tokio::test]
    async fn a_watch_that_is_answered_works_even_if_it_has_nothing_to_tell() {
        let (mood, moods) = watch::channel(Mood::Quiet);
        let (pulses, client) = (Pulses::default(), server(moods));
        let task = start(&pulses, false, &client);
        silent(&pulses, false).await;
        for trouble in [Mood::Down, Mood::Silent, Mood::Forbids] {
            mood.send_replace(trouble);
            silent(&pulses, true).await;
            let found = pulses.longest_silence(Instant::now() + LATER).expect("it is silent");
            assert_eq!(found.0, "the watch of nodes");
            assert_eq!(pulses.longest_silence(Instant::now()), None, "not for long yet");
            mood.send_replace(Mood::Quiet);
            silent(&pulses, false).await;
        }
        mood.send_replace(Mood::Down);
        silent(&pulses, true).await;
        task.abort();
        silent(&pulses, false).await;
    }

    #[tokio::test]
    async fn a_kind_that_is_done_without_may_be_refused() {
        let (_mood, moods) = watch::channel(Mood::Forbids);
        let (pulses, client) = (Pulses::default(), server(moods));
        let pulse = pulses.of("the watch of services".to_owned(), true);
        let asked = Api::<Node>::all(pulse.observe(&client)).list(&kube::api::ListParams::default()).await;
        assert!(asked.is_err());
        assert_eq!(pulses.longest_silence(Instant::now() + LATER), None);
    }
}
