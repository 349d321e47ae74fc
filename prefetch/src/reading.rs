//! The threads that read stretches, what they share with the one that follows the scan, and the
//! trial of a quick disk that runs beside them.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use seekscope_run::PrefetchRecord;

use crate::alone::ScanAlone;
use crate::costs::{DiskCosts, Fetched, SEARCH_TIME_QUICK, calibrate, measure_stream, own_share};
use crate::stretch_reader::{StretchRead, StretchReader};
use crate::sweep::{Joining, Next, Place, Stretch, Sweep};

/// How often a thread that has nothing to do and is not woken looks again. Dozens of threads that
/// looked every few milliseconds would take the server's time.
const LOOK: Duration = Duration::from_millis(100);
/// The longest rest of a thread that reads only for a share of the time.
const REST_MAX: Duration = Duration::from_millis(500);
/// The most leaves used to try a quick disk, in the window or beyond it: those of a small one are read from the credit
/// that a limited disk has saved up.
const CALIBRATION_LEAVES: usize = 2048;

/// Totals of what was read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadCounts {
    stretches: u64,
    leaves: u64,
    pub(crate) bytes: u64,
    bridged_bytes: u64,
    /// Read calls, and their total time, ns.
    pub(crate) calls: u64,
    pub(crate) calls_ns: u64,
    /// Requests that the disk got.
    pub(crate) requests: u64,
}

impl ReadCounts {
    /// Adds a stretch, unless all of it was in memory.
    pub(crate) fn add(&mut self, stretch: &Stretch, read: &StretchRead) {
        if read.bytes > 0 {
            self.stretches += 1;
            self.leaves += stretch.leaves.len() as u64;
            self.bytes += read.bytes;
            self.bridged_bytes += read.bridged_bytes;
            self.calls += read.calls;
            self.calls_ns += read.elapsed_ns;
            self.requests += read.requests;
        }
    }

    pub(crate) fn note_in(&self, record: &mut PrefetchRecord) {
        record.stretches = self.stretches;
        record.leaves_read = self.leaves;
        record.bytes_read = self.bytes;
        record.bridged_bytes = self.bridged_bytes;
    }
}

/// State shared by the threads.
pub(crate) struct Shared {
    sweep: Mutex<Sweep>,
    /// Tells waiting threads that the scan has moved, or that everything is over.
    pub(crate) wake: Condvar,
    pub(crate) costs: Mutex<DiskCosts>,
    pub(crate) joining: Mutex<Joining>,
    /// Bytes that the disk takes in one request.
    request_bytes: usize,
    call_bytes: AtomicUsize,
    /// Whether the disk's costs are known; until then, only the thread that measures them reads.
    is_calibrated: AtomicBool,
    /// Threads that may read; 0 pauses.
    pub(crate) allowed: AtomicU32,
    /// The share of the time in which a single thread reads, in thousandths.
    pub(crate) duty: AtomicU32,
    pub(crate) over: AtomicBool,
    /// Threads that are reading.
    pub(crate) reading: AtomicU32,
    pub(crate) counts: Mutex<ReadCounts>,
    pub(crate) failure: Mutex<Option<io::Error>>,
    /// Time that the scan would take without us, predicted, ns; 0 while that is not known.
    pub(crate) alone_ns: AtomicU64,
}

impl Shared {
    /// `counts`: what was read before.
    pub(crate) fn new(
        sweep: Sweep,
        costs: DiskCosts,
        is_calibrated: bool,
        request_bytes: usize,
        counts: ReadCounts,
    ) -> Self {
        let call_bytes = costs.call_bytes(request_bytes);
        Self {
            sweep: Mutex::new(sweep),
            wake: Condvar::new(),
            costs: Mutex::new(costs),
            joining: Mutex::new(costs.joining(call_bytes as u64)),
            request_bytes,
            call_bytes: AtomicUsize::new(call_bytes),
            is_calibrated: AtomicBool::new(is_calibrated),
            allowed: AtomicU32::new(0),
            duty: AtomicU32::new(1000),
            over: AtomicBool::new(false),
            reading: AtomicU32::new(0),
            counts: Mutex::new(counts),
            failure: Mutex::new(None),
            alone_ns: AtomicU64::new(0),
        }
    }

    /// Returns a guard that tells all threads to end when it is dropped, also after a failure.
    pub(crate) fn until_dropped(&self) -> UntilDropped<'_> {
        UntilDropped(self)
    }

    pub(crate) fn sweep(&self) -> MutexGuard<'_, Sweep> {
        lock(&self.sweep)
    }

    /// Tries a quick disk with the leaves that the scan needs first.
    fn calibrate(
        &self,
        make_reader: &(dyn Fn() -> StretchReader + Sync),
        named_depth: Option<u32>,
        scan: &ScanAlone,
    ) {
        let (sweep, alone) = (self.sweep(), *lock(&self.costs));
        let next = sweep.leaves().iter().skip(sweep.position());
        let leaves: Vec<Place> = next.take(CALIBRATION_LEAVES).copied().collect();
        drop(sweep);
        let tried = || calibrate(make_reader, &leaves, alone, named_depth);
        let (tried, by_server) = scan.beside_server(tried);
        match tried {
            Ok((costs, ours)) => {
                let own_bytes = ours.iter().map(|leaf| u64::from(leaf.length)).sum();
                let costs = costs.beside(by_server, own_bytes);
                let mut reader = make_reader();
                let mut own_bytes = 0;
                let mut read_next = |joining| {
                    let over = self.over.load(Ordering::Relaxed);
                    let next = if over {
                        Next::Nothing
                    } else {
                        self.sweep().next(joining)
                    };
                    match next {
                        Next::Read(stretch) => {
                            let fetched = self.read(&mut reader, &stretch);
                            own_bytes += fetched.bytes;
                            Some(fetched)
                        }
                        Next::Full | Next::Nothing => None,
                    }
                };
                let request_bytes = self.request_bytes as u64;
                let stream = || measure_stream(request_bytes, SEARCH_TIME_QUICK, &mut read_next);
                let (rate, by_server) = scan.beside_server(stream);
                let rate = rate.map(|rate| rate / own_share(by_server, own_bytes));
                let leaf_bytes = self.sweep().mean_leaf_bytes();
                self.set_costs(costs.with_rate(rate, leaf_bytes));
                self.predict_alone(scan);
            }
            Err(error) => *lock(&self.failure) = Some(error),
        }
        self.is_calibrated.store(true, Ordering::Relaxed);
        self.wake.notify_all();
    }

    /// Notes that no scan is running yet that could be held up.
    pub(crate) fn reads_alone(&self) {
        let costs = *lock(&self.costs);
        let call_bytes = costs.call_bytes(self.request_bytes) as u64;
        *lock(&self.joining) = costs.joining_alone(call_bytes);
    }

    /// Predicts what the scan would take without us, if the disk was tried.
    pub(crate) fn predict_alone(&self, scan: &ScanAlone) {
        let costs = *lock(&self.costs);
        if let Some(alone_ns) = scan.predict_ns(&costs) {
            self.alone_ns.store(alone_ns, Ordering::Relaxed);
        }
    }

    fn set_costs(&self, costs: DiskCosts) {
        let call_bytes = costs.call_bytes(self.request_bytes);
        *lock(&self.costs) = costs;
        *lock(&self.joining) = costs.joining(call_bytes as u64);
        self.call_bytes.store(call_bytes, Ordering::Relaxed);
    }

    /// Runs one reading thread, the `number`-th from 0.
    fn read_on(&self, number: u32, mut reader: StretchReader) {
        while !self.over.load(Ordering::Relaxed) {
            let is_calibrated = self.is_calibrated.load(Ordering::Relaxed);
            let stretch = match is_calibrated && number < self.allowed.load(Ordering::Relaxed) {
                true => self.next(),
                false => None,
            };
            let Some(stretch) = stretch else {
                let sweep = self.sweep();
                // Wakes when the scan has moved or time has passed, whichever comes first.
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
                std::thread::sleep(rest.min(REST_MAX));
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

    /// Reads a stretch. Returns what was not in memory.
    fn read(&self, reader: &mut StretchReader, stretch: &Stretch) -> Fetched {
        reader.set_call_bytes(self.call_bytes.load(Ordering::Relaxed));
        match reader.read(stretch) {
            Ok(read) => {
                let late = self.sweep().done(stretch, &read.ours);
                // Anything that could not be given back does no harm.
                let _ = reader.give_back(&late);
                lock(&self.counts).add(stretch, &read);
                read.fetched()
            }
            Err(error) => {
                self.sweep().failed(stretch);
                *lock(&self.failure) = Some(error);
                Fetched::default()
            }
        }
    }
}

/// Threads read until this is dropped.
pub(crate) struct UntilDropped<'a>(&'a Shared);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
        self.0.wake.notify_all();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the reading threads, and one that tries the disk if that is to be done, with the number
/// of reads in flight that the user has named, and predicts what the scan would take `alone`.
pub(crate) fn start_readers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared,
    depth: u32,
    named_depth: Option<u32>,
    file: &Arc<File>,
    alone: &'scope ScanAlone,
) -> io::Result<()> {
    let thread = |name: String| std::thread::Builder::new().name(name);
    let (file, request_bytes) = (Arc::clone(file), shared.request_bytes);
    let make_reader = move || StretchReader::new(Arc::clone(&file), request_bytes);
    for number in 0..depth {
        let reader = make_reader();
        let thread = thread(format!("prefetch-{number}"));
        thread.spawn_scoped(scope, move || shared.read_on(number, reader))?;
    }
    let is_calibrated = shared.is_calibrated.load(Ordering::Relaxed);
    let try_disk = move || match is_calibrated {
        true => shared.predict_alone(alone),
        false => shared.calibrate(&make_reader, named_depth, alone),
    };
    thread("calibration".into()).spawn_scoped(scope, try_disk)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use seekscope_wiredtiger::{Leaf, LeafKind};

    use super::*;

    /// It would hang for ever if they went on, because they are waited for.
    #[test]
    fn threads_end_when_the_one_that_follows_the_scan_breaks_off() {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let file = Arc::new(File::open("/proc/self/exe").unwrap());
            let leaf = |i: u64| Leaf {
                offset: i * 4096,
                length: 4096,
                kind: LeafKind::Plain,
            };
            let leaves: Vec<Leaf> = (0..4).map(leaf).collect();
            let sweep = Sweep::new(&leaves, u64::MAX).unwrap();
            let costs = DiskCosts::unknown();
            let shared = Shared::new(sweep, costs, true, 4096, ReadCounts::default());
            let alone = ScanAlone {
                leaves: Vec::new(),
                file_bytes: 0,
                reader_ns_per_byte: 0.0,
                memory_bytes: 0,
                read_ahead_bytes: None,
                measured: None,
                server: None,
            };
            let broke_off = catch_unwind(AssertUnwindSafe(|| {
                std::thread::scope(|scope| {
                    let _until_then = shared.until_dropped();
                    start_readers(scope, &shared, 2, None, &file, &alone).unwrap();
                    panic!("broken");
                });
            }));
            done.send(broke_off.is_err()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
