//! Claims about who gets a Workload and a group, and what becomes of them.

mod random;
mod users;

use super::*;
use crate::protection::pod_groups;
use kube::core::ApiResource;
use serde_json::json;

const NEWEST: &str = "v1beta1";
const OF_1_36: &str = "v1alpha2";
const BORN: &str = "2026-11-15T12:00:00Z";

/// A cluster of one namespace, and the controller that looks at it.
struct World {
    gangs: Gangs,
    version: u64,
    /// Everything that was made, by kind and name.
    made: Vec<Value>,
    /// Every event but those about what was made.
    told: Vec<String>,
    now: Timestamp,
}

impl World {
    fn new(version: &str) -> Self {
        Self::with(Api::of(&pod_groups(version)).unwrap(), Integration::On)
    }

    fn with(api: Api, integration: Integration) -> Self {
        let options = Options { integration, scheduler_names: vec!["tutti".to_owned()] };
        let now = BORN.parse().unwrap();
        let mut world = Self {
            gangs: Gangs::new(&JOB, api, options),
            version: 10,
            made: Vec::new(),
            told: Vec::new(),
            now,
        };
        assert!(!world.gangs.is_ready());
        world.gangs.observe(Event::Owner(Change::Listed(Vec::new())), now);
        world.gangs.observe(Event::Workload(Change::Listed(Vec::new())), now);
        world.gangs.observe(Event::Group(Change::Listed(Vec::new())), now);
        assert!(world.gangs.is_ready());
        world
    }

    fn see_job(&mut self, job: &Value) {
        let tasks = self.gangs.observe(Event::Owner(Change::Seen(view(job))), self.now);
        assert_eq!(tasks.len(), 1);
    }

    /// The Job is gone, and nothing that it owned is left.
    fn lose_job(&mut self, job: &Value) {
        self.gangs.observe(Event::Owner(Change::Gone(view(job))), self.now);
        let uid = &job["metadata"]["uid"];
        let owned = |made: &Value| made["metadata"]["ownerReferences"][0]["uid"] == *uid;
        let (gone, rest): (Vec<Value>, Vec<Value>) =
            std::mem::take(&mut self.made).into_iter().partition(owned);
        self.made = rest;
        for object in &gone {
            self.lose(object);
        }
    }

    /// A Workload or group is gone.
    fn lose(&mut self, object: &Value) -> Vec<Key> {
        let change = Change::Gone(view(object));
        let event = if object["kind"] == "Workload" { Event::Workload(change) } else { Event::Group(change) };
        self.gangs.observe(event, self.now)
    }

    /// Shows the controller an object, and says which Job it looks at for that.
    fn see(&mut self, object: &Value) -> Vec<Key> {
        let change = Change::Seen(view(object));
        let event = if object["kind"] == "Workload" { Event::Workload(change) } else { Event::Group(change) };
        self.gangs.observe(event, self.now)
    }

    fn plan(&mut self, name: &str) -> Plan {
        self.gangs.plan(&Key::new("a", name), self.now)
    }

    /// Carries one plan out.
    fn step(&mut self, name: &str) -> usize {
        let plan = self.plan(name);
        let count = plan.actions.len();
        for action in plan.actions {
            self.version += 1;
            let object = match action {
                Action::Tell(note) => {
                    self.told.push(note.message);
                    continue;
                }
                Action::Create { object, .. } => {
                    let mut object = *object;
                    object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
                    self.made.push(object.clone());
                    object
                }
                Action::Patch { key, edit, .. } => {
                    let of = |made: &&mut Value| made["metadata"]["name"] == key.name.as_str();
                    let object = self.made.iter_mut().find(of).unwrap();
                    let policy = match &edit.body["spec"]["podGroupTemplates"][0]["schedulingPolicy"] {
                        Value::Null => &edit.body["spec"]["schedulingPolicy"],
                        policy => policy,
                    };
                    let place = if edit.strategic { "/spec/podGroupTemplates/0" } else { "/spec" };
                    object.pointer_mut(place).unwrap()["schedulingPolicy"] = policy.clone();
                    object.clone()
                }
                other => panic!("nothing else is ever done: {other:?}"),
            };
            let mut object = object;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            if let Some(made) =
                self.made.iter_mut().find(|made| made["metadata"]["uid"] == object["metadata"]["uid"])
            {
                made["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
            }
            assert_eq!(self.see(&object), [Key::new("a", name)], "what was made leads back to its Job");
        }
        count
    }

    /// Until nothing is left to do.
    fn settle(&mut self, name: &str) {
        for _ in 0..5 {
            if self.step(name) == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn kinds(&self) -> Vec<&str> {
        self.made.iter().filter_map(|object| object["kind"].as_str()).collect()
    }
}

fn view<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

/// A Job that 1.36 makes a gang of.
fn job() -> Value {
    json!({
        "metadata": {"name": "train", "namespace": "a", "uid": "u", "resourceVersion": "5",
                     "creationTimestamp": BORN},
        "spec": {"completionMode": "Indexed", "parallelism": 8, "completions": 8,
                 "template": {"spec": {"schedulerName": "tutti"}}},
    })
}

fn with(place: &str, field: &str, value: Value) -> Value {
    let mut job = job();
    job.pointer_mut(place).unwrap()[field] = value;
    job
}

fn made_of(version: &str, job: &Value) -> Vec<Value> {
    let mut world = World::new(version);
    world.see_job(job);
    world.settle("train");
    world.made
}

#[test]
fn a_static_indexed_job_becomes_one_workload_and_one_gang_in_1_36() {
    let mut world = World::new(OF_1_36);
    world.see_job(&job());
    world.settle("train");
    assert_eq!(world.kinds(), ["Workload", "PodGroup"]);
    let [workload, group] = &world.made[..] else { panic!() };
    assert_eq!(
        workload["spec"]["controllerRef"],
        json!({"apiGroup": "batch", "kind": "Job", "name": "train"})
    );
    let template = &workload["spec"]["podGroupTemplates"][0];
    assert_eq!(*template, json!({"name": "train-pgt-0", "schedulingPolicy": {"gang": {"minCount": 8}}}));
    assert_eq!(
        group["spec"],
        json!({"schedulingPolicy": {"gang": {"minCount": 8}}, "podGroupTemplateRef": {"workload": {
            "workloadName": workload["metadata"]["name"], "podGroupTemplateName": "train-pgt-0"}}})
    );
    let owners = group["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((&owners[0]["uid"], &owners[0]["controller"]), (&json!("u"), &json!(true)));
    assert_eq!((&owners[1]["uid"], &owners[1]["controller"]), (&workload["metadata"]["uid"], &Value::Null));
}

#[test]
fn every_other_shape_is_left_alone() {
    let owned = |kind: &str| json!([{"apiVersion": "x/v1", "kind": kind, "name": "o", "uid": "o", "controller": true}]);
    for (why, job) in [
        ("not indexed", with("/spec", "completionMode", json!("NonIndexed"))),
        ("one pod", with("/spec", "parallelism", json!(1))),
        ("fewer at a time than in all", with("/spec", "completions", json!(9))),
        ("no completions", with("/spec", "completions", Value::Null)),
        ("another scheduler", with("/spec/template/spec", "schedulerName", json!("other"))),
        ("the default scheduler", with("/spec/template/spec", "schedulerName", Value::Null)),
        ("a group of its own", with("/spec/template/spec", "schedulingGroup", json!({"podGroupName": "g"}))),
        ("being deleted", with("/metadata", "deletionTimestamp", json!(BORN))),
        ("owned by somebody who may have groups", with("/metadata", "ownerReferences", owned("JobSet"))),
        (
            "delegated",
            with("/metadata", "annotations", json!({"scheduling.k8s.io/group-template-name": "t"})),
        ),
        ("it runs", with("", "status", json!({"ready": 1}))),
        ("it ran", with("", "status", json!({"failed": 1}))),
        ("it ended", with("", "status", json!({"conditions": [{"type": "Complete", "status": "True"}]}))),
    ] {
        assert_eq!(made_of(OF_1_36, &job), [Value::Null; 0], "{why}");
    }
    assert_eq!(made_of(NEWEST, &job()), [Value::Null; 0], "since 1.37 the shape says nothing");
    assert_eq!(made_of(OF_1_36, &with("/metadata", "ownerReferences", owned("CronJob"))).len(), 2);
}

#[test]
fn since_1_37_a_job_says_how_it_is_scheduled() {
    let scheduled = |scheduling: Value| made_of(NEWEST, &with("/spec", "scheduling", scheduling));
    let policy = |made: &[Value]| made[1]["spec"]["schedulingPolicy"].clone();
    assert_eq!(policy(&scheduled(json!({}))), json!({"basic": {}}));
    let gang = |gang: Value| policy(&scheduled(json!({"schedulingPolicy": {"gang": gang}})));
    assert_eq!(gang(json!({})), json!({"gang": {"minCount": 8}}));
    assert_eq!(gang(json!({"minCount": 3})), json!({"gang": {"minCount": 3}}));
    let made = scheduled(json!({
        "schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
    }));
    let spec = &made[1]["spec"];
    assert_eq!(spec["schedulingConstraints"], json!({"topology": [{"key": "rack"}]}));
    assert_eq!(spec["disruptionMode"], json!({"all": {}}));
    assert_eq!(spec["workloadRef"]["templateName"], "train-pgt-0");
}

#[test]
fn an_annotation_makes_a_gang_of_any_job_in_any_version() {
    let mut job = with("/metadata", "annotations", json!({GANG_ANNOTATION: "true"}));
    job["spec"] = json!({"parallelism": 5, "template": {"spec": {
        "schedulerName": "tutti", "priorityClassName": "high"}}});
    for version in [OF_1_36, "v1alpha3", NEWEST] {
        let made = made_of(version, &job);
        assert_eq!(made[1]["spec"]["schedulingPolicy"], json!({"gang": {"minCount": 5}}), "{version}");
        assert_eq!(made[1]["spec"]["priorityClassName"], "high");
    }
    job["metadata"]["annotations"] = json!({GANG_ANNOTATION: "yes"});
    assert_eq!(made_of(NEWEST, &job), [Value::Null; 0]);
}

#[test]
fn what_a_job_asks_of_the_topology_reaches_its_workload_and_its_group() {
    let asks = json!({"tutti.dev/topology-levels": "rack=required", "team": "red"});
    let made = made_of(OF_1_36, &with("/metadata", "annotations", asks));
    assert_eq!(made.len(), 2);
    for object in made {
        let wanted =
            json!({"tutti.dev/made-by": "tutti-controller", "tutti.dev/topology-levels": "rack=required"});
        assert_eq!(object["metadata"]["annotations"], wanted);
    }
}

#[test]
fn without_workloads_there_is_a_group_of_our_own_definition() {
    let resource = ApiResource {
        group: "tutti.dev".to_owned(),
        api_version: "tutti.dev/v1alpha1".to_owned(),
        ..(*pod_groups("v1alpha1")).clone()
    };
    let mut world = World::with(Api::of(&resource).unwrap(), Integration::On);
    world.see_job(&with("/spec/template/spec", "priorityClassName", json!("high")));
    world.settle("train");
    assert_eq!(world.kinds(), ["PodGroup"]);
    assert_eq!(world.made[0]["spec"], json!({"schedulingPolicy": {"gang": {"minCount": 8}}}));
    let workloads = ApiResource { kind: "Workload".to_owned(), ..resource };
    assert!(Api::of(&workloads).is_none(), "1.35 has no groups to make");
}

#[test]
fn a_controller_that_was_killed_half_way_completes_the_set() {
    let mut world = World::new(OF_1_36);
    world.see_job(&job());
    assert_eq!(world.step("train"), 1);
    let workload = world.made.remove(0);
    let mut next = World::new(OF_1_36);
    next.see_job(&job());
    assert_eq!(next.see(&workload), [Key::new("a", "train")]);
    next.settle("train");
    assert_eq!(next.kinds(), ["PodGroup"]);
}

#[test]
fn auto_gives_the_clusters_own_controller_a_moment_and_stays_out_where_it_acts() {
    let api = || Api::of(&pod_groups(OF_1_36)).unwrap();
    let mut world = World::with(api(), Integration::Auto);
    world.see_job(&job());
    let act_at = world.now + PATIENCE;
    assert_eq!(world.plan("train"), Plan { actions: Vec::new(), look_again: Some(act_at) });
    world.now = act_at;
    world.settle("train");
    assert_eq!(world.kinds(), ["Workload", "PodGroup"], "nobody else acted");

    let mut world = World::with(api(), Integration::Auto);
    world.see_job(&job());
    world.see(&json!({"kind": "Workload", "metadata": {"name": "theirs", "namespace": "a", "uid": "w",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": true}]},
        "spec": {}}));
    world.now = act_at;
    assert_eq!(world.plan("train"), Plan::nothing());
}

#[test]
fn the_minimum_follows_the_parallelism_even_while_the_job_runs() {
    let mut job = with("/spec", "scheduling", json!({"schedulingPolicy": {"gang": {}}}));
    let mut world = World::new(NEWEST);
    world.see_job(&job);
    world.settle("train");
    job["spec"]["parallelism"] = json!(4);
    job["status"] = json!({"ready": 8});
    world.see_job(&job);
    world.settle("train");
    assert_eq!(world.made[0]["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"], 4);
    assert_eq!(world.made[1]["spec"]["schedulingPolicy"]["gang"]["minCount"], 4);
}

#[test]
fn a_group_of_a_job_before_with_the_same_name_is_not_taken_over() {
    let mut world = World::new(OF_1_36);
    world.see_job(&job());
    world.settle("train");
    let mut again = job();
    again["metadata"]["uid"] = json!("u2");
    world.see_job(&again);
    world.settle("train");
    assert_eq!(world.kinds(), ["Workload", "PodGroup", "Workload", "PodGroup"]);
    assert_ne!(world.made[1]["metadata"]["name"], world.made[3]["metadata"]["name"]);
}

/// Every value of every field replaced by every other kind of value: nothing panics, and everything comes to rest.
#[test]
fn malformed_jobs_neither_crash_nor_keep_the_controller_busy() {
    let odd = [
        Value::Null,
        json!(-1),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("ü.".repeat(200)),
        json!([]),
        json!([null, {}, 3]),
        json!({}),
        json!({"gang": 3, "schedulingPolicy": {"gang": []}}),
        json!(true),
    ];
    // The annotations say that it wants a gang.
    let fields: Vec<_> = random::FIELDS.into_iter().filter(|(place, _)| *place != "/metadata").collect();
    let mut looked_at = 0;
    for version in [OF_1_36, NEWEST] {
        for &(place, field) in &fields {
            for value in &odd {
                let mut job = with(place, field, value.clone());
                job["metadata"]["annotations"] = json!({GANG_ANNOTATION: "true"});
                made_of(version, &job);
                looked_at += 1;
            }
        }
    }
    assert_eq!(looked_at, 2 * fields.len() * odd.len());
}
