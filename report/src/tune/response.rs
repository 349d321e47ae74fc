//! Draws response slices: the expectation for each value of one knob, all others as recommended, and what was
//! measured at it.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{KnobValue, Measured, Slice, SlicePoint};

use super::reading::{drawable, knob, labelled, metric_text};
use crate::escape::{shortened, visible};
use crate::html::charts::{Line, LineChart, Scale, Shape};
use crate::numbers::format_rate;
use crate::page::{Block, Figure};

const POINTS_MAX: usize = 400;
const GROUPS_MAX: usize = 40;
const NAME_CHARS: usize = 12;
/// Distance of a measured mark from its group's own, in groups.
const ASIDE: f64 = 0.12;
const READING: &str = "Expected with its 95 % interval, all other knobs as recommended; marks: settings that were run, \
    wherever their other knobs were.";

/// What is drawn at one position of the axis of values. Several settings that were run may share one.
struct Place<'a> {
    at: f64,
    expected: Option<&'a SlicePoint>,
    measured: Option<&'a Measured>,
}

/// Returns the figure of slice number `index`; `None` if it has no points.
pub(super) fn figure(record: &TuneRecord, index: usize, slice: &Slice) -> Option<Block> {
    let logarithmic = knob(record, &slice.knob).is_some_and(|knob| knob.logarithmic);
    let points = &slice.points[..slice.points.len().min(POINTS_MAX)];
    let (alone, range) = parted(points, logarithmic);
    let mut chart = match range.is_empty() {
        true => by_group(slice, &alone)?,
        false => over_range(slice, &range, logarithmic)?,
    };
    chart.id = format!("tune-slice-{index}");
    chart.y_name = Some(visible(&metric_text(record)));
    // Special values of a range have no position on its axis.
    let special = alone
        .iter()
        .filter(|_| !range.is_empty())
        .map(|point| expected(point));
    let special: Vec<String> = special.collect();
    let meaning = (!special.is_empty()).then(|| format!("By itself, {}.", special.join("; ")));
    let heading = labelled(record, &slice.knob);
    Some(Figure::new(heading, READING).meaning(meaning).lines(chart))
}

fn over_range(slice: &Slice, range: &[(f64, &SlicePoint)], logarithmic: bool) -> Option<LineChart> {
    let (low, high) = (range.first()?.0, range.last()?.0);
    let within = |at: &f64| (low..=high).contains(at);
    let measured = measured_at(slice, |value| value.number().filter(within));
    let places = range.iter().map(|(at, point)| Place {
        at: *at,
        expected: Some(*point),
        measured: None,
    });
    let mut places: Vec<Place<'_>> = places.chain(measured).collect();
    places.sort_by(|a, b| a.at.total_cmp(&b.at));
    let suffix = if logarithmic { ", logarithmic" } else { "" };
    let mut chart = chart(&places, Scale::value(logarithmic), None)?;
    chart.x_name = Some(visible(&format!("{}{suffix}", slice.knob)));
    Some(chart)
}

/// Draws words and switches side by side.
fn by_group(slice: &Slice, alone: &[&SlicePoint]) -> Option<LineChart> {
    let shown = &alone[..alone.len().min(GROUPS_MAX)];
    let position = |value: &KnobValue| {
        let group = shown.iter().position(|point| point.at == *value)?;
        Some(group as f64 + ASIDE)
    };
    let measured = measured_at(slice, position);
    let places = shown.iter().enumerate().map(|(group, point)| Place {
        at: group as f64,
        expected: Some(*point),
        measured: None,
    });
    let mut places: Vec<Place<'_>> = places.chain(measured).collect();
    places.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut chart = chart(&places, Scale::Groups, Some(Shape::Dot))?;
    let name = |point: &&SlicePoint| visible(&shortened(&point.at.to_string(), NAME_CHARS));
    chart.groups = shown.iter().map(name).collect();
    Some(chart)
}

/// Returns the settings that were run and have a position.
fn measured_at<'a>(
    slice: &'a Slice,
    position: impl Fn(&KnobValue) -> Option<f64>,
) -> impl Iterator<Item = Place<'a>> {
    let measured = slice.measured.iter().take(POINTS_MAX);
    measured.filter_map(move |measured| {
        Some(Place {
            at: position(&measured.at)?,
            expected: None,
            measured: Some(measured),
        })
    })
}

/// Draws the chart; `shape` marks the expectations where a line would connect values with nothing in between.
fn chart(places: &[Place<'_>], x: Scale, shape: Option<Shape>) -> Option<LineChart> {
    let value = |of: fn(&SlicePoint) -> f64| move |place: &Place<'_>| drawable(of(place.expected?));
    let values: Vec<Option<f64>> = places.iter().map(value(|point| point.expected)).collect();
    let lowest = values.iter().flatten().copied().reduce(f64::min)?;
    let lows = places.iter().map(value(|point| point.low));
    let highs = places.iter().map(value(|point| point.high));
    let expected = Line {
        intervals: lows.zip(highs).map(|(low, high)| low.zip(high)).collect(),
        shape,
        ..Line::numbered(0, "expected", values)
    };
    let measured = places.iter().map(|place| {
        let Measured { at, value } = place.measured?;
        let value = (*value)?;
        Some((
            drawable(value)?,
            format!("{at}: measured {}", format_rate(value)),
        ))
    });
    let failed = places.iter().map(|place| {
        let failed = place.measured.filter(|measured| measured.value.is_none())?;
        Some((lowest, format!("{}: failed", failed.at)))
    });
    let marks = [
        Line::marked((Shape::Plus, 6), "measured", measured),
        Line::marked((Shape::Cross, 1), "failed", failed),
    ];
    let has_marks = |line: &Line| line.values.iter().any(Option::is_some);
    let mut lines = vec![expected];
    lines.extend(marks.into_iter().filter(has_marks));
    let xs = places.iter().map(|place| place.at).collect();
    Some(LineChart::new("", (x, Scale::Value), xs, lines))
}

fn expected(point: &SlicePoint) -> String {
    format!(
        "{}: expected {} ({} to {})",
        point.at,
        format_rate(point.expected),
        format_rate(point.low),
        format_rate(point.high)
    )
}

/// Separates values without a position on an axis from the others: words and special values come first in a
/// slice, so the range is its ascending end.
fn parted(points: &[SlicePoint], logarithmic: bool) -> (Vec<&SlicePoint>, Vec<(f64, &SlicePoint)>) {
    let mut range: Vec<(f64, &SlicePoint)> = Vec::new();
    let place = |value: &KnobValue| {
        value
            .number()
            .filter(|n| n.is_finite() && (!logarithmic || *n > 0.0))
    };
    for point in points.iter().rev() {
        match place(&point.at) {
            Some(at) if range.last().is_none_or(|(next, _)| at < *next) => range.push((at, point)),
            _ => break,
        }
    }
    range.reverse();
    // A single value is not a range.
    if range.len() < 2 {
        range.clear();
    }
    let columns = points.iter().take(points.len() - range.len()).collect();
    (columns, range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(values: &[KnobValue]) -> Vec<SlicePoint> {
        let point = |at: &KnobValue| SlicePoint {
            at: at.clone(),
            expected: 1.0,
            low: 0.9,
            high: 1.1,
            works: 1.0,
        };
        values.iter().map(point).collect()
    }

    #[test]
    fn special_values_and_words_stand_apart() {
        let numbers = |numbers: &[i64]| {
            slice(
                &numbers
                    .iter()
                    .map(|n| KnobValue::Integer(*n))
                    .collect::<Vec<_>>(),
            )
        };
        let lengths = |points: &[SlicePoint], log| {
            let (columns, range) = parted(points, log);
            (columns.len(), range.len())
        };
        assert_eq!(lengths(&numbers(&[0, 3, 9, 80]), true), (1, 3));
        assert_eq!(lengths(&numbers(&[0, 3, 9, 80]), false), (0, 4));
        assert_eq!(lengths(&numbers(&[99, 3, 9]), false), (1, 2));
        let words = slice(&[KnobValue::Text("a".into()), KnobValue::Bool(true)]);
        assert_eq!(lengths(&words, false), (2, 0));
        assert_eq!(lengths(&[], true), (0, 0));
    }
}
