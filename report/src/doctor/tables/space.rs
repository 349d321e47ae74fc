//! Shows free bytes inside files, and what would give them back.

use seekscope_doctor::answers::SpaceAnswer;
use seekscope_run::units::format_bytes;

use super::super::DoctorReportInput;
use super::{ROWS_MAX, UNKNOWN, and_more};
use crate::numbers::format_share;
use crate::table::{Cell, Table};

/// Returns one row per file.
pub(in super::super) fn space(input: &DoctorReportInput<'_>) -> Option<Table> {
    let files = &input.answers().space;
    let columns = [
        "collection or index",
        "what to do",
        "file",
        "free",
        "share",
        "of it at the end",
        "compact gives",
        "a rewrite gives",
    ];
    let mut table = Table::new(2, &columns);
    for file in files.iter().take(ROWS_MAX) {
        table.row(row(file));
    }
    and_more(&mut table, files.len());
    table.or_nothing()
}

fn row(file: &SpaceAnswer) -> [Cell; 8] {
    let share = file.free_bytes as f64 / file.file_bytes.max(1) as f64;
    [
        file.name.as_str().into(),
        file.advice.as_str().into(),
        format_bytes(file.file_bytes).into(),
        format_bytes(file.free_bytes).into(),
        format_share(share).into(),
        Cell::or(file.free_at_end_bytes.map(format_bytes), UNKNOWN),
        Cell::or(file.compact_gives_bytes.map(format_bytes), "nothing"),
        format_bytes(file.rewrite_gives_bytes).into(),
    ]
}
