//! Shows what each shard of a cluster keeps, and how much of the work it had.

use seekscope_doctor::answers::ShardAnswer;
use seekscope_run::units::{format_bytes, format_count};

use super::super::DoctorReportInput;
use super::{ROWS_MAX, UNKNOWN, and_more};
use crate::numbers::format_share;
use crate::table::{Cell, Table};

/// Returns one row per shard.
pub(in super::super) fn shards(input: &DoctorReportInput<'_>) -> Option<Table> {
    let shards = &input.answers().shards;
    let columns = [
        "shard",
        "on disk",
        "share of that",
        "chunks",
        "share of the time of reads and writes",
    ];
    let mut table = Table::new(1, &columns);
    for shard in shards.iter().take(ROWS_MAX) {
        table.row(row(shard));
    }
    and_more(&mut table, shards.len());
    table.or_nothing()
}

fn row(shard: &ShardAnswer) -> [Cell; 5] {
    let share = |share: Option<f64>| Cell::or(share.map(format_share), UNKNOWN);
    [
        match shard.is_draining {
            true => format!("{} (being removed)", shard.shard).into(),
            false => shard.shard.as_str().into(),
        },
        Cell::or(shard.disk_bytes.map(format_bytes), UNKNOWN),
        share(shard.disk_share),
        Cell::or(shard.chunks.map(format_count), UNKNOWN),
        share(shard.time_share),
    ]
}
