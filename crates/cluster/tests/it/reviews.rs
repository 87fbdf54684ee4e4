//! Questions about who may do what.

use crate::harness::Cluster;
use serde_json::json;

const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

#[tokio::test]
async fn reviews_are_answered_and_forgotten() {
    let cluster = Cluster::new();
    let before = cluster.server.store().revision();
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}},
    });
    let answer = cluster.post(ACCESS, review.clone()).await.expect(201);
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(answer["spec"], review["spec"]);
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = cluster.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", who).await.expect(201);
    assert_eq!(who["status"]["userInfo"]["groups"][0], "system:masters");
    assert_eq!(cluster.server.store().revision(), before);
    cluster.get(ACCESS).await.refusal(405, "MethodNotAllowed");
    cluster.get(&format!("{ACCESS}/x")).await.refusal(405, "MethodNotAllowed");
}

#[tokio::test]
async fn malformed_reviews_are_named() {
    let cluster = Cluster::new();
    let kind = "SelfSubjectAccessReview";
    let none = json!({"kind": kind, "spec": {}});
    assert!(cluster.post(ACCESS, none).await.refusal(422, "Invalid").contains("exactly one of"));
    let wrong = json!({"kind": kind, "spec": {"resourceAttributes": {"verb": 3}}});
    assert!(
        cluster.post(ACCESS, wrong).await.refusal(400, "BadRequest").contains("spec.resourceAttributes.verb")
    );
    let strict = format!("{ACCESS}?fieldValidation=Strict");
    let unknown = json!({"kind": kind, "spec": {"resourceAtributes": {}}});
    let message = cluster.post(&strict, unknown).await.refusal(400, "BadRequest");
    assert!(message.contains("unknown field \"spec.resourceAtributes\""), "{message}");
    let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let foreign = json!({"spec": {"user": "u", "resourceAttributes": {"namespace": "kube-system"}}});
    cluster.post(local, foreign).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn discovery_says_that_reviews_can_only_be_asked() {
    let cluster = Cluster::new();
    let list = cluster.get("/apis/authorization.k8s.io/v1").await.expect(200);
    for resource in list["resources"].as_array().unwrap() {
        assert_eq!(resource["verbs"], json!(["create"]), "{resource}");
    }
}
