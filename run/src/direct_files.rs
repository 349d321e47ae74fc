//! Tells whether a process reads files past the page cache.

use std::path::{Path, PathBuf};

/// O_DIRECT in the flags of /proc/PID/fdinfo (proc_pid_fdinfo(5)), on x86 and ARM.
const DIRECT_FLAGS: u64 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
    0o200_000
} else {
    0o40_000
};

/// Returns whether the process has this file, or one in this folder, open with O_DIRECT; false where that may not be
/// seen.
pub fn has_open_directly(pid: u32, path: &Path) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    let Ok(entries) = std::fs::read_dir(folder.join("fd")) else {
        return false;
    };
    let mut there = entries.flatten().filter(|entry| {
        let link = std::fs::read_link(entry.path());
        link.is_ok_and(|link| link.starts_with(&path))
    });
    there.any(|entry| {
        let text = std::fs::read_to_string(folder.join("fdinfo").join(entry.file_name()));
        let flags = text.ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            u64::from_str_radix(line.trim(), 8).ok()
        });
        flags.is_some_and(|flags| flags & DIRECT_FLAGS != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_open_is_direct_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wt");
        std::fs::write(&path, [0; 4096]).unwrap();
        let pid = std::process::id();
        let _buffered = std::fs::File::open(&path).unwrap();
        assert!(!has_open_directly(pid, folder.path()));
        // Not every filesystem takes the flag (tmpfs before Linux 6.6).
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        options
            .read(true)
            .custom_flags(i32::try_from(DIRECT_FLAGS).unwrap());
        if let Ok(_direct) = options.open(&path) {
            assert!(has_open_directly(pid, folder.path()));
            assert!(has_open_directly(pid, &path));
            assert!(!has_open_directly(pid, &folder.path().join("b.wt")));
        }
    }
}
