//! Which of the measured ways is advised.

use seekscope_run::{AdviceVerdict, QueryShape, ShapeCost, StoringWay, WayKind};

use crate::AdviceError;
use crate::trial::Answered;

/// A way must save this share of the time to be worth a change.
const SAVED_MIN: f64 = 0.3;
/// And this much of a query: less makes no difference that anybody notices.
const SAVED_NS_MIN: f64 = 1e6;
/// A way that takes more effort must save this share of the present time beyond what a simpler one saves.
const MORE_SAVED_MIN: f64 = 0.15;
/// Answers that differ by more than this share are those of other documents.
const OTHER_ANSWER_MIN: f64 = 0.01;

/// Fills in what each way costs over all shapes, and returns the advice. `decays` says of each way whether its order is
/// lost again. `None` if the present way was not measured, or if none of those that were saves enough and others were
/// not.
pub fn verdict(
    shapes: &[QueryShape],
    ways: &mut [StoringWay],
    decays: &[bool],
) -> Option<AdviceVerdict> {
    let weights = weights(shapes);
    for way in ways.iter_mut() {
        way.blocks_per_query = per_query(way, &weights, |cost| cost.blocks);
        way.blocks_ns_per_query = per_query(way, &weights, |cost| way.blocks_ns(cost));
        way.query_ns = per_query(way, &weights, |cost| way.blocks_ns(cost) + cost.work_ns);
    }
    let present_ns = ways.first()?.query_ns?;
    if present_ns <= 0.0 {
        return Some(AdviceVerdict::default());
    }
    let mut candidates = Vec::new();
    for (number, way) in ways.iter_mut().enumerate() {
        way.saved_share = way.query_ns.map(|ns| 1.0 - ns / present_ns);
        let saved = way.saved_share.unwrap_or(0.0);
        let is_noticed = saved >= SAVED_MIN && saved * present_ns >= SAVED_NS_MIN;
        if number > 0 && is_noticed {
            let decays = decays.get(number).copied().unwrap_or(false);
            candidates.push((effort(way.kind, decays), number, saved));
        }
    }
    candidates.sort_by(|a, b| a.0.cmp(&b.0).then(b.2.total_cmp(&a.2)));
    let Some(&(_, mut advised, mut saved)) = candidates.first() else {
        let is_complete = ways.iter().all(|way| way.not_measured.is_none());
        return is_complete.then(AdviceVerdict::default);
    };
    for &(_, number, of_this) in &candidates {
        if of_this >= saved + MORE_SAVED_MIN {
            (advised, saved) = (number, of_this);
        }
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

/// Checks that a way answers the queries that both were asked with as many documents as the present one does: otherwise
/// it stores other documents, and what it costs says nothing.
///
/// # Errors
/// Fails if it does not.
pub fn check_answers(
    present: &[Option<Answered>],
    other: &[Option<Answered>],
) -> Result<(), AdviceError> {
    let both = present.iter().zip(other);
    for (present, other) in both.filter_map(|(a, b)| a.as_ref().zip(b.as_ref())) {
        let rows = present.returned.iter().zip(&other.returned);
        let both = rows.flat_map(|(present, other)| present.iter().zip(other));
        let (expected, returned) = both.fold((0, 0), |sums, (present, other)| {
            (sums.0 + present, sums.1 + other)
        });
        let (expected, returned) = (expected as f64, returned as f64);
        if (returned - expected).abs() > OTHER_ANSWER_MIN * expected.max(returned) {
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

    fn advised(shapes: &[QueryShape], mut ways: Vec<StoringWay>, decays: &[bool]) -> AdviceVerdict {
        verdict(shapes, &mut ways, decays).unwrap()
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
            verdict(&shapes, &mut ways, &[])
        };
        assert_eq!(of(90.0), None);
        assert_eq!(of(10.0).unwrap().way, 1);
    }

    #[test]
    fn other_answers_are_those_of_other_queries() {
        let of = |returned: &[&[u64]]| {
            let answered = Answered {
                cost: ShapeCost::default(),
                returned: returned.iter().map(|row| row.to_vec()).collect(),
            };
            [None, Some(answered)]
        };
        assert!(check_answers(&of(&[&[200]]), &of(&[&[201]])).is_ok());
        assert!(check_answers(&of(&[&[0]]), &of(&[&[0]])).is_ok());
        let lost = check_answers(&of(&[&[40], &[60]]), &of(&[&[40], &[20]])).unwrap_err();
        assert!(lost.to_string().contains("returned 60 documents"), "{lost}");
        assert!(check_answers(&of(&[&[40]]), &[None, None]).is_ok());
        // The slow way was asked the first of each row alone, and later ones find more.
        let slow = of(&[&[2], &[3]]);
        assert!(check_answers(&slow, &of(&[&[2, 90, 40], &[3, 70]])).is_ok());
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
        assert_eq!(
            verdict(&shapes, &mut [way(WayKind::Present, &[])], &[]),
            None
        );
    }
}
