//! Finds out by trying whether direct I/O bypasses the page cache: tmpfs accepts the flag and
//! caches anyway, network and FUSE filesystems vary, and none of them says so.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use seekscope_run::{DirectFacts, page_cache};

use crate::buffer::AlignedBuffer;
use crate::job::ALIGNMENT_BYTES;
use crate::{DiskError, TestFile};

/// Bytes that are read and then looked for in the page cache.
const PROBE_BYTES: u64 = 64 << 10;

/// Makes one direct read of the file and checks what it left in the page cache. If the pages of an
/// existing file are already cached, nothing can be concluded, and direct I/O is assumed to work.
pub fn probe(file: &TestFile) -> Result<DirectFacts, DiskError> {
    let direct = match file.open(true) {
        Ok(direct) => direct,
        Err(DiskError::NoDirectIo { source, .. }) => {
            return Ok(DirectFacts {
                real: false,
                alignment_bytes: 0,
                evidence: format!("the filesystem refuses it: {source}"),
            });
        }
        Err(other) => return Err(other),
    };
    let bytes = PROBE_BYTES.min(file.bytes() / ALIGNMENT_BYTES * ALIGNMENT_BYTES);
    let alignment_bytes = alignment_bytes(&direct);
    if bytes == 0 {
        return Ok(DirectFacts {
            real: true,
            alignment_bytes,
            evidence: "the file is smaller than a block, so it was not tried".into(),
        });
    }
    let failed = DiskError::on("probe direct I/O on", file.path());
    let resident = || page_cache::resident_bytes(file.as_fd(), 0, bytes);
    if file.is_own() {
        // The whole file: the kernel may keep the probed pages together with others (large folios).
        file.evict_all(|| resident().ok())?;
    }
    let read = || -> std::io::Result<(u64, u64)> {
        let before = resident()?;
        let mut buffer = AlignedBuffer::new(usize::try_from(bytes).unwrap_or(4096))
            .map_err(std::io::Error::other)?;
        direct.read_exact_at(buffer.bytes(), 0)?;
        Ok((before, resident()?))
    };
    let (before, after) = read().map_err(failed)?;
    let pages = |bytes: u64| bytes / ALIGNMENT_BYTES;
    Ok(DirectFacts {
        real: after <= before && (before == 0 || !file.is_own()),
        alignment_bytes,
        evidence: format!(
            "of {} pages read directly, {} were in the page cache before and {} after",
            pages(bytes),
            pages(before),
            pages(after)
        ),
    })
}

/// Returns the alignment that statx(2) states for direct I/O on the file; 0 if it states none (before
/// Linux 6.1).
fn alignment_bytes(file: &std::fs::File) -> u64 {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut facts: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the path empty and terminated, and the structure outlives the
    // call.
    let status = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut facts,
        )
    };
    if status != 0 || facts.stx_mask & libc::STATX_DIOALIGN == 0 {
        return 0;
    }
    u64::from(facts.stx_dio_offset_align.max(facts.stx_dio_mem_align))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contents, FillOptions};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    fn probe_in(directory: &Path) -> DirectFacts {
        let fill = FillOptions::new(Contents::Random { seed: 1 });
        let cancel = AtomicBool::new(false);
        let file = TestFile::create(directory, 1 << 20, fill, &mut |_| {}, &cancel).unwrap();
        probe(&file).unwrap()
    }

    /// The temporary folder of the tests is on a disk; /dev/shm is in memory.
    #[test]
    fn memory_is_told_from_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let disk = probe_in(folder.path());
        assert!(disk.real, "{disk:?}");
        let memory = probe_in(Path::new("/dev/shm"));
        assert!(!memory.real, "{memory:?}");
    }
}
