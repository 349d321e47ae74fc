//! Which accesses take the time: classifies a prediction's accesses by the runs that they form.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::access::{Access, Operation};

/// The length from which a run of adjacent reads counts as sequential: the cost of getting there is
/// small compared with the transfer, on a disk arm too.
const SEQUENTIAL_RUN_BYTES: u64 = 1 << 20;

/// Time and accesses of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClassCost {
    /// "random" (a read that continues none and is not continued), "short runs" (of adjacent reads
    /// of one stream and file, less than 1 MiB together), "sequential" (longer runs), "writes".
    pub class: &'static str,
    pub accesses: u64,
    pub bytes: u64,
    /// Time from issue to completion, summed over all streams, without think time.
    pub elapsed_ns: u64,
}

const RANDOM: usize = 0;
const SHORT: usize = 1;
const SEQUENTIAL: usize = 2;
const WRITES: usize = 3;
const NAMES: [&str; 4] = ["random", "short runs", "sequential", "writes"];

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    accesses: u64,
    bytes: u64,
    elapsed_ns: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.accesses += other.accesses;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
    }
}

/// Adds up completed accesses.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    sums: [Sum; 4],
    /// The end of the current run and its sum so far, by stream and file.
    runs: HashMap<(u32, u32), (u64, Sum)>,
}

impl Classes {
    pub(crate) fn completed(&mut self, access: &Access, elapsed_ns: u64) {
        let cost = Sum {
            accesses: 1,
            bytes: access.length,
            elapsed_ns,
        };
        if access.operation != Operation::Read {
            self.sums[WRITES].add(cost);
            return;
        }
        let end = access.offset.saturating_add(access.length);
        let run = self
            .runs
            .entry((access.stream, access.file))
            .or_insert((access.offset, Sum::default()));
        if run.0 != access.offset {
            let ended = std::mem::take(&mut run.1);
            self.sums[class_of(ended)].add(ended);
        }
        run.0 = end;
        run.1.add(cost);
    }

    /// Returns the classes that occurred.
    pub(crate) fn finish(mut self) -> Vec<ClassCost> {
        for (_, run) in self.runs.into_values() {
            self.sums[class_of(run)].add(run);
        }
        let occurred = NAMES.into_iter().zip(self.sums);
        occurred
            .filter(|(_, sum)| sum.accesses > 0)
            .map(|(class, sum)| ClassCost {
                class,
                accesses: sum.accesses,
                bytes: sum.bytes,
                elapsed_ns: sum.elapsed_ns,
            })
            .collect()
    }
}

fn class_of(run: Sum) -> usize {
    if run.accesses <= 1 {
        RANDOM
    } else if run.bytes < SEQUENTIAL_RUN_BYTES {
        SHORT
    } else {
        SEQUENTIAL
    }
}
