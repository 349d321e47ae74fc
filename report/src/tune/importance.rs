//! Which knobs matter: bars of their share of the variance, with intervals.

use maud::{Markup, html};
use seekscope_run::TuneRecord;
use seekscope_run::tune::{KnobImportance, Share};

use super::plot::{Area, Axis, Figure, line, name, px, tick_text, words};
use super::reading::labelled;
use super::sentences::SEARCH_GUIDES;
use crate::numbers::format_share;

const KNOBS_DRAWN: usize = 24;
const ROW_PX: f64 = 40.0;
const BAR_PX: f64 = 11.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 12.0;

/// The figure; `None` where nothing is known of any knob.
pub(super) fn figure(record: &TuneRecord) -> Option<Markup> {
    let knobs = &record.importance.as_ref()?.knobs;
    let told = knobs.iter().filter(|knob| knob.distinguishable);
    let untold = knobs.iter().filter(|knob| !knob.distinguishable);
    let shown: Vec<&KnobImportance> = told.chain(untold).take(KNOBS_DRAWN).collect();
    if shown.is_empty() {
        return None;
    }
    let area = Area {
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: TOP + ROW_PX * shown.len() as f64,
    };
    let high = shown
        .iter()
        .flat_map(|knob| [knob.alone.high, knob.total.high])
        .fold(0.05, f64::max);
    let axis = Axis::exactly(0.0, high.min(1.0), LEFT, RIGHT);
    let drawing = html! {
        @for tick in axis.ticks() {
            (line("grid", (axis.at(tick), area.top), (axis.at(tick), area.bottom)))
            (words("tick", (axis.at(tick), area.bottom + 16.0), "middle", &format!("{} %", tick_text(tick * 100.0))))
        }
        (line("axis", (LEFT, area.top), (LEFT, area.bottom)))
        @for (row, knob) in shown.iter().enumerate() {
            (knob_row(record, knob, &axis, TOP + ROW_PX * row as f64))
        }
        (words("axis-name", (f64::midpoint(LEFT, RIGHT), area.bottom + 34.0), "middle", "share of the variance"))
    };
    let said: Vec<String> = (shown.iter())
        .map(|knob| {
            format!(
                "{}: {} with others",
                knob.knob,
                format_share(knob.total.share)
            )
        })
        .collect();
    let caption = format!(
        "Upper bar: what the knob does whatever the others are. Lower, lighter bar: with all that it does \
         together with others. Whiskers: 95 % intervals. {SEARCH_GUIDES}"
    );
    let figure = Figure {
        id: "tune-importance",
        heading: "Importance of each knob",
        alternative: &said.join("; "),
        height: area.bottom + 42.0,
        legend: Vec::new(),
        caption: &caption,
    };
    Some(figure.around(&drawing))
}

fn knob_row(record: &TuneRecord, knob: &KnobImportance, axis: &Axis, top: f64) -> Markup {
    let label = labelled(record, &knob.knob);
    let nothing = if knob.distinguishable {
        ""
    } else {
        "not told from nothing"
    };
    html! {
        text.row-name x=(px(LEFT - 8.0)) y=(px(top + 15.0)) text-anchor="end" {
            (crate::escape::shortened(&knob.knob, 28)) title { (label) }
        }
        @if label != knob.knob {
            (words("tick", (LEFT - 8.0, top + 30.0), "end", super::reading::DURABILITY))
        } @else if !nothing.is_empty() {
            (words("tick", (LEFT - 8.0, top + 30.0), "end", nothing))
        }
        (bar("bar line-0", &knob.alone, axis, top + 4.0, &format!("{} alone", name(&knob.knob))))
        (bar("bar light line-0", &knob.total, axis, top + 5.0 + BAR_PX, &format!("{} with others", name(&knob.knob))))
    }
}

fn bar(class: &str, share: &Share, axis: &Axis, top: f64, of: &str) -> Markup {
    let middle = top + BAR_PX / 2.0;
    let (low, high) = (axis.at(share.low), axis.at(share.high));
    html! {
        rect class=(class) x=(px(LEFT)) y=(px(top)) width=(px(axis.at(share.share) - LEFT)) height=(px(BAR_PX)) {
            title {
                (of) ": " (format_share(share.share)) " (" (format_share(share.low)) " to "
                (format_share(share.high)) ")"
            }
        }
        (line("whisker", (low, middle), (high, middle)))
        @for end in [low, high] { (line("whisker", (end, middle - 3.0), (end, middle + 3.0))) }
    }
}
