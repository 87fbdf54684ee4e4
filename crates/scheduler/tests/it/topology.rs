//! What groups ask of the topology, from annotations to nodes.

use crate::harness::{World, eventually};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use std::collections::BTreeSet;

const LEVELS: &str = "tutti.dev/topology-levels";

/// Nodes `rack-number` with so many CPUs each, in racks of a block.
async fn racks(world: &World, block: &str, racks: &[(&str, usize)], cpus: &str) {
    for (rack, nodes) in racks {
        for number in 0..*nodes {
            world.node_at(&format!("{rack}-{number}"), cpus, &[("block", block), ("rack", rack)]).await;
        }
    }
}

/// The racks that pods are in, by the names of their nodes.
async fn racks_of(world: &World, pods: &[String]) -> BTreeSet<String> {
    let mut racks = BTreeSet::new();
    for pod in pods {
        let node = world.node_of(pod).await.expect("it is bound");
        racks.insert(node.rsplit_once('-').expect("nodes are numbered").0.to_owned());
    }
    racks
}

fn names(group: &str, range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|index| format!("{group}-{index}")).collect()
}

async fn message_with(world: &World, group: &str, status: &str, part: &str) -> String {
    let condition = world.wait_condition_saying(group, status, part).await;
    condition["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_rack_is_kept_and_later_members_are_pinned_to_it() {
    let world = World::start().await;
    racks(&world, "x", &[("a", 2), ("b", 3)], "2").await;
    let native = json!({"schedulingConstraints": {"topology": [{"key": "rack"}]}});
    world.gang_with("g", 6, &json!({}), &native).await;
    world.members("g", 0..6, "1").await;
    world.wait_running(6).await;
    assert_eq!(racks_of(&world, &names("g", 0..6)).await, BTreeSet::from(["b".to_owned()]));
    // Rack a has room, but the group is in b.
    world.members("g", 6..7, "1").await;
    eventually("the late member says why", || async {
        let (status, message) = world.pod_condition("g-6").await?;
        (status == "False" && message.contains("rack")).then_some(())
    })
    .await;
    assert_eq!(world.node_of("g-6").await, None);
    world.node_at("b-3", "1", &[("block", "x"), ("rack", "b")]).await;
    world.wait_running(7).await;
    assert_eq!(world.node_of("g-6").await.as_deref(), Some("b-3"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_that_is_too_small_is_named_with_what_is_short() {
    let world = World::start().await;
    racks(&world, "x", &[("a", 1), ("b", 2)], "4").await;
    world.gang_with("g", 9, &json!({LEVELS: "block=required,rack=required"}), &json!({})).await;
    world.members("g", 0..9, "1").await;
    let message = message_with(&world, "g", "False", "8 of 9 members").await;
    assert!(
        message.contains(
            "x/b, the roomiest of 2 values of rack (2 too small), has room for 8 of 9 members, 1 short"
        ),
        "{message}"
    );
    assert!(message.contains("short of 1 cpu"), "{message}");
    assert_eq!(world.counts().await, (0, 0));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preferred_level_is_met_if_possible_and_given_up_if_not() {
    let world = World::start().await;
    racks(&world, "x", &[("a", 1), ("b", 1)], "4").await;
    let levels = json!({LEVELS: "block=required,rack=preferred"});
    world.gang_with("near", 3, &levels, &json!({})).await;
    world.members("near", 0..3, "1").await;
    world.wait_running(3).await;
    assert_eq!(racks_of(&world, &names("near", 0..3)).await.len(), 1);
    world.gang_with("far", 5, &levels, &json!({})).await;
    world.members("far", 0..5, "1").await;
    world.wait_running(8).await;
    assert_eq!(racks_of(&world, &names("far", 0..5)).await.len(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_straddle_are_told_of_and_new_ones_go_where_most_are() {
    let world = World::start().await;
    racks(&world, "x", &[("a", 1), ("b", 1)], "8").await;
    // Two run in b and one in a: somebody else has placed them.
    for (name, node) in [("g-0", "b-0"), ("g-1", "b-0"), ("g-2", "a-0")] {
        let fields = json!({"schedulingGroup": {"podGroupName": "g"}, "nodeName": node});
        world.pod_with(name, &fields, "1").await;
    }
    world.wait_running(3).await;
    let native = json!({"schedulingConstraints": {"topology": [{"key": "rack"}]}});
    world.gang_with("g", 4, &json!({}), &native).await;
    world.members("g", 3..5, "1").await;
    world.wait_running(5).await;
    let message = message_with(&world, "g", "True", "not in one domain").await;
    assert!(message.ends_with("running members are not in one domain of rack: 1 in a, 2 in b"), "{message}");
    assert_eq!(racks_of(&world, &names("g", 3..5)).await, BTreeSet::from(["b".to_owned()]));
    world.end().await;
}

/// A member with a rank, and the name that goes with it.
async fn ranked(world: &World, group: &str, rank: usize) {
    let labels = json!({"batch.kubernetes.io/job-completion-index": rank.to_string()});
    let fields = json!({"schedulingGroup": {"podGroupName": group}});
    world.labelled_pod(&format!("{group}-{rank}"), &labels, &fields, "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_of_neighbours_in_rank_share_a_rack_in_the_words_of_kueue() {
    let world = World::start().await;
    // Each rack has room for five, but a slice is four.
    racks(&world, "x", &[("a", 5), ("b", 5), ("c", 5)], "1").await;
    let slices = json!({
        "kueue.x-k8s.io/podset-slice-size": "4", "kueue.x-k8s.io/podset-slice-required-topology": "rack",
    });
    world.gang_with("g", 12, &slices, &json!({})).await;
    // The last rank comes first: names and arrival must not decide.
    for rank in (0..12).rev() {
        ranked(&world, "g", rank).await;
    }
    world.wait_running(12).await;
    let mut used = BTreeSet::new();
    for slice in 0..3 {
        let found = racks_of(&world, &names("g", slice * 4..slice * 4 + 4)).await;
        assert_eq!(found.len(), 1, "slice {slice} is in {found:?}");
        used.extend(found);
    }
    assert_eq!(used.len(), 3, "no rack has room for two slices");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_in_rank_are_near_and_the_leader_is_with_the_first() {
    let world = World::start().await;
    racks(&world, "x", &[("a", 1), ("b", 1)], "4").await;
    world.gang_with("g", 8, &json!({LEVELS: "block=required,rack=preferred"}), &json!({})).await;
    let fields = json!({"schedulingGroup": {"podGroupName": "g"}});
    for rank in (0..7).rev() {
        ranked(&world, "g", rank).await;
    }
    world.labelled_pod("g-leader", &json!({"tutti.dev/role": "leader"}), &fields, "1").await;
    world.wait_running(8).await;
    let first = [names("g", 0..3), vec!["g-leader".to_owned()]].concat();
    let (first, last) = (racks_of(&world, &first).await, racks_of(&world, &names("g", 3..7)).await);
    assert_eq!((first.len(), last.len()), (1, 1), "{first:?} {last:?}");
    assert_ne!(first, last);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_annotation_stops_its_group_only_until_it_is_mended() {
    let world = World::start().await;
    racks(&world, "x", &[("a", 2)], "2").await;
    world.gang_with("bad", 2, &json!({LEVELS: "rack=maybe"}), &json!({})).await;
    world.members("bad", 0..2, "1").await;
    world.gang("good", 2).await;
    world.members("good", 0..2, "1").await;
    let why = "metadata.annotations[tutti.dev/topology-levels]: want KEY=required or KEY=preferred, found \"rack=maybe\"";
    assert_eq!(world.wait_event("bad", "NotUnderstood").await, why);
    message_with(&world, "bad", "False", why).await;
    world.wait_condition("good", "True").await;
    assert_eq!(world.node_of("bad-0").await, None);
    let mended = Patch::Merge(json!({"metadata": {"annotations": {LEVELS: "rack=required"}}}));
    let groups = world.groups();
    groups.patch("bad", &PatchParams::default(), &mended).await.expect("the group is changed");
    world.wait_running(4).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_does_what_it_says() {
    let world = World::start().await;
    // Block x has no two racks for two each, y has.
    racks(&world, "x", &[("a", 1), ("b", 1)], "3").await;
    racks(&world, "y", &[("c", 1), ("d", 1)], "5").await;
    for text in include_str!("../../../../examples/topology.yaml").split("---\n") {
        let object: DynamicObject = serde_saphyr::from_str(text).expect("it is an object");
        let kind = object.types.clone().expect("it has a kind");
        let kind = GroupVersionKind::try_from(kind).expect("its version can be read");
        let resource = ApiResource::from_gvk(&kind);
        let api = Api::<DynamicObject>::default_namespaced_with(world.client.clone(), &resource);
        api.create(&PostParams::default(), &object).await.expect("it is taken");
    }
    world.wait_running(4).await;
    let (first, second) =
        (racks_of(&world, &names("ranks", 0..2)).await, racks_of(&world, &names("ranks", 2..4)).await);
    assert_eq!(&first | &second, BTreeSet::from(["c".to_owned(), "d".to_owned()]));
    assert_eq!((first.len(), second.len()), (1, 1));
    world.end().await;
}
