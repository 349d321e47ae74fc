//! What was predicted, and what came of it.

use seekscope_run::FindingChange;

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX};
use crate::numbers::format_number;
use crate::table::{Cell, Table};
use crate::wording;

/// Findings of an earlier run beside this one's.
pub(in super::super) fn since(input: &DoctorReportInput<'_>) -> Option<Table> {
    let earlier = input.examination()?.since.as_ref()?;
    let columns = [
        "finding",
        "change",
        "verdict",
        "before",
        "now",
        "predicted gain",
    ];
    let mut table = Table::new(3, &columns);
    for change in earlier.changes.iter().take(ROWS_MAX) {
        table.row(row(change));
    }
    table.or_nothing()
}

fn row(change: &FindingChange) -> [Cell; 6] {
    let name = match change.subject.as_str() {
        "" => change.id.clone(),
        subject => format!("{}: {subject}", change.id),
    };
    let number = |value: Option<f64>| Cell::or(value.map(format_number), NONE);
    [
        name.into(),
        change.change.as_str().into(),
        change.verdict.as_str().into(),
        number(change.before),
        number(change.after),
        Cell::or(change.predicted.as_ref().map(wording::gain), NONE),
    ]
}
