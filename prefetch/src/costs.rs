//! What a disk likes: how long a gap is cheaper to read than to skip, and how many reads at a time.
//!
//! From the device model of `seekscope disk` where there is one, else from a few dozen reads of leaves
//! that the scan needs anyway.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use seekscope_run::DeviceModel;

use crate::stretch_reader::StretchReader;
use crate::sweep::{Joining, Next, Place, Stretch, Sweep};

/// Read calls of a stretch: longer ones hold up what the server reads meanwhile.
const STRETCH_CALLS: u64 = 2;
/// Where nothing is to be held up: the last request of a stretch is seldom a full one.
const STRETCH_CALLS_ALONE: u64 = 16;
const GAP_BYTES_MAX: u64 = 2 << 20;
pub const DEPTH_MAX: u32 = 16;
/// Where nothing is known.
const GAP_BYTES: u64 = 128 << 10;
const DEPTH: u32 = 4;
/// Reads of the estimate at each depth.
const TRIAL_READS: usize = 24;
const TRIAL_READS_MIN: usize = 8;
const TRIAL_DEPTH: usize = 8;
/// Requests that take longer are an arm's or a throttle's, which serve no more of them for being asked
/// several at a time; trying that would take as long as reading much of the file.
const SLOW_NS: f64 = 3e6;
/// One that is served and one that waits: the server's own reads wait behind them.
const SLOW_DEPTH: u32 = 2;
const TRIAL_TIME: Duration = Duration::from_millis(250);
/// How much is read at least for the estimate of bytes per second, and for how long: throttled disks
/// serve in slices of 100 ms.
const TRIAL_BYTES: u64 = 4 << 20;
const STREAM_TIME: Duration = Duration::from_millis(160);
/// Gaps that are read through meanwhile.
const STREAM_GAP_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskCosts {
    /// What one more request takes with the best number of them in flight, ns.
    pub request_ns: f64,
    pub bytes_per_s: f64,
    /// Reads in flight, at least 1.
    pub depth: u32,
}

impl DiskCosts {
    /// Of a measured or typical disk. `None` of a model without rates.
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
        })
    }

    /// Gaps up to the break-even of one more request and reading through; stretches of two requests of
    /// `request_bytes`.
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

    /// [`Self::joining`] where no scan runs yet.
    pub fn joining_alone(&self, request_bytes: u64) -> Joining {
        Joining {
            stretch_bytes: request_bytes * STRETCH_CALLS_ALONE,
            ..self.joining(request_bytes)
        }
    }

    /// From reading `leaves`, those the scan needs first, one after the other and then several at a
    /// time, and what of them is ours now. What is in memory already costs and tells nothing.
    /// `bytes_per_s` is a guess that [`measure_stream`] may replace.
    ///
    /// # Errors
    /// Of the file.
    pub fn measure(
        make_reader: &(dyn Fn() -> StretchReader + Sync),
        leaves: &[Place],
    ) -> io::Result<(Self, Vec<Place>)> {
        let (single, rest) = leaves.split_at(TRIAL_READS.min(leaves.len()));
        let alone = Trial::of(make_reader, single, 1)?;
        if let Some(alone_ns) = alone.ns_per_read.filter(|&ns| ns >= SLOW_NS) {
            let slow = Self {
                request_ns: alone_ns,
                bytes_per_s: GAP_BYTES as f64 / alone_ns * 1e9,
                depth: SLOW_DEPTH,
            };
            return Ok((slow, alone.ours));
        }
        let together = Trial::of(
            make_reader,
            &rest[..TRIAL_READS.min(rest.len())],
            TRIAL_DEPTH,
        )?;
        let mut ours = [alone.ours, together.ours].concat();
        ours.sort_unstable();
        let (Some(alone_ns), Some(together_ns)) = (alone.ns_per_read, together.ns_per_read) else {
            return Ok((Self::unknown(), ours));
        };
        let gain = (alone_ns / together_ns.max(1.0)).ceil();
        let costs = Self {
            request_ns: alone_ns.min(together_ns),
            bytes_per_s: GAP_BYTES as f64 / alone_ns * 1e9,
            depth: (2..DEPTH_MAX)
                .find(|d| f64::from(*d) >= gain)
                .unwrap_or(DEPTH_MAX),
        };
        Ok((costs, ours))
    }

    /// Nothing was read from the disk, so it does not matter.
    pub(crate) fn unknown() -> Self {
        Self {
            request_ns: 1e6,
            bytes_per_s: GAP_BYTES as f64 * 1e3,
            depth: DEPTH,
        }
    }
}

struct Trial {
    /// `None` where too few had to be read from the disk.
    ns_per_read: Option<f64>,
    ours: Vec<Place>,
}

impl Trial {
    fn of(
        make_reader: &(dyn Fn() -> StretchReader + Sync),
        leaves: &[Place],
        depth: usize,
    ) -> io::Result<Self> {
        let started = Instant::now();
        let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let work = || -> io::Result<Vec<Place>> {
            let mut reader = make_reader();
            let mut ours = Vec::new();
            while started.elapsed() < TRIAL_TIME {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(&leaf) = leaves.get(at) else { break };
                ours.extend(reader.read(&Stretch { leaves: vec![leaf] })?.ours);
            }
            Ok(ours)
        };
        let ours = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..depth).map(|_| scope.spawn(work)).collect();
            let mut all = Vec::new();
            for thread in threads {
                let broke = |_| io::Error::other("a reading thread broke off");
                all.extend(thread.join().map_err(broke)??);
            }
            io::Result::Ok(all)
        })?;
        let elapsed_ns = started.elapsed().as_nanos() as f64;
        // A disk that serves no more in all that time is known to be slow.
        let slow = started.elapsed() >= TRIAL_TIME && ours.len() > 1;
        let enough = ours.len() >= TRIAL_READS_MIN || slow;
        Ok(Self {
            ns_per_read: enough.then(|| elapsed_ns / ours.len() as f64),
            ours,
        })
    }
}

/// What [`measure_stream`] read.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamTrial {
    /// `None` where too little was read in long stretches.
    pub bytes_per_s: Option<f64>,
    pub stretches: u64,
    pub leaves: u64,
    pub bytes: u64,
    pub bridged_bytes: u64,
}

/// Begins with what is to be read ahead, in long stretches, for a moment, and then for as long as
/// `goes_on` says.
///
/// # Errors
/// Of the file.
pub fn measure_stream(
    sweep: &mut Sweep,
    reader: &mut StretchReader,
    request_bytes: u64,
    goes_on: &dyn Fn() -> bool,
) -> io::Result<StreamTrial> {
    let joining = Joining {
        gap_bytes: STREAM_GAP_BYTES,
        stretch_bytes: request_bytes * STRETCH_CALLS,
    };
    let started = Instant::now();
    let mut trial = StreamTrial::default();
    while started.elapsed() < STREAM_TIME || goes_on() {
        let Next::Read(stretch) = sweep.next(joining) else {
            break;
        };
        let read = reader.read(&stretch);
        let read = read.inspect_err(|_| sweep.failed(&stretch))?;
        sweep.done(&stretch, &read.ours);
        if read.bytes > 0 {
            trial.stretches += 1;
            trial.leaves += stretch.leaves.len() as u64;
            trial.bytes += read.bytes;
            trial.bridged_bytes += read.bridged_bytes;
        }
    }
    let elapsed_s = started.elapsed().as_secs_f64();
    let long = trial.bytes >= TRIAL_BYTES && trial.bytes >= trial.stretches * request_bytes / 2;
    trial.bytes_per_s = long.then(|| trial.bytes as f64 / elapsed_s.max(1e-9));
    Ok(trial)
}

/// Bytes per second of one long read where no leaf was tried; all of it is given back. For a file in
/// which what is wanted lies too far apart.
///
/// # Errors
/// Of the file.
pub fn measure_gap(reader: &mut StretchReader, tried: &[Place]) -> io::Result<Option<f64>> {
    let Some((from, to)) = longest_gap(tried, reader.file_bytes()?) else {
        return Ok(None);
    };
    let page = |offset| Place {
        offset,
        length: 4096,
    };
    let end = to.min(from + TRIAL_BYTES);
    let read = reader.read(&Stretch {
        leaves: vec![page(from), page(end - 4096)],
    })?;
    reader.give_back(&read.ours)?;
    // Where hardly anything lacked, nothing was learnt.
    let enough = read.bridged_bytes > TRIAL_BYTES / 4;
    Ok(enough.then(|| read.bridged_bytes as f64 / read.elapsed_ns.max(1) as f64 * 1e9))
}

/// Between places, or behind the last: from where to where; `None` of a short one.
fn longest_gap(places: &[Place], file_bytes: u64) -> Option<(u64, u64)> {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    let starts = sorted.iter().skip(1).map(|place| place.offset);
    let gaps = sorted
        .iter()
        .map(Place::end)
        .zip(starts.chain([file_bytes]));
    let longest = gaps.max_by_key(|(from, to)| to.saturating_sub(*from))?;
    (longest.1.saturating_sub(longest.0) > TRIAL_BYTES / 2).then_some(longest)
}

#[cfg(test)]
mod tests {
    use seekscope_layout::typical_disks;

    use super::*;

    #[test]
    fn the_stream_is_tried_where_no_leaf_was() {
        let place = |mib: u64| Place {
            offset: mib << 20,
            length: 1 << 20,
        };
        assert_eq!(
            longest_gap(&[place(40), place(0), place(10)], 60 << 20),
            Some((11 << 20, 40 << 20))
        );
        assert_eq!(
            longest_gap(&[place(1), place(0)], 60 << 20),
            Some((2 << 20, 60 << 20))
        );
        assert_eq!(longest_gap(&[place(1), place(0)], 3 << 20), None);
        assert_eq!(
            longest_gap(&[place(9)], 3 << 20),
            None,
            "a file that became shorter"
        );
        assert_eq!(longest_gap(&[], 60 << 20), None);
    }

    #[test]
    fn slow_disks_bridge_long_gaps_and_fast_ones_read_in_parallel() {
        let costs =
            |name| DiskCosts::of_model(&typical_disks::by_name(name).unwrap().model).unwrap();
        let (hdd, cloud, nvme) = (costs("hdd"), costs("cloud"), costs("nvme"));
        // 220 IOPS at best and 150 MB/s: 680 KB.
        assert_eq!(hdd.joining(1 << 20).gap_bytes, 681_818);
        assert!((40_000..43_000).contains(&cloud.joining(1 << 20).gap_bytes));
        assert!(
            nvme.joining(1 << 20).gap_bytes < 16_000 && nvme.depth == DEPTH_MAX,
            "{nvme:?}"
        );
        assert_eq!(DiskCosts::of_model(&DeviceModel::default()), None);
    }
}
