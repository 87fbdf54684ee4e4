//! Claims about who gets which groups, and what becomes of those who ask for what cannot be.

mod random;

use super::*;
use crate::protection::pod_groups;
use serde::de::DeserializeOwned;
use serde_json::json;
use tutti_k8s::Capabilities;

const BORN: &str = "2026-11-15T12:00:00Z";

/// A cluster of one namespace, and the controller that looks at it.
struct World {
    stamps: Stamps,
    now: Timestamp,
    version: u64,
    /// Everything that there is.
    objects: Vec<Value>,
    /// What was said, in order.
    said: Vec<String>,
}

fn view<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

fn stamps(version: &str, integration: Integration) -> Stamps {
    let composites = Capabilities::of_versions(&[version]).with_composites().composite;
    let composites = composites.filter(|_| version != "v1alpha2").map(Arc::new);
    let options = Options { integration, scheduler_names: vec!["tutti".to_owned()] };
    let mut stamps = Stamps::new(Api::of(&pod_groups(version)).unwrap(), composites, options);
    let now = BORN.parse().unwrap();
    stamps.observe(Event::Job(Change::Listed(Vec::new())), now);
    stamps.observe(Event::Pod(Change::Listed(Vec::new())), now);
    stamps.observe(Event::Workload(Change::Listed(Vec::new())), now);
    assert!(!stamps.is_ready());
    stamps.observe(Event::Group(Change::Listed(Vec::new())), now);
    stamps.observe(Event::Composite(Change::Listed(Vec::new())), now);
    assert!(stamps.is_ready());
    stamps
}

impl World {
    fn new() -> Self {
        Self::with(stamps("v1beta1", Integration::On))
    }

    fn with(stamps: Stamps) -> Self {
        let now = BORN.parse().unwrap();
        Self { stamps, now, version: 10, objects: Vec::new(), said: Vec::new() }
    }

    /// An object appears or changes; the groups that are looked at for it.
    fn see(&mut self, object: &Value) -> Vec<Key> {
        self.version += 1;
        let mut object = object.clone();
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        metadata["namespace"] = json!("a");
        if metadata.get("uid").is_none() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        let same = |other: &Value| {
            other["kind"] == object["kind"] && other["metadata"]["name"] == object["metadata"]["name"]
        };
        self.objects.retain(|other| !same(other));
        self.objects.push(object.clone());
        self.stamps.observe(event(&object, false), self.now)
    }

    fn gone(&mut self, kind: &str, name: &str) -> Vec<Key> {
        let at =
            self.objects.iter().position(|o| o["kind"] == kind && o["metadata"]["name"] == name).unwrap();
        let object = self.objects.remove(at);
        self.stamps.observe(event(&object, true), self.now)
    }

    /// The controller dies, and another one begins with what there is.
    fn restart(&mut self) -> Vec<Key> {
        self.stamps = stamps("v1beta1", Integration::On);
        let events: Vec<Event> = self.objects.iter().map(|object| event(object, false)).collect();
        let mut tasks: Vec<Key> =
            events.into_iter().flat_map(|event| self.stamps.observe(event, self.now)).collect();
        tasks.sort();
        tasks.dedup();
        tasks
    }

    /// Carries one plan out, and says which groups are looked at next.
    fn step(&mut self, key: &Key) -> Vec<Key> {
        let plan = self.stamps.plan(key, self.now);
        let mut next = Vec::new();
        for action in plan.actions {
            match action {
                Action::Create { object, namespace, .. } => {
                    assert_eq!(namespace, "a");
                    let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                    let is_there =
                        self.objects.iter().any(|o| o["kind"] == *kind && o["metadata"]["name"] == *name);
                    assert!(!is_there, "{kind} {name} is made twice");
                    next.extend(self.see(&object));
                }
                Action::Patch { key, edit, .. } => {
                    let mut object = self.object("PodGroup", &key.name);
                    json_patch::merge(&mut object["spec"], &edit.body["spec"]);
                    next.extend(self.see(&object));
                }
                Action::Tell(note) => {
                    self.said.push(format!("{}: {}", note.about.name.as_deref().unwrap(), note.message));
                }
                other @ Action::Delete { .. } => panic!("nothing is ever deleted: {other:?}"),
            }
        }
        next
    }

    /// Until nothing is left to do.
    fn settle(&mut self, tasks: Vec<Key>) {
        let mut tasks = tasks;
        for _ in 0..20 {
            if tasks.is_empty() {
                return;
            }
            tasks = tasks.iter().flat_map(|task| self.step(task)).collect();
        }
        panic!("it does not come to rest");
    }

    fn show(&mut self, object: &Value) {
        let tasks = self.see(object);
        self.settle(tasks);
    }

    fn object(&self, kind: &str, name: &str) -> Value {
        let found = self.objects.iter().find(|o| o["kind"] == kind && o["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{kind} {name} is not there: {:?}", self.names(kind))).clone()
    }

    fn names(&self, kind: &str) -> Vec<&str> {
        let all = self.objects.iter().filter(|object| object["kind"] == kind);
        all.filter_map(|object| object["metadata"]["name"].as_str()).collect()
    }
}

fn event(object: &Value, is_gone: bool) -> Event {
    fn change<T: DeserializeOwned>(object: &Value, is_gone: bool) -> Change<T> {
        if is_gone { Change::Gone(view(object)) } else { Change::Seen(view(object)) }
    }
    match object["kind"].as_str() {
        Some("Job") => Event::Job(change(object, is_gone)),
        Some("Pod") => Event::Pod(change(object, is_gone)),
        Some("Workload") => Event::Workload(change(object, is_gone)),
        Some("PodGroup") => Event::Group(change(object, is_gone)),
        Some("CompositePodGroup") => Event::Composite(change(object, is_gone)),
        other => panic!("{other:?} is not watched"),
    }
}

/// A Job that a JobSet `set` has made, of a template.
fn job(name: &str, template: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "creationTimestamp": BORN,
            "annotations": {TEMPLATE: template},
            "ownerReferences": [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set",
                                 "uid": "s", "controller": true}]},
        "spec": {"template": {"spec": {"schedulerName": "tutti"}}},
    })
}

fn pod(name: &str, group: &str, template: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "creationTimestamp": BORN,
                     "annotations": {TEMPLATE: template, WORKLOAD: "w"}},
        "spec": {"schedulerName": "tutti", "schedulingGroup": {"podGroupName": group}},
    })
}

fn leaf(name: &str, minimum: u32) -> Value {
    json!({"name": name, "schedulingPolicy": {"gang": {"minCount": minimum}}, "schedulingConstraints": null})
}

/// The Workload of the JobSet.
fn workload(spec: &Value) -> Value {
    let mut workload = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload",
                              "metadata": {"name": "w", "uid": "uid-of-w"}, "spec": spec});
    workload["spec"]["controllerRef"] =
        json!({"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "set"});
    workload
}

fn flat() -> Value {
    workload(&json!({"podGroupTemplates": [leaf("driver", 1), leaf("worker", 4)]}))
}

/// Composite `top` of driver and composite `replica` of worker.
fn tree() -> Value {
    workload(&json!({"compositePodGroupTemplates": [{
        "name": "top", "schedulingPolicy": {"gang": {"minGroupCount": 2}}, "schedulingConstraints": null,
        "podGroupTemplates": [leaf("driver", 1)],
        "compositePodGroupTemplates": [{"name": "replica", "schedulingPolicy": {"basic": {}},
                                        "podGroupTemplates": [leaf("worker", 4)]}],
    }]}))
}

fn with(mut object: Value, place: &str, field: &str, value: Value) -> Value {
    object.pointer_mut(place).unwrap()[field] = value;
    object
}

#[test]
fn a_job_whose_parent_names_a_template_gets_a_group_of_it() {
    let mut world = World::new();
    let annotated = with(
        job("j", "worker"),
        "/metadata/annotations",
        "tutti.dev/topology-levels",
        json!("rack=required"),
    );
    world.show(&annotated);
    assert_eq!(world.names("PodGroup"), [""; 0], "there is no Workload yet");
    world.show(&flat());
    let [name] = world.names("PodGroup")[..] else { panic!("one group") };
    let group = world.object("PodGroup", name);
    assert_eq!(
        group["spec"],
        json!({"schedulingPolicy": {"gang": {"minCount": 4}},
               "workloadRef": {"workloadName": "w", "templateName": "worker"}})
    );
    let owner = &group["metadata"]["ownerReferences"];
    assert_eq!(
        *owner,
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-of-j", "controller": true}])
    );
    let annotations = &group["metadata"]["annotations"];
    assert_eq!(annotations["tutti.dev/topology-levels"], "rack=required");
    world.show(&job("k", "worker"));
    assert_eq!(world.names("PodGroup").len(), 2, "another Job of the same template has a group of its own");
    assert_eq!(world.said, [""; 0]);
}

#[test]
fn a_workload_asks_for_its_templates_what_a_job_does_not_ask_for_itself() {
    let asks = json!({
        "tutti.dev/topology-levels": "block=required",
        "worker.tutti.dev/topology-levels": "rack=required",
        "tutti.dev/spread-topology": "rack",
        "tutti.dev/slice-size": "2", "tutti.dev/slice-topology": "host",
    });
    let workload = with(tree(), "/metadata", "annotations", asks);
    let own = with(
        job("own", "worker"),
        "/metadata/annotations",
        "tutti.dev/topology-levels",
        json!("block=preferred"),
    );
    let levels = |object: &Value| object["metadata"]["annotations"]["tutti.dev/topology-levels"].clone();
    for (job, wanted) in [(job("j", "worker"), "rack=required"), (own, "block=preferred")] {
        let mut world = World::new();
        world.show(&workload);
        world.show(&job);
        let [name] = world.names("PodGroup")[..] else { panic!("one group") };
        let group = world.object("PodGroup", name);
        assert_eq!(levels(&group), wanted);
        let annotations = &group["metadata"]["annotations"];
        assert_eq!(annotations["tutti.dev/slice-size"], "2");
        assert_eq!(annotations["tutti.dev/spread-topology"], Value::Null, "a group is not spread");
        let composites = world.names("CompositePodGroup");
        let composite = world.object("CompositePodGroup", composites[0]);
        assert_eq!(levels(&composite), "block=required");
        let annotations = &composite["metadata"]["annotations"];
        assert_eq!(annotations["tutti.dev/spread-topology"], "rack");
        assert_eq!(annotations["tutti.dev/slice-size"], Value::Null, "a composite has no slices");
    }
}

#[test]
fn a_group_within_composites_comes_after_them_whatever_crashes_between() {
    for crash_after in 0..4 {
        let mut world = World::new();
        world.see(&tree());
        let mut tasks = world.see(&job("j", "worker"));
        for _ in 0..crash_after {
            tasks = tasks.iter().flat_map(|task| world.step(task)).collect();
        }
        let tasks = world.restart();
        world.settle(tasks);
        let composites = world.names("CompositePodGroup");
        let [top, replica] = composites[..] else { panic!("two composites, not {composites:?}") };
        let (top, replica) =
            (world.object("CompositePodGroup", top), world.object("CompositePodGroup", replica));
        assert_eq!(
            top["spec"],
            json!({"schedulingPolicy": {"gang": {"minGroupCount": 2}},
                   "workloadRef": {"workloadName": "w", "templateName": "top"}})
        );
        assert_eq!(replica["spec"]["parentCompositePodGroupName"], top["metadata"]["name"]);
        assert_eq!(replica["metadata"]["ownerReferences"][0]["uid"], "uid-of-w", "it goes with the Workload");
        let [group] = world.names("PodGroup")[..] else { panic!("one group") };
        let group = world.object("PodGroup", group);
        assert_eq!(group["spec"]["parentCompositePodGroupName"], replica["metadata"]["name"]);
    }
}

#[test]
fn a_named_composite_is_waited_for_if_somebody_else_makes_it() {
    let mut world = World::new();
    world.show(&tree());
    let named = with(job("j", "worker"), "/metadata/annotations", PARENT, json!("replica-0"));
    world.show(&named);
    assert_eq!(world.names("PodGroup"), [""; 0]);
    assert_eq!(world.said, ["j: there is no composite replica-0; whoever made workload w has to make it"]);
    let replica = |template: &str| {
        json!({"kind": "CompositePodGroup", "metadata": {"name": "replica-0"},
               "spec": {"workloadRef": {"workloadName": "w", "templateName": template}}})
    };
    world.show(&replica("top"));
    assert_eq!(world.said[1..], ["j: composite replica-0 is not of template replica of workload w"]);
    world.show(&replica("replica"));
    let [group] = world.names("PodGroup")[..] else { panic!("one group") };
    assert_eq!(world.object("PodGroup", group)["spec"]["parentCompositePodGroupName"], "replica-0");
    assert_eq!(world.said.len(), 2);
}

#[test]
fn pods_name_group_composite_and_workload_and_all_of_it_is_made_once() {
    let mut world = World::new();
    world.see(&tree());
    for replica in ["r0", "r1"] {
        for index in 0..3 {
            let name = format!("{replica}-{index}");
            let pod = with(
                pod(&name, &format!("{replica}-workers"), "worker"),
                "/metadata/annotations",
                PARENT,
                json!(replica),
            );
            world.show(&pod);
        }
    }
    assert_eq!(world.names("PodGroup"), ["r0-workers", "r1-workers"]);
    let composites = world.names("CompositePodGroup");
    assert_eq!((composites.len(), &composites[1..]), (3, &["r0", "r1"][..]), "one around both");
    let group = world.object("PodGroup", "r1-workers");
    assert_eq!(group["spec"]["parentCompositePodGroupName"], "r1");
    let owner = json!([{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "w",
                        "uid": "uid-of-w", "controller": true}]);
    assert_eq!(group["metadata"]["ownerReferences"], owner);
    world.show(&pod("odd", "r1-workers", "driver"));
    assert_eq!(world.said, ["odd: group r1-workers is made as r1-0 asks for it, which is something else"]);
    assert_eq!(world.names("PodGroup").len(), 2);
}

#[test]
fn references_to_what_is_not_there_are_told_once_and_met_when_they_can_be() {
    let with_parent = |job: Value| with(job, "/metadata/annotations", PARENT, json!("p"));
    for (asks, why) in [
        (job("j", "nobody"), "j: workload w: there is no template nobody"),
        (
            job("j", "replica"),
            "j: workload w: template replica is one of groups; pods belong to a template of pods",
        ),
        (
            with(job("j", "worker"), "/metadata/annotations", WORKLOAD, json!("x")),
            "j: there is no workload x",
        ),
    ] {
        let mut world = World::new();
        world.now = "2026-11-15T12:00:05Z".parse().unwrap();
        world.show(&tree());
        world.show(&asks);
        world.show(&asks);
        assert_eq!(world.said, [why]);
        assert_eq!(world.names("PodGroup"), [""; 0]);
        world.show(&job("j", "driver"));
        assert_eq!(world.names("PodGroup").len(), 1, "after {why}");
    }
    let mut world = World::new();
    world.show(&flat());
    world.show(&with_parent(job("j", "worker")));
    assert!(world.said[0].contains("worker is not part of a composite"), "{:?}", world.said);
}

#[test]
fn a_workload_may_come_a_little_later_without_a_word() {
    let mut world = World::new();
    let tasks = world.see(&job("j", "worker"));
    let plan = world.stamps.plan(&tasks[0], world.now);
    assert_eq!(plan.look_again, Some("2026-11-15T12:00:02Z".parse().unwrap()));
    assert_eq!(plan.actions, []);
    world.now = plan.look_again.unwrap();
    world.settle(tasks);
    assert_eq!(world.said, ["j: there is no workload for JobSet set"]);
    world.show(&flat());
    assert_eq!(world.names("PodGroup").len(), 1);
}

#[test]
fn the_clusters_own_controller_gets_a_moment_and_what_it_makes_is_enough() {
    let mut world = World::with(stamps("v1beta1", Integration::Auto));
    world.see(&flat());
    let tasks = world.see(&job("j", "worker"));
    world.settle(tasks.clone());
    assert_eq!(world.names("PodGroup"), [""; 0]);
    let theirs = json!({"kind": "PodGroup", "metadata": {"name": "theirs", "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-of-j", "controller": true}]}});
    world.show(&theirs);
    world.now = "2026-11-15T12:01:00Z".parse().unwrap();
    world.settle(tasks.clone());
    assert_eq!(world.names("PodGroup"), ["theirs"]);
    world.gone("PodGroup", "theirs");
    world.settle(tasks);
    assert_eq!(world.names("PodGroup").len(), 1);
}

#[test]
fn everybody_else_is_left_alone() {
    let deleted = |object: Value| with(object, "/metadata", "deletionTimestamp", json!(BORN));
    for (why, other) in [
        (
            "another scheduler",
            with(job("j", "worker"), "/spec/template/spec", "schedulerName", json!("other")),
        ),
        (
            "a group of its own",
            with(job("j", "worker"), "/spec/template/spec", "schedulingGroup", json!({"podGroupName": "g"})),
        ),
        ("no template", with(job("j", "worker"), "/metadata", "annotations", json!({}))),
        ("a pod has run", with(job("j", "worker"), "", "status", json!({"succeeded": 1}))),
        (
            "it is over",
            with(
                job("j", "worker"),
                "",
                "status",
                json!({"conditions": [{"type": "Failed", "status": "True"}]}),
            ),
        ),
        ("it goes", deleted(job("j", "worker"))),
        ("a pod without a group", with(pod("p", "g", "worker"), "/spec", "schedulingGroup", Value::Null)),
        ("a pod that has ended", with(pod("p", "g", "worker"), "", "status", json!({"phase": "Failed"}))),
        ("a pod that goes", deleted(pod("p", "g", "worker"))),
        (
            "a pod of nobody",
            with(pod("p", "g", "worker"), "/metadata", "annotations", json!({TEMPLATE: "worker"})),
        ),
    ] {
        let mut world = World::new();
        world.show(&flat());
        world.show(&other);
        assert_eq!(world.names("PodGroup"), [""; 0], "{why}");
        assert_eq!(world.said, [""; 0], "{why}");
    }
    let mut world = World::new();
    world.show(&deleted(flat()));
    world.show(&job("j", "worker"));
    assert_eq!(world.names("PodGroup"), [""; 0], "a Workload that goes");
}

#[test]
fn a_group_follows_the_minimum_of_its_template_and_nobody_elses_does() {
    let mut world = World::new();
    world.show(&flat());
    world.show(&pod("p", "g", "worker"));
    let users = json!({"kind": "PodGroup", "metadata": {"name": "users"}, "spec": {
        "schedulingPolicy": {"gang": {"minCount": 1}}, "workloadRef": {"workloadName": "w", "templateName": "worker"}}});
    world.show(&users);
    world.show(&pod("q", "users", "worker"));
    world.show(&workload(&json!({"podGroupTemplates": [leaf("worker", 6)]})));
    let minimum =
        |world: &World, name: &str| world.object("PodGroup", name)["spec"]["schedulingPolicy"].clone();
    assert_eq!(minimum(&world, "g"), json!({"gang": {"minCount": 6}}));
    assert_eq!(minimum(&world, "users"), json!({"gang": {"minCount": 1}}));
}

#[test]
fn in_1_36_groups_name_their_template_as_that_release_does() {
    let mut world = World::with(stamps("v1alpha2", Integration::On));
    world.show(&flat());
    world.show(&pod("p", "g", "worker"));
    assert_eq!(
        world.object("PodGroup", "g")["spec"]["podGroupTemplateRef"],
        json!({"workload": {"workloadName": "w", "podGroupTemplateName": "worker"}})
    );
    world.show(&workload(&json!({"podGroupTemplates": [leaf("worker", 6)]})));
    let policy = world.object("PodGroup", "g")["spec"]["schedulingPolicy"].clone();
    assert_eq!(policy, json!({"gang": {"minCount": 4}}), "it may not change there");
}

#[test]
fn nothing_is_kept_of_those_who_are_gone() {
    let mut world = World::new();
    world.show(&flat());
    world.show(&job("j", "nobody"));
    world.show(&pod("p", "g", "worker"));
    for (kind, name) in [("Job", "j"), ("Pod", "p"), ("Workload", "w"), ("PodGroup", "g")] {
        let tasks = world.gone(kind, name);
        world.settle(tasks);
    }
    assert!(world.stamps.told.is_empty());
    assert!(world.stamps.known.is_empty());
}
