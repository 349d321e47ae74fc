//! What to predict: lists of accesses, from a recorded trace or generated in a given order.

use std::collections::HashMap;

use seekscope_run::{IoEvent, IoFlags};
use seekscope_stats::shuffled::distinct;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    /// A write with its fdatasync.
    SyncedWrite,
}

/// A read or write of a file. Accesses of one stream follow one another, each issued when the last
/// has completed and its think time is over; streams run concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub file: u32,
    /// The stream, e.g. a thread.
    pub stream: u32,
    /// Offset in the file, bytes.
    pub offset: u64,
    pub length: u64,
    pub operation: Operation,
    /// Whether it bypasses the page cache (O_DIRECT).
    pub direct: bool,
    /// Time between the stream's last completion (or the beginning) and this access, ns.
    pub think_ns: u64,
}

/// The accesses of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceAccesses {
    /// Accesses in order of start time.
    pub accesses: Vec<Access>,
    /// Events left out because their offset is unknown.
    pub unknown_offset: u64,
    /// Events left out because they failed or moved no bytes.
    pub empty: u64,
    /// Events left out because no call can have moved this many bytes: the trace is damaged.
    pub impossible: u64,
}

/// The most bytes that the kernel moves in one call (MAX_RW_COUNT in linux/fs.h, with pages of 4
/// KiB).
pub const CALL_BYTES_MAX: u64 = 0x7fff_f000;

/// Returns the file reads and writes of a trace: a stream per thread, with the time that the thread
/// spent between its calls. The bytes are those transferred, not those requested.
pub fn accesses_of_trace(events: &[IoEvent]) -> TraceAccesses {
    let mut order: Vec<&IoEvent> = events
        .iter()
        .filter(|event| event.op.is_read() || event.op.is_write())
        .collect();
    order.sort_by_key(|event| event.t_ns);
    let began_ns = order.first().map_or(0, |event| event.t_ns);
    let mut trace = TraceAccesses::default();
    let mut last_end_ns: HashMap<u32, u64> = HashMap::new();
    for event in order {
        let length = event.bytes();
        let Some(offset) = event.offset else {
            trace.unknown_offset += 1;
            continue;
        };
        if length == 0 {
            trace.empty += 1;
            continue;
        }
        if length > CALL_BYTES_MAX {
            trace.impossible += 1;
            continue;
        }
        let end_ns = event.t_ns.saturating_add(event.latency_ns);
        let free_since = last_end_ns.insert(event.tid, end_ns).unwrap_or(began_ns);
        trace.accesses.push(Access {
            file: event.file_id,
            stream: event.tid,
            offset,
            length,
            operation: if event.op.is_read() {
                Operation::Read
            } else {
                Operation::Write
            },
            direct: event.flags.has(IoFlags::DIRECT),
            think_ns: event.t_ns.saturating_sub(free_since),
        });
    }
    trace
}

/// Removes the time between accesses, which leaves what the disk alone would take.
pub fn without_think_time(accesses: &mut [Access]) {
    for access in accesses {
        access.think_ns = 0;
    }
}

/// An order in which to read a region in blocks. All but [`Order::EveryNth`] visit each block once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Sequential,
    Shuffled,
    /// Runs of this many adjacent blocks, the runs shuffled.
    Runs(u64),
    Backwards,
    /// Every n-th block, forwards.
    EveryNth(u64),
}

/// A region of a file in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub file: u32,
    /// Where the region starts, bytes.
    pub offset: u64,
    pub blocks: u64,
    pub block_bytes: u64,
}

/// The number of units that are shuffled for a caller who wants only the first few: memory stays
/// within 32 MiB, and 128 GiB in blocks of 32 KiB are still drawn from evenly.
const SHUFFLED_UNITS_MIN: u64 = 1 << 22;

impl Region {
    /// Returns reads through the page cache in one stream, without think time.
    pub fn reads(&self, order: Order, seed: u64) -> Vec<Access> {
        self.reads_up_to(order, seed, u64::MAX)
    }

    /// Returns the first `max` of [`Self::reads`], without generating the others. Shuffled blocks
    /// and runs are drawn from the first 2²² of the region, or from as many as `max` needs if that
    /// is more, so in larger regions they are not the ones that [`Self::reads`] begins with. Empty
    /// for blocks of 0 bytes.
    pub fn reads_up_to(&self, order: Order, seed: u64, max: u64) -> Vec<Access> {
        if self.block_bytes == 0 {
            return Vec::new();
        }
        order
            .blocks(self.blocks, seed, max)
            .map(|block| Access {
                file: self.file,
                stream: 0,
                offset: block
                    .saturating_mul(self.block_bytes)
                    .saturating_add(self.offset),
                length: self.block_bytes,
                operation: Operation::Read,
                direct: false,
                think_ns: 0,
            })
            .collect()
    }
}

impl Order {
    /// Returns the first `max` of the blocks `0..count` in this order. A distance or length of 0
    /// counts as 1.
    fn blocks(self, count: u64, seed: u64, max: u64) -> Box<dyn Iterator<Item = u64>> {
        let max_items = usize::try_from(max).unwrap_or(usize::MAX);
        match self {
            Self::Sequential => Box::new((0..count).take(max_items)),
            Self::Backwards => Box::new((0..count).rev().take(max_items)),
            Self::EveryNth(distance) => {
                let distance = distance.max(1);
                let blocks = (0..count.div_ceil(distance)).map(move |step| step * distance);
                Box::new(blocks.take(max_items))
            }
            Self::Shuffled => Box::new(shuffled(count, seed, max).into_iter()),
            Self::Runs(length) => {
                let length = length.max(1);
                // One more run, as the last of the region may be shorter than the others.
                let runs = shuffled(
                    count.div_ceil(length),
                    seed,
                    (max / length).saturating_add(2),
                );
                let blocks = runs.into_iter().flat_map(move |run| {
                    let start = run * length;
                    start..count.min(start.saturating_add(length))
                });
                Box::new(blocks.take(max_items))
            }
        }
    }
}

/// Returns `wanted` of the numbers `0..count`, shuffled.
fn shuffled(count: u64, seed: u64, wanted: u64) -> Vec<u64> {
    let drawn_from = count.min(wanted.max(SHUFFLED_UNITS_MIN));
    distinct(drawn_from, wanted, seed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use seekscope_run::IoOp;

    use super::*;

    fn event(t_ns: u64, tid: u32, offset: Option<u64>, result: i32) -> IoEvent {
        IoEvent {
            t_ns,
            pid: 1,
            tid,
            file_id: 9,
            op: IoOp::Pread,
            flags: IoFlags(IoFlags::DIRECT),
            offset,
            length: 8192,
            latency_ns: 100,
            result,
            device_read_bytes: 0,
            request: None,
        }
    }

    #[test]
    fn traces_become_streams_with_think_time() {
        let write = IoEvent {
            op: IoOp::Pwrite,
            flags: IoFlags(0),
            ..event(1500, 1, Some(0), 10)
        };
        let events = [
            write,
            event(1000, 1, Some(4096), 8192),
            event(1040, 2, Some(0), 4096),
            event(1900, 2, None, 4096),
            event(1950, 2, Some(0), -5),
            event(1960, 2, Some(0), 0x7fff_f001),
        ];
        let trace = accesses_of_trace(&events);
        assert_eq!(
            (trace.unknown_offset, trace.empty, trace.impossible),
            (1, 1, 1)
        );
        let rows: Vec<_> = trace
            .accesses
            .iter()
            .map(|a| (a.stream, a.offset, a.length, a.direct, a.think_ns))
            .collect();
        assert_eq!(
            rows,
            [
                (1, 4096, 8192, true, 0),
                (2, 0, 4096, true, 40),
                (1, 0, 10, false, 400)
            ]
        );
        assert_eq!(trace.accesses[2].operation, Operation::Write);
    }

    fn blocks(order: Order, count: u64, seed: u64) -> Vec<u64> {
        order.blocks(count, seed, u64::MAX).collect()
    }

    #[test]
    fn orders() {
        assert_eq!(blocks(Order::Sequential, 3, 1), [0, 1, 2]);
        assert_eq!(blocks(Order::Backwards, 3, 1), [2, 1, 0]);
        assert_eq!(blocks(Order::EveryNth(4), 9, 1), [0, 4, 8]);
        assert_eq!(blocks(Order::EveryNth(0), 2, 1), [0, 1]);
        assert_ne!(
            blocks(Order::Shuffled, 100, 1),
            blocks(Order::Shuffled, 100, 2)
        );
        let runs = blocks(Order::Runs(4), 10, 3);
        for run in [[0, 1, 2, 3], [4, 5, 6, 7]] {
            assert!(runs.windows(4).any(|w| w == run), "{runs:?}");
        }
    }

    /// Regions of a size that does not fit into any memory.
    #[test]
    fn the_first_reads_need_no_list_of_all() {
        let boundless = Region {
            file: 1,
            offset: u64::MAX,
            blocks: u64::MAX,
            block_bytes: 4096,
        };
        for order in [
            Order::Sequential,
            Order::Shuffled,
            Order::Runs(0),
            Order::Runs(8),
            Order::Runs(u64::MAX),
            Order::Runs(1 << 63),
            Order::Backwards,
            Order::EveryNth(u64::MAX / 20),
        ] {
            assert_eq!(boundless.reads_up_to(order, 1, 20).len(), 20, "{order:?}");
        }
        let empty_blocks = Region {
            block_bytes: 0,
            ..boundless
        };
        assert!(empty_blocks.reads(Order::Sequential, 1).is_empty());
    }

    proptest! {
        #[test]
        fn each_block_once(count in 0u64..500, length in 0u64..70, seed: u64, max in 0u32..600) {
            for order in [Order::Sequential, Order::Backwards, Order::Shuffled, Order::Runs(length)] {
                let all = blocks(order, count, seed);
                let first: Vec<_> = order.blocks(count, seed, u64::from(max)).collect();
                prop_assert_eq!(&first[..], &all[..all.len().min(max as usize)]);
                let mut sorted = all;
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            }
        }
    }
}
