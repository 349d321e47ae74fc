//! Finds which process of this host listens on a Unix socket.

use std::path::Path;

use crate::process::{ProcFs, ProcessError};

/// The flag __SO_ACCEPTCON of a socket that accepts connections, as the kernel prints it.
const ACCEPTS: &str = "00010000";

impl ProcFs {
    /// Returns the process that listens on the socket of this path. Returns `None` if nobody does in this network
    /// namespace, and [`ProcessError::HiddenListener`] if somebody does but no process whose descriptors are visible to us.
    pub fn unix_listener(&self, path: &Path) -> Result<Option<u32>, ProcessError> {
        let sockets = std::fs::read(self.root.join("net/unix")).unwrap_or_default();
        let sockets = String::from_utf8_lossy(&sockets);
        let inodes = sockets
            .lines()
            .filter_map(|line| inode_of(line, path))
            .collect();
        self.process_with_socket(&inodes)
    }
}

/// Returns the inode of a line of `/proc/net/unix`, if it is of a socket that listens on the path.
fn inode_of(line: &str, path: &Path) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let listens = words.nth(3)? == ACCEPTS;
    let inode = words.nth(2)?.parse().ok()?;
    // A path may hold blanks.
    let shown = line.split_once(&format!(" {inode} "))?.1;
    (listens && Path::new(shown) == path).then_some(inode)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn our_own_socket_is_found() {
        let folder = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let path = folder.path().join("a b.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let host = ProcFs::host();
        assert_eq!(host.unix_listener(&path).unwrap(), Some(std::process::id()));
        assert_eq!(
            host.unix_listener(&folder.path().join("none")).unwrap(),
            None
        );
    }

    #[test]
    fn sockets_that_do_not_listen_are_none() {
        let line =
            |flags: &str| format!("ffff: 00000002 00000000 {flags} 0001 01 4711 /tmp/m.sock");
        let path = Path::new("/tmp/m.sock");
        assert_eq!(inode_of(&line(ACCEPTS), path), Some(4711));
        assert_eq!(inode_of(&line("00000000"), path), None);
        assert_eq!(
            inode_of("Num RefCount Protocol Flags Type St Inode Path", path),
            None
        );
    }
}
