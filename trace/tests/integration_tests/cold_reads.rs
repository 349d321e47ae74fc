//! Reads of a file of which a part is in the page cache. Whether it is this part, the kernel's
//! own `mincore` says before each read.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::jobs::{PAGE, done, ready, say};
use crate::known_program::filled;

pub(crate) const READS: usize = 24_000;
const PAGES: usize = 48 * 1024;
const READS_PER_STRETCH: usize = 100;
const MAX_PAGES_PER_READ: usize = 8;
/// Random reads stay in this part of the file, so that pages come up again and are hits then.
const RANDOM_PAGES: u64 = 12 * 1024;

/// How the file is read, and so how much the kernel reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Any place, and the kernel is told so: no read-ahead.
    Random,
    /// Any place, with the read-ahead of a file of which nothing is said.
    Default,
    /// Stretch after stretch from the start of each on; stretches follow in mixed order.
    Sequential,
}

/// The job: says 1 for each read whose pages were all in memory, 0 for the others, in order.
pub(crate) fn read(folder: &Path, mix: Mix) {
    let file = filled(&folder.join("cold.dat"), PAGES * PAGE);
    let map = map(&file);
    evict(&file, map, PAGES);
    if mix == Mix::Random {
        // SAFETY: advice on our own file.
        let failed =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        assert_eq!(failed, 0);
    }
    ready();
    let mut random = 88_172_645_463_325_252u64;
    let mut resident = Vec::with_capacity(READS);
    let mut buffer = [0; MAX_PAGES_PER_READ * PAGE];
    for index in 0..READS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (page, pages) = match mix {
            Mix::Sequential => next_in_stretch(index),
            _ => place(random),
        };
        resident.push(is_resident(map, page, pages));
        file.read_exact_at(&mut buffer[..pages * PAGE], (page * PAGE) as u64)
            .unwrap();
    }
    for resident in resident {
        say(if resident { "1" } else { "0" });
    }
    done();
}

/// Two pages per read; stretches cover the file once.
fn next_in_stretch(index: usize) -> (usize, usize) {
    const STRETCHES: usize = READS / READS_PER_STRETCH;
    // 37 shares no factor with the number of stretches, so each comes up once.
    let stretch = index / READS_PER_STRETCH * 37 % STRETCHES;
    (
        (stretch * READS_PER_STRETCH + index % READS_PER_STRETCH) * 2,
        2,
    )
}

/// A random place: one to eight pages.
fn place(random: u64) -> (usize, usize) {
    let pages = (random >> 40) % MAX_PAGES_PER_READ as u64 + 1;
    let page = random % RANDOM_PAGES;
    (
        usize::try_from(page).unwrap(),
        usize::try_from(pages).unwrap(),
    )
}

fn map(file: &File) -> *mut libc::c_void {
    // SAFETY: a read-only mapping of a file that nobody truncates, never read through.
    let map = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGES * PAGE,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(map, libc::MAP_FAILED);
    map
}

fn is_resident(map: *mut libc::c_void, page: usize, pages: usize) -> bool {
    let mut states = [0u8; MAX_PAGES_PER_READ];
    // SAFETY: pages of the mapping, one byte of answer each.
    let failed =
        unsafe { libc::mincore(map.byte_add(page * PAGE), pages * PAGE, states.as_mut_ptr()) };
    assert_eq!(failed, 0);
    states[..pages].iter().all(|state| state & 1 == 1)
}

/// Advice leaves pages that are being written or have just been; it is repeated until nearly all
/// are gone.
pub(crate) fn evict(file: &File, map: *mut libc::c_void, pages: usize) {
    let mut states = vec![0u8; pages];
    for _ in 0..200 {
        file.sync_all().unwrap();
        // SAFETY: advice on our own file; the mapping has `pages` pages, one byte of answer each.
        let failed = unsafe {
            libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED)
                + libc::mincore(map, pages * PAGE, states.as_mut_ptr())
        };
        assert_eq!(failed, 0);
        if states.iter().filter(|state| **state & 1 == 1).count() < pages / 50 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the file stays in the page cache");
}
