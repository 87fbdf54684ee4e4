//! When identities change, decided without IO.
//!
//! No request may meet a certificate that its sender does not trust, so a change has three steps, each of which is
//! stored for all replicas before the next:
//!
//! 1. a *next* identity is made; its authority is trusted beside that of the current one, which still serves;
//! 2. when every API server has had the time to learn that, the next one serves and becomes current;
//! 3. when every replica has had the time to follow, the authority of the old one is forgotten.
//!
//! Whoever dies in between leaves a state from which anybody goes on.

use super::identity::Identity;
use jiff::Timestamp;
use std::time::Duration;

/// How long things last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a certificate is good for.
    pub valid_for: Duration,
    /// How long before its end another one is made.
    pub renew_before: Duration,
    /// How long API servers and replicas have to learn of a change.
    pub settle: Duration,
    /// How often replicas look for changes; several times in [`Self::settle`].
    pub poll: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self {
            valid_for: 90 * DAY,
            renew_before: 30 * DAY,
            settle: Duration::from_secs(60),
            poll: Duration::from_secs(10),
        }
    }
}

/// What all replicas share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// Who serves.
    pub current: Identity,
    /// Who will serve.
    pub next: Option<Identity>,
    /// The authority of who served before.
    pub old_authority: Option<String>,
}

impl Shared {
    /// One identity that nobody has to wait for.
    pub fn new(current: Identity) -> Self {
        Self { current, next: None, old_authority: None }
    }

    /// All authorities that are to be trusted, as PEM.
    pub fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| next.authority.as_str());
        let all = std::iter::once(self.current.authority.as_str()).chain(next);
        all.chain(self.old_authority.as_deref()).collect()
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// A new identity serves at once: there is none that could be of use.
    Replace,
    /// Make the next identity.
    Introduce,
    /// Write this.
    Store(Box<Shared>),
}

/// What is to be done about what is stored. `trusted_since` is when its bundle was first seen in place.
pub fn step(
    shared: Option<&Shared>,
    trusted_since: Option<Timestamp>,
    names: &[String],
    now: Timestamp,
    timing: &Timing,
) -> Step {
    let Some(shared) = shared.filter(|shared| shared.current.expires > now) else { return Step::Replace };
    let has_settled = trusted_since.is_some_and(|since| later(since, timing.settle) <= now);
    if let Some(next) = &shared.next {
        if next.names != names || next.expires <= now {
            return Step::Introduce;
        }
        let old_authority = Some(shared.current.authority.clone());
        let promoted = Shared { current: next.clone(), next: None, old_authority };
        return if has_settled { Step::Store(Box::new(promoted)) } else { Step::Rest };
    }
    if shared.old_authority.is_some() {
        let forgotten = Shared { old_authority: None, ..shared.clone() };
        return if has_settled { Step::Store(Box::new(forgotten)) } else { Step::Rest };
    }
    if shared.current.names != names || is_due(&shared.current, now, timing) {
        return Step::Introduce;
    }
    Step::Rest
}

fn is_due(identity: &Identity, now: Timestamp, timing: &Timing) -> bool {
    later(now, timing.renew_before) >= identity.expires
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTLE: u64 = 60;
    const TIMING: Timing = Timing {
        valid_for: Duration::from_secs(1000),
        renew_before: Duration::from_secs(400),
        settle: Duration::from_secs(SETTLE),
        poll: Duration::from_secs(10),
    };

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    fn names() -> Vec<String> {
        vec!["hooks".to_owned()]
    }

    fn identity(name: &str, made: u64) -> Identity {
        let text = |what: &str| format!("{what} of {name};");
        Identity {
            authority: text("authority"),
            certificate: text("certificate"),
            key: text("key"),
            expires: later(at(made), TIMING.valid_for),
            names: names(),
        }
    }

    fn plan(shared: &Shared, trusted_since: Option<u64>, now: u64) -> Step {
        step(Some(shared), trusted_since.map(at), &names(), at(now), &TIMING)
    }

    #[test]
    fn an_identity_is_replaced_in_steps_that_wait_until_everybody_knows() {
        let fresh = Shared::new(identity("a", 0));
        assert_eq!(plan(&fresh, Some(0), 599), Step::Rest);
        assert_eq!(plan(&fresh, Some(0), 600), Step::Introduce);

        let both = Shared { next: Some(identity("b", 600)), ..fresh.clone() };
        assert_eq!(both.bundle(), "authority of a;authority of b;");
        assert_eq!(plan(&both, None, 900), Step::Rest, "nobody trusts the next one yet");
        assert_eq!(plan(&both, Some(610), 669), Step::Rest);
        let Step::Store(promoted) = plan(&both, Some(610), 670) else { panic!("the next one serves") };
        assert_eq!(promoted.current, identity("b", 600));
        assert_eq!(promoted.bundle(), "authority of b;authority of a;");

        assert_eq!(plan(&promoted, Some(680), 739), Step::Rest);
        let forgotten = Shared::new(identity("b", 600));
        assert_eq!(plan(&promoted, Some(680), 740), Step::Store(Box::new(forgotten)));
    }

    #[test]
    fn what_is_of_no_use_is_replaced_at_once_and_other_names_need_another_certificate() {
        assert_eq!(step(None, None, &names(), at(0), &TIMING), Step::Replace);
        let shared = Shared::new(identity("a", 0));
        assert_eq!(plan(&shared, Some(0), 1000), Step::Replace);
        let renamed = step(Some(&shared), None, &["other".to_owned()], at(1), &TIMING);
        assert_eq!(renamed, Step::Introduce);
        let both = Shared { next: Some(identity("b", 0)), ..shared };
        let renamed = step(Some(&both), Some(at(0)), &["other".to_owned()], at(100), &TIMING);
        assert_eq!(renamed, Step::Introduce, "the next one would be of no use");
    }

    /// A replica: what it serves, what it last saw, and since when.
    #[derive(Default, Clone)]
    struct Replica {
        serves: Option<Identity>,
        seen: Option<(Shared, u64)>,
    }

    proptest! {
        #[test]
        fn no_api_server_ever_meets_a_certificate_that_it_does_not_trust(
            // By how much an API server lags behind the configuration, and how late each look of a replica is.
            lag in 0..SETTLE - 10,
            late in proptest::collection::vec((0..3_usize, 1..20_u64, any::<bool>()), 200..400),
        ) {
            let mut now = 0;
            let mut stored = Shared::new(identity("first", 0));
            // Bundles as they were written, oldest first.
            let mut bundles = vec![(0, stored.bundle())];
            let mut replicas = vec![Replica::default(); 3];
            let mut rotations = 0;
            for (index, pause, crashes) in late {
                now += pause;
                // Every replica looks within its poll, which is what settling relies on.
                let mut looks: Vec<usize> = vec![index];
                looks.extend(0..3);
                for index in looks {
                    let replica = &mut replicas[index];
                    if crashes && index == 2 {
                        *replica = Replica::default();
                    }
                    replica.serves = Some(stored.current.clone());
                    if bundles.last().is_none_or(|(_, bundle)| *bundle != stored.bundle()) {
                        bundles.push((now, stored.bundle()));
                    }
                    if replica.seen.as_ref().is_none_or(|(seen, _)| *seen != stored) {
                        replica.seen = Some((stored.clone(), now));
                    }
                    let since = replica.seen.as_ref().map(|(_, since)| *since);
                    match plan(&stored, since, now) {
                        Step::Rest => {}
                        Step::Introduce => {
                            stored.next = Some(identity(&format!("made at {now}"), now));
                            rotations += 1;
                        }
                        Step::Store(next) => stored = *next,
                        Step::Replace => prop_assert!(false, "it was let expire"),
                    }
                }
                let known = bundles.iter().rev().find(|(written, _)| written + lag <= now);
                let known = known.map_or(&bundles[0].1, |(_, bundle)| bundle);
                for replica in &replicas {
                    let serves = replica.serves.as_ref().unwrap();
                    prop_assert!(known.contains(&serves.authority), "{known} lacks {}", serves.authority);
                    prop_assert!(serves.expires > at(now));
                }
            }
            prop_assert!(rotations > 0 || now < 600);
        }
    }
}
