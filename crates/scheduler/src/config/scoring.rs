//! How nodes are compared, as the configuration file says it.

use super::ConfigError;
use serde::{Deserialize, Serialize};
use tutti_engine::Profile;
use tutti_engine::score::{Curve, Strategy, Weights};
use tutti_model::Resource;

/// Where the scoring of a profile is in the file.
fn field(profile: usize) -> String {
    format!("profiles[{profile}].scoring")
}

/// Most resources that one score looks at.
const RESOURCES_MAX: usize = 64;
/// Largest weight of a resource or a score; kube-scheduler's bound for resources.
const WEIGHT_MAX: u32 = 100;

/// `scoring` of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ScoringFile {
    strategy: StrategyFile,
    weights: WeightsFile,
    balanced_resources: Vec<String>,
    required_affinity_weight: u32,
    spread_by_default: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct StrategyFile {
    #[serde(rename = "type")]
    kind: StrategyKind,
    resources: Vec<WeightedResource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shape: Vec<ShapePoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StrategyKind {
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightedResource {
    name: String,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShapePoint {
    utilization: u32,
    score: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct WeightsFile {
    resources_fit: u32,
    balanced_allocation: u32,
    image_locality: u32,
    taint_toleration: u32,
    node_affinity: u32,
    topology_spread: u32,
    inter_pod_affinity: u32,
}

impl Default for ScoringFile {
    fn default() -> Self {
        Self::from(&Profile::default())
    }
}

impl Default for StrategyFile {
    fn default() -> Self {
        ScoringFile::default().strategy
    }
}

impl Default for WeightsFile {
    fn default() -> Self {
        Self::from(Weights::default())
    }
}

impl From<Weights> for WeightsFile {
    fn from(weights: Weights) -> Self {
        Self {
            resources_fit: weights.resources_fit,
            balanced_allocation: weights.balanced_allocation,
            image_locality: weights.image_locality,
            taint_toleration: weights.taint_toleration,
            node_affinity: weights.node_affinity,
            topology_spread: weights.topology_spread,
            inter_pod_affinity: weights.inter_pod_affinity,
        }
    }
}

impl From<&Profile> for ScoringFile {
    fn from(profile: &Profile) -> Self {
        let (kind, shape) = match &profile.strategy {
            Strategy::LeastAllocated => (StrategyKind::LeastAllocated, Vec::new()),
            Strategy::MostAllocated => (StrategyKind::MostAllocated, Vec::new()),
            Strategy::RequestedToCapacityRatio(curve) => {
                let point = |(utilization, score)| ShapePoint { utilization, score };
                (StrategyKind::RequestedToCapacityRatio, curve.points().map(point).collect())
            }
        };
        let weighted = |(resource, weight): &(Resource, u32)| WeightedResource {
            name: resource.name().to_owned(),
            weight: *weight,
        };
        Self {
            strategy: StrategyFile {
                kind,
                resources: profile.fit_resources.iter().map(weighted).collect(),
                shape,
            },
            weights: profile.weights.into(),
            balanced_resources: profile.balanced_resources.iter().map(|r| r.name().to_owned()).collect(),
            required_affinity_weight: profile.required_affinity_weight,
            spread_by_default: profile.spreads_by_default,
        }
    }
}

impl ScoringFile {
    /// The profile, if strategy and shape belong together. The rest is checked by [`check`].
    pub(super) fn into_profile(self, index: usize) -> Result<Profile, ConfigError> {
        let shape_field = format!("{}.strategy.shape", field(index));
        let strategy = match self.strategy.kind {
            StrategyKind::RequestedToCapacityRatio => {
                let points: Vec<(u32, u32)> =
                    self.strategy.shape.iter().map(|point| (point.utilization, point.score)).collect();
                let curve = Curve::new(&points)
                    .map_err(|error| ConfigError::new(&*shape_field, error.to_string()))?;
                Strategy::RequestedToCapacityRatio(curve)
            }
            _ if !self.strategy.shape.is_empty() => {
                let message = "only strategy RequestedToCapacityRatio has a shape";
                return Err(ConfigError::new(shape_field, message));
            }
            StrategyKind::LeastAllocated => Strategy::LeastAllocated,
            StrategyKind::MostAllocated => Strategy::MostAllocated,
        };
        let weights = self.weights;
        let resources = self.strategy.resources.iter();
        Ok(Profile {
            strategy,
            fit_resources: resources.map(|r| (Resource::new(&r.name), r.weight)).collect(),
            balanced_resources: self.balanced_resources.iter().map(|name| Resource::new(name)).collect(),
            required_affinity_weight: self.required_affinity_weight,
            spreads_by_default: self.spread_by_default,
            weights: Weights {
                resources_fit: weights.resources_fit,
                balanced_allocation: weights.balanced_allocation,
                image_locality: weights.image_locality,
                taint_toleration: weights.taint_toleration,
                node_affinity: weights.node_affinity,
                topology_spread: weights.topology_spread,
                inter_pod_affinity: weights.inter_pod_affinity,
            },
        })
    }
}

/// Refuses weights and resources that cannot work.
pub(super) fn check(profile: &Profile, index: usize) -> Result<(), ConfigError> {
    let of_profile = field(index);
    let wrong =
        |field: &str, message: String| Err(ConfigError::new(format!("{of_profile}.{field}"), message));
    let weights = &profile.weights;
    for (field, weight) in [
        ("weights.resourcesFit", weights.resources_fit),
        ("weights.balancedAllocation", weights.balanced_allocation),
        ("weights.imageLocality", weights.image_locality),
        ("weights.taintToleration", weights.taint_toleration),
        ("weights.nodeAffinity", weights.node_affinity),
        ("weights.topologySpread", weights.topology_spread),
        ("weights.interPodAffinity", weights.inter_pod_affinity),
        ("requiredAffinityWeight", profile.required_affinity_weight),
    ] {
        if weight > WEIGHT_MAX {
            return wrong(field, format!("want 0 to {WEIGHT_MAX}"));
        }
    }
    let fit = profile.fit_resources.iter().map(|(resource, _)| resource);
    check_resources(&format!("{of_profile}.strategy.resources"), fit)?;
    let balanced = profile.balanced_resources.iter();
    check_resources(&format!("{of_profile}.balancedResources"), balanced)?;
    for (index, (_, weight)) in profile.fit_resources.iter().enumerate() {
        if !(1..=WEIGHT_MAX).contains(weight) {
            return wrong(&format!("strategy.resources[{index}].weight"), format!("want 1 to {WEIGHT_MAX}"));
        }
    }
    Ok(())
}

fn check_resources<'a>(
    field: &str,
    resources: impl ExactSizeIterator<Item = &'a Resource>,
) -> Result<(), ConfigError> {
    if resources.len() == 0 || resources.len() > RESOURCES_MAX {
        return Err(ConfigError::new(field, format!("want 1 to {RESOURCES_MAX} resources")));
    }
    let mut seen = Vec::new();
    for (index, resource) in resources.enumerate() {
        let wrong = |message: &str| Err(ConfigError::new(format!("{field}[{index}]"), message));
        if resource.name().is_empty() {
            return wrong("has no name");
        }
        if seen.contains(&resource) {
            return wrong("is there twice");
        }
        seen.push(resource);
    }
    Ok(())
}
