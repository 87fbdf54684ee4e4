//! Whether a process leads, as everybody's dashboards ask for it.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabel {
    name: String,
}

/// 1 while this process leads, 0 while it stands by.
#[derive(Debug, Clone)]
pub struct Leading(Gauge);

impl Leading {
    /// Shows it with the name of the lease, which is empty where nobody is elected.
    pub fn register(registry: &mut Registry, lease: &str) -> Self {
        let family = Family::<LeaseLabel, Gauge>::default();
        let gauge = family.get_or_create_owned(&LeaseLabel { name: lease.to_owned() });
        let help = "1 if this process holds the lease and acts, 0 if it stands by";
        registry.register("leader_election_master_status", help, family);
        Self(gauge)
    }

    /// Takes note of it.
    pub fn set(&self, leads: bool) {
        self.0.set(i64::from(leads));
    }
}
