//! Totals, latencies, cache outcomes and patterns per phase and file: the part of a trace analysis
//! that a run with phases shows.

use seekscope_run::{FileRecord, FileRole, IoEvent, Phase};
use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};

use crate::{AccessPattern, AnalysisOptions, TraceAnalyser};

/// Calls of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Transfers {
    pub calls: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// System-call latency, ns.
    pub latency_ns: Quantiles,
}

/// Reads by where their bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheCounts {
    pub hits: u64,
    /// Read from the device, and waited for.
    pub misses: u64,
    /// Waited for pages already on their way.
    pub waited_for_others: u64,
    /// O_DIRECT.
    pub direct: u64,
    /// Bytes these reads sent to the block layer, read-ahead included.
    pub device_read_bytes: u64,
}

/// One file in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileAnalysis {
    pub file_id: u32,
    pub reads: Transfers,
    pub writes: Transfers,
    pub cache: CacheCounts,
    pub read_pattern: Option<AccessPattern>,
    pub write_pattern: Option<AccessPattern>,
}

/// One phase, all files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PhaseAnalysis {
    pub reads: Transfers,
    pub writes: Transfers,
    pub cache: CacheCounts,
    /// Most read bytes first.
    pub files: Vec<FileAnalysis>,
}

impl FileAnalysis {
    /// The pattern that describes the file best: of its reads, else of its writes.
    pub fn main_pattern(&self) -> Option<&AccessPattern> {
        self.read_pattern.as_ref().or(self.write_pattern.as_ref())
    }
}

impl PhaseAnalysis {
    /// The file a phase is about: the collection with most bytes read, else any file with most
    /// bytes read, else with most bytes written.
    pub fn main_file(&self, files: &[FileRecord]) -> Option<&FileAnalysis> {
        // `self.files` comes sorted by bytes read, then written.
        let is_collection = |analysis: &FileAnalysis| {
            let record = files.iter().find(|r| r.file_id == analysis.file_id);
            record.is_some_and(|r| r.role == FileRole::Collection)
        };
        let read = || self.files.iter().filter(|f| f.reads.bytes > 0);
        read()
            .find(|f| is_collection(f))
            .or_else(|| self.files.first())
    }
}

/// The events of one phase, out of events in order of their start.
pub fn events_of<'a>(phase: &Phase, events: &'a [IoEvent]) -> &'a [IoEvent] {
    let from = events.partition_point(|e| e.t_ns < phase.started_ns);
    let to = events.partition_point(|e| e.t_ns < phase.ended_ns);
    // A phase that ends before it starts (a damaged document) has no events.
    events.get(from..to).unwrap_or(&[])
}

/// Analyses every phase, in the order of `phases`. Events come in order of their start.
pub fn analyse(phases: &[Phase], events: &[IoEvent]) -> Vec<PhaseAnalysis> {
    phases
        .iter()
        .map(|phase| analyse_phase(events_of(phase, events)))
        .collect()
}

fn analyse_phase(events: &[IoEvent]) -> PhaseAnalysis {
    // The events are in memory already, so their values may be, too: every quantile is exact.
    let mut analyser = TraceAnalyser::new(AnalysisOptions {
        files_max: usize::MAX,
        exact_values_max: usize::MAX,
        ..AnalysisOptions::default()
    });
    for event in events {
        analyser.push(event);
    }
    let trace = analyser.finish(&[], &[]);
    PhaseAnalysis {
        reads: trace.reads,
        writes: trace.writes,
        cache: trace.cache,
        files: trace
            .files
            .into_iter()
            .filter(|f| f.reads.transfers.calls + f.writes.transfers.calls > 0)
            .map(|f| FileAnalysis {
                file_id: f.file.file_id,
                reads: f.reads.transfers,
                writes: f.writes.transfers,
                cache: f.cache,
                read_pattern: f.reads.pattern,
                write_pattern: f.writes.pattern,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_run::{CacheState, Disk, IoFlags, IoOp};

    fn phase(started_ns: u64, ended_ns: u64) -> Phase {
        Phase {
            name: String::new(),
            variant: String::new(),
            activity: String::new(),
            namespace: None,
            disk: Disk::Plain,
            cache: CacheState::AsFound { why: String::new() },
            started_ns,
            ended_ns,
            index_build: None,
            trace: None,
            process_io: None,
        }
    }

    fn read(t_ns: u64, file_id: u32, offset: u64, flags: u16) -> IoEvent {
        IoEvent {
            t_ns,
            pid: 1,
            tid: 1,
            file_id,
            op: IoOp::Pread,
            flags: IoFlags(flags),
            offset: Some(offset),
            length: 4096,
            latency_ns: t_ns,
            result: 4096,
            device_read_bytes: 8192 * u32::from(flags & IoFlags::DEVICE_READ != 0),
            request: None,
        }
    }

    #[test]
    fn events_go_to_their_phase_and_file() {
        let mut events = [
            read(12, 1, 4096, IoFlags::WAITED | IoFlags::DEVICE_READ),
            read(11, 1, 0, 0),
            read(13, 2, 0, IoFlags::WAITED),
            read(20, 1, 0, IoFlags::DIRECT | IoFlags::WAITED),
            IoEvent {
                op: IoOp::Pwrite,
                result: -28,
                ..read(14, 2, 0, 0)
            },
            read(9, 1, 0, 0),
            read(30, 1, 0, 0),
        ];
        events.sort_by_key(|e| e.t_ns);
        let [first, second]: [PhaseAnalysis; 2] = analyse(&[phase(10, 20), phase(20, 30)], &events)
            .try_into()
            .unwrap();
        assert_eq!(
            (first.reads.calls, first.reads.bytes, first.reads.errors),
            (3, 3 * 4096, 0)
        );
        assert_eq!(
            (first.writes.calls, first.writes.bytes, first.writes.errors),
            (1, 0, 1)
        );
        let cache = first.cache;
        assert_eq!(
            (
                cache.hits,
                cache.misses,
                cache.waited_for_others,
                cache.direct
            ),
            (1, 1, 1, 0)
        );
        assert_eq!(cache.device_read_bytes, 8192);
        assert_eq!(
            first.files.iter().map(|f| f.file_id).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(
            first.files[0]
                .read_pattern
                .as_ref()
                .unwrap()
                .contiguous_share,
            1.0
        );
        assert_eq!(first.files[1].write_pattern, None);
        assert_eq!((second.reads.calls, second.cache.direct), (1, 1));
    }

    #[test]
    fn a_phase_that_ends_before_it_starts_is_empty() {
        assert_eq!(
            analyse(&[phase(9, 3)], &[read(5, 1, 0, 0)])[0],
            PhaseAnalysis::default()
        );
    }
}
