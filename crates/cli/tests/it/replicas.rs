//! Two schedulers, of which one leads: it hands over, or is killed in the middle of a gang.

use crate::health::{free_address, wait_ready};
use crate::process::Running;
use crate::world::{World, eventually, node_of, uid_of};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The gang that is being bound when its scheduler is killed: nodes, and members on each.
const NODES: usize = 20;
const MEMBERS_PER_NODE: usize = 10;
const MEMBERS: usize = NODES * MEMBERS_PER_NODE;
const KILLS: usize = 3;
/// Requests of a test that are under way at once.
const REQUESTS_MAX: usize = 16;

/// Leaders that are missed soon, and that bind slowly enough to be caught at it.
fn settings() -> Value {
    json!({
        "leaderElection": {"leaseDuration": "2s", "renewDeadline": "1s300ms", "retryPeriod": "300ms"},
        "limits": {"bindConcurrency": 2},
    })
}

struct Replica {
    running: Running,
    address: String,
}

impl Replica {
    fn start(world: &World) -> Self {
        let (config, address) = (world.config(&settings()), free_address());
        let running = world.scheduler(&["--config", &config, "--http-address", &address]);
        Self { running, address }
    }

    async fn wait_ready(&self, how: &str) {
        eventually(&format!("a replica is {how}"), || async {
            wait_ready(&self.address).await.starts_with(how).then_some(())
        })
        .await;
    }

    /// Asks it to end, which must go well. Gives its log.
    fn end(self) -> String {
        self.running.signal("TERM");
        let ended = self.running.wait();
        assert!(ended.status.success(), "{}", ended.stderr);
        ended.stderr
    }
}

#[tokio::test]
async fn of_two_replicas_one_schedules_and_hands_over() {
    let world = World::up(&["--nodes", "1"]).await;
    let first = Replica::start(&world);
    first.wait_ready("scheduling").await;
    let second = Replica::start(&world);
    second.wait_ready("standing by").await;
    gang(&world, "before", 2).await;
    world.wait_running(2).await;
    let log = first.end();
    assert!(log.contains("Stop"), "{log}");
    gang(&world, "after", 2).await;
    world.wait_running(4).await;
    second.wait_ready("scheduling").await;
    let log = second.end();
    assert!(log.contains("takeover=false"), "nobody waits for a lease that was given back: {log}");
}

#[tokio::test]
async fn a_leader_killed_in_the_middle_of_a_gang_leaves_no_part_of_it() {
    let world = World::up(&["--nodes", "0"]).await;
    for index in 0..NODES {
        world.node(&format!("n{index}"), MEMBERS_PER_NODE).await;
    }
    let mut leader = Replica::start(&world);
    leader.wait_ready("scheduling").await;
    let mut in_parts = 0;
    for round in 0..KILLS {
        let next = Replica::start(&world);
        next.wait_ready("standing by").await;
        let name = format!("g{round}");
        gang(&world, &name, MEMBERS).await;
        let uids: BTreeSet<String> = world.list_pods().await.iter().map(uid_of).collect();
        // Another moment in every round, all of them before the last member is bound.
        let moment = (round + 1) * MEMBERS / (KILLS + 1);
        eventually(&format!("{moment} members are bound"), || async {
            (bound(&world.list_pods().await) >= moment).then_some(())
        })
        .await;
        drop(leader);
        in_parts += usize::from(bound(&world.list_pods().await) < MEMBERS);
        world.wait_running(MEMBERS).await;
        let pods = world.list_pods().await;
        assert_eq!(pods.iter().map(uid_of).collect::<BTreeSet<_>>(), uids, "nobody had to be made again");
        let mut on_node = BTreeMap::<&str, usize>::new();
        for node in pods.iter().filter_map(node_of) {
            *on_node.entry(node).or_default() += 1;
        }
        assert!(on_node.values().all(|&count| count == MEMBERS_PER_NODE), "{on_node:?}");
        clear(&world, &name).await;
        leader = next;
    }
    println!("{in_parts} of {KILLS} kills found a gang bound in part");
    assert!(in_parts > 0, "every kill came too late to find a part of a gang");
    let log = leader.end();
    assert!(log.contains("takeover=true"), "nothing was handed over: {log}");
}

fn bound(pods: &[Pod]) -> usize {
    pods.iter().filter(|pod| node_of(pod).is_some()).count()
}

async fn gang(world: &World, name: &str, members: usize) {
    world.gang(name, members, &json!({})).await;
    let members = stream::iter(0..members).map(|index| world.member(name, index));
    members.buffer_unordered(REQUESTS_MAX).collect::<()>().await;
}

async fn clear(world: &World, gang: &str) {
    let now = DeleteParams::default().grace_period(0);
    world.pods().delete_collection(&now, &ListParams::default()).await.unwrap();
    world.groups().delete(gang, &DeleteParams::default()).await.unwrap();
    eventually("all members are gone", || async { world.list_pods().await.is_empty().then_some(()) }).await;
}
