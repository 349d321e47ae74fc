//! The analysis of a trace that only counted, as far as counts go: no patterns, threads or order,
//! but calls, bytes, cache outcomes and latencies per file.

use std::collections::BTreeMap;

use seekscope_run::{FileRecord, FileTotals, IoKind};
use seekscope_stats::Quantiles;

use crate::{
    BytesBySource, CacheCounts, DirectionTrace, FileOnDevice, FileTrace, LatencyByOutcome,
    QueueDepth, ReuseDistances, SyncCalls, TraceAnalysis, Transfers,
};

/// Summed totals of one kind of operation.
#[derive(Debug, Clone, Default)]
struct Sum {
    calls: u64,
    errors: u64,
    bytes: u64,
    latency_sum_ns: u64,
    latency_counts: Vec<u64>,
}

/// Sums for one file, or for all.
#[derive(Debug, Clone, Default)]
struct Sums {
    reads: Sum,
    writes: Sum,
    syncs: Sum,
    cache: CacheCounts,
}

impl TraceAnalysis {
    /// Makes an analysis from counts. Quantiles of latency are upper bounds: the ends of buckets
    /// whose widths double, so at most twice the true value.
    pub fn of_totals(rows: &[FileTotals], files: &[FileRecord]) -> Self {
        let mut whole = Sums::default();
        let mut per_file: BTreeMap<u32, Sums> = BTreeMap::new();
        for row in rows {
            whole.add(row);
            per_file.entry(row.file_id).or_default().add(row);
        }
        let end_ns = |row: &FileTotals| row.t_ns.saturating_add(row.duration_ns);
        let mut analysis = Self {
            started_ns: rows.iter().map(|row| row.t_ns).min().unwrap_or(0),
            ended_ns: rows.iter().map(end_ns).max().unwrap_or(0),
            events: rows.iter().map(|row| row.calls).sum(),
            reads: whole.reads.transfers(),
            writes: whole.writes.transfers(),
            syncs: whole.syncs.sync_calls(),
            cache: whole.cache,
            ..Self::default()
        };
        analysis.files = files
            .iter()
            .filter_map(|file| Some(per_file.get(&file.file_id)?.file(file)))
            .collect();
        analysis.files.sort_by_key(|file| {
            let bytes = |t: &Transfers| std::cmp::Reverse(t.bytes);
            (bytes(&file.reads.transfers), bytes(&file.writes.transfers))
        });
        analysis
    }
}

impl Sums {
    fn add(&mut self, row: &FileTotals) {
        match row.op.kind() {
            IoKind::Read => {
                self.reads.add(row);
                self.cache.hits += row.hits;
                self.cache.misses += row.misses;
                self.cache.waited_for_others += row.waited_for_others;
                self.cache.direct += row.direct;
                self.cache.device_read_bytes += row.device_read_bytes;
            }
            IoKind::Write => self.writes.add(row),
            IoKind::Sync | IoKind::Discard => self.syncs.add(row),
        }
    }

    fn file(&self, file: &FileRecord) -> FileTrace {
        FileTrace {
            reads: DirectionTrace {
                transfers: self.reads.transfers(),
                ..DirectionTrace::default()
            },
            writes: DirectionTrace {
                transfers: self.writes.transfers(),
                ..DirectionTrace::default()
            },
            syncs: self.syncs.sync_calls(),
            cache: self.cache,
            read_bytes_by_source: BytesBySource {
                asked_bytes: self.reads.bytes,
                // Counts distinguish calls by outcome, but not their bytes.
                unknown_bytes: self.reads.bytes,
                device_read_bytes: self.cache.device_read_bytes,
                ..BytesBySource::default()
            },
            file: file.clone(),
            latency_by_outcome: LatencyByOutcome::default(),
            queue_depth: QueueDepth::default(),
            reuse: ReuseDistances::default(),
            device: FileOnDevice::default(),
            slices: Vec::new(),
        }
    }
}

impl Sum {
    fn add(&mut self, row: &FileTotals) {
        self.calls += row.calls;
        self.errors += row.errors;
        self.bytes += row.bytes;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(row.latency_sum_ns);
        let buckets = self.latency_counts.len().max(row.latency_counts.len());
        self.latency_counts.resize(buckets, 0);
        for (sum, count) in self.latency_counts.iter_mut().zip(&row.latency_counts) {
            *sum += count;
        }
    }

    fn latency_ns(&self) -> Quantiles {
        let at = |per_mille| FileTotals::latency_quantile_ns(&self.latency_counts, per_mille);
        let first = self.latency_counts.iter().position(|count| *count > 0);
        Quantiles {
            count: self.calls,
            min: first.map_or(0, |bucket| 1 << bucket.min(63)),
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: at(1000),
            mean: self.latency_sum_ns.checked_div(self.calls).unwrap_or(0),
        }
    }

    fn transfers(&self) -> Transfers {
        Transfers {
            calls: self.calls,
            bytes: self.bytes,
            errors: self.errors,
            latency_ns: self.latency_ns(),
        }
    }

    fn sync_calls(&self) -> SyncCalls {
        SyncCalls {
            calls: self.calls,
            errors: self.errors,
            latency_ns: self.latency_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, IoOp, PathState};

    use super::*;

    fn row(t_ns: u64, file_id: u32, op: IoOp, calls: u64, bucket: usize) -> FileTotals {
        let mut latency_counts = vec![0; 40];
        latency_counts[bucket] = calls;
        FileTotals {
            t_ns,
            duration_ns: 10,
            file_id,
            op,
            calls,
            errors: 1,
            bytes: calls * 100,
            device_read_bytes: 7,
            hits: calls - 1,
            misses: 1,
            waited_for_others: 0,
            direct: 0,
            latency_sum_ns: calls << bucket,
            latency_counts,
        }
    }

    #[test]
    fn intervals_and_operations_are_summed_per_file() {
        let file = |file_id, path: &str| FileRecord {
            file_id,
            path: path.into(),
            path_state: PathState::Known,
            device_major: 8,
            device_minor: 0,
            inode: 1,
            size_bytes: 1,
            role: FileRole::Other,
            namespace: None,
            member: None,
        };
        let files = [file(1, "/small"), file(2, "/big"), file(3, "/unused")];
        let rows = [
            row(100, 2, IoOp::Pread, 30, 10),
            row(100, 1, IoOp::Read, 5, 10),
            row(110, 2, IoOp::Pread, 10, 20),
            row(110, 2, IoOp::Pwrite, 4, 12),
            row(110, 2, IoOp::Fdatasync, 2, 22),
        ];
        let analysis = TraceAnalysis::of_totals(&rows, &files);
        assert_eq!((analysis.started_ns, analysis.ended_ns), (100, 120));
        let names: Vec<&str> = analysis
            .files
            .iter()
            .map(|f| f.file.path.as_str())
            .collect();
        assert_eq!(names, ["/big", "/small"]);
        let big = &analysis.files[0];
        assert_eq!(
            (big.reads.transfers.calls, big.reads.transfers.bytes),
            (40, 4000)
        );
        assert_eq!((big.writes.transfers.calls, big.syncs.calls), (4, 2));
        assert_eq!((big.cache.hits, big.cache.misses), (38, 2));
        assert_eq!(big.reads.transfers.latency_ns.p50, 2047);
        assert_eq!(big.reads.transfers.latency_ns.p90, (1 << 21) - 1);
        assert_eq!((analysis.reads.calls, analysis.events), (45, 51));
    }
}
