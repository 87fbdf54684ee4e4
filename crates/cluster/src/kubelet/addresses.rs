//! Addresses for pods and nodes that do not exist. They are unique, which is all that anybody can tell.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Gives out addresses of one block, in order, and takes them back.
#[derive(Debug)]
pub(super) struct Pool {
    first: u32,
    size: u32,
    next: u32,
    used: BTreeSet<u32>,
}

impl Pool {
    /// Room for eight million pods: 10.128.0.0/9.
    pub(super) fn pods() -> Self {
        Self::new(Ipv4Addr::new(10, 128, 0, 0), 9)
    }

    /// Room for a million nodes: 172.16.0.0/12.
    pub(super) fn nodes() -> Self {
        Self::new(Ipv4Addr::new(172, 16, 0, 0), 12)
    }

    fn new(network: Ipv4Addr, prefix: u32) -> Self {
        let size = 1_u32 << (32 - prefix);
        // The first address names the network and the last one is its broadcast address.
        Self { first: network.to_bits() + 1, size: size - 2, next: 0, used: BTreeSet::new() }
    }

    /// An address that nobody has; none if all are taken.
    pub(super) fn take(&mut self) -> Option<Ipv4Addr> {
        if self.used.len() >= self.size as usize {
            return None;
        }
        // Ends: fewer addresses are used than there are.
        loop {
            let address = self.first + self.next;
            self.next = (self.next + 1) % self.size;
            if self.used.insert(address) {
                return Some(Ipv4Addr::from_bits(address));
            }
        }
    }

    /// Notes an address that somebody was seen with.
    pub(super) fn mark(&mut self, address: Ipv4Addr) {
        if self.contains(address) {
            self.used.insert(address.to_bits());
        }
    }

    /// Takes an address back.
    pub(super) fn release(&mut self, address: Ipv4Addr) {
        self.used.remove(&address.to_bits());
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..self.first + self.size).contains(&address.to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_given_twice_and_a_full_pool_gives_none() {
        let mut pool = Pool::new(Ipv4Addr::new(10, 0, 0, 0), 29);
        pool.mark(Ipv4Addr::new(10, 0, 0, 2));
        pool.mark(Ipv4Addr::new(192, 168, 0, 1));
        let given: Vec<String> = std::iter::from_fn(|| pool.take()).map(|a| a.to_string()).collect();
        assert_eq!(given, ["10.0.0.1", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]);
        pool.release(Ipv4Addr::new(10, 0, 0, 4));
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 4)));
        assert_eq!(pool.take(), None);
    }
}
