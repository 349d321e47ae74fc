//! Tracing a running process.

use std::io;
use std::path::Path;

use seekscope_run::TraceFacts;

use crate::cost::CostSampler;
use crate::decode::{RECORD_BYTES, decode};
use crate::error::TraceError;
use crate::files::FileTable;
use crate::loader::{Backend, Counters, Failure, Programs, Settings, check_btf};
use crate::preemption::typed_programs_are_preemptible;
use crate::process::{Target, check_capabilities, not_ours};
use crate::ring::{BATCH_RECORDS, Ring};
use crate::source::{DRAIN_INTERVAL, EventSink, EventSource};

const PROC: &str = "/proc";

/// Threads of a process mostly have neighbouring ids, so as many slots make a clash of two threads
/// in one slot a rarity; clashes are counted as losses. 64 bytes each.
const START_SLOTS: u32 = 16_384;

/// Largest ring buffer that is asked of the kernel, bytes.
const MAX_RING_BYTES: u32 = 1 << 30;

/// Which way into the kernel to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// The best that loads.
    #[default]
    Auto,
    /// Typed tracepoints or nothing.
    TpBtf,
    /// Classic tracepoints or nothing.
    Tracepoint,
}

/// What to trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOptions {
    /// Process id in the caller's PID namespace.
    pub pid: u32,
    /// Room for records not yet drained, bytes, 56 each. Rounded up to a power of two and to the
    /// page size; at most 1 GiB. At 300,000 events per second 16 MiB last a second.
    pub ring_bytes: u32,
    /// The way into the kernel.
    pub backend: BackendChoice,
}

impl TraceOptions {
    /// Sensible defaults for a process: 16 MiB, the best backend.
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            ring_bytes: 16 << 20,
            backend: BackendChoice::Auto,
        }
    }
}

/// Events of a running process.
///
/// Tracing runs from [`LiveSource::attach`] to [`EventSource::finish`] or drop.
pub struct LiveSource {
    programs: Programs,
    ring: Ring,
    files: FileTable,
    cost: CostSampler,
    pid: u32,
    backend_reason: String,
    ring_records: usize,
    batch: Vec<u8>,
    written: u64,
    /// Drains in a row that found nothing.
    idle_drains: u32,
}

impl LiveSource {
    /// Loads the kernel programs and begins to record.
    ///
    /// # Errors
    /// [`TraceError::NoSuchProcess`], [`TraceError::NotAProcess`], [`TraceError::NoPermission`],
    /// [`TraceError::NoBtf`], [`TraceError::Load`], each with what to do about it.
    pub fn attach(options: &TraceOptions) -> Result<Self, TraceError> {
        Self::attach_with_slots(options, START_SLOTS)
    }

    /// Like [`LiveSource::attach`], with room for the starts of fewer concurrent calls, so that
    /// tests can make threads clash. Rounded up to a power of two.
    #[doc(hidden)]
    pub fn attach_with_slots(options: &TraceOptions, start_slots: u32) -> Result<Self, TraceError> {
        let proc_root = Path::new(PROC);
        let target = Target::find(proc_root, options.pid)?;
        check_capabilities(proc_root)?;
        check_btf()?;
        let files = FileTable::scan(proc_root, options.pid, 0)
            .map_err(|error| scan_error(error, options.pid))?;

        let ring_bytes = ring_size(options.ring_bytes);
        let settings = Settings {
            target,
            ring_bytes,
            start_slots: start_slots.next_power_of_two(),
        };
        let (mut programs, backend_reason) = load(options.backend, &settings)?;
        let ring = Ring::open(programs.ring())?;
        let cost = CostSampler::start();
        programs.set_tracing(true);
        Ok(Self {
            programs,
            ring,
            files,
            cost,
            pid: options.pid,
            backend_reason,
            ring_records: ring_bytes as usize / RECORD_BYTES,
            batch: Vec::new(),
            written: 0,
            idle_drains: 0,
        })
    }

    /// Gives out file ids from `first` upwards, for a run that holds several traces. Call before
    /// the first drain.
    ///
    /// # Errors
    /// When the process has ended meanwhile.
    pub fn with_first_file_id(mut self, first: u32) -> Result<Self, TraceError> {
        self.files = FileTable::scan(Path::new(PROC), self.pid, first)
            .map_err(|e| scan_error(e, self.pid))?;
        Ok(self)
    }

    /// Hands over what is in the ring; returns how many events.
    fn drain_ring(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        self.files.next_drain();
        let mut total = 0;
        // A process that produces as fast as we read must not keep us here: one ring's worth.
        while total < self.ring_records.max(BATCH_RECORDS) {
            let count = self.drain_batch(sink)?;
            total += count;
            if count < BATCH_RECORDS {
                break;
            }
        }
        self.programs.clear_wakeup();
        Ok(total)
    }

    /// Hands over one batch; returns its size.
    fn drain_batch(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        let count = self.ring.read(&mut self.batch)?;
        let pid = self.programs.host_tgid().unwrap_or(self.pid);
        for record in self.batch.chunks_exact(RECORD_BYTES) {
            let call = decode(record).map_err(|e| TraceError::Ring { why: e.to_string() })?;
            let file = self.files.resolve(call.file);
            if let Some(record) = self.files.record(file.file_id).filter(|_| file.is_new) {
                sink.file(record).map_err(TraceError::Sink)?;
            }
            sink.event(&call.event(pid, file.file_id))
                .map_err(TraceError::Sink)?;
            self.written += 1;
        }
        Ok(count)
    }

    fn facts(&self, counters: Counters, in_flight_at_end: u64) -> TraceFacts {
        let runs = self.programs.runs();
        let mut backend_reason = self.backend_reason.clone();
        if runs.missed > 0 {
            backend_reason.push_str(&format!(
                "; the kernel skipped the programs at {} system calls of all processes, so up to that many calls \
                 may be missing from `seen`",
                runs.missed
            ));
        }
        TraceFacts {
            backend: self.programs.backend().name().into(),
            backend_reason,
            seen: counters.seen,
            written: self.written,
            lost: counters.lost_ring_full + counters.lost_start,
            lost_ring_full: counters.lost_ring_full,
            lost_start: counters.lost_start,
            truncated: false,
            // The call that lost its slot to another thread ends without a start, too.
            in_flight_at_start: counters.unmatched_exits.saturating_sub(counters.lost_start),
            in_flight_at_end,
            cost: self.cost.estimate(runs, counters.seen),
            ..TraceFacts::default()
        }
    }
}

impl EventSource for LiveSource {
    fn drain(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        let total = self.drain_ring(sink)?;
        self.idle_drains = if total == 0 {
            self.idle_drains.saturating_add(1)
        } else {
            0
        };
        let programs = &self.programs;
        self.cost
            .drained(|| programs.counters().map_or(0, |counters| counters.seen));
        Ok(total)
    }

    fn finish(&mut self, sink: &mut dyn EventSink) -> Result<TraceFacts, TraceError> {
        self.stop();
        let counters = self.programs.counters()?;
        self.cost.stop(counters.seen);
        while self.drain_ring(sink)? > 0 {}
        for record in self.files.refresh() {
            sink.file(&record).map_err(TraceError::Sink)?;
        }
        Ok(self.facts(counters, self.programs.calls_in_flight()))
    }

    fn stop(&mut self) {
        self.programs.set_tracing(false);
        self.programs.detach();
    }

    fn wait(&mut self) {
        // Waking up costs a tenth of a millisecond on a virtual machine; an idle server deserves
        // less of it. Should it awake with a flood, the ring calls when it is half full.
        self.ring
            .wait(DRAIN_INTERVAL * (1 << self.idle_drains.min(3)));
    }
}

/// Loads the chosen backend; with `Auto` the second when the first fails. Also says why.
fn load(choice: BackendChoice, settings: &Settings) -> Result<(Programs, String), TraceError> {
    let asked_for = |backend| match Programs::load(backend, settings) {
        Ok(programs) => Ok((programs, "asked for".into())),
        Err(failure) => Err(failure.into_error()),
    };
    let ([first, second], why) = match choice {
        BackendChoice::TpBtf => return asked_for(Backend::TpBtf),
        BackendChoice::Tracepoint => return asked_for(Backend::Tracepoint),
        BackendChoice::Auto => best_first(),
    };
    let failure = match Programs::load(first, settings) {
        Ok(programs) => return Ok((programs, why.into())),
        Err(failure) => failure,
    };
    match Programs::load(second, settings) {
        Ok(programs) => Ok((programs, failure.reason())),
        Err(second) => Err(both_failed(&failure, second)),
    }
}

/// The backends in the order in which they are to be tried, and what speaks for the first.
fn best_first() -> ([Backend; 2], &'static str) {
    if typed_programs_are_preemptible() {
        let why = "misses no call; on this kernel (Linux 7.2 and newer) tp_btf would";
        ([Backend::Tracepoint, Backend::TpBtf], why)
    } else {
        let why = "the fastest, and it loaded";
        ([Backend::TpBtf, Backend::Tracepoint], why)
    }
}

fn both_failed(first: &Failure, second: Failure) -> TraceError {
    let earlier = first.reason();
    match second.into_error() {
        TraceError::NoPermission { what, why, remedy } => TraceError::NoPermission {
            what,
            why: format!("{why}; before, {earlier}"),
            remedy,
        },
        TraceError::Load { what, why, remedy } => TraceError::Load {
            what,
            why: format!("{why}; before, {earlier}"),
            remedy,
        },
        other => other,
    }
}

/// A ring buffer's size must be a power of two and whole pages.
fn ring_size(asked: u32) -> u32 {
    let page = u32::try_from(rustix::param::page_size()).unwrap_or(MAX_RING_BYTES);
    asked.clamp(page, MAX_RING_BYTES).next_power_of_two()
}

fn scan_error(error: io::Error, pid: u32) -> TraceError {
    match error.kind() {
        io::ErrorKind::NotFound => TraceError::NoSuchProcess { pid },
        io::ErrorKind::PermissionDenied => not_ours(&pid.to_string()),
        _ => TraceError::Proc {
            path: format!("{PROC}/{pid}/fd"),
            source: error,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_sizes_are_powers_of_two_and_whole_pages() {
        let page = u32::try_from(rustix::param::page_size()).unwrap();
        assert_eq!(ring_size(0), page);
        assert_eq!(ring_size(page + 1), 2 * page);
        assert_eq!(ring_size(16 << 20), 16 << 20);
        assert_eq!(ring_size(u32::MAX), MAX_RING_BYTES);
    }
}
