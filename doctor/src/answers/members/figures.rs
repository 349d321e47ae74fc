//! Defines the figures that members are compared by.

use seekscope_run::{CollectionFacts, MemberRecord};

use crate::Counters;

/// What a difference in a figure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the member was given: it can only be a cause.
    Given,
    /// A property of the member: the same work should give the same value on every member.
    Property,
    /// How fast its disk answers, which also depends on the work the member gets.
    Speed,
    /// The work the member gets, which differs between primaries and secondaries by nature.
    Load,
    /// A consequence of the others.
    Effect,
}

impl Kind {
    /// Returns whether it is the member's own, and not brought about by its work alone.
    pub(super) fn is_own(self) -> bool {
        matches!(self, Self::Given | Self::Property | Self::Speed)
    }

    /// Returns whether it depends on the work, so that only members with the same duty are alike in it.
    pub(super) fn depends_on_work(self) -> bool {
        matches!(self, Self::Speed | Self::Load | Self::Effect)
    }
}

/// A figure that members are compared by.
pub(super) struct Figure {
    /// Name with its unit.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Smallest difference that matters, in the figure's unit.
    pub(super) matters: f64,
    /// Where it comes from.
    pub(super) source: &'static str,
    /// Whether it depends on which documents a member has. Members of different shards have different ones.
    pub(super) of_data: bool,
    value: fn(&Member<'_>) -> Option<f64>,
}

/// One member's facts and counters.
struct Member<'a> {
    record: &'a MemberRecord,
    counters: &'a Counters,
    source: &'a str,
    /// Whether chunks were moved between shards meanwhile.
    chunks_move: bool,
}

/// Kinds of operations that users alone cause. A member that others copy the oplog from answers their getMores,
/// and all members command each other: duties that the set hands out.
const OF_USERS: [&str; 4] = ["insert", "query", "update", "delete"];

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;

pub(super) const FIGURES: [Figure; 14] = [
    figure("cache, GiB", Kind::Given, 0.1, |m| {
        Some(m.record.target.cache_bytes? as f64 / GIB)
    }),
    Figure {
        source: "layout of the collections that all have",
        ..figure("avoidable seeks of a scan, %", Kind::Given, 10.0, |m| {
            Some((1.0 - m.record.on_host.as_ref()?.leaf_order?) * 100.0)
        })
    },
    figure("page read from disk, ms", Kind::Property, 1.0, |m| {
        m.ms_per("application threads page read from disk to cache")
    }),
    figure("page written to disk, ms", Kind::Property, 1.0, |m| {
        m.ms_per("application threads page write from cache to disk")
    }),
    figure("journal sync, ms", Kind::Speed, 2.0, journal_sync_ms),
    Figure {
        source: "collStats",
        of_data: true,
        ..figure(
            "bytes on disk per byte of documents",
            Kind::Property,
            0.3,
            |m| bytes_per_document_byte(&m.record.collections),
        )
    },
    figure("operations of users per s", Kind::Load, 50.0, |m| {
        // A shard counts the documents of a chunk that it receives or gives away like those of users.
        let operations = m.sum_of_rates("opcounters.", &OF_USERS);
        operations.filter(|_| !m.chunks_move)
    }),
    figure("read into cache, MiB/s", Kind::Load, 2.0, |m| {
        Some(m.rate("wiredTiger.cache.bytes read into cache")? / MIB)
    }),
    figure("written from cache, MiB/s", Kind::Load, 2.0, |m| {
        Some(m.rate("wiredTiger.cache.bytes written from cache")? / MIB)
    }),
    figure(
        "dirty share of the cache, %",
        Kind::Effect,
        3.0,
        dirty_percent,
    ),
    figure("checkpoint, s", Kind::Effect, 2.0, checkpoint_s),
    figure("operations queued", Kind::Effect, 2.0, |m| {
        m.get("globalLock.currentQueue.total")?.mean()
    }),
    figure("read latency, ms", Kind::Effect, 1.0, |m| {
        m.latency_ms("reads")
    }),
    figure("write latency, ms", Kind::Effect, 1.0, |m| {
        m.latency_ms("writes")
    }),
];

const fn figure(
    name: &'static str,
    kind: Kind,
    matters: f64,
    value: fn(&Member<'_>) -> Option<f64>,
) -> Figure {
    Figure {
        name,
        kind,
        matters,
        source: "serverStatus",
        of_data: false,
        value,
    }
}

/// Returns one member's figures, in the order of [`FIGURES`].
pub(super) fn figures(
    record: &MemberRecord,
    counters: &Counters,
    source: &str,
    chunks_move: bool,
) -> Vec<(String, Option<f64>)> {
    let member = Member {
        chunks_move,
        record,
        counters,
        source,
    };
    let all = FIGURES.iter();
    all.map(|figure| {
        let value = (figure.value)(&member).filter(|value| value.is_finite());
        (figure.name.to_string(), value)
    })
    .collect()
}

impl Member<'_> {
    fn get(&self, name: &str) -> Option<&crate::evidence::Series> {
        self.counters.get(self.source, name)
    }

    fn rate(&self, name: &str) -> Option<f64> {
        self.get(name)?.rate_per_s()
    }

    fn sum_of_rates(&self, prefix: &str, names: &[&str]) -> Option<f64> {
        let rates = names.iter().map(|name| format!("{prefix}{name}"));
        let rates = rates.filter_map(|name| self.rate(&name));
        rates.reduce(|a, b| a + b)
    }

    /// Returns the mean of a pair of counters of the cache, "… count" and "… time (usecs)".
    fn ms_per(&self, prefix: &str) -> Option<f64> {
        let name = |last: &str| format!("wiredTiger.cache.{prefix} {last}");
        self.mean_ms(&name("count"), &name("time (usecs)"))
    }

    /// Returns the mean; `None` with so few events that it says nothing.
    fn mean_ms(&self, count: &str, time_us: &str) -> Option<f64> {
        const EVENTS_MIN: f64 = 20.0;
        let count = self.get(count)?.increase().filter(|n| *n >= EVENTS_MIN)?;
        Some(self.get(time_us)?.increase()? / count / 1000.0)
    }

    fn latency_ms(&self, kind: &str) -> Option<f64> {
        let name = |last: &str| format!("opLatencies.{kind}.{last}");
        self.mean_ms(&name("ops"), &name("latency"))
    }
}

fn journal_sync_ms(member: &Member<'_>) -> Option<f64> {
    member.mean_ms(
        "wiredTiger.log.log sync operations",
        "wiredTiger.log.log sync time duration (usecs)",
    )
}

/// Documents of this many bytes are needed for a ratio: a file grows in steps.
const DOCUMENTS_MIN_BYTES: u64 = 64 << 20;
/// A smaller ratio is no compression: the file has not seen a checkpoint since the documents came.
const RATIO_MIN: f64 = 0.05;

/// Returns the ratio for all collections that were asked about: holes and worse compression make it grow with
/// age, which a recently synced member does not have.
fn bytes_per_document_byte(collections: &[CollectionFacts]) -> Option<f64> {
    let sum = |bytes: fn(&CollectionFacts) -> u64| collections.iter().map(bytes).sum::<u64>();
    let documents = sum(|c| c.data_bytes);
    let ratio = sum(|c| c.storage_bytes) as f64 / documents.max(1) as f64;
    (documents >= DOCUMENTS_MIN_BYTES && ratio >= RATIO_MIN).then_some(ratio)
}

fn dirty_percent(member: &Member<'_>) -> Option<f64> {
    let dirty = member.get("wiredTiger.cache.tracked dirty bytes in the cache")?;
    let cache = member
        .get("wiredTiger.cache.maximum bytes configured")?
        .last()?;
    (cache > 0.0).then(|| Some(dirty.mean()? / cache * 100.0))?
}

/// Returns the longest duration that was the latest at a sample. The second name is MongoDB 8.0's.
fn checkpoint_s(member: &Member<'_>) -> Option<f64> {
    let names = [
        "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
        "wiredTiger.checkpoint.most recent time (msecs)",
    ];
    let series = names.iter().find_map(|name| member.get(name))?;
    Some(series.max()? / 1000.0)
}
