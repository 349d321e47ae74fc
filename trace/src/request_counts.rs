//! Requests of disks that the kernel programs counted, recorded or not (`bpf/block.h`).

use seekscope_run::{CountedRequests, IoKind, IoOp, RequestCause};

use crate::disks::DiskNumber;

/// Operations counted separately, in the order of the table.
const OPS: [IoOp; 4] = [
    IoOp::BlockRead,
    IoOp::BlockWrite,
    IoOp::BlockFlush,
    IoOp::BlockDiscard,
];

/// Sums the requests and bytes of one entry over CPUs. A CPU may have subtracted more than it
/// counted itself, so sums wrap.
pub(crate) fn sum_of_cpus(per_cpu: &[Vec<u8>]) -> (u64, u64) {
    let word = |value: &[u8], at: usize| {
        let bytes = value.get(at..at + 8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    per_cpu.iter().fold((0, 0), |(requests, bytes), value| {
        (
            requests.wrapping_add(word(value, 0)),
            bytes.wrapping_add(word(value, 8)),
        )
    })
}

/// Collects what the table holds about `disks`; `entry` reads one of its entries. Causes without
/// requests are left out.
pub(crate) fn collect(
    disks: &[DiskNumber],
    entry: impl Fn(u32) -> (u64, u64),
) -> Vec<CountedRequests> {
    let mut all = Vec::new();
    let mut index = 0;
    for disk in disks {
        for cause in RequestCause::ALL {
            let mut counted = CountedRequests {
                disk_major: disk >> 20,
                disk_minor: disk & 0xf_ffff,
                cause,
                reads: 0,
                read_bytes: 0,
                writes: 0,
                write_bytes: 0,
                flushes: 0,
                discards: 0,
                discard_bytes: 0,
            };
            for op in OPS {
                let (requests, bytes) = entry(index);
                index += 1;
                match op.kind() {
                    IoKind::Read => (counted.reads, counted.read_bytes) = (requests, bytes),
                    IoKind::Write => (counted.writes, counted.write_bytes) = (requests, bytes),
                    IoKind::Sync => counted.flushes = requests,
                    IoKind::Discard => {
                        (counted.discards, counted.discard_bytes) = (requests, bytes);
                    }
                }
            }
            if counted.requests() > 0 {
                all.push(counted);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_ordered_by_disk_cause_and_operation() {
        let disks = [254 << 20, 8 << 20 | 16];
        // The second disk's other files: reads, writes, flushes, discards.
        let base = 4 * 4 + 4;
        let entry = |index: u32| match index.checked_sub(base) {
            Some(op @ 0..4) => (u64::from(op) + 1, 4096),
            _ => (0, 0),
        };
        let counted = collect(&disks, entry);
        assert_eq!(counted.len(), 1);
        let one = &counted[0];
        assert_eq!((one.disk_major, one.disk_minor), (8, 16));
        assert_eq!(one.cause, RequestCause::OtherFiles);
        assert_eq!(
            (one.reads, one.writes, one.flushes, one.discards),
            (1, 2, 3, 4)
        );
        assert_eq!((one.read_bytes, one.discard_bytes), (4096, 4096));
    }

    #[test]
    fn what_one_cpu_counted_another_may_take_back() {
        let value =
            |requests: i64, bytes: i64| [requests.to_ne_bytes(), bytes.to_ne_bytes()].concat();
        assert_eq!(
            sum_of_cpus(&[value(7, 7 * 4096), value(-2, -2 * 4096)]),
            (5, 5 * 4096)
        );
    }
}
