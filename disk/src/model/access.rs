//! What to predict: lists of accesses, from a recorded trace or made to an order.

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

/// One read or write of a file. Accesses of one stream follow one another, each issued when the
/// last has completed and its think time is over; streams run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub file: u32,
    /// E.g. a thread.
    pub stream: u32,
    /// Bytes.
    pub offset: u64,
    pub length: u64,
    pub operation: Operation,
    /// Past the page cache (O_DIRECT).
    pub direct: bool,
    /// Time between the stream's last completion (or the beginning) and this access, ns.
    pub think_ns: u64,
}

/// The accesses of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceAccesses {
    /// By start time.
    pub accesses: Vec<Access>,
    /// Events left out because their offset is unknown.
    pub unknown_offset: u64,
    /// Events left out because they failed or moved no bytes.
    pub empty: u64,
}

/// The accesses that a trace recorded: a stream per thread, with the time that the thread spent
/// between its calls. The bytes are those transferred, not those asked for.
pub fn accesses_of_trace(events: &[IoEvent]) -> TraceAccesses {
    let mut order: Vec<&IoEvent> = events.iter().collect();
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

/// The same accesses without the time between them: what the disk alone would take.
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
    /// Runs of so many adjacent blocks, the runs shuffled.
    Runs(u64),
    Backwards,
    /// Every so many-th block, forwards.
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

impl Region {
    /// Reads through the page cache in one stream, without think time.
    pub fn reads(&self, order: Order, seed: u64) -> Vec<Access> {
        order
            .blocks(self.blocks, seed)
            .into_iter()
            .map(|block| Access {
                file: self.file,
                stream: 0,
                offset: self.offset + block * self.block_bytes,
                length: self.block_bytes,
                operation: Operation::Read,
                direct: false,
                think_ns: 0,
            })
            .collect()
    }
}

impl Order {
    /// The numbers of the blocks, `0..count`, in this order. A distance or length of 0 is 1.
    pub fn blocks(self, count: u64, seed: u64) -> Vec<u64> {
        match self {
            Self::Sequential => (0..count).collect(),
            Self::Backwards => (0..count).rev().collect(),
            Self::Shuffled => shuffled(count, seed),
            Self::Runs(length) => {
                let length = length.max(1);
                shuffled(count.div_ceil(length), seed)
                    .into_iter()
                    .flat_map(|run| run * length..count.min((run + 1) * length))
                    .collect()
            }
            Self::EveryNth(distance) => (0..count.div_ceil(distance.max(1)))
                .map(|step| step * distance.max(1))
                .collect(),
        }
    }
}

fn shuffled(count: u64, seed: u64) -> Vec<u64> {
    distinct(count, count, seed)
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
        ];
        let trace = accesses_of_trace(&events);
        assert_eq!((trace.unknown_offset, trace.empty), (1, 1));
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

    #[test]
    fn orders() {
        assert_eq!(Order::Sequential.blocks(3, 1), [0, 1, 2]);
        assert_eq!(Order::Backwards.blocks(3, 1), [2, 1, 0]);
        assert_eq!(Order::EveryNth(4).blocks(9, 1), [0, 4, 8]);
        assert_eq!(Order::EveryNth(0).blocks(2, 1), [0, 1]);
        assert_ne!(
            Order::Shuffled.blocks(100, 1),
            Order::Shuffled.blocks(100, 2)
        );
        let runs = Order::Runs(4).blocks(10, 3);
        for run in [[0, 1, 2, 3], [4, 5, 6, 7]] {
            assert!(runs.windows(4).any(|w| w == run), "{runs:?}");
        }
    }

    proptest! {
        #[test]
        fn each_block_once(count in 0u64..500, length in 0u64..70, seed: u64) {
            for order in [Order::Sequential, Order::Backwards, Order::Shuffled, Order::Runs(length)] {
                let mut blocks = order.blocks(count, seed);
                blocks.sort_unstable();
                prop_assert_eq!(blocks, (0..count).collect::<Vec<_>>());
            }
        }
    }
}
