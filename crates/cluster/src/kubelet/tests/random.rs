//! Random histories with faults. Whatever happens, no node runs more than it has, and when the faults are over
//! everything comes to its end.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const NODES: usize = 3;
const PODS: usize = 8;
/// CPUs of node 0, 1 and 2.
const CPUS: [u64; NODES] = [1, 2, 4];

#[derive(Debug, Clone)]
enum Op {
    AddNode(usize),
    RemoveNode(usize),
    AddPod {
        pod: usize,
        node: usize,
        cpus: u64,
        run_seconds: Option<u8>,
    },
    DeletePod(usize),
    /// Somebody else changes a pod.
    Touch(usize),
    Pass {
        millis: u16,
    },
    Relist,
    Restart,
    Fault(Fault),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let pod = 0..PODS;
    let op = prop_oneof![
        2 => (0..NODES).prop_map(Op::AddNode),
        1 => (0..NODES).prop_map(Op::RemoveNode),
        6 => (pod.clone(), 0..NODES, 0..4_u64, proptest::option::of(0..10_u8))
            .prop_map(|(pod, node, cpus, run_seconds)| Op::AddPod { pod, node, cpus, run_seconds }),
        2 => pod.clone().prop_map(Op::DeletePod),
        2 => pod.prop_map(Op::Touch),
        6 => (0..4000_u16).prop_map(|millis| Op::Pass { millis }),
        1 => Just(Op::Relist),
        1 => Just(Op::Restart),
        2 => prop_oneof![Just(Fault::Refused), Just(Fault::AnswerLost)].prop_map(Op::Fault),
    ];
    proptest::collection::vec(op, 1..60)
}

/// A world and a number that makes every new pod another one.
struct History {
    world: World,
    born: u64,
}

impl History {
    fn apply(&mut self, op: &Op) {
        let world = &mut self.world;
        match *op {
            Op::AddNode(node) => {
                if world.get(&format!("Node//n{node}")).is_none() {
                    world.store_and_settle(mk_node(
                        &format!("n{node}"),
                        &json!({"cpu": CPUS[node].to_string()}),
                    ));
                }
            }
            Op::RemoveNode(node) => {
                let name = format!("n{node}");
                world.objects.retain(|object| id(object) != format!("Node//{name}"));
                let effects = world.step(Input::NodeGone(name));
                world.settle(effects);
            }
            Op::AddPod { pod, node, cpus, run_seconds } => {
                if world.get(&format!("Pod/default/p{pod}")).is_some() {
                    return;
                }
                self.born += 1;
                let mut object =
                    mk_pod(&format!("p{pod}"), &format!("n{node}"), &json!({"cpu": cpus.to_string()}));
                object["metadata"]["uid"] = json!(format!("uid-{}", self.born));
                if let Some(seconds) = run_seconds {
                    object = annotated(object, &[(RUN_SECONDS, &seconds.to_string())]);
                }
                world.store_and_settle(object);
            }
            Op::DeletePod(pod) => self.change(pod, |object| {
                object["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
                object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            }),
            Op::Touch(pod) => self.change(pod, |object| {
                object["metadata"]["labels"]["touched"] = json!("yes");
            }),
            Op::Pass { millis } => world.pass_and_settle(millis.into()),
            Op::Relist => {
                let effects = world.relist();
                world.settle(effects);
            }
            Op::Restart => world.restart(),
            Op::Fault(fault) => world.faults.push_back(fault),
        }
    }

    fn change(&mut self, pod: usize, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.world.get(&format!("Pod/default/p{pod}")).cloned() {
            change(&mut object);
            self.world.store_and_settle(object);
        }
    }

    /// The promise that holds at every moment.
    fn check_room(&self) {
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        for pod in self.world.objects.iter().filter(|o| o["status"]["phase"] == "Running") {
            let asked = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap();
            *used.entry(pod["spec"]["nodeName"].as_str().unwrap()).or_default() +=
                asked.parse::<u64>().unwrap();
        }
        for (node, cpus) in (0..NODES).map(|node| (format!("n{node}"), CPUS[node])) {
            let running = used.get(node.as_str()).copied().unwrap_or(0);
            assert!(running <= cpus, "{node} has {cpus} CPUs and runs pods of {running}");
        }
    }

    /// What holds after a time without faults.
    fn check_end(&mut self) {
        self.world.faults.clear();
        for _ in 0..100 {
            self.world.pass_and_settle(1_000);
            self.check_room();
        }
        let nodes: Vec<String> =
            self.world.objects.iter().map(id).filter(|id| id.starts_with("Node")).collect();
        for object in &self.world.objects {
            if object["kind"] == "Node" {
                assert_eq!(condition(object, "Ready")["status"], "True");
                continue;
            }
            let node = format!("Node//{}", object["spec"]["nodeName"].as_str().unwrap());
            if !nodes.contains(&node) {
                // Nobody's; the cluster collects it.
                continue;
            }
            assert!(object["metadata"]["deletionTimestamp"].is_null(), "a deleted pod stayed: {object}");
            assert_ne!(object["status"]["phase"], "Pending", "a pod waits for ever: {object}");
            if object["status"]["phase"] == "Running" {
                assert!(object["metadata"]["annotations"].is_null(), "a pod runs too long: {object}");
                assert_eq!(condition(object, "example.com/foreign")["status"], "Maybe");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_history_overfills_a_node_and_every_history_comes_to_its_end(ops in ops()) {
        let mut history = History { world: World::new(), born: 0 };
        for op in &ops {
            history.apply(op);
            history.check_room();
        }
        history.check_end();
    }
}
