//! What is placed where, and what is said when it is not.

use crate::driver::{World, show};
use expect_test::{Expect, expect};
use tutti_engine::{Decision, Event};
use tutti_model::Time;

fn check(scenario: &str, expected: Expect) {
    let mut world = World::parse(scenario);
    expected.assert_eq(&show(&world.settle()));
}

#[test]
fn a_gang_that_fits_starts_whole() {
    check(
        "node a cpu=8 gpu=2
         node b cpu=8 gpu=2
         group g gang=4
         pod w x4 group=g gpu=1",
        expect![[r#"
            group default/g: w-0->a w-1->a w-2->b w-3->b
        "#]],
    );
}

#[test]
fn a_gang_of_which_six_of_eight_fit_does_not_start_and_learns_why() {
    check(
        "node a x3 cpu=64 gpu=2
         group g gang=8
         pod w x8 group=g gpu=1 cpu=4",
        expect![[r#"
            group default/g (8) waits: 6 of 8 members fit (most on a-0: 2), short of 2 nvidia.com/gpu; 0/3 nodes are available for one more: 3 Insufficient nvidia.com/gpu
        "#]],
    );
}

#[test]
fn it_starts_whole_when_a_node_joins() {
    let mut world = World::parse(
        "node a x3 cpu=64 gpu=2
         group g gang=8
         pod w x8 group=g gpu=1",
    );
    assert!(matches!(world.settle()[..], [Decision::Wait(_)]));
    world.add("node b cpu=64 gpu=2");
    expect![[r#"
        group default/g: w-0->a-0 w-1->a-0 w-2->a-1 w-3->a-1 w-4->a-2 w-5->a-2 w-6->b w-7->b
    "#]]
    .assert_eq(&show(&world.settle()));
}

#[test]
fn a_mixed_gang_is_placed_whatever_the_order_of_its_members() {
    for (first, second) in [(2, 4), (4, 2)] {
        let mut world = World::parse(&format!(
            "node a cpu=4
             node b cpu=2
             group g gang=2
             pod p1 group=g cpu={first}
             pod p2 group=g cpu={second}"
        ));
        let decisions = world.settle();
        let [Decision::Place(placement)] = &decisions[..] else { panic!("{}", show(&decisions)) };
        assert_eq!(placement.seats.len(), 2);
    }
}

#[test]
fn exact_search_finds_what_no_greedy_order_does() {
    // Two nodes of 12 and members 6, 4, 4, 4, 3, 3: hardest first into the tightest bin leaves a 3 over after
    // 6+4 and 4+4+3; the only way is 6+3+3 and 4+4+4.
    check(
        "node a cpu=12
         node b cpu=12
         group g gang=6
         pod six group=g cpu=6
         pod four x3 group=g cpu=4
         pod three x2 group=g cpu=3",
        expect![[r#"
            group default/g: four-0->b four-1->b four-2->b six->a three-0->a three-1->a
        "#]],
    );
}

#[test]
fn what_the_budget_does_not_decide_is_not_called_impossible() {
    let scenario = "node a cpu=12
         node b cpu=12
         group g gang=6
         pod six group=g cpu=6
         pod four x3 group=g cpu=4
         pod three x2 group=g cpu=3";
    let answer = |branches_max: u32| {
        let mut world = World::parse("");
        world.engine = tutti_engine::Engine::new(tutti_engine::Config { branches_max, ..Default::default() });
        world.add(scenario);
        let decisions = world.settle();
        let (spent, most) = world.engine.steps_max();
        assert!(spent <= most, "{spent} of {most}");
        show(&decisions)
    };
    let answers: Vec<String> = (0..400).map(answer).collect();
    let is_open = |answer: &&String| answer.contains("though one may exist");
    assert!(is_open(&&answers[0]));
    let open = answers.iter().take_while(is_open).count();
    assert!(answers[open..].iter().all(|answer| answer.contains("six->a")), "once found, always found");
    expect![[r#"
        group default/g (6) waits: no placement found within the search budget, though one may exist; best found: 5 of 6 members fit; 0/2 nodes are available for one more
    "#]].assert_eq(&answers[open - 1]);
}

#[test]
fn as_many_members_as_possible_start_beyond_the_minimum() {
    let mut world = World::parse(
        "node n0 cpu=4
         node n1 cpu=4
         node n2 cpu=5
         group g gang=3
         pod three x3 group=g cpu=3
         pod two x3 group=g cpu=2",
    );
    let decisions = world.settle();
    let Some(tutti_engine::Decision::Place(placement)) = decisions.first() else {
        panic!("{}", show(&decisions));
    };
    assert_eq!(placement.seats.len(), 5, "{}", show(&decisions));
}

#[test]
fn members_beyond_the_minimum_start_if_they_fit_and_the_rest_learn_why_not() {
    check(
        "node a cpu=8 gpu=3
         group g gang=2
         pod w x4 group=g gpu=1",
        expect![[r#"
            group default/g: w-0->a w-1->a w-2->a w-3->?
            group default/g (1) waits: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu
        "#]],
    );
}

#[test]
fn the_minimum_of_a_mixed_gang_is_any_of_its_members() {
    check(
        "node a cpu=4
         group g gang=2
         pod large group=g cpu=16
         pod small x2 group=g cpu=2",
        expect![[r#"
            group default/g: small-0->a small-1->a large->?
            group default/g (1) waits: 0/1 nodes are available: 1 Insufficient cpu
        "#]],
    );
}

#[test]
fn members_that_run_already_count() {
    check(
        "node a gpu=4
         group g gang=4
         pod running x3 group=g on=a gpu=1
         pod new group=g gpu=1",
        expect![[r#"
            group default/g: new->a
        "#]],
    );
}

#[test]
fn succeeded_members_count_and_take_no_room_terminating_ones_the_reverse() {
    check(
        "node a gpu=2
         group g gang=3
         pod done group=g on=a gpu=1 phase=Succeeded
         pod dying group=g on=a gpu=1 terminating
         pod new x2 group=g gpu=1",
        expect![[r#"
            group default/g (2) waits: 1 of 2 members fit (most on a: 1), short of 1 nvidia.com/gpu; 0/1 nodes are available for one more: 1 Insufficient nvidia.com/gpu
        "#]],
    );
}

#[test]
fn too_few_members_is_a_waiting_state() {
    check(
        "node a cpu=8
         group g gang=3
         pod w group=g cpu=1
         pod held group=g cpu=1 gated",
        expect![[r#"
            group default/g (1) waits: waiting for members: 3 must start together and 1 are ready, 1 held back by scheduling gates
        "#]],
    );
}

#[test]
fn pods_of_a_missing_group_wait_for_it() {
    let mut world = World::parse(
        "node a cpu=8
         pod w x2 group=g cpu=1",
    );
    expect![[r#"
        group default/g (2) waits: waiting for pod group default/g to be created
    "#]]
    .assert_eq(&show(&world.settle()));
    world.add("group g gang=2");
    expect![[r#"
        group default/g: w-0->a w-1->a
    "#]]
    .assert_eq(&show(&world.settle()));
}

#[test]
fn members_that_contradict_each_other_learn_what_to_change() {
    check(
        "node a cpu=8
         group g gang=2
         pod p1 group=g priority=1
         pod p2 group=g priority=2
         group h gang=2
         pod q1 group=h
         pod q2 group=h scheduler=other
         group k gang=1 priority=7
         pod r group=k",
        expect![[r#"
            group default/k (1) waits: members have priority 0 but their group has 7; they must be equal
            group default/g (2) waits: members have different priorities (1, 2); they must be equal
            group default/h (2) waits: members name different schedulers (other, tutti); they must all name one
        "#]],
    );
}

#[test]
fn every_reason_that_rules_nodes_out_is_counted() {
    check(
        "node cordoned x2 cpu=8 gpu=8 cordoned
         node tainted cpu=8 gpu=8 taint:dedicated=team:NoSchedule
         node wrong-zone cpu=8 gpu=8 label:zone=b
         node full cpu=8 gpu=8 label:zone=a
         pod old on=full gpu=8 cpu=8
         pod new gpu=1 cpu=1 select:zone=a",
        expect![[r#"
            pod default/new (1) waits: 0/5 nodes are available: 2 cordoned, 1 untolerated taint dedicated, 1 not selected by node selector or affinity, 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu
        "#]],
    );
}

#[test]
fn an_empty_cluster_says_so() {
    check(
        "pod p cpu=1",
        expect![[r#"
            pod default/p (1) waits: there are no nodes
        "#]],
    );
}

#[test]
fn a_tolerated_taint_is_no_obstacle() {
    check(
        "node a cpu=8 taint:gpu=yes:NoSchedule
         pod p cpu=1 tolerate:gpu=yes:NoSchedule
         pod q cpu=1",
        expect![[r#"
            pod default/p: p->a
            pod default/q (1) waits: 0/1 nodes are available: 1 untolerated taint gpu
        "#]],
    );
}

#[test]
fn priority_goes_first_and_then_age() {
    check(
        "node a cpu=1
         pod old cpu=1
         pod young cpu=1
         pod urgent cpu=1 priority=9",
        expect![[r#"
            pod default/urgent: urgent->a
            pod default/old (1) waits: 0/1 nodes are available: 1 Insufficient cpu
            pod default/young (1) waits: 0/1 nodes are available: 1 Insufficient cpu
        "#]],
    );
}

#[test]
fn a_broken_gang_goes_before_its_equals() {
    check(
        "node a gpu=3
         group older gang=1
         pod other group=older gpu=1
         group g gang=3
         pod member x2 group=g gpu=1 on=a
         pod replacement group=g gpu=1",
        expect![[r#"
            group default/g: replacement->a
            group default/older (1) waits: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu
        "#]],
    );
}

#[test]
fn pods_of_other_schedulers_take_room_and_are_not_placed() {
    check(
        "node a cpu=2
         pod theirs scheduler=other cpu=1
         pod running scheduler=other cpu=1 on=a
         pod ours x2 cpu=1",
        expect![[r#"
            pod default/ours-0: ours-0->a
            pod default/ours-1 (1) waits: 0/1 nodes are available: 1 Insufficient cpu
        "#]],
    );
}

#[test]
fn plain_pods_spread_and_groups_pack() {
    check(
        "node a cpu=8
         node b cpu=8
         pod p x2 cpu=1
         group g basic
         pod w x3 group=g cpu=1",
        expect![[r#"
            pod default/p-0: p-0->a
            pod default/p-1: p-1->b
            group default/g: w-0->a w-1->a w-2->a
        "#]],
    );
}

#[test]
fn a_failed_binding_frees_the_seat_and_is_tried_again_after_a_pause() {
    let mut world = World::parse(
        "node a cpu=1
         pod p cpu=1",
    );
    let Decision::Place(placement) = world.engine.decide(world.now) else { panic!("p fits") };
    let [seat] = &placement.seats[..] else { panic!("one seat") };
    let failed = Event::BindFailed { pod: seat.pod.clone(), uid: seat.uid.clone() };
    world.engine.apply(failed.clone(), Time(0));
    assert_eq!(world.engine.decide(Time(0)), Decision::Idle { wake_at: Some(Time(1000)) });
    assert_eq!(world.engine.decide(Time(1000)), Decision::Place(placement));
    world.engine.apply(failed.clone(), Time(1000));
    assert_eq!(world.engine.decide(Time(1000)), Decision::Idle { wake_at: Some(Time(3000)) });
    world.engine.apply(failed, Time(2000));
    assert_eq!(world.engine.decide(Time(2000)), Decision::Idle { wake_at: Some(Time(3000)) }, "told twice");
}

#[test]
fn a_gang_whose_bindings_all_fail_at_once_pauses_as_if_one_had() {
    let mut world = World::parse(
        "node a cpu=8
         group g gang=8
         pod w x8 group=g cpu=1",
    );
    for pause in [1, 2, 4] {
        let Decision::Place(placement) = world.engine.decide(world.now) else { panic!("g fits") };
        for seat in &placement.seats {
            world.engine.apply(Event::BindFailed { pod: seat.pod.clone(), uid: seat.uid.clone() }, world.now);
        }
        let next = world.now.plus_seconds(pause);
        assert_eq!(world.engine.decide(world.now), Decision::Idle { wake_at: Some(next) });
        world.now = next;
    }
}

#[test]
fn an_older_picture_of_a_placed_pod_does_not_undo_the_decision() {
    let mut world = World::parse(
        "node a cpu=1
         pod p cpu=1
         pod q cpu=1",
    );
    assert!(matches!(world.engine.decide(world.now), Decision::Place(_)));
    let stale = world.pod("p");
    world.engine.apply(Event::PodSet(Box::new(stale)), world.now);
    let Decision::Wait(waiting) = world.engine.decide(world.now) else { panic!("q does not fit") };
    assert_eq!(waiting.unit.object().name.as_ref(), "q");
}

#[test]
fn a_pod_that_is_made_again_under_its_name_is_another_pod() {
    let mut world = World::parse(
        "node a cpu=1
         pod p cpu=1",
    );
    world.settle();
    let mut again = world.pod("p");
    again.uid = "another".into();
    again.node = None;
    again.phase = tutti_model::Phase::Pending;
    world.set_pod(again);
    expect![[r#"
        pod default/p: p->a
    "#]]
    .assert_eq(&show(&world.settle()));
}

#[test]
fn promised_seats_are_kept_from_equals_but_not_from_their_betters() {
    let mut world = World::parse(
        "node a cpu=2
         group late gang=2
         pod equal cpu=1
         pod urgent cpu=1 priority=5",
    );
    let mut requests = tutti_model::ResourceList::new();
    requests.set(tutti_model::Resource::new("cpu"), 1000);
    let seats = vec![tutti_engine::HeldSeat { node: "a".into(), requests, count: 2 }];
    let unit = tutti_engine::UnitKey::Group(tutti_model::ObjectKey::new("default", "late"));
    let reason = tutti_engine::HoldReason::Told;
    let hold = tutti_engine::Hold { unit, priority: 0, expires: Some(Time(10_000)), seats, reason };
    world.engine.apply(Event::Hold(Box::new(hold)), Time(0));
    expect![[r#"
        pod default/urgent: urgent->a
        pod default/equal (1) waits: 0/1 nodes are available: 1 Insufficient cpu
    "#]]
    .assert_eq(&show(&world.settle()));
    assert_eq!(world.engine.decide(Time(9_999)), Decision::Idle { wake_at: Some(Time(10_000)) });
    world.now = Time(10_000);
    expect![[r#"
        pod default/equal: equal->a
    "#]]
    .assert_eq(&show(&world.settle()));
}

#[test]
fn a_promise_serves_the_unit_it_was_made_to_and_then_ends() {
    let mut world = World::parse(
        "node a cpu=2
         pod nominated cpu=2 gated nominated=a
         pod equal cpu=1",
    );
    expect![[r#"
        pod default/equal (1) waits: 0/1 nodes are available: 1 Insufficient cpu
    "#]]
    .assert_eq(&show(&world.settle()));
    let mut ready = world.pod("nominated");
    ready.gates.clear();
    world.set_pod(ready);
    expect![[r#"
        pod default/nominated: nominated->a
    "#]]
    .assert_eq(&show(&world.settle()));
}

#[test]
fn what_is_not_supported_yet_waits_rather_than_being_placed_without() {
    let mut world = World::parse(
        "node a cpu=8
         pod claims cpu=1",
    );
    let mut pod = world.pod("claims");
    pod.device_claims.push("data".into());
    world.set_pod(pod);
    expect![[r#"
        pod default/claims (1) waits: resource claim data is not supported yet; it waits rather than being placed without
    "#]]
    .assert_eq(&show(&world.settle()));
}
