//! The conditions: what is prepared, and what the doctor is to say of it.

use std::time::Duration;

use seekscope_bench::examined::YcsbTask;
use seekscope_bench::gains::Conditions;

const MIB: u64 = 1 << 20;

pub(crate) const NAMES: [&str; 5] = [
    "healthy",
    "out-of-order",
    "small-cache",
    "slow-disk",
    "write-burst",
];

/// The disk as it is, and all memory.
pub(crate) const UNHINDERED: Conditions = Conditions {
    throttled: false,
    memory_bytes: None,
};

const NO_LIMIT_BYTES: u64 = 1 << 40;

/// What the server has in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataSet {
    /// A collection that was loaded in order and then updated at random.
    Scanned,
    /// YCSB's rows.
    Ycsb,
}

/// What it is asked to do.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Scans of the whole collection, each from an empty page cache.
    ColdScans,
    Ycsb(YcsbTask),
}

/// One condition.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) what: &'static str,
    /// Ids, one of which the first finding must have.
    pub(crate) expected: &'static [&'static str],
    pub(crate) data: DataSet,
    pub(crate) work: Work,
    /// WiredTiger's.
    pub(crate) cache_bytes: u64,
    /// From the start of the work to that of the examination.
    pub(crate) warm_up: Duration,
    /// Page cache that the server gets, beside its own memory; `None` = all. Needs `conditions` with a limit
    /// to its memory, which is lowered when it has warmed up.
    pub(crate) page_cache_bytes: Option<u64>,
    pub(crate) conditions: Conditions,
    /// Time in which all that belongs to the condition happens.
    pub(crate) watched_min: Duration,
}

impl Case {
    pub(crate) fn task(&self) -> Option<&YcsbTask> {
        match &self.work {
            Work::ColdScans => None,
            Work::Ycsb(task) => Some(task),
        }
    }
}

/// `rows`: of the collection that YCSB works on.
pub(crate) fn cases(rows: u64) -> Vec<Case> {
    let ycsb = |letter, properties: &[_], per_s| {
        Work::Ycsb(YcsbTask {
            letter,
            rows,
            properties: properties.to_vec(),
            in_flight: 8,
            per_s,
        })
    };
    let uniform = [("requestdistribution", "uniform")];
    let healthy = Case {
        name: NAMES[0],
        what: "200 operations/s, 5 % updates, all of them in the cache after a while",
        expected: &["disk.not-the-problem"],
        data: DataSet::Ycsb,
        work: ycsb('b', &[], Some(200.0)),
        cache_bytes: 512 * MIB,
        // All that is asked for again and again has been read by then.
        warm_up: Duration::from_secs(10),
        page_cache_bytes: None,
        conditions: UNHINDERED,
        watched_min: Duration::ZERO,
    };
    let out_of_order = Case {
        name: NAMES[1],
        what: "cold scans, one after the other, of a collection of which 10 % were updated at random",
        expected: &["layout.key-order-lost"],
        data: DataSet::Scanned,
        work: Work::ColdScans,
        cache_bytes: 32 * MIB,
        ..healthy.clone()
    };
    let small_cache = Case {
        name: NAMES[2],
        what: "random reads of rows that would fit into memory, with a cache of 32 MiB and little page cache",
        expected: &["cache.too-small"],
        work: ycsb('c', &uniform, None),
        cache_bytes: 32 * MIB,
        page_cache_bytes: Some(48 * MIB),
        conditions: Conditions {
            throttled: false,
            memory_bytes: Some(NO_LIMIT_BYTES),
        },
        ..healthy.clone()
    };
    let slow_disk = Case {
        name: NAMES[3],
        what: "random reads on a disk that is limited to 150 reads and 150 MB per second",
        expected: &["disk.limited", "disk.saturated", "disk.slow"],
        work: ycsb('c', &uniform, None),
        cache_bytes: 32 * MIB,
        conditions: Conditions {
            throttled: true,
            memory_bytes: None,
        },
        ..healthy.clone()
    };
    let write_burst = Case {
        name: NAMES[4],
        what: "whole rows replaced at random as fast as the server goes, with a checkpoint each minute",
        expected: &[
            "checkpoint.long",
            "journal.slow-sync",
            "cache.dirty-limit-reached",
        ],
        work: ycsb(
            'a',
            &[
                ("readproportion", "0"),
                ("updateproportion", "1"),
                ("writeallfields", "true"),
                uniform[0],
            ],
            None,
        ),
        watched_min: Duration::from_secs(75),
        ..healthy.clone()
    };
    vec![healthy, out_of_order, small_cache, slow_disk, write_burst]
}
