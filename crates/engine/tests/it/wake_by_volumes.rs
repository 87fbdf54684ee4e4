//! Nothing that could be placed is asleep, whatever happens to claims, volumes, classes and limits.

use crate::driver::World;
use crate::random::Dice;
use crate::random_storage::{CLASSES, claim, node, uses, volume};
use crate::wake_ups::assert_nobody_placeable_sleeps;
use tutti_engine::{Decision, Event};
use tutti_model::Phase;

const CLAIMS: u64 = 5;

/// Something about storage comes, changes or goes.
fn change_storage(dice: &mut Dice, world: &mut World) {
    let number = dice.roll(0, CLAIMS);
    match dice.roll(0, 5) {
        0 | 1 => {
            let text = claim(dice, number);
            world.add(&text);
        }
        2 => {
            let class = if dice.once_in(3) { "zonal" } else { "local" };
            let text = volume(dice, &format!("v{number}"), class);
            world.add(&text);
        }
        3 if !world.storage.claims.is_empty() => {
            let at = dice.roll(0, world.storage.claims.len() as u64 - 1) as usize;
            let gone = world.storage.claims.remove(at);
            world.engine.apply(Event::ClaimGone(gone.key), world.now);
        }
        4 if !world.storage.volumes.is_empty() => {
            let at = dice.roll(0, world.storage.volumes.len() as u64 - 1) as usize;
            let gone = world.storage.volumes.remove(at);
            world.engine.apply(Event::VolumeGone(gone.name), world.now);
        }
        _ if world.storage.classes.is_empty() || dice.once_in(2) => world.add(CLASSES),
        _ => {
            let at = dice.roll(0, world.storage.classes.len() as u64 - 1) as usize;
            let gone = world.storage.classes.remove(at);
            world.engine.apply(Event::ClassGone(gone.name), world.now);
        }
    }
}

#[test]
fn after_every_event_of_a_random_history_of_volumes_nothing_placeable_is_asleep() {
    let mut placements = 0;
    for seed in 0..400 {
        let mut dice = Dice::new(seed + 177);
        let mut world = World::parse(CLASSES);
        for number in 0..=CLAIMS {
            let text = claim(&mut dice, number) + &node(&mut dice, &format!("n{}", number / 2));
            world.add(&text);
        }
        for step in 0..40 {
            world.now = world.now.plus_seconds(1);
            match dice.roll(0, 8) {
                0 => {
                    let name = format!("n{}", dice.roll(0, 3));
                    world.add(&node(&mut dice, &name));
                }
                1 if dice.once_in(2) => world.remove_node(&format!("n{}", dice.roll(0, 3))),
                1..=4 => change_storage(&mut dice, &mut world),
                5 | 6 => {
                    let mut text = format!("group g{step} gang={}\n", dice.roll(1, 3));
                    for member in 0..dice.roll(1, 3) {
                        let claims = uses(&mut dice, CLAIMS);
                        text +=
                            &format!("pod p{step}-{member} group=g{step} cpu={}{claims}\n", dice.roll(0, 2));
                    }
                    world.add(&text);
                }
                _ if world.pods.is_empty() => {}
                7 => {
                    let at = dice.roll(0, world.pods.len() as u64 - 1) as usize;
                    let key = world.pods[at].key.clone();
                    world.remove_pod(&key);
                }
                _ => {
                    let at = dice.roll(0, world.pods.len() as u64 - 1) as usize;
                    let mut pod = world.pods[at].clone();
                    pod.phase = Phase::Succeeded;
                    world.set_pod(pod);
                }
            }
            placements += world.settle().iter().filter(|d| matches!(d, Decision::Place(_))).count();
            assert_nobody_placeable_sleeps(&world, &format!("seed {seed} step {step}"));
        }
    }
    assert!(placements > 1_000, "the history must be eventful: {placements}");
}
