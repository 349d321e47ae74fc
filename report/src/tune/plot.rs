//! Axes and frames of the figures, as SVG. Everything is drawn with classes of the page's style sheet, for
//! the page's policy allows no style anywhere else.

use maud::{Markup, html};

use crate::escape::shortened;
use crate::numbers::format_rate;

/// Of every figure, in its own units; the page scales it.
pub(super) const WIDTH: f64 = 720.0;
/// Characters of a name in a figure; the tables have it whole.
const NAME_CHARS: usize = 34;
/// Values beyond it are not drawn: their differences would overflow.
const DRAWN_MAX: f64 = 1e100;
const TICKS_MAX: usize = 24;

/// Values on their way to places of the figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Places of `low` and `high`.
    from: f64,
    to: f64,
}

impl Axis {
    /// From `low` to `high` exactly, linear.
    pub(super) fn exactly(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self {
            low,
            high,
            logarithmic: false,
            from,
            to,
        }
    }

    /// Around all values that can be drawn; `None` if there is none. A linear axis of positive values
    /// begins at zero unless that would waste half of it.
    pub(super) fn around(
        values: impl Iterator<Item = f64>,
        logarithmic: bool,
        from: f64,
        to: f64,
    ) -> Option<Self> {
        let drawn = values.filter(|v| v.abs() < DRAWN_MAX && (!logarithmic || *v > 0.0));
        let (low, high) = drawn.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        let (low, high) = match logarithmic {
            true => {
                let pad = (high / low).powf(0.06).max(1.04);
                (low / pad, high * pad)
            }
            false => {
                let pad = match high - low {
                    0.0 => (high.abs() * 0.1).max(f64::MIN_POSITIVE),
                    spread => spread * 0.07,
                };
                let zero = low >= 0.0 && low < 0.5 * high;
                (if zero { 0.0 } else { low - pad }, high + pad)
            }
        };
        let high = if high > low { high } else { low + 1.0 };
        Some(Self {
            low,
            high,
            logarithmic,
            from,
            to,
        })
    }

    /// Where the value lies; at the edge of the figure what lies beyond.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self.from + share * (self.to - self.from)
    }

    /// Where it begins.
    pub(super) fn left(&self) -> f64 {
        self.from
    }

    /// Round values to label, at most two dozen.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let ticks = match self.logarithmic && decades > 1.2 {
            true => self.decades(decades),
            false => self.steps(),
        };
        ticks
            .into_iter()
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }

    fn steps(&self) -> Vec<f64> {
        const STEPS: f64 = 6.0;
        let rough = (self.high - self.low) / STEPS;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * unit)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * unit);
        let first = (self.low / step).ceil();
        (0..TICKS_MAX).map(|n| (first + n as f64) * step).collect()
    }

    fn decades(&self, decades: f64) -> Vec<f64> {
        let factors: &[f64] = if decades < 3.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let every = (decades / 8.0).ceil().max(1.0);
        let first = self.low.log10().floor();
        (0..TICKS_MAX)
            .map(|n| 10f64.powf(first + n as f64 * every))
            .flat_map(|decade| factors.iter().map(move |factor| decade * factor))
            .collect()
    }
}

/// The part of a figure that data are drawn in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// A place, short.
pub(super) fn px(place: f64) -> String {
    match place.is_finite() {
        true => format!("{place:.1}"),
        false => "0.0".into(),
    }
}

/// Places as a list of points.
pub(super) fn points(places: impl IntoIterator<Item = (f64, f64)>) -> String {
    let places = places
        .into_iter()
        .map(|(x, y)| format!("{},{}", px(x), px(y)));
    places.collect::<Vec<_>>().join(" ")
}

/// A name as long as a figure bears.
pub(super) fn name(text: &str) -> String {
    shortened(text, NAME_CHARS)
}

/// A straight line.
pub(super) fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! {
        line class=(class) x1=(px(from.0)) y1=(px(from.1)) x2=(px(to.0)) y2=(px(to.1)) {}
    }
}

/// Words; `anchor` is "start", "middle" or "end".
pub(super) fn words(class: &str, at: (f64, f64), anchor: &str, text: &str) -> Markup {
    html! { text class=(class) x=(px(at.0)) y=(px(at.1)) text-anchor=(anchor) { (text) } }
}

/// Rules across the area with their values to the left, and what they are values of.
pub(super) fn y_axis(axis: &Axis, area: &Area, of: &str) -> Markup {
    html! {
        @for tick in axis.ticks() {
            (line("grid", (area.left, axis.at(tick)), (area.right, axis.at(tick))))
            (words("tick", (area.left - 6.0, axis.at(tick) + 4.0), "end", &tick_text(tick)))
        }
        (words("axis-name", (4.0, area.top - 10.0), "start", &name(of)))
    }
}

/// Values under the area, and what they are values of.
pub(super) fn x_axis(axis: &Axis, area: &Area, of: &str) -> Markup {
    html! {
        (line("axis", (area.left, area.bottom), (area.right, area.bottom)))
        @for tick in spaced(axis) {
            (line("axis", (axis.at(tick), area.bottom), (axis.at(tick), area.bottom + 4.0)))
            (words("tick", (axis.at(tick), area.bottom + 17.0), "middle", &tick_text(tick)))
        }
        (words("axis-name", (f64::midpoint(area.left, area.right), area.bottom + 34.0), "middle", of))
    }
}

/// Ticks whose labels do not overlap.
pub(super) fn spaced(axis: &Axis) -> Vec<f64> {
    const LABEL_PX: f64 = 44.0;
    let mut kept: Vec<f64> = Vec::new();
    for tick in axis.ticks() {
        let room = |last: &f64| (axis.at(tick) - axis.at(*last)).abs() >= LABEL_PX;
        if kept.last().is_none_or(room) {
            kept.push(tick);
        }
    }
    kept
}

/// A round value, without digits that say nothing: "20", "0.05", "5,000".
pub(super) fn tick_text(tick: f64) -> String {
    // Steps are sums of binary fractions: 0.30000000000000004 is 0.3.
    let rounded = (tick * 1e6).round() / 1e6;
    match tick.abs() {
        0.0 => "0".into(),
        size if (1e-4..1e3).contains(&size) => format!("{rounded}"),
        size if (1e3..1e15).contains(&size) => format_rate(tick),
        _ => format!("{tick:e}"),
    }
}

/// What stands around a drawing.
pub(super) struct Figure<'a> {
    pub(super) id: &'a str,
    pub(super) heading: &'a str,
    /// What a reader who cannot see it is told.
    pub(super) alternative: &'a str,
    pub(super) height: f64,
    pub(super) legend: Vec<Markup>,
    pub(super) caption: &'a str,
}

impl Figure<'_> {
    /// The drawing with its heading, legend and caption.
    pub(super) fn around(&self, drawing: &Markup) -> Markup {
        html! {
            figure.chart id=(self.id) {
                div.chart-head { h5 { (self.heading) } }
                div.scroll {
                    svg.drawing viewBox=(format!("0 0 {} {}", px(WIDTH), px(self.height)))
                        role="img" aria-label=(self.alternative) { (drawing) }
                }
                @if !self.legend.is_empty() {
                    ul.legend { @for item in &self.legend { li { (item) } } }
                }
                figcaption { (self.caption) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_values_have_an_axis_and_lie_on_it(
            values in prop::collection::vec(any::<f64>(), 0..9), logarithmic: bool,
        ) {
            let Some(axis) = Axis::around(values.iter().copied(), logarithmic, 40.0, 700.0) else {
                prop_assert!(!values.iter().any(|v| v.abs() < DRAWN_MAX && (!logarithmic || *v > 0.0)));
                return Ok(());
            };
            for value in values {
                prop_assert!((40.0..=700.0).contains(&axis.at(value)), "{value} of {axis:?}");
            }
            prop_assert!(axis.ticks().len() <= 3 * TICKS_MAX);
            prop_assert!(axis.ticks().iter().all(|tick| tick.is_finite()));
        }
    }

    #[test]
    fn ticks_are_round() {
        let linear = Axis::exactly(0.0, 105.0, 0.0, 1.0).ticks();
        assert_eq!(linear, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let log = Axis::around([2.0, 90.0].into_iter(), true, 0.0, 1.0).unwrap();
        assert_eq!(log.ticks(), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let labels = [0.0, 0.1 + 0.2, 20.0, -4.0, 5000.0, 1e-7, 1e30].map(tick_text);
        assert_eq!(labels, ["0", "0.3", "20", "-4", "5,000", "1e-7", "1e30"]);
    }
}
