//! Computes how long the server's threads waited for reads, and finds counters by any of their names.

use seekscope_pattern::{FileTrace, LatencyByOutcome};
use seekscope_run::{CollectionFacts, MemberState, OperationSeen};
use seekscope_stats::Quantiles;

use super::{Evidence, Series};

/// Reads of the server that waited for the disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReadWaiting {
    pub(crate) reads_per_s: f64,
    /// Time that threads waited, s per s: 1 is one thread all the time.
    pub(crate) s_per_s: f64,
    /// Mean time of one read, ns.
    pub(crate) mean_ns: f64,
    /// "trace" or "serverStatus". The latter counts page-cache hits, and before 6.0 decompression, too.
    pub(crate) source: &'static str,
}

/// Syncs of the journal; at least one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JournalSyncs {
    pub(crate) count: f64,
    /// Length of the time in which they were seen, s.
    pub(crate) seconds: f64,
    /// Mean time of one sync, ns.
    pub(crate) mean_ns: f64,
    /// 99th percentile of that time, ns; the server's counters do not tell it.
    pub(crate) p99_ns: Option<u64>,
    /// "trace" or "serverStatus".
    pub(crate) source: &'static str,
}

impl JournalSyncs {
    /// Returns the syncs of a trace of this length; `None` without any.
    pub(crate) fn traced(latencies: &[Quantiles], seconds: f64) -> Option<Self> {
        let count = latencies.iter().map(|q| q.count).sum::<u64>() as f64;
        let all_ns: f64 = latencies
            .iter()
            .map(|q| q.count as f64 * q.mean as f64)
            .sum();
        (count > 0.0).then(|| Self {
            count,
            seconds,
            mean_ns: all_ns / count,
            p99_ns: latencies.iter().map(|q| q.p99).max(),
            source: "trace",
        })
    }

    /// Returns the syncs that the server counted, and that took this many µs together; `None` without any.
    pub(crate) fn counted(count: f64, us: f64, seconds: f64) -> Option<Self> {
        (count > 0.0).then(|| Self {
            count,
            seconds,
            mean_ns: us * 1e3 / count,
            p99_ns: None,
            source: "serverStatus",
        })
    }

    /// Returns how many there were per second.
    pub(crate) fn per_s(&self) -> f64 {
        self.count / self.seconds.max(1e-9)
    }

    /// Returns their total time, s per s.
    pub(crate) fn s_per_s(&self) -> f64 {
        self.per_s() * self.mean_ns / 1e9
    }
}

/// Counters of the time that threads waited for pages to be read, µs, and of pages.
pub(crate) const READ_TIME: &str =
    "wiredTiger.cache.application threads page read from disk to cache time (usecs)";
pub(crate) const READ_COUNT: &str =
    "wiredTiger.cache.application threads page read from disk to cache count";

/// µs that application threads spent evicting; before and since WiredTiger 11.3.
pub(crate) const EVICTING_US: [&str; 2] = [
    "wiredTiger.thread-yield.application thread time evicting (usecs)",
    "wiredTiger.cache.application thread time evicting (usecs)",
];
/// µs that operations waited for room in the cache, their own evicting included
/// (`__wt_cache_eviction_worker`).
pub(crate) const CACHE_ROOM_US: [&str; 2] = [
    "wiredTiger.thread-yield.application thread time waiting for cache (usecs)",
    "wiredTiger.cache.application thread time waiting for cache (usecs)",
];
/// Operations that are in the queue for a lock, for a ticket or for flow control.
pub(crate) const QUEUED: &str = "globalLock.currentQueue.total";
/// µs that writes waited for flow control.
pub(crate) const FLOW_CONTROL_US: &str = "flowControl.timeAcquiringMicros";
/// Writes that other members had to acknowledge, when they had, and the time that they waited for it, ms.
const ACKNOWLEDGED: &str = "metrics.getLastError.wtime.num";
const ACKNOWLEDGED_MS: &str = "metrics.getLastError.wtime.totalMillis";
/// Counters of journal syncs, and of the time that they took, µs.
pub(crate) const SYNCS: &str = "wiredTiger.log.log sync operations";
pub(crate) const SYNC_US: &str = "wiredTiger.log.log sync time duration (usecs)";

/// Syncs per second from which on writes ask for them: the journal's own thread makes ten (`commitIntervalMs`).
const ASKED_FOR_PER_S: f64 = 15.0;
/// A write that comes while the journal is synced waits for the next sync, too.
const SYNCS_WAITED_FOR: f64 = 2.0;
/// Share of a sync that a write takes at least that waits for one.
const AS_LONG: f64 = 0.5;

/// Waiting longer than this for other members, s, is more than a network and a disk account for.
const UNACKNOWLEDGED_MIN_S: f64 = 5.0;

/// Writes that waited for other members, or for a majority with the server itself, to acknowledge them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Acknowledged {
    pub(crate) per_s: f64,
    /// Mean time that one waited, ns.
    pub(crate) mean_ns: f64,
}

/// Writes that were seen waiting for other members for seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unacknowledged<'a> {
    /// The one that waited longest, with those like it.
    pub(crate) longest: &'a OperationSeen,
    /// The most of them at a time.
    pub(crate) at_once: u32,
    /// Mean number of them at a time.
    pub(crate) mean: f64,
}

/// Returns the reads of this file that waited for the device: how many, and their total time, ns.
pub(crate) fn waited(file: &FileTrace) -> (u64, f64) {
    let by: &LatencyByOutcome = &file.latency_by_outcome;
    [by.miss_ns, by.waited_ns, by.direct_ns]
        .iter()
        .fold((0, 0.0), |(count, ns), latency| {
            let all_ns = latency.count as f64 * latency.mean as f64;
            (count + latency.count, ns + all_ns)
        })
}

/// Returns how long writes can have waited for syncs at most, s per hour; `writing` is what all of them took. A write waits
/// only while a sync runs, and the first one that asks makes it run. So of writes that go on all the time, a share waits
/// that is the syncs' share of the time; and of writes that come at any moment, no more have asked than there were syncs
/// to the time without one.
fn most_waiting_s_per_hour(syncs: &JournalSyncs, writing: f64) -> f64 {
    let share = syncs.s_per_s().min(1.0);
    let by_chance = SYNCS_WAITED_FOR * share / (1.0 - share).max(1e-9) * 3600.0;
    by_chance.max(share * writing)
}

impl<'a> Evidence<'a> {
    /// Returns a counter or gauge of the examined server's `serverStatus`, by the first of its names that
    /// exists (they differ between releases).
    pub(crate) fn status(&self, names: &[&str]) -> Option<&'a Series> {
        let mut series = names
            .iter()
            .filter_map(|name| self.counters.get("serverStatus", name));
        series.find(|series| !series.points.is_empty())
    }

    /// Returns how fast one of the server's counters rose, per second.
    pub(crate) fn status_rate(&self, names: &[&str]) -> Option<f64> {
        self.status(names)?.rate_per_s()
    }

    /// Returns how fast one of the server's counters rose while its calls were traced, per second: counters go
    /// on where tracing ends early, and the two can only be compared over the same time.
    pub(crate) fn status_rate_while_traced(&self, names: &[&str]) -> Option<f64> {
        let series = self.status(names)?;
        let traced = self.document.phases.first();
        let then = traced.and_then(|p| series.rate_per_s_between(p.started_ns, p.ended_ns));
        then.or_else(|| series.rate_per_s())
    }

    /// Returns how fast a counter of another source rose, per second.
    pub(crate) fn rate(&self, source: &str, name: &str) -> Option<f64> {
        self.counters.get(source, name)?.rate_per_s()
    }

    /// Returns the length of the trace, s.
    pub(crate) fn traced_s(&self) -> Option<f64> {
        let trace = self.trace.filter(|trace| trace.events > 0)?;
        let span_s = trace.ended_ns.saturating_sub(trace.started_ns) as f64 / 1e9;
        let seconds = self.observed_s().unwrap_or(span_s);
        (seconds > 0.0).then_some(seconds)
    }

    /// Returns read waiting from the trace, else from the server's counters; `None` without either.
    pub(crate) fn read_waiting(&self) -> Option<ReadWaiting> {
        self.traced_waiting().or_else(|| self.counted_waiting())
    }

    /// Returns the journal syncs from the trace, else from the server's counters; `None` without either.
    pub(crate) fn syncs(&self) -> Option<JournalSyncs> {
        self.traced_syncs().or_else(|| self.counted_syncs())
    }

    fn traced_syncs(&self) -> Option<JournalSyncs> {
        let found = self.device_use?;
        let latencies = [found.journal_during_ns, found.journal_otherwise_ns];
        JournalSyncs::traced(&latencies, self.traced_s()?)
    }

    fn counted_syncs(&self) -> Option<JournalSyncs> {
        let (syncs, us) = (self.status(&[SYNCS])?, self.status(&[SYNC_US])?);
        JournalSyncs::counted(syncs.increase()?, us.increase()?, syncs.span_s())
    }

    /// Returns the time for which writes waited for journal syncs, s per hour. From the trace, else from the server.
    ///
    /// The journal's own thread syncs ten times a second whether or not a write asks for it, so the syncs' own time is
    /// taken, and no more than all writes took. Where there are more syncs than that, writes do ask (`j: true`, majority),
    /// and one sync serves all that wait: each of them for the rest of the current one and for the next, as far as reads
    /// and room in the cache leave time for that, and as syncs are there to be waited for.
    pub(crate) fn sync_waiting_s_per_hour(&self) -> Option<f64> {
        let syncs = self.syncs()?;
        let took = syncs.s_per_s() * 3600.0;
        let Some(most) = self.writing_s_per_hour() else {
            return Some(took);
        };
        let together = self.waiting_together_s_per_hour(&syncs, most);
        Some(most.min(together.map_or(took, |together| took.max(together))))
    }

    /// Returns whether writes wait for syncs, each by itself, with or without checkpoints.
    pub(crate) fn writes_wait_for_syncs(&self) -> bool {
        let both = self.syncs().zip(self.writing_s_per_hour());
        both.is_some_and(|(syncs, writing)| {
            self.waiting_together_s_per_hour(&syncs, writing).is_some()
        })
    }

    /// Returns how long writes waited for syncs that they asked for, each by itself, s per hour; `writing` is what all
    /// of them took. `None` where the journal's own thread may be all that syncs.
    fn waiting_together_s_per_hour(&self, syncs: &JournalSyncs, writing: f64) -> Option<f64> {
        let writes_per_s = self.status_rate(&["opLatencies.writes.ops"])?;
        let each_s = SYNCS_WAITED_FOR * syncs.mean_ns / 1e9;
        let reads = self.read_waiting().map_or(0.0, |w| w.s_per_s * 3600.0);
        let room_us = [&CACHE_ROOM_US[..], &EVICTING_US]
            .into_iter()
            .filter_map(|names| self.status_rate(names))
            .fold(0.0, f64::max);
        let held_back_us = self.status_rate(&[FLOW_CONTROL_US]).unwrap_or(0.0);
        let otherwise = reads + (room_us + held_back_us) / 1e6 * 3600.0;
        // A write that takes as long as a sync waits for one: where syncs are slow, there are few however many ask, and
        // they fill the time.
        let left = writing - otherwise;
        let is_as_long = left / 3600.0 >= AS_LONG * writes_per_s * syncs.mean_ns / 1e9;
        let most = most_waiting_s_per_hour(syncs, writing);
        let may_ask = is_as_long && writes_per_s > 0.0 && most >= AS_LONG * left;
        if syncs.per_s() < ASKED_FOR_PER_S && !may_ask {
            return None;
        }
        Some((writes_per_s * each_s * 3600.0).min(most).min(left))
    }

    /// Returns the writes that other members have acknowledged while the server was watched; `None` for a server that
    /// is no set, or a set of one, whose writes wait for its own journal.
    pub(crate) fn acknowledged(&self) -> Option<Acknowledged> {
        if !self.has_company() {
            return None;
        }
        let per_s = self.status_rate(&[ACKNOWLEDGED])?;
        let ms_per_s = self.status_rate(&[ACKNOWLEDGED_MS])?;
        (per_s > 0.0).then(|| Acknowledged {
            per_s,
            mean_ns: ms_per_s * 1e6 / per_s,
        })
    }

    /// Returns the writes that waited for other members for seconds; `None` if there were none. They are not counted by the
    /// server as long as they wait.
    pub(crate) fn unacknowledged(&self) -> Option<Unacknowledged<'a>> {
        let member = self.examined()?;
        let waiting = member.operations.iter().filter(|operation| {
            operation.kind == OperationSeen::UNACKNOWLEDGED_WRITE
                && operation.running_us as f64 / 1e6 >= UNACKNOWLEDGED_MIN_S
        });
        let longest = waiting
            .clone()
            .max_by_key(|operation| operation.running_us)?;
        let looks = f64::from(member.operation_looks.max(1));
        let seen = waiting.clone();
        Some(Unacknowledged {
            longest,
            at_once: waiting.map(|operation| operation.at_once).sum(),
            mean: seen
                .map(|operation| f64::from(operation.times_seen()) / looks)
                .sum(),
        })
    }

    /// Returns how long writes waited for other members, beyond what the server's own journal accounts for, s per hour.
    pub(crate) fn waiting_for_members_s_per_hour(&self) -> f64 {
        let counted = self.acknowledged().map_or(0.0, |acknowledged| {
            let all = acknowledged.per_s * acknowledged.mean_ns / 1e9 * 3600.0;
            all - self.sync_waiting_s_per_hour().unwrap_or(0.0)
        });
        let seen = self
            .unacknowledged()
            .map_or(0.0, |waiting| waiting.mean * 3600.0);
        counted.max(seen)
    }

    /// Returns whether others replicate with the examined server. The oplog of one that is alone is not looked at.
    fn has_company(&self) -> bool {
        let others = self.examination().is_some_and(|e| e.members.len() > 1);
        others || self.examined().is_some_and(|member| member.oplog.is_some())
    }

    /// Returns the time that all writes took, s per hour: those that wait for the journal are among them.
    /// `None` where that is not known, or others wait for this server's journal.
    pub(crate) fn writing_s_per_hour(&self) -> Option<f64> {
        let member = self.examined();
        if member.is_some_and(|member| member.state == MemberState::Secondary) {
            return None;
        }
        let writes = self.status_rate(&["opLatencies.writes.latency"])?;
        let transactions = self.status_rate(&["opLatencies.transactions.latency"]);
        Some((writes + transactions.unwrap_or(0.0)) / 1e6 * 3600.0)
    }

    /// Returns the time that the writes to one collection took, s per hour (`top`).
    pub(crate) fn writing_to_s_per_hour(&self, collection: &CollectionFacts) -> Option<f64> {
        let seconds = self.observed_s()?;
        Some(collection.writing_ns? as f64 / 1e9 / seconds * 3600.0)
    }

    fn traced_waiting(&self) -> Option<ReadWaiting> {
        let seconds = self.traced_s()?;
        let files = self.trace?.files.iter().map(waited);
        let (reads, ns) = files.fold((0, 0.0), |sum, file| (sum.0 + file.0, sum.1 + file.1));
        Some(ReadWaiting {
            reads_per_s: reads as f64 / seconds,
            s_per_s: ns / 1e9 / seconds,
            mean_ns: ns / reads.max(1) as f64,
            source: "trace",
        })
    }

    fn counted_waiting(&self) -> Option<ReadWaiting> {
        let us_per_s = self.status_rate(&[READ_TIME])?;
        let reads_per_s = self.status_rate(&[READ_COUNT])?;
        Some(ReadWaiting {
            reads_per_s,
            s_per_s: us_per_s / 1e6,
            mean_ns: if reads_per_s > 0.0 {
                us_per_s * 1e3 / reads_per_s
            } else {
                0.0
            },
            source: "serverStatus",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Call, Recording};
    use seekscope_run::FileRole;

    #[test]
    fn the_trace_is_believed_before_the_counters() {
        let mut recording = Recording::new();
        recording.rising(READ_TIME, 500_000.0);
        recording.rising(READ_COUNT, 100.0);
        let counted = recording
            .examine(|evidence, _| evidence.read_waiting())
            .unwrap();
        assert_eq!((counted.source, counted.s_per_s), ("serverStatus", 0.5));
        assert_eq!(counted.mean_ns, 5e6);
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        for second in 0..60 {
            let call = Call {
                tid,
                file_id,
                at_s: f64::from(second),
                offset: 0,
                bytes: 4096,
                latency_s: 0.01,
            };
            recording.miss(call);
            recording.hit(call);
        }
        let traced = recording
            .examine(|evidence, _| evidence.read_waiting())
            .unwrap();
        assert_eq!((traced.source, traced.reads_per_s), ("trace", 1.0));
        assert_eq!((traced.s_per_s, traced.mean_ns), (0.01, 1e7));
    }

    /// Returns how long writes waited for syncs, ms per s, and whether they asked for them. `writes` are how many there
    /// were per second and what they took, ms; `syncs` the same.
    fn waited_for_syncs(writes: (f64, f64), syncs: (f64, f64)) -> (f64, bool) {
        let mut recording = Recording::new();
        recording.rising(SYNCS, syncs.0);
        recording.rising(SYNC_US, syncs.0 * syncs.1 * 1e3);
        recording.rising("opLatencies.writes.ops", writes.0);
        recording.rising("opLatencies.writes.latency", writes.0 * writes.1 * 1e3);
        recording.examine(|evidence, _| {
            let s_per_hour = evidence.sync_waiting_s_per_hour().unwrap();
            let asked = evidence.writes_wait_for_syncs();
            ((s_per_hour / 3.6).round(), asked)
        })
    }

    /// A regression: writes with `w: 1` of 50 documents each were said to wait for syncs for all of their time.
    #[test]
    fn few_syncs_are_not_what_many_writes_wait_for() {
        assert_eq!(waited_for_syncs((183.0, 4.16), (9.0, 6.74)), (61.0, false));
        // However long each takes.
        assert_eq!(waited_for_syncs((100.0, 8.0), (9.0, 6.74)), (61.0, false));
        // More than the journal's own thread makes, but far from enough.
        let (most, _) = waited_for_syncs((1000.0, 2.0), (20.0, 5.0));
        assert!(most < 250.0, "{most}");
    }

    #[test]
    fn writes_that_ask_for_syncs_are_found_whatever_the_disk() {
        // Four clients with j: true, where the disk allows few writes, and where it is fast.
        assert_eq!(
            waited_for_syncs((22.0, 180.0), (9.0, 108.0)),
            (3960.0, true)
        );
        assert_eq!(waited_for_syncs((60.0, 60.0), (30.0, 30.0)), (3600.0, true));
        let (waited, asked) = waited_for_syncs((1600.0, 3.2), (580.0, 1.43));
        assert!(asked && (4200.0..4700.0).contains(&waited), "{waited}");
        // One client that writes now and then.
        let (waited, asked) = waited_for_syncs((12.0, 11.0), (20.0, 10.0));
        assert_eq!((waited, asked), (132.0, true));
    }
}
