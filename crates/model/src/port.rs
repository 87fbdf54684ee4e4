//! Ports of the node that a pod binds to.

use crate::key::Text;

/// A port that only one pod of a node can have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    /// Number, from 1.
    pub port: u16,
    /// Address on the node; `0.0.0.0` stands for all of them.
    pub ip: Text,
}

impl HostPort {
    /// Every address.
    pub const ANY: &'static str = "0.0.0.0";

    /// A port; without protocol it is TCP, without address it is on all of them.
    pub fn new(protocol: &str, port: u16, ip: &str) -> Self {
        let or = |text: &str, default: &str| Text::from(if text.is_empty() { default } else { text });
        Self { protocol: or(protocol, "TCP"), port, ip: or(ip, Self::ANY) }
    }

    /// True if two pods cannot have these ports on one node.
    pub fn conflicts(&self, other: &Self) -> bool {
        let overlap = self.ip == other.ip || self.ip.as_ref() == Self::ANY || other.ip.as_ref() == Self::ANY;
        self.port == other.port && self.protocol == other.protocol && overlap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_conflict_if_number_protocol_and_address_overlap() {
        let port = HostPort::new;
        for (a, b, conflict) in [
            (port("", 80, ""), port("TCP", 80, "0.0.0.0"), true),
            (port("TCP", 80, "10.0.0.1"), port("TCP", 80, ""), true),
            (port("TCP", 80, "10.0.0.1"), port("TCP", 80, "10.0.0.2"), false),
            (port("TCP", 80, ""), port("UDP", 80, ""), false),
            (port("TCP", 80, ""), port("TCP", 81, ""), false),
        ] {
            assert_eq!((a.conflicts(&b), b.conflicts(&a)), (conflict, conflict), "{a:?} {b:?}");
        }
    }
}
