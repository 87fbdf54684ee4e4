//! What members of waiting gangs say to autoscalers: `Unschedulable` only if room is what is missing, and then all of them
//! at once.

use crate::runner::say;
use crate::tutti::Tutti;
use crate::world::World;
use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{DeleteParams, ListParams, WatchEvent};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Members of the gang that has no room.
const MEMBERS: usize = 1_000;
/// All of them are marked within this time after the last of them was created. Autoscalers look at what is marked every
/// ten seconds, and would buy nodes for a part of a gang.
const MARKED_WITHIN: Duration = Duration::from_secs(3);
/// On a busy machine, on which it takes seconds to create them, it may take this many times as long to mark them.
const MARKED_WITHIN_CREATIONS: u32 = 2;
/// Autoscalers that wait for a pause before they act wait for this long.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Requests of the story that are under way at once.
const REQUESTS_MAX: usize = 32;
const UNSCHEDULABLE: &str = "Unschedulable";
/// How long nothing may be said that would be wrong.
const LOOKED_AT: Duration = Duration::from_secs(4);

pub(super) async fn a_thousand_members_without_room_are_told_within_seconds(
    world: &World<'_>,
) -> anyhow::Result<()> {
    // As a process: here it would share threads with the client that creates the pods.
    world.without_scheduler(told_within_seconds(world)).await
}

async fn told_within_seconds(world: &World<'_>) -> anyhow::Result<()> {
    let kubeconfig = world.kubeconfig.display().to_string();
    let arguments =
        ["scheduler", "--kubeconfig", &kubeconfig, "--leader-elect=false", "--http-address", "off"];
    let mut scheduler = Tutti::start(world, &arguments)?;
    world.node("n1", "10").await?;
    // It is at work.
    world.pod("first", None, "1").await?;
    world.wait_running(1).await?;
    world.gang("g", u32::try_from(MEMBERS)?).await?;
    let mut watch = world.watch_pods("gang=g", &world.version().await?);
    let (spec, labels) = (World::pod_spec(Some("g"), "1"), json!({"gang": "g"}));
    let began = Instant::now();
    let created = async {
        let each = futures::stream::iter(0..MEMBERS).map(|index| {
            let (spec, labels) = (&spec, &labels);
            async move { world.labelled_pod(&format!("g-{index}"), labels, spec).await }
        });
        each.buffer_unordered(REQUESTS_MAX).try_collect::<()>().await?;
        anyhow::Ok(Instant::now())
    };
    let marked = async {
        let mut marked = BTreeMap::<String, Instant>::new();
        while marked.len() < MEMBERS {
            let event = watch.next().await.with_context(|| format!("{} are marked", marked.len()))?;
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
            let is_marked =
                unscheduled(&pod).is_some_and(|said| said.reason.as_deref() == Some(UNSCHEDULABLE));
            if is_marked {
                marked.entry(pod.metadata.name.unwrap_or_default()).or_insert_with(Instant::now);
            }
        }
        let mut times: Vec<Instant> = marked.into_values().collect();
        times.sort_unstable();
        anyhow::Ok(times)
    };
    let (created, times) = tokio::try_join!(created, marked)?;
    scheduler.check()?;
    let (first, last) = (times[0], times[MEMBERS - 1]);
    let pause = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    let took = last.saturating_duration_since(created);
    let creating = created - began;
    say(&format!(
        "        {MEMBERS} members were marked {:.2} s after the last of them was created, within {:.2} s, with pauses of at most \
         {} ms; it took {:.2} s to create them",
        took.as_secs_f64(),
        (last - first).as_secs_f64(),
        pause.as_millis(),
        creating.as_secs_f64()
    ));
    ensure!(first >= created, "members were marked before all of them were there");
    let enough = MARKED_WITHIN.max(creating * MARKED_WITHIN_CREATIONS);
    ensure!(took <= enough, "it took {took:?}; it said\n{}", scheduler.said());
    ensure!(pause < PAUSE_MAX, "there was a pause of {pause:?}");
    ensure!(world.counts().await?.0 == 1, "a member of a gang without room has started");
    scheduler.end().await?;
    // Several requests do it sooner than one for all, which the API server carries out one by one.
    let (pods, now) = (world.pods(), DeleteParams::default().grace_period(0));
    let each = futures::stream::iter(0..MEMBERS).map(|index| {
        let (pods, now) = (&pods, &now);
        async move { anyhow::Ok(pods.delete(&format!("g-{index}"), now).await.map(|_| ())?) }
    });
    each.buffer_unordered(REQUESTS_MAX).try_collect().await
}

pub(super) async fn a_gang_that_only_lacks_members_is_not_called_unschedulable(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let mut watch = world.watch_pods("gang", &world.version().await?);
    world.node("n1", "2").await?;
    let labels = json!({"gang": "g"});
    // Two of three are there. That there would be no room for three changes nothing: nobody knows what the third will ask for.
    world.gang("g", 3).await?;
    for index in 0..2 {
        world.labelled_pod(&format!("g-{index}"), &labels, &World::pod_spec(Some("g"), "2")).await?;
    }
    // Nobody has created the group of these.
    world.labelled_pod("orphan", &labels, &World::pod_spec(Some("none"), "2")).await?;
    world.wait_condition("g", "False", "3 must start together and 2 are ready").await?;
    let mut reasons = BTreeMap::<String, BTreeSet<String>>::new();
    let deadline = tokio::time::Instant::now() + LOOKED_AT;
    while let Ok(event) = tokio::time::timeout_at(deadline, watch.next()).await {
        let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event? else { continue };
        if let Some(said) = unscheduled(&pod) {
            let name = pod.metadata.name.clone().unwrap_or_default();
            reasons.entry(name).or_default().insert(said.reason.clone().unwrap_or_default());
        }
    }
    let expected = BTreeSet::from(["NotReadyForScheduling".to_owned()]);
    let members = ["g-0", "g-1", "orphan"].map(|name| (name.to_owned(), expected.clone()));
    ensure!(reasons == members.into(), "{reasons:?}");
    // The third comes, and now it is room that is missing.
    world.labelled_pod("g-2", &labels, &World::pod_spec(Some("g"), "2")).await?;
    crate::wait::eventually("all members say that there is no room", || async {
        let pods = world.pods().list(&ListParams::default().labels("gang=g")).await?.items;
        let said: Vec<String> = pods
            .iter()
            .filter_map(|pod| unscheduled(pod)?.reason.clone())
            .filter(|r| r == UNSCHEDULABLE)
            .collect();
        Ok((said.len() == 3).then_some(()).ok_or_else(|| format!("{said:?}")))
    })
    .await
}

/// What a pod says about why it has no node.
fn unscheduled(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
}
