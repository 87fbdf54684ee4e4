//! What the process says of itself.

use crate::meter::Meters;
use prometheus_client::registry::Registry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tutti_http::{Health, Leading, Verdict};

/// Every controller steps at least every minute; one that was not seen for this long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(180);

/// What the process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Another replica acts, or nobody does if it is empty; `None` if the lease cannot be read.
    Following(Option<String>),
    /// It asks the cluster what it serves.
    Discovering,
    /// It acts.
    Acting,
    /// It finishes what was begun.
    Stopping,
}

/// Shared by the controllers and whoever answers questions about them.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) registry: Registry,
    pub(super) meters: Meters,
    leading: Leading,
    phase: Mutex<Phase>,
}

impl Status {
    /// Of a process that asks for this lease; the name is empty if it needs none.
    pub(super) fn new(lease: &str) -> Self {
        let mut registry = Registry::default();
        let meters = Meters::default();
        meters.register(&mut registry);
        let leading = Leading::register(&mut registry, lease);
        Self { registry, meters, leading, phase: Mutex::new(Phase::Following(None)) }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.leading.set(matches!(phase, Phase::Discovering | Phase::Acting));
        *self.phase() = phase;
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        // Nothing that is held while it is locked can panic.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Health for Status {
    fn live(&self) -> Verdict {
        let acts = *self.phase() == Phase::Acting;
        match self.meters.longest_silence(Instant::now()).filter(|(_, silence)| *silence > SILENCE_MAX) {
            Some((controller, silence)) if acts => {
                Err(format!("the controller of {controller} did nothing for {} s", silence.as_secs()))
            }
            _ => Ok("ok".to_owned()),
        }
    }

    fn ready(&self) -> Verdict {
        match &*self.phase() {
            Phase::Acting => match self.meters.unready() {
                Some(controller) => Err(format!("the controller of {controller} reads the cluster")),
                None => Ok("acting".to_owned()),
            },
            Phase::Following(leader) => tutti_lease::stands_by(leader.as_deref()),
            Phase::Discovering => Err("the cluster has not said yet which APIs it serves".to_owned()),
            Phase::Stopping => Err("stopping".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_it_acts_on_what_it_knows_or_could() {
        let status = Status::new("");
        assert!(status.ready().is_err());
        status.enter(Phase::Following(Some("other".to_owned())));
        assert_eq!(status.ready(), Ok("standing by: other leads".to_owned()));
        status.enter(Phase::Following(Some(String::new())));
        assert!(status.ready().is_err(), "nobody acts, and this one does not either");
        status.enter(Phase::Discovering);
        assert!(status.ready().is_err());
        status.enter(Phase::Acting);
        let meter = status.meters.of("gangs");
        meter.ready(false);
        assert_eq!(status.ready(), Err("the controller of gangs reads the cluster".to_owned()));
        meter.ready(true);
        assert_eq!(status.ready(), Ok("acting".to_owned()));
        meter.end();
        assert_eq!(status.ready(), Ok("acting".to_owned()), "one that ended holds nobody up");
    }

    #[test]
    fn a_controller_that_hangs_is_not_live() {
        let status = Status::new("");
        let meter = status.meters.of("gangs");
        let Some(long_ago) = Instant::now().checked_sub(SILENCE_MAX + Duration::from_secs(1)) else { return };
        meter.alive_at(long_ago);
        assert!(status.live().is_ok(), "nobody steps in a process that stands by");
        status.enter(Phase::Acting);
        assert!(status.live().unwrap_err().contains("gangs"));
        meter.alive_at(Instant::now());
        assert!(status.live().is_ok());
    }
}
