//! Figures of lines and bars: their numbers for the script, and the places that it fills.
//! `web/src/line_chart.ts` and `web/src/bar_chart.ts` read this.

use maud::{Markup, html};
use seekscope_pattern::{Axis, DensityGrid};
use serde::Serialize;

use super::points::{Blobs, push_counts};
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
    /// Any number, by the name that the chart gives it.
    Value,
    /// The same, positive and logarithmic.
    ValueLog,
    /// One place for each of the chart's groups.
    Groups,
}

/// Lines over one axis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LineChart {
    /// Of the figure's element.
    pub(crate) id: String,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// Values stand for themselves: no line leads from one to the next.
    pub(crate) dots: bool,
    /// Ascending.
    pub(crate) xs: Vec<f64>,
    pub(crate) lines: Vec<Line>,
    /// Moments drawn across the lines.
    pub(crate) marks: Vec<Mark>,
    /// What the axes of [`Scale::Value`] show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) y_name: Option<String>,
    /// What stands at each whole number of an axis of [`Scale::Groups`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<String>,
}

impl LineChart {
    /// A chart of lines between its values, without marks.
    pub(crate) fn new(
        id: impl Into<String>,
        (x, y): (Scale, Scale),
        xs: Vec<f64>,
        lines: Vec<Line>,
    ) -> Self {
        Self {
            id: id.into(),
            x,
            y,
            dots: false,
            xs,
            lines,
            marks: Vec::new(),
            x_name: None,
            y_name: None,
            groups: Vec::new(),
        }
    }
}

/// Something that happened at one place of an x axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) label: String,
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
    /// Ends of each value's interval; empty where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) intervals: Vec<Option<(f64, f64)>>,
    /// Values are marked by this shape, and no line leads from one to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<Shape>,
    /// What to say of each value in place of label and number; empty where there is nothing else to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// What a mark looks like: told apart by shape, so that colour is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    Dot,
    Square,
    Plus,
    Triangle,
    Diamond,
    Cross,
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
            intervals: Vec::new(),
            shape: None,
            notes: Vec::new(),
        }
    }

    /// Marks in place of a line, each with what is to be said of it; names in `notes` need not be visible yet.
    pub(crate) fn marked(
        (shape, colour): (Shape, usize),
        label: &str,
        values: Vec<Option<f64>>,
        notes: Vec<String>,
    ) -> Self {
        Self {
            shape: Some(shape),
            colour,
            dashed: false,
            notes: notes.iter().map(|note| visible(note)).collect(),
            ..Self::numbered(0, label, values)
        }
    }

    /// The same, dashed or not, whatever its number.
    pub(crate) fn dashed(self, dashed: bool) -> Self {
        Self { dashed, ..self }
    }
}

/// Groups of bars.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BarChart {
    /// Of the figure's element.
    pub(crate) id: String,
    pub(crate) y: Scale,
    /// What stands under each group.
    pub(crate) groups: Vec<String>,
    /// In each group one bar per series.
    pub(crate) series: Vec<Line>,
}

/// A density of latencies over time, seconds since the run began against the decimal logarithm of ns.
/// `web/src/heat_map.ts` reads this.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HeatMap {
    /// Of the figure's element.
    pub(crate) id: String,
    x: Axis,
    y: Axis,
    /// The blob with the counts.
    blob: String,
}

impl HeatMap {
    pub(crate) fn new(id: String, grid: &DensityGrid, blobs: &mut Blobs) -> Self {
        let mut bytes = Vec::with_capacity(grid.counts.len());
        push_counts(&mut bytes, &grid.counts);
        // The page's densities are pairs: reads, then writes.
        bytes.resize(bytes.len() + grid.counts.len(), 0);
        Self {
            id,
            x: grid.x,
            y: grid.y,
            blob: blobs.add(&bytes),
        }
    }
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
                        li { (swatch(line)) bdi { (line.label) } }
                    }
                }
            }
            figcaption { (caption) }
        }
    }
}

/// What a line or its marks look like.
fn swatch(line: &Line) -> Markup {
    let look = match line.shape {
        None => {
            return html! { span class={ "swatch line-" (line.colour) @if line.dashed { " dashed" } } {} };
        }
        Some(Shape::Dot) => "●",
        Some(Shape::Square) => "■",
        Some(Shape::Plus) => "+",
        Some(Shape::Triangle) => "▽",
        Some(Shape::Diamond) => "◇",
        Some(Shape::Cross) => "×",
    };
    html! { span class={ "shape line-" (line.colour) } aria-hidden="true" { (look) } " " }
}
