//! The duels: each ratio with its interval, and every pair under it.

use maud::{Markup, html};
use seekscope_run::TuneRecord;
use seekscope_run::tune::TuneDuel;

use super::duels::verdict_words;
use super::marks::{Shape, key, mark};
use super::plot::{Area, Axis, Figure, WIDTH, line, name, px, words, x_axis};
use super::reading::{pair_ratios, told_ratio};
use crate::numbers::format_number;

const ROWS_MAX: usize = 24;
const ROW_PX: f64 = 46.0;
const LEFT: f64 = 200.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 28.0;
/// An interval reaches so far beyond its ratio in the figure at most; the numbers beside it are exact.
const REACH: f64 = 3.0;
const COLOUR: usize = 0;
const PROMISED: usize = 1;

/// The figure; `None` where no duel has a ratio.
pub(super) fn figure(record: &TuneRecord) -> Option<Markup> {
    let duels: Vec<&TuneDuel> = record.duels.iter().take(ROWS_MAX).collect();
    let area = Area {
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: TOP + ROW_PX * duels.len() as f64,
    };
    let shown = duels.iter().flat_map(|duel| {
        let interval = told_ratio(duel)
            .map(|(value, low, high)| [value, low.max(value / REACH), high.min(value * REACH)]);
        let pairs = pair_ratios(record, duel)
            .into_iter()
            .map(|(_, ratio)| ratio);
        interval
            .into_iter()
            .flatten()
            .chain(pairs)
            .chain(duel.promised)
    });
    let shown: Vec<f64> = shown.collect();
    if shown.is_empty() {
        return None;
    }
    let axis = Axis::around(shown.into_iter().chain([1.0]), true, LEFT, RIGHT)?;
    let one = axis.at(1.0);
    let drawing = html! {
        (x_axis(&axis, &area, "ratio in the direction of the goal: right of 1 is better"))
        (line("axis", (one, area.top - 8.0), (one, area.bottom)))
        (words("tick", (one, area.top - 12.0), "middle", "equal"))
        @for (row, duel) in duels.iter().enumerate() {
            (duel_row(record, duel, &axis, TOP + ROW_PX * row as f64))
        }
    };
    let said: Vec<String> = duels.iter().map(|duel| numbers(duel)).collect();
    let mut legend = vec![
        key(Shape::Dot, COLOUR, "ratio, with its 95 % interval"),
        key(Shape::Plus, 6, "a pair"),
    ];
    if duels.iter().any(|duel| duel.promised.is_some()) {
        legend.push(key(Shape::Diamond, PROMISED, "promised by the search"));
    }
    let figure = Figure {
        id: "tune-duels",
        heading: "Duels: fresh runs in pairs, in random order",
        alternative: &said.join("; "),
        height: area.bottom + 44.0,
        legend,
        caption: "An interval wholly to the right of 1 is a gain. The interval knows how often the duel was \
                  looked at.",
    };
    Some(figure.around(&drawing))
}

fn numbers(duel: &TuneDuel) -> String {
    let ratio = told_ratio(duel).map_or_else(
        || "too few pairs to tell".to_string(),
        |(value, low, high)| {
            format!(
                "{} ({} to {})",
                format_number(value),
                format_number(low),
                format_number(high)
            )
        },
    );
    format!(
        "{} over {}: {ratio}, {}",
        duel.candidate,
        duel.against,
        verdict_words(duel)
    )
}

fn duel_row(record: &TuneRecord, duel: &TuneDuel, axis: &Axis, top: f64) -> Markup {
    let (interval_y, pairs_y) = (top + 16.0, top + 34.0);
    let says = numbers(duel);
    let short = |text: &str| crate::escape::shortened(text, 24);
    html! {
        text.row-name x=(px(LEFT - 12.0)) y=(px(interval_y + 1.0)) text-anchor="end" {
            (short(&duel.candidate)) title { (name(&duel.candidate)) }
        }
        (words("tick", (LEFT - 12.0, interval_y + 16.0), "end", &format!("over {}", short(&duel.against))))
        @if let Some((value, low, high)) = told_ratio(duel) {
            (line("curve line-0", (axis.at(low), interval_y), (axis.at(high), interval_y)))
            @for end in [low, high] {
                (line("curve line-0", (axis.at(end), interval_y - 5.0), (axis.at(end), interval_y + 5.0)))
            }
            (mark(Shape::Dot, (axis.at(value), interval_y), COLOUR, &says))
            (words("tick", (RIGHT + 10.0, interval_y), "start", &format!(
                "{} ({} to {})", format_number(value), format_number(low), format_number(high)
            )))
        }
        (words("row-name", (RIGHT + 10.0, interval_y + 16.0), "start", verdict_words(duel)))
        @if let Some(promised) = duel.promised {
            (mark(Shape::Diamond, (axis.at(promised), interval_y), PROMISED, &format!(
                "promised by the search: {}", format_number(promised)
            )))
        }
        @for (block, ratio) in pair_ratios(record, duel) {
            (mark(Shape::Plus, (axis.at(ratio), pairs_y), 6, &format!(
                "block {block}: {}", format_number(ratio)
            )))
        }
        (line("grid", (0.0, top + ROW_PX - 2.0), (WIDTH, top + ROW_PX - 2.0)))
    }
}
