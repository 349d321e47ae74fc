//! Shows what was predicted, and the outcome.

use seekscope_run::FindingChange;

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX};
use crate::numbers::format_number;
use crate::table::{Cell, Table};
use crate::wording;

/// Returns a line of plain text on one finding in two runs.
pub fn change_line(change: &FindingChange) -> String {
    let subject = match change.subject.as_str() {
        "" => String::new(),
        subject => format!(" ({subject})"),
    };
    let figure = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
    let figures = match (change.before, change.after) {
        (None, None) => String::new(),
        (before, after) => {
            let unit = change
                .predicted
                .as_ref()
                .map(|gain| format!(" {}", gain.unit));
            let unit = unit.unwrap_or_default();
            format!(", {} → {}{unit}", figure(before), figure(after))
        }
    };
    format!(
        "{:<8}{}{subject}{figures}: {}",
        change.change, change.id, change.verdict
    )
}

/// Returns findings of an earlier run beside this one's.
pub(in super::super) fn since(input: &DoctorReportInput<'_>) -> Option<Table> {
    let earlier = input.examination()?.since.as_ref()?;
    let columns = [
        "finding",
        "change",
        "verdict",
        "before",
        "now",
        "predicted gain",
        "work per s before",
        "work per s now",
    ];
    let mut table = Table::new(3, &columns);
    for change in earlier.changes.iter().take(ROWS_MAX) {
        table.row(row(change));
    }
    table.or_nothing()
}

fn row(change: &FindingChange) -> [Cell; 8] {
    let name = match change.subject.as_str() {
        "" => change.id.clone(),
        subject => format!("{}: {subject}", change.id),
    };
    let work = change.work.as_ref();
    let number = |value: Option<f64>| Cell::or(value.map(format_number), NONE);
    [
        name.into(),
        change.change.as_str().into(),
        change.verdict.as_str().into(),
        number(change.before),
        number(change.after),
        Cell::or(change.predicted.as_ref().map(wording::gain), NONE),
        Cell::or(
            work.map(|work| format!("{} {}", format_number(work.before_per_s), work.unit)),
            NONE,
        ),
        number(work.map(|work| work.after_per_s)),
    ]
}
