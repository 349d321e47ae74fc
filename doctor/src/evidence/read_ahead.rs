//! What reads of a pattern want of read-ahead, and what it brought that nobody wanted.

use seekscope_pattern::FileTrace;

/// Of single documents: the production notes' 8 to 32 sectors of 512 bytes.
pub(crate) const RANDOM_KIB: u64 = 16;
/// Of streams: enough that a request's fixed time is small beside its bytes' on all but the fastest disks.
pub(crate) const STREAM_KIB: u64 = 1024;

/// Bytes of a file that the disk read and nobody asked for: by the disk's requests where they were
/// recorded, else what misses had read beyond what they asked for. Of a file that is read in order the
/// latter means nothing: a stream asks for what was read ahead a moment later.
pub(crate) fn unwanted_bytes(file: &FileTrace) -> u64 {
    if file.device.reads.calls > 0 {
        return file.device.never_asked_bytes;
    }
    let source = &file.read_bytes_by_source;
    let asked = source.miss_bytes + source.waited_bytes + source.direct_bytes;
    source.device_read_bytes.saturating_sub(asked)
}
