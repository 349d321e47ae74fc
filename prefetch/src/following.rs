//! The thread that follows the scan. It decides where the scan is, how many threads may read, what
//! is given back, and when everything ends.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use seekscope_run::units::nanoseconds;
use seekscope_run::{Limitation, PassedScan, PrefetchRecord, monotonic_ns};
use seekscope_wiredtiger::Leaf;

use crate::alone::{ScanAlone, is_no_faster};
use crate::attaching::{Attaching, not_followed};
use crate::followed::{Followed, ScanReads};
use crate::gain::{Pauses, Progress};
use crate::guard::Guard;
use crate::memory::Budget;
use crate::pace::{Pace, ScanAt, Seen};
use crate::position::STEP_MAX;
use crate::reading::{ReadCounts, Shared, lock};
use crate::run::{Control, Finished, Status};
use crate::stretch_reader::StretchReader;
use crate::sweep::{Place, Sweep};
use crate::tree_watch::NewTree;

/// How often the scan's position is looked up.
const LOOK: Duration = Duration::from_millis(3);
/// How often the guard judges.
const JUDGE: Duration = Duration::from_millis(100);
/// How often to check what the kernel took back and how much memory there is.
const CHECK: Duration = Duration::from_millis(100);
/// Total length of the pauses made to learn how long other reads take undisturbed.
const PEACE_MAX: Duration = Duration::from_secs(2);
/// A scan that has come to the last leaves, all of which are read ahead, and rests for longer than this is taken to
/// have ended.
const REST_MAX: Duration = Duration::from_secs(2);
/// Rounds over the file before a scan is compared with what it would take alone.
const ROUNDS_JUDGED: u64 = 2;
/// Calls needed for a mean time that is worth using.
const CALLS_MIN: u64 = 8;
/// Maximum number of leaves looked up in memory at once; takes 5 ms.
const SAMPLED: usize = 1024;

/// The thread that follows the scan.
pub(crate) struct Follower<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) new_tree: &'a NewTree,
    pub(crate) reader: StretchReader,
    pub(crate) guard: Option<Guard>,
    pub(crate) intensity: f64,
    pub(crate) peace: Duration,
    /// Whether reading ahead may still make the scan faster; once it turns out not to, it ends.
    pub(crate) helps: bool,
    /// The scan has not been allowed to begin, so what the server reads is something else.
    pub(crate) scan_waits: bool,
    pub(crate) scan: ScanReads,
    pub(crate) depth_max: u32,
    /// The user has fixed the number of reads in flight.
    pub(crate) has_named_depth: bool,
    /// What had been read at the last judgement.
    pub(crate) judged: ReadCounts,
    pub(crate) pace: Pace,
    pub(crate) attaching: Option<Attaching>,
    /// The scan belongs to a command, so it is known when it begins.
    pub(crate) has_command: bool,
    pub(crate) limitations: Vec<Limitation>,
    pub(crate) followed: Followed,
    pub(crate) pauses: Option<Pauses>,
    /// How far the scan had come, and in which round, when what it would take alone was known.
    pub(crate) tried_since: Option<(Progress, u64)>,
    pub(crate) record: PrefetchRecord,
    pub(crate) budget: Budget,
    pub(crate) checked: Instant,
    pub(crate) alone: &'a ScanAlone,
}

impl Follower<'_> {
    /// Follows the scan to its end. `patience` is how long a scan may be kept waiting; `None`: not
    /// at all.
    pub(crate) fn follow(&mut self, control: &mut Control<'_>, patience: Option<Duration>) {
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
            let at_end = control.idle.is_some() && self.is_at_end(active.elapsed());
            if !self.helps
                || (control.has_ended)()
                || control.stop.load(Ordering::Relaxed)
                || idle
                || out_of_time
                || at_end
            {
                break;
            }
            thread::sleep(LOOK);
        }
        self.record.elapsed_ns = nanoseconds(started.elapsed());
        // The command must not wait for ever for something that has ended.
        if let (Some(begin), false) = (control.begin.take(), control.stop.load(Ordering::Relaxed)) {
            begin();
        }
    }

    /// Returns whether the scan has read the last leaf, or all leaves are read and nobody can be
    /// watched. The last few may be in the server's own memory, and then nobody sees them read.
    fn is_at_end(&self, quiet: Duration) -> bool {
        let sweep = self.shared.sweep();
        let left = sweep.leaves().len().saturating_sub(sweep.position());
        left == 0 || (left <= STEP_MAX && sweep.is_read() && quiet > REST_MAX)
    }

    /// Looks where the scan is, and acts on it.
    fn look(&mut self) -> Seen {
        if let Some(leaves) = self.new_tree.take() {
            self.take_tree(&leaves);
        }
        let seen = self.pace.look(&self.shared.sweep());
        let Ok(seen) = seen else {
            // The trace broke off; all that can still be read is the window as it is. Nobody would
            // see the scan pass the end of a pause.
            self.forget_place();
            self.pauses = None;
            return Seen::default();
        };
        self.note_reads(&seen);
        if let (Some(next), true) = (seen.next, self.is_a_scan()) {
            if !seen.scanned.is_empty() {
                self.hold_missed(&seen);
                self.note_scan(&seen.scanned, next);
            }
            self.move_to(next);
        }
        self.pause();
        self.allow();
        seen
    }

    /// Returns whether the server's reads are a scan. Before the command begins they may be
    /// anything, and without a command they may be until the tracer can tell.
    fn is_a_scan(&self) -> bool {
        match self.has_command {
            true => !self.scan_waits,
            false => self.attaching.is_none(),
        }
    }

    /// Takes over the leaves for which the scan went to the disk itself, to give them back behind it:
    /// left in memory, they would divide our long reads of the rounds to come.
    fn hold_missed(&mut self, seen: &Seen) {
        let mut sweep = self.shared.sweep();
        if sweep.fits() {
            return;
        }
        let missed = seen.reads.iter().filter(|read| read.missed);
        let missed: HashSet<u64> = missed.filter_map(|read| read.offset).collect();
        let leaves = seen.scanned.iter();
        let leaves = leaves.filter_map(|at| sweep.leaves().get(at.ordinal).copied());
        let missed: Vec<Place> = leaves
            .filter(|leaf| missed.contains(&leaf.offset))
            .collect();
        sweep.hold(&missed);
    }

    fn note_scan(&mut self, scanned: &[ScanAt], next: usize) {
        let now_ns = monotonic_ns();
        let is_another = self.followed.scan_at(next, now_ns);
        if is_another {
            // It has a clock of its own.
            self.tried_since = None;
        }
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        if is_another {
            pauses.another_scan(&mut self.shared.sweep(), now_ns);
        }
        for at in scanned {
            pauses.scan_at(at.ordinal, at.t_ns);
        }
    }

    /// Takes over the tracer once it is ready.
    fn take_tracer(&mut self) {
        let Some(attaching) = self.attaching.take_if(|a| a.is_finished()) else {
            return;
        };
        match attaching.outcome() {
            Ok(reads) => {
                self.pace = Pace::traced(reads);
                // The counter may have been wrong until now.
                self.forget_place();
            }
            Err(limitation) => {
                self.limitations.push(limitation);
                if matches!(self.pace, Pace::Own { .. }) {
                    self.limitations.push(not_followed());
                }
            }
        }
    }

    fn forget_place(&mut self) {
        self.followed.place_is_unknown();
        if let Some(pauses) = &mut self.pauses {
            pauses.forget(&mut self.shared.sweep(), monotonic_ns());
        }
    }

    /// Adapts the number of reads in flight to how long they take.
    fn adapt_depth(&mut self) {
        if self.has_named_depth {
            return;
        }
        let counts = *lock(&self.shared.counts);
        let calls = counts.calls - self.judged.calls;
        if calls >= CALLS_MIN {
            let call_ns = (counts.calls_ns - self.judged.calls_ns) as f64 / calls as f64;
            self.judged = counts;
            lock(&self.shared.costs).adapt_depth(call_ns, self.depth_max);
        }
    }

    /// Begins a pause if it is time for one.
    fn pause(&mut self) {
        let Some(pauses) = self.pauses.as_mut().filter(|_| !self.scan_waits) else {
            return;
        };
        if !self.followed.has_moved() || matches!(self.pace, Pace::Own { .. }) {
            return;
        }
        let mut sweep = self.shared.sweep();
        if sweep.fits() && sweep.is_read() {
            // Nothing would be saved any more.
            return;
        }
        let leaf_bytes = sweep.mean_leaf_bytes();
        let costs = *lock(&self.shared.costs);
        let leaf_ns = costs.request_ns + leaf_bytes * 1e9 / costs.bytes_per_s.max(1.0);
        let now_ns = monotonic_ns();
        let Some(wanted) = pauses.wanted(self.followed.elapsed_ns(now_ns), leaf_ns) else {
            return;
        };
        let ours = pauses.begin(&mut sweep, wanted, now_ns);
        drop(sweep);
        // What stays in memory makes the gain look smaller, and does no other harm.
        let _ = self.reader.give_back(&ours);
    }

    /// Ends everything if reading ahead does not make the scan faster.
    fn give_up_in_vain(&mut self) {
        let Some(pauses) = &self.pauses else {
            return;
        };
        let sweep = self.shared.sweep();
        if sweep.fits() && sweep.is_read() {
            // To end would spare nothing any more.
            return;
        }
        let progress = self.followed.progress(&sweep);
        let alone_ns = self.shared.alone_ns.load(Ordering::Relaxed);
        let is_no_faster = alone_ns > 0 && {
            let now = (progress, sweep.rounds);
            let (since, rounds) = self.tried_since.get_or_insert(now);
            // While a round is read, the scan is slower than in what the round has brought.
            let is_even = sweep.fits() || sweep.rounds >= *rounds + ROUNDS_JUDGED;
            is_even && is_no_faster(since, &progress, alone_ns, sweep.leaf_bytes())
        };
        drop(sweep);
        if pauses.are_in_vain(&progress) || is_no_faster {
            self.helps = false;
            let why = "when it was last looked at, the scan was no faster with it than without, so it ended";
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
            // Anything that could not be given back, the kernel takes when it needs it.
            let _ = self.reader.give_back(&passed);
        }
    }

    /// Records statistics of the server's reads, and passes the guard what it needs of them.
    fn note_reads(&mut self, seen: &Seen) {
        let in_peace = self.shared.reading.load(Ordering::Relaxed) == 0;
        for read in &seen.reads {
            if read.offset.is_none() {
                if let (Some(guard), true) = (&mut self.guard, read.missed) {
                    guard.others_read(read.latency_ns, in_peace);
                }
                continue;
            }
            self.scan.add(read);
            if read.direct && self.helps {
                self.helps = false;
                let why = "the server reads the file past the page cache (O_DIRECT)";
                self.record.cannot_help.push(why.into());
            }
        }
    }

    /// Sets how many threads may read.
    fn allow(&mut self) {
        let position = self.shared.sweep().position();
        let peace = self.guard.as_ref().is_some_and(Guard::wants_peace) && self.peace < PEACE_MAX;
        if peace {
            // This lasts until the next look.
            self.peace += LOOK;
        }
        let in_pause = self.pauses.as_ref().is_some_and(|p| p.holds(position));
        let pauses = peace || in_pause;
        let depth = f64::from(lock(&self.shared.costs).depth) * self.intensity;
        let allowed = if pauses {
            0
        } else {
            whole(depth.ceil().max(1.0))
        };
        let duty = whole(depth.min(1.0) * 1000.0);
        let before = self.shared.allowed.swap(allowed, Ordering::Relaxed);
        self.shared.duty.store(duty, Ordering::Relaxed);
        if allowed > before {
            self.shared.wake.notify_all();
        }
    }

    fn judge(&mut self) {
        if let Some(guard) = &mut self.guard {
            self.intensity = guard.intensity();
        }
        self.adapt_depth();
    }

    /// Checks for memory that the kernel took back, or that is no longer there.
    fn check(&mut self) {
        self.checked = Instant::now();
        let held = self.shared.sweep().held_next(SAMPLED);
        let lost = self.reader.lost(&held).unwrap_or_default();
        let bytes = self.budget.bytes(Path::new("/"), held.len(), lost.len());
        let mut sweep = self.shared.sweep();
        lost.iter().for_each(|leaf| sweep.lost(*leaf));
        let mut too_many = bytes.map_or_else(Vec::new, |bytes| sweep.set_memory(bytes));
        drop(sweep);
        // The remaining parts of lost leaves are still ours.
        too_many.extend(lost);
        let _ = self.reader.give_back(&too_many);
    }

    fn take_tree(&mut self, leaves: &[Leaf]) {
        self.forget_place();
        let mut sweep = self.shared.sweep();
        let Some(newer) = Sweep::new(leaves, sweep.memory_bytes()) else {
            return;
        };
        *sweep = sweep.in_tree_of(newer);
        drop(sweep);
        self.pace.tree_changed();
        self.record.trees += 1;
    }

    fn status(&self) -> Status {
        let sweep = self.shared.sweep();
        Status {
            position: sweep.position() as u64,
            leaves: sweep.leaves().len() as u64,
            held_bytes: sweep.held_bytes(),
            bytes_read: lock(&self.shared.counts).bytes,
            pace: self.pace.kind(),
            is_attaching: self.attaching.is_some(),
        }
    }

    /// Predicts once more what the scan would take alone, now that the disk was used for longer than it was tried.
    fn predict_alone_again(&self) {
        let progress = self.followed.progress(&self.shared.sweep());
        let counts = *lock(&self.shared.counts);
        let is_new = self.shared.alone_ns.load(Ordering::Relaxed) > 0;
        let has_read = counts.requests >= CALLS_MIN && progress.elapsed_ns > 0;
        if !(is_new && has_read) {
            return;
        }
        let leaf_bytes = self.shared.sweep().mean_leaf_bytes();
        let requests = counts.requests + self.scan.misses;
        let costs = *lock(&self.shared.costs);
        let costs = costs.bounded_by(requests, leaf_bytes, progress.elapsed_ns);
        if let Some(alone_ns) = self.alone.predict_ns(&costs) {
            self.shared.alone_ns.store(alone_ns, Ordering::Relaxed);
        }
    }

    pub(crate) fn finish(mut self) -> Finished {
        self.predict_alone_again();
        let sweep = self.shared.sweep();
        let record = &mut self.record;
        record.position = sweep.position() as u64;
        record.shrunk = self.budget.decreases;
        record.window_bytes = sweep.memory_bytes();
        record.fits = sweep.fits();
        record.rounds = sweep.rounds;
        record.gap_bytes = lock(&self.shared.joining).gap_bytes;
        lock(&self.shared.costs).note_in(record);
        record.pace = self.pace.kind();
        lock(&self.shared.counts).note_in(record);
        let alone_ns = self.shared.alone_ns.load(Ordering::Relaxed);
        record.alone_predicted_ns = (alone_ns > 0).then_some(alone_ns);
        if matches!(self.pace, Pace::Traced { .. }) {
            record.server_reads = Some(self.scan.reads);
            record.server_misses = Some(self.scan.misses);
            record.server_read_share = self.scan.time_share();
        }
        if let Some(guard) = &self.guard {
            record.gave_way = guard.decreases;
            record.others_wait = guard.others_wait();
        }
        let progress = self.followed.progress(&sweep);
        record.passed = (progress.elapsed_ns > 0).then_some(PassedScan {
            bytes: progress.passed_bytes,
            elapsed_ns: progress.elapsed_ns,
            from_start: self.followed.from_start,
        });
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

#[expect(
    clippy::cast_possible_truncation,
    reason = "a small positive number, and the cast saturates"
)]
fn whole(value: f64) -> u32 {
    value as u32
}
