//! How many replicas each set of a Deployment should have next.

use super::super::replica_set::ReplicaSetView;
use super::revision::DESIRED;
use super::view::DeploymentSpec;

/// A set as far as its size matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sized {
    pub(super) replicas: u32,
    available: u32,
    /// The size of the Deployment when this set was last scaled.
    desired: Option<u32>,
}

impl Sized {
    /// A set that is yet to be made.
    pub(super) fn empty() -> Self {
        Self { replicas: 0, available: 0, desired: None }
    }

    pub(super) fn of(set: &ReplicaSetView) -> Self {
        Self {
            replicas: set.spec.0.as_ref().map_or(0, super::super::replica_set::ReplicaSetSpec::wanted),
            available: set.status.0.available_replicas,
            desired: set.annotation(DESIRED).and_then(|size| size.parse().ok()),
        }
    }
}

/// The sizes to be, old sets first (oldest first) and the present one last. `old_pods_run` is true while pods of
/// old sets have not ended.
pub(super) fn sizes(spec: &DeploymentSpec, sets: &[Sized], old_pods_run: bool) -> Vec<u32> {
    let now: Vec<u32> = sets.iter().map(|set| set.replicas).collect();
    let was_scaled = sets
        .iter()
        .any(|set| set.replicas > 0 && set.desired.is_some_and(|desired| desired != spec.wanted()));
    if spec.paused || was_scaled {
        return scaled(spec, sets);
    }
    let Some((new, old)) = sets.split_last() else {
        return now;
    };
    if spec.recreates() {
        return recreated(spec, &now, old, old_pods_run);
    }
    let grown = scale_up(spec, &now, new);
    if grown != now {
        return grown;
    }
    scale_down(spec, &now, new, old)
}

/// All old ones go before the first new one comes.
fn recreated(spec: &DeploymentSpec, now: &[u32], old: &[Sized], old_pods_run: bool) -> Vec<u32> {
    let mut sizes = now.to_vec();
    if old.iter().any(|set| set.replicas > 0) {
        sizes[..old.len()].fill(0);
    } else if !old_pods_run && let Some(new) = sizes.last_mut() {
        *new = spec.wanted();
    }
    sizes
}

/// The Deployment itself became larger or smaller: during an update, every set takes its share of that.
fn scaled(spec: &DeploymentSpec, sets: &[Sized]) -> Vec<u32> {
    let mut sizes: Vec<u32> = sets.iter().map(|set| set.replicas).collect();
    let active: Vec<usize> = (0..sets.len()).filter(|index| sets[*index].replicas > 0).collect();
    if active.len() <= 1 {
        // Nothing is under way: the only set that has pods, or else the present one, takes it all.
        if let Some(only) = active.first().copied().or(sets.len().checked_sub(1)) {
            sizes[only] = spec.wanted();
        }
        return sizes;
    }
    let total: u32 = sizes.iter().sum();
    let surge = if spec.wanted() > 0 { spec.max_surge() } else { 0 };
    let allowed = spec.wanted().saturating_add(surge);
    let mut by_size = active.clone();
    by_size.sort_by_key(|index| (std::cmp::Reverse(sizes[*index]), std::cmp::Reverse(*index)));
    let mut left = i64::from(allowed) - i64::from(total);
    for index in &by_size {
        let share =
            i64::from(sizes[*index]) * (i64::from(allowed) - i64::from(total)) / i64::from(total.max(1));
        let share = if left >= 0 { share.min(left) } else { share.max(left) };
        left -= share;
        sizes[*index] = u32::try_from((i64::from(sizes[*index]) + share).max(0)).unwrap_or(u32::MAX);
    }
    if let Some(largest) = by_size.first() {
        sizes[*largest] = u32::try_from((i64::from(sizes[*largest]) + left).max(0)).unwrap_or(u32::MAX);
    }
    sizes
}

fn scale_up(spec: &DeploymentSpec, now: &[u32], new: &Sized) -> Vec<u32> {
    let mut sizes = now.to_vec();
    let Some(size) = sizes.last_mut() else { return sizes };
    if new.replicas >= spec.wanted() {
        *size = spec.wanted();
        return sizes;
    }
    let room = spec.wanted().saturating_add(spec.max_surge()).saturating_sub(now.iter().sum());
    *size = new.replicas + room.min(spec.wanted() - new.replicas);
    sizes
}

/// Takes from old sets what can go without too few being available: first what is not available anyway.
fn scale_down(spec: &DeploymentSpec, now: &[u32], new: &Sized, old: &[Sized]) -> Vec<u32> {
    let mut sizes = now.to_vec();
    let min_available = spec.wanted().saturating_sub(spec.max_unavailable());
    let new_unavailable = new.replicas.saturating_sub(new.available);
    let total: u32 = now.iter().sum();
    let mut spare = total.saturating_sub(min_available).saturating_sub(new_unavailable);
    for (size, set) in sizes.iter_mut().zip(old) {
        let sick = set.replicas.saturating_sub(set.available).min(spare);
        *size -= sick;
        spare -= sick;
    }
    let available: u32 = new.available + old.iter().map(|set| set.available.min(set.replicas)).sum::<u32>();
    let mut spare = available.saturating_sub(min_available);
    for size in sizes.iter_mut().take(old.len()) {
        let healthy = (*size).min(spare);
        *size -= healthy;
        spare -= healthy;
    }
    sizes
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // Values that are written in place read better without ampersands.
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(replicas: u32, strategy: serde_json::Value) -> DeploymentSpec {
        serde_json::from_value(json!({"replicas": replicas, "strategy": strategy})).unwrap()
    }

    fn rolling(replicas: u32, surge: u32, unavailable: u32) -> DeploymentSpec {
        spec(replicas, json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}))
    }

    fn sets(sizes: &[(u32, u32)], desired: u32) -> Vec<Sized> {
        let set = |(replicas, available): &(u32, u32)| Sized {
            replicas: *replicas,
            available: *available,
            desired: Some(desired),
        };
        sizes.iter().map(set).collect()
    }

    #[test]
    fn a_rolling_update_goes_in_steps_and_never_beyond_its_limits() {
        let spec = rolling(10, 3, 2);
        let mut state = sets(&[(10, 10), (0, 0)], 10);
        let mut steps = Vec::new();
        for _ in 0..100 {
            let next = sizes(&spec, &state, true);
            let before: Vec<u32> = state.iter().map(|set| set.replicas).collect();
            if next == before {
                if state.iter().all(|set| set.available == set.replicas) {
                    break;
                }
                // Pods become available, one at a time.
                let set = state.iter_mut().find(|set| set.available < set.replicas).unwrap();
                set.available += 1;
                continue;
            }
            for (set, size) in state.iter_mut().zip(&next) {
                set.replicas = *size;
                set.available = set.available.min(*size);
            }
            assert!(next.iter().sum::<u32>() <= 13, "no more than the surge: {next:?}");
            let available: u32 = state.iter().map(|set| set.available).sum();
            assert!(available >= 8, "no fewer than allowed are available: {state:?}");
            steps.push(next);
        }
        assert_eq!(steps[..2], [vec![10, 3], vec![8, 3]]);
        assert_eq!(steps.last().unwrap(), &[0, 10]);
    }

    #[test]
    fn what_never_became_available_goes_first() {
        let state = sets(&[(3, 3), (5, 0), (2, 2)], 10);
        assert_eq!(sizes(&rolling(10, 0, 5), &state, true), [3, 0, 2]);
        let state = sets(&[(3, 3), (5, 0), (5, 5)], 10);
        assert_eq!(sizes(&rolling(10, 3, 2), &state, true), [3, 0, 5]);
    }

    #[test]
    fn recreating_waits_until_the_last_old_pod_has_ended() {
        let spec = spec(3, json!({"type": "Recreate"}));
        assert_eq!(sizes(&spec, &sets(&[(3, 3), (0, 0)], 3), true), [0, 0]);
        assert_eq!(sizes(&spec, &sets(&[(0, 0), (0, 0)], 3), true), [0, 0]);
        assert_eq!(sizes(&spec, &sets(&[(0, 0), (0, 0)], 3), false), [0, 3]);
    }

    #[test]
    fn scaling_during_an_update_is_shared_out() {
        assert_eq!(sizes(&rolling(20, 0, 1), &sets(&[(6, 6), (4, 4)], 10), true), [12, 8]);
        assert_eq!(sizes(&rolling(5, 0, 1), &sets(&[(6, 6), (4, 4)], 10), true), [3, 2]);
        assert_eq!(sizes(&rolling(0, 3, 1), &sets(&[(6, 6), (4, 4)], 10), true), [0, 0]);
        assert_eq!(
            sizes(&rolling(7, 3, 1), &sets(&[(0, 0), (4, 4)], 4), true),
            [0, 7],
            "no update is under way"
        );
    }

    #[test]
    fn a_paused_deployment_scales_and_does_not_roll() {
        let mut spec = rolling(10, 3, 2);
        spec.paused = true;
        assert_eq!(sizes(&spec, &sets(&[(10, 10), (0, 0)], 10), true), [10, 0]);
    }
}
