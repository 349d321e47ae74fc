//! When requests sent to a device complete.
//!
//! A request of s bytes that finds q - 1 others in flight completes when the last of these allows:
//! - its own latency, L(s) = L0 + k s, stretched by q X(1) / X(q): with q requests always in
//!   flight, each takes q / X(q). The depth table ends at some block size; what a request has
//!   beyond that is transfer time, whose queueing the next clock accounts for;
//! - the byte clock, which advances by s / B;
//! - the request clock, which advances by 1 / max X;
//! - the token buckets, each a clock that may lag behind by the saved-up burst.
//!
//! A request that continues a recent one saves the positioning time, L(1 MiB) less what 1 MiB in
//! order takes: that is the difference between a disk arm, for which it is most of L0, and a solid
//! or throttled disk, for which it is nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use seekscope_run::{DepthPoint, DeviceModel, TokenBucket};

use super::page_cache::PAGE_BYTES;
use super::predict::whole_ns;
use super::read_ahead::EXTENT_BYTES_MAX;

const MIB: f64 = 1024.0 * 1024.0;

/// The least share of a random 1 MiB read that counts as positioning; less is noise.
const POSITIONING_SHARE_MIN: f64 = 0.2;

/// Number of streams that a disk is assumed to follow at the same time.
const RECENT_ENDS: usize = 16;

/// X(q) for one block size.
struct DepthTable {
    block_bytes: f64,
    /// Depth and IOPS, by rising depth, starting at depth 1.
    points: Vec<(f64, f64)>,
    iops_max: f64,
}

impl DepthTable {
    fn of(block_bytes: u64, points: &[DepthPoint], latency_ns: f64) -> Self {
        let mut points: Vec<(f64, f64)> = points
            .iter()
            .filter(|p| p.block_bytes == block_bytes && p.iops > 0.0 && p.depth > 0)
            .map(|p| (f64::from(p.depth), p.iops))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if points.first().is_none_or(|first| first.0 > 1.0) && latency_ns > 0.0 {
            points.insert(0, (1.0, 1e9 / latency_ns));
        }
        Self {
            block_bytes: block_bytes as f64,
            iops_max: points.iter().map(|p| p.1).fold(0.0, f64::max),
            points,
        }
    }

    /// Returns X(q), linear between the points and constant after the last.
    fn iops(&self, depth: f64) -> f64 {
        let after = self.points.partition_point(|p| p.0 < depth);
        match (
            after.checked_sub(1).and_then(|i| self.points.get(i)),
            self.points.get(after),
        ) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (depth - a.0) / (b.0 - a.0),
            (None, Some(only)) | (Some(only), None) => only.1,
            (None, None) => 0.0,
        }
    }

    /// Returns how many times as long a request takes with `depth` in flight as alone; at least 1.
    fn stretch(&self, depth: f64) -> f64 {
        let iops = self.iops(depth);
        if iops > 0.0 {
            (depth * self.iops(1.0) / iops).max(1.0)
        } else {
            depth
        }
    }
}

/// A limit as a clock: the time by which everything admitted so far is paid for.
#[derive(Debug, Clone, Copy)]
struct Clock {
    paid_until_ns: f64,
    burst_ns: f64,
}

impl Clock {
    const START: Self = Self {
        paid_until_ns: 0.0,
        burst_ns: 0.0,
    };

    fn of_bucket(bucket: TokenBucket) -> Self {
        let burst_ns = bucket.burst.max(0.0) / bucket.per_s * 1e9;
        Self {
            paid_until_ns: -burst_ns,
            burst_ns,
        }
    }

    /// Returns when something that costs `cost_ns` and comes at `now_ns` is paid for.
    fn pay(&mut self, now_ns: f64, cost_ns: f64) -> f64 {
        self.paid_until_ns = self.paid_until_ns.max(now_ns - self.burst_ns) + cost_ns;
        self.paid_until_ns
    }
}

/// A simulated device.
pub(crate) struct Device {
    l0_ns: f64,
    ns_per_byte: f64,
    positioning_ns: f64,
    /// Tables by rising block size.
    tables: Vec<DepthTable>,
    bytes_per_s: f64,
    request_bytes_max: u64,
    byte_clock: Clock,
    request_clock: Clock,
    buckets: Vec<(Unit, TokenBucket, Clock)>,
    in_flight: BinaryHeap<Reverse<u64>>,
    recent_ends: VecDeque<(u32, u64)>,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Requests,
    Bytes,
}

impl Device {
    pub(crate) fn new(model: &DeviceModel) -> Self {
        let latency = |bytes: f64| model.l0_ns + model.ns_per_byte * bytes;
        let mut sizes: Vec<u64> = model.depths.iter().map(|p| p.block_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let tables = sizes
            .iter()
            .map(|&size| DepthTable::of(size, &model.depths, latency(size as f64)))
            .collect();
        let usable = |bucket: &TokenBucket| bucket.per_s > 0.0;
        let bucket = |unit, bucket: Option<TokenBucket>| {
            bucket
                .filter(usable)
                .map(|bucket| (unit, bucket, Clock::of_bucket(bucket)))
        };
        Self {
            l0_ns: l0_without_tokens_ns(model),
            ns_per_byte: model.ns_per_byte,
            positioning_ns: positioning_ns(model),
            tables,
            bytes_per_s: device_bytes_per_s(model),
            request_bytes_max: request_bytes_max(model),
            byte_clock: Clock::START,
            request_clock: Clock::START,
            buckets: [
                bucket(Unit::Requests, model.iops_bucket),
                bucket(Unit::Bytes, model.bytes_bucket),
            ]
            .into_iter()
            .flatten()
            .collect(),
            in_flight: BinaryHeap::new(),
            recent_ends: VecDeque::with_capacity(RECENT_ENDS),
            requests: 0,
            bytes: 0,
        }
    }

    /// Splits a range of a file into the requests that it is sent in.
    pub(crate) fn split(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = Range<u64>> + use<> {
        let (end, most) = (offset.saturating_add(length), self.request_bytes_max);
        std::iter::successors(Some(offset), move |start| start.checked_add(most))
            .take_while(move |start| *start < end)
            .map(move |start| start..end.min(start.saturating_add(most)))
    }

    /// Sends one request for bytes of a file. Returns when it completes, ns.
    pub(crate) fn request(&mut self, now_ns: u64, file: u32, range: &Range<u64>) -> u64 {
        let bytes = range.end - range.start;
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        while self.in_flight.peek().is_some_and(|done| done.0 <= now_ns) {
            self.in_flight.pop();
        }
        let saved_ns = if self.continues(file, range) {
            self.positioning_ns
        } else {
            0.0
        };
        let depth = (self.in_flight.len() + 1) as f64;
        let now = now_ns as f64;
        let size = bytes as f64;
        let mut done = now + self.latency_ns(size, saved_ns, depth);
        if self.bytes_per_s > 0.0 {
            let cost_ns = size / self.bytes_per_s * 1e9;
            done = done.max(self.byte_clock.pay(now, cost_ns));
        }
        if let Some(table) = self.nearest_table(size).filter(|t| t.iops_max > 0.0) {
            let positioned = 1.0 - saved_ns / self.l0_ns.max(1.0);
            let cost_ns = 1e9 / table.iops_max * positioned;
            done = done.max(self.request_clock.pay(now, cost_ns));
        }
        for (unit, bucket, clock) in &mut self.buckets {
            let tokens = match unit {
                Unit::Requests => 1.0,
                Unit::Bytes => size,
            };
            done = done.max(clock.pay(now, tokens / bucket.per_s * 1e9));
        }
        // A nonsensical model must not make time go back.
        let done_ns = whole_ns(done).max(now_ns);
        self.in_flight.push(Reverse(done_ns));
        done_ns
    }

    /// Returns L(s) minus what continuing saves, with `depth` in flight.
    fn latency_ns(&self, bytes: f64, saved_ns: f64, depth: f64) -> f64 {
        let Some(table) = self.nearest_table(bytes) else {
            // Nothing is known about parallelism: one at a time.
            return (self.l0_ns - saved_ns + self.ns_per_byte * bytes) * depth;
        };
        let stretched = bytes.min(table.block_bytes);
        (self.l0_ns - saved_ns + self.ns_per_byte * stretched) * table.stretch(depth)
            + self.ns_per_byte * (bytes - stretched)
    }

    /// Returns the table whose block size is nearest by ratio.
    fn nearest_table(&self, bytes: f64) -> Option<&DepthTable> {
        let distance = |table: &DepthTable| (table.block_bytes / bytes).ln().abs();
        self.tables
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// Returns whether the request starts where one of the last ended, and remembers it in any
    /// case.
    fn continues(&mut self, file: u32, range: &Range<u64>) -> bool {
        let before = self
            .recent_ends
            .iter()
            .position(|&end| end == (file, range.start));
        match before {
            Some(at) => {
                self.recent_ends.remove(at);
            }
            None if self.recent_ends.len() == RECENT_ENDS => {
                self.recent_ends.pop_front();
            }
            None => {}
        }
        self.recent_ends.push_back((file, range.end));
        before.is_some()
    }
}

/// Returns the most bytes per second that any measurement got out of the device; 0 if none is
/// known.
fn device_bytes_per_s(model: &DeviceModel) -> f64 {
    model
        .depths
        .iter()
        .map(|p| p.iops * p.block_bytes as f64)
        .chain([
            model.bytes_per_s_max,
            model.sequential_bytes_per_s,
            model.buffered_bytes_per_s,
        ])
        .fold(0.0, f64::max)
}

/// A read alone was limited by tokens, rather than by the device, if it took less than this many
/// times as long as a token takes to arrive.
const TOKEN_BOUND_MAX: f64 = 1.5;

/// Returns L0 without the wait for a token. Where tokens come more slowly than the device reads, a
/// read alone includes that wait, and the bucket would add it again.
fn l0_without_tokens_ns(model: &DeviceModel) -> f64 {
    let token_ns = model
        .iops_bucket
        .filter(|bucket| bucket.per_s > 0.0)
        .map_or(0.0, |bucket| 1e9 / bucket.per_s);
    if model.l0_ns > TOKEN_BOUND_MAX * token_ns {
        model.l0_ns
    } else {
        (model.l0_ns - token_ns).max(0.0)
    }
}

fn positioning_ns(model: &DeviceModel) -> f64 {
    if model.sequential_bytes_per_s <= 0.0 {
        return 0.0;
    }
    let random_ns = model.l0_ns + model.ns_per_byte * MIB;
    let saved_ns = random_ns - MIB / model.sequential_bytes_per_s * 1e9;
    if saved_ns < POSITIONING_SHARE_MIN * random_ns {
        0.0
    } else {
        saved_ns.min(l0_without_tokens_ns(model))
    }
}

/// Returns the largest request, bytes; if unknown 1280 KiB, the limit of most kernels for devices
/// that state none.
fn request_bytes_max(model: &DeviceModel) -> u64 {
    match model.request_bytes_max {
        0 => 1280 * 1024,
        bytes => bytes.clamp(PAGE_BYTES, EXTENT_BYTES_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn depth(block_bytes: u64, depth: u32, iops: f64) -> DepthPoint {
        DepthPoint {
            block_bytes,
            depth,
            iops,
            p50_ns: 0,
            p99_ns: 0,
        }
    }

    /// 1 ms + 1 ns per byte; two in flight do 1500 per second, four or more 2000.
    fn model() -> DeviceModel {
        DeviceModel {
            l0_ns: 1e6,
            ns_per_byte: 1.0,
            depths: vec![
                depth(4096, 1, 1000.0),
                depth(4096, 2, 1500.0),
                depth(4096, 4, 2000.0),
            ],
            sequential_bytes_per_s: 1e9,
            request_bytes_max: 1_000_000,
            ..DeviceModel::default()
        }
    }

    fn completions(model: &DeviceModel, requests: &[(u64, Range<u64>)]) -> Vec<u64> {
        let mut device = Device::new(model);
        requests
            .iter()
            .map(|(now_ns, range)| device.request(*now_ns, 1, range))
            .collect()
    }

    #[test]
    fn latency_stretches_with_depth() {
        let at_once = [(0, 0..4000), (0, 10_000..14_000), (0, 20_000..24_000)];
        // 1.004 ms alone; x 2 / 1.5 with two; x 3 / 1.75 with three, half-way to four.
        assert_eq!(
            completions(&model(), &at_once),
            [1_004_000, 1_338_667, 1_721_143]
        );
        // The second arrives when the first is done.
        let in_turn = [(0, 0..4000), (1_004_000, 10_000..14_000)];
        assert_eq!(completions(&model(), &in_turn), [1_004_000, 2_008_000]);
        // Beyond the table's block size, transfer is not stretched.
        let large = [(0, 0..4096), (0, 10_000..110_000)];
        let stretched = (1_004_096.0_f64 / 0.75).ceil();
        assert_eq!(
            completions(&model(), &large)[1] as f64,
            (stretched + 100_000.0 - 4096.0).floor()
        );
    }

    #[test]
    fn without_a_depth_table_one_at_a_time() {
        let model = DeviceModel {
            depths: Vec::new(),
            ..model()
        };
        let at_once = [(0, 0..4000), (0, 10_000..14_000)];
        assert_eq!(completions(&model, &at_once), [1_004_000, 2_008_000]);
    }

    #[test]
    fn clocks_hold_back() {
        // 16 at once, with negligible latency: the last not before 16 / 2000 s.
        let prompt = DeviceModel {
            l0_ns: 1.0,
            ns_per_byte: 0.0,
            ..model()
        };
        let many: Vec<_> = (0..16).map(|i| (0, i * 9000..i * 9000 + 4096)).collect();
        assert_eq!(completions(&prompt, &many)[15], 8 * MS);
        let slow_bytes = DeviceModel {
            sequential_bytes_per_s: 1e6,
            ..model()
        };
        // Slower than what the depth table moves, 8.192 MB/s, which is the better evidence.
        assert_eq!(Device::new(&slow_bytes).bytes_per_s, 8_192_000.0);
        let transfer = [(0, 0..819_200), (0, 900_000..1_719_200)];
        assert_eq!(completions(&slow_bytes, &transfer), [100 * MS, 200 * MS]);
    }

    #[test]
    fn buckets_spend_their_burst_first() {
        let model = DeviceModel {
            l0_ns: 0.0,
            ns_per_byte: 0.0,
            sequential_bytes_per_s: 0.0,
            depths: Vec::new(),
            iops_bucket: Some(TokenBucket {
                per_s: 100.0,
                burst: 2.0,
            }),
            ..model()
        };
        let same_time = [(0, 0..10), (0, 20..30), (0, 40..50), (0, 60..70)];
        assert_eq!(completions(&model, &same_time), [0, 0, 10 * MS, 20 * MS]);
        // Saved up again after a pause, but no more than the burst.
        let mut device = Device::new(&model);
        for range in [0..10, 20..30, 40..50] {
            device.request(0, 1, &range);
        }
        let later = 10_000 * MS;
        let again: Vec<u64> = (0..4)
            .map(|i| device.request(later, 1, &(i * 20..i * 20 + 10)))
            .collect();
        assert_eq!(again[..3], [later, later, later + 10 * MS]);
    }

    /// 3,000 requests a second, 1 ms each when alone: the bucket never holds one back.
    #[test]
    fn a_wide_bucket_is_no_part_of_the_latency() {
        let model = DeviceModel {
            ns_per_byte: 0.0,
            iops_bucket: Some(TokenBucket {
                per_s: 3000.0,
                burst: 0.0,
            }),
            ..model()
        };
        let in_turn = [(0, 0..4000), (MS, 10_000..14_000)];
        assert_eq!(completions(&model, &in_turn), [MS, 2 * MS]);
    }

    #[test]
    fn a_disk_arm_pays_for_positioning_once() {
        // 8 ms to get there, 100 MB/s.
        let arm = DeviceModel {
            l0_ns: 8e6,
            ns_per_byte: 10.0,
            sequential_bytes_per_s: 1e8,
            depths: vec![depth(4096, 1, 125.0)],
            ..model()
        };
        let in_order = completions(&arm, &[(0, 0..100_000), (10 * MS, 100_000..200_000)]);
        assert_eq!(in_order, [9 * MS, 11 * MS]);
        let jump = completions(&arm, &[(0, 0..100_000), (10 * MS, 900_000..1_000_000)]);
        assert_eq!(jump[1], 19 * MS);
        // A solid disk is no faster in order than at random: nothing to save.
        let solid = DeviceModel {
            l0_ns: 80_000.0,
            sequential_bytes_per_s: 9e8,
            ..model()
        };
        assert!(Device::new(&solid).positioning_ns.abs() < f64::EPSILON);
    }

    #[test]
    fn long_stretches_are_split() {
        let device = Device::new(&model());
        let parts: Vec<_> = device.split(500, 2_000_001).collect();
        assert_eq!(
            parts,
            [500..1_000_500, 1_000_500..2_000_500, 2_000_500..2_000_501]
        );
        assert_eq!(device.split(7, 0).count(), 0);
        let mut end = device.split(u64::MAX - 5, 100);
        assert_eq!(end.next(), Some(u64::MAX - 5..u64::MAX));
        assert_eq!(end.next(), None);
    }
}
