//! Shows a plan, what was done, and the layout before and after, as tables.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{
    LayoutFile, LayoutMeasurement, ReorderMeasurement, ReorderPlan, ReorderVerdict, Reordered,
};

use super::sentences;
use crate::facts::{Fact, fact_table};
use crate::layout::file_name;
use crate::layout::sentences::format_s;
use crate::numbers::{counted, format_mb, format_share};
use crate::table::{Cell, Table};

/// Returns the plan's figures.
pub(super) fn plan(plan: &ReorderPlan) -> Table {
    let scan = plan.scan.as_ref();
    let mut facts: Vec<Fact> = vec![
        ("Documents", Some(format_count(plan.documents))),
        ("Their bytes", Some(format_bytes(plan.data_bytes))),
        ("Indexes", Some(format_count(plan.indexes))),
        (
            "Cold scan now",
            scan.map(|s| {
                format!(
                    "{} (between {} and {})",
                    format_s(s.now_s),
                    format_s(s.now_low_s),
                    format_s(s.now_high_s)
                )
            }),
        ),
        ("Cold scan in order", scan.map(|s| format_s(s.ordered_s))),
        (
            "Saved per scan and index build",
            scan.map(|s| {
                format!(
                    "{} ({})",
                    format_s(s.gain_s()),
                    format_share(s.gain_share())
                )
            }),
        ),
        ("In memory now", plan.cached_share.map(format_share)),
        ("Room needed", Some(format_bytes(plan.space.needed_bytes))),
        ("Room free", plan.space.free_bytes.map(format_bytes)),
        ("Time needed", plan.time.as_ref().map(sentences::time)),
    ];
    if let Some(clustering) = &plan.clustering {
        let leaves = |count: f64| format!("{count:.0} leaves");
        facts.push((
            "1000 documents along the index",
            Some(leaves(clustering.leaves_per_1000_now)),
        ));
        facts.push((
            "The same afterwards",
            Some(leaves(clustering.leaves_per_1000_ordered)),
        ));
    }
    if plan.verdict == ReorderVerdict::NothingToOrder {
        // What was not predicted could be read all the same.
        facts.retain(|(_, value)| value.is_some());
    }
    let mut table = Table::new(2, &["PLAN", "value"]);
    for (name, value) in facts {
        table.row([name.into(), Cell::or(value, NOT_KNOWN)]);
    }
    table
}

/// The index that a collection is created with.
const ID_INDEX: &str = "_id_";

/// Shown for what a plan does not know; what is missing, and why, is said once for all of it.
const NOT_KNOWN: &str = "not known";

const BROUGHT_OVER: &str = "Changes brought over";

/// Returns whether writes of others were followed, so that there were changes to be brought over. On a standalone server
/// they cannot be.
fn was_followed(done: &Reordered) -> bool {
    done.writes_seen_by == "change stream" || done.catch_up_s > 0.0
}

/// Returns what it took. A run that resumed another has not done everything itself.
pub(super) fn done(done: &Reordered) -> Table {
    const EARLIER: &str = "before it was interrupted";
    let here = |seconds: f64, text: String| match done.resumed_from {
        Some(_) if seconds == 0.0 => EARLIER.into(),
        _ => text,
    };
    let rate = done.bytes as f64 / done.copy_s.max(1e-9);
    let copied_in = format!("in {} ({} MB/s)", format_s(done.copy_s), format_mb(rate));
    let built = format!(
        "{} in {}",
        format_count(done.indexes),
        format_s(done.index_s)
    );
    let brought_over = format!(
        "{} in {}, {}",
        format_count(done.applied_changes),
        counted(u64::from(done.catch_up_rounds), "round"),
        format_s(done.catch_up_s)
    );
    let mut facts: Vec<Fact> = vec![
        (
            "Copied",
            Some(format!(
                "{} documents, {}, {}",
                format_count(done.documents),
                format_bytes(done.bytes),
                here(done.copy_s, copied_in)
            )),
        ),
        (
            "Checkpoints meanwhile",
            Some(here(done.copy_s, format_count(done.checkpoints))),
        ),
        (
            "Checked in",
            Some(here(done.verify_s, format_s(done.verify_s))),
        ),
        ("Indexes built", Some(here(done.index_s, built))),
        (BROUGHT_OVER, Some(here(done.catch_up_s, brought_over))),
        (
            "Writers stopped for",
            Some(here(done.blocked_s, writers_stopped(done))),
        ),
    ];
    if !was_followed(done) {
        facts.retain(|(name, _)| *name != BROUGHT_OVER);
    }
    if !done.writes_seen_by.is_empty() {
        facts.push(("Writes were watched by", Some(done.writes_seen_by.clone())));
    }
    if done.pauses > 0 {
        facts.push((
            "Pauses for the server's sake",
            Some(format!(
                "{}, {} in all",
                format_count(u64::from(done.pauses)),
                format_s(done.paused_s)
            )),
        ));
    }
    fact_table("DONE", facts)
}

/// Says how long writers were stopped. An earlier run that got as far as that may have stopped them, too, and for how long
/// is recorded nowhere.
fn writers_stopped(done: &Reordered) -> String {
    let stopped = format_s(done.blocked_s);
    match done.resumed_from.as_deref() {
        Some("indexed" | "swapping") => {
            format!("{stopped} in this run; in the interrupted one, not known")
        }
        _ => stopped,
    }
}

/// Compares predicted and actual layout: the collection's file, then its indexes.
pub(super) fn before_and_after(record: &ReorderMeasurement) -> Option<Table> {
    let after = record.after.as_ref()?;
    let mut table = Table::new(1, &["LAYOUT", "before", "predicted", "found"]);
    for (number, now) in after.files.iter().enumerate() {
        let former = record.before.as_ref().and_then(|b| former(b, now, number));
        table.group(file_name(now));
        add_file(&mut table, former, now, Foreseen::of(record, number, now));
    }
    table.or_nothing()
}

/// How much the plan foresees of a file's layout.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Foreseen {
    /// The collection's file is in order.
    Collection,
    /// The collection's file, of whose steps writes of others leave this share in order.
    CollectionUnderWrites(f64),
    /// An index that is built at once, from sorted keys.
    BuiltIndex,
    /// An index to which keys come one by one.
    FilledIndex,
}

impl Foreseen {
    fn of(record: &ReorderMeasurement, number: usize, now: &LayoutFile) -> Self {
        let share = sentences::share_under_writes(record);
        match (number, share) {
            (0, None) => Self::Collection,
            (0, Some(share)) => Self::CollectionUnderWrites(share),
            (_, None) if now.index.as_deref() != Some(ID_INDEX) => Self::BuiltIndex,
            _ => Self::FilledIndex,
        }
    }
}

/// Says why some of the table's figures were not predicted.
pub(super) fn not_predicted(record: &ReorderMeasurement) -> Option<String> {
    let after = record.after.as_ref()?;
    let mut files = after.files.iter().enumerate();
    let foreseen = |(number, now)| Foreseen::of(record, number, now);
    if sentences::share_under_writes(record).is_some() {
        return Some(
            "What others write meanwhile moves leaves of the copy and of its indexes; how many seeks and how much time a \
             scan then takes is not predicted."
                .into(),
        );
    }
    files.any(|file| foreseen(file) == Foreseen::FilledIndex).then(|| {
        format!(
            "How {ID_INDEX} lies afterwards is not predicted: it is filled while the documents are copied, in whatever \
             order that gives its keys."
        )
    })
}

/// Returns the earlier file: a swap gives the collection and its indexes other files.
pub(super) fn former<'a>(
    before: &'a LayoutMeasurement,
    now: &LayoutFile,
    number: usize,
) -> Option<&'a LayoutFile> {
    if number == 0 {
        return before.files.first();
    }
    let same = |file: &&LayoutFile| match &now.index {
        Some(index) => file.index.as_ref() == Some(index),
        None => file.file == now.file,
    };
    before.files.iter().skip(1).find(same)
}

fn add_file(table: &mut Table, before: Option<&LayoutFile>, now: &LayoutFile, foreseen: Foreseen) {
    const NOT_PREDICTED: &str = "";
    const NOT_MEASURED: &str = "not measured";
    let share = |file: &LayoutFile| Some(format_share(file.order.as_ref()?.sequential_share));
    let seeks = |file: &LayoutFile| Some(format_count(file.order.as_ref()?.seeks));
    let best = |file: &LayoutFile| Some(format_count(file.order.as_ref()?.seeks_best));
    let scan = |file: &LayoutFile| Some(format_s(file.predicted_scan.as_ref()?.now_s));
    let ordered = |file: &LayoutFile| Some(format_s(file.predicted_scan.as_ref()?.ordered_s));
    let bytes = |file: &LayoutFile| Some(format_bytes(file.file_bytes));
    let used = |file: &LayoutFile| {
        Some(format_bytes(
            file.file_bytes - file.free_bytes.min(file.file_bytes),
        ))
    };
    let under_writes = |_: &LayoutFile| match foreseen {
        Foreseen::CollectionUnderWrites(share) => Some(format_share(share)),
        _ => None,
    };
    let is_ordered = matches!(foreseen, Foreseen::Collection | Foreseen::BuiltIndex);
    let is_collection = matches!(
        foreseen,
        Foreseen::Collection | Foreseen::CollectionUnderWrites(_)
    );
    type Figure<'a> = &'a dyn Fn(&LayoutFile) -> Option<String>;
    let rows: [(&str, Figure<'_>, Option<Figure<'_>>); 4] = [
        ("  sequential steps", &share, Some(&under_writes)),
        ("  seeks of a scan", &seeks, is_ordered.then_some(&best)),
        ("  cold scan", &scan, is_ordered.then_some(&ordered)),
        ("  file", &bytes, is_collection.then_some(&used)),
    ];
    for (name, figure, predicted) in rows {
        table.row([
            name.into(),
            Cell::or(before.and_then(figure), NOT_MEASURED),
            Cell::or(predicted.and_then(|p| p(before?)), NOT_PREDICTED),
            Cell::or(figure(now), NOT_MEASURED),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{OrderLasts, PredictedScan, ScanOrder};

    use super::*;

    fn layout(share: f64, index_file: &str) -> LayoutMeasurement {
        let file = |file: &str, index: Option<&str>| LayoutFile {
            file: file.into(),
            namespace: Some("shop.orders".into()),
            index: index.map(String::from),
            order: Some(ScanOrder {
                sequential_share: share,
                ..ScanOrder::default()
            }),
            ..LayoutFile::default()
        };
        LayoutMeasurement {
            files: vec![
                file(&format!("collection-{share}.wt"), None),
                file(index_file, Some("customer_1")),
            ],
            ..LayoutMeasurement::default()
        }
    }

    /// Files may be readable and newer than the last checkpoint.
    #[test]
    fn what_a_plan_does_not_know_is_not_called_unreadable() {
        let shown = crate::text::table_text(&plan(&ReorderPlan::default()), 100);
        assert!(shown.contains("not known"), "{shown}");
        assert!(!shown.contains("not readable"), "{shown}");
    }

    #[test]
    fn what_an_earlier_run_did_has_no_rate() {
        let mut resumed = Reordered {
            documents: 7,
            bytes: 75_000_000,
            resumed_from: Some("indexed".into()),
            ..Reordered::default()
        };
        let text = |figures: &Reordered| crate::text::table_text(&done(figures), 100);
        let shown = text(&resumed);
        assert!(shown.contains("before it was interrupted"), "{shown}");
        assert!(!shown.contains("MB/s"), "{shown}");
        let checkpoints = |shown: &str| {
            let line = shown.lines().find(|l| l.contains("Checkpoints meanwhile"));
            line.unwrap().trim_end().to_owned()
        };
        assert!(checkpoints(&shown).ends_with("interrupted"), "{shown}");
        resumed.blocked_s = 0.175;
        let shown = text(&resumed);
        assert!(
            shown.contains("in the interrupted one, not known"),
            "{shown}"
        );
        resumed.copy_s = 1.5;
        assert!(text(&resumed).contains("50.0 MB/s"), "{}", text(&resumed));
        assert!(
            checkpoints(&text(&resumed)).ends_with(" 0"),
            "{}",
            text(&resumed)
        );
    }

    #[test]
    fn changes_are_brought_over_only_where_writes_are_followed() {
        let shown = |seen_by: &str| {
            let resumed = Reordered {
                resumed_from: Some("copying".into()),
                writes_seen_by: seen_by.into(),
                copy_s: 1.0,
                ..Reordered::default()
            };
            crate::text::table_text(&done(&resumed), 100)
        };
        let alone = shown("the server's counters");
        assert!(!alone.contains(BROUGHT_OVER), "{alone}");
        let followed = shown("change stream");
        assert!(followed.contains(BROUGHT_OVER), "{followed}");
    }

    #[test]
    fn only_what_was_foreseen_is_shown_as_predicted() {
        let scanned = |index: Option<&str>| LayoutFile {
            index: index.map(String::from),
            predicted_scan: Some(PredictedScan {
                now_s: 9.0,
                ordered_s: 7.0,
                ..PredictedScan::default()
            }),
            ..LayoutFile::default()
        };
        let layout = LayoutMeasurement {
            files: [None, Some("_id_"), Some("customer_1")].map(scanned).into(),
            ..LayoutMeasurement::default()
        };
        let mut record = ReorderMeasurement {
            before: Some(layout.clone()),
            after: Some(layout),
            ..ReorderMeasurement::default()
        };
        let predicted = |record: &ReorderMeasurement| {
            let text = crate::text::table_text(&before_and_after(record).unwrap(), 100);
            let scans = text.lines().filter(|line| line.contains("cold scan"));
            scans
                .map(|line| line.contains("7.00 s"))
                .collect::<Vec<_>>()
        };
        assert_eq!(predicted(&record), [true, false, true]);
        assert!(not_predicted(&record).unwrap().contains("How _id_ lies"));
        record.plan = Some(ReorderPlan {
            lasts: Some(OrderLasts {
                share_at_swap: Some(0.06),
                ..OrderLasts::default()
            }),
            ..ReorderPlan::default()
        });
        assert_eq!(predicted(&record), [false; 3]);
        let text = crate::text::table_text(&before_and_after(&record).unwrap(), 100);
        assert!(text.contains("6.0 %"), "{text}");
        assert!(
            not_predicted(&record)
                .unwrap()
                .starts_with("What others write")
        );
    }

    #[test]
    fn files_are_paired_although_the_swap_renamed_them() {
        let record = ReorderMeasurement {
            before: Some(layout(0.11, "index-1.wt")),
            after: Some(layout(0.98, "index-9.wt")),
            ..ReorderMeasurement::default()
        };
        let table = before_and_after(&record).unwrap();
        let text = crate::text::table_text(&table, 100);
        let shares: Vec<&str> = text.lines().filter(|l| l.contains("sequential")).collect();
        assert_eq!(shares.len(), 2);
        assert!(
            shares
                .iter()
                .all(|l| l.contains("11.0 %") && l.contains("98.0 %")),
            "{text}"
        );
        assert_eq!(before_and_after(&ReorderMeasurement::default()), None);
    }
}
