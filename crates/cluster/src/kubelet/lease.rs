//! Signs of life: every node has a lease that its kubelet renews.

use super::rules::{per_mille_of, signed};
use super::view::NodeView;
use super::writes::later;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// Namespace of these leases.
pub(super) const NAMESPACE: &str = "kube-node-lease";
/// Renewals of all nodes together, at most, in a second.
const RENEWALS_PER_SECOND_MAX: u32 = 100;
/// A lease is good for so many renewals: three may be lost.
const INTERVALS_PER_LEASE: u32 = 4;

/// What is known of the lease of a node.
#[derive(Debug, Default)]
pub(super) struct LeaseState {
    /// When to renew it next; nothing before the node was first looked at.
    pub(super) due: Option<Timestamp>,
    /// A renewal is on its way.
    pub(super) in_flight: bool,
}

/// How often each of so many nodes renews its lease.
pub(super) fn interval(base: Duration, nodes: usize) -> Duration {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    base.max(Duration::from_millis(1000 / u64::from(RENEWALS_PER_SECOND_MAX)) * nodes)
}

/// When the lease of a node that was just found is first renewed: spread over the interval, so that nodes that came
/// together do not write together.
pub(super) fn first_due(node: &str, interval: Duration, now: Timestamp) -> Timestamp {
    later(now, signed(interval / 1000 * per_mille_of(node)))
}

/// The lease of a node, renewed now.
pub(super) fn lease(node: &NodeView, interval: Duration, now: Timestamp) -> Value {
    let seconds = (interval * INTERVALS_PER_LEASE).as_secs().max(1);
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node.name, "namespace": NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}],
        },
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": seconds,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_renew_less_often_so_that_together_they_never_write_too_much() {
        let base = Duration::from_secs(10);
        assert_eq!(interval(base, 3), base);
        assert_eq!(interval(base, 1000), base);
        assert_eq!(interval(base, 5000), Duration::from_secs(50));
        assert_eq!(interval(base, 20_000), Duration::from_secs(200));
    }

    #[test]
    fn first_renewals_are_spread_over_the_interval() {
        let (now, interval) = (Timestamp::UNIX_EPOCH, Duration::from_secs(10));
        let mut delays: Vec<i64> = (0..1000)
            .map(|i| first_due(&format!("node-{i}"), interval, now).duration_since(now).as_millis() as i64)
            .collect();
        delays.sort_unstable();
        assert!(delays[0] < 500 && delays[999] > 9_000 && delays[999] < 10_000);
        assert!((3_000..7_000).contains(&delays[500]), "{}", delays[500]);
    }
}
