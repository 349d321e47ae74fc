//! Shows what was predicted, and the outcome.

use seekscope_run::FindingChange;

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX};
use crate::numbers::format_rate;
use crate::table::{Cell, Table};
use crate::wording;

/// Returns a line of plain text on one finding in two runs.
pub fn change_line(change: &FindingChange) -> String {
    let subject = match subject(change).as_str() {
        "" => String::new(),
        subject => format!(" ({subject})"),
    };
    let word = &change.change;
    let unit = change.predicted.as_ref().map(|gain| gain.unit.as_str());
    let (before, after) = (
        change.before.map(format_rate),
        change.after.map(format_rate),
    );
    let (figures, rest) = match (before, after, unit) {
        (Some(before), Some(after), unit) => {
            let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
            (format!(", {before} → {after}{unit}"), String::new())
        }
        (Some(before), None, Some(unit)) => {
            (String::new(), format!("; it was {before} {unit} before"))
        }
        (None, Some(after), Some(unit)) => (String::new(), format!("; it is {after} {unit} now")),
        // A lone figure without a unit says nothing.
        _ => (String::new(), String::new()),
    };
    format!(
        "{word:<8}{}{subject}{figures}: {}{rest}",
        change.id, change.verdict
    )
}

/// Returns what a finding is about. Two on one collection differ in the operations that they name.
fn subject(change: &FindingChange) -> String {
    let [first, others @ ..] = change.operations.as_slice() else {
        return change.subject.clone();
    };
    let others = match others.len() {
        0 => String::new(),
        1 => " and another kind".into(),
        count => format!(" and {count} other kinds"),
    };
    format!("{}: {}{others}", change.subject, first.in_words())
}

/// Returns findings of an earlier run beside this one's.
pub(in super::super) fn since(input: &DoctorReportInput<'_>) -> Option<Table> {
    let earlier = input.examination()?.since.as_ref()?;
    let columns = [
        "finding",
        "change",
        "verdict",
        "before",
        "now",
        "predicted gain",
        "work per s before",
        "work per s now",
    ];
    let mut table = Table::new(3, &columns);
    for change in earlier.changes.iter().take(ROWS_MAX) {
        table.row(row(change));
    }
    table.or_nothing()
}

fn row(change: &FindingChange) -> [Cell; 8] {
    let name = match subject(change).as_str() {
        "" => change.id.clone(),
        subject => format!("{}: {subject}", change.id),
    };
    let work = change.work.as_ref();
    let number = |value: Option<f64>| Cell::or(value.map(format_rate), NONE);
    [
        name.into(),
        change.change.as_str().into(),
        change.verdict.as_str().into(),
        number(change.before),
        number(change.after),
        Cell::or(change.predicted.as_ref().map(wording::gain), NONE),
        Cell::or(
            work.map(|work| format!("{} {}", format_rate(work.before_per_s), work.unit)),
            NONE,
        ),
        number(work.map(|work| work.after_per_s)),
    ]
}

#[cfg(test)]
mod tests {
    use seekscope_run::Gain;

    use super::*;

    fn changed(before: Option<f64>, after: Option<f64>, verdict: &str) -> FindingChange {
        FindingChange {
            id: "layout.key-order-lost".into(),
            subject: "shop.aged".into(),
            change: "same".into(),
            before,
            after,
            predicted: Some(Gain {
                value: 3000.0,
                low: 2500.0,
                high: 3500.0,
                unit: "s of waiting per hour".into(),
            }),
            verdict: verdict.into(),
            ..FindingChange::default()
        }
    }

    #[test]
    fn the_figure_of_what_cannot_be_told_is_that_of_then() {
        let untold = FindingChange {
            change: "unknown".into(),
            ..changed(
                Some(3540.7),
                None,
                "cannot be told: the server had less to do",
            )
        };
        assert_eq!(
            change_line(&untold),
            "unknown layout.key-order-lost (shop.aged): cannot be told: the server had less to do; it was 3,541 s of \
             waiting per hour before"
        );
        let without_unit = FindingChange {
            before: Some(0.0),
            predicted: None,
            ..untold
        };
        let line = change_line(&without_unit);
        assert!(line.ends_with("the server had less to do"), "{line}");
    }

    #[test]
    fn two_figures_stand_side_by_side() {
        let mut of_operations = changed(Some(3540.7), Some(12.0), "nothing changed");
        of_operations.operations = ["query", "command count"]
            .map(|kind| seekscope_run::OperationKind {
                kind: kind.into(),
                ..seekscope_run::OperationKind::default()
            })
            .into();
        let line = change_line(&of_operations);
        assert!(line.contains(": query and another kind)"), "{line}");
        let line = change_line(&changed(Some(3540.7), Some(12.0), "nothing changed"));
        assert_eq!(
            line,
            "same    layout.key-order-lost (shop.aged), 3,541 → 12.0 s of waiting per hour: nothing changed"
        );
    }
}
