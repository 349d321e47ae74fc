//! Shows the duels as tables; terminal and HTML show the same.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{TuneDuel, TuneVerdict};
use seekscope_run::units::format_count;

use super::reading::{pair_ratios, told_ratio};
use crate::numbers::{format_number, format_share};
use crate::table::{Cell, Table};

/// Shown in place of a ratio and its interval.
const TOO_FEW: &str = "too few to tell";

/// Returns the duels and their results.
pub(super) fn table(record: &TuneRecord) -> Option<Table> {
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
        let interval = told_ratio(duel);
        table.row([
            duel.candidate.as_str().into(),
            duel.against.as_str().into(),
            Cell::or(interval.map(|i| format_number(i.0)), TOO_FEW),
            Cell::or(
                interval.map(|i| format!("{} to {}", format_number(i.1), format_number(i.2))),
                TOO_FEW,
            ),
            format_count(duel.pairs).into(),
            verdict_words(duel).into(),
            Cell::or(
                (duel.worst > 0.0).then(|| format_number(duel.worst)),
                "none",
            ),
        ]);
    }
    table.or_nothing()
}

/// Returns how certain the duels are, and what had been promised.
pub(super) fn tests(record: &TuneRecord) -> Option<Table> {
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

/// Returns words like "better".
pub(super) fn verdict_words(duel: &TuneDuel) -> &'static str {
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

/// Returns every pair of every duel.
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
