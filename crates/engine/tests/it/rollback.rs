//! A trial that is taken back leaves no trace.

use crate::driver::World;
use crate::history::{History, Mix, STEPS};
use crate::random::{Dice, instance, instance_with_wishes};
use crate::random_storage::instance_with_volumes;
use crate::random_trees::composite_instance;
use tutti_engine::{Event, HeldSeat, Hold, HoldReason, UnitKey};
use tutti_model::{ObjectKey, Pod, Text};

const TRIALS: u64 = 10_000;

/// Pods that sit somewhere else or nowhere, at random.
fn moves(dice: &mut Dice, world: &World) -> Vec<(ObjectKey, Option<Text>)> {
    let pick = |dice: &mut Dice, count: usize| dice.roll(0, count as u64 - 1) as usize;
    (0..dice.roll(2, 8))
        .map(|_| {
            let pod = world.pods[pick(dice, world.pods.len())].key.clone();
            let node = world.nodes[pick(dice, world.nodes.len())].name.clone();
            (pod, if dice.once_in(2) { None } else { Some(node) })
        })
        .collect()
}

fn hold(dice: &mut Dice, world: &World, pod: &Pod) -> Hold {
    let node = &world.nodes[dice.roll(0, world.nodes.len() as u64 - 1) as usize];
    Hold {
        unit: UnitKey::Pod(ObjectKey::new("default", "elsewhere")),
        priority: -1,
        expires: None,
        reason: HoldReason::Told,
        seats: vec![HeldSeat { node: node.name.clone(), requests: pod.requests.clone(), count: 1 }],
    }
}

#[test]
fn ten_thousand_random_transactions_leave_the_digest_as_it_was() {
    let (mut trials, mut done) = (0, 0);
    for seed in 0.. {
        let text = match seed % 4 {
            0 => instance(seed),
            1 => instance_with_wishes(seed),
            2 => instance_with_volumes(seed),
            _ => composite_instance(seed),
        };
        let mut dice = Dice::new(seed);
        let mut world = World::parse(&text);
        if dice.once_in(2) {
            world.settle();
        }
        let pod = world.pods[0].clone();
        let hold = hold(&mut dice, &world, &pod);
        world.engine.apply(Event::Hold(Box::new(hold)), world.now);
        let before = world.engine.digest();
        let decided = world.clone().settle();
        for _ in 0..10 {
            let moves = moves(&mut dice, &world);
            done += world.engine.rehearse(&UnitKey::Pod(pod.key.clone()), &moves);
            trials += 1;
            assert_eq!(world.engine.digest(), before, "seed {seed}: {moves:?}\n{text}");
        }
        // Nothing that cannot be seen in a number is left behind either: not in caches, not among wake-ups.
        assert_eq!(world.settle(), decided, "seed {seed}\n{text}");
        if trials >= TRIALS {
            break;
        }
    }
    assert!(done > TRIALS as usize, "most trials must do something: {done}");
}

#[test]
fn trials_in_the_middle_of_random_histories_leave_no_trace() {
    let mut done = 0;
    for mix in [Mix::Resources, Mix::Terms, Mix::Domains, Mix::Composites, Mix::Storage] {
        for seed in 0..20 {
            let mut history = History::new(seed + 5_000, mix);
            let mut world = history.begin();
            let mut dice = Dice::new(seed);
            for step in 0..STEPS {
                history.step(&mut world);
                if world.pods.is_empty() || world.nodes.is_empty() {
                    continue;
                }
                let before = world.engine.digest();
                let moves = moves(&mut dice, &world);
                let unit = UnitKey::Pod(world.pods[0].key.clone());
                done += world.engine.rehearse(&unit, &moves);
                assert_eq!(world.engine.digest(), before, "{mix:?} seed {seed} step {step}: {moves:?}");
            }
        }
    }
    assert!(done > 2_000, "most trials must do something: {done}");
}
