//! The order in which the addresses of a name are tried (RFC 6724 §6).
//!
//! Rules 3, 4 and 7 are left out: they need facts that only the kernel has (deprecated and home
//! addresses, tunnels). Rule 9 (the longest prefix in common with the local address) applies to
//! IPv6 only, as in glibc. For IPv4, rule 9 would put servers in one address block always in the
//! same order, even if the DNS server rotates them.
//!
//! ```
//! use haul_policy::dns::address_order::{DestinationAddress, sort};
//!
//! let destination = |address: &str, source: Option<&str>| DestinationAddress {
//!     address: address.parse().unwrap(),
//!     source: source.map(|source| source.parse().unwrap()),
//! };
//! let mut destinations =
//!     [destination("192.0.2.1", Some("192.0.2.9")), destination("2001:db8::1", None), destination("2001:db8::2", Some("2001:db8::9"))];
//! sort(&mut destinations);
//! // The one that the kernel has no route to comes last.
//! assert_eq!(destinations.map(|one| one.address.is_ipv6()), [true, false, true]);
//! ```

use core::cmp::Ordering;
use std::net::{IpAddr, Ipv6Addr};

/// An address of a host name, with the local address from which the kernel would reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestinationAddress {
    /// The address to connect to.
    pub address: IpAddr,
    /// The local address that the kernel would send from; `None` if there is no route to the
    /// address.
    pub source: Option<IpAddr>,
}

/// The policy table of RFC 6724 §2.1. A row is a prefix, its length in bits, its precedence and its
/// label.
const POLICY_TABLE: [(Ipv6Addr, u32, u8, u8); 9] = [
    (Ipv6Addr::LOCALHOST, 128, 50, 0),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 35, 4),
    (Ipv6Addr::UNSPECIFIED, 96, 1, 3),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 5, 5),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 30, 2),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, 1, 12),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, 1, 11),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, 3, 13),
    (Ipv6Addr::UNSPECIFIED, 0, 40, 1),
];

/// Sorts the addresses of a host by RFC 6724, the best destination first. Two addresses that the
/// rules do not distinguish keep their relative order.
pub fn sort(destinations: &mut [DestinationAddress]) {
    destinations.sort_by(compare);
}

fn compare(a: &DestinationAddress, b: &DestinationAddress) -> Ordering {
    // Rule 1: what cannot be reached comes last.
    let (source_a, source_b) = match (a.source, b.source) {
        (Some(source_a), Some(source_b)) => (source_a, source_b),
        (source_a, source_b) => return source_b.is_some().cmp(&source_a.is_some()),
    };
    let (scope_a, scope_b) = (scope(a.address), scope(b.address));
    let (policy_a, policy_b) = (precedence_and_label(a.address), precedence_and_label(b.address));
    // Rule 2: the same scope as the source's.
    (scope(source_b) == scope_b)
        .cmp(&(scope(source_a) == scope_a))
        // Rule 5: the same label as the source's.
        .then((precedence_and_label(source_b).1 == policy_b.1).cmp(&(precedence_and_label(source_a).1 == policy_a.1)))
        // Rule 6: higher precedence.
        .then(policy_b.0.cmp(&policy_a.0))
        // Rule 8: smaller scope.
        .then(scope_a.cmp(&scope_b))
        // Rule 9: the longer prefix in common with the source.
        .then_with(|| match (a.address, b.address) {
            (IpAddr::V6(_), IpAddr::V6(_)) => {
                common_prefix(b.address, source_b).cmp(&common_prefix(a.address, source_a))
            }
            _ => Ordering::Equal,
        })
}

/// Returns the precedence and the label that the policy table gives to an address.
fn precedence_and_label(address: IpAddr) -> (u8, u8) {
    let bits = u128::from(to_ipv6_mapped(address));
    let matching = POLICY_TABLE.iter().find(|(prefix, length, ..)| {
        let shift = 128 - length;
        *length == 0 || (bits >> shift) == (u128::from(*prefix) >> shift)
    });
    matching.map_or((40, 1), |&(_, _, precedence, label)| (precedence, label))
}

/// Returns the scope of an address (RFC 6724 §3.1 and §3.2): 2 for link-local, 5 for site-local, 14
/// for global.
fn scope(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) if address.is_loopback() || address.is_link_local() => 2,
        IpAddr::V4(_) => 14,
        IpAddr::V6(address) if address.is_multicast() => (address.segments()[0] & 0xf) as u8,
        IpAddr::V6(address) if address.is_loopback() || address.is_unicast_link_local() => 2,
        IpAddr::V6(address) if address.segments()[0] & 0xffc0 == 0xfec0 => 5,
        IpAddr::V6(_) => 14,
    }
}

/// Returns the number of leading bits that two addresses share. It is at most 64, because the lower
/// 64 bits identify the interface (RFC 6724 §2.2).
fn common_prefix(a: IpAddr, b: IpAddr) -> u32 {
    (u128::from(to_ipv6_mapped(a)) ^ u128::from(to_ipv6_mapped(b))).leading_zeros().min(64)
}

fn to_ipv6_mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses destinations of the form `ADDRESS` or `ADDRESS<SOURCE`, and returns the sorted
    /// addresses.
    fn sorted(destinations: &[&str]) -> Vec<String> {
        let mut destinations: Vec<DestinationAddress> = destinations
            .iter()
            .map(|text| {
                let (address, source) = text.split_once('<').map_or((*text, None), |(a, s)| (a, Some(s)));
                DestinationAddress {
                    address: address.parse().unwrap(),
                    source: source.map(|source| source.parse().unwrap()),
                }
            })
            .collect();
        sort(&mut destinations);
        destinations.iter().map(|one| one.address.to_string()).collect()
    }

    // The examples of RFC 6724 §10.2, as far as the rules are here.
    #[test]
    fn address_with_matching_scope_is_preferred() {
        assert_eq!(sorted(&["198.51.100.121<169.254.13.78", "2001:db8:1::1<2001:db8:1::2"])[0], "2001:db8:1::1");
        assert_eq!(sorted(&["2001:db8:1::1<fe80::1", "198.51.100.121<198.51.100.117"])[0], "198.51.100.121");
    }

    #[test]
    fn address_with_higher_precedence_is_preferred() {
        assert_eq!(sorted(&["10.1.2.3<10.1.2.4", "2001:db8:1::1<2001:db8:1::2"])[0], "2001:db8:1::1");
    }

    #[test]
    fn address_with_matching_label_is_preferred() {
        let pair = ["2002:c633:6401::1<2002:c633:6401::2", "2001:db8:1::1<2002:c633:6401::2"];
        assert_eq!(sorted(&pair)[0], "2002:c633:6401::1");
    }

    #[test]
    fn longer_common_prefix_is_preferred_for_ipv6_alone() {
        assert_eq!(sorted(&["2001:db8:3ffe::1<2001:db8:1::2", "2001:db8:1::1<2001:db8:1::2"])[0], "2001:db8:1::1");
        assert_eq!(sorted(&["10.9.0.1<10.1.0.2", "10.1.0.1<10.1.0.2"])[0], "10.9.0.1");
    }

    #[test]
    fn unreachable_addresses_keep_their_order_at_the_end() {
        assert_eq!(sorted(&["::1", "2001:db8::1", "10.0.0.1<10.0.0.2"]), ["10.0.0.1", "::1", "2001:db8::1"]);
    }

    /// Checks the scopes that RFC 6724 §3.1 and §3.2 define, and RFC 4007 §5 for multicast
    /// addresses.
    #[test]
    fn scopes_follow_the_prefix_of_the_address() {
        for (address, expected) in [
            ("127.0.0.1", 2),
            ("169.254.1.1", 2),
            ("10.0.0.1", 14),
            ("192.0.2.1", 14),
            ("::1", 2),
            ("fe80::1", 2),
            ("fec0::1", 5),
            ("feff::1", 5),
            ("fd00::1", 14),
            ("100::1", 14),
            ("2001:db8::1", 14),
            ("ff02::1", 2),
            ("ff05::1", 5),
            ("ff0e::1", 14),
        ] {
            assert_eq!(scope(address.parse().unwrap()), expected, "{address}");
        }
    }

    /// Checks addresses of each prefix in the policy table of RFC 6724 §2.1.
    #[test]
    fn prefixes_have_precedence_and_label() {
        for (address, expected) in [
            ("::1", (50, 0)),
            ("10.0.0.1", (35, 4)),
            ("::2", (1, 3)),
            ("2001::1", (5, 5)),
            ("2002::1", (30, 2)),
            ("3ffe::1", (1, 12)),
            ("fec0::1", (1, 11)),
            ("fc00::1", (3, 13)),
            ("fdff::1", (3, 13)),
            ("2001:1::1", (40, 1)),
            ("2001:db8::1", (40, 1)),
            ("2003::1", (40, 1)),
        ] {
            assert_eq!(precedence_and_label(address.parse().unwrap()), expected, "{address}");
        }
    }
}
