//! Shows knobs as tables: what changes, what was tuned, what each does; terminal and HTML show the same.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{HeatMap, KnobImportance, Share, Slice};

use super::reading::{importance_told, knob, labelled};
use crate::numbers::{format_rate, format_share};
use crate::table::{Cell, Table};

/// Returns each knob's old and new value, how to set it, and the risk.
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

/// Returns what was tuned, and what was not.
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

/// Returns the knobs that were not tuned.
pub(super) fn left_out(record: &TuneRecord) -> Option<Table> {
    let mut table = Table::new(2, &["knob left out", "why"]);
    for (name, why) in &record.left_out {
        table.row([name.as_str().into(), why.as_str().into()]);
    }
    table.or_nothing()
}

/// Returns the share of the variance of each knob, and of pairs of knobs.
pub(super) fn importance(record: &TuneRecord) -> Option<Table> {
    let importance = importance_told(record)?;
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
        table.group("indistinguishable from no effect");
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

/// Returns one knob's slice as numbers.
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

/// Returns every cell of the heat map, the first knob's values down, the second's across.
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
