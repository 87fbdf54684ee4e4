//! Pod groups of our own, as a custom kind with a pod label.

use crate::harness::{World, eventually};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::path::Path;
use tutti_k8s::Capabilities;

pub(crate) fn api(world: &World, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::default_namespaced_with(world.client.clone(), &resource)
}

pub(crate) async fn define(world: &World) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/podgroups.tutti.dev.yaml");
    let text = std::fs::read_to_string(path).expect("the definition is there");
    let definition = serde_saphyr::from_str(&text).expect("it is YAML");
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions = Api::<DynamicObject>::all_with(world.client.clone(), &ApiResource::from_gvk(&kind));
    definitions.create(&PostParams::default(), &definition).await.expect("the definition is taken");
}

async fn group(world: &World, name: &str, policy: &Value) {
    let group = json!({
        "apiVersion": "tutti.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy},
    });
    let group = serde_json::from_value(group).expect("it is a group");
    let groups = api(world, "tutti.dev", "v1alpha1", "PodGroup");
    eventually("groups are served", || async {
        groups.create(&PostParams::default(), &group).await.ok().map(drop)
    })
    .await;
}

async fn member(world: &World, name: &str, group: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"tutti.dev/pod-group": group}},
        "spec": {"schedulerName": "tutti", "containers": [
            {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]},
    });
    let pod = serde_json::from_value(pod).expect("it is a pod");
    api(world, "", "v1", "Pod").create(&PostParams::default(), &pod).await.expect("the pod is taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangs_basic_groups_and_plain_pods_run_where_kubernetes_has_no_groups() {
    let mut world = World::empty().await;
    define(&world).await;
    group(&world, "gang", &json!({"gang": {"minCount": 3}})).await;
    world.start_scheduler_with(Capabilities::custom());
    world.node("n1", "2").await;
    for index in 0..3 {
        member(&world, &format!("gang-{index}"), "gang").await;
    }
    let groups = api(&world, "tutti.dev", "v1alpha1", "PodGroup");
    let condition = |status: &'static str, generation: i64| {
        let groups = groups.clone();
        eventually("the group says how it is", move || {
            let groups = groups.clone();
            async move {
                let group = groups.get("gang").await.expect("the group is there");
                let conditions = group.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions
                    .into_iter()
                    .find(|c| c["status"] == status && c["observedGeneration"] == generation)
            }
        })
    };
    let set_minimum = |minimum: u32| {
        let body = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}});
        let groups = groups.clone();
        async move {
            let patch = Patch::Merge(body);
            groups.patch("gang", &PatchParams::default(), &patch).await.expect("the group is changed");
        }
    };
    let waits = condition("False", 1).await;
    assert_eq!(waits["type"], "PodGroupInitiallyScheduled");
    assert_eq!(world.counts().await, (0, 0), "two would fit, but not three");
    set_minimum(4).await;
    condition("False", 2).await;
    set_minimum(3).await;
    condition("False", 3).await;
    world.node("n2", "1").await;
    world.wait_running(3).await;
    condition("True", 3).await;

    group(&world, "basic", &json!({"basic": {}})).await;
    world.node("n3", "2").await;
    for index in 0..2 {
        member(&world, &format!("basic-{index}"), "basic").await;
    }
    world.wait_running(5).await;
    world.node("n4", "1").await;
    world.pod("plain", None, "1").await;
    world.wait_running(6).await;
    world.end().await;
}
