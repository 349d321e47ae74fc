//! What two knobs do together: the expected metric of each pair of their values, as shades and numbers.

use maud::{Markup, html};
use seekscope_run::TuneRecord;
use seekscope_run::tune::HeatMap;

use super::plot::{Figure, name, px, words};
use super::reading::{labelled, metric_text};
use crate::escape::shortened;
use crate::numbers::format_rate;

/// Values of each knob in the figure; the table has the others.
const VALUES_DRAWN: usize = 24;
/// Up to so many columns each cell has room for its number.
const NUMBERED: usize = 12;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 712.0;
const TOP: f64 = 20.0;
const ROW_PX: f64 = 26.0;
/// The darkest shade still lets a number be read.
const SHADE_MAX: f64 = 0.6;

/// The figure; `None` where it has no cells.
pub(super) fn figure(record: &TuneRecord, map: &HeatMap) -> Option<Markup> {
    let rows = map.at[0].len().min(map.expected.len()).min(VALUES_DRAWN);
    let columns = map.at[1].len().min(VALUES_DRAWN);
    let cells: Vec<(usize, usize, f64)> = (map.expected.iter().take(rows).enumerate())
        .flat_map(|(row, values)| {
            let values = values.iter().take(columns).enumerate();
            values.map(move |(column, value)| (row, column, *value))
        })
        .filter(|(_, _, value)| value.is_finite())
        .collect();
    let low = cells.iter().map(|cell| cell.2).reduce(f64::min)?;
    let high = cells.iter().map(|cell| cell.2).reduce(f64::max)?;
    let best = if record.maximise { high } else { low };
    let [first, second] = &map.knobs;
    let cell_px = (RIGHT - LEFT) / columns as f64;
    let bottom = TOP + ROW_PX * rows as f64;
    let drawing = html! {
        (words("axis-name", (4.0, TOP - 7.0), "start", &name(first)))
        @for (row, value) in map.at[0].iter().take(rows).enumerate() {
            (words("tick", (LEFT - 6.0, TOP + ROW_PX * row as f64 + 17.0), "end", &shortened(&value.to_string(), 16)))
        }
        @for (column, value) in map.at[1].iter().take(columns).enumerate() {
            @if columns <= NUMBERED || column % 4 == 0 {
                (words("tick", (LEFT + cell_px * (column as f64 + 0.5), bottom + 16.0), "middle", &shortened(&value.to_string(), 9)))
            }
        }
        (words("axis-name", (f64::midpoint(LEFT, RIGHT), bottom + 34.0), "middle", &name(second)))
        @for (row, column, value) in &cells {
            @let (x, y) = (LEFT + cell_px * *column as f64, TOP + ROW_PX * *row as f64);
            @let share = if high > low { (value - low) / (high - low) } else { 0.5 };
            rect class={ "cell line-0" @if *value == best { " best" } }
                x=(px(x + 1.0)) y=(px(y + 1.0)) width=(px(cell_px - 2.0)) height=(px(ROW_PX - 2.0))
                fill-opacity=(format!("{:.2}", 0.04 + (SHADE_MAX - 0.04) * share)) {
                title { (first) " = " (map.at[0][*row]) ", " (second) " = " (map.at[1][*column]) ": " (format_rate(*value)) }
            }
            @if columns <= NUMBERED {
                (words("cell-number", (x + cell_px / 2.0, y + 17.0), "middle", &format_rate(*value)))
            }
        }
    };
    let figure = Figure {
        id: "tune-heat",
        heading: &format!(
            "{} and {}",
            labelled(record, first),
            labelled(record, second)
        ),
        alternative: &format!(
            "Expected {} by {first} and {second}; the table below has every figure",
            metric_text(record)
        ),
        height: bottom + 42.0,
        legend: Vec::new(),
        caption: "Expected by the model, all other knobs as recommended; a stronger shade is a higher figure, the outline \
                  is the best cell.",
    };
    Some(figure.around(&drawing))
}
