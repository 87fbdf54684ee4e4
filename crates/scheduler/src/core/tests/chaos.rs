//! Many small stories with faults in random places; every seed replays exactly.

use super::sim::{Fault, Sim};
use tutti_k8s::ObjectKind;

/// Stories in one run of the tests.
const SEEDS: u64 = 400;
const KINDS: [ObjectKind; 4] =
    [ObjectKind::Pod, ObjectKind::Node, ObjectKind::PodGroup, ObjectKind::Namespace];

/// A small generator: the tests need variety, not quality.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Gangs whose bound members are fewer than their minimum.
fn partial_gangs(sim: &Sim) -> Vec<String> {
    let bound = |group: &str| {
        let members = sim.pods.values().filter(|pod| pod.group.as_ref().is_some_and(|g| &*g.name == group));
        members.filter(|pod| pod.node.is_some()).count()
    };
    let partial = sim.groups.values().filter(|group| {
        let bound = bound(&group.key.name);
        bound > 0 && bound < group.policy.minimum() as usize
    });
    partial.map(|group| group.key.to_string()).collect()
}

fn random_fault(sim: &mut Sim, dice: &mut Dice, pod: &str) {
    let fault = match dice.below(6) {
        0 => Fault::Refuse,
        1 => Fault::LoseRequest,
        2 => Fault::LoseAnswer,
        _ => return,
    };
    sim.faults.entry(pod.to_owned()).or_default().push_back(fault);
}

fn story(seed: u64) {
    let mut dice = Dice(seed);
    let mut sim = Sim::new();
    let mut gangs = 0;
    for _ in 0..30 {
        match dice.below(9) {
            0 => sim.node(&format!("n{}", dice.below(4)), 4),
            1..=3 => {
                let name = format!("g{gangs}");
                gangs += 1;
                let size = 1 + dice.below(4);
                sim.gang(&name, u32::try_from(size).unwrap());
                for index in 0..size {
                    let pod = format!("{name}-{index}");
                    random_fault(&mut sim, &mut dice, &pod);
                    sim.pod(&pod, Some(&name), 1);
                }
            }
            4 => sim.hold(KINDS[dice.below(3) as usize]),
            5 => sim.release(),
            6 => sim.relist(KINDS[dice.below(3) as usize]),
            7 => {
                sim.step();
            }
            _ => sim.run_for(i64::try_from(dice.below(3)).unwrap()),
        }
    }
    // The faults end; room for everybody comes.
    sim.faults.clear();
    sim.release();
    for kind in KINDS {
        sim.relist(kind);
    }
    for index in 0..40 {
        sim.node(&format!("late{index}"), 4);
    }
    sim.run_for(600);
    assert_eq!(partial_gangs(&sim), Vec::<String>::new(), "seed {seed}");
    assert_eq!(sim.bound(), sim.pods.len(), "seed {seed}: everything has room");
    assert!(sim.core.is_drained(), "seed {seed}");
    let mut written = sim.written.clone();
    written.sort();
    written.dedup_by_key(|bind| bind.split('@').next().map(str::to_owned));
    assert_eq!(written.len(), sim.written.len(), "seed {seed}: nothing is bound twice");
}

#[test]
fn whatever_is_lost_refused_or_late_everything_is_bound_once_in_the_end() {
    for seed in 0..SEEDS {
        story(seed);
    }
}
