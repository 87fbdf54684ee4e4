//! Two thousand stories of a cluster that misbehaves; `cargo run --release -p tutti-scheduler --example soak` tells as
//! many as you like.

use crate::sim::{Tally, story};

/// Stories in one run of the tests.
const SEEDS: u64 = 2_000;
/// Of so many stories at least one has to have everything that stories are about.
const STORIES_PER_DEED: u64 = 100;

#[test]
fn whatever_goes_wrong_gangs_are_whole_completed_unwound_or_kept() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        tally += story(seed, false).unwrap_or_else(|broken| panic!("{broken}"));
    }
    // Stories that avoid what they are about prove nothing.
    for (deed, _, stories) in tally.counts() {
        assert!(stories >= SEEDS / STORIES_PER_DEED, "only {stories} stories with {deed:?}: {tally:?}");
    }
}

#[test]
fn a_seed_tells_the_same_story_every_time() {
    for seed in [1, 77, 1234] {
        assert_eq!(story(seed, false), story(seed, false));
    }
}
