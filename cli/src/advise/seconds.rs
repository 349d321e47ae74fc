//! What the blocks that queries read cost on the disk.

use seekscope_run::{AdviceRecord, DeviceModel};

/// The size of a compressed page on the disk, by order of magnitude: the time of a read hardly depends on it.
const BLOCK_BYTES: f64 = 16_384.0;

/// Returns the time in which the disk reads a block, one at a time.
pub fn read_ns(disk: &DeviceModel) -> f64 {
    disk.l0_ns + disk.ns_per_byte * BLOCK_BYTES
}

/// Fills in the time that the queries take per hour, for each way that was measured. The target's own cache serves a
/// part of the pages that are asked for; the same part is taken to be served of each way, and unless it is known,
/// nothing is filled in.
pub fn fill_in(advice: &mut AdviceRecord, disk: &DeviceModel) {
    let rates: Option<f64> = advice.shapes.iter().map(|shape| shape.per_s).sum();
    let (Some(queries_per_s), Some(missed)) = (rates, advice.collection.missed_share) else {
        return;
    };
    let cached = 1.0 - missed;
    for way in &mut advice.ways {
        let query_ns = way.query_ns.zip(way.blocks_per_query);
        let query_ns = query_ns.map(|(ns, blocks)| ns - blocks * cached * read_ns(disk));
        way.s_per_hour = query_ns.map(|ns| ns.max(0.0) * queries_per_s * 3_600.0 / 1e9);
    }
}
