//! What is mounted where, from `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::kernel_files::read_trimmed;

/// One mount.
#[derive(Debug, Clone)]
pub struct Mount {
    /// `major:minor`.
    pub device: String,
    /// The folder of the filesystem that is visible at `point`; not "/" for a bind mount.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// Options of this mount, e.g. `rw,noatime`.
    pub options: String,
    /// e.g. `ext4`.
    pub filesystem: String,
    /// What is mounted, usually a device.
    pub source: String,
    /// Options of the filesystem, whichever mount shows it, e.g. `rw,discard`.
    pub filesystem_options: String,
}

/// Returns all mounts that this process sees, from `PROC_ROOT/self/mountinfo` (`/proc` outside of tests),
/// oldest first; invalid lines are left out.
pub fn mounts(proc_root: &Path) -> Vec<Mount> {
    let text = read_trimmed(proc_root.join("self/mountinfo")).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// Parses `id parent major:minor root point options [optional fields] - type source filesystem-options`.
fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let [_, _, device, root, point, options, ..] = left[..] else {
        return None;
    };
    let mut right = right.split(' ');
    let filesystem = right.next()?.to_string();
    Some(Mount {
        device: device.to_string(),
        root: unescape(root),
        point: unescape(point),
        options: options.to_string(),
        filesystem,
        source: right.next().unwrap_or_default().to_string(),
        filesystem_options: right.next().unwrap_or_default().to_string(),
    })
}

/// Replaces a backslash and three octal digits, as which blanks and the like are written.
fn unescape(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..3).and_then(|o| u8::from_str_radix(o, 8).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                out.extend_from_slice(&part.as_bytes()[3..]);
            }
            None => {
                out.push(b'\\');
                out.extend_from_slice(part.as_bytes());
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// Returns the mount that holds `path`: the one with its device number, otherwise the longest mount point that
/// is a prefix (btrfs and overlayfs report other device numbers than their mounts).
pub fn mount_of(mounts: Vec<Mount>, path: &Path, device: &str) -> Option<Mount> {
    let path = path.canonicalize().ok()?;
    mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| (mount.device == device, mount.point.as_os_str().len()))
}

/// Returns the major and minor number of the filesystem under `path`, as in its superblock: `stat` shows others
/// for btrfs subvolumes. `None` if no mount holds the path.
pub fn superblock_device(proc_root: &Path, path: &Path) -> Option<(u32, u32)> {
    let device = mount_of(mounts(proc_root), path, "")?.device;
    let (major, minor) = device.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_odd_lines() {
        let line =
            "36 35 98:0 /mnt1 /my\\040data\\134x rw,noatime shared:1 - ext4 /dev/vda rw,discard";
        let mount = parse(line).unwrap();
        assert_eq!(mount.point, Path::new("/my data\\x"));
        assert_eq!(
            (mount.device.as_str(), mount.options.as_str()),
            ("98:0", "rw,noatime")
        );
        assert_eq!(mount.filesystem_options, "rw,discard");
        assert_eq!(unescape("a\\9x\\é"), Path::new("a\\9x\\é"));
        for odd in ["", "1 2 3", "1 2 3 - x", "36 35 98:0 / - ext4"] {
            assert!(parse(odd).is_none(), "{odd}");
        }
    }
}
