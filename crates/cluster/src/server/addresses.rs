//! Addresses of services. Nothing listens there, but clients expect one, and no two services may have the same.

use super::{ApiServer, metadata};
use crate::error::ApiError;
use crate::registry::{Resource, ResourceId};
use crate::store::Range;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The first address that services can have, and how many there are: 10.96.0.0/12 without its ends.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 1]);
const COUNT: u32 = (1 << 20) - 2;
/// Ports on nodes that services can have.
const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;

impl ApiServer {
    /// Gives a new service the addresses and ports that it leaves to the cluster.
    pub(super) fn admit_service(&self, resource: &Resource, service: &mut Value) -> Result<(), ApiError> {
        let name = metadata::text(service, "name").to_owned();
        let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
        let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind == "ExternalName" {
            return Ok(());
        }
        let taken = self.taken();
        let asked = spec.get("clusterIP").and_then(Value::as_str).filter(|address| !address.is_empty());
        let address = match asked {
            Some("None") => "None".to_owned(),
            Some(address) if taken.addresses.contains(address) => {
                let why = format!("spec.clusterIPs: the address {address} is already allocated");
                return Err(ApiError::forbidden(resource, &name, &why));
            }
            Some(address) => address.to_owned(),
            None => self.free_address(&taken.addresses),
        };
        spec.insert("clusterIP".to_owned(), json!(address));
        spec.insert("clusterIPs".to_owned(), json!([address]));
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            let mut ports = taken.node_ports;
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if port.get("nodePort").and_then(Value::as_u64).unwrap_or(0) == 0
                    && let Some(map) = port.as_object_mut()
                    && let Some(free) = NODE_PORTS.clone().find(|port| ports.insert(*port))
                {
                    map.insert("nodePort".to_owned(), json!(free));
                }
            }
        }
        Ok(())
    }

    fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        let Some(id) = ResourceId::of_kind("", "Service") else { return taken };
        for service in self.store.list(id, Range::default()).objects {
            let value = service.value();
            taken
                .addresses
                .extend(value.pointer("/spec/clusterIP").and_then(Value::as_str).map(str::to_owned));
            let ports = value.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
            taken.node_ports.extend(ports.filter_map(|port| port.get("nodePort")?.as_u64()));
        }
        taken
    }

    /// A free address, searched from a random one on: those of deleted services should not come back at once.
    fn free_address(&self, taken: &BTreeSet<String>) -> String {
        let start = u32::try_from(self.store.environment().random() % u64::from(COUNT)).unwrap_or(0);
        let candidates = (0..COUNT).map(|step| Ipv4Addr::from(FIRST + (start + step) % COUNT).to_string());
        candidates.into_iter().find(|address| !taken.contains(address)).unwrap_or_default()
    }
}

/// What services have already.
#[derive(Default)]
struct Taken {
    addresses: BTreeSet<String>,
    node_ports: BTreeSet<u64>,
}
