//! Measures how much of an open file is in the page cache, and evicts it. This needs no root and leaves the
//! rest of the host's cache alone, unlike `/proc/sys/vm/drop_caches`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;

use rustix::fs::{Advice, fadvise, fdatasync};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// mincore fills one byte per page; the window bounds that memory.
const WINDOW_BYTES: u64 = 1 << 30;

/// Returns the bytes, in whole pages, that are cached now, of the pages that hold `length` bytes from `offset`;
/// checking does not change the cache. The file must be open for reading and, as the kernel requires since 5.2
/// (mincore(2)), belong to this user or be writable; otherwise everything counts as cached.
pub fn resident_bytes(file: impl AsFd, offset: u64, length: u64) -> io::Result<u64> {
    let page_bytes = rustix::param::page_size() as u64;
    let end = offset.saturating_add(length);
    let mut start = offset - offset % page_bytes;
    let mut resident = 0;
    while start < end {
        let window = WINDOW_BYTES.min(end - start);
        let pages = pages_in_window(file.as_fd(), start, window)?;
        resident += pages.iter().filter(|&&page| page).count() as u64 * page_bytes;
        start += window;
    }
    Ok(resident)
}

/// Returns which pages are cached now, of those that hold `length` bytes from `offset`, in order. Like
/// [`resident_bytes`], for ranges up to 1 GiB; anything beyond is left out.
pub fn resident_pages(file: impl AsFd, offset: u64, length: u64) -> io::Result<Vec<bool>> {
    let page_bytes = rustix::param::page_size() as u64;
    let start = offset - offset % page_bytes;
    let length = offset.saturating_add(length) - start;
    if length == 0 {
        return Ok(Vec::new());
    }
    pages_in_window(file.as_fd(), start, length.min(WINDOW_BYTES))
}

/// Writes the file back and evicts the pages that lie wholly within `length` bytes from `offset`, or up to the
/// end of the file if `length` is 0. Blocks until dirty pages are written. Pages that a process has mapped
/// stay; so do some that were just touched, and those that the kernel keeps together with pages outside the
/// range (large folios). [`resident_bytes`] shows what stayed.
pub fn evict(file: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    // Dirty pages cannot be evicted.
    fdatasync(&file)?;
    let length = std::num::NonZeroU64::new(length);
    Ok(fadvise(file, offset, length, Advice::DontNeed)?)
}

/// Returns which pages of one window are cached. `offset` is a multiple of the page size.
fn pages_in_window(file: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<Vec<bool>> {
    let page_bytes = rustix::param::page_size();
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let mut pages = vec![0u8; length.div_ceil(page_bytes)];
    // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
    let address = unsafe {
        mmap(
            ptr::null_mut(),
            length,
            ProtFlags::empty(),
            MapFlags::PRIVATE,
            file,
            offset,
        )?
    };
    // SAFETY: `address` and `length` are the mapping just made, and `pages` has a byte for each of
    // its pages; the mapped memory itself is never read.
    let status = unsafe { libc::mincore(address, length, pages.as_mut_ptr()) };
    let error = (status != 0).then(io::Error::last_os_error);
    // SAFETY: the mapping was made above and nothing refers to it.
    unsafe { munmap(address, length)? };
    match error {
        Some(error) => Err(error),
        None => Ok(pages.iter().map(|page| page & 1 == 1).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::*;

    /// Creates a file on the disk under the build, since a tmpfs keeps its pages whatever the advice.
    fn file(bytes: usize) -> File {
        let folder = std::env::current_exe().unwrap();
        let mut file = tempfile::tempfile_in(folder.parent().unwrap()).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        file
    }

    #[test]
    fn pages_come_and_go() {
        let page = rustix::param::page_size() as u64;
        let bytes = 64 * page + 1;
        let file = file(usize::try_from(bytes).unwrap());
        let cached = |offset, length| resident_bytes(&file, offset, length).unwrap();
        assert_eq!(cached(0, bytes), 65 * page);
        assert_eq!(cached(page + 1, page), 2 * page, "it lies on two pages");
        assert_eq!(cached(0, 0), 0);

        // Pages that were just touched may take more than one try.
        let evicted = |offset, length, left: u64| {
            (0..100).any(|_| {
                evict(&file, offset, length).unwrap();
                resident_bytes(&file, 0, bytes).unwrap() == left
            })
        };
        assert!(evicted(0, 0, 0));

        // Without read-ahead, pages come singly.
        fadvise(&file, 0, None, Advice::Random).unwrap();
        for wanted in [5, 40] {
            (&file).seek(SeekFrom::Start(wanted * page)).unwrap();
            (&file).read_exact(&mut [0; 2]).unwrap();
        }
        assert_eq!(cached(0, bytes), 2 * page);
        assert_eq!(cached(5 * page, 1), page);
        let pages = |offset, length| resident_pages(&file, offset, length).unwrap();
        assert_eq!(pages(4 * page + 1, 2 * page), [false, true, false]);
        assert!(pages(0, 0).is_empty());
        assert_eq!(cached(6 * page, 34 * page), 0);
        assert!(evicted(6 * page, 58 * page, page), "the range alone");
        assert_eq!(cached(5 * page, page), page);
    }
}
