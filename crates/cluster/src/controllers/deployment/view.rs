//! What is read of a Deployment, and the numbers that follow from it.

use crate::controllers::share::{Round, share};
use serde_json::Value;
use tutti_controllers::{Checked, Loose, View};

/// Old ReplicaSets that are kept where a Deployment does not say.
const HISTORY_DEFAULT: u32 = 10;
/// Pods that may be missing or surplus during an update where a Deployment does not say.
const SLACK_DEFAULT: &str = "25%";

/// A Deployment.
pub(crate) type DeploymentView = View<Checked<DeploymentSpec>, Loose<DeploymentStatus>>;

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeploymentSpec {
    replicas: Option<u32>,
    pub(super) selector: Value,
    pub(super) template: Value,
    strategy: Strategy,
    pub(super) min_ready_seconds: u32,
    revision_history_limit: Option<u32>,
    pub(super) paused: bool,
    progress_deadline_seconds: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Strategy {
    #[serde(rename = "type")]
    kind: Option<String>,
    rolling_update: Option<RollingUpdate>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RollingUpdate {
    max_surge: Option<Value>,
    max_unavailable: Option<Value>,
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeploymentStatus {
    pub(super) observed_generation: i64,
    pub(super) replicas: u32,
    pub(super) updated_replicas: u32,
    pub(super) ready_replicas: u32,
    pub(super) available_replicas: u32,
    pub(super) unavailable_replicas: u32,
    pub(super) collision_count: Option<u32>,
    pub(super) conditions: Vec<Value>,
}

impl DeploymentSpec {
    pub(crate) fn wanted(&self) -> u32 {
        self.replicas.unwrap_or(1)
    }

    pub(super) fn recreates(&self) -> bool {
        self.strategy.kind.as_deref() == Some("Recreate")
    }

    pub(super) fn history_limit(&self) -> usize {
        self.revision_history_limit.unwrap_or(HISTORY_DEFAULT) as usize
    }

    /// Seconds without progress after which an update is called stuck, if it ever is.
    pub(super) fn progress_deadline(&self) -> Option<i32> {
        self.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)
    }

    /// How many pods too many an update may make.
    pub(super) fn max_surge(&self) -> u32 {
        if self.recreates() {
            return 0;
        }
        let rule = self.strategy.rolling_update.as_ref().and_then(|rule| rule.max_surge.as_ref());
        share(rule.unwrap_or(&SLACK_DEFAULT.into()), self.wanted(), Round::Up)
    }

    /// How many pods may be missing during an update. Never none if none may be surplus: nothing could move.
    pub(super) fn max_unavailable(&self) -> u32 {
        if self.recreates() || self.wanted() == 0 {
            return 0;
        }
        let rule = self.strategy.rolling_update.as_ref().and_then(|rule| rule.max_unavailable.as_ref());
        let share = share(rule.unwrap_or(&SLACK_DEFAULT.into()), self.wanted(), Round::Down);
        let at_least = u32::from(self.max_surge() == 0);
        share.max(at_least).min(self.wanted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shares_are_rounded_so_that_an_update_can_move() {
        for (replicas, rule, surge, unavailable) in [
            (10, json!({}), 3, 2),
            (1, json!({}), 1, 0),
            (4, json!({"maxSurge": 0, "maxUnavailable": 0}), 0, 1),
            (4, json!({"maxSurge": 2, "maxUnavailable": "100%"}), 2, 4),
            (4, json!({"maxSurge": 0, "maxUnavailable": 9}), 0, 4),
            (3, json!({"maxSurge": "x%", "maxUnavailable": "50%"}), 0, 1),
        ] {
            let spec: DeploymentSpec =
                serde_json::from_value(json!({"replicas": replicas, "strategy": {"rollingUpdate": rule}}))
                    .unwrap();
            assert_eq!((spec.max_surge(), spec.max_unavailable()), (surge, unavailable), "{replicas} {rule}");
        }
        let recreate: DeploymentSpec =
            serde_json::from_value(json!({"replicas": 4, "strategy": {"type": "Recreate"}})).unwrap();
        assert_eq!((recreate.max_surge(), recreate.max_unavailable()), (0, 0));
    }
}
