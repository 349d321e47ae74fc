//! Defines drawings: the numbers of a figure, and the words around it. Only a page shows them.

use hdrhistogram::Histogram;
use maud::Markup;

use crate::html::charts::{BarChart, HeatMap, LineChart};
use crate::html::figures::PhaseFigures;
use crate::html::percentiles;
use crate::html::tracks::TrackGroup;

/// A picture.
#[derive(Debug)]
pub struct Drawing(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    Figure(Figure, Chart),
    Tracks(TrackGroup),
    Places(Vec<Places>),
    /// Finished markup.
    Ready(Markup),
}

/// The words around a chart.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) heading: String,
    /// The meaning of the chart.
    pub(crate) meaning: Option<String>,
    /// How to read it.
    pub(crate) reading: String,
}

#[derive(Debug)]
pub(crate) enum Chart {
    Lines(LineChart),
    Bars(BarChart),
    Heat(HeatMap),
}

/// Calls, requests or leaves by their position in files or on disks, with a menu of these.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) heading: Option<String>,
    /// What the menu selects: "File", "Disk".
    pub(crate) what: &'static str,
    pub(crate) figure_heading: &'static str,
    pub(crate) kind: PlacesKind,
    pub(crate) figures: PhaseFigures,
    /// Text shown if there is no figure.
    pub(crate) without: &'static str,
}

/// What a mark represents, and from when its time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlacesKind {
    SinceTrace,
    SinceBuild,
    Leaves,
}

impl Figure {
    pub(crate) fn new(heading: impl Into<String>, reading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            meaning: None,
            reading: reading.into(),
        }
    }

    /// Returns the figure with its meaning.
    pub(crate) fn meaning(mut self, meaning: Option<String>) -> Self {
        self.meaning = meaning;
        self
    }

    pub(crate) fn lines(self, chart: LineChart) -> super::Block {
        self.of(Chart::Lines(chart))
    }

    pub(crate) fn bars(self, chart: BarChart) -> super::Block {
        self.of(Chart::Bars(chart))
    }

    pub(crate) fn heat(self, chart: HeatMap) -> super::Block {
        self.of(Chart::Heat(chart))
    }

    fn of(self, chart: Chart) -> super::Block {
        super::Block::Drawing(Drawing(Content::Figure(self, chart)))
    }
}

/// Returns latencies in ns as curves over percentiles, each with its name; `None` where there are too few to
/// draw.
pub fn latency_curves(
    id: &str,
    heading: &str,
    reading: &str,
    histograms: &[(String, &Histogram<u64>)],
) -> Option<super::Block> {
    let named = histograms
        .iter()
        .map(|(label, histogram)| (label.as_str(), *histogram));
    let chart = percentiles::chart(id, named)?;
    Some(Figure::new(heading, reading).lines(chart))
}

impl From<Content> for super::Block {
    fn from(content: Content) -> Self {
        Self::Drawing(Drawing(content))
    }
}
