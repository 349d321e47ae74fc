//! The ioctl with which a filesystem tells where a file's bytes lie (FIEMAP,
//! Documentation/filesystems/fiemap.rst and include/uapi/linux/fiemap.h of Linux).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Extents requested at once.
const BATCH: u32 = 512;
/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

/// `FIEMAP_EXTENT_*`.
pub(crate) const LAST: u32 = 0x1;
pub(crate) const UNKNOWN: u32 = 0x2;
pub(crate) const DELALLOC: u32 = 0x4;
pub(crate) const ENCODED: u32 = 0x8;
pub(crate) const INLINE: u32 = 0x200;
pub(crate) const TAIL: u32 = 0x400;

/// `struct fiemap_extent`; bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawExtent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    pub(crate) reserved64: [u64; 2],
    pub(crate) flags: u32,
    pub(crate) reserved: [u32; 3],
}

/// `struct fiemap` with its array of extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    /// 0, without FIEMAP_FLAG_SYNC, which would write out what the server has not yet written.
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH as usize],
}

/// Returns the next extents from `start` on, in file order; empty at the end of the file.
pub(crate) fn extents_from(file: &File, start: u64) -> io::Result<Vec<RawExtent>> {
    let mut request = Box::new(Request {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped_extents: 0,
        extent_count: BATCH,
        reserved: 0,
        extents: [RawExtent::default(); BATCH as usize],
    });
    // SAFETY: the ioctl reads the header and writes the header and at most `extent_count` extents;
    // the structure has room for as many, is laid out as the kernel's, and outlives the call.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *request) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = request.mapped_extents.min(BATCH) as usize;
    Ok(request.extents[..mapped].to_vec())
}
