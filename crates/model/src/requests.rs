//! What a pod takes from a node, out of what its containers ask for.

use crate::amount::{Resource, ResourceList};

/// Processor time, in thousandths, that a container counts for if it does not say how much it wants.
const CPU_UNSTATED: i64 = 100;
/// Bytes of memory that a container counts for if it does not say how much it wants.
const MEMORY_UNSTATED: i64 = 200 << 20;

/// What containers that state no request count for when nodes are compared: otherwise a node full of them would
/// look empty and draw ever more. Room is not affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Padding {
    /// Thousandths of a core.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
}

impl Padding {
    /// The padding of a pod with a single container.
    pub fn of_one_container(requests: &ResourceList) -> Self {
        let requests = ContainerRequests { requests: requests.clone(), ..ContainerRequests::default() };
        PodResources { containers: vec![requests], ..PodResources::default() }.padding()
    }
}

/// What one container asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerRequests {
    /// From the spec.
    pub requests: ResourceList,
    /// What the kubelet has given it while a resize is under way; the larger counts.
    pub allocated: ResourceList,
    /// An init container that keeps running (`restartPolicy: Always`). Without meaning on ordinary containers.
    pub restartable: bool,
}

impl ContainerRequests {
    fn effective(&self, padded: bool) -> ResourceList {
        let mut list = self.requests.clone();
        if padded {
            for (name, amount) in [(Resource::CPU, CPU_UNSTATED), (Resource::MEMORY, MEMORY_UNSTATED)] {
                // A request of zero is a statement.
                if !list.contains(name) {
                    list.set(Resource::new(name), amount);
                }
            }
        }
        list.raise_to(&self.allocated);
        list
    }
}

/// Everything in a pod's spec that adds to its requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodResources {
    /// Ordinary containers.
    pub containers: Vec<ContainerRequests>,
    /// Init containers, in order.
    pub init_containers: Vec<ContainerRequests>,
    /// `spec.resources.requests`: if a resource is set here it replaces the sum over containers.
    pub pod_level: ResourceList,
    /// `spec.overhead`.
    pub overhead: ResourceList,
}

impl PodResources {
    /// The seat that the pod takes: the most that it needs at any moment of its life, and one of `pods`.
    ///
    /// Init containers run one after another, beside the restartable ones that were started before them.
    pub fn total(&self) -> ResourceList {
        self.sum(false)
    }

    /// How much more [`PodResources::total`] would be if every container that states no request for processor
    /// time or memory asked for a small amount.
    pub fn padding(&self) -> Padding {
        let (padded, total) = (self.sum(true), self.sum(false));
        let more = |name| {
            // A pod that states something as a whole is padded only where nobody in it states anything.
            let stated = !self.pod_level.is_empty() && total.contains(name);
            if stated { 0 } else { padded.get(name) - total.get(name) }
        };
        Padding { cpu: more(Resource::CPU), memory: more(Resource::MEMORY) }
    }

    fn sum(&self, padded: bool) -> ResourceList {
        let mut running = ResourceList::new();
        for container in &self.containers {
            running.add(&container.effective(padded));
        }
        let mut restartable = ResourceList::new();
        let mut initialising = ResourceList::new();
        for container in &self.init_containers {
            let own = container.effective(padded);
            if container.restartable {
                running.add(&own);
                restartable.add(&own);
                initialising.raise_to(&restartable);
            } else {
                let mut beside = own;
                beside.add(&restartable);
                initialising.raise_to(&beside);
            }
        }
        running.raise_to(&initialising);
        for (resource, amount) in self.pod_level.iter() {
            running.set(resource.clone(), amount);
        }
        running.add(&self.overhead);
        running.set(Resource::new(Resource::PODS), 1);
        running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(amount: i64) -> ResourceList {
        [(Resource::new("cpu"), amount)].into_iter().collect()
    }

    fn container(amount: i64) -> ContainerRequests {
        ContainerRequests { requests: cpu(amount), ..ContainerRequests::default() }
    }

    fn sidecar(amount: i64) -> ContainerRequests {
        ContainerRequests { restartable: true, ..container(amount) }
    }

    #[test]
    fn a_pod_takes_the_most_that_it_needs_at_any_moment() {
        for (containers, init_containers, total) in [
            (vec![container(100), container(200)], vec![], 300),
            (vec![container(100)], vec![container(500), container(50)], 500),
            (vec![container(100)], vec![sidecar(30)], 130),
            (vec![container(100)], vec![sidecar(30), container(500)], 530),
            (vec![container(100)], vec![container(500), sidecar(30)], 500),
            (vec![container(600)], vec![sidecar(30), container(500), sidecar(40)], 670),
        ] {
            let pod = PodResources { containers, init_containers, ..PodResources::default() };
            assert_eq!(pod.total().get("cpu"), total, "{pod:?}");
            assert_eq!(pod.total().get("pods"), 1);
        }
    }

    #[test]
    fn pod_level_requests_replace_the_sum_and_overhead_is_added() {
        let pod = PodResources {
            containers: vec![container(100)],
            pod_level: cpu(1000),
            overhead: cpu(10),
            ..PodResources::default()
        };
        assert_eq!(pod.total().get("cpu"), 1010);
    }

    #[test]
    fn containers_that_state_no_request_count_for_a_little() {
        let silent = ContainerRequests::default;
        let restarting = || ContainerRequests { restartable: true, ..silent() };
        const MIB: i64 = 1 << 20;
        for (containers, init_containers, cpu, memory) in [
            (vec![], vec![], 0, 0),
            (vec![silent()], vec![], 100, 200 * MIB),
            (vec![silent(), silent()], vec![], 200, 400 * MIB),
            (vec![container(500)], vec![], 0, 200 * MIB),
            // Zero is a request.
            (vec![container(0)], vec![], 0, 200 * MIB),
            (vec![container(500), silent()], vec![], 100, 400 * MIB),
            // An init container that asks for more than all the others hides what they do not state.
            (vec![silent(), silent()], vec![container(150)], 50, 400 * MIB),
            (vec![silent()], vec![restarting()], 200, 400 * MIB),
            (vec![], vec![silent(), silent()], 100, 200 * MIB),
        ] {
            let pod = PodResources { containers, init_containers, ..PodResources::default() };
            assert_eq!(pod.padding(), Padding { cpu, memory }, "{pod:?}");
        }
        let pod = PodResources { containers: vec![silent()], pod_level: cpu(700), ..PodResources::default() };
        assert_eq!(pod.padding(), Padding { cpu: 0, memory: 200 * MIB }, "the pod states it for all");
        let memory = [(Resource::new(Resource::MEMORY), MIB)].into_iter().collect();
        let mut pod =
            PodResources { containers: vec![silent()], pod_level: memory, ..PodResources::default() };
        assert_eq!(pod.padding(), Padding { cpu: 100, memory: 0 }, "nobody states it");
        pod.containers.push(container(500));
        assert_eq!(pod.padding(), Padding::default(), "one container's statement is enough beside the pod's");
    }

    #[test]
    fn a_resized_container_counts_with_the_larger_of_spec_and_allocation() {
        let shrinking = ContainerRequests { allocated: cpu(400), ..container(100) };
        let growing = ContainerRequests { allocated: cpu(50), ..container(100) };
        let pod = PodResources { containers: vec![shrinking, growing], ..PodResources::default() };
        assert_eq!(pod.total().get("cpu"), 500);
    }
}
