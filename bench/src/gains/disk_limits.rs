//! Limits to what a server may ask of its disk, as volumes of a cloud have them: a control group's.

use std::io;
use std::path::Path;

use seekscope_run::DeviceFacts;
use seekscope_server::slow_disk::SlowDiskSpec;

const WRITE_IOPS: &str = "blkio.throttle.write_iops_device";
const WRITE_BYTES: &str = "blkio.throttle.write_bps_device";
/// Far beyond what a disk of today can do.
const READ_IOPS_UNLIMITED: u64 = 1_000_000;
const READ_BYTES_PER_S_UNLIMITED: u64 = 100_000_000_000;

/// How many requests and bytes a second; `None` is as many as the disk can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct DiskLimits {
    pub read_iops: Option<u64>,
    pub read_bytes_per_s: Option<u64>,
    /// Control groups of version 1 charge what a sync writes to whoever syncs: checkpoints, and the journal.
    pub write_iops: Option<u64>,
    pub write_bytes_per_s: Option<u64>,
}

impl DiskLimits {
    /// The disk as it is.
    pub const PLAIN: Self = Self {
        read_iops: None,
        read_bytes_per_s: None,
        write_iops: None,
        write_bytes_per_s: None,
    };

    /// A hard disk of 7,200 revolutions per minute, or a small volume in a cloud.
    pub const HARD_DISK: Self = Self {
        read_iops: Some(150),
        read_bytes_per_s: Some(150_000_000),
        ..Self::PLAIN
    };

    /// A volume that grants requests sparingly and bytes freely.
    pub const FEW_REQUESTS: Self = Self {
        read_iops: Some(1500),
        ..Self::PLAIN
    };

    /// A volume that grants bytes sparingly and requests freely.
    pub const FEW_BYTES: Self = Self {
        read_bytes_per_s: Some(20_000_000),
        ..Self::PLAIN
    };

    /// Those that scans are tried on.
    pub const ALL: [Self; 4] = [
        Self::PLAIN,
        Self::HARD_DISK,
        Self::FEW_REQUESTS,
        Self::FEW_BYTES,
    ];

    /// Returns the name of the disk, which tells its read limits.
    pub fn name(self) -> &'static str {
        match self {
            Self::HARD_DISK => "150 IOPS",
            Self::FEW_REQUESTS => "1500 IOPS",
            Self::FEW_BYTES => "20 MB/s",
            Self::PLAIN => "plain",
            _ => "limited",
        }
    }

    /// What a group for slow reads is made with; `None` where nothing is limited.
    pub(super) fn spec(self) -> Option<SlowDiskSpec> {
        (self != Self::PLAIN).then(|| SlowDiskSpec {
            name: "limited".into(),
            read_iops: self.read_iops.unwrap_or(READ_IOPS_UNLIMITED),
            read_bytes_per_s: self.read_bytes_per_s.unwrap_or(READ_BYTES_PER_S_UNLIMITED),
        })
    }

    /// Limits the writes of a group that [`Self::spec`] has made.
    pub(super) fn limit_writes(self, group: &Path, device: &DeviceFacts) -> io::Result<()> {
        let limits = [
            (WRITE_IOPS, self.write_iops),
            (WRITE_BYTES, self.write_bytes_per_s),
        ];
        for (file, limit) in limits {
            if let Some(per_s) = limit {
                let line = format!("{} {per_s}", device.counted_device());
                std::fs::write(group.join(file), line)?;
            }
        }
        Ok(())
    }
}
