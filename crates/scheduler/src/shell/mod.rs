//! The thin shell around the core: watches in, requests out, one owner of the state between them.

mod log;
mod send;
mod watch;

use crate::config::Config;
use crate::core::Core;
use crate::core::message::{Answer, Effect, Input};
use crate::error::Error;
use kube::Client;
use send::Sender;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tutti_k8s::Capabilities;
use tutti_model::Time;

/// Facts that wait for the core. When it is full, watches wait: the API server keeps what they did not read.
const INPUT_QUEUE_MAX: usize = 4096;
/// Facts and answers that are taken in before the next decision.
const INPUTS_PER_STEP_MAX: usize = 1024;
/// How often the cluster is asked what it serves before giving up.
const DISCOVERY_TRIES_MAX: u32 = 6;
/// Pause before the second try; every further one is twice as long.
const DISCOVERY_PAUSE_FIRST: Duration = Duration::from_millis(500);
/// Longest sleep, so that a wrong wake-up time can do little harm.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Schedules until `shutdown` is ready.
///
/// Then nothing new is decided, and bindings under way may finish within the configured time. Anything that is
/// not finished is found in the cluster by whoever runs next.
pub async fn run(
    client: Client,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    config.validate()?;
    let mut shutdown = Box::pin(shutdown);
    let capabilities = tokio::select! {
        found = discover(&client) => found?,
        () = &mut shutdown => return Ok(()),
    };
    run_with(client, config, capabilities, shutdown).await
}

/// As [`run`], for a cluster whose APIs are known: nothing is discovered.
pub async fn run_with(
    client: Client,
    config: Config,
    capabilities: Capabilities,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    config.validate()?;
    log::started(&config, &capabilities);
    let (input, inputs) = mpsc::channel(INPUT_QUEUE_MAX);
    // Dropped at the end, it ends the watches.
    let mut watches = JoinSet::new();
    watch::start(&client, &capabilities, &input, &mut watches);
    drop(input);
    let owner = Owner {
        grace: config.shutdown_grace,
        sender: Sender::new(client, &config, &capabilities),
        core: Core::new(config, capabilities),
        inputs,
        requests: JoinSet::new(),
        clock: Clock::start(),
        stop_at: None,
    };
    owner.run(Box::pin(shutdown)).await
}

async fn discover(client: &Client) -> Result<Capabilities, Error> {
    let mut pause = DISCOVERY_PAUSE_FIRST;
    for attempt in 1.. {
        match Capabilities::discover(client).await {
            Ok(capabilities) => return Ok(capabilities),
            Err(error) if attempt >= DISCOVERY_TRIES_MAX => return Err(Error::Discovery(Box::new(error))),
            Err(error) => {
                tracing::warn!(%error, attempt, "the cluster does not say which APIs it serves; trying again");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
    }
    Err(Error::TaskEnded { what: "discovery" })
}

/// Owns the core. Everything else talks to it through queues.
struct Owner {
    core: Core,
    inputs: mpsc::Receiver<Input>,
    requests: JoinSet<Answer>,
    sender: Sender,
    clock: Clock,
    grace: Duration,
    /// When to end, once asked to.
    stop_at: Option<Instant>,
}

impl Owner {
    async fn run(mut self, mut shutdown: impl Future<Output = ()> + Unpin) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(INPUTS_PER_STEP_MAX);
        loop {
            let sleep = self.sleep();
            tokio::select! {
                received = self.inputs.recv_many(&mut batch, INPUTS_PER_STEP_MAX) => {
                    if received == 0 {
                        return Err(Error::TaskEnded { what: "every watch" });
                    }
                }
                Some(answer) = self.requests.join_next() => batch.push(accept(answer)?),
                () = tokio::time::sleep(sleep) => batch.push(Input::Tick),
                () = &mut shutdown, if self.stop_at.is_none() => {
                    tracing::info!("stopping: nothing new is decided, bindings under way finish");
                    self.stop_at = Some(Instant::now() + self.grace);
                    batch.push(Input::Stop);
                }
            }
            while batch.len() < INPUTS_PER_STEP_MAX
                && let Some(answer) = self.requests.try_join_next()
            {
                batch.push(accept(answer)?);
            }
            for effect in self.core.step(batch.drain(..), self.clock.now()) {
                self.perform(effect);
            }
            if self.is_finished() {
                return Ok(());
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Report(fact) => log::fact(&fact),
            request => {
                if let Some(answer) = self.sender.send(request) {
                    self.requests.spawn(answer);
                }
            }
        }
    }

    fn sleep(&self) -> Duration {
        let wake = self.core.wake_at().map_or(SLEEP_MAX, |time| self.clock.until(time));
        let stop = self.stop_at.map_or(SLEEP_MAX, |at| at.saturating_duration_since(Instant::now()));
        wake.min(stop).min(SLEEP_MAX)
    }

    fn is_finished(&self) -> bool {
        let Some(stop_at) = self.stop_at else {
            return false;
        };
        if self.core.is_drained() {
            tracing::info!("stopped");
            return true;
        }
        let late = Instant::now() >= stop_at;
        if late {
            tracing::warn!("stopped with bindings under way; whoever runs next finds how they ended");
        }
        late
    }
}

fn accept(answer: Result<Answer, tokio::task::JoinError>) -> Result<Input, Error> {
    // Without its answer a request would be under way for ever; a new process starts from the truth.
    answer.map(Input::Answer).map_err(|error| {
        tracing::error!(%error, "a request ended without an answer");
        Error::TaskEnded { what: "a request" }
    })
}

/// Wall time that does not jump: read once, then counted on by the steady clock.
struct Clock {
    wall_ms: i64,
    start: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { wall_ms: jiff::Timestamp::now().as_millisecond(), start: Instant::now() }
    }

    fn now(&self) -> Time {
        let elapsed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        Time(self.wall_ms.saturating_add(elapsed))
    }

    fn until(&self, time: Time) -> Duration {
        let ms = time.0.saturating_sub(self.now().0).max(0);
        Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    }
}
