//! Response slices: what is expected of each value of one knob, all others as recommended, and what was
//! measured at it.

use maud::{Markup, html};
use seekscope_run::TuneRecord;
use seekscope_run::tune::{KnobValue, Measured, Slice, SlicePoint};

use super::marks::{Shape, key, line_key, mark};
use super::plot::{Area, Axis, Figure, line, name, points, words, x_axis, y_axis};
use super::reading::{knob, labelled, metric_text};
use crate::numbers::format_rate;

const HEIGHT: f64 = 300.0;
const AREA: Area = Area {
    left: 64.0,
    right: 700.0,
    top: 28.0,
    bottom: 244.0,
};
/// Room of each value that stands apart from the range.
const COLUMN_PX: f64 = 64.0;
const POINTS_MAX: usize = 400;
const COLUMNS_MAX: usize = 40;

/// The figure of the slice number `index`; `None` where it has no points.
pub(super) fn figure(record: &TuneRecord, index: usize, slice: &Slice) -> Option<Markup> {
    let plot = Response::of(record, slice)?;
    let label = labelled(record, &slice.knob);
    let figure = Figure {
        id: &format!("tune-slice-{index}"),
        heading: &label,
        alternative: &format!(
            "Expected {} by {}; the table below has every figure",
            metric_text(record),
            slice.knob
        ),
        height: HEIGHT,
        legend: plot.legend(),
        caption: "Expected with its 95 % interval, all other knobs as recommended; marks: settings that were \
                  run, wherever their other knobs were.",
    };
    Some(figure.around(&plot.drawing(&metric_text(record))))
}

struct Response<'a> {
    slice: &'a Slice,
    /// Values without a place on the axis: words, switches, special values.
    columns: Vec<&'a SlicePoint>,
    range: Vec<(f64, &'a SlicePoint)>,
    /// Of `range`; `None` where all stand in columns.
    x: Option<Axis>,
    y: Axis,
    logarithmic: bool,
}

impl<'a> Response<'a> {
    fn of(record: &TuneRecord, slice: &'a Slice) -> Option<Self> {
        let logarithmic = knob(record, &slice.knob).is_some_and(|knob| knob.logarithmic);
        let (columns, range) = parted(
            &slice.points[..slice.points.len().min(POINTS_MAX)],
            logarithmic,
        );
        let drawn = slice
            .points
            .iter()
            .flat_map(|point| [point.expected, point.low, point.high]);
        let measured = slice.measured.iter().filter_map(|measured| measured.value);
        let columns: Vec<_> = columns.into_iter().take(COLUMNS_MAX).collect();
        let from = match range.is_empty() {
            true => AREA.right,
            false => AREA.left + (columns.len() as f64 * COLUMN_PX).min(300.0) + 10.0,
        };
        Some(Self {
            slice,
            x: Axis::around(
                range.iter().map(|(at, _)| *at),
                logarithmic,
                from,
                AREA.right,
            ),
            y: Axis::around(drawn.chain(measured), false, AREA.bottom, AREA.top)?,
            columns,
            range,
            logarithmic,
        })
    }

    fn drawing(&self, metric: &str) -> Markup {
        let scale = if self.logarithmic {
            ", logarithmic"
        } else {
            ""
        };
        let of = format!("{}{scale}", name(&self.slice.knob));
        html! {
            (y_axis(&self.y, &AREA, metric))
            @match &self.x {
                Some(x) => (x_axis(x, &AREA, &of)),
                None => {
                    (line("axis", (AREA.left, AREA.bottom), (AREA.right, AREA.bottom)))
                    (words("axis-name", (f64::midpoint(AREA.left, AREA.right), AREA.bottom + 34.0), "middle", &of))
                }
            }
            (self.band())
            @for (column, point) in self.columns.iter().enumerate() { (self.column(column, point)) }
            @for measured in self.slice.measured.iter().take(POINTS_MAX) { (self.measured(measured)) }
        }
    }

    fn band(&self) -> Markup {
        let Some(x) = &self.x else {
            return html! {};
        };
        let place = |at: f64, value: f64| (x.at(at), self.y.at(value));
        let upper = self.range.iter().map(|(at, point)| place(*at, point.high));
        let lower = self
            .range
            .iter()
            .rev()
            .map(|(at, point)| place(*at, point.low));
        let expected = self
            .range
            .iter()
            .map(|(at, point)| place(*at, point.expected));
        html! {
            polygon.band.line-0 points=(points(upper.chain(lower))) {}
            polyline.curve.line-0 points=(points(expected)) {}
        }
    }

    fn column_x(&self, column: usize) -> f64 {
        let room = match &self.x {
            Some(x) => x.left() - AREA.left,
            None => AREA.right - AREA.left,
        };
        AREA.left + room * (column as f64 + 0.5) / self.columns.len().max(1) as f64
    }

    fn column(&self, column: usize, point: &SlicePoint) -> Markup {
        let x = self.column_x(column);
        let (low, high) = (self.y.at(point.low), self.y.at(point.high));
        let value = point.at.to_string();
        let tip = format!(
            "{value}: expected {} ({} to {})",
            format_rate(point.expected),
            format_rate(point.low),
            format_rate(point.high)
        );
        html! {
            (line("curve line-0", (x, low), (x, high)))
            @for end in [low, high] { (line("curve line-0", (x - 5.0, end), (x + 5.0, end))) }
            (mark(Shape::Dot, (x, self.y.at(point.expected)), 0, &tip))
            (words("tick", (x, AREA.bottom + 17.0), "middle", &crate::escape::shortened(&value, 9)))
        }
    }

    /// What was measured stands a little beside a column's own mark.
    fn measured(&self, measured: &Measured) -> Markup {
        const ASIDE_PX: f64 = 11.0;
        let column = self
            .columns
            .iter()
            .position(|point| point.at == measured.at);
        let x = match (column, measured.at.number(), &self.x) {
            (Some(column), _, _) => self.column_x(column) + ASIDE_PX,
            (None, Some(at), Some(x)) => x.at(at),
            _ => return html! {},
        };
        match measured.value {
            Some(value) => mark(
                Shape::Plus,
                (x, self.y.at(value)),
                6,
                &format!("{}: measured {}", measured.at, format_rate(value)),
            ),
            None => mark(
                Shape::Cross,
                (x, AREA.bottom),
                1,
                &format!("{}: failed", measured.at),
            ),
        }
    }

    fn legend(&self) -> Vec<Markup> {
        let mut entries = Vec::new();
        if self.x.is_some() {
            entries.push(line_key("curve line-0", "expected"));
        }
        if !self.columns.is_empty() {
            entries.push(key(Shape::Dot, 0, "expected, of a value by itself"));
        }
        if self
            .slice
            .measured
            .iter()
            .any(|measured| measured.value.is_some())
        {
            entries.push(key(Shape::Plus, 6, "measured"));
        }
        if self
            .slice
            .measured
            .iter()
            .any(|measured| measured.value.is_none())
        {
            entries.push(key(Shape::Cross, 1, "failed"));
        }
        entries
    }
}

/// What has no place on an axis, and what has: words and special values come first in a slice, so the range
/// is the ascending end of it.
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
    // A single value is no range.
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
