//! The engine against the slow, obvious search: it places whatever can be placed and refuses nothing else.

use crate::random::{instance, instance_with_wishes};
use crate::random_storage::instance_with_volumes;
use crate::random_trees::{composite_instance, group_instance, wishing_instance};
use crate::shrink::smallest;
use crate::tree_verdict::judge_tree;
use crate::verdict::{Tier, Verdict, judge, promises_the_best, shares_an_unbound_claim};
use tutti_engine::Limits;
use tutti_model::scenario::Scenario;

const INSTANCES: u64 = 20_000;
/// `examples/oracle.rs` looks at more of them.
const TREES: u64 = 2_000;

/// With each tier and of each sort.
const TIER_INSTANCES: u64 = 250;

/// How many instances were placed and refused, and how many gangs had members of different shapes.
#[derive(Default, Debug)]
struct Seen {
    placed: u64,
    refused: u64,
    mixed: u64,
    /// How often it was not found out, and may not have been: which volume several pods are to share is a guess.
    guessed: u64,
}

/// What kind of failure it is, without the particulars; nothing if it is none.
fn kind_of(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Placed | Verdict::Refused => None,
        Verdict::Undecided => Some("undecided at this size".to_owned()),
        Verdict::Wrong(what) => what.split(':').next().map(str::to_owned),
    }
}

/// How instances are made, who judges them, and whether they are trees.
type Sort = (fn(u64) -> String, JudgeOf, bool);

/// Who judges an instance.
type JudgeOf = fn(&Scenario, Tier) -> Verdict;

fn check(seed: u64, text: &str, judge: JudgeOf, seen: &mut Seen) {
    check_tier(seed, text, judge, None, seen);
}

/// The same with one tier forced, which may leave open what it likes.
fn check_tier(seed: u64, text: &str, judge: JudgeOf, forced: Option<Tier>, seen: &mut Seen) {
    let scenario = Scenario::parse(text).unwrap();
    let tier = forced.unwrap_or_default();
    match judge(&scenario, tier) {
        Verdict::Placed => seen.placed += 1,
        Verdict::Refused => seen.refused += 1,
        Verdict::Undecided if forced.is_some() || shares_an_unbound_claim(&scenario) => seen.guessed += 1,
        failure => {
            let kind = kind_of(&failure);
            let fails = |text: &str| {
                Scenario::parse(text).is_ok_and(|smaller| kind_of(&judge(&smaller, tier)) == kind)
            };
            panic!("seed {seed}: {failure:?}\n{}", smallest(text, fails));
        }
    }
    let wanting: Vec<_> = scenario.pods.iter().filter(|pod| pod.node.is_none()).collect();
    seen.mixed += u64::from(wanting.windows(2).any(|pair| pair[0].requests != pair[1].requests));
}

#[test]
fn the_engine_places_exactly_what_can_be_placed() {
    let mut seen = Seen::default();
    for seed in 1..=INSTANCES {
        check(seed, &instance(seed), judge, &mut seen);
    }
    // The generator must keep asking hard questions.
    assert!(seen.placed > 4_000 && seen.refused > 4_000 && seen.mixed > 10_000, "{seen:?}");
}

#[test]
fn wishes_about_other_pods_are_honoured_and_no_obstacle_that_is_not_there() {
    let mut seen = Seen::default();
    for seed in 1..=INSTANCES {
        check(seed, &instance_with_wishes(seed), judge, &mut seen);
    }
    assert!(seen.placed > 4_000 && seen.refused > 4_000 && seen.mixed > 7_000, "{seen:?}");
}

#[test]
fn volumes_are_respected_and_no_obstacle_that_is_not_there() {
    let mut seen = Seen::default();
    for seed in 1..=INSTANCES {
        check(seed, &instance_with_volumes(seed), judge, &mut seen);
    }
    assert!(seen.placed > 4_000 && seen.refused > 4_000 && seen.guessed < 2_000, "{seen:?}");
}

#[test]
fn a_group_that_asks_for_domains_is_placed_if_it_can_be_and_as_well_as_it_can_be() {
    let mut seen = Seen::default();
    for seed in 1..=TREES {
        check(seed, &group_instance(seed), judge_tree, &mut seen);
    }
    assert!(seen.placed > TREES / 3 && seen.refused > TREES / 10, "{seen:?}");
}

#[test]
fn groups_of_a_composite_are_solved_for_together_and_as_well_as_they_can_be() {
    let mut seen = Seen::default();
    for seed in 1..=TREES {
        check(seed, &composite_instance(seed), judge_tree, &mut seen);
    }
    assert!(seen.placed > TREES / 3 && seen.refused > TREES / 10, "{seen:?}");
}

#[test]
fn a_tree_of_many_preferred_levels_and_slices_is_placed_as_well_as_it_can_be() {
    // Its choices of domains once used up the budget before the best one was found.
    let text = "
        node n0 cpu=5 label:host=n0 label:block=1 label:rack=3
        node n1 cpu=4 label:host=n1 label:block=1 label:rack=1
        node n2 cpu=5 label:host=n2 label:block=2 label:rack=2
        node n3 cpu=5 label:host=n3 label:block=1 label:rack=1
        node n4 cpu=5 label:host=n4 label:block=1
        pod r0 on=n2 cpu=1
        composite top gang=2
        composite middle parent=top gang=1 preferred:block preferred:rack preferred:host
        group g0 parent=top gang=2 preferred:block preferred:rack slices:rack:1
        pod g0-0 group=g0 cpu=3 rank=0
        pod g0-1 group=g0 cpu=3 rank=1
        group g1 parent=middle gang=1 required:rack
        pod g1-0 group=g1 cpu=3 on=n3
        pod g1-1 group=g1 cpu=3
        group g2 parent=top gang=1 preferred:block preferred:host slices:host:1
        pod g2-0 group=g2 cpu=2";
    let mut seen = Seen::default();
    check(0, text, judge_tree, &mut seen);
    assert_eq!(seen.placed, 1);
}

#[test]
fn domains_and_wishes_about_other_pods_are_honoured_together() {
    let mut seen = Seen::default();
    for seed in 1..=TREES {
        check(seed, &wishing_instance(seed), judge_tree, &mut seen);
    }
    assert!(seen.placed > TREES / 3 && seen.refused > TREES / 10, "{seen:?}");
}

#[test]
fn every_tier_is_right_by_itself() {
    let sorts: [Sort; 6] = [
        (instance, judge, false),
        (instance_with_wishes, judge, false),
        (instance_with_volumes, judge, false),
        (group_instance, judge_tree, true),
        (wishing_instance, judge_tree, true),
        (composite_instance, judge_tree, true),
    ];
    for tier in Limits::TIERS {
        let mut seen = Seen::default();
        for (instance, judge, is_tree) in sorts {
            let tier =
                Tier { limits: Limits::forced(tier).unwrap(), is_best: promises_the_best(tier, is_tree) };
            for seed in 1..=TIER_INSTANCES {
                check_tier(seed, &instance(seed), judge, Some(tier), &mut seen);
            }
        }
        assert!(seen.refused > TIER_INSTANCES, "{tier}: {seen:?}");
        assert_eq!(seen.placed == 0, tier == "bounds", "{tier}: {seen:?}");
    }
}
