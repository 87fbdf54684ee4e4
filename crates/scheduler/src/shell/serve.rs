//! The whole process around the core: settings that change, APIs that come and go, health and metrics.

use super::connections::{Clients, Connections};
use super::dumper::Dumper;
use super::owner::{Clock, Ended, Interrupt, Owner};
use super::reload::Followed;
use super::requests::Requests;
use super::send::Sender;
use super::status::{Phase, Status};
use super::term::Term;
use super::workloads::Workloads;
use super::{http, log, watches};
use crate::config::{Config, Settings};
use crate::core::{CarryOver, Core};
use crate::error::Error;
use futures::future::{BoxFuture, FutureExt as _, Shared};
use futures::stream::{self, Stream, StreamExt as _};
use kube::Client;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tutti_http::Server;
use tutti_k8s::{Capabilities, discovery};
use tutti_lease::{Election, Place, Standing};

/// Facts that wait for the core. When it is full, watches wait: the API server keeps what they did not read.
const INPUT_QUEUE_MAX: usize = 4096;
/// Questions that wait for the owner of the core.
const QUESTIONS_MAX: usize = 8;
/// The end, for any number of tasks that wait for it.
type End = Shared<BoxFuture<'static, ()>>;

/// A scheduler as a process: replicas elect a leader, settings are taken over when they change, it is noticed when the
/// cluster begins to serve other APIs, and health and metrics are served.
///
/// `place` is where the lease is; without it there must never be two processes.
pub async fn serve(
    clients: impl Into<Clients>,
    settings: impl Into<Followed>,
    place: Option<Place>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let end: End = futures::FutureExt::boxed(shutdown).shared();
    let Followed { mut settings, unused } = settings.into();
    let lease = place.as_ref().map_or("", |place| &place.name);
    let status = Arc::new(Status::new(lease, unused));
    let first = settings.borrow_and_update().clone();
    first.validate()?;
    let _server = match first.http.address {
        Some(address) => {
            let router = http::router(Arc::clone(&status), first.http.debug_from_anywhere);
            Some(Server::start(address, router).await?)
        }
        None => None,
    };
    let timing = first.election().map(|lease| lease.timing).unwrap_or_default();
    let connections = Connections::new(clients, place.as_ref().map(|place| place.identity.clone()))?;
    let election = place.map(|place| Election::start(connections.client.clone(), place, timing));
    let standing = election.as_ref().map(Election::standing);
    let process = Process { connections, status, standing, gap: timing.gap(), end };
    let is_clean = process.run(&mut settings).await?;
    match election {
        Some(election) if is_clean => election.release().await,
        // Something may be under way, of ours or of the leader before us: the lease runs out, and the next leader waits.
        Some(_) | None => {}
    }
    Ok(())
}

struct Process {
    connections: Connections,
    status: Arc<Status>,
    standing: Option<watch::Receiver<Standing>>,
    gap: Duration,
    end: End,
}

/// What may be under way from before.
#[derive(Debug, Default)]
struct Before {
    /// The term whose gap is over.
    waited: Option<i32>,
    /// Requests of this process itself may be.
    is_ours: bool,
}

impl Process {
    /// From one core to the next, until the end. True if nothing can be under way then.
    async fn run(&self, settings: &mut watch::Receiver<Settings>) -> Result<bool, Error> {
        let mut before = Before::default();
        let mut carried = CarryOver::default();
        loop {
            let term = match self.wait_to_lead(&mut before).await {
                Turn::Ours(term) => term,
                Turn::End { is_clean } => return Ok(is_clean),
            };
            self.status.enter(Phase::Discovering);
            let config = settings.borrow_and_update().config.clone();
            let Some(capabilities) = discover(&self.connections.client, &self.end, None).await? else {
                return Ok(true);
            };
            let asker = self.status.pulses.of("the question which APIs there are".to_owned(), true);
            let interrupts = stream::select_all([
                self.end.clone().map(|()| Interrupt::Stop).into_stream().boxed(),
                changed_settings(settings.clone()).boxed(),
                changed_apis(asker.observe(&self.connections.client), capabilities.clone()).boxed(),
            ]);
            let mut owner = start(&self.connections, config, capabilities, term, &self.status);
            owner.carry_on(std::mem::take(&mut carried));
            let ended = owner.run(interrupts).await;
            self.status.answered_by(None);
            self.status.metrics.lead(false);
            let Ended { why, is_clean, carried: next } = ended?;
            carried = next;
            if why == Interrupt::Stop {
                return Ok(is_clean);
            }
            if !is_clean {
                // Who was deposed is told by the next term whether to wait.
                before = Before { waited: None, is_ours: why != Interrupt::Deposed };
            }
        }
    }

    /// Waits until this process may act, or the end comes.
    async fn wait_to_lead(&self, before: &mut Before) -> Turn {
        let Some(mut standing) = self.standing.clone() else {
            return self.wait_for_own(before).await;
        };
        let term = loop {
            let now = standing.borrow_and_update().clone();
            let wait = match &now {
                Standing::Leading { takeover, term, .. }
                    if before.waited == Some(*term) || !(*takeover || before.is_ours) =>
                {
                    break *term;
                }
                Standing::Leading { .. } => {
                    let gap_ms = self.gap.as_millis();
                    tracing::info!(gap_ms, "earlier requests may be under way, and end first");
                    self.status.enter(Phase::Waiting);
                    self.gap
                }
                Standing::Following { leader } => {
                    self.status.enter(Phase::Following(leader.clone()));
                    Duration::MAX
                }
            };
            let changed = async {
                // An error means that the election has ended, and then nothing changes any more.
                if standing.wait_for(|next| leader_of(next) != leader_of(&now)).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                // A leader that has not waited cannot tell others that they need not.
                () = self.end.clone() => return Turn::End { is_clean: leader_of(&now).is_err() },
                () = tokio::time::sleep(wait) => {
                    if let Ok(term) = leader_of(&now) {
                        *before = Before { waited: Some(term), is_ours: false };
                        break term;
                    }
                }
                () = changed => {}
            }
        };
        self.status.metrics.lead(true);
        Turn::Ours(Some(Term::new(standing, term)))
    }

    /// The same where nobody else could lead.
    async fn wait_for_own(&self, before: &mut Before) -> Turn {
        if before.is_ours {
            self.status.enter(Phase::Waiting);
            tokio::select! {
                () = self.end.clone() => return Turn::End { is_clean: false },
                () = tokio::time::sleep(self.gap) => *before = Before::default(),
            }
        }
        self.status.metrics.lead(true);
        Turn::Ours(None)
    }
}

/// What a process may do next.
#[derive(Debug)]
enum Turn {
    /// Act, in this term if leaders are elected.
    Ours(Option<Term>),
    /// End.
    End {
        /// True if nothing of it, or of the leader before it, can be under way.
        is_clean: bool,
    },
}

/// The term that we lead in, or who else leads. Being renewed changes neither.
fn leader_of(standing: &Standing) -> Result<i32, Option<&str>> {
    match standing {
        Standing::Leading { term, .. } => Ok(*term),
        Standing::Following { leader } => Err(leader.as_deref()),
    }
}

/// A scheduler, and the watches that end with it.
pub(super) struct Running {
    owner: Owner,
    watches: JoinSet<()>,
}

impl Running {
    /// Goes on where an earlier core of the same process has ended.
    pub(super) fn carry_on(&mut self, carried: CarryOver) {
        self.owner.core.carry_on(carried);
    }

    /// Schedules until it is interrupted, on a thread that also reads: the caller may be on another one, which every
    /// single change would have to wake.
    pub(super) async fn run(
        self,
        interrupts: impl Stream<Item = Interrupt> + Unpin + Send + 'static,
    ) -> Result<Ended, Error> {
        let mut task = JoinSet::new();
        task.spawn(async move {
            let Self { owner, watches } = self;
            tokio::select! {
                ended = owner.run(interrupts) => ended,
                () = broken(watches) => Err(Error::TaskEnded { what: "a watch" }),
            }
        });
        match task.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) | None => Err(Error::TaskEnded { what: "the owner of the core" }),
        }
    }
}

/// Completes when a watch breaks. Of what it would have told nobody would hear any more. One that just ends had nothing to
/// tell: its kind cannot be read.
async fn broken(mut watches: JoinSet<()>) {
    while let Some(ended) = watches.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a watch broke");
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Starts to watch; nothing is decided before it is run.
pub(super) fn start(
    connections: &Connections,
    config: Config,
    capabilities: Capabilities,
    term: Option<Term>,
    status: &Arc<Status>,
) -> Running {
    log::started(&config, &capabilities);
    let (tell, seen) = mpsc::channel(INPUT_QUEUE_MAX);
    let mut tasks = JoinSet::new();
    watches::start(connections, &config, &capabilities, &tell, status, &mut tasks);
    let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
    let dumper = Dumper {
        client: connections.client.clone(),
        config: config.clone(),
        capabilities: capabilities.clone(),
    };
    status.answered_by(Some((ask, dumper)));
    let workloads = (!capabilities.link.has_group_objects()).then(Workloads::default);
    let owner = Owner {
        grace: config.shutdown_grace,
        sender: Sender::new(connections, &config, &capabilities, term.clone()),
        core: if term.is_some() {
            Core::standby(config, capabilities)
        } else {
            Core::new(config, capabilities)
        },
        seen,
        workloads,
        requests: Requests::start(),
        clock: Clock::start(),
        status: Arc::clone(status),
        questions,
        drain: connections.paced.as_ref().map(|(_, thread)| thread.drain()),
        term,
        ending: None,
    };
    Running { owner, watches: tasks }
}

/// Asks what the cluster serves, again and again if need be. `None` if the end comes first.
pub(super) async fn discover(
    client: &Client,
    end: &(impl Future<Output = ()> + Clone),
    tries_max: Option<u32>,
) -> Result<Option<Capabilities>, Error> {
    tokio::select! {
        found = discovery::discover_patiently(client, tries_max) => {
            found.map(Some).map_err(|error| Error::Discovery(Box::new(error)))
        }
        () = end.clone() => Ok(None),
    }
}

/// One item when settings change.
fn changed_settings(mut settings: watch::Receiver<Settings>) -> impl Stream<Item = Interrupt> {
    stream::once(async move {
        if settings.changed().await.is_err() {
            // Nobody can change them any more.
            std::future::pending::<()>().await;
        }
        tracing::info!("the configuration has changed and is taken over");
        Interrupt::Settings
    })
}

/// One item when the cluster serves other APIs than these.
fn changed_apis(client: Client, known: Capabilities) -> impl Stream<Item = Interrupt> {
    stream::once(async move {
        discovery::changed(&client, &known).await;
        Interrupt::Apis
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Longer than any test.
    const LONG: Duration = Duration::from_secs(3600);

    fn process(standing: Option<Standing>, gap: Duration) -> Process {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("it is an address"));
        Process {
            connections: Connections::new(Client::try_from(nowhere).expect("nobody is asked yet"), None)
                .expect("it starts"),
            status: Arc::default(),
            standing: standing.map(|standing| watch::channel(standing).1),
            gap,
            end: tokio::time::sleep(Duration::from_millis(100)).boxed().shared(),
        }
    }

    fn leading(takeover: bool) -> Option<Standing> {
        Some(Standing::Leading { term: 7, takeover, until: Instant::now() + LONG })
    }

    /// True if it acts in a term of its own; or how it ends.
    async fn turn(standing: Option<Standing>, gap: Duration, is_ours: bool) -> Result<bool, Ends> {
        match process(standing, gap).wait_to_lead(&mut Before { waited: None, is_ours }).await {
            Turn::Ours(term) => Ok(term.is_some_and(|term| term.until().is_some())),
            Turn::End { is_clean } => Err(Ends { is_clean }),
        }
    }

    #[derive(Debug, PartialEq)]
    struct Ends {
        is_clean: bool,
    }

    #[tokio::test]
    async fn a_leader_that_ends_before_the_gap_is_over_cannot_vouch_for_the_one_before() {
        let ends = |is_clean| Err(Ends { is_clean });
        assert_eq!(turn(leading(true), LONG, false).await, ends(false));
        assert_eq!(turn(leading(true), Duration::ZERO, false).await, Ok(true));
        assert_eq!(turn(leading(false), LONG, false).await, Ok(true));
        let follows = Some(Standing::Following { leader: Some("other".to_owned()) });
        assert_eq!(turn(follows, LONG, false).await, ends(true));
    }

    #[tokio::test]
    async fn what_the_process_itself_has_left_behind_is_waited_for_too() {
        for standing in [leading(false), None] {
            assert_eq!(turn(standing.clone(), LONG, true).await, Err(Ends { is_clean: false }));
            assert_eq!(turn(standing.clone(), Duration::ZERO, true).await, Ok(standing.is_some()));
        }
    }

    #[tokio::test]
    async fn a_watch_that_breaks_is_noticed_and_one_that_ends_is_not_missed() {
        let mut watches = JoinSet::new();
        watches.spawn(async {});
        assert!(broken(watches).now_or_never().is_none());
        let mut watches = JoinSet::new();
        watches.spawn(async {});
        watches.spawn(async { panic!("on purpose") });
        broken(watches).await;
    }
}
