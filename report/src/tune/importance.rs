//! Draws which knobs matter: bars of their share of the variance, with intervals.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{KnobImportance, Share};

use super::reading::{importance_told, labelled};
use super::sentences::SEARCH_GUIDES;
use crate::escape::visible;
use crate::html::charts::{BarChart, Line, Scale};
use crate::page::{Block, Figure};

const KNOBS_DRAWN: usize = 24;

/// Returns the figure; `None` if nothing is known of any knob.
pub(super) fn figure(record: &TuneRecord) -> Option<Block> {
    let knobs = &importance_told(record)?.knobs;
    let told = knobs.iter().filter(|knob| knob.distinguishable);
    let untold = knobs.iter().filter(|knob| !knob.distinguishable);
    let shown: Vec<&KnobImportance> = told.chain(untold).take(KNOBS_DRAWN).collect();
    if shown.is_empty() {
        return None;
    }
    let bars = |index, label: &str, of: fn(&KnobImportance) -> &Share| Line {
        intervals: shown
            .iter()
            .map(|knob| Some((of(knob).low, of(knob).high)))
            .collect(),
        ..Line::numbered(
            index,
            label,
            shown.iter().map(|knob| Some(of(knob).share)).collect(),
        )
    };
    let group = |knob: &&KnobImportance| {
        let nothing = if knob.distinguishable {
            ""
        } else {
            " (indistinguishable from no effect)"
        };
        visible(&format!("{}{nothing}", labelled(record, &knob.knob)))
    };
    let chart = BarChart::new(
        "tune-importance",
        Scale::Share,
        shown.iter().map(group).collect(),
        vec![
            bars(0, "alone", |knob| &knob.alone),
            bars(4, "with others", |knob| &knob.total),
        ],
    );
    let reading = format!(
        "Share of the variance. Alone: what the knob does whatever the others are. With others: with all that it \
         does together with them. Whiskers: 95 % intervals. {SEARCH_GUIDES}"
    );
    Some(Figure::new("Importance of each knob", reading).bars(chart))
}
