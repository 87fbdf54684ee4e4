//! Which node a pod on its own gets, among those that will do.

use crate::driver::{World, show};
use crate::likings::instance_with_preferences;
use crate::random::Dice;
use crate::reference;
use expect_test::{Expect, expect};
use tutti_engine::score::{Aspect, Curve, Strategy};
use tutti_engine::{Config, Decision, Engine, NamedProfile, Profile};
use tutti_model::scenario::Scenario;

fn check(scenario: &str, expected: Expect) {
    let mut world = World::parse(scenario);
    expected.assert_eq(&show(&world.settle()));
}

fn check_with(profile: Profile, scenario: &str, expected: Expect) {
    let mut world = World::parse("");
    let profiles = vec![NamedProfile::new(&["tutti"], profile)];
    world.engine = Engine::new(Config { profiles, ..Config::default() });
    world.add(scenario);
    expected.assert_eq(&show(&world.settle()));
}

#[test]
fn every_choice_is_that_of_the_default_profile() {
    let mut placed = 0;
    for seed in 1..3_000 {
        let mut world = World::parse(&instance_with_preferences(seed));
        loop {
            let placement = match world.engine.decide(world.now) {
                Decision::Idle { .. } => break,
                Decision::Place(placement) => placement,
                Decision::Wait(_) | Decision::More => continue,
            };
            let [seat] = &placement.seats[..] else { panic!("one pod at a time") };
            let pod = world.pod(&seat.pod.name);
            let best = reference::choice(&world.nodes, &world.seated(), &pod);
            let best = best.map(|(name, _)| name);
            assert_eq!(best.as_ref(), Some(&seat.node), "{} of seed {seed}", seat.pod);
            world.carry_out(&placement);
            placed += 1;
            // A change of a node that nobody is told of twice: images, taints, labels.
            let mut dice = Dice::new(seed + placed);
            if dice.once_in(3) {
                world.change_a_node(&mut dice);
            }
        }
    }
    assert!(placed > 10_000, "only {placed} pods were placed");
}

#[test]
fn the_emptier_node_wins_and_then_the_name() {
    // Node c: processors 75 and memory 96 give 85, and 69 for what the pod does to its balance. The others: 75 and 75.
    check(
        "node a cpu=4 memory=8Gi
         node b cpu=4 memory=8Gi
         node c cpu=4 memory=64Gi
         pod p x3 cpu=1 memory=2Gi",
        expect![[r#"
            pod default/p-0: p-0->c
            pod default/p-1: p-1->a
            pod default/p-2: p-2->b
        "#]],
    );
}

#[test]
fn the_node_whose_balance_gains_wins() {
    // Both would be left 37 and 62 per cent free. Node a goes from balance 100 to 87, node b from 75 to 87.
    check(
        "node a cpu=8 memory=8Gi
         node b cpu=8 memory=8Gi
         pod even on=a cpu=2 memory=2Gi
         pod lopsided on=b cpu=0 memory=4Gi
         pod p cpu=3 memory=1Gi",
        expect![[r#"
            pod default/p: p->b
        "#]],
    );
}

#[test]
fn pods_that_state_no_request_spread_all_the_same() {
    check(
        "node a cpu=4 memory=8Gi
         node b cpu=4 memory=8Gi
         pod p x4",
        expect![[r#"
            pod default/p-0: p-0->a
            pod default/p-1: p-1->b
            pod default/p-2: p-2->a
            pod default/p-3: p-3->b
        "#]],
    );
}

#[test]
fn preferred_labels_outweigh_an_emptier_node() {
    check(
        "node a cpu=8 memory=8Gi label:zone=a
         node b cpu=8 memory=8Gi label:zone=b
         node c cpu=8 memory=8Gi label:zone=b
         pod old on=b cpu=4 memory=4Gi
         pod p x2 cpu=1 memory=1Gi prefer:zone=b:1
         pod q cpu=1 memory=1Gi prefer:zone=b:2 prefer:zone=a:5",
        expect![[r#"
            pod default/p-0: p-0->c
            pod default/p-1: p-1->c
            pod default/q: q->a
        "#]],
    );
}

#[test]
fn a_taint_that_prefers_is_avoided_until_it_is_tolerated() {
    check(
        "node a cpu=8 memory=8Gi taint:spot=yes:PreferNoSchedule
         node b cpu=8 memory=8Gi
         pod old on=b cpu=6 memory=6Gi
         pod p x2 cpu=1 memory=1Gi
         pod late cpu=1 memory=1Gi
         pod tolerant cpu=1 memory=1Gi tolerate:spot",
        expect![[r#"
            pod default/p-0: p-0->b
            pod default/p-1: p-1->b
            pod default/late: late->a
            pod default/tolerant: tolerant->a
        "#]],
    );
}

#[test]
fn a_node_that_has_the_image_is_preferred() {
    check(
        "node a cpu=8 memory=8Gi
         node b cpu=8 memory=8Gi image:app:v1=2Gi
         pod p cpu=1 memory=1Gi image:app:v1
         pod q cpu=1 memory=1Gi image:app:v1
         pod r cpu=1 memory=1Gi image:other",
        expect![[r#"
            pod default/p: p->b
            pod default/q: q->b
            pod default/r: r->a
        "#]],
    );
}

#[test]
fn an_image_that_spreads_is_worth_more_where_it_was_before() {
    let mut world = World::parse(
        "node a cpu=64 memory=64Gi
         node b cpu=64 memory=64Gi
         node c cpu=64 memory=64Gi image:app:v1=300Mi
         pod old on=c cpu=8 memory=8Gi
         pod p x2 cpu=1 memory=1Gi image:app:v1",
    );
    // 300 MiB on a third of the nodes: 7 points, which 12 points of emptiness outweigh.
    expect![[r#"
        pod default/p-0: p-0->a
        pod default/p-1: p-1->b
    "#]]
    .assert_eq(&show(&world.settle()));
    world.add(
        "node a cpu=64 memory=64Gi image:app:v1=900Mi
         node b cpu=64 memory=64Gi
         node c cpu=64 memory=64Gi image:app:v1=900Mi
         pod q x2 cpu=1 memory=1Gi image:app:v1",
    );
    expect![[r#"
        pod default/q-0: q-0->a
        pod default/q-1: q-1->a
    "#]]
    .assert_eq(&show(&world.settle()));
}

#[test]
fn pods_are_drawn_to_those_they_like_and_those_that_like_them() {
    check(
        "node a cpu=8 memory=8Gi label:zone=a
         node b cpu=8 memory=8Gi label:zone=b
         node c cpu=8 memory=8Gi label:zone=c
         pod db on=b label:app=db prefer-affinity:zone:app=cache:10
         pod shy on=a label:app=shy
         pod web cpu=1 memory=1Gi prefer-affinity:zone:app=db:5
         pod cache cpu=1 memory=1Gi label:app=cache
         pod hermit cpu=1 memory=1Gi prefer-anti-affinity:zone:app=db:5 prefer-anti-affinity:zone:app=shy:5",
        expect![[r#"
            pod default/web: web->b
            pod default/cache: cache->b
            pod default/hermit: hermit->c
        "#]],
    );
}

#[test]
fn whoever_requires_a_pod_near_draws_its_likes() {
    check(
        "node a cpu=8 memory=8Gi label:zone=a
         node b cpu=8 memory=8Gi label:zone=b
         pod first on=b label:app=db
         pod client on=b affinity:zone:app=db
         pod second cpu=1 memory=1Gi label:app=db",
        expect![[r#"
            pod default/second: second->b
        "#]],
    );
}

#[test]
fn preferred_spread_evens_zones_out_but_never_keeps_a_pod_waiting() {
    check(
        "node a1 cpu=8 memory=8Gi label:zone=a
         node a2 cpu=8 memory=8Gi label:zone=a
         node b cpu=2 memory=8Gi label:zone=b
         pod old x2 on=a1 label:app=web
         pod p x4 cpu=1 memory=1Gi label:app=web prefer-spread:zone:1:app=web",
        expect![[r#"
            pod default/p-0: p-0->b
            pod default/p-1: p-1->b
            pod default/p-2: p-2->a2
            pod default/p-3: p-3->a1
        "#]],
    );
}

#[test]
fn a_pod_with_requirements_of_others_is_scored_too() {
    // Zone a is required; of its nodes the preferred one wins although the name of the other comes first.
    check(
        "node a1 cpu=8 memory=8Gi label:zone=a
         node a2 cpu=8 memory=8Gi label:zone=a label:disk=fast
         node b cpu=8 memory=8Gi label:zone=b label:disk=fast
         pod db on=a1 label:app=db
         pod p cpu=1 memory=1Gi affinity:zone:app=db prefer:disk=fast:1
         pod q cpu=1 memory=1Gi port:80 prefer:disk=fast:1
         pod r cpu=1 memory=1Gi port:80 prefer:disk=fast:1 prefer:zone=a:1",
        expect![[r#"
            pod default/p: p->a2
            pod default/q: q->b
            pod default/r: r->a2
        "#]],
    );
}

#[test]
fn a_profile_may_fill_nodes_up_or_follow_a_curve() {
    let scenario = "node a cpu=8 memory=8Gi
         node b cpu=8 memory=8Gi
         pod old on=b cpu=4 memory=4Gi
         pod p x2 cpu=1 memory=1Gi";
    let most = Profile { strategy: Strategy::MostAllocated, ..Profile::default() };
    check_with(
        most,
        scenario,
        expect![[r#"
            pod default/p-0: p-0->b
            pod default/p-1: p-1->b
        "#]],
    );
    // Best at five eighths.
    let curve = Curve::new(&[(0, 0), (62, 10), (63, 0)]).unwrap();
    let ratio = Profile { strategy: Strategy::RequestedToCapacityRatio(curve), ..Profile::default() };
    check_with(
        ratio,
        scenario,
        expect![[r#"
            pod default/p-0: p-0->b
            pod default/p-1: p-1->a
        "#]],
    );
}

/// Scores of topology spread, by node; numbers calculated by hand from kube-scheduler's rules.
fn spread_scores(nodes: &str, pod: &str) -> Vec<(String, i64)> {
    let mut world = World::parse(nodes);
    world.settle();
    let pod = Scenario::parse(pod).expect("a pod").pods.remove(0);
    let scores = world.engine.scores(&pod);
    let weight = i64::from(Profile::default().weights.topology_spread);
    scores.iter().map(|(node, scores)| (node.to_string(), scores[&Aspect::TopologySpread] / weight)).collect()
}

#[test]
fn pods_of_a_service_or_a_controller_are_spread_over_nodes_and_zones_by_default() {
    let host = "label:kubernetes.io/hostname";
    let zone = "label:topology.kubernetes.io/zone";
    let nodes = format!(
        "node a1 {host}=a1 {zone}=a
         node a2 {host}=a2 {zone}=a
         node b {host}=b {zone}=b
         node lost {host}=lost
         pod old x2 on=a1 label:app=web
         pod gone on=b label:app=web terminating
         pod other on=b label:app=db"
    );
    // Of four nodes one pod weighs ln 6 = 1.79; of two zones and no zone, ln 5 = 1.61. Where a label is missing its
    // constraint counts for nothing: a1 has 2 * 1.79 + 2 + 2 * 1.61 + 4 = 13, a2 has 2 + 2 * 1.61 + 4 = 9, b has
    // 2 + 4 = 6, and the node without a zone has 2.
    let expected =
        [("a1", 15), ("a2", 46), ("b", 69), ("lost", 100)].map(|(node, score)| (node.to_owned(), score));
    assert_eq!(spread_scores(&nodes, "pod p like:app=web"), expected);
    // Who says how to be spread is spread like that, even if it says so in a constraint that must hold.
    let equal = spread_scores(&nodes, "pod p like:app=web spread:kubernetes.io/hostname:9:app=web");
    assert!(equal.iter().all(|(_, score)| *score == 0), "{equal:?}");
    let equal = spread_scores(&nodes, "pod p like:*");
    assert!(equal.iter().all(|(_, score)| *score == 0), "{equal:?}");
}

#[test]
fn spreading_by_default_can_be_left_out() {
    let scenario = "node a cpu=8 memory=8Gi label:kubernetes.io/hostname=a
         node b cpu=8 memory=8Gi label:kubernetes.io/hostname=b
         pod old x2 on=a label:app=web
         pod heavy on=b cpu=4 memory=4Gi
         pod p cpu=1 memory=1Gi label:app=web like:app=web";
    check(
        scenario,
        expect![[r#"
            pod default/p: p->b
        "#]],
    );
    check_with(
        Profile { spreads_by_default: false, ..Profile::default() },
        scenario,
        expect![[r#"
            pod default/p: p->a
        "#]],
    );
}

#[test]
fn every_pod_is_placed_by_the_profile_of_its_scheduler_name() {
    let most = Profile { strategy: Strategy::MostAllocated, ..Profile::default() };
    let mut world = World::parse("");
    world.engine = Engine::new(Config {
        profiles: vec![
            NamedProfile::new(&["tutti"], Profile::default()),
            NamedProfile::new(&["packer"], most),
        ],
        ..Config::default()
    });
    world.add(
        "node a cpu=8 memory=8Gi
         node b cpu=8 memory=8Gi
         pod old on=b cpu=4 memory=4Gi
         pod p x2 cpu=1 memory=1Gi
         pod q x2 cpu=1 memory=1Gi scheduler=packer
         pod nobodys cpu=1 memory=1Gi scheduler=other",
    );
    expect![[r#"
        pod default/p-0: p-0->a
        pod default/p-1: p-1->a
        pod default/q-0: q-0->b
        pod default/q-1: q-1->b
    "#]]
    .assert_eq(&show(&world.settle()));
}
