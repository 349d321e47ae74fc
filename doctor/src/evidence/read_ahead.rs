//! Works out which read-ahead suits a pattern of reads, and what it read that nobody wanted.

use seekscope_pattern::FileTrace;

/// Read-ahead for single documents: the production notes' 8 to 32 sectors of 512 bytes.
pub(crate) const RANDOM_KIB: u64 = 16;
/// Read-ahead for streams: enough that a request's fixed time is small beside its transfer time on all but the
/// fastest disks.
pub(crate) const STREAM_KIB: u64 = 1024;

/// Returns the bytes of a file that the server had the disk read and did not request: at most what its misses
/// had read beyond their requests. For a file that is read in order that would mean nothing, because a stream
/// requests what was read ahead a moment later; there the disk's requests are used, where they were recorded.
///
/// Those requests alone are not enough: other processes read files of their own on the same disk, and may
/// read the server's, as backups do.
pub(crate) fn unwanted_bytes(file: &FileTrace) -> u64 {
    let source = &file.read_bytes_by_source;
    let asked = source.miss_bytes + source.waited_bytes + source.direct_bytes;
    let beyond = source.device_read_bytes.saturating_sub(asked);
    match file.device.reads.calls {
        0 => beyond,
        _ => beyond.min(file.device.never_asked_bytes),
    }
}
