//! Shows all requests of the disks, including those that were not recorded.

use seekscope_run::units::{format_bytes, format_count};

use super::super::TraceReportInput;
use super::super::names::disk_name;
use crate::table::Table;

/// Returns requests by disk and by purpose.
pub(in super::super) fn counted_requests(input: &TraceReportInput<'_>) -> Option<Table> {
    let columns = [
        "disk",
        "requests for",
        "reads",
        "read",
        "writes",
        "written",
        "flushes",
        "discards",
    ];
    let mut table = Table::new(2, &columns);
    for counted in &input.trace()?.requests {
        table.row([
            disk_name(
                input.document.device.as_ref(),
                counted.disk_major,
                counted.disk_minor,
            )
            .into(),
            counted.cause.name().into(),
            format_count(counted.reads).into(),
            format_bytes(counted.read_bytes).into(),
            format_count(counted.writes).into(),
            format_bytes(counted.write_bytes).into(),
            format_count(counted.flushes).into(),
            format_count(counted.discards).into(),
        ]);
    }
    table.or_nothing()
}
