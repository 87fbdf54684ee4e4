//! Electors with a virtual clock each, over a lease server that is slow, loses answers and goes away.

use crate::elector::{Answer, Draft, Effect, Elector, Input, News, Record, Request};
use crate::timing::Timing;
use std::time::Duration;

/// Parts per thousand by which a clock runs fast or slow.
const SKEW_MAX: i64 = 40;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Small and plain: the same seed gives the same story.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Default)]
struct Server {
    lease: Option<Record>,
    versions: u64,
    /// Nothing may be written.
    read_only: bool,
}

impl Server {
    fn handle(&mut self, request: Request) -> Answer {
        match (request, &self.lease) {
            (Request::Create(_) | Request::Update { .. }, _) if self.read_only => Answer::Failed,
            (Request::Get, None) => Answer::Missing,
            (Request::Get, Some(lease)) => Answer::Lease(lease.clone()),
            (Request::Create(_), Some(_)) => Answer::Conflict,
            (Request::Create(draft), None) => self.write(draft),
            (Request::Update { .. }, None) => Answer::Missing,
            (Request::Update { version, .. }, Some(lease)) if lease.version != version => Answer::Conflict,
            (Request::Update { draft, .. }, Some(_)) => self.write(draft),
        }
    }

    fn write(&mut self, draft: Draft) -> Answer {
        self.versions += 1;
        let Draft { holder, duration, transitions, .. } = draft;
        let version = self.versions.to_string();
        let record = Record { holder, duration: Some(duration), transitions, version };
        self.lease = Some(record.clone());
        Answer::Lease(record)
    }
}

/// An elector, its clock, and what its owner believes.
struct Player {
    elector: Elector,
    timing: Timing,
    /// Its clock: an offset, and how fast it runs.
    offset: Duration,
    skew: i64,
    /// A request on its way: when it is handled, and when the answer comes. In true time.
    request: Option<(Duration, Request)>,
    answer: Option<(Duration, Answer)>,
    /// Requests that its owner has sent may be alive until then, on its own clock.
    acts_until: Option<Duration>,
    terms: Vec<(i32, bool)>,
    /// Whom it follows, as it was told last.
    follows: Option<String>,
    released: bool,
    /// It has stopped to act, and will not begin again.
    leaves: bool,
}

impl Player {
    fn new(name: &str, timing: Timing, offset: Duration, skew: i64) -> Self {
        Self {
            elector: Elector::new(name, timing),
            timing,
            offset,
            skew,
            request: None,
            answer: None,
            acts_until: None,
            terms: Vec::new(),
            follows: None,
            released: false,
            leaves: false,
        }
    }

    fn clock(&self, truth: Duration) -> Duration {
        let scaled =
            u64::try_from(truth.as_millis()).unwrap() * u64::try_from(1000 + self.skew).unwrap() / 1000;
        self.offset + ms(scaled)
    }

    /// True if requests of this one may be alive.
    fn acts(&self, truth: Duration) -> bool {
        self.acts_until.is_some_and(|until| self.clock(truth) < until)
    }

    fn step(&mut self, input: Input, truth: Duration, random: &mut Random, latency_max: u64) {
        for effect in self.elector.step(input, self.clock(truth)) {
            match effect {
                Effect::Send(request) => {
                    assert!(self.request.is_none() && self.answer.is_none(), "one request at a time");
                    self.request = Some((truth + ms(random.below(latency_max + 1)), request));
                }
                Effect::Tell(News::Elected { term, takeover }) => self.terms.push((term, takeover)),
                Effect::Tell(News::Renewed { at }) if !self.leaves => {
                    self.acts_until = Some(at + self.timing.requests_end());
                }
                Effect::Tell(News::Released) => self.released = true,
                Effect::Tell(News::Follows { leader }) => self.follows = Some(leader),
                Effect::Tell(News::OutOfReach) => self.follows = None,
                // What was sent before stays alive until its own end.
                Effect::Tell(News::Lost { .. } | News::Renewed { .. }) => {}
            }
        }
    }
}

struct World {
    server: Server,
    players: Vec<Player>,
    random: Random,
    truth: Duration,
    latency_max: u64,
    loss_percent: u64,
    /// The server answers nobody.
    away: bool,
}

impl World {
    fn new(seed: u64, players: Vec<Player>) -> Self {
        let random = Random(seed);
        Self {
            server: Server::default(),
            players,
            random,
            truth: ms(0),
            latency_max: 50,
            loss_percent: 0,
            away: false,
        }
    }

    /// Lets time pass in steps of 10 ms and checks after each that at most one acts.
    fn pass(&mut self, time: Duration) {
        let end = self.truth + time;
        while self.truth < end {
            self.truth += ms(10);
            for index in 0..self.players.len() {
                self.turn(index);
            }
            let acting = self.players.iter().filter(|player| player.acts(self.truth)).count();
            assert!(acting <= 1, "{acting} act at {:?}", self.truth);
        }
    }

    fn turn(&mut self, index: usize) {
        let truth = self.truth;
        let player = &mut self.players[index];
        if player.request.as_ref().is_some_and(|(at, _)| *at <= truth) {
            let (sent, request) = player.request.take().expect("it is there");
            // A lost answer comes as a failure once the time for it is over; the write has happened or not.
            let handled = !self.away && !self.random.chance(self.loss_percent);
            let answered = !self.away && !self.random.chance(self.loss_percent);
            let answer = if handled { self.server.handle(request) } else { Answer::Failed };
            let (delay, answer) = if handled && answered {
                (ms(self.random.below(self.latency_max + 1)), answer)
            } else {
                (player.timing.request_timeout(), Answer::Failed)
            };
            player.answer = Some((sent + delay, answer));
        }
        if player.answer.as_ref().is_some_and(|(at, _)| *at <= truth) {
            let (_, answer) = player.answer.take().expect("it is there");
            player.step(Input::Answer(answer), truth, &mut self.random, self.latency_max);
        }
        if player.elector.wake_at().is_some_and(|wake| wake <= player.clock(truth)) {
            player.step(Input::Tick, truth, &mut self.random, self.latency_max);
        }
    }

    fn release(&mut self, index: usize) {
        let truth = self.truth;
        self.players[index].leaves = true;
        self.players[index].acts_until = None;
        self.players[index].step(Input::Release, truth, &mut self.random, self.latency_max);
    }

    /// Ends without a word, as a killed process does. What it has sent is handled nevertheless.
    fn kill(&mut self, index: usize) {
        let mut dead = self.players.remove(index);
        if let Some((_, request)) = dead.request.take() {
            self.server.handle(request);
        }
    }

    fn leader(&self) -> Option<usize> {
        self.players.iter().position(|player| player.elector.leads())
    }
}

fn two(seed: u64) -> World {
    let timing = Timing::default();
    let players = vec![
        Player::new("a", timing, ms(0), 0),
        // Clocks of different machines have nothing in common.
        Player::new("b", timing, ms(987_654_321), 0),
    ];
    World::new(seed, players)
}

#[test]
fn the_first_leads_at_once_and_keeps_leading() {
    let mut world = two(1);
    world.pass(ms(500));
    let leader = world.leader().expect("one leads");
    assert_eq!(world.players[leader].terms, [(0, false)]);
    world.pass(ms(120_000));
    assert_eq!(world.leader(), Some(leader));
    assert_eq!(world.players[1 - leader].terms, [], "nobody else led for a moment");
}

#[test]
fn a_lease_that_is_handed_over_is_taken_within_a_retry_and_without_a_gap() {
    let mut world = two(2);
    world.pass(ms(30_000));
    let leader = world.leader().expect("one leads");
    world.release(leader);
    world.pass(Timing::default().retry_period + ms(200));
    assert!(world.players[leader].released);
    assert_eq!(world.leader(), Some(1 - leader));
    assert_eq!(world.players[1 - leader].terms, [(1, false)]);
}

#[test]
fn a_killed_leader_is_replaced_after_its_lease_and_the_new_one_knows_that_it_took_over() {
    let mut world = two(3);
    world.pass(ms(30_000));
    let leader = world.leader().expect("one leads");
    world.kill(leader);
    world.pass(ms(10_000));
    assert_eq!(world.leader(), None, "the lease has not expired yet");
    world.pass(ms(10_000));
    assert_eq!(world.leader(), Some(0));
    assert_eq!(world.players[0].terms, [(1, true)]);
}

#[test]
fn who_leaves_while_it_takes_over_does_not_hide_that_somebody_was_killed() {
    let timing = Timing::default();
    let players = ["a", "b", "c"].map(|name| Player::new(name, timing, ms(0), 0));
    let mut world = World::new(8, players.into());
    world.pass(ms(30_000));
    let leader = world.leader().expect("one leads");
    world.kill(leader);
    let claims = |player: &Player| matches!(player.request, Some((_, Request::Update { .. })));
    let next = loop {
        world.pass(ms(10));
        if let Some(next) = world.players.iter().position(claims) {
            break next;
        }
    };
    world.release(next);
    world.pass(ms(60_000));
    assert!(world.players[next].released);
    assert_eq!(world.leader(), Some(1 - next));
    let terms = &world.players[1 - next].terms;
    assert!(matches!(terms[..], [(_, true)]), "nobody has waited for whoever was killed: {terms:?}");
}

#[test]
fn a_leader_that_cannot_renew_gives_up_before_others_may_lead_and_comes_back() {
    let mut world = two(4);
    world.pass(ms(30_000));
    world.away = true;
    world.pass(ms(11_000));
    assert_eq!(world.leader(), None);
    world.away = false;
    world.pass(ms(20_000));
    let leader = world.leader().expect("one leads again");
    let (_, takeover) = world.players[leader].terms.last().expect("it was elected");
    assert!(takeover, "whoever leads after a silence waits for what may be under way");
}

#[test]
fn a_deleted_lease_is_made_anew_and_one_leads() {
    let mut world = two(5);
    world.pass(ms(30_000));
    world.server.lease = None;
    world.pass(ms(30_000));
    assert!(world.leader().is_some());
}

#[test]
fn a_follower_that_cannot_read_the_lease_says_so_once_a_leader_would_have_given_up_and_takes_it_back() {
    let mut world = two(6);
    world.pass(ms(30_000));
    let leader = world.leader().expect("one leads");
    let follower = 1 - leader;
    let name = Some(["a", "b"][leader].to_owned());
    assert_eq!(world.players[follower].follows, name);
    world.away = true;
    world.pass(Timing::default().renew_deadline - Timing::default().retry_period - ms(200));
    assert_eq!(world.players[follower].follows, name, "a short silence is no news");
    world.pass(Timing::default().retry_period + ms(400));
    assert_eq!(world.players[follower].follows, None);
    world.away = false;
    world.pass(Timing::default().request_timeout() + Timing::default().retry_period + ms(200));
    assert!(world.players[follower].follows.is_some() || world.leader() == Some(follower));
}

#[test]
fn a_lease_that_has_expired_is_held_by_nobody_even_if_it_cannot_be_taken() {
    let mut world = two(7);
    world.pass(ms(30_000));
    let leader = world.leader().expect("one leads");
    world.server.read_only = true;
    world.kill(leader);
    world.pass(ms(10_000));
    assert_eq!(world.players[0].follows, Some(["a", "b"][leader].to_owned()));
    world.pass(ms(10_000));
    assert_eq!((world.leader(), world.players[0].follows.as_deref()), (None, Some("")));
}

#[test]
fn whatever_happens_at_most_one_acts_and_in_the_end_one_does() {
    for seed in 0..150 {
        let mut random = Random(seed);
        let timing = match random.below(2) {
            0 => Timing::default(),
            _ => Timing { lease_duration: ms(2000), renew_deadline: ms(1300), retry_period: ms(300) },
        };
        let mut player = |name: &str| {
            let skew = i64::try_from(random.below(2 * SKEW_MAX.unsigned_abs())).unwrap() - SKEW_MAX;
            Player::new(name, timing, ms(random.below(1_000_000)), skew)
        };
        let players = vec![player("a"), player("b"), player("c")];
        let mut world = World::new(seed, players);
        for round in 0..30 {
            world.latency_max = [20, 300, 3000][usize::try_from(world.random.below(3)).unwrap()];
            world.loss_percent = [0, 10, 60][usize::try_from(world.random.below(3)).unwrap()];
            world.away = world.random.chance(15);
            let time = world.random.below(20_000);
            world.pass(ms(time));
            if world.random.chance(20) && world.players.len() > 1 {
                let index = usize::try_from(world.random.below(world.players.len() as u64)).unwrap();
                if world.random.chance(50) {
                    world.kill(index);
                } else {
                    world.release(index);
                    world.pass(ms(1000));
                    world.kill(index);
                }
                let skew = i64::try_from(world.random.below(2 * SKEW_MAX.unsigned_abs())).unwrap() - SKEW_MAX;
                let name = format!("late-{round}");
                let offset = ms(world.random.below(1_000_000));
                world.players.push(Player::new(&name, timing, offset, skew));
            }
        }
        (world.latency_max, world.loss_percent, world.away) = (20, 0, false);
        world.pass(timing.lease_duration * 4);
        assert!(world.leader().is_some(), "seed {seed}: nobody leads");
    }
}
