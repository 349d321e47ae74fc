//! Draws the duels: each ratio with its interval, and every pair beside it.

use seekscope_run::TuneRecord;
use seekscope_run::tune::TuneDuel;

use super::duels::verdict_words;
use super::reading::{drawable, pair_ratios, told_ratio};
use crate::escape::{shortened, visible};
use crate::html::charts::{Line, LineChart, Scale, Shape};
use crate::numbers::format_number;
use crate::page::{Block, Figure};

const DUELS_MAX: usize = 12;
const NAME_CHARS: usize = 24;
/// Furthest that an interval extends beyond its ratio in the figure; the numbers beside it are exact.
const REACH: f64 = 3.0;
/// Pairs are drawn beside their duel's ratio, in this part of the distance to the next.
const PAIRS_FROM: f64 = 0.15;
const PAIRS_TO: f64 = 0.45;

/// The marks at one position of the axis.
#[derive(Default)]
struct Place {
    x: f64,
    ratio: Option<(f64, f64, f64)>,
    promised: Option<f64>,
    pair: Option<f64>,
    note: String,
}

/// Returns the figure; `None` if no duel has a ratio.
pub(super) fn figure(record: &TuneRecord) -> Option<Block> {
    let duels: Vec<&TuneDuel> = record.duels.iter().take(DUELS_MAX).collect();
    let numbered = duels.iter().enumerate();
    let places: Vec<Place> = numbered
        .flat_map(|(index, duel)| places(record, duel, index as f64))
        .collect();
    let is_told = |place: &Place| place.ratio.is_some() || place.pair.is_some();
    if !places.iter().any(is_told) {
        return None;
    }
    let marked = |look, label: &str, of: fn(&Place) -> Option<f64>| {
        let marks = places
            .iter()
            .map(|place| Some((of(place)?, place.note.clone())));
        Line::marked(look, label, marks)
    };
    let ratio = marked((Shape::Dot, 0), "ratio, with its 95 % interval", |place| {
        Some(place.ratio?.0)
    });
    let intervals = places.iter().map(|place| {
        let (value, low, high) = place.ratio?;
        Some((low.max(value / REACH), high.min(value * REACH)))
    });
    let ratio = Line {
        intervals: intervals.collect(),
        ..ratio
    };
    let pairs = marked((Shape::Plus, 6), "a pair", |place| place.pair);
    let mut lines = vec![ratio, pairs];
    if places.iter().any(|place| place.promised.is_some()) {
        lines.push(marked(
            (Shape::Diamond, 1),
            "promised by the search",
            |place| place.promised,
        ));
    }
    lines.push(Line::numbered(6, "equal", vec![Some(1.0); places.len()]).dashed(true));
    let chart = LineChart {
        y_name: Some("ratio, above 1 is better".into()),
        groups: duels.iter().map(|duel| name(duel)).collect(),
        ..LineChart::new(
            "tune-duels",
            (Scale::Groups, Scale::ValueLog),
            places.iter().map(|place| place.x).collect(),
            lines,
        )
    };
    let figure = Figure::new(
        "Duels: fresh runs in pairs, in random order",
        "In the direction of the goal: an interval wholly above 1 is a gain. The interval accounts for how \
         often the duel was looked at.",
    );
    Some(figure.lines(chart))
}

fn name(duel: &TuneDuel) -> String {
    let short = |text: &str| visible(&shortened(text, NAME_CHARS));
    format!("{} over {}", short(&duel.candidate), short(&duel.against))
}

/// Returns the ratio, then every pair.
fn places(record: &TuneRecord, duel: &TuneDuel, x: f64) -> Vec<Place> {
    let mut places = vec![Place {
        x,
        ratio: told_ratio(duel),
        promised: duel
            .promised
            .and_then(drawable)
            .filter(|ratio| *ratio > 0.0),
        note: numbers(duel),
        ..Place::default()
    }];
    let pairs = pair_ratios(record, duel);
    let step = (PAIRS_TO - PAIRS_FROM) / pairs.len().max(1) as f64;
    places.extend(
        pairs
            .iter()
            .enumerate()
            .map(|(index, (block, ratio))| Place {
                x: x + PAIRS_FROM + step * index as f64,
                pair: Some(*ratio),
                note: format!("block {block}: {}", format_number(*ratio)),
                ..Place::default()
            }),
    );
    places
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
    let promised = duel.promised.map_or_else(String::new, |promised| {
        format!("; promised by the search: {}", format_number(promised))
    });
    format!(
        "{} over {}: {ratio}, {}{promised}",
        duel.candidate,
        duel.against,
        verdict_words(duel)
    )
}
