//! One watch: a list and changes of a kind, as inputs of the core, for as long as there is a listener.

use super::paced_watch::Rest;
use super::repeats::Repeats;
use super::workloads::Seen;
use crate::core::message::Input;
use futures::TryStreamExt as _;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use kube::{Api, Resource};
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use std::fmt;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tutti_k8s::{ObjectKind, throttle};
use tutti_model::Text;

/// Objects in one page of a list: few enough for little memory, enough for few round trips.
pub(super) const PAGE_SIZE: u32 = 2000;
/// Longest pause that a server is granted that asks to be left alone.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Answers by which a server says that it does not serve a kind, or not to us.
pub(super) const REFUSALS: [u16; 3] = [403, 404, 405];

/// How objects of one kind are told of.
pub(super) struct Watch<S, G, L, D> {
    /// What they become in the core.
    pub(super) kind: ObjectKind,
    /// What they are called in logs.
    pub(super) what: &'static str,
    pub(super) started: L,
    pub(super) done: D,
    pub(super) set: S,
    pub(super) gone: G,
    /// Counts changes that say nothing new.
    pub(super) unchanged: Counter,
    /// Of the thread that it runs on, if that may rest between changes. For a list it must not.
    pub(super) rest: Option<Rest>,
}

impl<S, G, L, D> Watch<S, G, L, D> {
    /// Watches until nobody listens any more. A watch that breaks is started again, at first soon and then more
    /// and more slowly, but never sooner than the server asks for; what was missed is found by the list that follows.
    pub(super) async fn run<V>(self, api: Api<V>, input: mpsc::Sender<Seen>)
    where
        V: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
        S: Fn(V) -> Seen,
        G: Fn(V) -> Seen,
        L: Fn() -> Seen,
        D: Fn() -> Seen,
    {
        // Lists are read at the newest version, never from a cache that may be behind. (Streamed lists would be: the
        // watcher asks for them at version 0.)
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        let watched = || watcher(api.clone(), config.clone());
        let mut stream = pin!(watched());
        let mut backoff = DefaultBackoff::default();
        let mut trouble = Trouble::default();
        let mut repeats = Repeats::default();
        // Whether a list came to its end since the kind was last said to be refused: then that has to be said again.
        let mut is_listed = false;
        // Whether a watch was refused although lists are not.
        let mut is_mute = false;
        loop {
            let event = match stream.try_next().await {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(error) => {
                    let is_refused = refusal_of(&error).is_some();
                    if (trouble.is_news(&error) || (is_refused && is_listed))
                        && let Some(next) = self.broken(&error)
                        && input.send(next).await.is_err()
                    {
                        return;
                    }
                    is_listed &= !is_refused;
                    tokio::time::sleep(pause(&error, backoff.next())).await;
                    if is_refused && ObjectKind::OPTIONAL.contains(&self.kind) {
                        // The core does without the kind from now on. Only a list tells it that it need not any more, and
                        // a watch that was refused would go on without one.
                        is_mute |= !matches!(error, watcher::Error::InitialListFailed(_));
                        stream.set(watched());
                    }
                    continue;
                }
            };
            is_listed |= matches!(event, Event::InitDone);
            is_mute &= !matches!(event, Event::Apply(_) | Event::Delete(_));
            // That a list begins says nothing yet: it may be refused. So may the watch after it.
            if !matches!(event, Event::Init) && !is_mute {
                backoff.reset();
                if std::mem::take(&mut trouble) != Trouble::None {
                    tracing::info!(kind = self.what, "watch works again");
                }
            }
            if let Some(rest) = &self.rest {
                rest.set_listed(matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)));
            }
            let may_be_left_out = matches!(event, Event::Apply(_));
            let next = match event {
                Event::Init => {
                    repeats.clear();
                    (self.started)()
                }
                Event::InitDone => (self.done)(),
                Event::InitApply(object) | Event::Apply(object) => (self.set)(object),
                Event::Delete(object) => (self.gone)(object),
            };
            if repeats.note(&next) && may_be_left_out {
                self.unchanged.inc();
                continue;
            }
            if input.send(next).await.is_err() {
                return;
            }
        }
    }

    /// A kind that is refused is the core's affair; everything else passes.
    fn broken(&self, error: &watcher::Error) -> Option<Seen> {
        if let Some(status) = refusal_of(error) {
            let why = Text::from(status.message.as_str());
            return Some(Seen::Input(Input::ListRefused { kind: self.kind, why }));
        }
        tracing::warn!(kind = self.what, %error, "watch broke; trying again");
        None
    }
}

/// What was told of a watch since it last worked. A server that is away for an hour is one piece of news; that it then
/// refuses a kind is another one, because the core may wait for that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Trouble {
    #[default]
    None,
    Broken,
    Refused,
}

impl Trouble {
    /// True if this is worse than what was told before.
    fn is_news(&mut self, error: &watcher::Error) -> bool {
        let found = if refusal_of(error).is_some() { Self::Refused } else { Self::Broken };
        let is_news = found > *self;
        *self = found.max(*self);
        is_news
    }
}

/// The answer by which the server says that it does not serve a kind, or not to us.
fn refusal_of(error: &watcher::Error) -> Option<&kube::core::Status> {
    answer_of(error).filter(|status| REFUSALS.contains(&status.code))
}

/// What the server has answered, if it was the server that refused.
fn answer_of(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

/// How long to wait before the next try.
fn pause(error: &watcher::Error, planned: Option<Duration>) -> Duration {
    let asked = answer_of(error).and_then(throttle::retry_after).unwrap_or_default();
    planned.unwrap_or(PAUSE_MAX).max(asked).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::Status;
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tutti_k8s::NamespaceView;

    #[test]
    fn trouble_is_told_once_and_a_refusal_even_if_it_comes_later() {
        let answer = |code: u16| {
            let status = Status { code, ..Status::default() };
            watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
        };
        let told = |codes: &[u16]| {
            let mut trouble = Trouble::default();
            codes.iter().map(|&code| trouble.is_news(&answer(code))).collect::<Vec<bool>>()
        };
        assert_eq!(told(&[500, 503, 500]), [true, false, false]);
        assert_eq!(told(&[500, 403, 404, 500]), [true, true, false, false]);
        assert_eq!(told(&[403, 500, 403]), [true, false, false]);
    }

    /// A server without objects that refuses the first so many watches.
    fn refusing(watches: usize) -> Client {
        let asked = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: Request<Body>| {
            let asked = Arc::clone(&asked);
            async move {
                let answer = |code: u16, body: serde_json::Value| {
                    Response::builder().status(code).body(Body::from(body.to_string().into_bytes()))
                };
                let watches_now = request.uri().query().is_some_and(|query| query.contains("watch="));
                if !watches_now {
                    let metadata = json!({"resourceVersion": "1"});
                    return answer(200, json!({"kind": "List", "items": [], "metadata": metadata}));
                }
                if asked.fetch_add(1, Ordering::Relaxed) < watches {
                    return answer(403, json!({"kind": "Status", "code": 403, "message": "no"}));
                }
                std::future::pending().await
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_kind_whose_watch_is_refused_is_listed_again_and_the_core_knows_what_came_last() {
        let kind = ObjectKind::PriorityClass;
        let watch = Watch {
            kind,
            what: "priority class",
            started: move || Seen::Input(Input::ListStarted(kind)),
            done: move || Seen::Input(Input::ListDone(kind)),
            set: |_: NamespaceView| Seen::WorkloadsDone,
            gone: |_: NamespaceView| Seen::WorkloadsDone,
            unchanged: Counter::default(),
            rest: None,
        };
        let (tell, mut told) = mpsc::channel(16);
        let task = tokio::spawn(watch.run(Api::<NamespaceView>::all(refusing(2)), tell));
        let mut words = Vec::new();
        while words.len() < 8 {
            let next = tokio::time::timeout(PAUSE_MAX, told.recv()).await;
            words.push(match next.unwrap_or_else(|_| panic!("nothing after {words:?}")) {
                Some(Seen::Input(Input::ListStarted(_))) => "started",
                Some(Seen::Input(Input::ListDone(_))) => "done",
                Some(Seen::Input(Input::ListRefused { .. })) => "refused",
                other => panic!("{other:?}"),
            });
        }
        let [told, told_again] = [["started", "done", "refused"]; 2];
        assert_eq!(words, [&told[..], &told_again, &["started", "done"]].concat());
        task.abort();
    }

    #[test]
    fn a_server_that_asks_to_be_left_alone_is_left_alone() {
        let throttled = |seconds: u32| {
            let status = json!({"code": 429, "details": {"retryAfterSeconds": seconds}});
            let status: Status = serde_json::from_value(status).expect("it is a status");
            watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
        };
        let planned = Some(Duration::from_secs(2));
        assert_eq!(pause(&throttled(7), planned), Duration::from_secs(7));
        assert_eq!(pause(&throttled(1), planned), Duration::from_secs(2));
        assert_eq!(pause(&throttled(0), planned), Duration::from_secs(2));
        assert_eq!(pause(&throttled(100_000), planned), PAUSE_MAX);
        assert_eq!(pause(&watcher::Error::NoResourceVersion, planned), Duration::from_secs(2));
    }
}
