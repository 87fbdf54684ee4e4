//! The controllers that the rest of a cluster needs: Jobs, ReplicaSets, Deployments, disruption budgets, the life
//! of nodes, eviction by taints, and the collection of pods that nobody will ever finish.
//!
//! Every controller is a pure function, one file or folder each, from what it sees to a plan. `world` is the
//! picture that they share: it takes in the watches and says who should look. Running them is
//! [`tutti_controllers::shell`]'s work. (Owners and namespaces are collected by the API server's janitor.)
//!
//! Simpler than in Kubernetes, on purpose: ReplicaSets do not adopt pods that they did not make, and taints of
//! silent nodes are not rate-limited by zone.

mod budget;
mod conditions;
mod deployment;
mod job;
mod node;
mod owners;
mod pod;
mod rank;
mod replica_set;
mod share;
#[cfg(test)]
mod tests;
mod world;

use crate::registry::{Catalog, Release};
use kube::Client;
use std::time::Duration;
use tutti_controllers::{Meter, protection, shell};
use world::World;

/// Who writes, as managed fields and events tell.
const MANAGER: &str = "tutti-controllers";

/// How patient controllers are.
#[derive(Debug, Clone)]
pub struct Options {
    /// Silence after which a node is given up, unless its lease promises a longer one.
    pub node_grace: Duration,
    /// From when a node is missed to when its pods are removed.
    pub orphan_delay: Duration,
    /// Pods that have ended and may stay; beyond it the oldest go.
    pub ended_pods_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // As Kubernetes' own.
            node_grace: Duration::from_secs(50),
            orphan_delay: Duration::from_secs(5),
            ended_pods_max: 12_500,
        }
    }
}

/// Runs all controllers until `shutdown` completes.
pub async fn run(client: Client, options: Options, shutdown: impl Future<Output = ()> + Send) {
    let watches = shell::Watches::new(client)
        .add(&tutti_controllers::pods(), world::Event::Pod)
        .add(&node::nodes(), world::Event::Node)
        .add(&node::leases(), world::Event::Lease)
        .add(&job::Resources::default().jobs, world::Event::Job)
        .add(&replica_set::Resources::default().replica_sets, world::Event::ReplicaSet)
        .add(&deployment::Resources::default().deployments, world::Event::Deployment)
        .add(&budget::budgets(), world::Event::Budget);
    shell::run(World::new(options), watches, MANAGER, Meter::default(), shutdown).await;
}

/// Lets deleted pod groups go once nobody needs them, until `shutdown` completes.
pub async fn protect_groups(client: Client, release: Release, shutdown: impl Future<Output = ()> + Send) {
    let mut served = Catalog::new(release).resources();
    let groups =
        served.find(|resource| resource.kind == "PodGroup").and_then(|resource| resource.versions.first());
    match groups {
        Some(version) => {
            let guard = protection::Guard::alone(protection::pod_groups(version));
            protection::run(client, guard, MANAGER, Meter::default(), shutdown).await;
        }
        None => shutdown.await,
    }
}
