//! Shows reads that more cache would save.

use seekscope_run::units::format_bytes;

use super::super::DoctorReportInput;
use super::ROWS_MAX;
use crate::numbers::{format_rate, format_share};
use crate::table::Table;

/// Says how it was calculated, and its possible error.
pub(in super::super) fn memory_sentences(input: &DoctorReportInput<'_>) -> Vec<String> {
    let Some(answer) = input.answers().memory.as_ref() else {
        return Vec::new();
    };
    let cache = answer
        .cache_bytes
        .map(|bytes| format!("The cache may hold {} now.", format_bytes(bytes)));
    let error = format!(
        "Miss ratios may be off by up to {} either way.",
        format_share(answer.error)
    );
    let method = Some(answer.method.clone()).filter(|method| !method.is_empty());
    let sentences: Vec<String> = [cache, method, Some(error)].into_iter().flatten().collect();
    vec![sentences.join(" ")]
}

/// Returns the savings by added cache.
pub(in super::super) fn memory(input: &DoctorReportInput<'_>) -> Option<Table> {
    let answer = input.answers().memory.as_ref()?;
    let columns = [
        "with more cache",
        "reads still missed",
        "reads saved/s",
        "waiting saved, s/h",
    ];
    let mut table = Table::new(1, &columns);
    for point in answer.points.iter().take(ROWS_MAX) {
        table.row([
            format!("+ {}", format_bytes(point.added_bytes)).into(),
            format_share(point.miss_ratio).into(),
            format_rate(point.reads_saved_per_s).into(),
            format_rate(point.waiting_saved_s_per_hour).into(),
        ]);
    }
    table.or_nothing()
}
