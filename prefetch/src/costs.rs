//! The disk's preferences: how long a gap is cheaper to read than to skip, how many reads to keep
//! in flight, and how long they should be.
//!
//! They come from the device model of `seekscope disk` where there is one, otherwise from reading
//! leaves that the scan needs anyway: a few dozen before it begins, which are enough for a slow
//! disk ([`DiskCosts::measure`]), and for a quick disk what is read while the scan begins
//! ([`calibrate`]). Control groups grant a tenth of a second's worth of requests and bytes at once,
//! so anything shorter shows nothing.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use seekscope_run::{DeviceModel, PrefetchRecord};

use crate::stretch_reader::StretchReader;
use crate::sweep::{Joining, Place, Stretch};

/// Read calls per stretch. Longer stretches hold up the server's own reads.
const STRETCH_CALLS: u64 = 2;
/// Read calls per stretch where nothing can be held up: the last request of a stretch is seldom
/// full.
const STRETCH_CALLS_ALONE: u64 = 16;
const GAP_BYTES_MAX: u64 = 2 << 20;
pub const DEPTH_MAX: u32 = 16;
/// The gap assumed where nothing is known.
const GAP_BYTES: u64 = 128 << 10;
const DEPTH: u32 = 4;
/// Reads that are enough for a disk that does them at once.
const TRIAL_READS: usize = 24;
const TRIAL_READS_MIN: usize = 8;
const TRIAL_DEPTH: usize = 8;
/// Slower requests are limited by a disk arm or a throttle, which serves no more of them for being
/// asked several at a time; trying that would take as long as reading much of the file.
const SLOW_NS: f64 = 3e6;
/// One request in service and one waiting: the server's own reads queue behind them.
const SLOW_DEPTH: u32 = 2;
/// How long a disk is tried once its credit is spent: throttled ones serve in slices of 100 ms, so
/// these are two.
const TRIAL_TIME: Duration = Duration::from_millis(200);
/// The least that is read to estimate bytes per second.
const TRIAL_BYTES: u64 = 4 << 20;
/// Anything read in this time is credit that the disk had saved up. Throttled ones grant the next slice after 100 ms:
/// just before that, what they had granted is used up, and so it is [`TRIAL_TIME`] later. Just after, the bursts at both
/// ends make a third more or less of the rate.
const CREDIT_TIME: Duration = Duration::from_millis(90);
/// A disk that takes longer than this for [`TRIAL_READS`] is at its limit.
const QUICK_TIME: Duration = Duration::from_millis(50);
/// Gaps that are read through during the measurement.
const STREAM_GAP_BYTES: u64 = 1 << 20;
/// The longest time and the most bytes for which a stretch of the file is looked for whose reads are
/// long. The first ones seldom are: internal pages, which are in memory by then, divide them.
pub(crate) const SEARCH_TIME: Duration = Duration::from_secs(1);
/// The same for a quick disk, which is tried while the scan runs.
pub(crate) const SEARCH_TIME_QUICK: Duration = Duration::from_millis(400);
const SEARCH_BYTES: u64 = 256 << 20;
/// What was tried is not wrong by more than this: the bytes per second are not exact either.
const BOUNDED_MIN: f64 = 0.5;
/// Requests of less than this part of the longest say nothing of bytes per second.
const SCATTERED: u64 = 8;

/// How long a read of the server may wait behind one of ours where the disk serves one after the
/// other. It bounds the bytes of one call.
const CALL_NS: f64 = 10e6;
const CALL_BYTES_MIN: f64 = 131_072.0;
/// There are fewer calls while one takes longer than the upper limit, queueing included, and more
/// while one takes less than the lower.
const WAITING_NS_MAX: f64 = 8e6;
const WAITING_NS_MIN: f64 = 3e6;

/// What one more request costs, how much the disk reads per second, and how many requests suit it
/// at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskCosts {
    /// Time of one more request with the best number in flight, ns.
    pub request_ns: f64,
    pub bytes_per_s: f64,
    /// Reads in flight, at least 1.
    pub depth: u32,
    /// Where `request_ns` and `depth` come from.
    pub request_from: Source,
    pub rate_from: Source,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Measured,
    /// Typical of disks of this kind.
    Typical,
    /// Nothing is known; the figure is on the safe side.
    Guess,
}

impl DiskCosts {
    /// Returns the costs of a measured or typical disk; `None` for a model without rates.
    pub fn of_model(model: &DeviceModel) -> Option<Self> {
        let best_iops = model.depths.iter().map(|p| p.iops).fold(0.0, f64::max);
        let request_ns = if best_iops > 0.0 {
            1e9 / best_iops
        } else {
            model.l0_ns
        };
        let bytes_per_s = model.bytes_per_s_max.max(model.sequential_bytes_per_s);
        let known = request_ns > 0.0 && bytes_per_s > 0.0;
        known.then(|| Self {
            request_ns,
            bytes_per_s,
            // One more, so that the disk never waits for us.
            depth: model.parallelism.saturating_add(1).clamp(2, DEPTH_MAX),
            request_from: Source::Typical,
            rate_from: Source::Typical,
        })
    }

    /// Marks every figure as coming from `source`.
    #[must_use]
    pub fn of_source(self, source: Source) -> Self {
        Self {
            request_from: source,
            rate_from: source,
            ..self
        }
    }

    /// Records the costs, except guesses, which are not worth reading.
    pub(crate) fn note_in(&self, record: &mut PrefetchRecord) {
        let known = |value: f64, from: Source| (from != Source::Guess).then_some(value);
        record.request_ns = known(self.request_ns, self.request_from);
        record.bytes_per_s = known(self.bytes_per_s, self.rate_from);
        record.disk_measured = [self.request_from, self.rate_from].contains(&Source::Measured);
        record.depth = self.depth;
    }

    /// Returns how to form stretches: gaps up to the break-even between one more request and
    /// reading through, and stretches of two requests of `request_bytes`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "positive, and the cast saturates"
    )]
    pub fn joining(&self, request_bytes: u64) -> Joining {
        let gap_bytes = self.request_ns / 1e9 * self.bytes_per_s;
        Joining {
            gap_bytes: (gap_bytes as u64).min(GAP_BYTES_MAX),
            stretch_bytes: request_bytes * STRETCH_CALLS,
        }
    }

    /// Returns the bytes of one read call on a disk that takes `request_bytes` per request: what it
    /// reads in 10 ms, at least 128 KiB.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "positive, and the cast saturates"
    )]
    pub fn call_bytes(&self, request_bytes: usize) -> usize {
        let bytes = (self.bytes_per_s * CALL_NS / 1e9).max(CALL_BYTES_MIN);
        (bytes as usize).min(request_bytes)
    }

    /// Adapts the depth to `call_ns`, the time our calls take, queueing included: where they wait
    /// long for one another there are fewer of them, down to two, otherwise more, up to
    /// `depth_max`.
    pub fn adapt_depth(&mut self, call_ns: f64, depth_max: u32) {
        if call_ns > WAITING_NS_MAX && self.depth > SLOW_DEPTH {
            self.depth = (self.depth / 2).max(SLOW_DEPTH);
        } else if call_ns < WAITING_NS_MIN && self.depth < depth_max {
            self.depth += 1;
        }
    }

    /// Like [`Self::joining`], for when no scan is running yet.
    pub fn joining_alone(&self, request_bytes: u64) -> Joining {
        Joining {
            stretch_bytes: request_bytes * STRETCH_CALLS_ALONE,
            ..self.joining(request_bytes)
        }
    }

    /// Measures by reading `leaves`, the first that the scan needs, one after the other. Also
    /// returns those that are now ours. A leaf already in memory costs nothing and shows nothing.
    /// `bytes_per_s` is a guess, and so is the rest unless requests [are slow](Self::are_slow).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn measure(
        make_reader: &(dyn Fn() -> StretchReader + Sync),
        leaves: &[Place],
    ) -> io::Result<(Self, Vec<Place>)> {
        let alone = Trial::alone(&mut make_reader(), leaves)?;
        let costs = match alone.ns_per_read {
            Some(alone_ns) => Self {
                request_ns: alone_ns,
                bytes_per_s: guessed_rate(alone_ns),
                depth: if alone_ns >= SLOW_NS {
                    SLOW_DEPTH
                } else {
                    DEPTH
                },
                request_from: Source::Measured,
                rate_from: Source::Guess,
            },
            None => Self::unknown(),
        };
        Ok((costs, alone.ours))
    }

    /// Applies the measured bytes per second, if any: the time to transfer a leaf is no part of its
    /// request's cost.
    #[must_use]
    pub fn with_rate(self, bytes_per_s: Option<f64>, leaf_bytes: f64) -> Self {
        let rate_from = match bytes_per_s {
            Some(_) => Source::Measured,
            None => self.rate_from,
        };
        let bytes_per_s = bytes_per_s.unwrap_or(self.bytes_per_s);
        let transfer_ns = leaf_bytes * 1e9 / bytes_per_s.max(1.0);
        Self {
            request_ns: (self.request_ns - transfer_ns).max(self.request_ns / 50.0),
            bytes_per_s,
            rate_from,
            ..self
        }
    }

    /// Removes what the server's own reads of `server_bytes` took of the disk while `own_bytes` were read to measure
    /// the time of a request.
    #[must_use]
    pub(crate) fn beside(self, server_bytes: u64, own_bytes: u64) -> Self {
        Self {
            request_ns: self.request_ns * own_share(server_bytes, own_bytes),
            ..self
        }
    }

    /// Lowers the time of a request to what the disk needed at most where it served `requests`, of a leaf at least,
    /// in `elapsed_ns`: the moment for which it was tried may have been a bad one.
    #[must_use]
    pub(crate) fn bounded_by(self, requests: u64, leaf_bytes: f64, elapsed_ns: u64) -> Self {
        let transfer_ns = leaf_bytes * 1e9 / self.bytes_per_s.max(1.0);
        let most_ns = elapsed_ns as f64 / requests.max(1) as f64 - transfer_ns;
        let least_ns = self.request_ns * BOUNDED_MIN;
        Self {
            request_ns: self.request_ns.min(most_ns.max(least_ns)),
            ..self
        }
    }

    /// Returns whether more requests at a time would not be served faster.
    pub fn are_slow(&self) -> bool {
        self.request_ns >= SLOW_NS
    }

    /// Returns placeholder costs for when nothing was read from the disk, so that they do not
    /// matter.
    pub(crate) fn unknown() -> Self {
        Self {
            request_ns: 1e6,
            bytes_per_s: guessed_rate(1e6),
            depth: DEPTH,
            request_from: Source::Guess,
            rate_from: Source::Guess,
        }
    }
}

/// Returns which share of what was read was ours.
pub(crate) fn own_share(server_bytes: u64, own_bytes: u64) -> f64 {
    match own_bytes {
        0 => 1.0,
        own => own as f64 / (own as f64 + server_bytes as f64),
    }
}

/// Bytes per second at which gaps of [`GAP_BYTES`] are worth reading through, given requests of
/// `request_ns`.
fn guessed_rate(request_ns: f64) -> f64 {
    GAP_BYTES as f64 / request_ns.max(1.0) * 1e9
}

struct Trial {
    /// `None` if too few leaves had to be read from the disk.
    ns_per_read: Option<f64>,
    ours: Vec<Place>,
}

impl Trial {
    /// Reads one after the other: a few on a quick disk, otherwise for [`TRIAL_TIME`] after the
    /// credit is spent.
    fn alone(reader: &mut StretchReader, leaves: &[Place]) -> io::Result<Self> {
        let started = Instant::now();
        let mut ours = Vec::new();
        let mut at_limit: Option<(Instant, usize)> = None;
        for &leaf in leaves {
            let is_quick = ours.len() >= TRIAL_READS && started.elapsed() < QUICK_TIME;
            if is_quick || at_limit.is_some_and(|(since, _)| since.elapsed() >= TRIAL_TIME) {
                break;
            }
            ours.extend(reader.read(&Stretch { leaves: vec![leaf] })?.ours);
            if started.elapsed() >= CREDIT_TIME {
                at_limit.get_or_insert((Instant::now(), ours.len()));
            }
        }
        let (since, before) = at_limit.unwrap_or((started, 0));
        let elapsed_ns = since.elapsed().as_nanos() as f64;
        let count = ours.len() - before;
        let is_slow = since.elapsed() >= TRIAL_TIME && count > 0;
        Ok(Self {
            ns_per_read: (count >= TRIAL_READS_MIN || is_slow).then(|| elapsed_ns / count as f64),
            ours,
        })
    }

    fn of(
        make_reader: &(dyn Fn() -> StretchReader + Sync),
        leaves: &[Place],
        depth: usize,
    ) -> io::Result<Self> {
        let started = Instant::now();
        let (next, in_credit) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || -> io::Result<Vec<Place>> {
            let mut reader = make_reader();
            let mut ours = Vec::new();
            while started.elapsed() < CREDIT_TIME + TRIAL_TIME {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&leaf) = leaves.get(at) else { break };
                let read = reader.read(&Stretch { leaves: vec![leaf] })?.ours;
                // Lying all over the file, they would divide the long reads that follow, and many of them lie
                // beyond the window. What cannot be given back does no other harm.
                let _ = reader.give_back(&read);
                if started.elapsed() < CREDIT_TIME {
                    in_credit.fetch_add(read.len(), Ordering::Relaxed);
                }
                ours.extend(read);
            }
            Ok(ours)
        };
        let ours = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..depth).map(|_| scope.spawn(work)).collect();
            let mut all = Vec::new();
            for thread in threads {
                let broke = |_| io::Error::other("a reading thread ended unexpectedly");
                all.extend(thread.join().map_err(broke)??);
            }
            io::Result::Ok(all)
        })?;
        let elapsed = started.elapsed();
        // Only a disk that did not serve all before its credit was spent is at its limit.
        let (time, count) = match elapsed.checked_sub(CREDIT_TIME) {
            Some(time) if time >= TRIAL_TIME / 2 => {
                (time, ours.len() - in_credit.load(Ordering::Relaxed))
            }
            _ => (elapsed, ours.len()),
        };
        let is_slow = elapsed >= CREDIT_TIME + TRIAL_TIME && count > 0;
        Ok(Self {
            ns_per_read: (count >= TRIAL_READS_MIN || is_slow)
                .then(|| time.as_nanos() as f64 / count as f64),
            ours,
        })
    }
}

/// Measures a quick disk by reading `leaves` several at a time, as many as the user has named, if
/// any. `alone` are the costs from [`DiskCosts::measure`]. Also returns the leaves that were brought
/// into memory and given back. `bytes_per_s` remains a guess.
///
/// # Errors
/// When the file cannot be read.
pub fn calibrate(
    make_reader: &(dyn Fn() -> StretchReader + Sync),
    leaves: &[Place],
    alone: DiskCosts,
    named_depth: Option<u32>,
) -> io::Result<(DiskCosts, Vec<Place>)> {
    let depth = named_depth.map_or(TRIAL_DEPTH, |depth| depth.max(1) as usize);
    let together = Trial::of(make_reader, leaves, depth)?;
    let Some(together_ns) = together.ns_per_read else {
        return Ok((alone, together.ours));
    };
    let gain = (alone.request_ns / together_ns.max(1.0)).ceil();
    let costs = DiskCosts {
        // Where several are served no faster, it is the many that showed a limit.
        request_ns: together_ns,
        // A guess holds only beside the request that it was made of: what one alone took in a tenth of a
        // second that had been saved up says nothing of a disk at its limit.
        bytes_per_s: guessed_rate(together_ns),
        rate_from: Source::Guess,
        depth: named_depth.unwrap_or_else(|| {
            let mut depths = SLOW_DEPTH..DEPTH_MAX;
            depths.find(|d| f64::from(*d) >= gain).unwrap_or(DEPTH_MAX)
        }),
        request_from: Source::Measured,
    };
    Ok((costs, together.ours))
}

/// What one call for a stretch brought from the disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fetched {
    pub bytes: u64,
    pub requests: u64,
}

/// Measures bytes per second by calling `read_next` for a moment, with long stretches, at most for `search_time` if these
/// are not found. `read_next` returns what it has read, and `None` at the end. Where what is in memory already cuts stretches
/// into short requests, it begins again: the disk is then limited by their number. If there is no
/// other place, the rate is that of all that was read, and on the low side. Returns `None` if that
/// was too little, or too scattered.
pub fn measure_stream(
    request_bytes: u64,
    search_time: Duration,
    read_next: &mut dyn FnMut(Joining) -> Option<Fetched>,
) -> Option<f64> {
    let joining = Joining {
        gap_bytes: STREAM_GAP_BYTES,
        stretch_bytes: request_bytes * STRETCH_CALLS,
    };
    let begun = Instant::now();
    let (mut started, mut all, mut bytes) = (begun, Fetched::default(), 0);
    // The same of all that was read, whatever the length of its requests.
    let mut all_at_limit: Option<(Instant, u64)> = None;
    // When the saved-up credit was spent, and how much had been read by then.
    let mut at_limit: Option<(Instant, u64)> = None;
    while at_limit.is_none_or(|(since, _)| since.elapsed() < TRIAL_TIME) {
        if begun.elapsed() > search_time || all.bytes > SEARCH_BYTES {
            break;
        }
        let Some(fetched) = read_next(joining) else {
            break;
        };
        all.bytes += fetched.bytes;
        all.requests += fetched.requests;
        if begun.elapsed() >= CREDIT_TIME {
            all_at_limit.get_or_insert((Instant::now(), all.bytes));
        }
        if fetched.bytes < fetched.requests * request_bytes / 2 {
            (started, bytes, at_limit) = (Instant::now(), 0, None);
            continue;
        }
        bytes += fetched.bytes;
        if started.elapsed() >= CREDIT_TIME {
            at_limit.get_or_insert((Instant::now(), bytes));
        }
    }
    let (since, before) = at_limit.unwrap_or((started, 0));
    let elapsed_s = since.elapsed().as_secs_f64();
    let read = bytes - before;
    let enough = read >= TRIAL_BYTES || elapsed_s >= TRIAL_TIME.as_secs_f64() && read > 0;
    // A moment after short reads shows what they had left to it.
    if enough && (at_limit.is_some() || started == begun) {
        return Some(read as f64 / elapsed_s.max(1e-9));
    }
    let are_long = all.bytes >= all.requests * request_bytes / SCATTERED;
    let (since, before) = all_at_limit.unwrap_or((begun, 0));
    let read = all.bytes - before;
    (read >= TRIAL_BYTES && are_long).then(|| read as f64 / since.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests;
