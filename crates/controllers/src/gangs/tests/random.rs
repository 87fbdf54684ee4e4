//! Whatever Jobs and Workloads look like and in whichever order they are seen, the controller comes to rest.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const JOBS: usize = 3;
const STEPS_MAX: usize = 40;
/// A Workload, its groups and one change of either, and the look that finds nothing to do.
const LOOKS_MAX: usize = 5;

#[derive(Debug, Clone)]
enum Step {
    /// A Job is as it should be but for some fields.
    Job(usize, Vec<(usize, usize)>),
    /// A Job is deleted.
    NoJob(usize),
    /// Somebody makes or changes a Workload for a Job.
    Workload(usize, usize, Value),
    /// Somebody deletes one of all Workloads and groups.
    Delete(usize),
    /// The watches start over.
    Relist,
    /// Time passes.
    Wait(u8),
}

/// Values that fields do not have.
fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(-1),
        json!(0),
        json!(3),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("tutti"),
        json!("ü.".repeat(200)),
        json!([]),
        json!([null, {}, 3]),
        json!({}),
        json!({"schedulingPolicy": {"gang": {"minCount": 2}}}),
        json!({"gang": 3, "schedulingPolicy": {"gang": []}, "ready": "x", "conditions": [{"type": 1}]}),
        json!({"ready": 1}),
        json!({"conditions": [{"type": "Complete", "status": "True"}]}),
        json!({GANG_ANNOTATION: "true"}),
        json!(true),
    ]
}

/// Fields of a Job that may hold anything.
pub(super) const FIELDS: [(&str, &str); 12] = [
    ("", "spec"),
    ("", "status"),
    ("/metadata", "annotations"),
    ("/spec", "completionMode"),
    ("/spec", "parallelism"),
    ("/spec", "completions"),
    ("/spec", "template"),
    ("/spec", "scheduling"),
    ("/spec/template", "spec"),
    ("/spec/template/spec", "schedulerName"),
    ("/spec/template/spec", "schedulingGroup"),
    ("/spec/template/spec", "priorityClassName"),
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let values = odd_values().len();
    let job = (0..JOBS, proptest::collection::vec((0..FIELDS.len(), 0..values), 0..3));
    let templates = prop_oneof![
        (0..values).prop_map(|value| odd_values()[value].clone()),
        (0_u64..9).prop_map(|min| json!([{"name": "t", "schedulingPolicy": {"gang": {"minCount": min}}}])),
    ];
    let step = prop_oneof![
        4 => job.prop_map(|(job, fields)| Step::Job(job, fields)),
        1 => (0..JOBS).prop_map(Step::NoJob),
        2 => (0..JOBS, 0..2_usize, templates).prop_map(|(job, name, spec)| Step::Workload(job, name, spec)),
        1 => any::<usize>().prop_map(Step::Delete),
        1 => Just(Step::Relist),
        1 => any::<u8>().prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..STEPS_MAX)
}

/// The world and the Jobs in it.
struct Story {
    world: World,
    jobs: BTreeMap<usize, Value>,
    born: u64,
}

impl Story {
    fn job(&mut self, index: usize, fields: &[(usize, usize)]) {
        let uid = match self.jobs.get(&index) {
            Some(job) => job["metadata"]["uid"].clone(),
            None => {
                self.born += 1;
                json!(format!("u{}", self.born))
            }
        };
        let mut job = job();
        job["metadata"]["name"] = json!(format!("j{index}"));
        job["metadata"]["uid"] = uid;
        for (field, value) in fields {
            let (place, field) = FIELDS[*field];
            if let Some(Value::Object(at)) = job.pointer_mut(place) {
                let value = odd_values()[*value].clone();
                // Annotations and their like are of the right type in every API server.
                if field != "annotations" || value == json!({GANG_ANNOTATION: "true"}) {
                    at.insert(field.to_owned(), value);
                }
            }
        }
        self.world.see_job(&job);
        self.jobs.insert(index, job);
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Job(index, fields) => self.job(*index, fields),
            Step::NoJob(index) => {
                if let Some(job) = self.jobs.remove(index) {
                    self.world.lose_job(&job);
                }
            }
            Step::Workload(index, name, templates) => {
                let workload = json!({"kind": "Workload",
                    "metadata": {"name": format!("w{name}"), "namespace": "a", "uid": format!("w{name}")},
                    "spec": {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": format!("j{index}")},
                             "podGroupTemplates": templates}});
                self.world.see(&workload);
            }
            Step::Delete(which) => {
                if !self.world.made.is_empty() {
                    let which = which % self.world.made.len();
                    let gone = self.world.made.remove(which);
                    self.world.lose(&gone);
                }
            }
            Step::Relist => {
                let of = |kind: &str| {
                    let made = self.world.made.iter().filter(|made| made["kind"] == kind);
                    Change::Listed(made.map(view).collect::<Vec<View<Value>>>())
                };
                let (workloads, groups) = (of("Workload"), of("PodGroup"));
                let jobs = Change::Listed(self.jobs.values().map(view).collect());
                for event in [Event::Owner(jobs), Event::Workload(workloads), Event::Group(groups)] {
                    self.world.gangs.observe(event, self.world.now);
                }
            }
            Step::Wait(seconds) => self.world.now += SignedDuration::from_secs(i64::from(*seconds)),
        }
    }

    /// Everybody is looked at until there is nothing left to do, which must be soon.
    fn rest(&mut self) {
        for index in 0..JOBS {
            let name = format!("j{index}");
            let looks = (0..LOOKS_MAX).take_while(|_| self.world.step(&name) > 0).count();
            assert!(looks < LOOKS_MAX, "{name} is worked on for ever");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_controller_comes_to_rest_and_no_job_has_two_groups(
        steps in steps(),
        version in prop_oneof![Just(OF_1_36), Just("v1alpha3"), Just(NEWEST)],
        integration in prop_oneof![Just(Integration::On), Just(Integration::Auto)],
    ) {
        let world = World::with(Api::of(&pod_groups(version)).unwrap(), integration);
        let mut story = Story { world, jobs: BTreeMap::new(), born: 0 };
        for step in &steps {
            story.play(step);
            story.rest();
            for job in story.jobs.values() {
                let owned = |made: &&Value| {
                    made["kind"] == "PodGroup"
                        && made["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
                };
                let groups = story.world.made.iter().filter(owned).count();
                prop_assert!(groups <= 1, "{} has {groups} groups", job["metadata"]["name"]);
            }
        }
        let uids: Vec<&Value> = story.jobs.values().map(|job| &job["metadata"]["uid"]).collect();
        for made in &story.world.made {
            let owner = &made["metadata"]["ownerReferences"][0]["uid"];
            prop_assert!(uids.contains(&owner), "{made} is for nobody");
        }
    }
}
