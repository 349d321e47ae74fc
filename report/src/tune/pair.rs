//! Draws the two knobs that do most together: the expectation for each value of one, for values of the other.

use seekscope_run::TuneRecord;
use seekscope_run::tune::HeatMap;

use super::reading::{drawable, labelled, metric_text};
use crate::escape::{shortened, visible};
use crate::html::charts::{Line, LineChart, Scale};
use crate::page::{Block, Figure};

/// The most values of the knob along the axis; the table has the others.
const VALUES_DRAWN: usize = 24;
/// The most lines that can be distinguished.
const LINES_MAX: usize = 6;
const NAME_CHARS: usize = 12;

/// Returns the figure; `None` if it has no values.
pub(super) fn figure(record: &TuneRecord, map: &HeatMap) -> Option<Block> {
    let [first, second] = &map.knobs;
    let rows = map.at[0].iter().zip(&map.expected);
    // Lines from end to end, if there are more than can be distinguished.
    let step = map.expected.len().div_ceil(LINES_MAX).max(1);
    let columns = map.at[1].len().min(VALUES_DRAWN);
    let lines: Vec<Line> = (rows.step_by(step).enumerate())
        .map(|(index, (value, expected))| {
            let values = (0..columns).map(|column| drawable(*expected.get(column)?));
            let label = format!("{first} = {}", shortened(&value.to_string(), NAME_CHARS));
            Line::numbered(index, &label, values.collect())
        })
        .filter(|line| line.values.iter().any(Option::is_some))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let name = |value: &_| visible(&shortened(&ToString::to_string(value), NAME_CHARS));
    let chart = LineChart {
        y_name: Some(visible(&metric_text(record))),
        groups: map.at[1].iter().take(columns).map(name).collect(),
        ..LineChart::new(
            "tune-heat",
            (Scale::Groups, Scale::Value),
            (0..columns).map(|column| column as f64).collect(),
            lines,
        )
    };
    let heading = format!(
        "{} and {}",
        labelled(record, first),
        labelled(record, second)
    );
    let reading = format!(
        "Expected by the model at each value of {second}, all other knobs as recommended. Lines that are not \
         parallel: what one knob does depends on the other."
    );
    Some(Figure::new(heading, reading).lines(chart))
}
