//! Builds figures of lines and bars: their numbers for the script, and the elements that it fills.
//! `web/src/line_chart.ts` and `web/src/bar_chart.ts` read this.

use maud::{Markup, html};
use seekscope_pattern::{Axis, DensityGrid};
use serde::Serialize;

use super::points::{Blobs, push_counts};
use crate::escape::visible;

/// Number of distinct colours in `web/src/page.css`.
const COLOURS: usize = 8;

/// What an axis shows, and therefore how it is divided. Values are in the unit named, never logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    /// 1 / (1 - p), logarithmic: 100 stands for the 99th percentile.
    Percentile,
    /// Requests in flight, logarithmic to base 2.
    Depth,
    /// Nanoseconds, logarithmic.
    LatencyNs,
    /// A count, from zero.
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
    /// Any number, with the name given by the chart.
    Value,
    /// Any number, positive and logarithmic.
    ValueLog,
    /// One position for each of the chart's groups.
    Groups,
}

impl Scale {
    /// Returns the scale of any number, logarithmic or not.
    pub(crate) fn value(is_logarithmic: bool) -> Self {
        match is_logarithmic {
            true => Self::ValueLog,
            false => Self::Value,
        }
    }
}

/// A chart of lines over one axis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LineChart {
    /// Id of the figure's element.
    pub(crate) id: String,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// Values are separate points: no line connects them.
    pub(crate) dots: bool,
    /// Positions on the axis, ascending.
    pub(crate) xs: Vec<f64>,
    pub(crate) lines: Vec<Line>,
    /// Moments marked across the lines.
    pub(crate) marks: Vec<Mark>,
    /// What the axes count or measure, where their scale does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) y_name: Option<String>,
    /// Labels at the whole numbers of an axis of [`Scale::Groups`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<String>,
}

impl LineChart {
    /// Creates a chart whose values are connected by lines, without marks.
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

/// An event at a position of an x axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) label: String,
}

/// One line of a [`LineChart`].
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) label: String,
    /// Index into the page's colours.
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    /// One value per x; `None` where it is not known.
    pub(crate) values: Vec<Option<f64>>,
    /// Index of the value that is marked as the knee.
    pub(crate) knee: Option<usize>,
    /// Ends of each value's interval; empty if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) intervals: Vec<Option<(f64, f64)>>,
    /// Values are marked by this shape, and no line connects them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<Shape>,
    /// Text for each value in place of label and number; empty if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// The shape of a mark: marks are distinguished by shape, so that colour is not needed.
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
    /// Returns line number `index` of a chart, which can be distinguished without colour too.
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

    /// Returns marks in place of a line, each with its value and its text; names in the texts need not be made
    /// visible yet.
    pub(crate) fn marked(
        (shape, colour): (Shape, usize),
        label: &str,
        marks: impl IntoIterator<Item = Option<(f64, String)>>,
    ) -> Self {
        let marks = marks.into_iter().map(Option::unzip);
        let (values, notes): (Vec<_>, Vec<Option<String>>) = marks.unzip();
        let notes = notes
            .into_iter()
            .map(|note| visible(&note.unwrap_or_default()));
        Self {
            shape: Some(shape),
            colour,
            dashed: false,
            notes: notes.collect(),
            ..Self::numbered(0, label, values)
        }
    }

    /// Returns the line dashed or not, whatever its number.
    pub(crate) fn dashed(self, dashed: bool) -> Self {
        Self { dashed, ..self }
    }
}

/// A chart of groups of bars.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BarChart {
    /// Id of the figure's element.
    pub(crate) id: String,
    pub(crate) y: Scale,
    /// Label under each group.
    pub(crate) groups: Vec<String>,
    /// Series with one bar in each group.
    pub(crate) series: Vec<Line>,
    /// The quantity that the groups are sizes of, in rising order; `None` if they are names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x_name: Option<String>,
    /// What the bars count or measure, where their scale does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) y_name: Option<String>,
}

impl BarChart {
    /// Creates a chart whose groups have names.
    pub(crate) fn new(
        id: impl Into<String>,
        y: Scale,
        groups: Vec<String>,
        series: Vec<Line>,
    ) -> Self {
        Self {
            id: id.into(),
            y,
            groups,
            series,
            x_name: None,
            y_name: None,
        }
    }
}

/// A density of latencies over time, seconds since the run began against the decimal logarithm of ns.
/// `web/src/heat_map.ts` reads this.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HeatMap {
    /// Id of the figure's element.
    pub(crate) id: String,
    x: Axis,
    y: Axis,
    /// Id of the blob with the counts.
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

/// Returns a figure's element: heading, legend for more than one line, and caption.
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

/// Returns a sample of a line or its marks.
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
