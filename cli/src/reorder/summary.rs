//! The figures of a reordering as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/reorder.schema.json`.

use schemars::JsonSchema;
use seekscope_run::{
    Clustering, OrderLasts, ReorderBlocking, ReorderMeasurement, ReorderPlan, ReorderScan,
    ReorderSpace, ReorderTask, ReorderTime, ReorderVerdict, Reordered, WriteRate,
};
use serde::Serialize;

use crate::layout::{LayoutSummary, PredictedScanS};

/// What `reorder` planned and did. What is not known is null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReorderSummary<'a> {
    /// `database.collection`; empty where all pending ones were meant and none was.
    namespace: &'a str,
    /// natural, or the keys of the index that decides the order.
    by: &'a str,
    task: ReorderTask,
    plan: Option<PlanSummary<'a>>,
    /// The collection's file first, then those of its indexes.
    before: Option<LayoutSummary<'a>>,
    /// The same after the rewriting and a checkpoint.
    after: Option<LayoutSummary<'a>>,
    done: Option<&'a Reordered>,
    /// From the command's beginning to the swap.
    #[schemars(range(min = 0))]
    elapsed_s: Option<f64>,
    /// Whether the server took a checkpoint before the second look; false: the layout afterwards may lack the
    /// newest writes.
    checkpoint_forced: bool,
    /// What was found interrupted and what became of it.
    recovered: &'a [String],
}

/// What would be done, what it takes and what it gains.
#[derive(Debug, Serialize, JsonSchema)]
struct PlanSummary<'a> {
    /// All but worthwhile need `--force` with `--apply`.
    verdict: ReorderVerdict,
    documents: u64,
    /// As BSON.
    data_bytes: u64,
    /// Of the collection's file.
    storage_bytes: u64,
    index_bytes: u64,
    /// `_id`'s among them.
    indexes: u64,
    /// Of the steps from leaf to leaf, now.
    #[schemars(range(min = 0, max = 1))]
    sequential_share: Option<f64>,
    /// Of a scan, now.
    seeks: Option<u64>,
    /// The table holds other collections too, and so do these figures.
    shared_table: Option<bool>,
    /// Of the file, in the page cache now.
    #[schemars(range(min = 0, max = 1))]
    cached_share: Option<f64>,
    predicted_scan_s: Option<PredictedScanS>,
    gain_s: Option<GainS>,
    /// Of `predicted_scan_s.now`.
    #[schemars(range(min = 0, max = 1))]
    gain_share: Option<f64>,
    compact_frees_bytes: Option<u64>,
    /// Of `--by` an index: how many leaves a query reads that follows it.
    clustering: Option<&'a Clustering>,
    writes: Option<&'a WriteRate>,
    lasts: Option<&'a OrderLasts>,
    space: &'a ReorderSpace,
    time_s: Option<TimeS>,
    blocking: &'a ReorderBlocking,
}

/// What order saves, seconds.
#[derive(Debug, Serialize, JsonSchema)]
struct GainS {
    #[schemars(range(min = 0))]
    scan: f64,
    /// An index build reads the same leaves in the same order.
    #[schemars(range(min = 0))]
    index_build: f64,
}

/// What the steps are expected to take, seconds.
#[derive(Debug, Serialize, JsonSchema)]
struct TimeS {
    #[schemars(range(min = 0))]
    copy: f64,
    #[schemars(range(min = 0))]
    check: f64,
    #[schemars(range(min = 0))]
    indexes: f64,
    /// Bringing over what others write meanwhile; null: their writes to the collection are not known, or it never
    /// ends.
    #[schemars(range(min = 0))]
    catch_up: Option<f64>,
    /// Others write to the collection at least as fast as it can be brought over.
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
