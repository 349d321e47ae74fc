//! One I/O: a call of a process on a file, or a request to a disk.

use strum::{EnumString, IntoStaticStr, VariantArray};

const PAGE_BYTES: u64 = 4096;

/// The longest latency recorded in runs of earlier versions; longer ones are [`IoFlags::LATENCY_SATURATED`].
pub const CUT_OFF_LATENCY_NS: u64 = u32::MAX as u64;

/// What made the I/O. The numbers are stored in run directories and in the records of the eBPF program
/// (`trace/bpf/record.h`): never renumber, only add.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum IoOp {
    Read = 1,
    #[strum(serialize = "pread64")]
    Pread = 2,
    Readv = 3,
    Preadv = 4,
    Preadv2 = 5,
    Write = 6,
    #[strum(serialize = "pwrite64")]
    Pwrite = 7,
    Writev = 8,
    Pwritev = 9,
    Pwritev2 = 10,
    Fsync = 11,
    Fdatasync = 12,
    SyncFileRange = 13,
    Msync = 14,
    #[strum(serialize = "io_uring_read")]
    UringRead = 15,
    #[strum(serialize = "io_uring_write")]
    UringWrite = 16,
    #[strum(serialize = "io_uring_fsync")]
    UringFsync = 17,
    AioRead = 18,
    AioWrite = 19,
    AioFsync = 20,
    /// A page of a mapped file had to be read (a major fault).
    MmapFault = 21,
    BlockRead = 22,
    BlockWrite = 23,
    BlockFlush = 24,
    BlockDiscard = 25,
}

/// Where an I/O was seen. One read of a file may cause none or many requests to a disk, so figures of the two
/// are never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoLayer {
    /// Calls between a process and the kernel.
    File,
    /// Requests between the kernel and a disk.
    Device,
}

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum IoKind {
    Read,
    Write,
    /// Waits until written data is safe (`fsync` and similar calls, flushes of a disk).
    Sync,
    Discard,
}

impl IoKind {
    /// Returns the name shown to people.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl IoOp {
    /// All operations, in the order of their numbers.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the operation with this stored number, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code.checked_sub(1)?)).copied()
    }

    /// Returns the operation with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the layer at which it is seen.
    pub fn layer(self) -> IoLayer {
        if (self as u8) < Self::BlockRead as u8 {
            IoLayer::File
        } else {
            IoLayer::Device
        }
    }

    /// Returns what it does.
    pub fn kind(self) -> IoKind {
        match self {
            Self::Read
            | Self::Pread
            | Self::Readv
            | Self::Preadv
            | Self::Preadv2
            | Self::UringRead
            | Self::AioRead
            | Self::MmapFault
            | Self::BlockRead => IoKind::Read,
            Self::Write
            | Self::Pwrite
            | Self::Writev
            | Self::Pwritev
            | Self::Pwritev2
            | Self::UringWrite
            | Self::AioWrite
            | Self::BlockWrite => IoKind::Write,
            Self::Fsync
            | Self::Fdatasync
            | Self::SyncFileRange
            | Self::Msync
            | Self::UringFsync
            | Self::AioFsync
            | Self::BlockFlush => IoKind::Sync,
            Self::BlockDiscard => IoKind::Discard,
        }
    }

    /// Returns whether a process reads a file.
    pub fn is_read(self) -> bool {
        self.layer() == IoLayer::File && self.kind() == IoKind::Read
    }

    /// Returns whether a process writes a file.
    pub fn is_write(self) -> bool {
        self.layer() == IoLayer::File && self.kind() == IoKind::Write
    }

    /// Returns the word stored in `io.parquet`: for a system call, its name as in its manual page.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Facts about one event, one bit each. Stored: never renumber, only add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoFlags(pub u16);

impl IoFlags {
    /// The thread slept during the call (its voluntary context switches rose).
    pub const WAITED: u16 = 1;
    /// The call made this thread send reads to the block layer (read-ahead included).
    pub const DEVICE_READ: u16 = 1 << 1;
    /// The latency is a lower bound. Only in runs of earlier versions, whose kernel records ended at 4.29 s.
    pub const LATENCY_SATURATED: u16 = 1 << 2;
    /// The offset is the file's own position (plain `read`/`write`), not an argument; it can be
    /// wrong when threads share the descriptor.
    pub const OFFSET_FROM_POSITION: u16 = 1 << 3;
    /// The file was open with O_DIRECT: the page cache was not used.
    pub const DIRECT: u16 = 1 << 4;
    /// The file was open with O_APPEND: the kernel chose the offset.
    pub const APPEND: u16 = 1 << 5;
    /// The device bytes did not fit the kernel record and are a lower bound.
    pub const DEVICE_BYTES_SATURATED: u16 = 1 << 6;
    /// It is not known whether the page cache had the bytes: the work may have been done by another thread
    /// (io_uring, libaio).
    pub const CACHE_UNKNOWN: u16 = 1 << 7;
    /// Set on a disk's request whose file and offset are those of the direct call that its thread was in; they
    /// could not be found from the memory.
    pub const FILE_FROM_CALL: u16 = 1 << 8;
    /// Set on a disk's request for filesystem metadata, including the filesystem's journal.
    pub const METADATA: u16 = 1 << 9;
    /// Set on a disk's request that nobody waits for yet.
    pub const READ_AHEAD: u16 = 1 << 10;
    /// Set on a disk's request that something waits for.
    pub const SYNCHRONOUS: u16 = 1 << 11;
    /// Set on a disk's request that writes past the disk's cache.
    pub const FORCE_UNIT_ACCESS: u16 = 1 << 12;

    /// Returns whether one of these bits is set.
    pub fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

/// Where the bytes of a read came from, as far as the thread's own counters show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheOutcome {
    /// Page-cache hit (it may have started read-ahead on the side).
    Hit,
    /// The thread read from the device and waited for it.
    Miss,
    /// The thread waited for pages that another thread, or earlier read-ahead, was reading.
    WaitedForOthers,
    /// O_DIRECT: no cache involved.
    Direct,
}

/// The place of a request on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockRequest {
    /// The disk, `major:minor`, as in /proc/diskstats.
    pub disk_major: u32,
    pub disk_minor: u32,
    /// First 512-byte sector, counted from the start of the disk.
    pub sector: u64,
}

/// One I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoEvent {
    /// Start, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    /// Process id (thread group id) as numbered by the host's first PID namespace.
    pub pid: u32,
    /// Thread id, numbered likewise. For a disk's request: the thread that issued it, which may belong to the
    /// kernel.
    pub tid: u32,
    /// Key into the run's files ([`crate::FileRecord`]).
    pub file_id: u32,
    pub op: IoOp,
    pub flags: IoFlags,
    /// Byte offset in the file; `None` if it could not be found out.
    pub offset: Option<u64>,
    /// Bytes requested. For the vectored calls it equals the bytes transferred.
    pub length: u32,
    /// Duration of the call or the fault, or the time from the request's issue to its completion; ns.
    pub latency_ns: u64,
    /// Bytes transferred (0 for syncs, which transfer none), or the negative errno.
    pub result: i32,
    /// Bytes this call sent to the block layer for reading (read-ahead included).
    pub device_read_bytes: u32,
    /// Set for operations of [`IoLayer::Device`] only.
    pub request: Option<BlockRequest>,
}

impl IoEvent {
    /// Returns whether the call or request took at least `latency_ns`, but it is not known how much longer.
    pub fn is_cut_off(&self) -> bool {
        self.flags.has(IoFlags::LATENCY_SATURATED)
    }

    /// Returns the bytes transferred (0 on error).
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.result).unwrap_or(0)
    }

    /// Returns the cache outcome of a read; `None` for writes, failed calls and reads for which it cannot be
    /// known.
    ///
    /// A thread that slept missed; so did one that had the device read no more than the thread itself asked
    /// for, because a fast device can answer before the thread falls asleep. More device bytes without sleep
    /// are read-ahead, started on the side by a hit. Of 24,000 reads each of three mixes (random, default
    /// read-ahead, sequential stretches), 99.9 % or more must agree with `mincore` (`trace/tests`); measured:
    /// all, 99.95 %, all. The remaining errors are small read-aheads started by a hit, and misses with
    /// read-ahead that the device answered before the thread slept.
    pub fn cache_outcome(&self) -> Option<CacheOutcome> {
        let has = |bit| self.flags.has(bit);
        if !self.op.is_read() || self.result < 0 {
            return None;
        }
        if has(IoFlags::CACHE_UNKNOWN) && !has(IoFlags::DIRECT) {
            return None;
        }
        // An unaligned read touches one page more than its length suggests.
        let asked_for = self.bytes().next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        let without_read_ahead = u64::from(self.device_read_bytes) <= asked_for;
        Some(if has(IoFlags::DIRECT) {
            CacheOutcome::Direct
        } else if has(IoFlags::DEVICE_READ) && (has(IoFlags::WAITED) || without_read_ahead) {
            CacheOutcome::Miss
        } else if has(IoFlags::WAITED) {
            CacheOutcome::WaitedForOthers
        } else {
            CacheOutcome::Hit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes() {
        let outcome = |flags, device_read_bytes| {
            let event = IoEvent {
                t_ns: 0,
                pid: 1,
                tid: 1,
                file_id: 0,
                op: IoOp::Pread,
                flags: IoFlags(flags),
                offset: Some(100),
                length: 32_768,
                latency_ns: 1,
                result: 32_768,
                device_read_bytes,
                request: None,
            };
            event.cache_outcome().unwrap()
        };
        let (waited, device) = (IoFlags::WAITED, IoFlags::DEVICE_READ);
        assert_eq!(outcome(0, 0), CacheOutcome::Hit);
        assert_eq!(
            outcome(device, 1 << 20),
            CacheOutcome::Hit,
            "read-ahead on the side"
        );
        assert_eq!(
            outcome(device, 36_864),
            CacheOutcome::Miss,
            "a fast device, nine pages"
        );
        assert_eq!(outcome(device | waited, 1 << 20), CacheOutcome::Miss);
        assert_eq!(outcome(waited, 0), CacheOutcome::WaitedForOthers);
        assert_eq!(
            outcome(IoFlags::DIRECT | device | waited, 4096),
            CacheOutcome::Direct
        );
    }

    #[test]
    fn codes_and_names_find_their_operation() {
        for &op in IoOp::ALL {
            assert_eq!(IoOp::from_code(op as u8), Some(op));
            assert_eq!(IoOp::from_name(op.name()), Some(op));
            assert!(!(op.is_read() && op.is_write()));
        }
        assert_eq!((IoOp::from_code(0), IoOp::from_code(26)), (None, None));
        let names = IoOp::ALL.iter().map(|op| op.name());
        assert_eq!(
            names.collect::<Vec<_>>().join(" "),
            "read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 fsync fdatasync \
             sync_file_range msync io_uring_read io_uring_write io_uring_fsync aio_read aio_write \
             aio_fsync mmap_fault block_read block_write block_flush block_discard"
        );
        assert!(!IoOp::BlockRead.is_read() && IoOp::MmapFault.is_read());
    }
}
