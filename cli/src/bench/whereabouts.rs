//! Finds out whether a server is on another host than this process, in which case none of this host's activity
//! is its work. If that is unknown, the server is not reported as remote.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use seekscope_server::Server;
use seekscope_server::examination::Routed;
use seekscope_server::tcp_listener::is_this_host;
use tokio::time::timeout;

/// Time limit for asking for the set's members and looking up names.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns whether the server and all members of its set, or a router and all of its shards, are on other
/// hosts.
pub async fn is_elsewhere(server: &Server, routed: Option<&Routed>) -> bool {
    let mut hosts: Vec<String> = server.addresses().iter().map(|a| a.0.clone()).collect();
    let members = match routed {
        Some(routed) if routed.shards.is_empty() => return false,
        Some(routed) => {
            let members = routed.shards.iter().flat_map(|shard| &shard.members);
            members.cloned().collect()
        }
        None => match server.hello().await {
            Ok(hello) => hello.data_members,
            Err(_) => return false,
        },
    };
    hosts.extend(members.iter().map(|member| host_of(member).to_string()));
    let looked = tokio::task::spawn_blocking(move || {
        !hosts.is_empty() && hosts.iter().all(|host| is_remote(host))
    });
    matches!(timeout(LIMIT, looked).await, Ok(Ok(true)))
}

fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// Returns whether a host is remote. A name without an address tells nothing.
fn is_remote(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<IpAddr> = match (bare, 0).to_socket_addrs() {
        Ok(found) => found.map(|address| address.ip()).collect(),
        Err(_) => return false,
    };
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let is_bridge = |interface: &str| {
        let folder = Path::new("/sys/class/net").join(interface);
        folder.join("bridge").exists()
    };
    !addresses.is_empty()
        && !is_this_host(host)
        && !(addresses.iter()).any(|address| is_beside(*address, &routes, is_bridge))
}

/// Returns whether a bridge of this host leads to the address: then it may be a local container.
fn is_beside(address: IpAddr, routes: &str, is_bridge: impl Fn(&str) -> bool) -> bool {
    let IpAddr::V4(address) = address else {
        return false;
    };
    routes.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // Interface, destination, gateway, then flags and counts, and the mask.
        let [interface, destination, gateway, _, _, _, _, mask, ..] = fields.as_slice() else {
            return false;
        };
        let (Some(destination), Some(mask)) = (network(destination), network(mask)) else {
            return false;
        };
        let is_direct = network(gateway) == Some(0) && mask != 0;
        is_direct && u32::from(address) & mask == destination && is_bridge(interface)
    })
}

/// Parses an address; the kernel prints addresses as 32-bit words in the machine's byte order.
fn network(hex: &str) -> Option<u32> {
    let word = u32::from_str_radix(hex, 16).ok()?;
    Some(u32::from(Ipv4Addr::from(word.to_ne_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_and_names_of_nothing_are_not_elsewhere() {
        for host in ["127.0.0.1", "localhost", "[::1]", "no such name"] {
            assert!(!is_remote(host), "{host}");
        }
        // TEST-NET-1, which nobody uses.
        assert!(is_remote("192.0.2.7"));
        assert_eq!(host_of("db1:27018"), "db1");
        assert_eq!(host_of("[::1]:27018"), "[::1]");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn what_lies_on_a_bridge_may_be_a_container_of_this_host() {
        let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                      eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
                      eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
                      docker0 000011AC 00000000 0001 0 0 0 0000FFFF 0 0 0\n";
        let is_bridge = |interface: &str| interface == "docker0";
        let beside = |address: &str| is_beside(address.parse().unwrap(), routes, is_bridge);
        assert!(beside("172.17.0.2"));
        assert!(!beside("192.0.2.9"), "on the network of eth0");
        assert!(!beside("8.8.8.8"), "by the gateway");
    }
}
