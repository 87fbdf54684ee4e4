//! What a kubelet does next for one node or one pod, given all that is known of it and the time.

use super::addresses::Pool;
use super::lease::LeaseState;
use super::view::{NodeView, Phase, PodView, RestartPolicy};
use super::writes::{Effect, PendingWrite, later};
use super::{Options, node_status, pod_status};
use jiff::{SignedDuration, Timestamp};
use std::net::Ipv4Addr;
use std::time::Duration;
use tutti_model::ResourceList;

/// Wait of containers that end the second time; it doubles with every further time.
const RESTART_DELAY_FIRST: SignedDuration = SignedDuration::from_secs(10);
const RESTART_DELAY_LONGEST: SignedDuration = SignedDuration::from_secs(300);

/// What is known of a node.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) view: NodeView,
    pub(super) write: PendingWrite,
    pub(super) wake: Option<Timestamp>,
    /// Given by us because the node came without one.
    pub(super) address: Option<Ipv4Addr>,
    pub(super) lease: LeaseState,
}

/// What is known of a pod.
#[derive(Debug)]
pub(super) struct PodState {
    pub(super) view: PodView,
    pub(super) arrival: u64,
    pub(super) admission: Admission,
    /// When it was first seen as being deleted.
    pub(super) stopping_since: Option<Timestamp>,
    /// When this process started it; finer than what the status says, which is whole seconds.
    pub(super) started: Option<Timestamp>,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) complained: bool,
    pub(super) write: PendingWrite,
    pub(super) wake: Option<Timestamp>,
}

/// What the node said to the pod. Once said, it holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Admission {
    Open,
    Admitted { since: Timestamp },
    Rejected { reason: String, message: String },
}

/// The next step for an object.
pub(super) enum Next {
    /// Nothing before something else happens.
    Nothing,
    /// Nothing before this time.
    At(Timestamp),
    /// This, now.
    Now(Effect),
}

/// When the node has to report again.
pub(super) fn heartbeat_due(node: &NodeView, interval: Duration) -> Timestamp {
    if node_status::is_incomplete(node) {
        return Timestamp::MIN;
    }
    let Some(last) = node_status::last_heartbeat(node) else {
        return Timestamp::MIN;
    };
    // Up to a tenth earlier, by name, so that nodes that were made together do not all report together.
    later(last, signed(interval.saturating_sub(interval / 1000 * (per_mille_of(&node.name) / 10))))
}

pub(super) fn next_of_pod(
    pod: &mut PodState,
    node: &NodeState,
    options: &Options,
    addresses: &mut Pool,
    now: Timestamp,
) -> Next {
    if let (Some(grace), Some(since)) = (pod.view.deletion_grace_seconds, pod.stopping_since) {
        let runs = pod.view.phase == Phase::Running;
        let delay = if runs { options.stop_delay.min(Duration::from_secs(grace)) } else { Duration::ZERO };
        return at(later(since, signed(delay)), now, || Effect::DeletePod { pod: pod.view.pod.clone() });
    }
    match (pod.view.phase, &pod.admission) {
        (Phase::Ended, _) | (_, Admission::Open) => Next::Nothing,
        (Phase::Running, _) => next_of_running(pod, node, now),
        (Phase::Pending, Admission::Rejected { reason, message }) => Next::Now(Effect::PatchPod {
            pod: pod.view.pod.clone(),
            patch: pod_status::rejected(&pod.view, reason, message, now),
        }),
        (Phase::Pending, Admission::Admitted { since }) => {
            let due = later(*since, signed(options.start_delay));
            if now < due {
                return Next::At(due);
            }
            if pod.address.is_none() && !pod.view.host_network {
                pod.address = addresses.take();
            }
            pod.started = Some(now);
            let place = place_of(pod, node);
            let patch = pod_status::running(&pod.view, &place, now);
            Next::Now(Effect::PatchPod { pod: pod.view.pod.clone(), patch })
        }
    }
}

fn next_of_running(pod: &mut PodState, node: &NodeState, now: Timestamp) -> Next {
    let change = |patch| Next::Now(Effect::PatchPod { pod: pod.view.pod.clone(), patch });
    if let Some(crashed) = pod.view.crashed_at {
        let due = later(crashed, restart_delay(pod.view.restarts));
        if now < due {
            return Next::At(due);
        }
        let patch = pod_status::restarted(&pod.view, &place_of(pod, node), crashed, now);
        let next = change(patch);
        pod.started = Some(now);
        return next;
    }
    if !pod_status::is_ready(&pod.view) {
        // Somebody gave up on the node meanwhile.
        return change(pod_status::ready_again(&pod.view, now));
    }
    let Some(seconds) = pod.view.run_seconds else {
        return Next::Nothing;
    };
    let since = pod.started.or(pod.view.running_since).unwrap_or(now);
    let due = later(since, SignedDuration::from_secs(seconds.into()));
    if now < due {
        pod.started = Some(since);
        return Next::At(due);
    }
    let place = place_of(pod, node);
    let restarts = match pod.view.restart_policy {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => pod.view.exit_code != 0,
        RestartPolicy::Never => false,
    };
    if !restarts {
        let next = change(pod_status::ended(&pod.view, &place, since, now));
        pod.started = Some(since);
        return next;
    }
    if restart_delay(pod.view.restarts).is_zero() {
        let next = change(pod_status::restarted(&pod.view, &place, now, now));
        pod.started = Some(now);
        return next;
    }
    let next = change(pod_status::crashed(&pod.view, &place, since, now));
    pod.started = None;
    next
}

/// How long containers that ended wait: not at all the first time, then longer and longer.
fn restart_delay(restarts: u32) -> SignedDuration {
    let Some(doublings) = restarts.checked_sub(1) else { return SignedDuration::ZERO };
    let delay = RESTART_DELAY_FIRST.checked_mul(1 << doublings.min(16)).unwrap_or(RESTART_DELAY_LONGEST);
    delay.min(RESTART_DELAY_LONGEST)
}

fn place_of(pod: &PodState, node: &NodeState) -> pod_status::Place {
    let host = node.view.address("InternalIP").map(str::to_owned).or(node.address.map(|a| a.to_string()));
    let own = if pod.view.host_network { host.clone() } else { pod.address.map(|a| a.to_string()) };
    pod_status::Place { host, pod: own }
}

/// Says whether the pod fits beside what is used, or the reason and the sentence with which it fails.
pub(super) fn check_room(
    pod: &PodView,
    node: &NodeView,
    used: &ResourceList,
) -> Result<(), (String, String)> {
    let broken = |what: String| ("UnexpectedAdmissionError".to_owned(), what);
    let requests =
        pod.requests.as_ref().map_err(|error| broken(format!("cannot read the requests: {error}")))?;
    let (_, allocatable) = node_status::complete_resources(node);
    let allocatable = super::view::amounts(&allocatable)
        .map_err(|error| broken(format!("cannot read what node {} has: {error}", node.name)))?;
    let mut short: Vec<_> = requests
        .iter()
        // Who asks for nothing is not turned away from a node that is overfull.
        .filter(|(resource, asked)| {
            *asked > 0 && used.get(resource.name()).saturating_add(*asked) > allocatable.get(resource.name())
        })
        .collect();
    // The reason names one resource; which one, if several are short, is the order of a real kubelet.
    short.sort_by_key(|(resource, _)| {
        let rank =
            ["pods", "cpu", "memory", "ephemeral-storage"].iter().position(|&name| name == resource.name());
        rank.unwrap_or(usize::MAX)
    });
    let Some((resource, asked)) = short.first() else {
        return Ok(());
    };
    let name = resource.name();
    let message = format!(
        "node {} has no room for the pod: {name} requested {}, in use {}, allocatable {}",
        node.name,
        resource.show(*asked),
        resource.show(used.get(name)),
        resource.show(allocatable.get(name)),
    );
    Err((format!("OutOf{name}"), message))
}

/// A number below 1000 that a name always gives.
pub(super) fn per_mille_of(name: &str) -> u32 {
    let sum = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    // Names that differ in one digit should not be neighbours.
    (sum.wrapping_mul(0x9e37_79b9) >> 16) % 1000
}

fn at(due: Timestamp, now: Timestamp, effect: impl FnOnce() -> Effect) -> Next {
    if now < due { Next::At(due) } else { Next::Now(effect()) }
}

pub(super) fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
