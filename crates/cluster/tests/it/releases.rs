//! A cluster that is like one release of Kubernetes.

use crate::harness::{Cluster, PODS, pod_with};
use serde_json::{Value, json};
use tutti_cluster::registry::Release;
use tutti_cluster::server::Options;

const GROUP: &str = "/apis/scheduling.k8s.io";

fn like(release: Release) -> Cluster {
    Cluster::with(Options { release, ..Options::default() })
}

fn old_workload() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 2}}}]},
    })
}

#[tokio::test]
async fn each_release_has_its_own_version_number_and_versions() {
    for (release, minor, versions) in [
        (Release::V1_35, "35", vec!["v1", "v1alpha1"]),
        (Release::V1_36, "36", vec!["v1", "v1alpha2"]),
        (Release::V1_37, "37", vec!["v1", "v1beta1", "v1alpha3"]),
        (Release::All, "37", vec!["v1", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"]),
    ] {
        let cluster = like(release);
        assert_eq!(cluster.get("/version").await.expect(200)["minor"], minor);
        let group = cluster.get(GROUP).await.expect(200);
        let found: Vec<&str> =
            group["versions"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap()).collect();
        assert_eq!(found, versions, "{release}");
        let index = cluster.get("/openapi/v3").await.expect(200);
        for version in versions {
            assert!(index["paths"].get(format!("apis/scheduling.k8s.io/{version}")).is_some());
        }
    }
}

#[tokio::test]
async fn a_workload_of_1_35_is_the_same_object_in_every_version() {
    let cluster = like(Release::All);
    let place = "namespaces/default/workloads";
    cluster.post(&format!("{GROUP}/v1alpha1/{place}"), old_workload()).await.expect(201);
    let hub = cluster.get(&format!("{GROUP}/v1beta1/{place}/w")).await.expect(200);
    assert_eq!(
        hub["spec"]["podGroupTemplates"],
        json!([{"name": "g", "schedulingPolicy": {"gang": {"minCount": 2}}}])
    );
    let newer = cluster.get(&format!("{GROUP}/v1alpha3/{place}/w")).await.expect(200);
    assert_eq!(newer["spec"], hub["spec"]);
    assert_eq!(newer["apiVersion"], "scheduling.k8s.io/v1alpha3");
    let old = cluster.get(&format!("{GROUP}/v1alpha1/{place}/w")).await.expect(200);
    assert_eq!(old["spec"], old_workload()["spec"]);

    let mut wrong = old_workload();
    wrong["metadata"]["name"] = json!("x");
    wrong["spec"]["podGroups"][0]["policy"]["gang"]["minCount"] = json!(0);
    let message = cluster.post(&format!("{GROUP}/v1alpha1/{place}"), wrong).await.refusal(422, "Invalid");
    assert!(message.contains("spec.podGroups[0].policy.gang.minCount"), "{message}");
}

#[tokio::test]
async fn pods_name_their_group_as_their_release_does() {
    let old = pod_with("old", |pod| {
        pod["spec"]["workloadRef"] = json!({"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"});
    });
    let new = pod_with("new", |pod| pod["spec"]["schedulingGroup"] = json!({"podGroupName": "g"}));
    for release in Release::CHOICES {
        let cluster = like(release);
        let strict = format!("{PODS}?fieldValidation=Strict");
        let old_code = cluster.post(&strict, old.clone()).await.code;
        let new_code = cluster.post(&strict, new.clone()).await.code;
        assert_eq!(old_code == 201, release.includes(Release::V1_35), "{release}: {old_code}");
        assert_eq!(new_code == 201, release != Release::V1_35, "{release}: {new_code}");
    }
    let cluster = like(Release::All);
    let both = pod_with("both", |pod| {
        pod["spec"]["workloadRef"] = json!({"name": "w", "podGroup": "g"});
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "g"});
    });
    let message = cluster.post(PODS, both).await.refusal(422, "Invalid");
    assert!(message.contains("spec.workloadRef: Forbidden"), "{message}");
}

#[tokio::test]
async fn the_size_of_a_gang_is_frozen_before_1_37() {
    for release in [Release::V1_36, Release::All] {
        let cluster = like(release);
        let groups = format!("{GROUP}/v1alpha2/namespaces/default/podgroups");
        let group = json!({
            "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        });
        cluster.post(&groups, group).await.expect(201);
        let larger = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}});
        let code = cluster.patch(&format!("{groups}/g"), "merge", larger).await.code;
        assert_eq!(code, if release == Release::All { 200 } else { 422 }, "{release}");
    }
}

#[tokio::test]
async fn a_composite_group_is_frozen_and_takes_its_class() {
    let cluster = like(Release::V1_37);
    let composites = format!("{GROUP}/v1alpha3/namespaces/default/compositepodgroups");
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup", "metadata": {"name": "c"},
        "spec": {
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        },
    });
    let created = cluster.post(&composites, group.clone()).await.expect(201);
    assert_eq!(created["spec"]["disruptionMode"], json!({"single": {}}));
    assert_eq!(created["spec"]["priority"], 0);
    let larger = json!({"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 3}}}});
    cluster.patch(&format!("{composites}/c"), "merge", larger).await.refusal(422, "Invalid");
    let mut homeless = group;
    homeless["metadata"]["name"] = json!("d");
    homeless["spec"].as_object_mut().unwrap().remove("workloadRef");
    let message = cluster.post(&composites, homeless).await.refusal(422, "Invalid");
    assert!(message.contains("spec.workloadRef: Required value"), "{message}");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let rows = cluster.get_as(&composites, table).await.expect(200);
    assert_eq!(rows["rows"][0]["cells"].as_array().unwrap()[..3], [json!("c"), json!("Gang"), json!("w")]);
}
