//! An API server that misbehaves: it stands before the embedded one and speaks HTTP.
//!
//! What becomes of a request follows from the seed, from what is asked for, and from how often that was asked before, so
//! a seed means the same trouble however tasks happen to run.

use crate::journal;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Longest time that a request is held back before it is carried out: longer than a client waits.
const SLOW_MAX: Duration = Duration::from_millis(1_500);
/// A watch that is to break does so within this time.
const WATCH_MAX_MS: u64 = 300;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Good,
    /// The connection breaks before anything is done.
    Lost,
    /// It is carried out, and the connection breaks.
    Mute,
    /// It is carried out later, perhaps when nobody waits for it any more.
    Slow,
    /// It is carried out, and the answer is an error.
    ErrorAfter,
    /// It is not carried out.
    ErrorBefore,
    Conflict,
    Throttled,
    /// The version that a watch begins at is forgotten: the server says so at once, or after the watch has begun.
    Expired,
    ExpiredLater,
    /// A watch ends after a while.
    Cut,
    /// The server is away.
    Down,
}

/// How often every fate was met with.
pub(crate) type Fates = BTreeMap<Fate, u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Troubled,
    Down,
    Good,
}

struct Trouble {
    seed: u64,
    /// One request in so many goes wrong.
    one_in: u64,
    /// Lists are never in trouble.
    lists_well: bool,
    mood: watch::Sender<Mood>,
    fates: Mutex<Fates>,
    asked: Mutex<BTreeMap<String, u64>>,
    server: Client,
}

/// The server. Dropped, it ends.
pub(crate) struct Faulty {
    trouble: Arc<Trouble>,
    task: JoinHandle<()>,
    pub(crate) client: Client,
}

impl Faulty {
    pub(crate) async fn start(server: Client, seed: u64, lists_well: bool) -> Self {
        let trouble = Arc::new(Trouble {
            seed,
            one_in: 2 + seed % 5,
            lists_well,
            mood: watch::Sender::new(Mood::Troubled),
            fates: Mutex::default(),
            asked: Mutex::default(),
            server,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it has an address");
        let state = Arc::clone(&trouble);
        let router = Router::new().fallback(move |request: Request| {
            // What is begun is finished, whether or not anybody still waits for it.
            let served = tokio::spawn(Arc::clone(&state).serve(request).instrument(journal::story(seed)));
            async move { served.await.unwrap_or_else(|_| broken()) }
        });
        let task = tokio::spawn(async move {
            // It ends with the story.
            let _ = axum::serve(listener, router).await;
        });
        let url = format!("http://{address}").parse().expect("it is an address");
        let mut config = kube::Config::new(url);
        // As the scheduler connects: whether a request may be repeated is known to whoever sends it.
        config.default_retry = false;
        let client = Client::try_from(config).expect("it is a client");
        Self { trouble, task, client }
    }

    /// The server goes away: every watch ends, and nothing is answered.
    pub(crate) fn go_down(&self) {
        self.trouble.mood.send_replace(Mood::Down);
    }

    /// It is back, as bad as it was.
    pub(crate) fn come_back(&self) {
        self.trouble.mood.send_replace(Mood::Troubled);
    }

    /// Nothing goes wrong any more.
    pub(crate) fn end_trouble(&self) {
        self.trouble.mood.send_replace(Mood::Good);
    }

    /// What became of all requests so far.
    pub(crate) fn fates(&self) -> Fates {
        locked(&self.trouble.fates).clone()
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Trouble {
    async fn serve(self: Arc<Self>, request: Request) -> Response {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let dice = self.dice(&request);
        let is_list = !is_watch && request.uri().path().split('/').count() < 6 && request.method() == "GET";
        let fate = if is_list && self.lists_well { Fate::Good } else { self.fate(dice, is_watch) };
        *locked(&self.fates).entry(fate).or_default() += 1;
        let asked = format!("{} {}", request.method(), request.uri().path());
        tracing::info!("{asked}: {fate:?}");
        let answer = self.answer(request, fate, dice, is_watch).await;
        tracing::info!("{asked}: {}", answer.status());
        answer
    }

    async fn answer(&self, request: Request, fate: Fate, dice: u64, is_watch: bool) -> Response {
        match fate {
            Fate::Lost | Fate::Down => return broken(),
            Fate::ErrorBefore => return refused(StatusCode::INTERNAL_SERVER_ERROR),
            Fate::Conflict => return refused(StatusCode::CONFLICT),
            Fate::Throttled => return refused(StatusCode::TOO_MANY_REQUESTS),
            Fate::Expired => return refused(StatusCode::GONE),
            Fate::ExpiredLater => return expired_later(),
            Fate::Slow => {
                tokio::time::sleep(Duration::from_millis(dice / 64 % SLOW_MAX.as_millis() as u64)).await;
            }
            Fate::Good | Fate::Cut | Fate::Mute | Fate::ErrorAfter => {}
        }
        let answer = self.carry_out(request).await;
        match fate {
            Fate::Mute => broken(),
            Fate::ErrorAfter => refused(StatusCode::INTERNAL_SERVER_ERROR),
            Fate::Cut => self.cut(answer, Some(Duration::from_millis(dice / 64 % WATCH_MAX_MS))),
            _ if is_watch => self.cut(answer, None),
            _ => answer,
        }
    }

    fn dice(&self, request: &Request) -> u64 {
        let what = format!("{} {}", request.method(), request.uri().path());
        let mut asked = locked(&self.asked);
        let count = asked.entry(what.clone()).or_default();
        *count += 1;
        let mut hasher = DefaultHasher::new();
        (self.seed, what, *count).hash(&mut hasher);
        hasher.finish()
    }

    fn fate(&self, dice: u64, is_watch: bool) -> Fate {
        match *self.mood.borrow() {
            Mood::Good => return Fate::Good,
            Mood::Down => return Fate::Down,
            Mood::Troubled => {}
        }
        if !dice.is_multiple_of(self.one_in) {
            return if is_watch { Fate::Cut } else { Fate::Good };
        }
        match ((dice / self.one_in) % 8, is_watch) {
            (0, _) => Fate::Lost,
            (1, _) => Fate::ErrorBefore,
            (2, _) => Fate::Throttled,
            (3 | 4, true) => Fate::Expired,
            (_, true) => Fate::ExpiredLater,
            (3, false) => Fate::Mute,
            (4 | 5, false) => Fate::Slow,
            (6, false) => Fate::ErrorAfter,
            (_, false) => Fate::Conflict,
        }
    }

    /// Asks the server itself.
    async fn carry_out(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return broken();
        };
        let body = kube::client::Body::from(body.to_bytes().to_vec());
        match self.server.send(http::Request::from_parts(parts, body)).await {
            Ok(answer) => answer.map(Body::new),
            Err(_) => refused(StatusCode::BAD_GATEWAY),
        }
    }

    /// A watch that ends after some time, or when the server goes away.
    fn cut(&self, answer: Response, after: Option<Duration>) -> Response {
        let mut mood = self.mood.subscribe();
        let end = async move {
            let down = async {
                if mood.wait_for(|mood| *mood == Mood::Down).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = tokio::time::sleep(after.unwrap_or(Duration::MAX)) => {}
                () = down => {}
            }
        };
        answer.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
    }
}

fn status(code: StatusCode) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(),
        "message": "it misbehaves", "reason": if code == StatusCode::GONE { "Expired" } else { "Unknown" },
    })
}

/// An answer of an API server that says no.
fn refused(code: StatusCode) -> Response {
    (code, [(header::CONTENT_TYPE, "application/json")], status(code).to_string()).into_response()
}

/// A watch that begins well, and then says that it cannot go on from where it was to begin.
fn expired_later() -> Response {
    let event = json!({"type": "ERROR", "object": status(StatusCode::GONE)});
    ([(header::CONTENT_TYPE, "application/json")], format!("{event}\n")).into_response()
}

/// An answer that breaks off before anything of it arrives.
fn broken() -> Response {
    let nothing = futures::stream::once(async { Err::<Bytes, _>(io::Error::other("it breaks")) });
    Response::new(Body::from_stream(nothing))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
