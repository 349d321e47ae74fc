//! Tracing running processes.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use seekscope_run::{ThreadRecord, TraceCoverage, TraceFacts};

use crate::cost::{CallTimes, CostSampler};
use crate::decode::{RECORD_BYTES, decode};
use crate::disks::{self, DiskNumber};
use crate::error::TraceError;
use crate::files::FileTable;
use crate::filter::KernelFilter;
use crate::groups::{Group, NOT_ASKED_FOR, Plan};
use crate::host_calls::HostCalls;
use crate::loader::{
    Backend, Counters, Failure, Programs, Settings, TOTALS_MAX, check_btf, of_kinds,
};
use crate::members::{Member, Members};
use crate::notices::Notice;
use crate::options::{BackendChoice, Followed, RequestScope, TraceOptions};
use crate::preemption::typed_programs_are_preemptible;
use crate::process::{check_capabilities, not_ours};
use crate::ring::{BATCH_RECORDS, Batch, Ring};
use crate::source::{DRAIN_INTERVAL, EventSink, EventSource};
use crate::threads::ThreadTable;
use crate::totals::{FileTotals, KernelTotals, RawTotals};

const PROC: &str = "/proc";

/// Threads of a process mostly have neighbouring ids, so with this many slots two threads rarely
/// share one; clashes are counted as losses. 64 bytes each.
const START_SLOTS: u32 = 16_384;

/// The largest ring buffer that is requested from the kernel, bytes.
const MAX_RING_BYTES: u32 = 1 << 30;

/// How often a control group is searched for processes that have moved there.
const MEMBERS_INTERVAL: Duration = Duration::from_secs(1);

/// The events of running processes.
///
/// Tracing runs from [`LiveSource::attach`] to [`EventSource::finish`] or drop.
pub struct LiveSource {
    programs: Programs,
    ring: Ring,
    files: FileTable,
    threads: ThreadTable,
    members: Members,
    members_seen: Instant,
    cost: CostSampler,
    host_calls: HostCalls,
    backend_reason: String,
    filters: Vec<String>,
    reads_left_out: bool,
    files_chosen: bool,
    only_totals: bool,
    /// The totals when they were last fetched.
    taken: HashMap<KernelTotals, RawTotals>,
    ring_records: usize,
    batch: Batch,
    written: u64,
    /// Number of consecutive drains that found nothing.
    idle_drains: u32,
    /// The disks followed, and whether those of newly opened files are added.
    disks: Vec<DiskNumber>,
    add_disks: bool,
    /// Whether requests are recorded for all of the processes' own files, and only for these.
    knows_own_files: bool,
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

    /// Like [`LiveSource::attach`], with room for fewer concurrent calls, so that tests can make
    /// threads clash. `start_slots` is rounded up to a power of two.
    #[doc(hidden)]
    pub fn attach_with_slots(options: &TraceOptions, start_slots: u32) -> Result<Self, TraceError> {
        let proc_root = Path::new(PROC);
        let (members, found, target) = Members::find(proc_root, &options.followed)?;
        check_capabilities(proc_root)?;
        check_btf()?;
        let files = scan(proc_root, &found)?;
        let ring_bytes = ring_size(options.ring_bytes);
        let own_requests_only =
            options.groups.contains(&Group::Block) && options.requests == RequestScope::TracedFiles;
        let mut settings = Settings {
            target,
            is_set: !matches!(options.followed, Followed::Process(_)),
            // In a container the programs know children by other numbers than ours.
            follow_children: follows_children(&options.followed) && target.namespace.is_none(),
            kinds: options.kinds.clone(),
            filter: KernelFilter::new(&options.filter, options.sampling)?,
            only_totals: options.only_totals,
            ring_bytes,
            start_slots: start_slots.next_power_of_two(),
            groups: Plan::make(&options.groups),
            own_requests_only,
            open_files: files.seen().count(),
        };
        let followed_call = of_kinds(&settings.kinds).next().map(|call| call.number);
        let untraced = CallTimes::measure(followed_call);
        let (mut programs, backend_reason) = match load(options.backend, &settings) {
            Err(_) if settings.groups.drop_failing(Programs::probe) => {
                load(options.backend, &settings)?
            }
            loaded => loaded?,
        };
        if settings.is_set {
            found
                .iter()
                .try_for_each(|member| programs.follow(*member))?;
        }
        // For filtered folders the programs judge files themselves, when they are used.
        let knows_own_files = own_requests_only && settings.filter.wanted.is_empty();
        if knows_own_files {
            files.seen().try_for_each(|file| programs.own_file(file))?;
        }
        let ring = Ring::open(programs.ring())?;
        let named = options.disks.iter();
        let disks: Vec<DiskNumber> = named.map(|(major, minor)| major << 20 | minor).collect();
        programs.set_disks(&disks);
        let add_disks = disks.is_empty() && options.groups.contains(&Group::Block);
        let mut source = Self {
            programs,
            ring,
            files,
            threads: ThreadTable::new(proc_root, target.namespace.is_none(), found[0].pid),
            members,
            members_seen: Instant::now(),
            cost: CostSampler::new(),
            host_calls: HostCalls::default(),
            backend_reason,
            filters: options.describe_filters(),
            reads_left_out: options.leaves_out_reads(),
            files_chosen: options.chooses_files(),
            only_totals: options.only_totals,
            taken: HashMap::new(),
            ring_records: ring_bytes as usize / RECORD_BYTES,
            batch: Batch::default(),
            written: 0,
            idle_drains: 0,
            disks,
            add_disks,
            knows_own_files,
        };
        source.follow_new_disks();
        source.programs.set_tracing(true);
        source
            .cost
            .start(CallTimes::measure(followed_call).since(untraced));
        Ok(source)
    }

    /// Adds the disks of files that were opened on new filesystems.
    fn follow_new_disks(&mut self) {
        if !self.add_disks {
            return;
        }
        let known = self.disks.len();
        for path in self.files.new_filesystems() {
            for disk in disks::below(&path) {
                if !self.disks.contains(&disk) {
                    self.disks.push(disk);
                }
            }
        }
        if self.disks.len() > known {
            self.programs.set_disks(&self.disks);
        }
    }

    /// Hands over what is in the ring. Returns the number of events.
    fn drain_ring(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        self.files.next_drain();
        let mut total = 0;
        // A process that produces as fast as we read must not keep us here: one ring's worth is the
        // limit.
        while total < self.ring_records.max(BATCH_RECORDS) {
            let count = self.drain_batch(sink)?;
            total += count;
            if count < BATCH_RECORDS {
                break;
            }
        }
        self.follow_new_disks();
        self.programs.clear_wakeup();
        Ok(total)
    }

    /// Hands over one batch. Returns its size.
    fn drain_batch(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        let count = self.ring.read(&mut self.batch)?;
        let mut notices = std::mem::take(&mut self.batch.notices)
            .into_iter()
            .peekable();
        for (at, record) in self.batch.records.chunks_exact(RECORD_BYTES).enumerate() {
            while let Some((_, notice)) = notices.next_if(|(before, _)| *before <= at) {
                note(notice, &mut self.threads, &mut self.files);
            }
            let call = decode(record).map_err(|e| TraceError::Ring { why: e.to_string() })?;
            let file = match call.disk() {
                Some(disk) => self.files.resolve_request(call.file, disk),
                None => self.files.resolve(call.file),
            };
            if let Some(record) = self.files.record(file.file_id).filter(|_| file.is_new) {
                sink.file(record).map_err(TraceError::Sink)?;
                // The file was not opened by a call: it was inherited, or passed through a socket.
                if self.knows_own_files && call.disk().is_none() {
                    self.programs.own_file(call.file)?;
                }
            }
            let pid = self.threads.process_of(call.tid);
            sink.event(&call.event(pid, file.file_id))
                .map_err(TraceError::Sink)?;
            self.written += 1;
        }
        notices.for_each(|(_, notice)| note(notice, &mut self.threads, &mut self.files));
        self.hand_over_news(sink)?;
        Ok(count)
    }

    /// Hands over new threads, and files about which more is known.
    fn hand_over_news(&mut self, sink: &mut dyn EventSink) -> Result<(), TraceError> {
        for thread in self.threads.take_news() {
            sink.thread(&thread).map_err(TraceError::Sink)?;
        }
        for file in self.files.take_news() {
            sink.file(&file).map_err(TraceError::Sink)?;
        }
        Ok(())
    }

    /// Starts following processes that have moved into the control group.
    fn look_for_members(&mut self) -> Result<(), TraceError> {
        if self.members_seen.elapsed() < MEMBERS_INTERVAL {
            return Ok(());
        }
        self.members_seen = Instant::now();
        for member in self.members.joined() {
            self.programs.follow(member)?;
            self.files.add_process(member.pid);
        }
        Ok(())
    }

    /// Returns a text on the way into the kernel and why it was taken.
    pub fn way_in(&self) -> String {
        format!(
            "{} ({})",
            self.programs.backend().name(),
            self.backend_reason
        )
    }

    /// Returns what is followed, and what is not and why.
    pub fn coverage(&self) -> Vec<TraceCoverage> {
        let calls = TraceCoverage {
            group: "read, write and sync calls".into(),
            covered: true,
            how: self.programs.way_to_calls().into(),
        };
        let groups = self.programs.groups().coverage.iter().cloned();
        std::iter::once(calls).chain(groups).collect()
    }

    /// Returns what was requested but cannot be followed on this kernel.
    pub fn refused(&self) -> impl Iterator<Item = TraceCoverage> {
        let coverage = self.coverage().into_iter();
        coverage.filter(|group| !group.covered && group.how != NOT_ASKED_FOR)
    }

    /// Returns what was counted since the last call, if the trace only counts. Files are announced to `sink`.
    ///
    /// The kernel counts by inode number, which a new file may take over from a deleted one: what is counted from
    /// then on is the new file's, and what was counted before is never counted again.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn take_totals(&mut self, sink: &mut dyn EventSink) -> Result<Vec<FileTotals>, TraceError> {
        self.files.next_drain();
        let mut taken = Vec::new();
        for (of, now) in self.programs.totals() {
            let totals = match self.taken.insert(of, now) {
                Some(before) if before.calls == now.calls => continue,
                Some(before) => now.since(&before),
                None => now,
            };
            let file = self.files.resolve(of.file);
            if let Some(record) = self.files.record(file.file_id).filter(|_| file.is_new) {
                sink.file(record).map_err(TraceError::Sink)?;
            }
            taken.push(FileTotals {
                file_id: file.file_id,
                op: of.op,
                totals,
            });
        }
        Ok(taken)
    }

    /// Returns how many calls could not be recorded or counted so far.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn lost(&self) -> Result<u64, TraceError> {
        Ok(self.programs.counters()?.lost())
    }

    /// Returns by how much a system call takes longer that is not traced, of any process, as measured when tracing
    /// began, ns.
    pub fn call_delay_ns(&self) -> f64 {
        self.cost.call_delay_ns()
    }

    /// Returns whether more than half of the room that the kernel programs have for totals is used. A trace that goes
    /// on for very long is then begun anew, because files that are gone keep their room.
    pub fn is_crowded(&self) -> bool {
        self.taken.len() > TOTALS_MAX as usize / 2
    }

    fn facts(&self, counters: Counters, in_flight_at_end: u64) -> TraceFacts {
        let missed = self.programs.runs().missed();
        let mut backend_reason = self.backend_reason.clone();
        if missed > 0 {
            backend_reason.push_str(&format!(
                "; the kernel skipped the programs at {} system calls of all processes, so up to that many calls \
                 may be missing from `seen`",
                missed
            ));
        }
        TraceFacts {
            backend: self.programs.backend().name().into(),
            backend_reason,
            seen: counters.seen,
            written: self.written,
            lost: counters.lost(),
            lost_table_full: counters.lost_table_full,
            filters: self.filters.clone(),
            reads_left_out: self.reads_left_out,
            files_chosen: self.files_chosen,
            lost_ring_full: counters.lost_ring_full,
            lost_start: counters.lost_start,
            lost_end: counters.lost_end,
            requests: self.programs.counted_requests(&self.disks),
            coverage: self.coverage(),
            truncated: false,
            // The call that lost its slot to another thread also ends without a start.
            in_flight_at_start: counters.unmatched_exits.saturating_sub(counters.lost_start),
            in_flight_at_end,
            cost: self
                .cost
                .estimate(counters.seen, cpus(), self.host_calls.per_s()),
            ..TraceFacts::default()
        }
    }
}

impl EventSource for LiveSource {
    fn drain(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        let total = self.drain_ring(sink)?;
        self.look_for_members()?;
        self.idle_drains = if total == 0 {
            self.idle_drains.saturating_add(1)
        } else {
            0
        };
        if self.cost.is_due() {
            let counters = self.programs.counters()?;
            let programs = &self.programs;
            self.cost.look(counters.seen, || programs.runs());
            sink.lost(counters.lost());
        }
        self.host_calls.look(&mut self.programs)?;
        Ok(total)
    }

    fn finish(&mut self, sink: &mut dyn EventSink) -> Result<TraceFacts, TraceError> {
        self.host_calls.end(&mut self.programs)?;
        self.stop();
        let counters = self.programs.counters()?;
        self.cost.stop(counters.seen, self.programs.runs());
        while self.drain_ring(sink)? > 0 {}
        if self.only_totals {
            let totals = self.programs.totals();
            self.written = totals.iter().map(|(_, totals)| totals.calls).sum();
        }
        self.files.refresh();
        self.threads.refresh();
        self.hand_over_news(sink)?;
        Ok(self.facts(counters, self.programs.calls_in_flight()))
    }

    fn stop(&mut self) {
        self.programs.set_tracing(false);
        self.programs.detach();
    }

    fn wait(&mut self) {
        // A wake-up costs a tenth of a millisecond on a virtual machine, so there are fewer on an
        // idle server. If it wakes up with a flood, the ring signals when it is half full.
        self.ring
            .wait(DRAIN_INTERVAL * (1 << self.idle_drains.min(2)));
    }
}

/// Returns the number of CPUs of this host.
fn cpus() -> u64 {
    libbpf_rs::num_possible_cpus().map_or(1, |cpus| cpus as u64)
}

/// Returns whether children are traced too.
fn follows_children(followed: &Followed) -> bool {
    match followed {
        Followed::Process(_) => false,
        Followed::Processes { children, .. } => *children,
        // A child is born into its parent's group.
        Followed::Cgroup(_) => true,
    }
}

/// Processes what the kernel programs report besides I/O.
fn note(notice: Notice, threads: &mut ThreadTable, files: &mut FileTable) {
    match notice {
        Notice::Thread { tid, pid, name } => threads.announced(ThreadRecord { tid, pid, name }),
        Notice::Opened(file) => files.opened(file),
    }
}

/// Returns the files that the processes have open. A process that has just ended has none; if it
/// was the only one, that is an error.
fn scan(proc_root: &Path, members: &[Member]) -> Result<FileTable, TraceError> {
    let pids: Vec<u32> = members.iter().map(|member| member.pid).collect();
    FileTable::scan(proc_root, &pids).map_err(|error| scan_error(error, pids[0]))
}

/// Loads the chosen backend; with `Auto` the second if the first fails. Also returns the reason.
fn load(choice: BackendChoice, settings: &Settings) -> Result<(Programs, String), TraceError> {
    let asked_for = |backend| match Programs::load(backend, settings) {
        Ok(programs) => Ok((programs, "asked for".into())),
        Err(failure) => Err(failure.into_error()),
    };
    let ([first, second], why) = match choice {
        BackendChoice::TpBtf => return asked_for(Backend::TpBtf),
        BackendChoice::Tracepoint => return asked_for(Backend::Tracepoint),
        BackendChoice::Auto => best_first(),
        BackendChoice::Sparing => {
            let why = "it slows other system calls down least, and it could be loaded";
            ([Backend::Tracepoint, Backend::TpBtf], why)
        }
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

/// Returns the backends in the order in which to try them, and the reason for the first.
fn best_first() -> ([Backend; 2], &'static str) {
    if typed_programs_are_preemptible() {
        let why = "it misses fewer calls than tp_btf on this kernel (Linux 7.2 and newer)";
        ([Backend::Tracepoint, Backend::TpBtf], why)
    } else {
        let why = "it slows the traced calls down least, and it could be loaded";
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

/// Returns the size of the ring buffer, which must be a power of two and whole pages.
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
