//! The one task that owns the core. Everything else talks to it through queues.

use super::log;
use super::numbers::Snapshot;
use super::paced_watch::Drain;
use super::requests::Requests;
use super::send::Sender;
use super::status::{Phase, Question, Status};
use super::term::Term;
use super::workloads::{Seen, Workloads};
use crate::core::message::{Answer, Effect, Input};
use crate::core::{CarryOver, Core};
use crate::error::Error;
use futures::{Stream, StreamExt as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tutti_model::Time;

/// Facts and answers that are taken in before the next decision.
const INPUTS_PER_STEP_MAX: usize = 1024;
/// Facts that are taken in at once before a decision, at most: all that has arrived, unless the cluster tells without end.
const INPUTS_BEFORE_DECISION_MAX: usize = 65_536;
/// Longest sleep, so that a wrong wake-up time can do little harm.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Why the owner has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// The process was asked to end.
    Stop,
    /// Settings have changed, and are taken over by a new start.
    Settings,
    /// The cluster serves other APIs than before.
    Apis,
    /// Another process leads, or may.
    Deposed,
}

/// How the owner has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// Why.
    pub(super) why: Interrupt,
    /// True if nothing of it can be under way any more, so that others may act at once.
    pub(super) is_clean: bool,
    /// What the next core of this process goes on with.
    pub(super) carried: CarryOver,
}

/// Owns the core.
pub(super) struct Owner {
    pub(super) core: Core,
    pub(super) seen: mpsc::Receiver<Seen>,
    /// Only where groups have no objects of their own.
    pub(super) workloads: Option<Workloads>,
    pub(super) requests: Requests,
    pub(super) sender: Sender,
    pub(super) clock: Clock,
    /// How long bindings under way may take to finish at the end.
    pub(super) grace: Duration,
    pub(super) status: Arc<Status>,
    pub(super) questions: mpsc::Receiver<Question>,
    /// For what is read by a thread that rests.
    pub(super) drain: Option<Drain>,
    /// The term that we lead in, where leaders are elected.
    pub(super) term: Option<Term>,
    /// Why and when to end, once asked to.
    pub(super) ending: Option<(Interrupt, Instant)>,
}

impl Owner {
    /// Schedules until it is interrupted, and says by what.
    pub(super) async fn run(
        mut self,
        mut interrupts: impl Stream<Item = Interrupt> + Unpin,
    ) -> Result<Ended, Error> {
        // Requests under way are dropped with everything else.
        let deposed = || Ended { why: Interrupt::Deposed, is_clean: false, carried: CarryOver::default() };
        let mut seen = Vec::with_capacity(INPUTS_PER_STEP_MAX);
        let mut batch = Vec::with_capacity(INPUTS_PER_STEP_MAX);
        if self.term.is_some() {
            let Some(until) = self.leads_until() else {
                return Ok(deposed());
            };
            // Nothing was read before we led, and the leader before us has been waited for.
            batch.push(Input::Elected { until });
        }
        loop {
            let sleep = self.sleep();
            tokio::select! {
                received = self.seen.recv_many(&mut seen, INPUTS_PER_STEP_MAX) => {
                    if received == 0 {
                        return Err(Error::TaskEnded { what: "every watch" });
                    }
                    for seen in seen.drain(..) {
                        self.translate(seen, &mut batch);
                    }
                }
                answer = self.requests.answer() => batch.push(accept(answer)?),
                () = tokio::time::sleep(sleep) => batch.push(Input::Tick),
                Some(why) = interrupts.next() => batch.extend(self.interrupted(why)),
                Some(question) = self.questions.recv() => {
                    self.answer(question);
                    continue;
                }
                () = changed(&mut self.term) => {
                    let Some(until) = self.leads_until() else {
                        return Ok(deposed());
                    };
                    batch.push(Input::Renewed { until });
                }
            }
            // All other tasks have a turn first: what has come together is looked at together, which costs one step.
            tokio::task::yield_now().await;
            while batch.len() < INPUTS_PER_STEP_MAX
                && let Some(answer) = self.requests.answer_now()
            {
                batch.push(Input::Answer(answer));
            }
            while batch.len() < INPUTS_PER_STEP_MAX
                && let Ok(seen) = self.seen.try_recv()
            {
                self.translate(seen, &mut batch);
            }
            let heard = self.hear_all(&mut batch).await;
            self.step(&mut batch, heard);
            if let Some(ended) = self.finished() {
                return Ok(ended);
            }
        }
    }

    /// If something is to be decided, takes in everything that watches have heard by now: a node that was closed before a
    /// pod was made must not get that pod.
    /// Gives how many inputs were taken in already.
    async fn hear_all(&mut self, batch: &mut Vec<Input>) -> usize {
        let taken_in = batch.len();
        self.core.take_in(batch.drain(..), self.clock.now());
        if !self.core.is_about_to_decide(self.clock.now()) {
            return taken_in;
        }
        if let Some(drain) = &self.drain {
            drain.read_all().await;
        }
        let mut heard = 0;
        while heard < INPUTS_BEFORE_DECISION_MAX
            && let Ok(seen) = self.seen.try_recv()
        {
            heard += 1;
            self.translate(seen, batch);
        }
        taken_in
    }

    fn translate(&mut self, seen: Seen, batch: &mut Vec<Input>) {
        match (&mut self.workloads, seen) {
            (Some(workloads), seen) => batch.extend(workloads.translate(seen)),
            (None, Seen::Input(input)) => batch.push(input),
            // Workloads are watched only where they are translated.
            (None, _) => {}
        }
    }

    fn step(&mut self, batch: &mut Vec<Input>, taken_in: usize) {
        let (started, inputs_count) = (Instant::now(), batch.len() + taken_in);
        let mut stopwatch = self.status.metrics.stopwatch();
        let effects = self.core.step_observed(batch.drain(..), self.clock.now(), &mut stopwatch);
        self.status.metrics.stepped(inputs_count, &effects, started.elapsed());
        for effect in effects {
            self.perform(effect);
        }
        if let Some(drain) = self.drain.as_ref().filter(|_| !self.core.is_about_to_decide(self.clock.now())) {
            drain.rest();
        }
        if self.ending.is_none() {
            self.status.enter(if self.core.is_synced() { Phase::Scheduling } else { Phase::Listing });
        }
        self.status.alive();
    }

    /// The end was asked for: nothing new is decided. A second reason replaces the first if it is the end of all.
    fn interrupted(&mut self, why: Interrupt) -> Option<Input> {
        match self.ending {
            None => {
                tracing::info!(?why, "stopping: nothing new is decided, bindings under way finish");
                self.status.enter(Phase::Stopping);
                self.ending = Some((why, Instant::now() + self.grace));
                Some(Input::Stop)
            }
            Some((_, at)) if why == Interrupt::Stop => {
                self.ending = Some((why, at));
                None
            }
            Some(_) => None,
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Report(fact) => log::fact(&fact),
            request => {
                if let Some(request) = self.sender.send(request) {
                    self.requests.send(request);
                }
            }
        }
    }

    fn answer(&self, question: Question) {
        match question {
            Question::Numbers(answer) => {
                let snapshot =
                    Snapshot { counters: self.core.counters().clone(), gauges: self.core.gauges() };
                // The one that asked may have gone.
                let _ = answer.send(snapshot);
            }
            Question::Extras(answer) => {
                let _ = answer.send(self.core.extras(self.clock.now()));
            }
        }
    }

    /// Until when what is sent now must have ended; `None` if we do not lead.
    fn leads_until(&self) -> Option<Time> {
        Some(self.clock.at(self.term.as_ref()?.until()?))
    }

    fn sleep(&self) -> Duration {
        let wake = self.core.wake_at().map_or(SLEEP_MAX, |time| self.clock.until(time));
        let stop = self.ending.map_or(SLEEP_MAX, |(_, at)| at.saturating_duration_since(Instant::now()));
        wake.min(stop).min(SLEEP_MAX)
    }

    fn finished(&self) -> Option<Ended> {
        let (why, at) = self.ending?;
        if self.core.is_drained() {
            tracing::info!("stopped");
            return Some(Ended { why, is_clean: true, carried: self.core.carry_over() });
        }
        let late = Instant::now() >= at;
        if late {
            tracing::warn!("stopped with requests under way; the next process finds out how they ended");
        }
        late.then(|| Ended { why, is_clean: false, carried: self.core.carry_over() })
    }
}

/// Completes when something changes about whether we lead.
async fn changed(term: &mut Option<Term>) {
    match term {
        Some(term) => term.changed().await,
        None => std::future::pending().await,
    }
}

fn accept(answer: Option<Answer>) -> Result<Input, Error> {
    // Without its answer a request would be under way forever; a new process starts from the truth.
    answer.map(Input::Answer).ok_or_else(|| {
        tracing::error!("a request broke and has no answer; see the panic above");
        Error::TaskEnded { what: "a request" }
    })
}

/// Wall time that does not jump: read once, then counted on by the steady clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    wall_ms: i64,
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { wall_ms: jiff::Timestamp::now().as_millisecond(), start: Instant::now() }
    }

    pub(super) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// The time of a moment that is not before the start.
    pub(super) fn at(&self, moment: Instant) -> Time {
        Time(self.wall_ms) + moment.saturating_duration_since(self.start)
    }

    fn until(&self, time: Time) -> Duration {
        let ms = time.0.saturating_sub(self.now().0).max(0);
        Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    }
}
