//! Evaluates a device model for a steady load, in closed form.
//!
//! These are the terms of the simulation that predicts lists of accesses (`disk/src/model/device.rs`): with q
//! requests of s bytes always in flight, each takes the longest of
//! - L(min(s, b)) × q X(1) / X(q) + k (s − b), with L(s) = L0 + k s and X the depth table of block size b,
//! - q s / B, for the device moves B bytes per second,
//! - q / rate of a token bucket of requests, and q s / rate of one of bytes.

use seekscope_run::{DepthPoint, DeviceModel};

/// Returns the time that one of `depth` requests of `bytes` takes when that many are always in flight, ns;
/// `None` for a model without figures.
pub(crate) fn latency_ns(model: &DeviceModel, bytes: f64, depth: f64) -> Option<f64> {
    let depth = depth.max(1.0);
    let table = table(model, bytes);
    let block = table.first().map_or(4096.0, |p| p.block_bytes as f64);
    let alone_ns = model.l0_ns + model.ns_per_byte * bytes.min(block);
    let rest_ns = model.ns_per_byte * (bytes - block).max(0.0);
    let per_request = |per_s: f64| {
        if per_s > 0.0 {
            depth * 1e9 / per_s
        } else {
            0.0
        }
    };
    let bucket = |bucket: Option<seekscope_run::TokenBucket>| bucket.map_or(0.0, |b| b.per_s);
    let slowest_ns = [
        alone_ns * stretch(&table, depth) + rest_ns,
        per_request(model.bytes_per_s_max) * bytes,
        per_request(bucket(model.iops_bucket)),
        per_request(bucket(model.bytes_bucket)) * bytes,
    ]
    .into_iter()
    .fold(0.0, f64::max);
    (slowest_ns.is_finite() && slowest_ns > 0.0).then_some(slowest_ns)
}

/// Returns how many times as long one of `depth` requests of `bytes` takes as it would alone.
pub(crate) fn stretch_at(model: &DeviceModel, bytes: f64, depth: f64) -> f64 {
    stretch(&table(model, bytes), depth.max(1.0))
}

/// Returns the most requests of `bytes` per second that the disk serves, at the depth beyond which more gain
/// little.
pub(crate) fn requests_per_s(model: &DeviceModel, bytes: f64) -> Option<f64> {
    let deepest = table(model, bytes).last().map_or(1, |p| p.depth);
    let depth = f64::from(deepest.max(model.parallelism).max(1));
    Some(depth * 1e9 / latency_ns(model, bytes, depth)?)
}

/// Returns the depth table of the block size nearest to `bytes`, by rising depth.
fn table(model: &DeviceModel, bytes: f64) -> Vec<DepthPoint> {
    let usable = |p: &&DepthPoint| p.iops > 0.0 && p.depth > 0 && p.block_bytes > 0;
    let distance = |p: &DepthPoint| (p.block_bytes as f64 / bytes.max(1.0)).ln().abs();
    let nearest = model
        .depths
        .iter()
        .filter(usable)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .map(|p| p.block_bytes);
    let mut points: Vec<DepthPoint> = model.depths.iter().filter(usable).copied().collect();
    points.retain(|p| Some(p.block_bytes) == nearest);
    points.sort_by_key(|p| p.depth);
    points
}

/// Returns how many times as long a request takes at this depth as alone; at least 1.
fn stretch(table: &[DepthPoint], depth: f64) -> f64 {
    let iops = |depth: f64| {
        let after = table.partition_point(|p| f64::from(p.depth) < depth);
        let before = after.checked_sub(1).and_then(|i| table.get(i));
        match (before, table.get(after)) {
            (Some(a), Some(b)) => {
                let (from, to) = (f64::from(a.depth), f64::from(b.depth));
                a.iops + (b.iops - a.iops) * (depth - from) / (to - from)
            }
            (Some(only), None) | (None, Some(only)) => only.iops,
            (None, None) => 0.0,
        }
    };
    if iops(depth) > 0.0 {
        (depth * iops(1.0) / iops(depth)).max(1.0)
    } else {
        depth
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::TokenBucket;

    use super::*;
    use crate::testing::flash;

    fn close(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value / expected - 1.0).abs() < 0.1)
    }

    #[test]
    fn depth_helps_up_to_the_knee_and_bytes_up_to_the_bus() {
        let model = flash(1e-4);
        assert!(close(latency_ns(&model, 4096.0, 1.0), 1e5));
        assert!(close(latency_ns(&model, 4096.0, 16.0), 1e5));
        assert!(close(latency_ns(&model, 4096.0, 64.0), 2.6e5));
        assert!(close(requests_per_s(&model, 4096.0), 244_000.0));
        assert!(close(requests_per_s(&model, 1e6), 1000.0));
    }

    #[test]
    fn buckets_bound() {
        let mut model = flash(1e-4);
        model.iops_bucket = Some(TokenBucket {
            per_s: 150.0,
            burst: 0.0,
        });
        assert!(close(requests_per_s(&model, 4096.0), 150.0));
        assert!(close(latency_ns(&model, 4096.0, 3.0), 2e7));
        assert_eq!(latency_ns(&DeviceModel::default(), 4096.0, 1.0), None);
    }
}
