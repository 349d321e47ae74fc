//! One pass over a run's events: totals, latencies, cache outcomes and patterns per phase and file.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use seekscope_run::{CacheOutcome, FileRecord, FileRole, IoEvent, Phase};
use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};

use crate::AccessPattern;
use crate::access::Access;

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
    let mut whole = Collector::default();
    let mut per_file: BTreeMap<u32, Collector> = BTreeMap::new();
    for event in events.iter().filter(|e| e.op.is_read() || e.op.is_write()) {
        whole.reads.count(event, true);
        whole.writes.count(event, false);
        whole.count_cache(event);
        let file = per_file.entry(event.file_id).or_default();
        file.reads.count(event, true);
        file.writes.count(event, false);
        file.count_cache(event);
        let direction = if event.op.is_read() {
            &mut file.reads
        } else {
            &mut file.writes
        };
        direction.note_access(event);
    }
    let mut files: Vec<FileAnalysis> = per_file
        .into_iter()
        .map(|(file_id, file)| file.finish(file_id))
        .collect();
    files.sort_by_key(|f| (Reverse(f.reads.bytes), Reverse(f.writes.bytes), f.file_id));
    PhaseAnalysis {
        reads: whole.reads.transfers(),
        writes: whole.writes.transfers(),
        cache: whole.cache,
        files,
    }
}

/// One direction of a file, while it is being counted.
#[derive(Default)]
struct DirectionCollector {
    transfers: Transfers,
    latencies_ns: Vec<u64>,
    accesses: Vec<Access>,
}

impl DirectionCollector {
    fn count(&mut self, event: &IoEvent, reads: bool) {
        if event.op.is_read() != reads {
            return;
        }
        self.transfers.calls += 1;
        self.transfers.bytes += event.bytes();
        self.transfers.errors += u64::from(event.result < 0);
        self.latencies_ns.push(event.latency_ns);
    }

    /// Apart from counting, because only files have a pattern, not the phase as a whole.
    fn note_access(&mut self, event: &IoEvent) {
        if let (Some(offset), bytes @ 1..) = (event.offset, event.bytes()) {
            self.accesses.push(Access { offset, bytes });
        }
    }

    fn transfers(&mut self) -> Transfers {
        Transfers {
            latency_ns: Quantiles::of(&mut self.latencies_ns),
            ..self.transfers
        }
    }
}

#[derive(Default)]
struct Collector {
    reads: DirectionCollector,
    writes: DirectionCollector,
    cache: CacheCounts,
}

impl Collector {
    fn count_cache(&mut self, event: &IoEvent) {
        let Some(outcome) = event.cache_outcome() else {
            return;
        };
        self.cache.device_read_bytes += u64::from(event.device_read_bytes);
        *match outcome {
            CacheOutcome::Hit => &mut self.cache.hits,
            CacheOutcome::Miss => &mut self.cache.misses,
            CacheOutcome::WaitedForOthers => &mut self.cache.waited_for_others,
            CacheOutcome::Direct => &mut self.cache.direct,
        } += 1;
    }

    fn finish(mut self, file_id: u32) -> FileAnalysis {
        FileAnalysis {
            file_id,
            reads: self.reads.transfers(),
            writes: self.writes.transfers(),
            cache: self.cache,
            read_pattern: AccessPattern::of(&self.reads.accesses),
            write_pattern: AccessPattern::of(&self.writes.accesses),
        }
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
