//! Reading ahead until the scan has ended: some threads read stretches, one follows the scan.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use seekscope_run::PrefetchRecord;

use crate::PrefetchError;
use crate::guard::Guard;
use crate::memory::Budget;
use crate::pace::{Pace, Seen};
use crate::preparation::Prefetch;
use crate::stretch_reader::StretchReader;
use crate::sweep::{Joining, Next, Stretch, Sweep};
use crate::tree_watch::NewTree;

/// How often the scan is looked at.
const LOOK: Duration = Duration::from_millis(3);
/// How often the guard judges.
const JUDGE: Duration = Duration::from_millis(100);
/// How often it is looked at what the kernel took back, and how much memory there is.
const CHECK: Duration = Duration::from_millis(100);
/// Pauses to see how long other reads take in peace, all together.
const PEACE_MAX: Duration = Duration::from_secs(2);
/// Leaves that are looked for in memory, at most: 5 ms.
const SAMPLED: usize = 1024;

/// Requests that take longer than this are worth keeping a scan from: while it waits for leaves one by
/// one, each takes the place of a request of ours forty times as long.
const SLOW_REQUEST_NS: f64 = 1e6;
/// How long a scan is kept waiting at most, in times of what reading its file should take.
const PATIENCE: f64 = 2.0;
/// … but so long in any case: a disk that has saved up credit looks several times as fast in a short trial
/// as it is, and of a small file that is all of the difference.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Who decides about the beginning and the end.
pub struct Control<'a> {
    /// Lets a scan of the user's begin, where it is ours to say when; called once. Where everything fits
    /// into memory and requests take long, that is when everything is there: reading in disk order first
    /// is quicker then than with a scan in between that asks for single leaves.
    pub begin: Option<&'a mut dyn FnMut()>,
    /// Asked every few milliseconds; true ends it.
    pub has_ended: &'a mut dyn FnMut() -> bool,
    /// Ends it after so long without a read of the file; `None`: never.
    pub idle: Option<Duration>,
    pub duration: Option<Duration>,
    /// Told now and then.
    pub progress: &'a mut dyn FnMut(&Status),
    pub stop: &'a AtomicBool,
}

/// How it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Leaves that the scan has passed, of how many.
    pub position: u64,
    pub leaves: u64,
    pub held_bytes: u64,
    pub bytes_read: u64,
}

/// Shared by the threads.
struct Shared {
    sweep: Mutex<Sweep>,
    wake: Condvar,
    joining: Joining,
    /// Threads that may read; 0 pauses.
    allowed: AtomicU32,
    /// The share of the time in which a single thread reads, in thousandths.
    duty: AtomicU32,
    over: AtomicBool,
    reading: AtomicU32,
    stretches: AtomicU64,
    leaves: AtomicU64,
    bytes: AtomicU64,
    bridged: AtomicU64,
    failure: Mutex<Option<std::io::Error>>,
}

impl Shared {
    /// `record`: of what was read before.
    fn new(sweep: Sweep, joining: Joining, allowed: u32, record: &PrefetchRecord) -> Self {
        Self {
            sweep: Mutex::new(sweep),
            wake: Condvar::new(),
            joining,
            allowed: AtomicU32::new(allowed),
            duty: AtomicU32::new(1000),
            over: AtomicBool::new(false),
            reading: AtomicU32::new(0),
            stretches: AtomicU64::new(record.stretches),
            leaves: AtomicU64::new(record.leaves_read),
            bytes: AtomicU64::new(record.bytes_read),
            bridged: AtomicU64::new(record.bridged_bytes),
            failure: Mutex::new(None),
        }
    }

    fn sweep(&self) -> MutexGuard<'_, Sweep> {
        lock(&self.sweep)
    }

    /// One reading thread, the `number`-th from 0.
    fn read_on(&self, number: u32, mut reader: StretchReader) {
        while !self.over.load(Ordering::Relaxed) {
            let stretch = match number < self.allowed.load(Ordering::Relaxed) {
                true => self.next(),
                false => None,
            };
            let Some(stretch) = stretch else {
                let sweep = self.sweep();
                // Whoever notices first: the scan has moved, or time has passed.
                drop(self.wake.wait_timeout(sweep, LOOK));
                continue;
            };
            let started = Instant::now();
            self.reading.fetch_add(1, Ordering::Relaxed);
            self.read(&mut reader, &stretch);
            self.reading.fetch_sub(1, Ordering::Relaxed);
            let duty = f64::from(self.duty.load(Ordering::Relaxed)) / 1000.0;
            if duty < 1.0 {
                let rest = started.elapsed().mul_f64(1.0 / duty.max(0.01) - 1.0);
                std::thread::sleep(rest.min(JUDGE * 5));
            }
        }
    }

    fn next(&self) -> Option<Stretch> {
        match self.sweep().next(self.joining) {
            Next::Read(stretch) => Some(stretch),
            Next::Full | Next::Nothing => None,
        }
    }

    fn read(&self, reader: &mut StretchReader, stretch: &Stretch) {
        match reader.read(stretch) {
            Ok(read) => {
                let late = self.sweep().done(stretch, &read.ours);
                // What could not be given back does no harm.
                let _ = reader.give_back(&late);
                if read.bytes > 0 {
                    self.stretches.fetch_add(1, Ordering::Relaxed);
                    let leaves = stretch.leaves.len() as u64;
                    self.leaves.fetch_add(leaves, Ordering::Relaxed);
                    self.bytes.fetch_add(read.bytes, Ordering::Relaxed);
                    self.bridged
                        .fetch_add(read.bridged_bytes, Ordering::Relaxed);
                }
            }
            Err(error) => {
                self.sweep().failed(stretch);
                *lock(&self.failure) = Some(error);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Prefetch {
    /// Reads ahead until the scan, or whatever `control` says, has ended. Where reading ahead cannot
    /// help, nothing is read, and the end is waited for.
    ///
    /// # Errors
    /// Of the file, where it cannot be read any more.
    pub fn run(self, mut control: Control<'_>) -> Result<PrefetchRecord, PrefetchError> {
        let Self {
            request,
            mut directory,
            checkpoint,
            file,
            path,
            sweep,
            costs,
            request_bytes,
            pace,
            slices,
            record,
            ..
        } = self;
        let helps = record.cannot_help.is_empty();
        let waits =
            control.begin.is_some() && helps && sweep.fits() && costs.request_ns >= SLOW_REQUEST_NS;
        let joining = match waits {
            true => costs.joining_alone(request_bytes as u64),
            false => costs.joining(request_bytes as u64),
        };
        let expected_s = sweep.leaf_bytes() as f64 / costs.bytes_per_s.max(1.0);
        let patience = Duration::try_from_secs_f64(PATIENCE * expected_s)
            .unwrap_or_default()
            .max(PATIENCE_MIN);
        let allowed = if helps { costs.depth } else { 0 };
        let shared = Shared::new(sweep, joining, allowed, &record);
        let new_tree = NewTree::default();
        let name = record.file.clone();
        let mut follower = Follower {
            shared: &shared,
            new_tree: &new_tree,
            reader: StretchReader::new(Arc::clone(&file), request_bytes),
            guard: request.guard.then(Guard::default),
            intensity: 1.0,
            peace: Duration::ZERO,
            helps,
            scan_waits: false,
            scan: ScanReads::default(),
            costs,
            pace,
            slices,
            record,
            budget: Budget::new(request.window_bytes),
            checked: Instant::now(),
        };
        std::thread::scope(|scope| {
            let threads = || -> std::io::Result<()> {
                for number in 0..costs.depth {
                    let reader = StretchReader::new(Arc::clone(&file), request_bytes);
                    let (shared, name) = (&shared, format!("prefetch-{number}"));
                    let thread = std::thread::Builder::new().name(name);
                    thread.spawn_scoped(scope, move || shared.read_on(number, reader))?;
                }
                let (over, new_tree) = (&shared.over, &new_tree);
                let thread = std::thread::Builder::new().name("tree-watch".into());
                thread.spawn_scoped(scope, move || {
                    new_tree.watch(&mut directory, &name, checkpoint, over);
                })?;
                Ok(())
            };
            let started = threads();
            if started.is_ok() {
                follower.follow(&mut control, waits.then_some(patience));
            }
            shared.over.store(true, Ordering::Relaxed);
            shared.wake.notify_all();
            started
        })
        .map_err(|source| PrefetchError::Thread { source })?;
        let record = follower.finish();
        match lock(&shared.failure).take() {
            // Some blocks may be gone with a checkpoint; if nothing was read, something is wrong.
            Some(source) if record.bytes_read == 0 => Err(PrefetchError::Read { path, source }),
            _ => Ok(record),
        }
    }
}

/// The scan's reads of the file.
#[derive(Debug, Default)]
struct ScanReads {
    reads: u64,
    misses: u64,
    read_ns: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// The thread that follows the scan.
struct Follower<'a> {
    shared: &'a Shared,
    new_tree: &'a NewTree,
    reader: StretchReader,
    guard: Option<Guard>,
    intensity: f64,
    peace: Duration,
    helps: bool,
    /// It was not let begin yet: what the server reads is something else.
    scan_waits: bool,
    scan: ScanReads,
    costs: crate::costs::DiskCosts,
    pace: Pace,
    slices: crate::gain::Slices,
    record: PrefetchRecord,
    budget: Budget,
    checked: Instant,
}

impl Follower<'_> {
    /// `patience`: how long a scan may be kept waiting; `None`: not at all.
    fn follow(&mut self, control: &mut Control<'_>, patience: Option<Duration>) {
        let started = Instant::now();
        let (mut active, mut judged) = (Instant::now(), Instant::now());
        loop {
            let is_time = patience
                .is_none_or(|time| started.elapsed() >= time || self.shared.sweep().is_read());
            if is_time && let Some(begin) = control.begin.take() {
                self.record.scan_waited_ns = nanoseconds(started.elapsed());
                self.pace.scan_begins();
                begin();
            }
            self.scan_waits = control.begin.is_some();
            let seen = self.look();
            if seen.active {
                active = Instant::now();
            }
            if judged.elapsed() > JUDGE {
                judged = Instant::now();
                self.judge();
                (control.progress)(&self.status());
            }
            if self.checked.elapsed() > CHECK {
                self.check();
            }
            let idle = control.idle.is_some_and(|idle| active.elapsed() > idle);
            let out_of_time = control
                .duration
                .is_some_and(|time| started.elapsed() > time);
            let at_end = control.idle.is_some() && self.is_at_end();
            if (control.has_ended)()
                || control.stop.load(Ordering::Relaxed)
                || idle
                || out_of_time
                || at_end
            {
                break;
            }
            std::thread::sleep(LOOK);
        }
        self.record.elapsed_ns = nanoseconds(started.elapsed());
        // It must not wait for ever for what has ended.
        if let (Some(begin), false) = (control.begin.take(), control.stop.load(Ordering::Relaxed)) {
            begin();
        }
    }

    /// The scan has read the last leaf, or all leaves are read and nobody can be watched.
    fn is_at_end(&self) -> bool {
        let sweep = self.shared.sweep();
        sweep.position() >= sweep.leaves().len()
    }

    /// Where the scan is now, and what follows from that.
    fn look(&mut self) -> Seen {
        if let Some(leaves) = self.new_tree.take() {
            self.take_tree(&leaves);
        }
        let seen = self.pace.look(&self.shared.sweep());
        let Ok(seen) = seen else {
            // The trace broke off; what can still be had is the window as it is.
            return Seen::default();
        };
        self.note_reads(&seen);
        if let (Some(next), false) = (seen.next, self.scan_waits) {
            self.move_to(next);
        }
        self.allow();
        seen
    }

    fn move_to(&mut self, next: usize) {
        let mut sweep = self.shared.sweep();
        if next == sweep.position() {
            return;
        }
        let passed = sweep.advance(next);
        let gives_back = !sweep.fits();
        drop(sweep);
        self.shared.wake.notify_all();
        if gives_back && !passed.is_empty() {
            self.record.released_bytes += passed.iter().map(|p| u64::from(p.length)).sum::<u64>();
            // What could not be given back, the kernel takes when it needs it.
            let _ = self.reader.give_back(&passed);
        }
    }

    /// Statistics of the server's reads, and what the guard needs of them.
    fn note_reads(&mut self, seen: &Seen) {
        let in_peace = self.shared.reading.load(Ordering::Relaxed) == 0;
        for read in &seen.reads {
            let Some(offset) = read.offset else {
                if let (Some(guard), true) = (&mut self.guard, read.missed) {
                    guard.others_read(read.latency_ns, in_peace);
                }
                continue;
            };
            self.scan.reads += 1;
            self.scan.misses += u64::from(read.missed);
            self.scan.read_ns += read.latency_ns;
            self.scan.first_ns.get_or_insert(read.t_ns);
            self.scan.last_ns = self.scan.last_ns.max(read.t_ns + read.latency_ns);
            if let Some(ordinal) = self.shared.sweep().ordinal_at(offset) {
                self.slices.scan_at(ordinal, read.t_ns);
            }
            if read.direct && self.helps {
                self.helps = false;
                let why = "the server reads the file past the page cache (O_DIRECT)";
                self.record.cannot_help.push(why.into());
            }
        }
    }

    /// How many threads may read.
    fn allow(&mut self) {
        let position = self.shared.sweep().position();
        let peace = self.guard.as_ref().is_some_and(Guard::wants_peace) && self.peace < PEACE_MAX;
        if peace {
            // As long as until the next look.
            self.peace += LOOK;
        }
        let pauses = !self.helps || peace || self.slices.holds(position);
        let depth = f64::from(self.costs.depth) * self.intensity;
        let allowed = if pauses {
            0
        } else {
            whole(depth.ceil().max(1.0))
        };
        let duty = whole(depth.min(1.0) * 1000.0);
        self.shared.allowed.store(allowed, Ordering::Relaxed);
        self.shared.duty.store(duty, Ordering::Relaxed);
    }

    fn judge(&mut self) {
        if let Some(guard) = &mut self.guard {
            self.intensity = guard.intensity();
        }
    }

    /// Memory that the kernel took back, or that there is no more.
    fn check(&mut self) {
        self.checked = Instant::now();
        let held = self.shared.sweep().held_next(SAMPLED);
        let lost = self.reader.lost(&held).unwrap_or_default();
        let bytes = self.budget.bytes(Path::new("/"), held.len(), lost.len());
        let mut sweep = self.shared.sweep();
        lost.iter().for_each(|leaf| sweep.lost(*leaf));
        let mut too_many = bytes.map_or_else(Vec::new, |bytes| sweep.set_memory(bytes));
        drop(sweep);
        // What is left of lost ones is still ours.
        too_many.extend(lost);
        let _ = self.reader.give_back(&too_many);
    }

    fn take_tree(&mut self, leaves: &[seekscope_wiredtiger::Leaf]) {
        let mut sweep = self.shared.sweep();
        let Some(newer) = Sweep::new(leaves, sweep.memory_bytes()) else {
            return;
        };
        *sweep = sweep.in_tree_of(newer);
        drop(sweep);
        self.pace.tree_changed();
        self.slices.forget();
        self.record.trees += 1;
    }

    fn status(&self) -> Status {
        let sweep = self.shared.sweep();
        Status {
            position: sweep.position() as u64,
            leaves: sweep.leaves().len() as u64,
            held_bytes: sweep.held_bytes(),
            bytes_read: self.shared.bytes.load(Ordering::Relaxed),
        }
    }

    fn finish(mut self) -> PrefetchRecord {
        let sweep = self.shared.sweep();
        let record = &mut self.record;
        record.position = sweep.position() as u64;
        record.shrunk = self.budget.decreases;
        record.window_bytes = sweep.memory_bytes();
        record.fits = sweep.fits();
        record.rounds = sweep.rounds;
        record.gap_bytes = self.shared.joining.gap_bytes;
        record.stretches = self.shared.stretches.load(Ordering::Relaxed);
        record.leaves_read = self.shared.leaves.load(Ordering::Relaxed);
        record.bytes_read = self.shared.bytes.load(Ordering::Relaxed);
        record.bridged_bytes = self.shared.bridged.load(Ordering::Relaxed);
        if matches!(self.pace, Pace::Traced { .. }) {
            record.server_reads = Some(self.scan.reads);
            record.server_misses = Some(self.scan.misses);
            let span_ns = self
                .scan
                .last_ns
                .saturating_sub(self.scan.first_ns.unwrap_or(0));
            let share = self.scan.read_ns as f64 / span_ns.max(1) as f64;
            record.server_read_share = self.scan.first_ns.map(|_| share.min(1.0));
        }
        if let Some(guard) = &self.guard {
            record.gave_way = guard.decreases;
            record.others_wait = guard.others_wait();
        }
        record.gain = self.slices.gain();
        drop(sweep);
        self.record
    }
}

/// At most 584 years.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a small positive number, and the cast saturates"
)]
fn whole(value: f64) -> u32 {
    value as u32
}
