//! Figures of lines and bars: their numbers for the script, and the places that it fills.
//! `web/src/line_chart.ts` and `web/src/bar_chart.ts` read this.

use maud::{Markup, html};
use serde::Serialize;

use crate::escape::visible;

/// Distinct colours in `web/src/page.css`.
const COLOURS: usize = 8;

/// What an axis shows, and so how it is divided. Values are in the unit named, never logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    /// 1 / (1 - p), logarithmic: 100 stands for the 99th percentile.
    Percentile,
    /// Requests in flight, logarithmic to base 2.
    Depth,
    /// Nanoseconds, logarithmic.
    LatencyNs,
    /// A number of things, from zero.
    Count,
    /// Per second, from zero.
    Rate,
    /// Per second, logarithmic.
    RateLog,
    /// Seconds since the run began.
    Seconds,
    /// Seconds since the trace began.
    TraceSeconds,
    /// Bytes, from zero.
    Bytes,
    /// Bytes, logarithmic to base 2.
    BytesLog,
    /// 0 to 1, shown as a percentage.
    Share,
}

/// Lines over one axis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LineChart {
    /// Of the figure's element.
    pub(crate) id: &'static str,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// Values stand for themselves: no line leads from one to the next.
    pub(crate) dots: bool,
    /// Ascending.
    pub(crate) xs: Vec<f64>,
    pub(crate) lines: Vec<Line>,
}

/// One line of a [`LineChart`].
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) label: String,
    /// Index into the colours of the page.
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    /// One per x; `None` where nothing is known.
    pub(crate) values: Vec<Option<f64>>,
    /// Index of the value that is marked as the knee.
    pub(crate) knee: Option<usize>,
}

impl Line {
    /// The line number `index` of a chart, told apart without colour too.
    pub(crate) fn numbered(index: usize, label: &str, values: Vec<Option<f64>>) -> Self {
        Self {
            label: visible(label),
            colour: index % COLOURS,
            dashed: index % 2 == 1,
            values,
            knee: None,
        }
    }
}

/// Groups of bars.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BarChart {
    /// Of the figure's element.
    pub(crate) id: &'static str,
    pub(crate) y: Scale,
    /// What stands under each group.
    pub(crate) groups: Vec<String>,
    /// In each group one bar per series.
    pub(crate) series: Vec<Line>,
}

/// A figure's place: heading, legend for more than one line, and what stands under it.
pub(crate) fn figure(id: &str, heading: &str, lines: &[Line], caption: &Markup) -> Markup {
    html! {
        figure.chart id=(id) {
            div.chart-head { h5 { (heading) } }
            div.plot {}
            @if lines.len() > 1 {
                ul.legend {
                    @for line in lines {
                        li {
                            span class={
                                "swatch line-" (line.colour) @if line.dashed { " dashed" }
                            } {}
                            bdi { (line.label) }
                        }
                    }
                }
            }
            figcaption { (caption) }
        }
    }
}
