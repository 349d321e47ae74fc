//! Shows the runs as tables: each by itself, those without a figure, and how the time was spent.

use std::collections::BTreeMap;

use seekscope_run::TuneRecord;
use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};
use seekscope_run::units::format_count;

use super::reading::setting_text;
use crate::layout::sentences::hours_text;
use crate::numbers::{format_rate, format_share};
use crate::table::{Cell, Table};

/// The most trials in a page; `trials.parquet` has the others.
pub(super) const TRIALS_SHOWN: usize = 1000;

/// Returns why runs failed or missed a constraint, the most frequent reason first.
pub(super) fn failures(record: &TuneRecord) -> Option<Table> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let without = [TrialStatus::Failed, TrialStatus::ConstraintMissed];
    for trial in record
        .trials
        .iter()
        .filter(|trial| without.contains(&trial.status))
    {
        *counts
            .entry((status_words(trial.status), trial.reason.as_str()))
            .or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut table = Table::new(2, &["runs without a usable figure", "why", "runs"]);
    for ((status, reason), count) in counts {
        let reason = Cell::or(
            (!reason.is_empty()).then(|| reason.to_string()),
            "no reason was recorded",
        );
        table.row([status.into(), reason, format_count(count).into()]);
    }
    table.or_nothing()
}

/// Returns how a run ended.
pub(super) fn status_words(status: TrialStatus) -> &'static str {
    match status {
        TrialStatus::Measured => "measured",
        TrialStatus::EndedEarly => "ended early",
        TrialStatus::Failed => "failed",
        TrialStatus::ConstraintMissed => "constraint missed",
    }
}

/// Returns the purpose of a run: "search, model"; "duel 3, best".
pub(super) fn purpose_words(trial: &TuneTrial) -> String {
    let mut words = match (trial.purpose, trial.block) {
        (TrialPurpose::Duel, Some(block)) => format!("duel {block}"),
        (purpose, _) => purpose.name().to_string(),
    };
    for more in [&trial.arm, &trial.origin] {
        if !more.is_empty() && *more != words {
            words = format!("{words}, {more}");
        }
    }
    words
}

/// Returns every run.
pub(super) fn trials(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(
        5,
        &[
            "run",
            "for",
            "setting",
            "ended",
            "reason",
            "metric",
            "best so far",
            "preparation",
            "measured for",
        ],
    );
    for trial in record.trials.iter().take(TRIALS_SHOWN) {
        table.row([
            trial.number.to_string().into(),
            purpose_words(trial).into(),
            setting_text(record, &trial.values).into(),
            status_words(trial.status).into(),
            trial.reason.as_str().into(),
            Cell::or(trial.value.map(format_rate), "none"),
            Cell::or(
                trial.best_so_far.map(|best| {
                    format!(
                        "{} ({} to {})",
                        format_rate(best.value),
                        format_rate(best.low),
                        format_rate(best.high)
                    )
                }),
                "",
            ),
            hours_text(trial.prepare_s / 3600.0).into(),
            hours_text(trial.measure_s / 3600.0).into(),
        ]);
    }
    table.or_nothing()
}

/// Returns how the time was spent.
pub(super) fn ledger(record: &TuneRecord) -> Option<Table> {
    let ledger = &record.ledger;
    if ledger.total_s <= 0.0 {
        return None;
    }
    let known_s = ledger.prepare_s + ledger.measure_s + ledger.think_s;
    let mut table = Table::new(1, &["time went into", "time", "share"]);
    for (what, time_s) in [
        ("preparing (data, settings, starts)", ledger.prepare_s),
        ("measuring, with warm-up", ledger.measure_s),
        ("the tuner's own thinking", ledger.think_s),
        ("everything else", (ledger.total_s - known_s).max(0.0)),
        ("in all", ledger.total_s),
    ] {
        table.row([
            what.into(),
            hours_text(time_s / 3600.0).into(),
            format_share(time_s / ledger.total_s).into(),
        ]);
    }
    Some(table)
}
