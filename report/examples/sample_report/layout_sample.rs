//! A made-up layout: a collection in order, one that was shuffled by updates, an index, a table that
//! is empty, and a shuffled one that was watched.

#![expect(
    clippy::cast_possible_truncation,
    reason = "made-up numbers, all small"
)]

use std::collections::HashMap;

use seekscope_report::layout::{LayoutReportInput, TerminalOptions, html, terminal};
use seekscope_run::{
    ClockOffset, DataState, LayoutFile, LayoutMeasurement, LayoutMoment, LeafRecord, NameSource,
    OrderDecay, Outcome, PredictedScan, RunDocument, RunError, ScanOrder,
};
use seekscope_stats::shuffled;

use crate::hostile::HOSTILE_NAMES;

const LEAF_BYTES: u32 = 32_768;
const START_NS: u64 = 5_000_000_000_000;

/// Everything that a layout run leaves behind.
pub(crate) struct LayoutSample {
    pub(crate) document: RunDocument,
    pub(crate) leaves: Vec<LeafRecord>,
    strips: HashMap<u32, Vec<String>>,
}

impl LayoutSample {
    fn with_input<T>(&self, render: impl FnOnce(LayoutReportInput<'_>) -> T) -> T {
        let leaves = |each: &mut dyn FnMut(&LeafRecord)| {
            self.leaves.iter().for_each(each);
            Ok(())
        };
        render(LayoutReportInput {
            document: &self.document,
            strips: &self.strips,
            leaves: &leaves,
        })
    }

    pub(crate) fn html(&self) -> Result<String, RunError> {
        self.with_input(|input| html(&input))
    }

    pub(crate) fn terminal(&self, width: u16, unicode: bool) -> String {
        self.with_input(|input| terminal(&input, TerminalOptions { width, unicode }))
    }
}

/// Collections of `leaf_pages` leaves each. `named`: the details of the shuffled one are shown.
pub(crate) fn layout(leaf_pages: u64, named: bool, hostile: bool) -> LayoutSample {
    let mut leaves = Vec::new();
    let name = |plain: &str, nth: usize| match hostile {
        true => HOSTILE_NAMES[nth % HOSTILE_NAMES.len()].to_string(),
        false => plain.to_string(),
    };
    let places = shuffled::distinct(leaf_pages, leaf_pages, 3);
    leaves.extend(lying(1, places));
    leaves.extend(lying(2, 0..leaf_pages));
    leaves.extend(lying(3, (0..leaf_pages / 10).rev()));
    let mut orders = file(1, &name("shop.orders", 0), leaf_pages, 0.002);
    orders.decay = Some(decay());
    let mut index = file(3, &name("shop.items", 2), leaf_pages / 10, 0.9);
    index.index = Some(name("customer_1", 3));
    let empty = LayoutFile {
        file_id: 4,
        file: "collection-9-1.wt".into(),
        namespace: Some(name("shop.new", 4)),
        not_measured: Some(name("no data yet", 1)),
        ..LayoutFile::default()
    };
    let mut document = RunDocument::begin("layout", vec!["layout".into(), "/data/db".into()]);
    document.outcome = Outcome::Ok;
    document.outcome_reason = None;
    document.started = ClockOffset {
        monotonic_ns: START_NS,
        realtime_ns: 1_767_225_600_000_000_000,
    };
    document.layout = Some(LayoutMeasurement {
        path: name("/data/db", 0),
        state: DataState::Live,
        names: NameSource::Catalogue,
        wiredtiger_version: Some("11.3.0".into()),
        predicted_for: "typical hard disk (120 IOPS, 150 MB/s)".into(),
        named: if named {
            vec!["shop.orders".into()]
        } else {
            Vec::new()
        },
        files: vec![
            orders,
            file(2, &name("shop.items", 2), leaf_pages, 1.0),
            index,
            empty,
        ],
        history: (0..20).map(moment).collect(),
        ..LayoutMeasurement::default()
    });
    let strip = vec!["░░▒░░░▒░".to_string(), "▒░░░█░░░".to_string()];
    LayoutSample {
        document,
        leaves,
        strips: HashMap::from([(1, strip)]),
    }
}

fn lying(file_id: u32, places: impl IntoIterator<Item = u64>) -> impl Iterator<Item = LeafRecord> {
    (0u64..)
        .zip(places)
        .map(move |(ordinal, place)| LeafRecord {
            file_id,
            ordinal,
            offset: 4096 + place * u64::from(LEAF_BYTES),
            length: LEAF_BYTES,
        })
}

fn file(file_id: u32, namespace: &str, leaf_pages: u64, score: f64) -> LayoutFile {
    let leaf_bytes = leaf_pages * u64::from(LEAF_BYTES);
    LayoutFile {
        file_id,
        file: format!("collection-{file_id}-77.wt"),
        namespace: Some(namespace.into()),
        checkpoint: "WiredTigerCheckpoint.12".into(),
        checkpoint_time_s: 1_767_225_590,
        compressor: "snappy".into(),
        file_bytes: leaf_bytes + 8192,
        leaf_pages,
        leaf_bytes,
        internal_pages: leaf_pages / 200 + 1,
        internal_bytes: (leaf_pages / 200 + 1) * 4096,
        depth: 3,
        free_bytes: 4096,
        holes: 1,
        largest_hole_bytes: 4096,
        bytes_read: (leaf_pages / 200 + 3) * 4096,
        reads: leaf_pages / 200 + 3,
        order: Some(order(leaf_pages, leaf_bytes, score)),
        predicted_scan: Some(PredictedScan {
            now_s: leaf_pages as f64 * (0.0003 + 0.008 * (1.0 - score)),
            ordered_s: leaf_pages as f64 * 0.0003,
            after_compact_s: leaf_pages as f64 * (0.0003 + 0.007 * (1.0 - score)),
            now_low_s: leaf_pages as f64 * (0.0002 + 0.006 * (1.0 - score)),
            now_high_s: leaf_pages as f64 * (0.0004 + 0.01 * (1.0 - score)),
            ..PredictedScan::default()
        }),
        documents: Some(leaf_pages * 50),
        document_bytes: Some(leaf_bytes * 2),
        ..LayoutFile::default()
    }
}

fn order(leaf_pages: u64, leaf_bytes: u64, score: f64) -> ScanOrder {
    // Made up, and small.
    let out_of_order = 100 - (score * 100.0) as u64;
    let seeks = (1 + leaf_pages / 100 * out_of_order).min(leaf_pages);
    ScanOrder {
        window_bytes: 131_072,
        contiguous_share: score,
        sequential_share: score,
        backward_share: (1.0 - score) / 2.0,
        runs: seeks,
        mean_run_bytes: leaf_bytes as f64 / seeks as f64,
        seeks,
        seeks_best: 1,
        bytes_per_seek: leaf_bytes as f64 / seeks as f64,
        score,
        mean_seek_distance_bytes: leaf_bytes as f64 / 3.0,
        median_seek_distance_bytes: leaf_bytes / 4,
        kendall_tau: score,
        spearman_rho: score,
        run_lengths: vec![(32_768, seeks), (65_536, 3), (131_072, 1)],
        gaps: vec![(0, leaf_pages - seeks, 0), (32_768, seeks / 2, seeks / 2)],
    }
}

fn decay() -> OrderDecay {
    OrderDecay {
        basis: "two snapshots 60 s apart".into(),
        moved_share_per_hour: 0.25,
        half_life_hours: Some(1.2),
        contiguous_now: 0.002,
        contiguous_after_hour: 0.001,
        contiguous_after_day: 0.0,
        contiguous_after_week: 0.0,
    }
}

fn moment(nth: u64) -> LayoutMoment {
    let share = 0.9f64.powi(i32::try_from(nth).unwrap_or(0));
    LayoutMoment {
        t_ns: START_NS + nth * 60_000_000_000,
        file_id: 1,
        checkpoint: format!("WiredTigerCheckpoint.{nth}"),
        contiguous_share: share,
        sequential_share: share,
        score: share,
        ..LayoutMoment::default()
    }
}
