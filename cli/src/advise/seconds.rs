//! What the blocks that queries read cost on the disk.

use seekscope_run::{AdviceRecord, DeviceModel, QueryShape, StoringWay};

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
/// is known, nothing is filled in. Nor is it for a way that would take longer although its queries were faster with warm
/// caches in the trial, and read no more: then the prediction is not to be trusted.
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
    let rates = queries_per_hour(advice);
    let (Some(queries_per_hour), Some(missed)) = (rates, advice.collection.missed_share) else {
        return;
    };
    let cached = 1.0 - missed;
    for way in &mut advice.ways {
        let query_ns = way.query_ns.zip(way.blocks_ns_per_query);
        let query_ns = query_ns.map(|(ns, blocks_ns)| ns - cached * blocks_ns);
        way.s_per_hour = query_ns.map(|ns| ns.max(0.0) * queries_per_hour / 1e9);
    }
    let Some((present, others)) = advice.ways.split_first_mut() else {
        return;
    };
    for way in others {
        if contradicts_trial(present, way, &advice.shapes, missed) {
            way.s_per_hour = None;
        }
    }
}

/// Returns how many queries are asked per hour, of which the time per hour is made up. `None` if their rates are not known,
/// or if a trace tells the time, which is that of reading alone.
pub fn queries_per_hour(advice: &AdviceRecord) -> Option<f64> {
    let rates = advice.shapes.iter().map(|shape| shape.per_s);
    let queries_per_s: Option<f64> = rates.sum();
    queries_per_s
        .filter(|_| advice.traced.is_none())
        .map(|queries| queries * 3_600.0)
}

/// Returns whether a way is predicted to take longer than the present one although its queries were faster with warm
/// caches in the trial, and those blocks that have to be read take no longer.
fn contradicts_trial(
    present: &StoringWay,
    way: &StoringWay,
    shapes: &[QueryShape],
    missed: f64,
) -> bool {
    let pair = |of: fn(&StoringWay) -> Option<f64>| of(present).zip(of(way));
    let is_longer = pair(|way| way.s_per_hour).is_some_and(|(now, then)| then > now);
    let blocks = pair(|way| way.blocks_ns_per_query);
    let reads_more = blocks.is_some_and(|(now, then)| missed * then > missed * now);
    let warm = warm_ns(present, shapes).zip(warm_ns(way, shapes));
    is_longer && !reads_more && warm.is_some_and(|(now, then)| then <= now)
}

/// Returns the time that the queries of a second take with warm caches in the trial; `None` if there is a shape that
/// cannot be asked, or of which the rate is not known.
fn warm_ns(way: &StoringWay, shapes: &[QueryShape]) -> Option<f64> {
    if way.costs.len() != shapes.len() {
        return None;
    }
    let both = way.costs.iter().zip(shapes);
    both.map(|(cost, shape)| Some(cost.as_ref()?.warm_ns as f64 * shape.per_s?))
        .sum()
}

#[cfg(test)]
mod tests {
    use seekscope_run::{AdvisedCollection, ShapeCost, TracedReads};

    use super::*;

    /// A way whose queries read this many blocks of 1 ms, take this long in the trial and this long of the whole, all
    /// in ms.
    fn way(blocks: f64, warm_ms: u64, work_ms: f64) -> StoringWay {
        StoringWay {
            costs: vec![Some(ShapeCost {
                warm_ns: warm_ms * 1_000_000,
                ..ShapeCost::default()
            })],
            blocks_ns_per_query: Some(blocks * 1e6),
            query_ns: Some((blocks + work_ms) * 1e6),
            ..StoringWay::default()
        }
    }

    fn s_per_hour(missed: f64, ways: Vec<StoringWay>) -> Vec<Option<f64>> {
        let mut advice = AdviceRecord {
            shapes: vec![QueryShape {
                per_s: Some(10.0),
                ..QueryShape::default()
            }],
            collection: AdvisedCollection {
                missed_share: Some(missed),
                ..AdvisedCollection::default()
            },
            ways,
            ..AdviceRecord::default()
        };
        fill_in(&mut advice);
        advice.ways.iter().map(|way| way.s_per_hour).collect()
    }

    #[test]
    fn in_memory_the_work_alone_is_counted() {
        let found = s_per_hour(0.0, vec![way(300.0, 1, 20.0), way(10.0, 1, 2.0)]);
        for (seconds, expected) in found.into_iter().zip([720.0, 72.0]) {
            assert!((seconds.unwrap() - expected).abs() < 1e-6, "{seconds:?}");
        }
    }

    #[test]
    fn queries_are_counted_unless_a_trace_tells_the_time() {
        let shape = |per_s| QueryShape {
            per_s,
            ..QueryShape::default()
        };
        let mut advice = AdviceRecord {
            shapes: vec![shape(Some(1.5)), shape(Some(0.5))],
            ..AdviceRecord::default()
        };
        assert_eq!(queries_per_hour(&advice), Some(7_200.0));
        advice.traced = Some(TracedReads::default());
        assert_eq!(queries_per_hour(&advice), None);
        advice.traced = None;
        advice.shapes.push(shape(None));
        assert_eq!(queries_per_hour(&advice), None);
    }

    #[test]
    fn what_was_faster_in_the_trial_is_not_said_to_take_longer() {
        let present = || way(300.0, 2, 20.0);
        let of = |missed, other| s_per_hour(missed, vec![present(), other])[1];
        assert_eq!(of(0.0, way(200.0, 1, 30.0)), None);
        assert!(of(0.0, way(200.0, 3, 30.0)).is_some(), "it was slower");
        assert!(of(0.0, way(200.0, 1, 10.0)).is_some(), "it is faster");
        assert!(of(0.5, way(400.0, 1, 10.0)).is_some(), "it reads more");
        assert!(s_per_hour(0.0, Vec::new()).is_empty());
    }
}
