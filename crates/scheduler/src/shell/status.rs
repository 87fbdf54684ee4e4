//! What the process says of itself: whether it lives, whether it is ready, and its metrics.

use super::dumper::Dumper;
use super::metrics::Metrics;
use super::numbers::Snapshot;
use super::pulse::Pulses;
use super::state::Dump;
use crate::core::dump::Extras;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tutti_http::{Health, Verdict};

/// The owner of the core steps at least every minute; one that was not seen for this long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(180);

/// How long the owner of the core may take to answer a question.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What the process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It asks the cluster what it serves.
    Discovering,
    /// Another replica schedules, or nobody does if it is empty; `None` if the lease cannot be read.
    Following(Option<String>),
    /// It leads, and waits until nothing of the leader before can be under way.
    Waiting,
    /// It reads the cluster for the first time.
    Listing,
    /// It schedules.
    Scheduling,
    /// It finishes what was begun.
    Stopping,
}

/// Shared by the task that schedules and those that answer questions about it.
pub(crate) struct Status {
    pub(crate) metrics: Metrics,
    /// Whether the API server answers.
    pub(super) pulses: Pulses,
    state: Mutex<State>,
    /// To the owner of the core, while there is one.
    owner: Mutex<Option<(mpsc::Sender<Question>, Dumper)>>,
}

/// Something that only the owner of the core can answer.
#[derive(Debug)]
pub(crate) enum Question {
    /// What was counted?
    Numbers(oneshot::Sender<Snapshot>),
    /// What do you know that is not in objects?
    Extras(oneshot::Sender<Extras>),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    last_alive: Instant,
}

/// Of a process that needs no lease and has no file.
impl Default for Status {
    fn default() -> Self {
        Self::new("", Gauge::default())
    }
}

impl Status {
    /// See [`Metrics::new`].
    pub(crate) fn new(lease: &str, unused_file: Gauge) -> Self {
        let state = State { phase: Phase::Discovering, last_alive: Instant::now() };
        Self {
            metrics: Metrics::new(lease, unused_file),
            pulses: Pulses::default(),
            state: Mutex::new(state),
            owner: Mutex::default(),
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
    }

    /// From now on, questions go there.
    pub(super) fn answered_by(&self, owner: Option<(mpsc::Sender<Question>, Dumper)>) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = owner;
    }

    /// The core's answer; `None` if there is no core, or it does not answer in time.
    pub(crate) async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Option<T> {
        let (owner, _) = self.owner()?;
        let (answer, answered) = oneshot::channel();
        let asked = async {
            owner.send(question(answer)).await.ok()?;
            answered.await.ok()
        };
        tokio::time::timeout(ANSWER_MAX, asked).await.ok()?
    }

    /// The whole state, as data; `None` if there is no core, or it does not answer in time.
    pub(super) async fn dump(&self) -> Option<Result<Dump, String>> {
        let (_, dumper) = self.owner()?;
        let extras = self.ask(Question::Extras).await?;
        Some(dumper.dump(extras).await)
    }

    fn owner(&self) -> Option<(mpsc::Sender<Question>, Dumper)> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Called whenever the task that schedules comes by.
    pub(crate) fn alive(&self) {
        self.lock().last_alive = Instant::now();
    }

    fn ready_at(&self, now: Instant) -> Verdict {
        match &self.lock().phase {
            Phase::Scheduling => match self.pulses.longest_silence(now) {
                Some((asker, silence)) => {
                    let seconds = silence.as_secs();
                    Err(format!("the API server has not answered {asker} for {seconds} s"))
                }
                None => Ok("scheduling".to_owned()),
            },
            Phase::Following(leader) => tutti_lease::stands_by(leader.as_deref()),
            Phase::Waiting => Err("waiting for requests of the leader before to end".to_owned()),
            Phase::Discovering => Err("the cluster has not said yet which APIs it serves".to_owned()),
            Phase::Listing => Err("the cluster is being read".to_owned()),
            Phase::Stopping => Err("stopping".to_owned()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that is held while it is locked can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Health for Status {
    fn live(&self) -> Verdict {
        let state = self.lock();
        let silence = state.last_alive.elapsed();
        let core_runs = matches!(state.phase, Phase::Listing | Phase::Scheduling | Phase::Stopping);
        // Before the core is there, nobody steps; every wait there has an end of its own.
        if core_runs && silence > SILENCE_MAX {
            return Err(format!("nothing was decided or taken in for {} s", silence.as_secs()));
        }
        Ok("ok".to_owned())
    }

    fn ready(&self) -> Verdict {
        self.ready_at(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::super::pulse::SILENCE_MAX as SILENCE_ALLOWED;
    use super::*;

    #[test]
    fn ready_means_that_it_schedules_or_could() {
        let status = Status::default();
        assert!(status.ready().is_err());
        status.enter(Phase::Listing);
        assert!(status.ready().is_err());
        status.enter(Phase::Scheduling);
        assert_eq!(status.ready(), Ok("scheduling".to_owned()));
        status.enter(Phase::Following(None));
        assert!(status.ready().is_err(), "it could not take over");
        status.enter(Phase::Following(Some("other".to_owned())));
        assert_eq!(status.ready(), Ok("standing by: other leads".to_owned()));
        status.enter(Phase::Following(Some(String::new())));
        assert!(status.ready().is_err(), "nobody schedules, and this one does not either");
        status.enter(Phase::Waiting);
        assert!(status.ready().is_err());
        status.enter(Phase::Stopping);
        assert!(status.ready().is_err());
    }

    #[test]
    fn a_scheduler_that_the_api_server_does_not_answer_is_not_ready_but_alive() {
        let status = Status::default();
        status.enter(Phase::Scheduling);
        let now = Instant::now();
        let pulse = status.pulses.of("the watch of pod objects".to_owned(), false);
        pulse.asks(now);
        assert!(status.ready_at(now + SILENCE_ALLOWED).is_ok(), "a restart of the server is no reason");
        let late = status.ready_at(now + SILENCE_ALLOWED + Duration::from_secs(1));
        assert_eq!(late, Err("the API server has not answered the watch of pod objects for 31 s".to_owned()));
        assert!(status.live().is_ok(), "a new start would not help");
        drop(pulse);
        assert!(status.ready_at(now + SILENCE_ALLOWED * 9).is_ok(), "nobody asks any more");
    }

    #[test]
    fn a_loop_that_hangs_is_not_live() {
        let status = Status::default();
        let Some(long_ago) = Instant::now().checked_sub(SILENCE_MAX + Duration::from_secs(1)) else {
            return;
        };
        status.lock().last_alive = long_ago;
        assert!(status.live().is_ok(), "nobody steps before the core is there");
        status.enter(Phase::Scheduling);
        assert!(status.live().is_err());
        status.alive();
        assert!(status.live().is_ok());
    }
}
