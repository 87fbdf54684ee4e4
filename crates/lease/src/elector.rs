//! Who leads, decided without IO: what happened goes in, what is to be sent comes out.
//!
//! Time is counted from any fixed moment on a clock that never goes back; the clocks of different electors have
//! nothing to do with each other.

use crate::timing::Timing;
use std::time::Duration;

/// A lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty if nobody does.
    pub holder: String,
    /// How long it is valid without being renewed, as its holder said.
    pub duration: Option<Duration>,
    /// How often it has passed from one holder to another.
    pub transitions: i32,
    /// Resource version.
    pub version: String,
}

/// A lease as it is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Who holds it; empty gives it back.
    pub holder: String,
    /// How long it is valid.
    pub duration: Duration,
    /// How often it has passed on.
    pub transitions: i32,
    /// True if the holder changes: the time of acquisition is now.
    pub acquires: bool,
}

/// Something to be sent. There is at most one request under way, and each has exactly one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Read the lease.
    Get,
    /// Create it; fails if it exists.
    Create(Draft),
    /// Write it; fails unless it is at this version.
    Update {
        /// The version that was read.
        version: String,
        /// What to write.
        draft: Draft,
    },
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The lease as it is: it was read, or it was written.
    Lease(Record),
    /// There is none.
    Missing,
    /// It was written by somebody else since it was read.
    Conflict,
    /// Nobody knows: no answer, or an error.
    Failed,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A request was answered.
    Answer(Answer),
    /// Give the lease back and take no part any more.
    Release,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send a request.
    Send(Request),
    /// Tell whoever acts while leading.
    Tell(News),
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// This one leads now.
    Elected {
        /// Number of changes of the holder: grows with every leader.
        term: i32,
        /// True if the leader before was not heard to hand over; it may have requests under way.
        takeover: bool,
    },
    /// The lease was renewed by a request that was sent at this time.
    Renewed {
        /// When it was sent.
        at: Duration,
    },
    /// This one does not lead any more.
    Lost {
        /// Why.
        why: &'static str,
    },
    /// Somebody else leads; empty if nobody does, as when a lease was given back or has expired.
    Follows {
        /// Who.
        leader: String,
    },
    /// Who leads is not known any more: nobody has answered for so long that a leader would have given up.
    OutOfReach,
    /// The lease was given back, or never held. Nothing follows.
    Released,
}

/// A lease that was seen.
#[derive(Debug, Clone)]
struct Seen {
    record: Record,
    /// When this version was first seen, on our clock.
    at: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Follower,
    Leader {
        /// When the request was sent that last renewed the lease.
        renewed: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Under {
    Get,
    /// `takeover` as in [`News::Elected`].
    Claim {
        takeover: bool,
    },
    Renew,
    Release,
}

/// Decides who leads.
#[derive(Debug)]
pub struct Elector {
    identity: String,
    timing: Timing,
    role: Role,
    seen: Option<Seen>,
    under_way: Option<(Under, Duration)>,
    next_try: Duration,
    told_leader: Option<String>,
    /// When a request was last answered with something that is certain.
    heard: Duration,
    releasing: bool,
    released: bool,
    /// True if a write may have happened that was not seen: the lease is read before it is written again.
    look_first: bool,
    /// Whether leading by a lease that is found to be ours would be a takeover: as when it was claimed by a write
    /// whose answer was lost, or when it was ours before and we gave up.
    takeover_if_ours: bool,
}

impl Elector {
    /// An elector that has seen nothing. The identity must be of this process alone.
    pub fn new(identity: impl Into<String>, timing: Timing) -> Self {
        Self {
            identity: identity.into(),
            timing,
            role: Role::Follower,
            seen: None,
            under_way: None,
            next_try: Duration::ZERO,
            told_leader: None,
            heard: Duration::ZERO,
            releasing: false,
            released: false,
            look_first: false,
            takeover_if_ours: false,
        }
    }

    /// Takes in what happened and says what is to be done.
    pub fn step(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        // A loss by time comes first: an answer that was too late to renew must not be taken for a renewal in time.
        self.give_up_if_late(now, &mut effects);
        match input {
            Input::Tick => {}
            Input::Release => self.releasing = true,
            Input::Answer(answer) => self.answered(answer, now, &mut effects),
        }
        self.forget_leader_if_late(now, &mut effects);
        self.send_next(now, &mut effects);
        effects
    }

    /// When to step again even if nothing happens.
    pub fn wake_at(&self) -> Option<Duration> {
        if self.released {
            return None;
        }
        let deadline = match self.role {
            Role::Leader { renewed } => Some(renewed + self.timing.renew_deadline),
            Role::Follower => self.told_leader.is_some().then(|| self.heard + self.timing.renew_deadline),
        };
        let next = self.under_way.is_none().then_some(self.next_try);
        [deadline, next].into_iter().flatten().min()
    }

    /// True while this one leads.
    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leader { .. })
    }

    fn give_up_if_late(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if let Role::Leader { renewed } = self.role
            && now >= renewed + self.timing.renew_deadline
        {
            self.lose("the lease could not be renewed in time", effects);
        }
    }

    /// A follower that hears nothing knows no longer who leads, and could not take over either.
    fn forget_leader_if_late(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.told_leader.is_some() && now >= self.heard + self.timing.renew_deadline {
            self.told_leader = None;
            effects.push(Effect::Tell(News::OutOfReach));
        }
    }

    fn lose(&mut self, why: &'static str, effects: &mut Vec<Effect>) {
        self.role = Role::Follower;
        self.takeover_if_ours = true;
        self.told_leader = None;
        effects.push(Effect::Tell(News::Lost { why }));
    }

    fn answered(&mut self, answer: Answer, now: Duration, effects: &mut Vec<Effect>) {
        let Some((under, sent)) = self.under_way.take() else {
            return;
        };
        if under == Under::Release {
            self.finish(effects);
            return;
        }
        self.next_try = now + self.timing.retry_period;
        if answer != Answer::Failed {
            self.heard = now;
        }
        match answer {
            Answer::Lease(record) => self.saw(record, under, sent, now, effects),
            Answer::Missing => {
                self.look_first = true;
                if self.leads() {
                    self.lose("the lease was deleted", effects);
                }
                if under == Under::Get {
                    self.claim(None, now, effects);
                }
            }
            // Somebody was faster; look at once who.
            Answer::Conflict => {
                self.seen = None;
                self.next_try = now;
            }
            Answer::Failed => {
                // What was written may not be what was seen; only a look tells.
                self.look_first |= under != Under::Get;
            }
        }
    }

    fn saw(
        &mut self,
        record: Record,
        under: Under,
        sent: Duration,
        now: Duration,
        effects: &mut Vec<Effect>,
    ) {
        self.look_first = false;
        let changed = self.seen.as_ref().is_none_or(|seen| seen.record.version != record.version);
        if changed {
            self.seen = Some(Seen { record: record.clone(), at: now });
        }
        if record.holder == self.identity {
            match under {
                Under::Claim { takeover } => self.elected(&record, takeover, sent, now, effects),
                Under::Renew if self.leads() => {
                    self.role = Role::Leader { renewed: sent };
                    effects.push(Effect::Tell(News::Renewed { at: sent }));
                }
                // The lease is ours by a write whose answer was lost: renew it, and then we know since when.
                _ => self.next_try = now,
            }
            return;
        }
        if self.leads() {
            self.lose("somebody else has taken the lease", effects);
        }
        // Whoever let the lease expire leads no more, whether or not we can have it.
        let expired = self.held_until().is_none_or(|until| now >= until);
        let leader = if expired { String::new() } else { record.holder.clone() };
        if self.told_leader.as_ref() != Some(&leader) {
            self.told_leader = Some(leader.clone());
            effects.push(Effect::Tell(News::Follows { leader }));
        }
        if under == Under::Get {
            self.claim(Some(record), now, effects);
        }
    }

    fn elected(
        &mut self,
        record: &Record,
        takeover: bool,
        sent: Duration,
        now: Duration,
        effects: &mut Vec<Effect>,
    ) {
        // A claim that took longer than a leader may go without renewal makes no leader; it is renewed first.
        if now >= sent + self.timing.renew_deadline {
            self.next_try = now;
            return;
        }
        // Whoever leaves before it has waited for the leader before cannot give the lease back as if it had: it runs out.
        if self.releasing && takeover {
            return;
        }
        self.told_leader = None;
        self.role = Role::Leader { renewed: sent };
        effects.push(Effect::Tell(News::Elected { term: record.transitions, takeover }));
        effects.push(Effect::Tell(News::Renewed { at: sent }));
    }

    /// Claims a lease that is free or has expired. `None` if there is no lease.
    fn claim(&mut self, record: Option<Record>, now: Duration, effects: &mut Vec<Effect>) {
        if self.releasing {
            return;
        }
        if let Some(until) = self.held_until()
            && now < until
        {
            // Look again when it may have expired, but not less often than usual: it may be given back before.
            self.next_try = until.min(now + self.timing.retry_period);
            return;
        }
        let last = self.seen.as_ref().map(|seen| &seen.record);
        let takeover = last.is_some_and(|last| !last.holder.is_empty());
        let transitions = last.map_or(0, |last| last.transitions.saturating_add(1));
        let draft = self.draft(&self.identity, transitions, true);
        let request = match record {
            Some(record) => Request::Update { version: record.version, draft },
            None => Request::Create(draft),
        };
        self.takeover_if_ours = takeover;
        self.send(Under::Claim { takeover }, request, now, effects);
    }

    /// When the lease expires that somebody else was last seen to hold. One that was deleted has a holder nevertheless,
    /// who may not know yet.
    fn held_until(&self) -> Option<Duration> {
        let Seen { record, at } = self.seen.as_ref()?;
        let held_by_another = !record.holder.is_empty() && record.holder != self.identity;
        held_by_another.then(|| *at + record.duration.unwrap_or(self.timing.lease_duration))
    }

    fn send_next(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.under_way.is_some() || self.released {
            return;
        }
        if self.releasing {
            self.release(now, effects);
            return;
        }
        if now < self.next_try {
            return;
        }
        let ours = self.seen.as_ref().filter(|seen| seen.record.holder == self.identity);
        let Some(Seen { record, .. }) = ours.filter(|_| !self.look_first) else {
            self.send(Under::Get, Request::Get, now, effects);
            return;
        };
        let (version, transitions) = (record.version.clone(), record.transitions);
        let draft = self.draft(&self.identity, transitions, false);
        // A lease that is ours by a write whose answer was lost makes a leader when it is renewed.
        let takeover = self.takeover_if_ours;
        let under = if self.leads() { Under::Renew } else { Under::Claim { takeover } };
        self.send(under, Request::Update { version, draft }, now, effects);
    }

    fn release(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let led = self.leads();
        if led {
            self.lose("it is handed over", effects);
        }
        let ours = self.seen.take().filter(|seen| seen.record.holder == self.identity);
        let Some(Seen { record, .. }) = ours.filter(|_| led) else {
            self.finish(effects);
            return;
        };
        let draft = Draft {
            // A lease that nobody holds needs no time to expire.
            duration: Duration::from_secs(1),
            ..self.draft("", record.transitions, false)
        };
        let request = Request::Update { version: record.version, draft };
        self.send(Under::Release, request, now, effects);
    }

    fn finish(&mut self, effects: &mut Vec<Effect>) {
        self.released = true;
        effects.push(Effect::Tell(News::Released));
    }

    fn send(&mut self, under: Under, request: Request, now: Duration, effects: &mut Vec<Effect>) {
        self.under_way = Some((under, now));
        effects.push(Effect::Send(request));
    }

    fn draft(&self, holder: &str, transitions: i32, acquires: bool) -> Draft {
        Draft { holder: holder.to_owned(), duration: self.timing.lease_duration, transitions, acquires }
    }
}
