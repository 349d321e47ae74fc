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
        add_file(&mut table, former, now, number == 0);
    }
    table.or_nothing()
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

fn add_file(table: &mut Table, before: Option<&LayoutFile>, now: &LayoutFile, collection: bool) {
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
    type Figure<'a> = &'a dyn Fn(&LayoutFile) -> Option<String>;
    let rows: [(&str, Figure<'_>, Option<Figure<'_>>); 4] = [
        ("  sequential steps", &share, None),
        ("  seeks of a scan", &seeks, Some(&best)),
        ("  cold scan", &scan, Some(&ordered)),
        ("  file", &bytes, collection.then_some(&used)),
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
    use seekscope_run::ScanOrder;

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
