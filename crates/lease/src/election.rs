//! The elector with a cluster behind it.

use crate::elector::{Answer, Draft, Effect, Elector, Input, News, Record, Request};
use crate::timing::Timing;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Longest sleep, so that a wrong wake-up time can do little harm.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Where the lease is, and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who asks. No other process, and no earlier one, may have the same.
    pub identity: String,
}

/// Whether this process leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It does not.
    Following {
        /// Who does, empty if nobody does; `None` if the lease cannot be read. See [`stands_by`].
        leader: Option<String>,
    },
    /// It does.
    Leading {
        /// Number of the leader: a later one has a greater number.
        term: i32,
        /// True if the leader before did not hand over.
        takeover: bool,
        /// Requests must have ended by then.
        until: Instant,
    },
}

/// Whether a process that follows this leader could take over, in words: it must be able to read the lease, and a lease
/// that nobody holds is either taken in a moment or cannot be taken at all.
pub fn stands_by(leader: Option<&str>) -> Result<String, String> {
    match leader {
        Some("") => Err("nobody leads, and the lease is not ours yet".to_owned()),
        Some(leader) => Ok(format!("standing by: {leader} leads")),
        None => Err("the lease cannot be read".to_owned()),
    }
}

/// A process that takes part. Dropped, it stops at once and the lease expires; [`Election::release`] hands it over.
#[derive(Debug)]
pub struct Election {
    standing: watch::Receiver<Standing>,
    release: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Election {
    /// Starts to take part.
    pub fn start(client: Client, place: Place, timing: Timing) -> Self {
        let (tell, standing) = watch::channel(Standing::Following { leader: None });
        let (release, released) = oneshot::channel();
        let task = Task {
            api: Api::namespaced(client, &place.namespace),
            elector: Elector::new(place.identity.clone(), timing),
            place,
            timing,
            start: Instant::now(),
            tell,
            led: None,
            failing: false,
        };
        Self { standing, release, task: tokio::spawn(task.run(released)) }
    }

    /// Whether this process leads, now and from now on.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Gives the lease back, so that others need not wait. Whoever acted as leader must have stopped.
    pub async fn release(self) {
        // An error means that the task has ended, and then there is nothing to give back.
        let _ = self.release.send(());
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the lease could not be given back; it expires");
        }
    }
}

/// A request under way: its answer, and what went wrong if there is none.
type UnderWay = Pin<Box<dyn Future<Output = (Answer, Option<String>)> + Send>>;

struct Task {
    api: Api<Lease>,
    elector: Elector,
    place: Place,
    timing: Timing,
    start: Instant,
    tell: watch::Sender<Standing>,
    /// Term and takeover while leading.
    led: Option<(i32, bool)>,
    failing: bool,
}

impl Task {
    async fn run(mut self, mut released: oneshot::Receiver<()>) {
        let mut under_way: Option<UnderWay> = None;
        let mut releasing = false;
        let mut input = Input::Tick;
        loop {
            for effect in self.elector.step(input, self.start.elapsed()) {
                match effect {
                    Effect::Send(request) => under_way = Some(self.ask(request)),
                    Effect::Tell(News::Released) => return,
                    Effect::Tell(news) => self.news(news),
                }
            }
            let wake = self.elector.wake_at().map_or(SLEEP_MAX, |at| at.saturating_sub(self.start.elapsed()));
            input = tokio::select! {
                (answer, why) = answered(&mut under_way) => {
                    under_way = None;
                    self.note(why);
                    Input::Answer(answer)
                }
                () = tokio::time::sleep(wake.min(SLEEP_MAX)) => Input::Tick,
                asked = &mut released, if !releasing => {
                    if asked.is_err() {
                        // Whoever acted as leader is gone without a word, and may have requests under way.
                        return;
                    }
                    releasing = true;
                    Input::Release
                }
            };
        }
    }

    fn news(&mut self, news: News) {
        let standing = match news {
            News::Elected { term, takeover } => {
                tracing::info!(lease = %self.place.name, term, takeover, "leading");
                self.led = Some((term, takeover));
                return;
            }
            News::Renewed { at } => {
                let Some((term, takeover)) = self.led else {
                    return;
                };
                let until = self.start + at + self.timing.requests_end();
                Standing::Leading { term, takeover, until }
            }
            News::Lost { why } => {
                tracing::warn!(lease = %self.place.name, why, "not leading any more");
                self.led = None;
                Standing::Following { leader: None }
            }
            News::Follows { leader } => {
                let shown = if leader.is_empty() { "nobody" } else { &leader };
                tracing::info!(lease = %self.place.name, leader = shown, "following");
                Standing::Following { leader: Some(leader) }
            }
            News::OutOfReach => {
                tracing::warn!(lease = %self.place.name, "it is not known any more who leads");
                Standing::Following { leader: None }
            }
            News::Released => return,
        };
        self.tell.send_replace(standing);
    }

    /// Told once until it works again: a server that is away for an hour is one piece of news.
    fn note(&mut self, why: Option<String>) {
        match why {
            Some(error) if !self.failing => {
                self.failing = true;
                let Place { namespace, name, .. } = &self.place;
                tracing::warn!(lease = %name, %namespace, error, "the lease cannot be read or written; trying again");
            }
            Some(_) => {}
            None if self.failing => {
                self.failing = false;
                tracing::info!(lease = %self.place.name, "the lease is in reach again");
            }
            None => {}
        }
    }

    fn ask(&self, request: Request) -> UnderWay {
        let (api, name, timeout) = (self.api.clone(), self.place.name.clone(), self.timing.request_timeout());
        Box::pin(async move {
            match tokio::time::timeout(timeout, send(api, &name, request)).await {
                Ok(Ok(lease)) => (Answer::Lease(read(&lease)), None),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => (Answer::Missing, None),
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => (Answer::Conflict, None),
                Ok(Err(error)) => (Answer::Failed, Some(error.to_string())),
                Err(_) => (Answer::Failed, Some("no answer in time".to_owned())),
            }
        })
    }
}

/// The answer of the request that is under way; waits for ever if there is none.
async fn answered(under_way: &mut Option<UnderWay>) -> (Answer, Option<String>) {
    match under_way {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

async fn send(api: Api<Lease>, name: &str, request: Request) -> Result<Lease, kube::Error> {
    match request {
        Request::Get => api.get(name).await,
        Request::Create(draft) => {
            let body = json!({"metadata": {"name": name}, "spec": spec(&draft)});
            let lease = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
            api.create(&PostParams::default(), &lease).await
        }
        Request::Update { version, draft } => {
            // A patch, because the lease may have fields that this client does not know.
            let body = json!({"metadata": {"resourceVersion": version}, "spec": spec(&draft)});
            api.patch(name, &PatchParams::default(), &Patch::Merge(body)).await
        }
    }
}

fn spec(draft: &Draft) -> Value {
    let now = format!("{:.6}", jiff::Timestamp::now());
    let mut spec = json!({
        "holderIdentity": draft.holder,
        "leaseDurationSeconds": draft.duration.as_secs(),
        "leaseTransitions": draft.transitions,
        "renewTime": now,
    });
    if draft.acquires {
        spec["acquireTime"] = json!(now);
    }
    spec
}

fn read(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or(0),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_written_and_read_in_kubernetes_terms() {
        let draft = Draft {
            holder: "me".to_owned(),
            duration: Duration::from_secs(15),
            transitions: 3,
            acquires: true,
        };
        let body = json!({"metadata": {"resourceVersion": "7"}, "spec": spec(&draft)});
        let lease: Lease = serde_json::from_value(body).unwrap();
        let record = read(&lease);
        assert_eq!((record.holder.as_str(), record.transitions, record.version.as_str()), ("me", 3, "7"));
        assert_eq!(record.duration, Some(Duration::from_secs(15)));
        assert!(lease.spec.unwrap().acquire_time.is_some());
        assert!(spec(&Draft { acquires: false, ..draft }).get("acquireTime").is_none(), "it stays as it was");
    }

    #[test]
    fn an_empty_lease_is_held_by_nobody() {
        let record = read(&Lease::default());
        assert_eq!((record.holder.as_str(), record.duration), ("", None));
    }
}
