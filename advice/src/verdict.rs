//! Which of the measured ways is advised.

use seekscope_run::{AdviceVerdict, QueryShape, ShapeCost, StoringWay, WayKind};

use crate::AdviceError;
use crate::trial::Answered;

/// A way must save this share of the time to be worth a change.
const SAVED_MIN: f64 = 0.3;
/// It must also save this much per query, ns: nobody notices a smaller difference.
const SAVED_NS_MIN: f64 = 1e6;
/// A way that takes more effort must save this share of the present time beyond what a simpler one saves.
const MORE_SAVED_MIN: f64 = 0.15;
/// Time per hour that is worth a change, s: a hundredth of one thread's time, of which `doctor` makes a finding, too.
const FELT_S_PER_HOUR: f64 = 36.0;
/// Whoever waits for a single query notices this much, however seldom it is asked, s.
const FELT_S_PER_QUERY: f64 = 0.1;
/// Answers that differ by more than this share are those of other documents.
const OTHER_ANSWER_MIN: f64 = 0.01;

/// Fills in what each way costs over all shapes, and the share that it saves of what the present one costs.
pub fn weigh(shapes: &[QueryShape], ways: &mut [StoringWay]) {
    let weights = weights(shapes);
    for way in ways.iter_mut() {
        way.blocks_per_query = per_query(way, &weights, |cost| cost.blocks);
        way.blocks_ns_per_query = per_query(way, &weights, |cost| way.blocks_ns(cost));
        way.query_ns = per_query(way, &weights, |cost| way.blocks_ns(cost) + cost.work_ns);
    }
    let present_ns = ways.first().and_then(|way| way.query_ns);
    let present_ns = present_ns.filter(|ns| *ns > 0.0);
    for way in ways {
        let both = way.query_ns.zip(present_ns);
        way.saved_share = both.map(|(ns, present_ns)| 1.0 - ns / present_ns);
    }
}

/// Returns the advice on ways that were weighed. `decays` says of each way whether its order is lost again.
/// `queries_per_hour` is known where the time of the ways per hour is that of these queries; a way must then save some of
/// that time, too. `None` if the present way was not measured, or if none of those that were saves enough and others were
/// not, unless nobody would notice if the queries took no time at all.
pub fn verdict(
    ways: &[StoringWay],
    decays: &[bool],
    queries_per_hour: Option<f64>,
) -> Option<AdviceVerdict> {
    let present_ns = ways.first()?.query_ns?;
    let mut candidates = Vec::new();
    for (number, way) in ways.iter().enumerate().skip(1) {
        let saved = way.saved_share.unwrap_or(0.0);
        if saved >= SAVED_MIN && saved * present_ns >= SAVED_NS_MIN {
            let decays = decays.get(number).copied().unwrap_or(false);
            candidates.push((effort(way.kind, decays), number, saved));
        }
    }
    candidates.sort_by(|a, b| a.0.cmp(&b.0).then(b.2.total_cmp(&a.2)));
    let (mut advised, mut least) = (0, SAVED_MIN);
    for &(_, number, saved) in &candidates {
        if saved >= least && is_felt(&ways[advised], &ways[number], queries_per_hour) {
            (advised, least) = (number, saved + MORE_SAVED_MIN);
        }
    }
    let best = StoringWay {
        s_per_hour: Some(0.0),
        ..StoringWay::default()
    };
    let may_be_better = ways.iter().any(|way| way.not_measured.is_some())
        && is_felt(&ways[0], &best, queries_per_hour);
    if advised == 0 && may_be_better {
        return None;
    }
    candidates.retain(|(_, number, _)| *number != advised);
    candidates.sort_by(|a, b| b.2.total_cmp(&a.2));
    Some(AdviceVerdict {
        way: advised,
        also: candidates
            .into_iter()
            .map(|(_, number, _)| number)
            .collect(),
    })
}

/// Returns whether the queries take so much less time in `other` than in `way`, with what the server has in memory now,
/// that somebody notices. Where that is not known, they are taken to.
fn is_felt(way: &StoringWay, other: &StoringWay, queries_per_hour: Option<f64>) -> bool {
    let known = way.s_per_hour.zip(other.s_per_hour).zip(queries_per_hour);
    known.is_none_or(|((now_s, then_s), queries)| {
        let saved_s = now_s - then_s;
        saved_s >= FELT_S_PER_HOUR || (saved_s > 0.0 && saved_s >= FELT_S_PER_QUERY * queries)
    })
}

/// Checks that a way answers the queries that both were asked with as many documents as another way does: otherwise it has
/// lost some, and what it costs says nothing.
///
/// # Errors
/// Fails if it answers with fewer.
pub fn check_answers(
    way: &[Option<Answered>],
    other: &[Option<Answered>],
) -> Result<(), AdviceError> {
    let both = way.iter().zip(other);
    for (way, other) in both.filter_map(|(a, b)| a.as_ref().zip(b.as_ref())) {
        let (mut returned, mut expected) = (0_u64, 0_u64);
        for (row, other_row) in way.returned.iter().zip(&other.returned) {
            for (number, found) in row {
                if let Some(other_found) = other_row.get(number) {
                    returned += found;
                    expected += other_found;
                }
            }
        }
        let (returned, expected) = (returned as f64, expected as f64);
        if returned < expected * (1.0 - OTHER_ANSWER_MIN) {
            return Err(AdviceError::OtherAnswers { returned, expected });
        }
    }
    Ok(())
}

/// Returns how much each shape counts: its rate, or as much as the others if that is unknown.
fn weights(shapes: &[QueryShape]) -> Vec<f64> {
    let known: Vec<f64> = shapes.iter().filter_map(|shape| shape.per_s).collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let unknown = if known.is_empty() { 1.0 } else { mean };
    shapes
        .iter()
        .map(|shape| shape.per_s.unwrap_or(unknown))
        .collect()
}

/// Returns the mean of a figure over all shapes; `None` if there is a shape that cannot be asked this way.
fn per_query(way: &StoringWay, weights: &[f64], of: impl Fn(&ShapeCost) -> f64) -> Option<f64> {
    if way.costs.len() != weights.len() || way.costs.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    for (cost, weight) in way.costs.iter().zip(weights) {
        sum += of(cost.as_ref()?) * weight;
    }
    Some(sum / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE))
}

/// Returns how much a change asks of those who make it: an index least, several more, one that holds more fields and
/// changes with each of them more, other documents for the application still more, and an order that must be renewed most.
fn effort(kind: WayKind, decays: bool) -> u8 {
    match kind {
        WayKind::Present => 0,
        WayKind::Index => 1,
        WayKind::Indexes => 2,
        WayKind::Covering => 3,
        WayKind::Order if decays => 6,
        WayKind::Order | WayKind::Compressor => 4,
        WayKind::Buckets | WayKind::GrowingId => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_NS: f64 = 5e5;

    fn way(kind: WayKind, blocks: &[f64]) -> StoringWay {
        let cost = |blocks: &f64| {
            (*blocks >= 0.0).then(|| ShapeCost {
                blocks: *blocks,
                ..ShapeCost::default()
            })
        };
        StoringWay {
            kind,
            costs: blocks.iter().map(cost).collect(),
            block_ns: Some(BLOCK_NS),
            ..StoringWay::default()
        }
    }

    fn verdict_on(shapes: &[QueryShape], mut ways: Vec<StoringWay>) -> Option<AdviceVerdict> {
        weigh(shapes, &mut ways);
        verdict(&ways, &[], None)
    }

    fn advised(shapes: &[QueryShape], mut ways: Vec<StoringWay>, decays: &[bool]) -> AdviceVerdict {
        weigh(shapes, &mut ways);
        verdict(&ways, decays, None).unwrap()
    }

    #[test]
    fn the_simplest_way_that_saves_nearly_as_much_is_advised() {
        let shapes = [QueryShape::default()];
        let ways = vec![
            way(WayKind::Present, &[100.0]),
            way(WayKind::Buckets, &[2.0]),
            way(WayKind::Index, &[8.0]),
        ];
        let expected = AdviceVerdict {
            way: 2,
            also: vec![1],
        };
        assert_eq!(advised(&shapes, ways, &[]), expected);
        let ways = vec![
            way(WayKind::Present, &[100.0]),
            way(WayKind::Buckets, &[2.0]),
            way(WayKind::Index, &[40.0]),
        ];
        assert_eq!(advised(&shapes, ways, &[]).way, 1);
    }

    #[test]
    fn an_order_that_is_lost_comes_after_buckets() {
        let shapes = [QueryShape::default()];
        let ways = vec![
            way(WayKind::Present, &[100.0]),
            way(WayKind::Order, &[2.0]),
            way(WayKind::Buckets, &[3.0]),
        ];
        assert_eq!(
            advised(&shapes, ways.clone(), &[false, false, false]).way,
            1
        );
        assert_eq!(advised(&shapes, ways, &[false, true, false]).way, 2);
    }

    #[test]
    fn work_counts_as_well_as_blocks() {
        let shapes = [QueryShape::default()];
        let mut ways = vec![way(WayKind::Present, &[20.0]), way(WayKind::Index, &[20.0])];
        ways[0].costs[0].as_mut().unwrap().work_ns = 50e6;
        assert_eq!(advised(&shapes, ways, &[]).way, 1);
    }

    #[test]
    fn there_is_no_verdict_before_all_ways_were_measured_unless_one_saves_much() {
        let shapes = [QueryShape::default()];
        let of = |blocks: f64| {
            let mut ways = vec![
                way(WayKind::Present, &[100.0]),
                way(WayKind::Index, &[blocks]),
                way(WayKind::Buckets, &[]),
            ];
            ways[2].not_measured = Some("no time".into());
            verdict_on(&shapes, ways)
        };
        assert_eq!(of(90.0), None);
        assert_eq!(of(10.0).unwrap().way, 1);
    }

    #[test]
    fn other_answers_are_those_of_other_queries() {
        let of = |returned: &[&[u64]]| {
            let answered = Answered {
                cost: ShapeCost::default(),
                returned: returned
                    .iter()
                    .map(|row| row.iter().copied().enumerate().collect())
                    .collect(),
            };
            [None, Some(answered)]
        };
        assert!(check_answers(&of(&[&[200]]), &of(&[&[201]])).is_ok());
        assert!(check_answers(&of(&[&[0]]), &of(&[&[0]])).is_ok());
        let (all, some) = (of(&[&[40], &[60]]), of(&[&[40], &[20]]));
        let lost = check_answers(&some, &all).unwrap_err();
        assert!(lost.to_string().contains("returned 60 documents"), "{lost}");
        assert!(check_answers(&all, &some).is_ok(), "it lost none");
        assert!(check_answers(&of(&[&[40]]), &[None, None]).is_ok());
        // The slow way was asked the first of each row alone, and later ones find more.
        let slow = of(&[&[2], &[3]]);
        let others = of(&[&[2, 90, 40], &[3, 70]]);
        assert!(check_answers(&slow, &others).is_ok());
        assert!(check_answers(&others, &slow).is_ok());
        // Of a row that the server plans in several ways some queries are left out.
        let mut parts = of(&[&[2, 0, 40], &[3, 70]]);
        let left_out = parts[1].as_mut().unwrap().returned[0].remove(&1);
        assert_eq!(left_out, Some(0));
        assert!(check_answers(&parts, &others).is_ok());
    }

    #[test]
    fn what_a_lost_way_saved_is_forgotten() {
        let shapes = [QueryShape::default()];
        let mut ways = vec![way(WayKind::Present, &[100.0]), way(WayKind::Index, &[8.0])];
        weigh(&shapes, &mut ways);
        assert!(ways[1].saved_share.is_some());
        ways[0].costs.clear();
        ways[0].not_measured = Some("it lost documents".into());
        weigh(&shapes, &mut ways);
        assert_eq!(ways[1].saved_share, None);
        assert_eq!(verdict(&ways, &[], None), None);
    }

    #[test]
    fn little_gain_and_unanswered_shapes_are_not_advised() {
        let rate = |per_s| QueryShape {
            per_s: Some(per_s),
            ..QueryShape::default()
        };
        let shapes = [rate(9.0), rate(1.0)];
        let ways = vec![
            way(WayKind::Present, &[1.0, 100.0]),
            way(WayKind::Index, &[1.0, 90.0]),
            way(WayKind::Buckets, &[0.1, -1.0]),
        ];
        assert_eq!(advised(&shapes, ways, &[]), AdviceVerdict::default());
        let small = vec![
            way(WayKind::Present, &[3.0, 3.0]),
            way(WayKind::Index, &[1.2, 1.2]),
        ];
        assert_eq!(advised(&shapes, small, &[]), AdviceVerdict::default());
        assert_eq!(verdict_on(&shapes, vec![way(WayKind::Present, &[])]), None);
    }

    #[test]
    fn what_nobody_notices_while_the_data_are_in_memory_is_not_advised() {
        const HOURLY: f64 = 36_000.0;
        let shapes = [QueryShape::default()];
        let of = |s_per_hour: [f64; 3], queries_per_hour| {
            let mut ways = vec![
                way(WayKind::Present, &[100.0]),
                way(WayKind::Index, &[20.0]),
                way(WayKind::Order, &[2.0]),
            ];
            for (way, s) in ways.iter_mut().zip(s_per_hour) {
                way.s_per_hour = Some(s);
            }
            weigh(&shapes, &mut ways);
            verdict(&ways, &[], queries_per_hour).unwrap()
        };
        let expected = |way, also: &[usize]| AdviceVerdict {
            way,
            also: also.to_vec(),
        };
        assert_eq!(of([400.0, 80.0, 8.0], Some(HOURLY)), expected(2, &[1]));
        // The order saves a second beyond what the index saves.
        assert_eq!(of([400.0, 80.0, 79.0], Some(HOURLY)), expected(1, &[2]));
        assert_eq!(of([12.0, 11.5, 11.0], Some(HOURLY)), expected(0, &[2, 1]));
        assert_eq!(of([12.0, 30.0, 40.0], Some(HOURLY)), expected(0, &[2, 1]));
        // No other way could save more than all of it.
        let unmeasured = |now_s: f64, queries_per_hour| {
            let mut ways = vec![
                way(WayKind::Present, &[100.0]),
                way(WayKind::Index, &[20.0]),
                way(WayKind::Order, &[]),
            ];
            ways[2].not_measured = Some("no time".into());
            ways[0].s_per_hour = Some(now_s);
            ways[1].s_per_hour = Some(now_s - 1.0);
            weigh(&shapes, &mut ways);
            verdict(&ways, &[], queries_per_hour)
        };
        assert_eq!(unmeasured(12.0, Some(HOURLY)), Some(expected(0, &[1])));
        assert_eq!(unmeasured(40.0, Some(HOURLY)), None);
        assert_eq!(unmeasured(12.0, Some(100.0)), None, "each is waited for");
        // A query of the night that takes two seconds is waited for.
        assert_eq!(of([2.0, 0.1, 0.05], Some(1.0)), expected(1, &[2]));
        assert_eq!(of([12.0, 11.5, 11.0], None), expected(2, &[1]));
    }
}
