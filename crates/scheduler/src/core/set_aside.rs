//! Units over which the engine broke. A mistake in the solver must not stop the scheduler, and every leader after it in
//! turn: the unit is set aside, which is said in the log, on the unit and in a metric, and all others are served.

use super::message::Fact;
use super::{Core, UnitKey};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use tutti_engine::{Decision, Event, Waiting};
use tutti_model::{Text, Time};

/// How long a unit is set aside before it is tried again.
const ASIDE: Duration = Duration::from_secs(600);
/// Units that are set aside at once. More are not one mistake about one unit.
const ASIDE_MAX: usize = 100;

/// All units that are set aside, and until when.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    until: BTreeMap<UnitKey, Time>,
    /// The engine breaks over this unit; only tests have one.
    #[cfg(test)]
    pub(super) breaks_on: Option<UnitKey>,
}

impl SetAside {
    /// When the first of them is tried again.
    pub(super) fn wake_at(&self) -> Option<Time> {
        self.until.values().min().copied()
    }
}

impl Core {
    /// Asks the engine for its next decision; `None` if it broke over a unit, which is set aside.
    pub(super) fn ask_engine(&mut self, now: Time, still_waits: impl FnMut(Waiting)) -> Option<Decision> {
        #[cfg(test)]
        let is_to_break = self.is_to_break();
        let engine = &mut self.engine;
        let asked = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(test)]
            assert!(!is_to_break, "the solver broke on purpose");
            engine.decide_and_tell(now, still_waits)
        }));
        match asked {
            Ok(decision) => Some(decision),
            Err(panic) => {
                self.engine_broke(panic, now);
                None
            }
        }
    }

    /// The unit that the engine was deciding on when it broke.
    fn deciding(&self) -> Option<UnitKey> {
        #[cfg(test)]
        if let Some(unit) = &self.set_aside.breaks_on {
            return Some(unit.clone());
        }
        self.engine.deciding().cloned()
    }

    #[cfg(test)]
    fn is_to_break(&self) -> bool {
        let Some(unit) = &self.set_aside.breaks_on else { return false };
        if self.set_aside.until.contains_key(unit) {
            return false;
        }
        self.engine.waiters().iter().any(|(waiting, _)| waiting == unit)
    }

    /// Sets the unit aside that the engine was deciding on. If it is not known which, or if there are too many, this process
    /// ends as it would have without us.
    fn engine_broke(&mut self, panic: Box<dyn Any + Send>, now: Time) {
        let is_new = |unit: &UnitKey| !self.set_aside.until.contains_key(unit);
        let unit = self.deciding().filter(is_new).filter(|_| self.set_aside.until.len() < ASIDE_MAX);
        let Some(unit) = unit else { resume_unwind(panic) };
        let why = Text::from(message_of(&*panic));
        self.set_aside.until.insert(unit.clone(), now + ASIDE);
        self.counters.set_aside += 1;
        self.tell(Event::Suspend(unit.clone()), now);
        self.say_set_aside(&unit, ASIDE.as_secs(), now);
        self.report(Fact::SetAside { unit, why });
    }

    /// Tries units again that were set aside for long enough.
    pub(super) fn resume_set_aside(&mut self, now: Time) {
        if self.set_aside.until.is_empty() {
            return;
        }
        let over = self.set_aside.until.iter().filter(|(_, until)| **until <= now);
        for unit in over.map(|(unit, _)| unit.clone()).collect::<Vec<_>>() {
            self.take_back(&unit, now);
        }
    }

    /// A unit that was set aside is not what it was any more, so the engine may get on with it.
    pub(super) fn take_back(&mut self, unit: &UnitKey, now: Time) {
        if self.set_aside.until.remove(unit).is_none() {
            return;
        }
        // Gangs that are unwound are suspended, too, and stay so.
        let is_unwound = matches!(unit, UnitKey::Group(group) if self.is_unwinding(group));
        if !is_unwound {
            self.tell(Event::Resume(unit.clone()), now);
        }
    }
}

/// What a panic says.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it does not say why")
}
