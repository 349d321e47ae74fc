//! Typical disks, for use where none was measured. They are labelled as such wherever a figure made
//! with them is shown: a prediction for a typical disk ranks files, it does not promise seconds.

use seekscope_run::{DepthPoint, DeviceModel, TokenBucket};

const KIB: u64 = 1024;
const BLOCK_BYTES: u64 = 4 * KIB;

/// Linux's default, `read_ahead_kb` 128.
const READ_AHEAD_BYTES: u64 = 128 * KIB;

/// Linux's default limit, `max_sectors_kb` 1280.
const REQUEST_BYTES_MAX: u64 = 1280 * KIB;

/// Copying from the page cache at 10 GB/s, and 5 µs to allocate pages and wake the reader: typical
/// of current server processors, and small compared with all but the last disk.
const CACHED_NS_PER_BYTE: f64 = 0.1;
const MISS_NS: f64 = 5_000.0;

/// A kind of disk that people know.
#[derive(Debug, Clone, PartialEq)]
pub struct TypicalDisk {
    /// Name by which it is chosen: "hdd", "cloud", "ssd", "nvme".
    pub name: &'static str,
    /// Label, which is also in its model, e.g. "typical hard disk (120 IOPS, 150 MB/s)".
    pub label: &'static str,
    pub model: DeviceModel,
}

/// Returns all typical disks, the slowest first.
pub fn all() -> [TypicalDisk; 4] {
    [hdd(), cloud_volume(), sata_ssd(), nvme()]
}

/// Returns the disk with this name, if there is one.
pub fn by_name(name: &str) -> Option<TypicalDisk> {
    all().into_iter().find(|disk| disk.name == name)
}

/// A 7,200 rpm hard disk: 4.2 ms for half a turn and 4.1 ms of mean seek make 120 reads a second;
/// 150 MB/s in the middle tracks, as data sheets of 3.5" disks of the 2010s state (180 to 210 outside,
/// 90 to 110 inside). Several requests at once gain what sorting them does.
pub fn hdd() -> TypicalDisk {
    disk(
        "hdd",
        "typical hard disk (120 IOPS, 150 MB/s)",
        Rates {
            latency_ns: 8.3e6,
            bytes_per_s: 150e6,
            stream_bytes_per_s: 150e6,
            iops: &[(1, 120.0), (4, 160.0), (32, 220.0)],
        },
    )
}

/// A general-purpose cloud volume at its base rate, as Amazon's gp3: 3,000 requests and 125 MB a
/// second, requests of up to 256 KiB counting as one; about 0.7 ms per request, which providers state
/// as "single-digit milliseconds".
pub fn cloud_volume() -> TypicalDisk {
    let mut typical = disk(
        "cloud",
        "typical cloud volume (3,000 IOPS, 125 MB/s)",
        Rates {
            latency_ns: 700_000.0,
            bytes_per_s: 125e6,
            stream_bytes_per_s: 125e6,
            iops: &[(1, 1_400.0), (2, 2_800.0), (4, 3_000.0), (32, 3_000.0)],
        },
    );
    let steady = |per_s| Some(TokenBucket { per_s, burst: 0.0 });
    typical.model.iops_bucket = steady(3_000.0);
    typical.model.bytes_bucket = steady(125e6);
    typical.model.request_bytes_max = 256 * KIB;
    typical
}

/// A SATA SSD: the link's 550 MB/s, 90 µs per 4 KiB, 90,000 reads a second at depth 32, as data sheets
/// state (97,000 at most for several makers).
pub fn sata_ssd() -> TypicalDisk {
    disk(
        "ssd",
        "typical SATA SSD (90 µs, 550 MB/s)",
        Rates {
            latency_ns: 80_000.0,
            bytes_per_s: 550e6,
            stream_bytes_per_s: 450e6,
            iops: &[(1, 11_000.0), (4, 40_000.0), (32, 90_000.0)],
        },
    )
}

/// An NVMe SSD of PCIe 3.0 x4: 3 GB/s, 80 µs per 4 KiB (the flash's own read time), 400,000 reads a
/// second at depth 64.
pub fn nvme() -> TypicalDisk {
    disk(
        "nvme",
        "typical NVMe SSD (80 µs, 3 GB/s)",
        Rates {
            latency_ns: 75_000.0,
            bytes_per_s: 3e9,
            stream_bytes_per_s: 2e9,
            iops: &[(1, 12_500.0), (8, 95_000.0), (64, 400_000.0)],
        },
    )
}

/// Returns the model of a disk of which no more is known than what one more request costs, ns, and the rate of
/// long reads; several requests at a time are served no faster.
pub fn of_costs(request_ns: f64, bytes_per_s: f64, read_ahead_bytes: u64) -> DeviceModel {
    let rates = Rates {
        latency_ns: request_ns,
        bytes_per_s,
        stream_bytes_per_s: bytes_per_s,
        iops: &[(1, 1e9 / request_ns.max(1.0))],
    };
    DeviceModel {
        read_ahead_bytes,
        ..disk("tried", "the disk as it was tried", rates).model
    }
}

struct Rates<'a> {
    /// Latency of a short read.
    latency_ns: f64,
    /// Rates with enough reads in flight, and with one large request at a time.
    bytes_per_s: f64,
    stream_bytes_per_s: f64,
    /// Depth and reads of 4 KiB per second.
    iops: &'a [(u32, f64)],
}

fn disk(name: &'static str, label: &'static str, rates: Rates<'_>) -> TypicalDisk {
    let depths = rates.iops.iter().map(|&(depth, iops)| DepthPoint {
        block_bytes: BLOCK_BYTES,
        depth,
        iops,
        p50_ns: 0,
        p99_ns: 0,
    });
    let depths: Vec<DepthPoint> = depths.collect();
    TypicalDisk {
        name,
        label,
        model: DeviceModel {
            disk: label.into(),
            direct: true,
            l0_ns: rates.latency_ns,
            ns_per_byte: 1e9 / rates.bytes_per_s,
            parallelism: seekscope_disk::model::knee(&depths).unwrap_or(1),
            depths,
            sequential_bytes_per_s: rates.stream_bytes_per_s,
            bytes_per_s_max: rates.bytes_per_s,
            buffered_bytes_per_s: rates.stream_bytes_per_s,
            cached_ns_per_byte: CACHED_NS_PER_BYTE,
            miss_ns: MISS_NS,
            read_ahead_bytes: READ_AHEAD_BYTES,
            request_bytes_max: REQUEST_BYTES_MAX,
            ..DeviceModel::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use seekscope_disk::model::{Order, PredictOptions, Region, predict};

    use super::*;

    /// 32 KiB blocks per second, 2048 of 32 GiB, from a cold cache.
    fn per_s(disk: &TypicalDisk, order: Order) -> f64 {
        let region = Region {
            file: 1,
            offset: 0,
            blocks: 1 << 20,
            block_bytes: 32 * KIB,
        };
        let options = PredictOptions::with_memory(1 << 30);
        let accesses = region.reads_up_to(order, 1, 2048);
        let prediction = predict(&disk.model, &accesses, &options);
        accesses.len() as f64 / (prediction.elapsed_ns as f64 / 1e9)
    }

    #[test]
    fn they_do_what_their_labels_say() {
        let random = |disk| per_s(&disk, Order::Shuffled);
        let bytes_per_s = |disk| per_s(&disk, Order::Sequential) * 32_768.0;
        assert!((100.0..125.0).contains(&random(hdd())));
        assert!((120e6..151e6).contains(&bytes_per_s(hdd())));
        assert!((800.0..1_400.0).contains(&random(cloud_volume())));
        assert!((100e6..126e6).contains(&bytes_per_s(cloud_volume())));
        assert!((4_000.0..8_000.0).contains(&random(sata_ssd())));
        assert!((350e6..551e6).contains(&bytes_per_s(sata_ssd())));
        assert!((8_000.0..12_000.0).contains(&random(nvme())));
        assert!((1e9..3e9).contains(&bytes_per_s(nvme())));
    }

    #[test]
    fn names_are_found() {
        for disk in all() {
            assert_eq!(by_name(disk.name), Some(disk.clone()));
            assert_eq!(disk.model.disk, disk.label);
        }
        assert_eq!(by_name("tape"), None);
    }
}
