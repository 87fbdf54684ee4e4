//! `tutti up --demo`: a story about gangs, told live. It creates objects through the API, watches them through
//! the API and prints what it sees. If something else happens than the story says, it fails.

use crate::console::{Console, Style, count};
use crate::observer::{Observer, Seen, Tally, resource};
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::DynamicObject;
use std::time::{Duration, Instant};
use tutti_cluster::cluster::Cluster;
use tutti_cluster::kubelet::{GPU, NodeTemplate};

/// Nodes at the start.
pub(crate) const NODES: u32 = 3;
/// GPUs of every node. Three nodes have room for a gang of 4 and not for one of 8; four nodes have exactly
/// enough.
pub(crate) const GPUS: u32 = 2;

const NAMESPACE: &str = "default";
/// The manifests that users can apply themselves.
const SMALL_GANG: &str = include_str!("../../../examples/gang-4.yaml");
const LARGE_GANG: &str = include_str!("../../../examples/gang-8.yaml");

/// Everything here takes a second or two; whoever needs longer than this is stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// How long it is watched that nothing of a refused gang starts.
const SUSPENSE: Duration = Duration::from_secs(2);
/// Time to read a line before the next.
const PAUSE: Duration = Duration::from_millis(1200);

/// Tells the story. Nothing in it may take longer than `patience`.
pub(crate) async fn tell(cluster: &Cluster, console: Console, patience: Duration) -> anyhow::Result<()> {
    let client = cluster.client();
    let mut story = Story {
        observer: Observer::new(&client, NAMESPACE),
        client,
        console,
        patience,
        began: Instant::now(),
    };
    story.tell(cluster).await.context("the demo did not go as it should")
}

struct Story {
    client: Client,
    observer: Observer,
    console: Console,
    patience: Duration,
    began: Instant,
}

/// A gang as its manifest describes it.
struct Gang {
    name: String,
    members: usize,
    objects: Vec<DynamicObject>,
}

impl Story {
    async fn tell(&mut self, cluster: &Cluster) -> anyhow::Result<()> {
        let (nodes, gpus) = self.hardware().await?;
        self.say(&format!("{} ready, {} in all", count(nodes, "node"), count(gpus, "GPU")));

        let small = Gang::read(SMALL_GANG)?;
        self.create(&small).await?;
        let tally = self.wait_for_all(&small).await?;
        self.say_running(&small, &tally);
        tokio::time::sleep(PAUSE).await;
        self.delete(&small).await?;
        tokio::time::sleep(PAUSE).await;

        let large = Gang::read(LARGE_GANG)?;
        self.create(&large).await?;
        self.watch_refusal(&large, gpus).await?;

        let node = NodeTemplate::numbered(NODES, NODES + 1, GPUS);
        cluster.add_node(&node).await?;
        let (_, gpus) = self.hardware().await?;
        self.say(&format!(
            "{} joins with {}: {gpus} in all",
            self.console.paint(Style::Strong, &node.name),
            count(GPUS.into(), "GPU"),
        ));
        let tally = self.wait_for_all(&large).await?;
        self.say_running(&large, &tally);
        Ok(())
    }

    /// Ready nodes and their GPUs, as the API server has them.
    async fn hardware(&self) -> anyhow::Result<(u64, u64)> {
        let nodes = Api::<Node>::all(self.client.clone()).list(&ListParams::default()).await?;
        let mut ready = 0;
        let mut gpus = 0;
        for status in nodes.items.iter().filter_map(|node| node.status.as_ref()) {
            let conditions = status.conditions.as_deref().unwrap_or_default();
            if !conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
                continue;
            }
            ready += 1;
            let amount = status.allocatable.as_ref().and_then(|all| all.get(GPU));
            gpus += amount.and_then(|quantity| quantity.0.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok((ready, gpus))
    }

    async fn create(&self, gang: &Gang) -> anyhow::Result<()> {
        self.say(&format!(
            "{} arrives: {} of one GPU each, all or nothing",
            self.name(gang),
            count(gang.members as u64, "worker"),
        ));
        for object in &gang.objects {
            let name = object.metadata.name.clone().unwrap_or_default();
            self.api(object)?
                .create(&PostParams::default(), object)
                .await
                .with_context(|| format!("cannot create {name}"))?;
        }
        Ok(())
    }

    async fn delete(&mut self, gang: &Gang) -> anyhow::Result<()> {
        // Pods before their group: objects are in the order of the manifest, the group first.
        for object in gang.objects.iter().rev() {
            let name = object.metadata.name.clone().unwrap_or_default();
            self.api(object)?
                .delete(&name, &DeleteParams::default())
                .await
                .with_context(|| format!("cannot delete {name}"))?;
        }
        let gone = |seen: &Seen| Ok((seen.tally(&gang.name).members == 0).then_some(()));
        self.observer.until(&format!("{} is gone", gang.name), self.patience, gone).await?;
        self.say(&format!("{} has done its work and is deleted: its GPUs are free", self.name(gang)));
        Ok(())
    }

    async fn wait_for_all(&mut self, gang: &Gang) -> anyhow::Result<Tally> {
        let what = format!("all {} workers of {} run", gang.members, gang.name);
        let all_run = |seen: &Seen| {
            let tally = seen.tally(&gang.name);
            Ok((tally.running == gang.members).then_some(tally))
        };
        let result = self.observer.until(&what, self.patience, all_run).await;
        result.with_context(|| {
            let tally = self.observer.seen().tally(&gang.name);
            let reason =
                self.observer.seen().refusal(&gang.name).unwrap_or_else(|| "no reason given".to_owned());
            format!("{} of {} running; the scheduler says: {reason}", tally.running, gang.members)
        })
    }

    /// The scheduler must say why it waits, and no member may start meanwhile.
    async fn watch_refusal(&mut self, gang: &Gang, gpus: u64) -> anyhow::Result<()> {
        let none_placed = |seen: &Seen| {
            let tally = seen.tally(&gang.name);
            ensure!(
                tally.placed == 0,
                "{} of {} workers of {} were placed although {gpus} GPUs cannot hold them all",
                tally.placed,
                gang.members,
                gang.name,
            );
            Ok(())
        };
        let what = format!("the scheduler says why {} waits", gang.name);
        let refused = |seen: &Seen| {
            none_placed(seen)?;
            let complete = seen.tally(&gang.name).members == gang.members;
            Ok(seen.refusal(&gang.name).filter(|_| complete))
        };
        self.observer.until(&what, self.patience, refused).await?;
        // The first verdict may be about a gang whose pods were still arriving; the one that stays counts.
        self.observer.throughout(SUSPENSE, none_placed).await?;
        let tally = self.observer.seen().tally(&gang.name);
        let waits = format!("{} of {} running", tally.running, gang.members);
        self.say(&format!("{}: {}", self.name(gang), self.console.paint(Style::Waiting, &waits)));
        let reason = self.observer.seen().refusal(&gang.name).context("the reason was withdrawn")?;
        self.say_more(&format!("the scheduler says: {reason}"));
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    fn say_running(&self, gang: &Gang, tally: &Tally) {
        let running = format!("{} of {} running", tally.running, gang.members);
        let nodes: Vec<String> = tally.nodes.iter().map(|(node, pods)| format!("{pods} on {node}")).collect();
        self.say(&format!(
            "{}: {} ({})",
            self.name(gang),
            self.console.paint(Style::Good, &running),
            nodes.join(", ")
        ));
    }

    fn name(&self, gang: &Gang) -> String {
        self.console.paint(Style::Strong, &gang.name)
    }

    fn say(&self, text: &str) {
        let time = format!("{:>5.1}s", self.began.elapsed().as_secs_f64());
        self.console.line(&format!("{}  {text}", self.console.paint(Style::Faint, &time)));
    }

    fn say_more(&self, text: &str) {
        self.console.line(&format!("        {text}"));
    }

    fn api(&self, object: &DynamicObject) -> anyhow::Result<Api<DynamicObject>> {
        let types = object.types.as_ref().context("a manifest has no apiVersion and kind")?;
        let resource = resource(&types.api_version, &types.kind);
        Ok(Api::namespaced_with(self.client.clone(), NAMESPACE, &resource))
    }
}

impl Gang {
    fn read(manifest: &str) -> anyhow::Result<Self> {
        let objects: Vec<DynamicObject> =
            serde_saphyr::from_multiple(manifest).context("a manifest cannot be read")?;
        let kind = |object: &DynamicObject| object.types.as_ref().map(|types| types.kind.clone());
        let group = objects.iter().find(|object| kind(object).as_deref() == Some("PodGroup"));
        Ok(Self {
            name: group
                .and_then(|group| group.metadata.name.clone())
                .context("a manifest has no PodGroup")?,
            members: objects.iter().filter(|object| kind(object).as_deref() == Some("Pod")).count(),
            objects,
        })
    }
}

#[cfg(test)]
mod tests;
