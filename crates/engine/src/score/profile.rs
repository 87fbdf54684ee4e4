//! What is weighed how much when a node is chosen.

use super::fit::Strategy;
use tutti_model::Resource;

/// How nodes are compared for a pod on its own. The default is that of kube-scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// How much each score counts.
    pub weights: Weights,
    /// How the use of resources becomes a score.
    pub strategy: Strategy,
    /// Resources that the strategy looks at, and their weights. Extended resources that a pod does not ask for are
    /// left out.
    pub fit_resources: Vec<(Resource, u32)>,
    /// Resources that should be in balance. Extended resources that a pod does not ask for are left out.
    pub balanced_resources: Vec<Resource>,
    /// What an existing pod's required affinity to a new pod counts for.
    pub required_affinity_weight: u32,
    /// Whether pods without spread constraints of their own are spread with their like.
    pub spreads_by_default: bool,
}

/// A profile, as the engine numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct ProfileId(pub(crate) u32);

/// How much each score counts; 0 leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// How much of a node is in use.
    pub resources_fit: u32,
    /// How evenly its resources are in use.
    pub balanced_allocation: u32,
    /// Which images it has.
    pub image_locality: u32,
    /// Taints that would rather keep pods away.
    pub taint_toleration: u32,
    /// Preferred node affinity.
    pub node_affinity: u32,
    /// Spread constraints that should hold.
    pub topology_spread: u32,
    /// Preferred affinity between pods.
    pub inter_pod_affinity: u32,
}

/// One of the scores, by what it looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// [`Weights::resources_fit`]
    ResourcesFit,
    /// [`Weights::balanced_allocation`]
    BalancedAllocation,
    /// [`Weights::image_locality`]
    ImageLocality,
    /// [`Weights::taint_toleration`]
    TaintToleration,
    /// [`Weights::node_affinity`]
    NodeAffinity,
    /// [`Weights::topology_spread`]
    TopologySpread,
    /// [`Weights::inter_pod_affinity`]
    InterPodAffinity,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ResourcesFit,
        Self::BalancedAllocation,
        Self::ImageLocality,
        Self::TaintToleration,
        Self::NodeAffinity,
        Self::TopologySpread,
        Self::InterPodAffinity,
    ];

    /// kube-scheduler's plugin that gives this score.
    pub fn plugin(self) -> &'static str {
        match self {
            Self::ResourcesFit => "NodeResourcesFit",
            Self::BalancedAllocation => "NodeResourcesBalancedAllocation",
            Self::ImageLocality => "ImageLocality",
            Self::TaintToleration => "TaintToleration",
            Self::NodeAffinity => "NodeAffinity",
            Self::TopologySpread => "PodTopologySpread",
            Self::InterPodAffinity => "InterPodAffinity",
        }
    }
}

impl Weights {
    /// These weights with all but one left out.
    pub(super) fn only(&self, aspect: Aspect) -> Self {
        let kept = |of: Aspect, weight: u32| if of == aspect { weight } else { 0 };
        Self {
            resources_fit: kept(Aspect::ResourcesFit, self.resources_fit),
            balanced_allocation: kept(Aspect::BalancedAllocation, self.balanced_allocation),
            image_locality: kept(Aspect::ImageLocality, self.image_locality),
            taint_toleration: kept(Aspect::TaintToleration, self.taint_toleration),
            node_affinity: kept(Aspect::NodeAffinity, self.node_affinity),
            topology_spread: kept(Aspect::TopologySpread, self.topology_spread),
            inter_pod_affinity: kept(Aspect::InterPodAffinity, self.inter_pod_affinity),
        }
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            resources_fit: 1,
            balanced_allocation: 1,
            image_locality: 1,
            taint_toleration: 3,
            node_affinity: 2,
            topology_spread: 2,
            inter_pod_affinity: 2,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        let (cpu, memory) = (Resource::new(Resource::CPU), Resource::new(Resource::MEMORY));
        Self {
            weights: Weights::default(),
            strategy: Strategy::LeastAllocated,
            fit_resources: vec![(cpu.clone(), 1), (memory.clone(), 1)],
            balanced_resources: vec![cpu, memory],
            required_affinity_weight: 1,
            spreads_by_default: true,
        }
    }
}
