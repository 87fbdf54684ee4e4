//! Who leads, and how that ends: by a lease that runs out, by a hand-over, or not at all when a process goes on with
//! other settings.

use super::tally::Deed;
use super::{Happening, Sim};
use tutti_engine::Seat;
use tutti_model::Time;
use tutti_scheduler::core::message::{Effect, Input};

/// How long a lease lasts, when its holder gives up because it could not be renewed, and how often that is tried.
const LEASE_SECONDS: i64 = 15;
const RENEW_DEADLINE_SECONDS: i64 = 10;
const RETRY_MS: u64 = 2_000;
/// How long a new leader waits for requests of an earlier one. Some take longer than that, which is healed.
const GAP_MS: u64 = 5_000;
/// Of so many who have to wait for an earlier leader one is to end meanwhile.
const STOPS_IN_GAP_ONE_IN: u64 = 40;
/// How long a process that is to end may take to finish what it began.
const STOP_SECONDS: i64 = 10;

/// Who leads, by the server's word.
#[derive(Debug, Default)]
pub(super) struct Lease {
    holder: Option<u64>,
    until: Time,
}

/// Why a process ends what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is replaced by another one.
    HandOver,
    /// It goes on with other settings, and reads everything anew.
    Reload,
}

/// A process that is to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    why: End,
    /// It does not wait any longer than this.
    until: Time,
}

impl Sim {
    pub(super) fn tend_lease(&mut self, index: usize) -> Result<(), String> {
        let now = self.now;
        let replica = &mut self.replicas[index];
        if !replica.alive || now < replica.next_lease {
            return Ok(());
        }
        replica.next_lease = Time(now.0 + RETRY_MS as i64);
        let paused_until = replica.paused_until;
        self.schedule(RETRY_MS, Happening::Lease(index));
        if now < paused_until {
            return Ok(());
        }
        let unreachable = self.down || (self.trouble.on && self.dice.once_in(8));
        let replica = &mut self.replicas[index];
        let holds = self.lease.holder == Some(replica.incarnation);
        if replica.leads && ((unreachable && now >= replica.lease_until) || (!unreachable && !holds)) {
            self.tally.count(Deed::Deposed);
            // All that it knows goes, and with it the answers to what it has asked.
            let ending = replica.ending;
            self.renew_core(index);
            self.replicas[index].ending = ending;
            return self.end_if_done(index);
        }
        if unreachable {
            return Ok(());
        }
        let until = now.plus_seconds(RENEW_DEADLINE_SECONDS);
        if replica.leads {
            self.lease.until = now.plus_seconds(LEASE_SECONDS);
            replica.lease_until = until;
            return self.give(index, Input::Renewed { until });
        }
        if self.lease.holder.is_some() && now < self.lease.until {
            return Ok(());
        }
        // A leader that has handed over has waited for all it sent.
        let is_clean = self.lease.holder.is_none();
        self.lease.until = now.plus_seconds(LEASE_SECONDS);
        self.tally.count(Deed::Election);
        self.elect(index, is_clean, until);
        Ok(())
    }

    /// A process leads, and begins when nothing of an earlier leader can be under way.
    fn elect(&mut self, index: usize, is_clean: bool, until: Time) {
        self.terms += 1;
        let replica = &mut self.replicas[index];
        replica.term = self.terms;
        replica.leads = true;
        replica.lease_until = until;
        self.lease.holder = Some(replica.incarnation);
        let gap = if is_clean { 0 } else { GAP_MS };
        if !is_clean && self.trouble.on && self.dice.once_in(STOPS_IN_GAP_ONE_IN) {
            let delay = self.dice.below(GAP_MS);
            self.schedule(delay, Happening::Stop(index));
        }
        self.schedule(gap, Happening::Begin(index, self.terms));
    }

    /// What is read before this may be out of date, so everything is read from here on.
    pub(super) fn begin(&mut self, index: usize, term: u64) -> Result<(), String> {
        let replica = &mut self.replicas[index];
        let leads = replica.alive && replica.leads && replica.term == term;
        if !leads || replica.ending.is_some() {
            return Ok(());
        }
        if self.now < replica.paused_until {
            let until = replica.paused_until;
            self.schedule_at(until, Happening::Begin(index, term));
            return Ok(());
        }
        replica.has_begun = true;
        let until = replica.lease_until;
        self.list_all(index);
        self.give(index, Input::Elected { until })
    }

    // --- the end -----------------------------------------------------------------------------------------

    /// A process is asked to end.
    pub(super) fn stop(&mut self, index: usize, why: End) -> Result<(), String> {
        let until = self.now.plus_seconds(STOP_SECONDS);
        let replica = &mut self.replicas[index];
        // A process that has no core yet takes new settings for it, and goes on.
        let is_for_later = why == End::Reload && !replica.has_begun;
        if !replica.alive || replica.ending.is_some() || is_for_later {
            return Ok(());
        }
        replica.ending = Some(Ending { why, until });
        self.schedule_at(until, Happening::Wake(index));
        self.give(index, Input::Stop)
    }

    /// Ends a process that was asked to, once it has finished what it began or has taken too long.
    pub(super) fn end_if_done(&mut self, index: usize) -> Result<(), String> {
        let now = self.now;
        let replica = &self.replicas[index];
        let ending = replica.ending.filter(|_| replica.alive && now >= replica.paused_until);
        let Some(Ending { why, until }) = ending else {
            return Ok(());
        };
        // A process that has not waited for an earlier leader cannot vouch for it either, and has nothing to finish.
        let is_done = replica.core.is_drained() && replica.inbox.is_empty();
        let is_clean = is_done && replica.has_begun;
        if !is_done && now < until {
            return Ok(());
        }
        let holds = replica.leads && self.lease.holder == Some(replica.incarnation);
        if holds && is_clean {
            self.check_hand_over(index)?;
        }
        match why {
            End::HandOver => self.hand_over(index, holds, is_clean),
            End::Reload => self.reload(index, holds, is_clean),
        }
        Ok(())
    }

    /// A process ends, and another one starts in its place. A lease that could not be given back runs out.
    fn hand_over(&mut self, index: usize, holds: bool, is_clean: bool) {
        if holds && is_clean && !self.down {
            self.lease = Lease::default();
        }
        let replica = &mut self.replicas[index];
        if holds {
            self.tally.count(match (is_clean, replica.has_begun) {
                (true, _) => Deed::HandOver,
                (false, true) => Deed::LateStop,
                (false, false) => Deed::StopInGap,
            });
        }
        replica.alive = false;
        replica.leads = false;
        let delay = self.dice.below(20_000);
        self.schedule(delay, Happening::Start(index));
    }

    /// A new core in the same process, which knows nothing and does not lead yet.
    fn renew_core(&mut self, index: usize) {
        let mut fresh = self.born();
        fresh.alive = true;
        fresh.next_lease = self.replicas[index].next_lease;
        self.replicas[index] = fresh;
    }

    /// A process goes on with a new core and the same lease.
    fn reload(&mut self, index: usize, holds: bool, is_clean: bool) {
        let until = self.replicas[index].lease_until;
        self.renew_core(index);
        if holds {
            self.tally.count(Deed::Reload);
            self.elect(index, is_clean, until);
        }
    }

    /// A process that ends in good order leaves no binding of its term behind that could still be written, and has written on
    /// every gang that is complete that it was.
    fn check_hand_over(&self, index: usize) -> Result<(), String> {
        let replica = &self.replicas[index];
        for happening in self.agenda.values() {
            if let Happening::Arrive(request) = happening
                && request.term == replica.term
                && let Effect::Bind(seat) = &request.effect
                && self.could_be_written(seat)
            {
                let Seat { pod, node, .. } = seat;
                return Err(format!("the binding of {pod} to {node} is under way at the hand-over"));
            }
        }
        let unmarked = self.unmarked_gang(|key| !self.refused_marks.contains(key));
        match unmarked.filter(|_| replica.is_up_to_date(self.now)) {
            Some(key) => Err(format!("{key} is complete at the hand-over and not marked so")),
            None => Ok(()),
        }
    }

    fn could_be_written(&self, seat: &Seat) -> bool {
        self.server.pods.get(&seat.pod).is_some_and(|found| {
            let waits = found.pod.node.is_none() && !found.is_over() && !found.pod.terminating;
            found.pod.uid == seat.uid && waits
        })
    }
}
