//! Gangs of which only a part runs: kept with first claim on new room, or taken back to start again as a whole.

use crate::world::{World, eventually, node_of, uid_of};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long taking back a gang may take.
const PATIENCE: Duration = Duration::from_secs(60);
const SIZE: usize = 4;

/// A scheduler that gives up a broken gang soon.
fn impatient(world: &World) -> crate::process::Running {
    let config = world.config(&json!({"gangs": {"grace": "1s"}}));
    world.scheduler(&["--config", &config, "--http-address", "off", "--leader-elect=false"])
}

/// A gang that ran on nodes `a` and `b`, of which `b` is lost with the half of it that was there. Somebody else has
/// waited for room before. Gives the half that is left.
async fn half_lost(world: &World, annotations: &Value) -> BTreeSet<String> {
    world.node("a", SIZE / 2).await;
    world.node("b", SIZE / 2).await;
    world.gang("g", SIZE, annotations).await;
    world.controlled_members("g", SIZE).await;
    world.wait_running(SIZE).await;
    eventually("it is written down that the gang was complete", || async {
        let group = world.groups().get("g").await.unwrap();
        group.metadata.annotations?.contains_key("tutti.dev/fully-bound").then_some(())
    })
    .await;
    world.gang("rival", SIZE / 2, &json!({})).await;
    for index in 0..SIZE / 2 {
        world.member("rival", index).await;
    }
    world.wait_refused("rival", "0 of 2 members fit").await;
    let left = world.list_pods().await;
    let left = left.iter().filter(|pod| node_of(pod) == Some("a")).map(uid_of).collect();
    world.delete_node("b").await;
    left
}

/// How many members of the gang every node has.
async fn places(world: &World) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    let members = ListParams::default().labels("of=g");
    for pod in world.pods().list(&members).await.unwrap().items.iter().filter_map(node_of) {
        *places.entry(pod.to_owned()).or_default() += 1;
    }
    places
}

fn half_on(nodes: [&str; 2]) -> BTreeMap<String, usize> {
    nodes.map(|node| (node.to_owned(), SIZE / 2)).into()
}

#[tokio::test]
async fn a_gang_that_has_lost_a_node_is_kept_and_has_the_first_claim_on_new_room() {
    let world = World::up(&["--nodes", "0"]).await;
    let _scheduler = impatient(&world);
    let left = half_lost(&world, &json!({})).await;
    let events = Api::<Event>::default_namespaced(world.client.clone());
    eventually("it is said that the gang is incomplete", || async {
        let events = events.list(&ListParams::default()).await.unwrap();
        events.items.into_iter().find(|event| event.reason.as_deref() == Some("GangIncomplete"))
    })
    .await;
    world.node("c", SIZE / 2).await;
    eventually("the gang is complete again", || async {
        (places(&world).await == half_on(["a", "c"])).then_some(())
    })
    .await;
    world.wait_running(SIZE).await;
    let uids: BTreeSet<String> = world.list_pods().await.iter().map(uid_of).collect();
    assert!(uids.is_superset(&left), "who was left ran on");
    world.node("d", SIZE / 2).await;
    world.wait_running(SIZE + SIZE / 2).await;
}

#[tokio::test]
async fn a_gang_that_asks_for_it_is_taken_back_when_it_has_lost_members() {
    let world = World::up(&["--nodes", "0"]).await;
    let _scheduler = impatient(&world);
    let left = half_lost(&world, &json!({"tutti.dev/when-broken": "Unwind"})).await;
    wait_unwound(&world, left).await;
    // The other one waits for less, and has waited for longer.
    eventually("who waits has what is free", || async {
        let pods = world.list_pods().await;
        let bound = pods.iter().filter(|pod| node_of(pod) == Some("a"));
        (bound.count() == SIZE / 2).then_some(())
    })
    .await;
    assert_eq!(places(&world).await, BTreeMap::new());
    world.node("c", SIZE / 2).await;
    world.node("d", SIZE / 2).await;
    world.wait_running(SIZE + SIZE / 2).await;
    assert_eq!(places(&world).await, half_on(["c", "d"]));
}

#[tokio::test]
async fn a_gang_that_was_bound_in_part_is_taken_back_and_starts_as_a_whole() {
    let world = World::up(&["--nodes", "0"]).await;
    world.node("a", SIZE / 2).await;
    world.gang("g", SIZE, &json!({})).await;
    world.controlled_members("g", SIZE).await;
    // As somebody who was killed in the middle of it leaves it.
    let members = eventually("all members are there", || async {
        let pods = world.list_pods().await;
        (pods.len() == SIZE).then_some(pods)
    })
    .await;
    let mut part = BTreeSet::new();
    for pod in &members[..SIZE / 2] {
        bind(&world, pod, "a").await;
        part.insert(uid_of(pod));
    }
    let _scheduler = impatient(&world);
    wait_unwound(&world, part).await;
    // How many fit changes while its members go, which is not reported anew.
    world.wait_refused("g", "of 4 members fit").await;
    assert_eq!(places(&world).await, BTreeMap::new());
    world.node("b", SIZE / 2).await;
    world.wait_running(SIZE).await;
    assert_eq!(places(&world).await, half_on(["a", "b"]));
}

async fn bind(world: &World, pod: &Pod, node: &str) {
    let name = pod.metadata.name.as_deref().unwrap();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                         "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let bound: kube::Result<Value> =
        world.pods().create_subresource("binding", name, &PostParams::default(), &binding).await;
    bound.unwrap();
}

/// Waits until these pods are gone. Each must have said before that it is disrupted, and why.
async fn wait_unwound(world: &World, mut pods: BTreeSet<String>) {
    let mut events = world.pods().watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let mut told = BTreeSet::new();
    let unwound = async {
        while !pods.is_empty() {
            match events.next().await.unwrap().unwrap() {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) if is_unwound(&pod) => {
                    told.insert(uid_of(&pod));
                }
                WatchEvent::Deleted(pod) if pods.remove(&uid_of(&pod)) => {
                    assert!(told.contains(&uid_of(&pod)), "deleted without a word: {pod:?}");
                }
                _ => {}
            }
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, unwound).await;
    assert!(in_time.is_ok(), "{pods:?} are still there; {told:?} are said to be disrupted");
}

/// True if a pod says that it is disrupted because its gang is taken back.
fn is_unwound(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "DisruptionTarget"
            && condition.status == "True"
            && condition.reason.as_deref() == Some("GangUnwound")
    })
}
