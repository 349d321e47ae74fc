//! The conditions: what is prepared, and what the doctor is to say of it.

use std::time::Duration;

use seekscope_bench::examined::YcsbTask;
use seekscope_bench::gains::{Activity, Conditions, DiskLimits};

const MIB: u64 = 1 << 20;

/// Changed pages stay in the cache until the next checkpoint.
const MUCH_DIRTY: &str = "eviction_dirty_target=80,eviction_dirty_trigger=90,eviction_updates_target=80,eviction_updates_trigger=90";

/// What is no fault of the server and no false alarm either, wherever it stands behind the cause: the
/// benchmark's host is mounted as it is, its server is set up as a test's, and random updates have taken all
/// of its collections out of order.
const ANYWHERE: [&str; 10] = [
    "layout.key-order-lost",
    "filesystem.unfit",
    "huge-pages.unfit",
    "host.open-files-limit",
    "scheduler.unfit",
    "server.warnings",
    "server.old-settings",
    "settings.worth-tuning",
    "evidence.incomplete",
    "space.reusable",
];

type Property = (&'static str, &'static str);
const UNIFORM: Property = ("requestdistribution", "uniform");
/// Whole rows are replaced, any of them.
const REPLACED: [Property; 4] = [
    ("readproportion", "0"),
    ("updateproportion", "1"),
    ("writeallfields", "true"),
    UNIFORM,
];

/// Which data a condition works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    /// A collection that was loaded in order and then updated at random, and YCSB's rows beside it.
    Aged,
    /// Rows of YCSB that are more than the memory of a small group.
    Large,
}

/// What the server is asked to do, all the time.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Something with the aged collection, again and again.
    Repeated {
        activity: Activity,
        /// Whether each repetition starts with an empty page cache.
        cold: bool,
        /// The time from one start to the next; if the work takes longer, the next one starts without a pause.
        every: Duration,
    },
    Ycsb {
        task: YcsbTask,
        /// Added to the connection string.
        options: &'static str,
    },
}

/// One condition.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// A description for people.
    pub(crate) what: &'static str,
    /// Ids of the true cause, one of which the first finding must have.
    pub(crate) cause: &'static [&'static str],
    /// Ids that are true as well; any other finding in the first screen is a false one.
    pub(crate) also_true: &'static [&'static str],
    pub(crate) data: Data,
    pub(crate) work: Work,
    /// Size of WiredTiger's cache.
    pub(crate) cache_bytes: u64,
    /// Seconds from one checkpoint to the next; `None`: as the server comes.
    pub(crate) checkpoint_every_s: Option<u32>,
    /// Read all rows before the work begins, so that the page cache has no room left.
    pub(crate) fills_memory: bool,
    /// The time from the start of the work to the start of the examination.
    pub(crate) warm_up: Duration,
    /// Take its files out of the page cache again and again, as other programs' reading would.
    pub(crate) without_page_cache: bool,
    pub(crate) conditions: Conditions,
    /// Time in which all that belongs to the condition happens.
    pub(crate) watched_min: Duration,
}

impl Case {
    /// Returns whether a finding with this ID is true here.
    pub(crate) fn is_true(&self, id: &str) -> bool {
        self.cause.contains(&id) || self.also_true.contains(&id) || ANYWHERE.contains(&id)
    }
}

/// Rows of about 1.1 KiB in both kinds of data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) beside_aged: u64,
    pub(crate) large: u64,
}

pub(crate) fn names() -> Vec<&'static str> {
    let rows = Rows {
        beside_aged: 1,
        large: 1,
    };
    cases(rows).iter().map(|case| case.name).collect()
}

fn limited(disk: DiskLimits) -> Conditions {
    Conditions {
        disk,
        ..Conditions::default()
    }
}

fn repeated(activity: Activity, cold: bool, every: Duration) -> Work {
    Work::Repeated {
        activity,
        cold,
        every,
    }
}

fn task(letter: char, rows: u64, properties: &[Property], per_s: Option<f64>) -> YcsbTask {
    YcsbTask {
        letter,
        properties: properties.to_vec(),
        per_s,
        ..YcsbTask::rows(rows)
    }
}

fn ycsb(letter: char, rows: u64, properties: &[Property], per_s: Option<f64>) -> Work {
    Work::Ycsb {
        task: task(letter, rows, properties, per_s),
        options: "",
    }
}

pub(crate) fn cases(rows: Rows) -> Vec<Case> {
    let of = [
        light_load,
        cold_scans,
        memory_group,
        collection_scans,
        write_burst,
        journal_commits,
        index_build,
        small_cache,
        slow_disk,
    ];
    of.iter().map(|case| case(rows)).collect()
}

fn light_load(rows: Rows) -> Case {
    Case {
        name: "light-load",
        what: "200 operations/s, 5 % updates, all in the cache after a while, beside an aged collection that nobody reads",
        cause: &["disk.not-the-problem"],
        also_true: &["layout.key-order-lost"],
        data: Data::Aged,
        work: ycsb('b', rows.beside_aged, &[], Some(200.0)),
        cache_bytes: 512 * MIB,
        checkpoint_every_s: None,
        // All that is asked for again and again has been read by then.
        fills_memory: false,
        warm_up: Duration::from_secs(10),
        without_page_cache: false,
        conditions: Conditions::default(),
        watched_min: Duration::ZERO,
    }
}

fn cold_scans(rows: Rows) -> Case {
    Case {
        name: "cold-scans",
        what: "cold scans, one after the other, of a collection of which 10 % were updated at random, on a disk that is limited to 150 reads and 150 MB per second",
        cause: &["layout.key-order-lost"],
        also_true: &[
            "disk.limited",
            "cache.too-small",
            "query.collection-scan",
            "memory.short",
        ],
        work: repeated(Activity::Scan, true, Duration::ZERO),
        cache_bytes: 32 * MIB,
        conditions: limited(DiskLimits::HARD_DISK),
        watched_min: Duration::from_secs(75),
        ..light_load(rows)
    }
}

fn memory_group(rows: Rows) -> Case {
    Case {
        name: "memory-group",
        what: "random reads of more than fits into the 700 MiB of the server's control group, on a disk that is limited to 150 reads and 150 MB per second",
        cause: &["memory.short", "cache.too-small"],
        also_true: &["disk.limited"],
        data: Data::Large,
        work: ycsb('c', rows.large, &[UNIFORM], None),
        fills_memory: true,
        cache_bytes: 256 * MIB,
        conditions: Conditions {
            memory_bytes: Some(700 * MIB),
            ..limited(DiskLimits::HARD_DISK)
        },
        ..light_load(rows)
    }
}

fn collection_scans(rows: Rows) -> Case {
    Case {
        name: "collection-scans",
        what: "two scans a second of a whole collection, for a document that an index would find",
        cause: &["query.collection-scan"],
        also_true: &[
            "layout.key-order-lost",
            "cache.too-small",
            "cpu.saturated",
            "memory.short",
        ],
        work: repeated(Activity::Scan, false, Duration::from_millis(500)),
        cache_bytes: 32 * MIB,
        ..light_load(rows)
    }
}

fn write_burst(rows: Rows) -> Case {
    Case {
        name: "write-burst",
        what: "whole rows replaced at random as fast as the server goes, with a checkpoint every 10 s, on a disk of 30 MB of writes per second",
        cause: &["checkpoint.long", "disk.limited"],
        also_true: &[
            "disk.saturated",
            "disk.slow",
            "journal.slow-sync",
            "cache.dirty-limit-reached",
            "eviction.by-application-threads",
            "cache.too-small",
            "flow-control.engaged",
            "oplog.too-short",
        ],
        work: ycsb('a', rows.beside_aged, &REPLACED, None),
        cache_bytes: 1024 * MIB,
        checkpoint_every_s: Some(10),
        conditions: Conditions {
            engine: MUCH_DIRTY,
            ..limited(DiskLimits {
                write_bytes_per_s: Some(30_000_000),
                ..DiskLimits::PLAIN
            })
        },
        watched_min: Duration::from_secs(75),
        ..light_load(rows)
    }
}

fn journal_commits(rows: Rows) -> Case {
    Case {
        name: "journal-commits",
        what: "rows updated with j: true, on a disk that is limited to 100 writes per second",
        cause: &["journal.slow-sync", "disk.limited"],
        also_true: &[
            "checkpoint.long",
            "disk.saturated",
            "disk.slow",
            "oplog.too-short",
        ],
        work: Work::Ycsb {
            task: task('a', rows.beside_aged, &[], None),
            options: "&journal=true",
        },
        conditions: limited(DiskLimits {
            write_iops: Some(100),
            ..DiskLimits::PLAIN
        }),
        ..light_load(rows)
    }
}

fn index_build(rows: Rows) -> Case {
    Case {
        name: "index-build",
        what: "cold index builds, one after the other, on a collection of which 10 % were updated at random, on a disk that is limited to 150 reads and 150 MB per second",
        cause: &["layout.key-order-lost", "index-build.running"],
        also_true: &["disk.limited", "cache.too-small", "memory.short"],
        work: repeated(Activity::IndexBuild, true, Duration::ZERO),
        ..cold_scans(rows)
    }
}

fn small_cache(rows: Rows) -> Case {
    Case {
        name: "small-cache",
        what: "random reads of rows that would fit into memory, with a cache of 32 MiB and hardly any page cache",
        cause: &["cache.too-small"],
        also_true: &["cpu.saturated", "disk.saturated", "memory.short"],
        work: ycsb('c', rows.beside_aged, &[UNIFORM], None),
        cache_bytes: 32 * MIB,
        without_page_cache: true,
        ..light_load(rows)
    }
}

fn slow_disk(rows: Rows) -> Case {
    Case {
        name: "slow-disk",
        what: "random reads on a disk that is limited to 150 reads and 150 MB per second",
        cause: &["disk.limited", "disk.saturated", "disk.slow"],
        also_true: &["cache.too-small", "memory.short"],
        work: ycsb('c', rows.beside_aged, &[UNIFORM], None),
        cache_bytes: 32 * MIB,
        conditions: limited(DiskLimits::HARD_DISK),
        ..light_load(rows)
    }
}
