//! The conditions: what is prepared, and what the doctor is to say of it.

use std::time::Duration;

use seekscope_bench::examined::YcsbTask;
use seekscope_bench::gains::Conditions;

const MIB: u64 = 1 << 20;

/// Each commit waits for the disk, and changed pages stay in the cache until the next checkpoint.
const MUCH_DIRTY: &str = "transaction_sync=(enabled=true,method=fsync),eviction_dirty_target=80,eviction_updates_target=80";

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
    writes_limited: false,
    engine: "",
};

/// What it is asked to do.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Scans of a whole collection that was loaded in order and then updated at random, each from an empty
    /// page cache.
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
    pub(crate) work: Work,
    /// WiredTiger's.
    pub(crate) cache_bytes: u64,
    /// From the start of the work to that of the examination.
    pub(crate) warm_up: Duration,
    /// Take its files out of the page cache again and again, as other programs' reading would. A limit to
    /// its memory would do so too, but this server's own memory grows with time.
    pub(crate) without_page_cache: bool,
    pub(crate) conditions: Conditions,
    /// Time in which all that belongs to the condition happens.
    pub(crate) watched_min: Duration,
}

/// `rows`: of the collection that YCSB works on.
pub(crate) fn cases(rows: u64) -> Vec<Case> {
    let task = |letter, properties: &[_], per_s| YcsbTask {
        letter,
        rows,
        properties: properties.to_vec(),
        in_flight: 8,
        per_s,
    };
    let ycsb = |letter, properties: &[_], per_s| Work::Ycsb(task(letter, properties, per_s));
    let uniform = [("requestdistribution", "uniform")];
    let healthy = Case {
        name: NAMES[0],
        what: "200 operations/s, 5 % updates, all of them in the cache after a while",
        expected: &["disk.not-the-problem"],
        work: ycsb('b', &[], Some(200.0)),
        cache_bytes: 512 * MIB,
        // All that is asked for again and again has been read by then.
        warm_up: Duration::from_secs(10),
        without_page_cache: false,
        conditions: UNHINDERED,
        watched_min: Duration::ZERO,
    };
    let out_of_order = Case {
        name: NAMES[1],
        what: "cold scans, one after the other, of a collection of which 10 % were updated at random",
        expected: &["layout.key-order-lost"],
        work: Work::ColdScans,
        cache_bytes: 32 * MIB,
        ..healthy.clone()
    };
    let small_cache = Case {
        name: NAMES[2],
        what: "random reads of rows that would fit into memory, with a cache of 32 MiB and hardly any page cache",
        expected: &["cache.too-small"],
        work: ycsb('c', &uniform, None),
        cache_bytes: 32 * MIB,
        without_page_cache: true,
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
            ..UNHINDERED
        },
        ..healthy.clone()
    };
    let replaced = [
        ("readproportion", "0"),
        ("updateproportion", "1"),
        ("writeallfields", "true"),
        uniform[0],
    ];
    let write_burst = Case {
        name: NAMES[4],
        what: "whole rows replaced at random as fast as the server goes, each on the disk before the next, with a checkpoint a minute on a disk of 100 MB of writes per second",
        expected: &[
            "checkpoint.long",
            "journal.slow-sync",
            "cache.dirty-limit-reached",
        ],
        // So many that writing them takes a disk of 100 MB/s several seconds.
        work: Work::Ycsb(YcsbTask {
            rows: 3 * rows,
            ..task('a', &replaced, None)
        }),
        cache_bytes: 2048 * MIB,
        conditions: Conditions {
            writes_limited: true,
            engine: MUCH_DIRTY,
            ..UNHINDERED
        },
        watched_min: Duration::from_secs(75),
        ..healthy.clone()
    };
    vec![healthy, out_of_order, small_cache, slow_disk, write_burst]
}
