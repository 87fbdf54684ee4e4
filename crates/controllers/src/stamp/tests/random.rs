//! Random objects in random order: it never falls, makes nothing twice, and comes to rest.

use super::*;
use proptest::prelude::*;

/// A name of few, so that things meet.
fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["w", "x", "top", "replica", "worker", "driver", "set", ""])
}

fn nonsense() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        Value::Null,
        json!(3),
        json!("text"),
        json!([]),
        json!({}),
        json!([[]]),
        json!({"name": 3}),
        json!([null]),
    ])
}

/// Templates of a Workload, mostly good ones.
fn templates() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(flat()["spec"].clone()),
        4 => Just(tree()["spec"].clone()),
        1 => nonsense(),
        1 => nonsense().prop_map(|value| json!({"podGroupTemplates": value})),
        1 => nonsense().prop_map(|value| json!({"compositePodGroupTemplates": [value, {"name": "top", "podGroupTemplates": value}]})),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    let workload = (name(), templates(), any::<bool>()).prop_map(|(name, spec, is_for_set)| {
        let mut workload = json!({"kind": "Workload", "metadata": {"name": name}, "spec": spec});
        if is_for_set && workload["spec"].is_object() {
            workload["spec"]["controllerRef"] =
                json!({"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "set"});
        }
        workload
    });
    let referrer = (0..4_usize, name(), name(), proptest::option::of(name()), any::<bool>(), any::<bool>());
    let referrer = referrer.prop_map(|(index, template, group, parent, is_pod, has_run)| {
        let mut object = if is_pod {
            pod(&format!("p{index}"), group, template)
        } else {
            job(&format!("j{index}"), template)
        };
        if let Some(parent) = parent {
            object["metadata"]["annotations"][PARENT] = json!(parent);
        }
        if has_run {
            object["status"] = json!({"succeeded": 1, "phase": "Running"});
        }
        object
    });
    let composite = (name(), name(), nonsense()).prop_map(|(name, template, other)| {
        let spec = if template.is_empty() {
            other
        } else {
            json!({"workloadRef": {"workloadName": "w", "templateName": template}})
        };
        json!({"kind": "CompositePodGroup", "metadata": {"name": name}, "spec": spec})
    });
    let group = (name(), nonsense())
        .prop_map(|(name, spec)| json!({"kind": "PodGroup", "metadata": {"name": name}, "spec": spec}));
    prop_oneof![3 => workload, 6 => referrer, 1 => composite, 1 => group]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_written_it_comes_to_rest_and_makes_nothing_twice(
        story in proptest::collection::vec((object(), 0..10_u8), 1..25),
    ) {
        let mut world = World::new();
        let mut steps = 0;
        for (object, act) in story {
            let tasks = match act {
                0 => world.restart(),
                1 if !world.objects.is_empty() => {
                    let last = world.objects[0].clone();
                    world.gone(last["kind"].as_str().unwrap(), last["metadata"]["name"].as_str().unwrap())
                }
                _ => world.see(&object),
            };
            // Making something twice is noticed by the world.
            world.settle(tasks);
            steps += 1;
            world.now = world.now.checked_add(SignedDuration::from_secs(1)).unwrap();
        }
        // One complaint a change is the most that anybody hears.
        prop_assert!(world.said.len() <= steps * 8, "{:?}", world.said);
    }
}
