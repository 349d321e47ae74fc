//! Loads and stores on a shared mapping, like the storage engine of the first MongoDB versions.

use std::io;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Once;

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use seekscope_run::ReadAdvice;

use super::one_at_a_time::{Extent, OneAtATime};
use crate::job::Job;
use crate::offsets::Access;
use crate::{DiskError, TestFile};

/// The least size of a page: one byte is touched in each.
const PAGE_BYTES: u64 = 4096;
/// The byte stored in each page that is written, as mongoperf did.
const MARK: u8 = 3;

/// A file mapped into memory.
#[derive(Debug)]
pub(crate) struct Mapping<'a> {
    address: NonNull<u8>,
    length: usize,
    file: PhantomData<&'a TestFile>,
}

// SAFETY: the mapping is shared memory of a file that other threads and processes may change at any
// time anyway; it is only accessed by single volatile bytes.
unsafe impl Send for Mapping<'_> {}
// SAFETY: see above.
unsafe impl Sync for Mapping<'_> {}

impl<'a> Mapping<'a> {
    /// Maps all of the file, also for writing if it is ours.
    pub(crate) fn new(file: &'a TestFile, advice: ReadAdvice) -> Result<Self, DiskError> {
        let length = usize::try_from(file.bytes()).unwrap_or(usize::MAX);
        let failed = |e: rustix::io::Errno| DiskError::on("map", file.path())(e.into());
        let access = match file.is_own() {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, file, 0) }
            .map_err(failed)?;
        let address =
            NonNull::new(address.cast()).ok_or_else(|| failed(rustix::io::Errno::NOMEM))?;
        let mapping = Self {
            address,
            length,
            file: PhantomData,
        };
        let advice = match advice {
            ReadAdvice::Normal => Advice::Normal,
            ReadAdvice::Random => Advice::Random,
            ReadAdvice::Sequential => Advice::Sequential,
        };
        // SAFETY: the mapping was just made; these kinds of advice change no contents.
        unsafe { madvise(mapping.address.as_ptr().cast(), length, advice) }.map_err(failed)?;
        Ok(mapping)
    }

    /// Returns the address of the byte at `offset`; `None` if it lies outside.
    fn at(&self, offset: u64) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok().filter(|o| *o < self.length)?;
        // SAFETY: inside the mapping, by the line above.
        Some(unsafe { self.address.as_ptr().add(offset) })
    }

    /// Reads one byte in each page of a block.
    pub(crate) fn touch(&self, offset: u64, bytes: u64) {
        for at in pages(offset, bytes) {
            if let Some(byte) = self.at(at) {
                // SAFETY: inside the mapping; volatile, since the kernel may change it meanwhile.
                std::hint::black_box(unsafe { byte.read_volatile() });
            }
        }
    }

    /// Writes one byte in each page of a block. The file must be ours.
    pub(crate) fn mark(&self, offset: u64, bytes: u64) {
        for at in pages(offset, bytes) {
            if let Some(byte) = self.at(at) {
                // SAFETY: inside the mapping, which is writable for files that are ours; jobs that
                // write others are refused before this (`Job::check_on`).
                unsafe { byte.write_volatile(MARK) };
            }
        }
    }

    /// Waits until the pages of a range are on the disk.
    pub(crate) fn sync(&self, offset: u64, bytes: u64) -> io::Result<()> {
        // Pages may be larger than the units that are touched one by one.
        let start = offset - offset % rustix::param::page_size() as u64;
        let Some(address) = self.at(start) else {
            return Ok(());
        };
        let length = (offset + bytes).min(self.length as u64) - start;
        let length = usize::try_from(length).unwrap_or(self.length);
        // SAFETY: a part of the mapping; msync changes no contents.
        Ok(unsafe { msync(address.cast(), length, MsyncFlags::SYNC) }?)
    }
}

fn pages(offset: u64, bytes: u64) -> impl Iterator<Item = u64> {
    let step = usize::try_from(PAGE_BYTES).unwrap_or(4096);
    (offset..offset + bytes.max(1)).step_by(step)
}

impl Drop for Mapping<'_> {
    fn drop(&mut self) {
        // SAFETY: made by mmap in `new` with this length; nothing refers to it any more.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}

pub(super) struct MmapEngine<'a> {
    mapping: Mapping<'a>,
    block_bytes: u64,
}

impl<'a> MmapEngine<'a> {
    pub(super) fn prepare(job: &Job, file: &'a TestFile) -> Result<Self, DiskError> {
        Ok(Self {
            mapping: Mapping::new(file, job.facts.advice)?,
            block_bytes: job.facts.block_bytes,
        })
    }
}

impl OneAtATime for MmapEngine<'_> {
    fn access(&mut self, access: Access) -> Result<(), DiskError> {
        if access.is_write {
            self.mapping.mark(access.offset, self.block_bytes);
        } else {
            self.mapping.touch(access.offset, self.block_bytes);
        }
        Ok(())
    }

    fn sync(&mut self, extent: Extent) -> io::Result<()> {
        match extent {
            Extent::Block(offset) => self.mapping.sync(offset, self.block_bytes),
            Extent::All => self.mapping.sync(0, self.mapping.length as u64),
        }
    }
}

/// Makes the process end with a message and exit code 1 on SIGBUS, which otherwise ends it silently
/// when the disk fails to deliver a page of a mapping. Nothing of ours is left behind, because the
/// file has no name. To be called once per process, before jobs of the mmap engine.
pub fn end_process_on_bus_error() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let handler: extern "C" fn(libc::c_int) = on_bus_error;
        // SAFETY: the handler makes only calls that are safe in signal handlers (write, _exit).
        unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) };
    });
}

extern "C" fn on_bus_error(_signal: libc::c_int) {
    const MESSAGE: &[u8] = b"seekscope: the disk failed to deliver a page of the mapped file, or \
        the file has shrunk; look into the kernel log (dmesg) for the device's own words\n";
    // SAFETY: both are async-signal-safe (signal-safety(7)) and the message is static.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1);
    }
}
