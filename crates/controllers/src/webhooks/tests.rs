//! Claims about whole reviews: over TLS, under hostile bodies, and while certificates change.

use super::certificates::Identity;
use super::knowledge::{Event, Knowledge, Shared};
use super::review::{Webhook, answer};
use super::server::{ADVICE_PATH, MEMBERSHIP_PATH, router};
use super::*;
use crate::cache::Change;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use json_patch::Patch;
use proptest::prelude::*;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tutti_k8s::GroupLink;

/// A Job `train` that controls group `g`, and one node.
fn cluster() -> Knowledge {
    let mut knowledge = Knowledge::new(GroupLink::SchedulingGroup, vec!["tutti".to_owned()]);
    let group = json!({"metadata": {"name": "g", "namespace": "a", "uid": "g", "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}]}});
    let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "110", "cpu": "8"}}});
    knowledge.observe(Event::Group(Change::Listed(vec![serde_json::from_value(group).unwrap()])));
    knowledge.observe(Event::Node(Change::Listed(vec![serde_json::from_value(node).unwrap()])));
    knowledge
}

/// A review of an object as API servers write it.
fn review(kind: &str, operation: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "r-1", "kind": {"group": "", "version": "v1", "kind": kind},
            "resource": {"group": "", "version": "v1", "resource": "things"},
            "name": "", "namespace": "a", "operation": operation, "userInfo": {"username": "u"},
            "object": object, "oldObject": null, "dryRun": false,
        },
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "train-", "creationTimestamp": null, "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}]},
        "spec": {"schedulerName": "tutti"}, "status": {},
    })
}

fn group(annotation: &str) -> Value {
    json!({"metadata": {"name": "g", "annotations": {"tutti.dev/when-broken": annotation}},
           "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
}

fn answered(webhook: Webhook, review: &Value) -> Value {
    let answer = answer(webhook, review.to_string().as_bytes(), &cluster()).unwrap();
    serde_json::to_value(answer).unwrap()["response"].clone()
}

#[test]
fn an_answer_repeats_the_question_and_says_yes() {
    let answer = answered(Webhook::Membership, &review("Pod", "CREATE", &pod()));
    assert_eq!((&answer["uid"], &answer["allowed"]), (&json!("r-1"), &json!(true)));
    assert_eq!(answer["patchType"], "JSONPatch");
    let patch: Vec<u8> = serde_json::from_value(answer["patch"].clone()).unwrap();
    let patch: Patch = serde_json::from_slice(&patch).unwrap();
    assert_eq!(
        json!(patch),
        json!([{"op": "add", "path": "/spec/schedulingGroup", "value": {"podGroupName": "g"}}])
    );
    let answer = answered(Webhook::Advice, &review("PodGroup", "CREATE", &group("Burn")));
    assert_eq!(answer["allowed"], true);
    assert!(answer["warnings"][0].as_str().unwrap().contains("found \"Burn\""), "{answer}");
}

#[test]
fn only_new_pods_are_changed_and_deletions_are_nobodys_business() {
    let unchanged = |review: &Value| answered(Webhook::Membership, review).get("patch").is_none();
    assert!(unchanged(&review("Pod", "UPDATE", &pod())));
    assert!(unchanged(&review("PodTemplate", "CREATE", &pod())));
    assert!(unchanged(&review("Pod", "DELETE", &Value::Null)));
    let answer = answered(Webhook::Advice, &review("PodGroup", "DELETE", &group("Burn")));
    assert_eq!(answer.get("warnings"), None);
}

#[test]
fn warnings_are_few_short_and_on_one_line() {
    let template = |index: usize| {
        json!({"name": index.to_string(), "schedulingPolicy": {"gang": {"minCount": "many\nmore"}},
               "schedulingConstraints": {"topology": [{"key": "k".repeat(5000)}]}})
    };
    let templates: Vec<Value> = (0..60).map(template).collect();
    let workload = json!({"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates}});
    let answer = answered(Webhook::Advice, &review("Workload", "CREATE", &workload));
    let warnings = answer["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 8);
    for warning in warnings {
        let text = warning.as_str().unwrap();
        assert!(text.chars().count() <= 256 && !text.contains('\n'), "{text}");
    }
}

#[test]
fn what_is_no_review_is_refused_with_a_reason() {
    let refused =
        |body: &Value| answer(Webhook::Advice, body.to_string().as_bytes(), &cluster()).unwrap_err();
    let mut old = review("Pod", "CREATE", &pod());
    old["apiVersion"] = json!("admission.k8s.io/v1beta1");
    assert!(refused(&old).to_string().ends_with("found AdmissionReview of admission.k8s.io/v1beta1"));
    let empty = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
    assert!(refused(&empty).to_string().starts_with("want an AdmissionReview"));
    assert!(refused(&json!([])).to_string().starts_with("the body is not an AdmissionReview"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(answer(Webhook::Advice, deep.as_bytes(), &cluster()).is_err());
}

/// Any JSON, of the words that objects are made of.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("annotations"),
        Just("template"),
        Just("podGroupTemplates"),
        Just("compositePodGroupTemplates"),
        Just("schedulingPolicy"),
        Just("gang"),
        Just("minCount"),
        Just("schedulingConstraints"),
        Just("topology"),
        Just("key"),
        Just("ownerReferences"),
        Just("containers"),
        Just("resources"),
        Just("requests"),
        Just("cpu"),
        Just("parallelism"),
        Just("tutti.dev/gang"),
        Just("tutti.dev/topology-levels"),
        Just("schedulerName"),
        Just("controllerRef"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("tutti")),
        Just(json!("9999999999999999999Ei")),
    ];
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(word, value)| (word.to_owned(), value)).collect()),
        ]
    })
}

/// Places in objects where something else is put.
fn places() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "",
        "/metadata",
        "/metadata/ownerReferences",
        "/metadata/annotations",
        "/spec",
        "/spec/schedulingPolicy",
        "/spec/template",
        "/spec/template/spec",
        "/spec/podGroupTemplates",
        "/spec/controllerRef",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_object_makes_it_fall_or_say_no(
        kind in proptest::sample::select(vec!["Pod", "Job", "Workload", "PodGroup", "CompositePodGroup", "X"]),
        place in places(),
        value in any_json(),
    ) {
        let mut object = json!({
            "metadata": {"name": "x", "ownerReferences": [], "annotations": {}},
            "spec": {"schedulerName": "tutti", "schedulingPolicy": {"gang": {"minCount": 3}}, "controllerRef": {},
                     "podGroupTemplates": [], "template": {"spec": {"schedulerName": "tutti"}}},
        });
        if let Some(there) = object.pointer_mut(place) {
            *there = value;
        }
        let body = review(kind, "CREATE", &object).to_string();
        for webhook in [Webhook::Membership, Webhook::Advice] {
            // Metadata of the wrong shape cannot come from an API server; it is refused, and that is all.
            if let Ok(review) = answer(webhook, body.as_bytes(), &cluster()) {
                prop_assert!(review.response.is_some_and(|response| response.allowed));
            }
        }
    }

    #[test]
    fn no_bytes_make_it_fall(
        cut in any::<prop::sample::Index>(),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let whole = review("Pod", "CREATE", &pod()).to_string().into_bytes();
        let mut body = whole[..cut.index(whole.len())].to_vec();
        body.extend(noise);
        // Whatever it is told, it answers.
        let _ = answer(Webhook::Membership, &body, &cluster());
        let _ = answer(Webhook::Advice, &body, &cluster());
    }
}

// === over TLS ===

struct Site {
    address: std::net::SocketAddr,
    served: Arc<Served>,
    _end: watch::Sender<bool>,
}

impl Site {
    async fn start() -> Self {
        let served = Arc::new(Served::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = watch::channel(false);
        let router = router(Shared::new(cluster()));
        tokio::spawn(tutti_http::tls::serve(listener, served.config().unwrap(), router, ended));
        Self { address, served, _end: end }
    }

    /// One connection, one request.
    async fn ask(&self, trusted: &str, path: &str, body: Vec<u8>) -> io::Result<(StatusCode, Bytes)> {
        let mut roots = rustls::RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .map_err(io::Error::other)?;
        tokio::spawn(connection);
        let request = Request::post(format!("https://localhost{path}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        Ok((status, body))
    }
}

fn identity() -> Identity {
    Identity::generate(&["localhost".to_owned()], Timestamp::now(), Duration::from_secs(600)).unwrap()
}

#[tokio::test]
async fn reviews_are_answered_over_tls_and_bad_bodies_get_a_reason() {
    let site = Site::start().await;
    let identity = identity();
    let body = || review("Pod", "CREATE", &pod()).to_string().into_bytes();
    assert!(
        site.ask(&identity.authority, MEMBERSHIP_PATH, body()).await.is_err(),
        "there is no certificate yet"
    );
    site.served.set(identity.certified().unwrap());
    let (status, answer) = site.ask(&identity.authority, MEMBERSHIP_PATH, body()).await.unwrap();
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["allowed"], true);

    let (status, said) = site.ask(&identity.authority, ADVICE_PATH, b"{".to_vec()).await.unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(said.starts_with(b"the body is not an AdmissionReview"), "{said:?}");
    let (status, _) = site.ask(&identity.authority, ADVICE_PATH, vec![b' '; 5 << 20]).await.unwrap();
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _) = site.ask(&identity.authority, "/other", body()).await.unwrap();
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_change_of_certificates_loses_no_request_of_whoever_trusts_both() {
    let site = Site::start().await;
    let (old, new) = (identity(), identity());
    let both = format!("{}{}", old.authority, new.authority);
    site.served.set(old.certified().unwrap());
    let body = || review("Pod", "CREATE", &pod()).to_string().into_bytes();
    for round in 0..40 {
        if round == 20 {
            site.served.set(new.certified().unwrap());
        }
        let (status, _) = site.ask(&both, MEMBERSHIP_PATH, body()).await.unwrap();
        assert_eq!(status, StatusCode::OK);
    }
    assert!(site.ask(&new.authority, MEMBERSHIP_PATH, body()).await.is_ok());
    assert!(
        site.ask(&old.authority, MEMBERSHIP_PATH, body()).await.is_err(),
        "the old one is not served any more"
    );
}
