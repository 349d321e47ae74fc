//! What the blocks that queries read cost on the disk.

use seekscope_run::{AdviceRecord, DeviceModel, StoringWay};

/// The size of a leaf of MongoDB's indexes.
const INDEX_BLOCK_BYTES: f64 = 16_384.0;

/// Fills in the time in which a block of a way is read, one at a time, and unpacked.
pub fn fill_in_block(way: &mut StoringWay, disk: &DeviceModel) {
    let read_ns = way
        .block_bytes
        .map(|bytes| disk.l0_ns + disk.ns_per_byte * bytes);
    way.block_ns = read_ns.map(|ns| ns + way.unpack_ns.unwrap_or(0.0));
    way.index_block_ns = Some(disk.l0_ns + disk.ns_per_byte * INDEX_BLOCK_BYTES);
}

/// Fills in the time that the queries take per hour, for each way that was measured. Where a trace tells how long the
/// server waits for the collection's blocks now, that time falls with the blocks of a query. Otherwise the target's own
/// cache serves a part of the pages that are asked for; the same part is taken to be served of each way, and unless it
/// is known, nothing is filled in.
pub fn fill_in(advice: &mut AdviceRecord) {
    if let Some(traced) = &advice.traced {
        let now = traced.reads_s * 3_600.0 / traced.elapsed_s.max(1e-3);
        let present = advice.ways.first().and_then(|way| way.blocks_per_query);
        for way in &mut advice.ways {
            let share = way
                .blocks_per_query
                .zip(present.filter(|blocks| *blocks > 0.0));
            way.s_per_hour = share.map(|(blocks, present)| now * blocks / present);
        }
        return;
    }
    let rates: Option<f64> = advice.shapes.iter().map(|shape| shape.per_s).sum();
    let (Some(queries_per_s), Some(missed)) = (rates, advice.collection.missed_share) else {
        return;
    };
    let cached = 1.0 - missed;
    for way in &mut advice.ways {
        let query_ns = way.query_ns.zip(way.blocks_ns_per_query);
        let query_ns = query_ns.map(|(ns, blocks_ns)| ns - cached * blocks_ns);
        way.s_per_hour = query_ns.map(|ns| ns.max(0.0) * queries_per_s * 3_600.0 / 1e9);
    }
}
