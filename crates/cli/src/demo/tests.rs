//! The story must fail where it does not happen.

use super::*;
use serde_json::json;
use std::collections::BTreeMap;
use tutti_cluster::cluster::ClusterOptions;
use tutti_cluster::listener::Port;

async fn cluster() -> Cluster {
    let options = ClusterOptions {
        port: Port::Exactly(0),
        nodes: NODES,
        gpus_per_node: GPUS,
        ..ClusterOptions::default()
    };
    Cluster::start(options).await.unwrap()
}

#[test]
fn the_numbers_of_the_story_add_up() {
    let (small, large) = (Gang::read(SMALL_GANG).unwrap(), Gang::read(LARGE_GANG).unwrap());
    let at_start = (NODES * GPUS) as usize;
    assert!(small.members <= at_start, "the first gang fits");
    assert!(large.members > at_start, "the second does not");
    assert!(large.members <= at_start + GPUS as usize, "until one node joins");
}

#[tokio::test]
async fn without_a_scheduler_the_demo_fails_and_says_how_far_it_came() {
    let cluster = cluster().await;
    let result = tell(&cluster, Console::silent(), Duration::from_millis(200)).await;
    let error = format!("{:#}", result.unwrap_err());
    assert!(error.contains("0 of 4 running"), "{error}");
    assert!(error.contains("did not happen within"), "{error}");
}

/// Binds every pod alone, as long as a node has a GPU, as schedulers do that know no gangs.
async fn bind_greedily(client: Client) {
    let pods: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &resource("v1", "Pod"));
    loop {
        let listed = pods.list(&ListParams::default()).await.unwrap();
        let mut used: BTreeMap<String, u32> = (0..NODES).map(|n| (format!("node-{n}"), 0)).collect();
        let node_of = |pod: &DynamicObject| {
            pod.data.pointer("/spec/nodeName").and_then(|n| n.as_str()).map(str::to_owned)
        };
        for node in listed.iter().filter_map(node_of) {
            *used.entry(node).or_default() += 1;
        }
        for pod in listed.iter().filter(|pod| node_of(pod).is_none()) {
            let Some((node, used)) = used.iter_mut().find(|(_, used)| **used < GPUS) else {
                break;
            };
            *used += 1;
            let name = pod.metadata.name.clone().unwrap();
            let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
            let _ = pods
                .create_subresource::<_, serde_json::Value>(
                    "binding",
                    &name,
                    &PostParams::default(),
                    &binding,
                )
                .await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_scheduler_that_starts_six_of_eight_is_caught() {
    let cluster = cluster().await;
    let greedy = tokio::spawn(bind_greedily(cluster.client()));
    let error = format!("{:#}", tell(&cluster, Console::silent(), PATIENCE).await.unwrap_err());
    assert!(error.contains("were placed although 6 GPUs cannot hold them all"), "{error}");
    greedy.abort();
}
