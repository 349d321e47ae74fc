//! The figures of a reordering as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/reorder.schema.json`.

use schemars::JsonSchema;
use seekscope_run::{
    Clustering, OrderLasts, ReorderBlocking, ReorderMeasurement, ReorderPlan, ReorderScan,
    ReorderSpace, ReorderTask, ReorderTime, ReorderVerdict, Reordered, WriteRate,
};
use serde::Serialize;

use crate::layout::{LayoutSummary, PredictedScanS};

/// What `reorder` planned and did. Unknown values are null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReorderSummary<'a> {
    /// `database.collection`; empty if all pending collections were meant and there were none.
    namespace: &'a str,
    /// natural, or the key pattern of the index that decides the order, as JSON text.
    by: &'a str,
    task: ReorderTask,
    plan: Option<PlanSummary<'a>>,
    /// The layout when the command began: the collection's file first, then those of its indexes. null if the files are
    /// not on this host or may not be read.
    before: Option<LayoutSummary<'a>>,
    /// The same after the rewrite and a checkpoint.
    after: Option<LayoutSummary<'a>>,
    /// null if the run was only a plan, or did not finish.
    done: Option<&'a Reordered>,
    /// Time from the start of the command to the swap, s.
    #[schemars(range(min = 0))]
    elapsed_s: Option<f64>,
    /// Whether the server was made to take a checkpoint before the layout was examined again; if false, `after` may
    /// lack the newest writes.
    checkpoint_forced: bool,
    /// What was found interrupted and what became of it, one sentence each.
    recovered: &'a [String],
}

/// What would be done, what it takes and what it gains.
#[derive(Debug, Serialize, JsonSchema)]
struct PlanSummary<'a> {
    /// Whether rewriting is worthwhile; with any other verdict, `--apply` needs `--force`.
    verdict: ReorderVerdict,
    /// Number of documents, by the server's statistics.
    documents: u64,
    /// Size of the documents as BSON.
    data_bytes: u64,
    /// Size of the collection's file.
    storage_bytes: u64,
    index_bytes: u64,
    /// Number of indexes, the one on `_id` included.
    indexes: u64,
    /// Share of the steps from leaf to leaf that are sequential now.
    #[schemars(range(min = 0, max = 1))]
    sequential_share: Option<f64>,
    /// Seeks of a scan now.
    seeks: Option<u64>,
    /// True if the table also holds other collections; the figures of the scan then include them.
    shared_table: Option<bool>,
    /// Share of the collection's file that is in the page cache now.
    #[schemars(range(min = 0, max = 1))]
    cached_share: Option<f64>,
    predicted_scan_s: Option<PredictedScanS>,
    gain_s: Option<GainS>,
    /// Gain of a scan as a share of `predicted_scan_s.now`.
    #[schemars(range(min = 0, max = 1))]
    gain_share: Option<f64>,
    /// Bytes that `compact` would give back.
    compact_frees_bytes: Option<u64>,
    /// How many leaves a query reads that follows the index given with `--by`; null for natural order.
    clustering: Option<&'a Clustering>,
    writes: Option<&'a WriteRate>,
    lasts: Option<&'a OrderLasts>,
    space: &'a ReorderSpace,
    /// null if the layout is unknown.
    time_s: Option<TimeS>,
    blocking: &'a ReorderBlocking,
}

/// Time that ordering saves, s.
#[derive(Debug, Serialize, JsonSchema)]
struct GainS {
    /// Saved for each cold scan.
    #[schemars(range(min = 0))]
    scan: f64,
    /// Saved for each index build: the same, as it reads the same leaves in the same order.
    #[schemars(range(min = 0))]
    index_build: f64,
}

/// Expected duration of each step, s.
#[derive(Debug, Serialize, JsonSchema)]
struct TimeS {
    #[schemars(range(min = 0))]
    copy: f64,
    #[schemars(range(min = 0))]
    check: f64,
    #[schemars(range(min = 0))]
    indexes: f64,
    /// Applying what others write meanwhile; null if their writes to the collection are unknown, or if it never ends.
    #[schemars(range(min = 0))]
    catch_up: Option<f64>,
    /// True if others write to the collection at least as fast as their writes can be applied.
    catch_up_never_ends: bool,
    #[schemars(range(min = 0))]
    total: f64,
}

impl<'a> ReorderSummary<'a> {
    /// Makes the summary of a record.
    pub fn of(record: &'a ReorderMeasurement) -> Self {
        Self {
            namespace: &record.namespace,
            by: &record.by,
            task: record.task,
            plan: record.plan.as_ref().map(PlanSummary::of),
            before: record.before.as_ref().map(LayoutSummary::of),
            after: record.after.as_ref().map(LayoutSummary::of),
            done: record.done.as_ref(),
            elapsed_s: record.elapsed_s,
            checkpoint_forced: record.checkpoint_forced,
            recovered: &record.recovered,
        }
    }
}

impl<'a> PlanSummary<'a> {
    fn of(plan: &'a ReorderPlan) -> Self {
        let scan = plan.scan.as_ref();
        Self {
            verdict: plan.verdict,
            documents: plan.documents,
            data_bytes: plan.data_bytes,
            storage_bytes: plan.storage_bytes,
            index_bytes: plan.index_bytes,
            indexes: plan.indexes,
            sequential_share: scan.map(|s| s.sequential_share),
            seeks: scan.map(|s| s.seeks),
            shared_table: scan.map(|s| s.shared_table),
            cached_share: plan.cached_share,
            predicted_scan_s: scan.map(|s| PredictedScanS {
                now: s.now_s,
                now_low: s.now_low_s,
                now_high: s.now_high_s,
                ordered: s.ordered_s,
                after_compact: s.after_compact_s,
            }),
            gain_s: scan.map(|s| GainS {
                scan: s.gain_s(),
                index_build: s.gain_s(),
            }),
            gain_share: scan.map(ReorderScan::gain_share),
            compact_frees_bytes: scan.map(|s| s.free_bytes),
            clustering: plan.clustering.as_ref(),
            writes: plan.writes.as_ref(),
            lasts: plan.lasts.as_ref(),
            space: &plan.space,
            time_s: plan.time.as_ref().map(TimeS::of),
            blocking: &plan.blocking,
        }
    }
}

impl TimeS {
    fn of(time: &ReorderTime) -> Self {
        Self {
            copy: time.copy_s,
            check: time.check_s,
            indexes: time.indexes_s,
            catch_up: time.catch_up_s,
            catch_up_never_ends: time.catch_up_never_ends,
            total: time.total_s(),
        }
    }
}
