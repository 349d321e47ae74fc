//! Reading ahead until the scan has ended: some threads read stretches, one follows the scan.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use seekscope_run::{Limitation, PrefetchRecord};

use crate::PrefetchError;
use crate::costs::{DEPTH_MAX, DiskCosts, calibrate, measure_stream};
use crate::gain::{Pauses, Progress};
use crate::guard::Guard;
use crate::memory::Budget;
use crate::pace::{Pace, Seen};
use crate::preparation::{Attaching, Prefetch, not_followed};
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
/// Calls of which the mean time is worth something.
const CALLS_MIN: u64 = 8;
/// Leaves that a quick disk is tried with, at most, and of those in the window at most one in so many.
const CALIBRATION_LEAVES: usize = 2048;
const CALIBRATION_SHARE: usize = 4;
/// Leaves that are looked for in memory, at most: 5 ms.
const SAMPLED: usize = 1024;

/// Requests that take longer than this are worth keeping a scan from: while it waits for leaves one by
/// one, each takes the place of a request of ours forty times as long.
const SLOW_REQUEST_NS: f64 = 1e6;
/// How long a scan is kept waiting at most, in times of what reading its file should take.
const PATIENCE: f64 = 1.5;
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
    costs: Mutex<DiskCosts>,
    joining: Mutex<Joining>,
    call_bytes: AtomicUsize,
    /// Until the disk is known, only the thread that tries it reads.
    is_calibrated: AtomicBool,
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
    /// Read calls, and the time that they took together, ns.
    calls: AtomicU64,
    calls_ns: AtomicU64,
    failure: Mutex<Option<std::io::Error>>,
}

impl Shared {
    /// `record`: of what was read before.
    fn new(
        sweep: Sweep,
        costs: DiskCosts,
        is_calibrated: bool,
        request_bytes: usize,
        record: &PrefetchRecord,
    ) -> Self {
        let call_bytes = costs.call_bytes(request_bytes);
        Self {
            sweep: Mutex::new(sweep),
            wake: Condvar::new(),
            costs: Mutex::new(costs),
            joining: Mutex::new(costs.joining(call_bytes as u64)),
            call_bytes: AtomicUsize::new(call_bytes),
            is_calibrated: AtomicBool::new(is_calibrated),
            allowed: AtomicU32::new(0),
            duty: AtomicU32::new(1000),
            over: AtomicBool::new(false),
            reading: AtomicU32::new(0),
            stretches: AtomicU64::new(record.stretches),
            leaves: AtomicU64::new(record.leaves_read),
            bytes: AtomicU64::new(record.bytes_read),
            bridged: AtomicU64::new(record.bridged_bytes),
            calls: AtomicU64::new(0),
            calls_ns: AtomicU64::new(0),
            failure: Mutex::new(None),
        }
    }

    fn sweep(&self) -> MutexGuard<'_, Sweep> {
        lock(&self.sweep)
    }

    /// Tries a quick disk with what the scan needs first.
    fn calibrate(&self, make_reader: &(dyn Fn() -> StretchReader + Sync), request_bytes: usize) {
        let (sweep, alone) = (self.sweep(), *lock(&self.costs));
        let window = sweep.window();
        let count = (window.len() / CALIBRATION_SHARE).min(CALIBRATION_LEAVES);
        let leaves = sweep.leaves()[window][..count].to_vec();
        drop(sweep);
        match calibrate(make_reader, &leaves, alone) {
            Ok((costs, ours)) => {
                self.sweep().hold(&ours);
                let mut reader = make_reader();
                let rate = measure_stream(request_bytes as u64, &mut |joining| {
                    let over = self.over.load(Ordering::Relaxed);
                    let next = if over {
                        Next::Nothing
                    } else {
                        self.sweep().next(joining)
                    };
                    match next {
                        Next::Read(stretch) => Some(self.read(&mut reader, &stretch)),
                        Next::Full | Next::Nothing => None,
                    }
                });
                let leaf_bytes = self.sweep().mean_leaf_bytes();
                self.set_costs(costs.with_rate(rate, leaf_bytes), request_bytes);
            }
            Err(error) => *lock(&self.failure) = Some(error),
        }
        self.is_calibrated.store(true, Ordering::Relaxed);
        self.wake.notify_all();
    }

    /// No scan runs yet that would be held up.
    fn reads_alone(&self, request_bytes: usize) {
        let costs = *lock(&self.costs);
        let call_bytes = costs.call_bytes(request_bytes) as u64;
        *lock(&self.joining) = costs.joining_alone(call_bytes);
    }

    fn set_costs(&self, costs: DiskCosts, request_bytes: usize) {
        let call_bytes = costs.call_bytes(request_bytes);
        *lock(&self.costs) = costs;
        *lock(&self.joining) = costs.joining(call_bytes as u64);
        self.call_bytes.store(call_bytes, Ordering::Relaxed);
    }

    /// One reading thread, the `number`-th from 0.
    fn read_on(&self, number: u32, mut reader: StretchReader) {
        while !self.over.load(Ordering::Relaxed) {
            let is_calibrated = self.is_calibrated.load(Ordering::Relaxed);
            let stretch = match is_calibrated && number < self.allowed.load(Ordering::Relaxed) {
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
        let joining = *lock(&self.joining);
        match self.sweep().next(joining) {
            Next::Read(stretch) => Some(stretch),
            Next::Full | Next::Nothing => None,
        }
    }

    /// Bytes that were not in memory.
    fn read(&self, reader: &mut StretchReader, stretch: &Stretch) -> u64 {
        reader.set_call_bytes(self.call_bytes.load(Ordering::Relaxed));
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
                    self.calls.fetch_add(read.calls, Ordering::Relaxed);
                    self.calls_ns.fetch_add(read.elapsed_ns, Ordering::Relaxed);
                    self.bridged
                        .fetch_add(read.bridged_bytes, Ordering::Relaxed);
                }
                read.fetched_bytes
            }
            Err(error) => {
                self.sweep().failed(stretch);
                *lock(&self.failure) = Some(error);
                0
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came of it.
#[derive(Debug)]
pub struct Finished {
    pub record: PrefetchRecord,
    /// What could not be done meanwhile, why, and what grants it.
    pub limitations: Vec<Limitation>,
}

impl Prefetch {
    /// Reads ahead until the scan, or whatever `control` says, has ended. Where reading ahead cannot
    /// help, nothing is read, and the end is waited for.
    ///
    /// # Errors
    /// Of the file, where it cannot be read any more.
    pub fn run(self, mut control: Control<'_>) -> Result<Finished, PrefetchError> {
        let Self {
            request,
            mut directory,
            checkpoint,
            file,
            path,
            sweep,
            costs,
            is_calibrated,
            request_bytes,
            pace,
            attaching,
            began,
            record,
            ..
        } = self;
        let helps = record.cannot_help.is_empty();
        let waits =
            control.begin.is_some() && helps && sweep.fits() && costs.request_ns >= SLOW_REQUEST_NS;
        let patience = waits.then(|| patience(&costs, &record));
        let is_calibrated = is_calibrated || !helps;
        let shared = Shared::new(sweep, costs, is_calibrated, request_bytes, &record);
        if waits {
            shared.reads_alone(request_bytes);
        }
        let known_depth = is_calibrated.then_some(costs.depth);
        let depth_max = known_depth.unwrap_or(DEPTH_MAX);
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
            depth_max,
            named_depth: request.depth,
            calls: (0, 0),
            pace,
            attaching,
            limitations: Vec::new(),
            followed: Followed::new(control.begin.is_some().then_some(began)),
            pauses: request.measure_gain.then(Pauses::default),
            record,
            budget: Budget::new(request.window_bytes),
            checked: Instant::now(),
        };
        std::thread::scope(|scope| {
            let threads = || -> std::io::Result<()> {
                let (depth, over) = (follower.depth_max, &shared.over);
                start_readers(scope, &shared, depth, &file, request_bytes)?;
                let (new_tree, thread) = (&new_tree, std::thread::Builder::new());
                thread
                    .name("tree-watch".into())
                    .spawn_scoped(scope, move || {
                        new_tree.watch(&mut directory, &name, checkpoint, over);
                    })?;
                Ok(())
            };
            let started = threads();
            if started.is_ok() {
                follower.follow(&mut control, patience);
            }
            shared.over.store(true, Ordering::Relaxed);
            shared.wake.notify_all();
            started
        })
        .map_err(|source| PrefetchError::Thread { source })?;
        let finished = follower.finish();
        let failure = lock(&shared.failure).take();
        match failure.filter(|_| finished.record.bytes_read == 0) {
            // Some blocks may be gone with a checkpoint; if nothing was read, something is wrong.
            Some(source) => Err(PrefetchError::Read { path, source }),
            None => Ok(finished),
        }
    }
}

/// The reading threads, and one that tries the disk where that is to be done.
fn start_readers<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    shared: &'scope Shared,
    depth: u32,
    file: &Arc<File>,
    request_bytes: usize,
) -> std::io::Result<()> {
    let thread = |name: String| std::thread::Builder::new().name(name);
    let file = Arc::clone(file);
    let make_reader = move || StretchReader::new(Arc::clone(&file), request_bytes);
    for number in 0..depth {
        let reader = make_reader();
        let thread = thread(format!("prefetch-{number}"));
        thread.spawn_scoped(scope, move || shared.read_on(number, reader))?;
    }
    if !shared.is_calibrated.load(Ordering::Relaxed) {
        let calibrate = move || shared.calibrate(&make_reader, request_bytes);
        thread("calibration".into()).spawn_scoped(scope, calibrate)?;
    }
    Ok(())
}

/// How long a scan may be kept waiting for all of its leaves: some times as long as reading them should
/// take, in one stretch or by single requests.
fn patience(costs: &DiskCosts, record: &PrefetchRecord) -> Duration {
    let in_one_s = record.file_bytes as f64 / costs.bytes_per_s.max(1.0);
    let singly_s = record.leaf_pages as f64 * costs.request_ns / 1e9;
    let patience = Duration::try_from_secs_f64(PATIENCE * in_one_s.min(singly_s));
    patience.unwrap_or_default().max(PATIENCE_MIN)
}

/// The scan's reads of the file.
#[derive(Debug, Default)]
struct ScanReads {
    reads: u64,
    misses: u64,
    missed_bytes: u64,
    read_ns: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// From where to where the scan was followed.
#[derive(Debug)]
struct Followed {
    /// When the user began to wait: for a command of his, when we began.
    began: Option<Instant>,
    /// The first leaf that the scan was seen at.
    first: Option<usize>,
    /// When the scan was last seen to move.
    last: Option<Instant>,
}

impl Followed {
    fn new(began: Option<Instant>) -> Self {
        Self {
            began,
            first: began.map(|_| 0),
            last: None,
        }
    }

    fn scan_at(&mut self, ordinal: usize) {
        let now = Instant::now();
        self.began.get_or_insert(now);
        self.first.get_or_insert(ordinal);
        self.last = Some(now);
    }

    fn progress(&self, sweep: &Sweep) -> Progress {
        let (Some(began), Some(first), Some(last)) = (self.began, self.first, self.last) else {
            return Progress::default();
        };
        let position = sweep.position();
        Progress {
            elapsed_ns: nanoseconds(last.saturating_duration_since(began)),
            passed_bytes: sweep
                .bytes_before(position)
                .saturating_sub(sweep.bytes_before(first)),
            passed_leaves: position.saturating_sub(first) as u64,
            held_bytes: sweep.held_bytes(),
        }
    }
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
    depth_max: u32,
    /// Reads in flight that the user wants.
    named_depth: Option<u32>,
    /// Read calls at the last judgement, and the time that they had taken, ns.
    calls: (u64, u64),
    pace: Pace,
    attaching: Option<Attaching>,
    limitations: Vec<Limitation>,
    followed: Followed,
    pauses: Option<Pauses>,
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
            self.take_tracer();
            let seen = self.look();
            if seen.active {
                active = Instant::now();
            }
            if judged.elapsed() > JUDGE {
                judged = Instant::now();
                self.judge();
                self.give_up_in_vain();
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
            if seen.active {
                self.followed.scan_at(next);
            }
            if seen.reads.is_empty()
                && seen.active
                && let Some(pauses) = &mut self.pauses
            {
                let at = self
                    .followed
                    .began
                    .map_or(Duration::ZERO, |began| began.elapsed());
                pauses.scan_at(next, nanoseconds(at));
            }
            self.move_to(next);
        }
        self.pause();
        self.allow();
        seen
    }

    /// The tracer, when it is ready.
    fn take_tracer(&mut self) {
        if !self.attaching.as_ref().is_some_and(|a| a.is_finished()) {
            return;
        }
        let attached = self.attaching.take().map(std::thread::JoinHandle::join);
        match attached {
            Some(Ok(Ok(reads))) => self.pace = Pace::traced(reads),
            Some(Ok(Err(error))) => {
                self.limitations.push(Limitation {
                    what: "the scan is not followed by the server's reads".into(),
                    why: error.to_string(),
                    remedy: "run as root".into(),
                });
                if matches!(self.pace, Pace::Own { .. }) {
                    self.limitations.push(not_followed());
                }
            }
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => {}
        }
    }

    /// How many reads in flight the disk bears, by how long they take.
    fn adapt_depth(&mut self) {
        if let Some(depth) = self.named_depth {
            lock(&self.shared.costs).depth = depth.max(1);
            return;
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (calls, calls_ns) = (load(&self.shared.calls), load(&self.shared.calls_ns));
        let (before, before_ns) = self.calls;
        if calls - before >= CALLS_MIN {
            self.calls = (calls, calls_ns);
            let call_ns = (calls_ns - before_ns) as f64 / (calls - before) as f64;
            lock(&self.shared.costs).adapt_depth(call_ns, self.depth_max);
        }
    }

    /// Begins a pause where it is time for one.
    fn pause(&mut self) {
        let Some(pauses) = self
            .pauses
            .as_mut()
            .filter(|_| self.helps && !self.scan_waits)
        else {
            return;
        };
        if self.followed.last.is_none() || matches!(self.pace, Pace::Own { .. }) {
            return;
        }
        let elapsed = self
            .followed
            .began
            .map_or(Duration::ZERO, |began| began.elapsed());
        let mut sweep = self.shared.sweep();
        let leaf_bytes = sweep.mean_leaf_bytes();
        let costs = *lock(&self.shared.costs);
        let leaf_ns = costs.request_ns + leaf_bytes * 1e9 / costs.bytes_per_s.max(1.0);
        let Some(wanted) = pauses.wanted(nanoseconds(elapsed), leaf_ns) else {
            return;
        };
        let ours = pauses.begin(&mut sweep, wanted);
        drop(sweep);
        // What stays in memory makes the gain look smaller, and does no other harm.
        let _ = self.reader.give_back(&ours);
    }

    /// Ends it all where the scan is no faster for it.
    fn give_up_in_vain(&mut self) {
        let Some(pauses) = self.pauses.as_ref().filter(|_| self.helps) else {
            return;
        };
        let progress = self.followed.progress(&self.shared.sweep());
        if pauses.are_in_vain(&progress) {
            self.helps = false;
            let why = "the scan was no faster with it than without, so it ended";
            self.record.cannot_help.push(why.into());
        }
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
            if read.missed {
                self.scan.misses += 1;
                self.scan.missed_bytes += read.bytes;
            }
            self.scan.read_ns += read.latency_ns;
            self.scan.first_ns.get_or_insert(read.t_ns);
            self.scan.last_ns = self.scan.last_ns.max(read.t_ns + read.latency_ns);
            if let (Some(ordinal), Some(pauses)) =
                (self.shared.sweep().ordinal_at(offset), &mut self.pauses)
            {
                pauses.scan_at(ordinal, read.t_ns);
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
        let in_pause = self.pauses.as_ref().is_some_and(|p| p.holds(position));
        let pauses = !self.helps || peace || in_pause;
        let depth = f64::from(lock(&self.shared.costs).depth) * self.intensity;
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
        self.adapt_depth();
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
        if let Some(pauses) = &mut self.pauses {
            pauses.forget();
        }
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

    fn finish(mut self) -> Finished {
        let sweep = self.shared.sweep();
        let record = &mut self.record;
        record.position = sweep.position() as u64;
        record.shrunk = self.budget.decreases;
        record.window_bytes = sweep.memory_bytes();
        record.fits = sweep.fits();
        record.rounds = sweep.rounds;
        record.gap_bytes = lock(&self.shared.joining).gap_bytes;
        let costs = *lock(&self.shared.costs);
        record.request_ns = costs.request_ns;
        record.bytes_per_s = costs.bytes_per_s;
        record.depth = costs.depth;
        record.pace = self.pace.kind();
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
        let progress = self.followed.progress(&sweep);
        record.gain = self
            .pauses
            .as_ref()
            .and_then(|pauses| pauses.gain(&progress));
        drop(sweep);
        Finished {
            record: self.record,
            limitations: self.limitations,
        }
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
