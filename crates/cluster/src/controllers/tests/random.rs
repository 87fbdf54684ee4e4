//! Random histories of a Job: whatever happens in whatever order, every pod is counted once and the Job ends.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Start,
    Stop,
    End { pod: usize, code: i32 },
    Delete { pod: usize },
    Parallelism(u32),
    Suspend(bool),
    Pass(i64),
    Relist,
    Fail(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::Start),
        1 => Just(Op::Stop),
        4 => (0..8_usize, 0..2_i32).prop_map(|(pod, code)| Op::End { pod, code }),
        1 => (0..8_usize).prop_map(|pod| Op::Delete { pod }),
        1 => (0..6_u32).prop_map(Op::Parallelism),
        1 => any::<bool>().prop_map(Op::Suspend),
        2 => (1..60_i64).prop_map(Op::Pass),
        1 => Just(Op::Relist),
        1 => (1..4_usize).prop_map(Op::Fail),
    ]
}

/// Ends of pods, as the world saw them.
#[derive(Default)]
struct Ends {
    succeeded: u64,
}

fn apply(sim: &mut Sim, op: &Op, ends: &mut Ends) {
    match op {
        Op::Start => sim.start_pods(),
        Op::Stop => sim.stop_pods(),
        Op::End { pod, code } => {
            let running: Vec<String> = sim
                .all("pods")
                .into_iter()
                .filter(|pod| {
                    pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
                })
                .map(name_of)
                .collect();
            if let Some(name) = running.get(*pod) {
                ends.succeeded += u64::from(*code == 0);
                sim.end_pod(&name.clone(), *code);
            }
        }
        Op::Delete { pod } => {
            if let Some(name) = sim.active().get(*pod).cloned() {
                sim.delete("pods", &name, false);
                sim.settle();
            }
        }
        Op::Parallelism(count) => {
            sim.change("jobs", "j", |job| job["spec"]["parallelism"] = json!(count));
            sim.settle();
        }
        Op::Suspend(suspended) => {
            sim.change("jobs", "j", |job| job["spec"]["suspend"] = json!(suspended));
            sim.settle();
        }
        Op::Pass(seconds) => sim.pass(*seconds),
        Op::Relist => {
            sim.relist();
            sim.settle();
        }
        Op::Fail(count) => sim.faults = *count,
    }
}

fn check(sim: &Sim, ends: &Ends, completions: u64, indexed: bool) {
    let job = sim.get("jobs", "j");
    let succeeded = job["status"]["succeeded"].as_u64().unwrap_or(0);
    assert!(succeeded <= completions.max(ends.succeeded), "{job}");
    assert!(succeeded <= ends.succeeded, "nobody is counted twice: {job}");
    if indexed {
        let mut seen = std::collections::BTreeSet::new();
        for pod in sim.all("pods").into_iter().filter(|pod| sim.active().contains(&name_of(pod))) {
            let index =
                pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].to_string();
            assert!(seen.insert(index), "two pods of one index run");
        }
    }
}

/// Nothing goes wrong any more; everything that runs succeeds.
fn finish(sim: &mut Sim, ends: &mut Ends) {
    sim.faults = 0;
    sim.change("jobs", "j", |job| {
        job["spec"]["suspend"] = json!(false);
        job["spec"]["parallelism"] = json!(3);
    });
    for _ in 0..60 {
        sim.pass(700);
        sim.stop_pods();
        sim.start_pods();
        while let Some(name) = sim.active().first().cloned() {
            ends.succeeded += 1;
            sim.end_pod(&name, 0);
            sim.start_pods();
        }
        sim.pass(10);
        if ["Complete", "Failed"].iter().any(|kind| sim.condition("jobs", "j", kind)["status"] == "True") {
            return;
        }
    }
    panic!("the Job never ends: {}", sim.get("jobs", "j"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_history_of_a_job_counts_right_and_comes_to_an_end(
        ops in prop::collection::vec(op(), 0..40),
        indexed in any::<bool>(),
        limit in prop_oneof![Just(2_u32), Just(1000)],
    ) {
        let mut sim = Sim::new();
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let spec = json!({"parallelism": 3, "completions": 5, "completionMode": mode, "backoffLimit": limit,
            "template": template()});
        sim.create("jobs", json!({"metadata": {"name": "j"}, "spec": spec}));
        sim.settle();
        let mut ends = Ends::default();
        for op in &ops {
            apply(&mut sim, op, &mut ends);
            check(&sim, &ends, 5, indexed);
        }
        finish(&mut sim, &mut ends);
        check(&sim, &ends, 5, indexed);
        if sim.condition("jobs", "j", "Complete")["status"] == "True" {
            prop_assert!(sim.get("jobs", "j")["status"]["succeeded"].as_u64() >= Some(5));
        } else {
            prop_assert!(sim.get("jobs", "j")["status"]["failed"].as_u64() > Some(limit.into()));
        }
        for pod in sim.all("pods") {
            prop_assert_eq!(&pod["metadata"]["finalizers"], &json!([]), "nobody is held back");
        }
    }
}
