//! A session's figures as tables; terminal and HTML show the same.

use std::collections::BTreeMap;

use seekscope_run::TuneRecord;
use seekscope_run::tune::{
    HeatMap, KnobImportance, Share, Slice, TrialPurpose, TrialStatus, TuneDuel, TuneTrial,
    TuneVerdict,
};
use seekscope_run::units::format_count;

use super::reading::{knob, labelled, pair_ratios, ratio, setting_text};
use crate::layout::sentences::hours_text;
use crate::numbers::{format_number, format_rate, format_share};
use crate::table::{Cell, Table};

/// Trials in a page; `trials.parquet` has the others.
pub(super) const TRIALS_SHOWN: usize = 1000;

/// Who fought whom.
pub(super) fn duels(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "candidate",
            "against",
            "ratio",
            "95 % interval",
            "pairs",
            "verdict",
            "worst pair",
        ],
    );
    for duel in &record.duels {
        let interval = ratio(duel);
        table.row([
            duel.candidate.as_str().into(),
            duel.against.as_str().into(),
            Cell::or(interval.map(|i| format_number(i.0)), "too few"),
            Cell::or(
                interval.map(|i| format!("{} to {}", format_number(i.1), format_number(i.2))),
                "too few",
            ),
            format_count(duel.pairs).into(),
            duel_verdict(duel).into(),
            Cell::or(
                (duel.worst > 0.0).then(|| format_number(duel.worst)),
                "none",
            ),
        ]);
    }
    table.or_nothing()
}

/// How sure the duels are, and what had been promised.
pub(super) fn duel_tests(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "candidate",
            "against",
            "promised by the search",
            "Wilcoxon p",
            "Holm p",
            "pairs' deviation",
            "failed",
        ],
    );
    for duel in &record.duels {
        table.row([
            duel.candidate.as_str().into(),
            duel.against.as_str().into(),
            Cell::or(duel.promised.map(format_number), "nothing"),
            Cell::or(duel.wilcoxon_p.map(p_text), "too few"),
            Cell::or(duel.holm_p.map(p_text), "none"),
            format_share(duel.deviation).into(),
            format_count(duel.failed).into(),
        ]);
    }
    table.or_nothing()
}

/// "better".
pub(super) fn duel_verdict(duel: &TuneDuel) -> &'static str {
    match (duel.failed, duel.verdict) {
        (1.., _) => "failed: not better",
        (_, TuneVerdict::Better) => "better",
        (_, TuneVerdict::NotBetter) => "not better",
        (_, TuneVerdict::Unresolved) => "unresolved",
    }
}

fn p_text(p: f64) -> String {
    match p {
        p if !p.is_finite() => "unknown".into(),
        p if p < 0.0001 => "< 0.0001".into(),
        p => format!("{p:.4}"),
    }
}

/// Every pair of every duel.
pub(super) fn pairs(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(1, &["pair", "ratio"]);
    for duel in &record.duels {
        table.group(format!("{} over {}", duel.candidate, duel.against));
        for (block, ratio) in pair_ratios(record, duel) {
            table.row([format!("block {block}").into(), format_number(ratio).into()]);
        }
    }
    table.or_nothing()
}

/// Knob by knob: what it was, what it becomes, how, and what that risks.
pub(super) fn change(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(5, &["knob", "was", "becomes", "how it is set", "risk"]);
    for (name, becomes) in &record.recommended {
        let Some(knob) = knob(record, name) else {
            table.row([
                name.as_str().into(),
                Cell::Missing("unknown"),
                becomes.to_string().into(),
                Cell::Missing("unknown"),
                Cell::Missing("unknown"),
            ]);
            continue;
        };
        if knob.baseline == *becomes {
            continue;
        }
        table.row([
            labelled(record, name).into(),
            knob.baseline.to_string().into(),
            becomes.to_string().into(),
            format!("{} ({})", knob.how, change_words(&knob.change)).into(),
            risk_words(&knob.risk).into(),
        ]);
    }
    table.or_nothing()
}

fn change_words(change: &str) -> &str {
    match change {
        "R" => "while the server runs",
        "H" => "on the host",
        "S" => "needs a restart",
        "L" => "needs the data loaded anew",
        other => other,
    }
}

fn risk_words(risk: &str) -> String {
    match risk {
        "P" => "P: performance only".into(),
        "M" => "M: memory".into(),
        "D" => "D: DURABILITY".into(),
        "A" => "A: availability".into(),
        other => other.into(),
    }
}

/// What was tuned, and what was not.
pub(super) fn knobs(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(
        5,
        &["knob", "at the start", "values", "how it is set", "risk"],
    );
    for knob in &record.knobs {
        table.row([
            labelled(record, &knob.name).into(),
            knob.baseline.to_string().into(),
            knob.range.as_str().into(),
            format!("{} ({})", knob.how, change_words(&knob.change)).into(),
            risk_words(&knob.risk).into(),
        ]);
    }
    table.or_nothing()
}

/// Knobs that were not tuned.
pub(super) fn left_out(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(2, &["knob left out", "why"]);
    for (name, why) in &record.left_out {
        table.row([name.as_str().into(), why.as_str().into()]);
    }
    table.or_nothing()
}

/// Share of the variance of each knob, and of pairs of knobs.
pub(super) fn importance(record: &TuneRecord) -> Option<Table> {
    let importance = record.importance.as_ref()?;
    let mut table = Table::new(
        1,
        &[
            "knob",
            "alone",
            "95 % interval",
            "with others",
            "95 % interval",
        ],
    );
    let row = |knob: &KnobImportance| -> Vec<Cell> {
        let [alone, total] = [&knob.alone, &knob.total];
        vec![
            labelled(record, &knob.knob).into(),
            format_share(alone.share).into(),
            interval(alone).into(),
            format_share(total.share).into(),
            interval(total).into(),
        ]
    };
    for knob in importance.knobs.iter().filter(|knob| knob.distinguishable) {
        table.row(row(knob));
    }
    let mut nothing = importance
        .knobs
        .iter()
        .filter(|knob| !knob.distinguishable)
        .peekable();
    if nothing.peek().is_some() {
        table.group("not told from nothing");
        nothing.for_each(|knob| table.row(row(knob)));
    }
    if !importance.pairs.is_empty() {
        table.group("two together, beyond what each does alone");
    }
    for pair in &importance.pairs {
        let [first, second] = &pair.knobs;
        table.row([
            format!(
                "{} and {}",
                labelled(record, first),
                labelled(record, second)
            )
            .into(),
            "".into(),
            "".into(),
            format_share(pair.together.share).into(),
            interval(&pair.together).into(),
        ]);
    }
    table.or_nothing()
}

fn interval(share: &Share) -> String {
    format!(
        "{} to {}",
        format_share(share.low),
        format_share(share.high)
    )
}

/// Why runs failed or missed a constraint, the most frequent first.
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

/// How a run ended.
pub(super) fn status_words(status: TrialStatus) -> &'static str {
    match status {
        TrialStatus::Measured => "measured",
        TrialStatus::EndedEarly => "ended early",
        TrialStatus::Failed => "failed",
        TrialStatus::ConstraintMissed => "constraint missed",
    }
}

/// What a run was for: "search, model"; "duel 3, best".
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

/// Run by run.
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

/// What the time went into.
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

/// One knob's slice as numbers.
pub(super) fn slice(slice: &Slice) -> Option<Table> {
    let mut table = Table::new(
        1,
        &["value", "expected", "95 % interval", "works", "measured"],
    );
    for point in &slice.points {
        let measured: Vec<String> = (slice.measured.iter())
            .filter(|measured| measured.at == point.at)
            .map(|measured| measured.value.map_or_else(|| "failed".into(), format_rate))
            .collect();
        table.row([
            point.at.to_string().into(),
            format_rate(point.expected).into(),
            format!("{} to {}", format_rate(point.low), format_rate(point.high)).into(),
            format_share(point.works).into(),
            measured.join("; ").into(),
        ]);
    }
    table.or_nothing()
}

/// Every cell of the heat map, the first knob's values down, the second's beside.
pub(super) fn heat_map(map: &HeatMap) -> Option<Table> {
    let [first, second] = &map.knobs;
    let mut table = Table::new(1, &["values", "expected"]);
    for (value, cells) in map.at[0].iter().zip(&map.expected) {
        table.group(format!("{first} = {value}"));
        for (other, expected) in map.at[1].iter().zip(cells) {
            table.row([
                format!("{second} = {other}").into(),
                format_rate(*expected).into(),
            ]);
        }
    }
    table.or_nothing()
}
