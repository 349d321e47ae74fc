//! Loading and attaching the kernel programs. No other module does this.

mod constants;
mod system_calls;

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapMut, OpenObject, PrintLevel, set_print};
use rustix::thread::{MembarrierCommand, membarrier};

use crate::cost::{AllRuns, program_runs};
use crate::decode::FileKey;
use crate::disks::{DISKS_MAX, DiskNumber};
use crate::error::TraceError;
use crate::filter::{KernelFilter, key_bytes};
use crate::groups::{self, Group, Hooks, Plan};
use crate::members::Member;
use crate::process::{GRANT, Target};
use crate::request_counts;
use crate::totals::{KernelTotals, RawTotals};

#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::undocumented_unsafe_blocks,
    clippy::too_many_lines,
    unreachable_pub,
    reason = "generated from bpf/io.bpf.c"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/io.skel.rs"));
}
use generated::{IoSkel, IoSkelBuilder, OpenIoSkel, types};
use seekscope_run::{CountedRequests, IoKind};
pub(crate) use system_calls::{PROGRAMS as AT_FOLLOWED_CALLS, of_kinds};

/// Where the kernel publishes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Where classic tracepoints are listed; the first is mounted automatically by old kernels.
const TRACEFS: [&str; 2] = [
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];

/// The kernel's lockdown state, which restricts root, if securityfs is mounted.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// The lines with which the library frames the verifier's log.
const LOG_BEGINS: &str = "-- BEGIN PROG LOAD LOG --";
const LOG_ENDS: &str = "-- END PROG LOAD LOG --";

/// The most pairs of file and operation that can be counted, 392 bytes each.
pub(crate) const TOTALS_MAX: u32 = 16_384;

/// The fewest verdicts about files that are kept (`VERDICTS_MAX` in bpf/filter.h). If more files
/// are open, the number is a multiple of theirs: servers open more as they go on.
const VERDICTS_MIN: usize = 16_384;
const VERDICTS_PER_OPEN_FILE: usize = 4;
/// `VERDICT_WANTED` in bpf/filter.h.
const VERDICT_WANTED: u8 = 1;

/// Slots read at a time when a trace ends.
const SLOTS_PER_BATCH: u32 = 4096;
/// Where `op` lies in `struct start_slot` of bpf/record.h; `tid` comes first.
const SLOT_OP_AT: usize = 6;

/// Messages of the library since the last load, kept so that they end up in error texts and not on
/// the terminal.
static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// A verifier log has thousands of lines; the cause is at its end.
const MESSAGES_KEPT: usize = 64;

/// A way into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    TpBtf,
    Tracepoint,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TpBtf => "tp_btf",
            Self::Tracepoint => "tracepoint",
        }
    }
}

/// What the programs are told before they load.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The process, or the first of a set; its namespace applies to all of them.
    pub(crate) target: Target,
    /// Whether there is more than one process, or one whose children count.
    pub(crate) is_set: bool,
    /// Whether children are traced from birth.
    pub(crate) follow_children: bool,
    pub(crate) kinds: Vec<IoKind>,
    pub(crate) filter: KernelFilter,
    pub(crate) only_totals: bool,
    /// A power of two and a multiple of the page size, bytes.
    pub(crate) ring_bytes: u32,
    /// A power of two.
    pub(crate) start_slots: u32,
    /// The kinds of I/O besides the plain calls.
    pub(crate) groups: Plan,
    /// Whether requests for other files are counted, not recorded.
    pub(crate) own_requests_only: bool,
    /// Number of files open when tracing begins.
    pub(crate) open_files: usize,
}

/// The programs' counters, summed over CPUs (`struct io_counters` in bpf/record.h).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) seen: u64,
    pub(crate) lost_ring_full: u64,
    pub(crate) lost_start: u64,
    pub(crate) unmatched_exits: u64,
    pub(crate) lost_table_full: u64,
    pub(crate) lost_end: u64,
    /// System calls of all processes of the host, as far as they were [counted](Programs::count_host_calls).
    pub(crate) host_calls: u64,
}

impl Counters {
    /// Returns the events seen but not handed over, for any reason.
    pub(crate) fn lost(&self) -> u64 {
        self.lost_ring_full + self.lost_start + self.lost_table_full + self.lost_end
    }
}

/// The programs in the kernel. Dropping this removes them.
pub(crate) struct Programs {
    /// Declared first, so that it is detached before the maps go.
    links: Vec<Link>,
    /// The link of the program that counts the host's calls.
    tally: Option<Link>,
    skeleton: IoSkel<'static>,
    backend: Backend,
    calls: Hooks,
    groups: Plan,
    own_requests_only: bool,
}

/// Why a backend failed.
#[derive(Debug)]
pub(crate) struct Failure {
    backend: Backend,
    error: libbpf_rs::Error,
    messages: String,
}

impl Programs {
    /// Loads and attaches one backend. The programs stay idle until [`Programs::set_tracing`].
    pub(crate) fn load(backend: Backend, settings: &Settings) -> Result<Self, Failure> {
        lock_messages().clear();
        set_print(Some((PrintLevel::Info, keep_message)));
        Self::try_load(backend, settings).map_err(|error| Failure {
            backend,
            error,
            messages: lock_messages().join(" "),
        })
    }

    fn try_load(backend: Backend, settings: &Settings) -> libbpf_rs::Result<Self> {
        // The generated code borrows this place for as long as the programs live, which nothing
        // bounds. It holds one pointer, so leaking it costs eight bytes per trace.
        let place = Box::leak(Box::new(MaybeUninit::<OpenObject>::uninit()));
        let mut open = IoSkelBuilder::default().open(place)?;
        let mut groups = settings.groups.clone();
        let calls = groups.hooks_of_calls(backend);
        let all: Vec<Hooks> = std::iter::once(calls)
            .chain(groups.hooks.iter().copied())
            .collect();
        configure(&mut open, &all, settings)?;
        let sees_all = backend == Backend::TpBtf;
        open.progs.seekscope_tally.set_autoload(!sees_all);
        let skeleton = open.load()?;
        // Whether entry or exit is attached first does not matter: programs are idle while
        // `tracing` is 0.
        let mut links = match backend {
            Backend::TpBtf => groups::attach(skeleton.object(), &calls)?,
            Backend::Tracepoint => system_calls::attach(skeleton.object(), &settings.kinds)?,
        };
        if settings.follow_children {
            let programs = &skeleton.progs;
            links.push(programs.seekscope_fork.attach()?);
            links.push(programs.seekscope_exec.attach()?);
        }
        for key in &settings.filter.wanted {
            skeleton
                .maps
                .seekscope_wanted
                .update(key, &[1], MapFlags::ANY)?;
        }
        for hooks in groups.hooks.clone() {
            match groups::attach(skeleton.object(), &hooks) {
                Ok(more) => links.extend(more),
                Err(error) => groups.drop_group(hooks.group, error.to_string()),
            }
        }
        Ok(Self {
            links,
            tally: None,
            skeleton,
            backend,
            calls,
            groups,
            own_requests_only: settings.own_requests_only,
        })
    }

    /// Tries to load and attach one group, alone and briefly. Costs as much CPU time as loading all
    /// of them.
    ///
    /// # Errors
    /// Why the kernel refuses, for the trailer.
    pub(crate) fn probe(hooks: &Hooks) -> Result<(), String> {
        lock_messages().clear();
        set_print(Some((PrintLevel::Info, keep_message)));
        let attempt = || {
            let mut place = MaybeUninit::<OpenObject>::uninit();
            let mut open = IoSkelBuilder::default().open(&mut place)?;
            open.progs.seekscope_fork.set_autoload(false);
            open.progs.seekscope_exec.set_autoload(false);
            open.progs.seekscope_tally.set_autoload(false);
            let page_bytes = u32::try_from(rustix::param::page_size()).unwrap_or(1 << 16);
            open.maps.seekscope_ring.set_max_entries(page_bytes)?;
            groups::select(open.open_object_mut(), std::slice::from_ref(hooks))?;
            groups::attach(open.load()?.object(), hooks).map(drop)
        };
        attempt().map_err(|error: libbpf_rs::Error| {
            // The library's further advice is about privileges that tracing does not need.
            let messages = lock_messages().join(" ");
            if messages.contains(LOG_BEGINS) {
                format!("{error}; {}", without_verifier_log(&messages))
            } else {
                error.to_string()
            }
        })
    }

    /// Returns how the plain calls are followed.
    pub(crate) fn way_to_calls(&self) -> &'static str {
        self.calls.how
    }

    /// Returns what is followed besides the plain calls, and why the rest is not.
    pub(crate) fn groups(&self) -> &Plan {
        &self.groups
    }

    /// Follows the requests of these disks; disks beyond [`DISKS_MAX`] are left out.
    pub(crate) fn set_disks(&mut self, disks: &[DiskNumber]) {
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            for (place, disk) in shared
                .block_disks
                .iter_mut()
                .zip(disks.iter().take(DISKS_MAX))
            {
                store(place, *disk);
            }
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        self.backend
    }

    pub(crate) fn ring(&self) -> &MapMut<'static> {
        &self.skeleton.maps.seekscope_ring
    }

    /// Starts or stops recording, for all programs at once. Returns when no program still acts on
    /// the old setting.
    pub(crate) fn set_tracing(&mut self, on: bool) {
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            store(&mut shared.tracing, u32::from(on));
        }
        // Programs run inside read-side critical sections; this command waits for all of them. If
        // the kernel does not offer it, 20 ms is thousands of times a program's run.
        if membarrier(MembarrierCommand::Global).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Takes the programs off their hooks, or begins to; counters and ring stay readable.
    pub(crate) fn detach(&mut self) {
        self.tally = None;
        let links = std::mem::take(&mut self.links);
        // To let go of a classic tracepoint the kernel waits tens of milliseconds, one after the other. The programs
        // do nothing any more, so nobody else has to wait for that.
        match self.backend {
            Backend::TpBtf => drop(links),
            Backend::Tracepoint => drop(std::thread::spawn(move || drop(links))),
        }
    }

    /// Begins or ends to count the system calls of the whole host, where the programs do not run at each of them.
    ///
    /// # Errors
    /// When the kernel refuses to attach the program.
    pub(crate) fn count_host_calls(&mut self, on: bool) -> libbpf_rs::Result<()> {
        self.tally = match on {
            true => Some(self.skeleton.progs.seekscope_tally.attach()?),
            false => None,
        };
        Ok(())
    }

    /// Tells the programs that the reader is awake.
    pub(crate) fn clear_wakeup(&mut self) {
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            store(&mut shared.wakeup_sent, 0);
        }
    }

    /// Follows one more process.
    ///
    /// # Errors
    /// When the table is full, which takes 16,384 processes.
    pub(crate) fn follow(&self, member: Member) -> Result<(), TraceError> {
        let key = member.tgid.to_ne_bytes();
        let tgids = &self.skeleton.maps.seekscope_tgids;
        tgids
            .update(&key, &[1], MapFlags::ANY)
            .map_err(|e| TraceError::Load {
                what: format!("follow process {}", member.pid),
                why: e.to_string(),
                remedy: "Trace fewer processes".into(),
            })
    }

    /// Marks a file as one of a traced process, for its requests. The programs know by themselves
    /// about files opened from now on.
    ///
    /// # Errors
    /// When the kernel has no memory for the entry.
    pub(crate) fn own_file(&self, file: FileKey) -> Result<(), TraceError> {
        self.skeleton
            .maps
            .seekscope_verdicts
            .update(&key_bytes(file), &[VERDICT_WANTED], MapFlags::ANY)
            .map_err(|e| TraceError::Load {
                what: "follow the requests for a file".into(),
                why: e.to_string(),
                remedy: "Do not trace disk requests".into(),
            })
    }

    /// Returns all requests of `disks` so far, if they are counted.
    pub(crate) fn counted_requests(&self, disks: &[DiskNumber]) -> Vec<CountedRequests> {
        let counts = &self.skeleton.maps.seekscope_request_counts;
        if !self.own_requests_only || !self.groups.has(Group::Block) {
            return Vec::new();
        }
        let disks = &disks[..disks.len().min(DISKS_MAX)];
        request_counts::collect(disks, |index| {
            let found = counts.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
            request_counts::sum_of_cpus(&found.ok().flatten().unwrap_or_default())
        })
    }

    /// Returns the totals so far, per file and operation.
    pub(crate) fn totals(&self) -> Vec<(KernelTotals, RawTotals)> {
        let map = &self.skeleton.maps.seekscope_totals;
        map.keys()
            .filter_map(|key| {
                let value = map.lookup(&key, MapFlags::ANY).ok().flatten()?;
                KernelTotals::decode(&key, &value)
            })
            .collect()
    }

    /// Sums the counters of all CPUs.
    pub(crate) fn counters(&self) -> Result<Counters, TraceError> {
        let maps = &self.skeleton.maps;
        let mut per_cpu = Vec::new();
        for counters in [&maps.seekscope_count, &maps.seekscope_group_count] {
            let of_map = counters
                .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(|e| TraceError::Ring {
                    why: format!("counters: {e}"),
                })?;
            per_cpu.extend(of_map.unwrap_or_default());
        }
        let mut sum = Counters::default();
        for cpu in &per_cpu {
            let mut words = cpu
                .chunks_exact(8)
                .filter_map(|word| word.try_into().ok())
                .map(u64::from_ne_bytes);
            sum.seen += words.next().unwrap_or(0);
            sum.lost_ring_full += words.next().unwrap_or(0);
            sum.lost_start += words.next().unwrap_or(0);
            sum.unmatched_exits += words.next().unwrap_or(0);
            sum.lost_table_full += words.next().unwrap_or(0);
            sum.lost_end += words.next().unwrap_or(0);
            sum.host_calls += words.next().unwrap_or(0);
        }
        Ok(sum)
    }

    /// Returns the calls on files that began and have not ended. Meaningful once tracing is off.
    pub(crate) fn calls_in_flight(&self) -> u64 {
        let slots = &self.skeleton.maps.seekscope_slots;
        let occupied =
            |slot: &[u8]| slot.len() > SLOT_OP_AT && slot[..4] != [0; 4] && slot[SLOT_OP_AT] != 0;
        let in_groups = groups::in_flight(self.skeleton.object(), &self.groups.hooks);
        // A few calls into the kernel (Linux 5.6) instead of one per slot.
        in_groups
            + match slots.lookup_batch(SLOTS_PER_BATCH, MapFlags::ANY, MapFlags::ANY) {
                Ok(batches) => batches.filter(|(_, slot)| occupied(slot)).count() as u64,
                Err(_) => 0,
            }
    }

    /// Returns what the kernel counted about the programs.
    pub(crate) fn runs(&self) -> AllRuns {
        let of = |hooks: &[Hooks]| {
            groups::programs(self.skeleton.object(), hooks)
                .map(|program| program_runs(program.as_fd()))
                .sum()
        };
        AllRuns {
            calls: of(std::slice::from_ref(&self.calls)),
            groups: of(&self.groups.hooks),
        }
    }
}

/// Fails early, with a clear message, if the kernel publishes no types.
pub(crate) fn check_btf() -> Result<(), TraceError> {
    if Path::new(BTF).exists() {
        return Ok(());
    }
    Err(TraceError::NoBtf { path: BTF.into() })
}

impl Failure {
    /// Returns why a worse backend had to be used, for the trailer.
    pub(crate) fn reason(&self) -> String {
        format!("{} did not load ({})", self.backend.name(), self.cause())
    }

    fn cause(&self) -> String {
        if self.messages.is_empty() {
            return self.error.to_string();
        }
        format!("{}; {}", self.error, without_verifier_log(&self.messages))
    }

    /// Returns the error for the user, when no backend is left to try.
    pub(crate) fn into_error(self) -> TraceError {
        let what = format!("load the tracing programs ({})", self.backend.name());
        if is_locked_down() {
            return TraceError::NoPermission {
                what,
                why: "the kernel is locked down for confidentiality, which prevents everyone, \
                      including root, from reading its memory"
                    .into(),
                remedy: "Boot with lockdown=integrity or without lockdown \
                         (cat /sys/kernel/security/lockdown shows the mode)"
                    .into(),
            };
        }
        if self.backend == Backend::Tracepoint
            && !TRACEFS.iter().any(|path| Path::new(path).exists())
        {
            return TraceError::Load {
                what,
                why: "classic tracepoints are found through tracefs, which is not mounted".into(),
                remedy: "Mount it: mount -t tracefs tracefs /sys/kernel/tracing".into(),
            };
        }
        let why = self.cause();
        if self.error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            let remedy = format!(
                "{GRANT}. If it has these capabilities, a container's seccomp profile, a user namespace or kernel \
                 lockdown (cat /sys/kernel/security/lockdown) forbids eBPF"
            );
            return TraceError::NoPermission { what, why, remedy };
        }
        let remedy = "Tracing needs Linux 5.8 or newer on x86_64 or arm64; on kernels before 5.11 a smaller ring \
                      buffer may help (ulimit -l)"
            .into();
        TraceError::Load { what, why, remedy }
    }
}

/// Returns whether lockdown forbids what every tracing program does. The kernel then refuses with
/// EINVAL, as if the program were wrong. In the other mode, integrity, programs may read.
fn is_locked_down() -> bool {
    std::fs::read_to_string(LOCKDOWN).is_ok_and(|modes| modes.contains("[confidentiality]"))
}

/// Reduces the verifier's log in a text, which lists the registers at each instruction, to its
/// verdict: the line before the closing statistics.
fn without_verifier_log(text: &str) -> String {
    let Some((before, rest)) = text.split_once(LOG_BEGINS) else {
        return text.to_owned();
    };
    let (log, after) = rest.split_once(LOG_ENDS).unwrap_or((rest, ""));
    let verdict = log
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty() && !line.starts_with("processed "));
    let after = without_verifier_log(after);
    format!("{before}{}{after}", verdict.unwrap_or("it gave no reason"))
}

/// Sizes the maps, fills the constants and picks the programs.
fn configure(
    open: &mut OpenIoSkel<'_>,
    hooks: &[Hooks],
    settings: &Settings,
) -> libbpf_rs::Result<()> {
    open.maps
        .seekscope_ring
        .set_max_entries(settings.ring_bytes)?;
    open.maps
        .seekscope_slots
        .set_max_entries(settings.start_slots)?;
    open.progs
        .seekscope_fork
        .set_autoload(settings.follow_children);
    open.progs
        .seekscope_exec
        .set_autoload(settings.follow_children);
    let verdicts = settings.open_files.saturating_mul(VERDICTS_PER_OPEN_FILE);
    if settings.own_requests_only && verdicts > VERDICTS_MIN {
        let verdicts = u32::try_from(verdicts).unwrap_or(u32::MAX).min(1 << 20);
        open.maps.seekscope_verdicts.set_max_entries(verdicts)?;
    }
    if settings.only_totals {
        open.maps.seekscope_totals.set_max_entries(TOTALS_MAX)?;
    }
    groups::select(open.open_object_mut(), hooks)?;
    if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
        constants::fill(constants, settings);
    }
    Ok(())
}

/// Writes a word that the kernel programs read.
fn store(place: &mut u32, value: u32) {
    // SAFETY: a valid, aligned reference; volatile because the other reader is the kernel.
    unsafe { ptr::write_volatile(place, value) }
}

fn lock_messages() -> std::sync::MutexGuard<'static, Vec<String>> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_message(_: PrintLevel, message: String) {
    let mut messages = lock_messages();
    if messages.len() == MESSAGES_KEPT {
        messages.remove(0);
    }
    messages.push(message.trim_end().to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_verifier_log_its_verdict_is_kept() {
        let text = "prog 'a': failed\n-- BEGIN PROG LOAD LOG --\n0: (79) r6 = r1\nR0=inv(id=1)\n\
                    invalid func unknown#158\nprocessed 33 insns (limit 1000000)\n\
                    -- END PROG LOAD LOG -- failed to load";
        assert_eq!(
            without_verifier_log(text),
            "prog 'a': failed\ninvalid func unknown#158 failed to load"
        );
        assert_eq!(without_verifier_log("plain"), "plain");
    }
}
