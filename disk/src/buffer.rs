//! Memory suitable for direct I/O: page-aligned, and mapped outside the allocator so that its size
//! is exactly what was asked for.
//!
//! Large buffers are placed in huge pages where possible. Scattered over small pages, a read of 1
//! MiB has more pieces than a request to a disk may have (254 on virtio), and becomes two requests:
//! under a limit on requests its bandwidth would look like half of what read-ahead gets.

use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::DiskError;

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The length from which a read can have more pieces than a request.
const LARGE_BYTES: usize = 512 << 10;

/// Zeroed, page-aligned, private memory.
#[derive(Debug)]
pub struct AlignedBuffer {
    address: NonNull<u8>,
    length: usize,
    /// Length of the mapping from `address` on, at least `length`.
    mapped: usize,
}

// SAFETY: the mapping belongs to this value alone, like a Box<[u8]>.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps `length` bytes (at least one).
    pub fn new(length: usize) -> Result<Self, DiskError> {
        let length = length.max(1);
        let failed = |source| DiskError::Memory {
            bytes: length as u64,
            source,
        };
        // From Linux 6.7 on, kernels align mappings of whole huge pages.
        let mapped = match length {
            LARGE_BYTES.. => length.checked_next_multiple_of(HUGE_PAGE_BYTES),
            _ => None,
        };
        let mapped = mapped.unwrap_or(length);
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(|e| failed(e.into()))?;
        if mapped > length || length >= HUGE_PAGE_BYTES {
            // SAFETY: the mapping was just made with this length. Failed advice is not worth an
            // error.
            let _ = unsafe { madvise(address, mapped, Advice::LinuxHugepage) };
        }
        let address = NonNull::new(address.cast())
            .ok_or_else(|| failed(std::io::ErrorKind::OutOfMemory.into()))?;
        Ok(Self {
            address,
            length,
            mapped,
        })
    }

    /// Returns its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` bytes (none once it was given up), initialised to zero by
        // the kernel, and borrowed exclusively through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.length) }
    }

    /// Gives the memory up for good, because something outside may still write into it.
    pub(crate) fn leak(&mut self) {
        self.length = 0;
    }

    /// Returns its address, for handing parts of it to the kernel.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.address.as_ptr()
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.length == 0 {
            return;
        }
        // SAFETY: made by mmap in `new` with this length; nothing refers to it any more.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.mapped) };
    }
}
