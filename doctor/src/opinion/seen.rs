//! Derives how the disk itself answered while it was watched, from the kernel's counters: all processes
//! together, and without the delay by a control group, because that happens before a request is counted.
//!
//! Load makes latencies longer, so the quicker seconds show what a read takes. The bytes of a second, over the
//! time in which the disk had requests, are a lower bound of what the disk can move; a scan that ends within a
//! second would otherwise make the disk seem slower than it was. Seconds whose reads were much smaller than the server's
//! leaf pages are left out.

use seekscope_run::DeviceModel;

use super::limits::at_least;
use crate::Evidence;
use crate::evidence::{Series, ability};

const SOURCE: &str = "diskstats";
/// Fewest reads in a second for its mean to count, and fewest such seconds.
const READS_MIN: f64 = 10.0;
const SECONDS_MIN: usize = 5;
/// Largest mean size of a second's reads: larger ones say more about the bus than about the disk. Leaf pages
/// of mongod were 28 to 118 KiB.
const BYTES_MAX: f64 = 256.0 * 1024.0;
/// Smallest mean size of a second's reads, as a share of the server's leaf pages: the reads of others, which may be
/// much smaller, say nothing of how quickly the bytes of a leaf are transferred.
const LEAF_SHARE_MIN: f64 = 0.5;
/// Shortest time in a second with requests in the disk, ms, for the rate over this time to count: the kernel
/// counts it in ticks of up to 10 ms.
const BUSY_MIN_MS: f64 = 100.0;
/// Beyond this a token bucket of a typical disk is refuted.
const BEYOND: f64 = 1.1;
/// Largest share of a read's time that is the transfer of its bytes, where the model's rate says more.
const TRANSFER_MAX: f64 = 0.5;
/// A disk whose reads take less than this share of the typical disk's time is of another kind, and the rates that a
/// typical disk grants say nothing of it.
const QUICKER: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Time of a read alone, ns, and its bytes.
    pub(super) read_ns: f64,
    pub(super) bytes: f64,
    requests_per_s_max: f64,
    read_bytes_per_s_max: f64,
    /// The highest rate of a second over the time in which the disk had requests.
    read_bytes_per_busy_s_max: f64,
}

impl Seen {
    pub(super) fn of(evidence: &Evidence<'_>, typical: &DeviceModel) -> Option<Self> {
        let rates = |name| {
            let series = evidence.counters.get(SOURCE, name);
            series.map(Series::rates)
        };
        let (reads, read_ms) = (rates("reads")?, rates("read_ms")?);
        let (read_bytes, queue_ms) = (rates("read_bytes")?, rates("queue_ms")?);
        let (busy_ms, writes) = (rates("busy_ms")?, rates("writes")?);
        // All of a disk's counters are sampled together.
        let of = |rates: &[(u64, f64)], at: usize| rates.get(at).map(|(_, rate)| *rate);
        let while_busy = (0..reads.len()).filter_map(|at| {
            let busy_ms = of(&busy_ms, at).filter(|busy_ms| *busy_ms >= BUSY_MIN_MS)?;
            Some(of(&read_bytes, at)? * 1e3 / busy_ms.min(1e3))
        });
        let read_bytes_per_busy_s_max = while_busy.fold(0.0, f64::max);
        let bytes_min = LEAF_SHARE_MIN * evidence.leaf_bytes().unwrap_or(0.0);
        let mut alone: Vec<(f64, f64)> = (0..reads.len())
            .filter_map(|at| {
                let of = |rates: &[(u64, f64)]| of(rates, at);
                let count = of(&reads).filter(|count| *count >= READS_MIN)?;
                let bytes = of(&read_bytes)? / count;
                let depth = (of(&queue_ms)? / of(&busy_ms)?.max(1.0)).max(1.0);
                let mean_ns = of(&read_ms)? * 1e6 / count;
                let alone_ns = mean_ns / ability::stretch_at(typical, bytes, depth);
                let is_alike = bytes >= bytes_min && bytes <= BYTES_MAX;
                (is_alike && alone_ns > 0.0).then_some((alone_ns, bytes))
            })
            .collect();
        if alone.len() < SECONDS_MIN {
            return None;
        }
        alone.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (read_ns, bytes) = *alone.get(alone.len() / 4)?;
        let most = |rates: &mut dyn Iterator<Item = f64>| rates.fold(0.0, f64::max);
        Some(Self {
            read_ns,
            bytes,
            requests_per_s_max: most(&mut reads.iter().zip(&writes).map(|(a, b)| a.1 + b.1)),
            read_bytes_per_s_max: most(&mut read_bytes.iter().map(|(_, rate)| *rate)),
            read_bytes_per_busy_s_max,
        })
    }

    /// Replaces a typical disk's guesses with what was seen.
    pub(super) fn apply(&self, model: &mut DeviceModel) {
        let block = model.depths.first().map_or(4096, |p| p.block_bytes) as f64;
        let before_ns = model.l0_ns + model.ns_per_byte * block;
        let is_other = self.read_ns < QUICKER * (model.l0_ns + model.ns_per_byte * self.bytes);
        let most_ns_per_byte = TRANSFER_MAX * self.read_ns / self.bytes.max(1.0);
        model.ns_per_byte = model.ns_per_byte.min(most_ns_per_byte);
        model.l0_ns = self.read_ns - model.ns_per_byte * self.bytes;
        let quicker = before_ns / (model.l0_ns + model.ns_per_byte * block);
        for point in &mut model.depths {
            point.iops *= quicker;
        }
        let refuted = |per_s: f64, seen_per_s: f64| is_other || seen_per_s > BEYOND * per_s;
        model
            .iops_bucket
            .take_if(|bucket| refuted(bucket.per_s, self.requests_per_s_max));
        model
            .bytes_bucket
            .take_if(|bucket| refuted(bucket.per_s, self.read_bytes_per_s_max));
        let at_least_per_s = self
            .read_bytes_per_busy_s_max
            .max(self.read_bytes_per_s_max);
        let while_transferring = self.bytes * 1e9 / (TRANSFER_MAX * self.read_ns);
        at_least(
            model,
            at_least_per_s.max(if is_other { while_transferring } else { 0.0 }),
        );
    }
}
