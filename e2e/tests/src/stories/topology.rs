//! What groups and trees of groups ask of the topology.

use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tutti_cluster::kubelet::NodeTemplate;
use tutti_k8s::group::COMPOSITE_CONDITION;

/// A group with annotations, and with fields in its spec.
pub(super) async fn group(
    world: &World<'_>,
    name: &str,
    annotations: &Value,
    spec: &Value,
) -> anyhow::Result<()> {
    let group = json!({
        "apiVersion": world.group_api_version(), "kind": "PodGroup",
        "metadata": {"name": name, "annotations": annotations}, "spec": spec,
    });
    let created = world.groups().create(&PostParams::default(), &serde_json::from_value(group)?).await;
    created.map(drop).with_context(|| format!("cannot create group {name}"))
}

pub(super) fn gang(minimum: usize, rack: bool) -> Value {
    let mut spec = json!({"schedulingPolicy": {"gang": {"minCount": minimum}}});
    if rack {
        spec["schedulingConstraints"] = json!({"topology": [{"key": "rack"}]});
    }
    spec
}

pub(super) async fn racks(world: &World<'_>, block: &str, racks: &[&str], cpus: &str) -> anyhow::Result<()> {
    for rack in racks {
        let node = NodeTemplate::new(*rack, [("cpu", cpus), ("memory", "64Gi")]);
        world.add(node.label("block", block).label("rack", *rack)).await?;
    }
    Ok(())
}

/// Where members are; every rack is one node of its name.
async fn racks_of(
    world: &World<'_>,
    group: &str,
    range: std::ops::Range<usize>,
) -> anyhow::Result<BTreeSet<String>> {
    let mut racks = BTreeSet::new();
    for index in range {
        racks.extend(world.node_of(&format!("{group}-{index}")).await?);
    }
    Ok(racks)
}

pub(super) async fn topology_of_a_group_is_required_pinned_preferred_and_explained(
    world: &World<'_>,
) -> anyhow::Result<()> {
    racks(world, "x", &["a", "b"], "4").await?;
    group(world, "large", &json!({}), &gang(5, true)).await?;
    world.members("large", 0..5, "1").await?;
    let short = "a, the roomiest of 2 values of rack (2 too small), has room for 4 of 5 members, 1 short";
    world.wait_condition("large", "False", short).await?;
    group(world, "g", &json!({}), &gang(3, true)).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_running(3).await?;
    let home = racks_of(world, "g", 0..3).await?;
    ensure!(home.len() == 1, "one rack is required: {home:?}");
    // One more has room at home, and the next one only elsewhere.
    world.members("g", 3..4, "1").await?;
    world.wait_running(4).await?;
    world.members("g", 4..5, "1").await?;
    let said = world.wait_unscheduled("g-4").await?;
    ensure!(said.contains("rack"), "{said}");
    world.delete_pod("g-4").await?;
    let near = json!({"tutti.dev/topology-levels": "block=required,rack=preferred"});
    group(world, "near", &near, &gang(4, false)).await?;
    world.members("near", 0..4, "1").await?;
    world.wait_running(8).await?;
    let elsewhere = racks_of(world, "near", 0..4).await?;
    ensure!(elsewhere.len() == 1 && elsewhere != home, "{elsewhere:?} beside {home:?}");
    Ok(())
}

pub(super) async fn topology_annotations_make_slices_and_bad_ones_hurt_nobody_else(
    world: &World<'_>,
) -> anyhow::Result<()> {
    // Three fit into each rack, but a slice is two.
    racks(world, "x", &["a", "b", "c"], "3").await?;
    group(world, "bad", &json!({"tutti.dev/slice-size": "2"}), &gang(1, false)).await?;
    world.members("bad", 0..1, "1").await?;
    let said = world.wait_event("bad", "NotUnderstood").await?;
    ensure!(
        said == "metadata.annotations[tutti.dev/slice-size]: wants tutti.dev/slice-topology, too",
        "{said}"
    );
    world.wait_condition("bad", "False", &said).await?;
    let slices = json!({"tutti.dev/slice-size": "2", "tutti.dev/slice-topology": "rack"});
    group(world, "g", &slices, &gang(6, false)).await?;
    for index in (0..6).rev() {
        member(world, "g", &index.to_string(), &rank(index), None).await?;
    }
    world.wait_running(6).await?;
    for slice in 0..3 {
        let found = racks_of(world, "g", slice * 2..slice * 2 + 2).await?;
        ensure!(found.len() == 1, "slice {slice} is in {found:?}");
    }
    Ok(())
}

/// A member with labels, on a node if somebody else has placed it there.
async fn member(
    world: &World<'_>,
    group: &str,
    suffix: &str,
    labels: &Value,
    node: Option<&str>,
) -> anyhow::Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{group}-{suffix}"), "labels": labels},
        "spec": {"schedulerName": "tutti", "terminationGracePeriodSeconds": 1, "nodeName": node,
                 "schedulingGroup": {"podGroupName": group},
                 "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]},
    });
    let created = world.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await;
    created.map(drop).with_context(|| format!("cannot create {group}-{suffix}"))
}

fn rank(rank: usize) -> Value {
    json!({"batch.kubernetes.io/job-completion-index": rank.to_string()})
}

pub(super) async fn topology_of_ranks_keeps_neighbours_near_and_the_leader_with_the_first(
    world: &World<'_>,
) -> anyhow::Result<()> {
    racks(world, "x", &["a", "b"], "4").await?;
    // No rack has room for all, so the level that is only preferred is given up, in the order of ranks.
    let levels = json!({"tutti.dev/topology-levels": "block=required,rack=preferred"});
    group(world, "g", &levels, &gang(8, false)).await?;
    for index in (0..7).rev() {
        member(world, "g", &index.to_string(), &rank(index), None).await?;
    }
    member(world, "g", "leader", &json!({"tutti.dev/role": "leader"}), None).await?;
    world.wait_running(8).await?;
    let mut first = racks_of(world, "g", 0..3).await?;
    first.extend(world.node_of("g-leader").await?);
    let last = racks_of(world, "g", 3..7).await?;
    ensure!(first.len() == 1 && last.len() == 1 && first != last, "{first:?} and then {last:?}");
    Ok(())
}

pub(super) async fn topology_that_somebody_else_has_broken_is_told_of_and_not_broken_further(
    world: &World<'_>,
) -> anyhow::Result<()> {
    racks(world, "x", &["a", "b"], "8").await?;
    world.add(NodeTemplate::new("bare", [("cpu", "8"), ("memory", "64Gi")])).await?;
    // Two run in b, one in a: new ones go to b.
    for (suffix, node) in [("0", "b"), ("1", "b"), ("2", "a")] {
        member(world, "g", suffix, &json!({}), Some(node)).await?;
    }
    world.wait_running(3).await?;
    group(world, "g", &json!({}), &gang(4, true)).await?;
    world.members("g", 3..5, "1").await?;
    world.wait_running(5).await?;
    let scattered = "running members are not in one domain of rack: 1 in a, 2 in b";
    world.wait_condition("g", "True", scattered).await?;
    let found = racks_of(world, "g", 3..5).await?;
    ensure!(found == BTreeSet::from(["b".to_owned()]), "new members are in {found:?}");
    // One runs where there is no rack: the others are in one all the same.
    member(world, "h", "0", &json!({}), Some("bare")).await?;
    world.wait_running(6).await?;
    group(world, "h", &json!({}), &gang(3, true)).await?;
    world.members("h", 1..3, "1").await?;
    world.wait_running(8).await?;
    world.wait_condition("h", "True", "domain of rack: 1 on nodes without that label").await?;
    let found = racks_of(world, "h", 1..3).await?;
    ensure!(found.len() == 1 && !found.contains("bare"), "new members are in {found:?}");
    Ok(())
}

struct Composites<'a> {
    world: &'a World<'a>,
    api: Api<DynamicObject>,
    resource: ApiResource,
}

impl Composites<'_> {
    async fn create(&self, name: &str, parent: Option<&str>, minimum: u32, key: &str) -> anyhow::Result<()> {
        let mut spec = json!({
            "workloadRef": {"workloadName": "w", "templateName": name},
            "schedulingPolicy": {"gang": {"minGroupCount": minimum}},
            "schedulingConstraints": {"topology": [{"key": key}]},
        });
        if let Some(parent) = parent {
            spec["parentCompositePodGroupName"] = json!(parent);
        }
        let composite = json!({
            "apiVersion": self.resource.api_version, "kind": self.resource.kind,
            "metadata": {"name": name}, "spec": spec,
        });
        self.api.create(&PostParams::default(), &serde_json::from_value(composite)?).await?;
        Ok(())
    }

    async fn child(&self, name: &str, parent: &str, members: usize) -> anyhow::Result<()> {
        self.group(name, parent, gang(members, true)).await?;
        self.world.members(name, 0..members, "1").await
    }

    async fn group(&self, name: &str, parent: &str, mut spec: Value) -> anyhow::Result<()> {
        spec["workloadRef"] = json!({"workloadName": "w", "templateName": name});
        spec["parentCompositePodGroupName"] = json!(parent);
        group(self.world, name, &json!({}), &spec).await
    }

    async fn wait_condition(&self, name: &str, status: &str, text: &str) -> anyhow::Result<()> {
        eventually(&format!("{name} is {status} and says {text:?}"), || async {
            let found = self.api.get(name).await?;
            let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let says = conditions.iter().any(|condition| {
                condition["type"] == COMPOSITE_CONDITION
                    && condition["status"] == status
                    && condition["message"].as_str().is_some_and(|message| message.contains(text))
            });
            Ok(says.then_some(()).ok_or_else(|| format!("{conditions:?}")))
        })
        .await
    }
}

pub(super) async fn topology_of_a_tree_is_solved_as_one_and_every_node_of_it_says_so(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let resource = world.capabilities.composite.clone().context("the cluster serves no composites")?;
    let api = Api::namespaced_with(world.client.clone(), &world.namespace, &resource);
    let composites = Composites { world, api, resource };
    racks(world, "p", &["a", "b"], "2").await?;
    composites.create("top", None, 2, "block").await?;
    composites.create("workers", Some("top"), 2, "block").await?;
    composites.child("one", "workers", 3).await?;
    composites.child("two", "workers", 3).await?;
    composites.child("side", "top", 1).await?;
    composites.wait_condition("top", "False", "block").await?;
    composites.wait_condition("workers", "False", "").await?;
    world.wait_condition("one", "False", "").await?;
    ensure!(world.counts().await? == (0, 0), "somebody started");
    racks(world, "q", &["c", "d"], "4").await?;
    world.wait_running(7).await?;
    composites.wait_condition("top", "True", "2 of at least 2 groups have what they need").await?;
    composites.wait_condition("workers", "True", "2 of at least 2 groups").await?;
    world.wait_condition("one", "True", "3 members placed on 1 node").await?;
    // One that does not fit waits alone, and a late one that fits joins.
    composites.child("huge", "top", 5).await?;
    world.wait_condition("huge", "False", "rack").await?;
    composites.child("late", "top", 1).await?;
    world.wait_running(8).await?;
    let now = kube::api::DeleteParams::default().grace_period(0);
    composites.api.delete_collection(&now, &ListParams::default()).await?;
    Ok(())
}

pub(super) async fn topology_of_a_tree_that_is_contradicted_takes_replacements_and_no_new_groups(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let resource = world.capabilities.composite.clone().context("the cluster serves no composites")?;
    let api = Api::namespaced_with(world.client.clone(), &world.namespace, &resource);
    let composites = Composites { world, api, resource };
    racks(world, "x", &["a", "b", "c"], "8").await?;
    // Another scheduler has placed two groups of a composite that requires one rack.
    for (name, node) in [("one", "a"), ("two", "b")] {
        member(world, name, "0", &json!({}), Some(node)).await?;
    }
    world.wait_running(2).await?;
    composites.create("top", None, 1, "rack").await?;
    for name in ["one", "two"] {
        composites.group(name, "top", gang(1, false)).await?;
    }
    composites.group("three", "top", gang(1, false)).await?;
    world.members("three", 0..1, "1").await?;
    let why = "groups of composite pod group top run in several domains of rack (a, b), and it requires one";
    let said = world.wait_condition("three", "False", why).await?;
    ensure!(said["reason"] == "SchedulerError", "{said}");
    // Replacements stay where their group is.
    world.members("one", 1..3, "1").await?;
    world.members("two", 1..3, "1").await?;
    world.wait_running(6).await?;
    for (name, node) in [("one", "a"), ("two", "b")] {
        let found = racks_of(world, name, 0..3).await?;
        ensure!(found == BTreeSet::from([node.to_owned()]), "{name} is in {found:?}");
    }
    // Once the contradiction is gone, the new group joins the others.
    for index in 0..3 {
        world.delete_pod(&format!("one-{index}")).await?;
    }
    world.wait_running(4).await?;
    let found = racks_of(world, "three", 0..1).await?;
    ensure!(found == BTreeSet::from(["b".to_owned()]), "three is in {found:?}");
    let now = kube::api::DeleteParams::default().grace_period(0);
    composites.api.delete_collection(&now, &ListParams::default()).await?;
    Ok(())
}

pub(super) async fn topology_with_equal_room_left_goes_by_how_full_racks_are(
    world: &World<'_>,
) -> anyhow::Result<()> {
    // Four seats are free in each; the second is three quarters full, the first not at all.
    racks(world, "x", &["a"], "4").await?;
    racks(world, "x", &["b"], "16").await?;
    for index in 0..12 {
        member(world, "old", &index.to_string(), &json!({}), Some("b")).await?;
    }
    world.wait_running(12).await?;
    group(world, "g", &json!({}), &gang(2, true)).await?;
    world.members("g", 0..2, "1").await?;
    world.wait_running(14).await?;
    let found = racks_of(world, "g", 0..2).await?;
    ensure!(found == BTreeSet::from(["b".to_owned()]), "the fuller rack is b, and the group is in {found:?}");
    Ok(())
}
