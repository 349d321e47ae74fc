//! Shows how long scans, index builds and resyncs take.

use seekscope_doctor::answers::JobDuration;

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX, and_more};
use crate::layout::sentences::hours_text;
use crate::table::{Cell, Table};

/// Returns the durations, grouped by basis.
pub(in super::super) fn durations(input: &DoctorReportInput<'_>) -> Option<Table> {
    let jobs = &input.answers().durations;
    let columns = [
        "collection",
        "job",
        "now",
        "between",
        "if in order",
        "oplog window",
    ];
    let mut table = Table::new(2, &columns);
    let mut basis = None;
    for job in jobs.iter().take(ROWS_MAX) {
        if basis != Some(&job.basis) && !job.basis.is_empty() {
            table.group(format!("from: {}", job.basis));
            basis = Some(&job.basis);
        }
        table.row(row(job));
    }
    and_more(&mut table, jobs.len());
    table.or_nothing()
}

fn row(job: &JobDuration) -> [Cell; 6] {
    let namespace = match job.namespace.as_str() {
        "*" => "all collections",
        name => name,
    };
    let phases = match job.phases.as_str() {
        "" => job.job.clone(),
        phases => format!("{}: {phases}", job.job),
    };
    let window = job.oplog_window_s.map(|window_s| {
        let verdict = if job.high_s < window_s {
            "enough"
        } else {
            "too short"
        };
        format!("{}, {verdict}", text(window_s))
    });
    [
        namespace.into(),
        phases.into(),
        text(job.now_s).into(),
        format!("{} to {}", text(job.low_s), text(job.high_s)).into(),
        Cell::or(job.ordered_s.map(text), NONE),
        Cell::or(window, NONE),
    ]
}

fn text(seconds: f64) -> String {
    hours_text(seconds / 3600.0)
}
