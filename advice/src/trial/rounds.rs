//! What each cold start of a way showed, and what a query of the whole costs by that.

use std::collections::BTreeMap;

use seekscope_run::{QueryShape, ShapeCost, units};
use seekscope_stats::{Estimate, median};

use super::asked::Plan;
use super::queries::{more_returned, more_sorted, more_values};
use super::{Questions, Stored};
use crate::predict::{Measured, Whole};

const ALPHA: f64 = 0.05;

/// What one cold start showed.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) plan: Plan,
    /// What the whole has more, the index of the plan included.
    pub(super) whole: Whole,
    /// Documents of the sample that each of its queries returned, by its number in the row.
    pub(super) returned: BTreeMap<usize, u64>,
    pub(super) collection_blocks: f64,
    pub(super) collection_bytes: f64,
    /// Index blocks of the first query alone: a sample's indexes are so small that later ones find leaves cached.
    pub(super) index_blocks: f64,
    /// Size of these blocks.
    pub(super) index_bytes: f64,
    /// Time of each query with cold caches, and of the same again.
    pub(super) cold_ns: Vec<f64>,
    pub(super) warm_ns: Vec<f64>,
    /// Time of a query that finds nothing.
    pub(super) nothing_ns: f64,
}

impl Round {
    fn queries(&self) -> f64 {
        self.cold_ns.len() as f64
    }
}

/// Returns the mean of a figure of the rounds over all their queries.
fn per_query(rounds: &[Round], of: fn(&Round) -> f64) -> f64 {
    let queries: f64 = rounds.iter().map(Round::queries).sum();
    rounds.iter().map(of).sum::<f64>() / queries.max(1.0)
}

fn returned(rounds: &[Round]) -> f64 {
    per_query(rounds, |round| round.returned.values().sum::<u64>() as f64)
}

/// Returns what each round showed, with what the whole has more.
pub(super) fn measured(rounds: &[Round], stored: &Stored, questions: &Questions) -> Vec<Measured> {
    let returned = returned(rounds);
    let shape = &questions.shape;
    let of_round = |round: &Round| {
        let (plan, whole) = (round.plan, round.whole);
        let reads_in_vain = reads_in_vain(shape, round);
        let sorts_all = plan.sorts && shape.range.is_empty() && !shape.equality.is_empty();
        let more = match sorts_all || reads_in_vain {
            true => more_sorted(shape, plan.examined, questions.values, whole.documents),
            false => more_returned(shape, returned, questions.values, whole.documents),
        };
        // Where only the number of documents is known of a list, it is taken to grow with the number of its values.
        let more_values = match shape.has_unknown_list() && shape.returned.is_some() {
            true => more.max(1.0),
            false => more_values(shape),
        };
        Measured {
            queries: round.queries(),
            collection_blocks: round.collection_blocks,
            collection_bytes: round.collection_bytes,
            index_blocks: round.index_blocks,
            index_bytes: round.index_bytes,
            leaf_keys: stored.documents as f64 / plan.index_leaves.max(1.0),
            index_leaves: plan.index_leaves,
            documents: plan.examined * round.queries(),
            keys: plan.keys * round.queries(),
            leaves: stored.leaves as f64,
            page_bytes: stored.page_bytes,
            whole,
            more_returned: more,
            // What is read before it is sorted lies wherever the documents of the compared values lie.
            local: questions.is_local && !reads_in_vain && !sorts_all,
            collection_scan: plan.is_collection_scan,
            scanned_share: plan.examined / stored.documents.max(1) as f64,
            matching: questions.matching,
            // Each query of the trial is drawn around a document, and finds that.
            found_share: shape.returned.unwrap_or(1.0).clamp(0.0, 1.0),
            values: questions.values,
            more_values,
            covered: plan.examined <= 0.0 && plan.keys > 0.0,
        }
    };
    rounds.iter().map(of_round).collect()
}

/// Returns whether the plan reads all documents of the compared values, of which the range lets some through: its index
/// lacks the range. The whole has as many times more of them as it has documents, whatever a query returns.
fn reads_in_vain(shape: &QueryShape, round: &Round) -> bool {
    let returned = round.returned.values().sum::<u64>() as f64 / round.queries().max(1.0);
    let has_enough = shape.limit.is_some_and(|limit| returned >= limit);
    round.plan.lacks_range && !shape.equality.is_empty() && !has_enough
}

pub(super) fn cost(rounds: &[Round], measured: &[Measured], each_ns: Option<f64>) -> ShapeCost {
    let of_indexes = measured
        .iter()
        .map(|row| row.index_blocks_of_whole() + row.inner_blocks_of_index());
    let of_indexes: Vec<f64> = of_indexes.collect();
    let predicted = measured.iter().zip(&of_indexes);
    let predicted = predicted.map(|(row, indexes)| {
        row.collection_blocks_of_whole() + row.inner_blocks_of_collection() + indexes
    });
    let predicted: Vec<f64> = predicted.collect();
    let mean_of = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len().max(1) as f64;
    let mean = mean_of(&predicted);
    let index_blocks: f64 = rounds.iter().map(|round| round.index_blocks).sum();
    let (low, high) = Estimate::of_mean(&predicted).map_or((mean, mean), |e| e.interval(ALPHA));
    let warm_ns = median_ns(rounds, |round| &round.warm_ns);
    let work_ns: Vec<f64> = rounds
        .iter()
        .zip(measured)
        .map(|(round, measured)| {
            let scans = round.plan.is_collection_scan;
            let alike = rounds
                .iter()
                .filter(|other| other.plan.is_collection_scan == scans);
            let warm_ns = median_ns(alike, |round| &round.warm_ns);
            // Any query takes that long; only the rest grows with what it examines.
            let nothing_ns = rounds.iter().map(|round| round.nothing_ns);
            measured.work_ns(warm_ns, nothing_ns.fold(warm_ns, f64::min), each_ns)
        })
        .collect();
    ShapeCost {
        returned: returned(rounds),
        collection_blocks: per_query(rounds, |round| round.collection_blocks),
        index_blocks: index_blocks / rounds.len().max(1) as f64,
        blocks: mean,
        index_blocks_of_whole: Some(mean_of(&of_indexes)),
        blocks_low: low.max(0.0),
        blocks_high: high,
        cold_ns: units::whole(median_ns(rounds, |round| &round.cold_ns)),
        warm_ns: units::whole(warm_ns),
        work_ns: mean_of(&work_ns),
        collection_scan: rounds.iter().any(|round| round.plan.is_collection_scan),
    }
}

/// Returns the median of times of the queries of some rounds; 0 without queries.
fn median_ns<'a>(rounds: impl IntoIterator<Item = &'a Round>, of: fn(&Round) -> &Vec<f64>) -> f64 {
    let times = rounds.into_iter().flat_map(of);
    let times: Vec<f64> = times.copied().collect();
    median(&times).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::distinct;
    use crate::shape::told;

    const SCAN: Plan = Plan {
        is_collection_scan: true,
        examined: 1_000.0,
        keys: 0.0,
        index_leaves: 0.0,
        sorts: false,
        lacks_range: false,
    };
    const BY_INDEX: Plan = Plan {
        is_collection_scan: false,
        examined: 10.0,
        keys: 10.0,
        index_leaves: 1_000.0,
        sorts: false,
        lacks_range: false,
    };

    const STORED: Stored = Stored {
        sampled: 1_000,
        documents: 1_000,
        bytes: 1,
        leaves: 100,
        page_bytes: 32_768.0,
        page_bytes_of_many: 32_768.0,
        block_bytes: 32_768.0,
        keeps_pages: true,
        unpack_ns: None,
        load_s: 1.0,
    };

    fn questions(query: &str, is_local: bool) -> Questions {
        Questions {
            shape: told(query).unwrap(),
            is_local,
            matching: None,
            values: 1.0,
            rows: Vec::new(),
        }
    }

    /// Returns a round of this many queries, each of which read this many blocks of the collection and took this long.
    fn round(plan: Plan, queries: usize, blocks: f64, ns: f64) -> Round {
        Round {
            plan,
            whole: Whole {
                documents: 1.0,
                page_bytes: 32_768.0,
                index_page_bytes: None,
            },
            returned: (0..queries).map(|number| (number, 10)).collect(),
            collection_blocks: blocks * queries as f64,
            collection_bytes: blocks * queries as f64 * 32_768.0,
            index_blocks: 1.0,
            index_bytes: 16_384.0,
            cold_ns: vec![ns; queries],
            warm_ns: vec![ns; queries],
            nothing_ns: 1.0,
        }
    }

    /// The index on the device leads to all of its documents, and the sample has the latest of them alone.
    #[test]
    fn documents_that_a_range_refuses_are_more_in_the_whole() {
        let questions = questions(r#"{"device": "?", "ts": {"$gte": "?"}}"#, true);
        let blocks = |lacks_range: bool, returned: u64| {
            let plan = Plan {
                examined: 40.0,
                keys: 40.0,
                lacks_range,
                ..BY_INDEX
            };
            let rounds = [0, 1].map(|_| {
                let mut round = round(plan, 1, 40.0, 10.0);
                round.returned = [(0, returned)].into();
                round.whole.documents = 10.0;
                round
            });
            cost(&rounds, &measured(&rounds, &STORED, &questions), None).blocks
        };
        let (bounded, in_vain) = (blocks(false, 100), blocks(true, 100));
        assert!(bounded < 45.0, "{bounded}");
        assert!((250.0..450.0).contains(&in_vain), "{in_vain}");
        // Of a hundred that a query of the whole is taken to return, the sample has forty of one device.
        let short = blocks(false, 40);
        assert!((95.0..110.0).contains(&short), "{short}");
        assert!((blocks(true, 40) - in_vain).abs() < 1e-9);
    }

    /// A hundred documents of a device lie anywhere in the collection, of which the sample has a fifteenth: there, some of
    /// them share a leaf by chance that they do not share in the whole.
    #[test]
    fn documents_that_are_read_to_be_sorted_lie_as_far_apart_as_those_of_their_device() {
        let by_time = r#"{"filter": {"device": "?"}, "sort": {"ts": -1}, "limit": 10}"#;
        let questions = questions(by_time, true);
        let sampled = 7.6;
        let plan = Plan {
            examined: sampled,
            keys: sampled,
            sorts: true,
            ..BY_INDEX
        };
        let shared = distinct(sampled * 4.0, 100.0) / 4.0;
        let rounds = [0, 1].map(|_| {
            let mut round = round(plan, 4, shared, 10.0);
            round.whole.documents = 15.0;
            round
        });
        let measured = measured(&rounds, &STORED, &questions);
        let of_whole = 1.0 + (sampled - 1.0) * 15.0;
        let expected = distinct(of_whole, 1_500.0);
        for row in measured {
            let blocks = row.collection_blocks_of_whole();
            assert!(
                (blocks - expected).abs() < 0.01 * expected,
                "{blocks} {expected}"
            );
        }
    }

    #[test]
    fn what_a_partial_index_serves_and_what_it_does_not_are_weighed_by_their_rounds() {
        let questions = questions(r#"{"status": "?", "amt": {"$gt": "?"}}"#, false);
        let scan = || round(SCAN, 1, 100.0, 1_000.0);
        let by_index = || round(BY_INDEX, 5, 9.0, 10.0);
        let of = |rounds: &[Round]| cost(rounds, &measured(rounds, &STORED, &questions), None);
        let (scanned, found) = (of(&[scan(), scan()]), of(&[by_index(), by_index()]));
        assert!(scanned.collection_scan && !found.collection_scan);
        assert_eq!((scanned.blocks, scanned.work_ns), (100.0, 1_000.0));
        assert!(found.blocks < 20.0 && found.work_ns < 20.0, "{found:?}");
        // Three of four queries are scans, however many others are asked in their row.
        let mixed = of(&[scan(), scan(), scan(), by_index()]);
        let mean = |scanned: f64, found: f64| 0.75 * scanned + 0.25 * found;
        assert!((mixed.blocks - mean(scanned.blocks, found.blocks)).abs() < 1e-9);
        assert!((mixed.work_ns - mean(scanned.work_ns, found.work_ns)).abs() < 1e-9);
        assert!(mixed.collection_scan);
    }
}
