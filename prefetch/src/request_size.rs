//! How much the disk takes in one request.
//!
//! Pages that are read into the page cache lie anywhere in memory, and a request names each of them. A
//! disk takes only so many (`max_segments`: 254 of a virtio disk, 168 of AHCI); the kernel cuts what is
//! longer. A call of 1 MiB, 256 pages, then becomes two requests, the second of them of 8 KiB: on a disk
//! of 150 IOPS that costs half of the bytes per second.

use std::path::Path;

use seekscope_run::DeviceFacts;

/// Used where the kernel does not say, and the upper limit: a request has at most 256 pages however
/// many the disk takes (`BIO_MAX_VECS`), and a processor has this much in its cache.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// Returns the bytes that the disk under `path` takes in one request when no two pages are
/// neighbours in memory: at least a page, at most 1 MiB. `root` is "/" outside of tests.
pub fn request_bytes(root: &Path, path: &Path) -> u64 {
    let facts = DeviceFacts::of_path(root, path).unwrap_or_default();
    let queue = facts.disk.map(|disk| {
        let block = root.join("sys/class/block");
        block.join(disk).join("queue")
    });
    let segments = queue.and_then(|queue| {
        let text = std::fs::read_to_string(queue.join("max_segments")).ok()?;
        text.trim().parse::<u64>().ok()
    });
    let page_bytes = rustix::param::page_size() as u64;
    let limits = [
        segments.map(|segments| segments.saturating_mul(page_bytes)),
        facts.request_bytes_max,
    ];
    let least = limits.into_iter().flatten().min();
    let bytes = least.unwrap_or(REQUEST_BYTES_MAX).min(REQUEST_BYTES_MAX);
    (bytes - bytes % page_bytes).max(page_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A host whose disk, under everything, has these limits.
    fn host(max_segments: &str, max_sectors_kb: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let device = rustix::fs::stat(root.path()).unwrap().st_dev;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let disk = root.path().join("sys/class/block/vdz");
        let numbers = root.path().join("sys/dev/block");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(&numbers).unwrap();
        fs::write(disk.join("queue/max_segments"), max_segments).unwrap();
        fs::write(disk.join("queue/max_sectors_kb"), max_sectors_kb).unwrap();
        std::os::unix::fs::symlink(&disk, numbers.join(format!("{major}:{minor}"))).unwrap();
        root
    }

    #[test]
    fn the_least_of_what_the_kernel_says() {
        let bytes = |segments, kib| {
            let root = host(segments, kib);
            request_bytes(root.path(), root.path())
        };
        assert_eq!(bytes("254\n", "4096\n"), 254 * 4096);
        assert_eq!(bytes("65535\n", "4096\n"), REQUEST_BYTES_MAX);
        assert_eq!(bytes("254\n", "127\n"), 124 << 10, "whole pages");
        assert_eq!(bytes("0\n", "4096\n"), 4096);
        assert_eq!(bytes("odd", "1280\n"), REQUEST_BYTES_MAX);
        assert_eq!(
            request_bytes(Path::new("/nonexistent"), Path::new("/")),
            REQUEST_BYTES_MAX
        );
    }
}
