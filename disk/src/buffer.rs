//! Memory that direct I/O accepts: page-aligned, and outside the allocator so that its size is
//! exactly what was asked for.

use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::DiskError;

/// Zeroed, page-aligned, private memory.
#[derive(Debug)]
pub struct AlignedBuffer {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, like a Box<[u8]>.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `length` bytes (at least one).
    pub fn new(length: usize) -> Result<Self, DiskError> {
        let length = length.max(1);
        let failed = |source| DiskError::Memory {
            bytes: length as u64,
            source,
        };
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(|e| failed(e.into()))?;
        let address = NonNull::new(address.cast())
            .ok_or_else(|| failed(std::io::ErrorKind::OutOfMemory.into()))?;
        Ok(Self { address, length })
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` bytes (none once it was given up), initialised to zero by
        // the kernel, and borrowed exclusively through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.length) }
    }

    /// Gives the memory up for good: something outside may still write into it.
    pub(crate) fn leak(&mut self) {
        self.length = 0;
    }

    /// Its address, for handing parts of it to the kernel.
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
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}
