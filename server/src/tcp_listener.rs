//! Finds which process of this host listens on a TCP port.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};

use crate::process::{ProcFs, ProcessError};

/// The most file descriptors examined for one process; a proxy with more is not what is sought.
const DESCRIPTORS_MAX: usize = 200_000;

/// The length of a line of `/proc/net/tcp`, to which the kernel pads; those of `tcp6` are a little longer.
const LINE_BYTES: usize = 150;
/// The state TCP_LISTEN, as the kernel prints it.
const LISTENING: &str = "0A";

struct Listener {
    address: IpAddr,
    inode: u64,
}

impl ProcFs {
    /// Returns the process that listens on `port`. With an `address`, only a socket bound to that address or to
    /// all addresses counts. Returns `None` if nobody listens in this network namespace (a server in a
    /// container has its own), and [`ProcessError::HiddenListener`] if somebody does but no process whose
    /// descriptors are visible to us.
    pub fn listener(
        &self,
        port: u16,
        address: Option<IpAddr>,
    ) -> Result<Option<u32>, ProcessError> {
        let mut inodes = HashSet::new();
        for table in ["net/tcp", "net/tcp6"] {
            // A kernel without IPv6 has no second table.
            let Ok(table) = File::open(self.root.join(table)) else {
                continue;
            };
            let matching = listening(table).filter_map(|line| parse_listener(&line, port));
            inodes.extend(
                matching
                    .filter(|l| accepts(l.address, address))
                    .map(|l| l.inode),
            );
        }
        self.process_with_socket(&inodes)
    }

    /// Returns a process that has one of these sockets open. [`ProcessError::HiddenListener`]: none of those has,
    /// whose descriptors are visible to us, and those of others are not.
    pub(crate) fn process_with_socket(
        &self,
        inodes: &HashSet<u64>,
    ) -> Result<Option<u32>, ProcessError> {
        if inodes.is_empty() {
            return Ok(None);
        }
        let mut refused = None;
        for pid in self.pids() {
            match self.has_socket(pid, inodes) {
                Ok(true) => return Ok(Some(pid)),
                Ok(false) | Err(ProcessError::Gone { .. }) => {}
                // It is one of those that are not visible, which need not be this one.
                Err(ProcessError::NotPermitted { .. }) => {
                    refused = Some(ProcessError::HiddenListener);
                }
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(None), Err)
    }

    fn has_socket(&self, pid: u32, inodes: &HashSet<u64>) -> Result<bool, ProcessError> {
        let folder = self.path(pid, "fd");
        let entries =
            fs::read_dir(&folder).map_err(|source| crate::process::failed(pid, folder, source))?;
        Ok(entries.flatten().take(DESCRIPTORS_MAX).any(|entry| {
            fs::read_link(entry.path())
                .ok()
                .and_then(|link| socket_inode(link.to_str()?))
                .is_some_and(|inode| inodes.contains(&inode))
        }))
    }
}

/// Returns whether the host part of a connection string means this host. Names are resolved, which may take as
/// long as the resolver's time limit.
pub fn is_this_host(host: &str) -> bool {
    local_address(host).is_some()
}

/// Returns the first address of `host` that belongs to this host.
pub fn local_address(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses = (bare, 0).to_socket_addrs().ok()?;
    // Only an address of this host can be bound to, so no list of interfaces is needed.
    addresses
        .map(|a| a.ip())
        .find(|ip| ip.is_loopback() || UdpSocket::bind((*ip, 0)).is_ok())
}

fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

fn accepts(bound: IpAddr, wanted: Option<IpAddr>) -> bool {
    let bound = bound.to_canonical();
    wanted.is_none_or(|wanted| bound.is_unspecified() || bound == wanted.to_canonical())
}

/// Returns the lines of `/proc/net/tcp` or `tcp6` that are of listening sockets. The kernel lists these first, and
/// makes lines as they are read: those of the connections, of which a server has tens of thousands, are left alone.
fn listening(table: File) -> impl Iterator<Item = String> {
    let lines = BufReader::with_capacity(LINE_BYTES, table)
        .lines()
        .map_while(Result::ok);
    // The first line names the columns.
    lines
        .skip(1)
        .take_while(|line| line.split_ascii_whitespace().nth(3) == Some(LISTENING))
}

/// Parses one line of a listening socket, if it is on `port`.
fn parse_listener(line: &str, port: u16) -> Option<Listener> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (address, hex_port) = fields.get(1)?.split_once(':')?;
    if u16::from_str_radix(hex_port, 16).ok()? != port {
        return None;
    }
    Some(Listener {
        address: parse_address(address)?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// Parses an address, which the kernel prints as 32-bit words in the machine's byte order.
fn parse_address(hex: &str) -> Option<IpAddr> {
    if !hex.is_ascii() {
        return None;
    }
    let word = |at: usize| {
        Some(
            u32::from_str_radix(hex.get(at..at + 8)?, 16)
                .ok()?
                .to_ne_bytes(),
        )
    };
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (i, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(i * 8)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        \x20  0: 0100007F:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0\n\
        \x20  1: 0100007F:6989 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 9 1 0 20 4 30 10 -1\n";
    const TCP6: &str = "  sl  local_address remote_address st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        \x20  0: 00000000000000000000000000000000:6A00 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5151 1 0 100 0 0 10 0\n";

    #[test]
    fn a_fake_tree_gives_the_listening_process() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("net")).unwrap();
        fs::write(root.path().join("net/tcp"), TCP).unwrap();
        fs::write(root.path().join("net/tcp6"), TCP6).unwrap();
        for (pid, link) in [
            ("31", "socket:[9]"),
            ("57", "socket:[4242]"),
            ("60", "socket:[5151]"),
        ] {
            let folder = root.path().join(pid).join("fd");
            fs::create_dir_all(&folder).unwrap();
            symlink(link, folder.join("3")).unwrap();
        }
        let tree = ProcFs::at(root.path());
        assert_eq!(tree.listener(27017, None).unwrap(), Some(57));
        assert_eq!(
            tree.listener(27017, Some([127, 0, 0, 1].into())).unwrap(),
            Some(57)
        );
        assert_eq!(
            tree.listener(27017, Some([10, 0, 0, 1].into())).unwrap(),
            None
        );
        assert_eq!(
            tree.listener(27136, Some([10, 0, 0, 1].into())).unwrap(),
            Some(60)
        );
        assert_eq!(tree.listener(1, None).unwrap(), None);
    }

    #[test]
    fn addresses_of_this_host() {
        assert!(is_this_host("127.0.0.1"));
        assert!(is_this_host("[::1]"));
        assert!(is_this_host("localhost"));
        assert!(!is_this_host("192.0.2.7"));
        assert_eq!(parse_address("0100007F"), Some([127, 0, 0, 1].into()));
        assert_eq!(parse_address("xyz"), None);
    }
}
