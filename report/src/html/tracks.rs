//! Stacks figures on one time axis: what happened when. `web/src/tracks.ts` reads this.

use maud::{Markup, html};
use serde::Serialize;

use super::charts::{Line, LineChart, Mark, Scale};
use crate::numbers::{format_mean_ns, format_rate, format_share};
use crate::table::{Cell, Table};
use seekscope_run::units::{format_bytes, whole};

/// Tracks that share an axis, a pointer and a zoom.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TrackGroup {
    /// Id of the element.
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) heading: &'static str,
    /// Ends of the axis, s since the run began; negative before.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Stretches of time that are shaded in all tracks.
    pub(crate) bands: Vec<Band>,
    /// Moments drawn across all tracks.
    pub(crate) marks: Vec<Mark>,
    pub(crate) tracks: Vec<Track>,
}

/// A labelled stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Band {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) label: String,
}

/// One figure of a group.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Track {
    #[serde(skip)]
    pub(crate) heading: &'static str,
    #[serde(flatten)]
    pub(crate) chart: LineChart,
}

impl TrackGroup {
    /// Returns mean, minimum and maximum of every line, for readers who see no figures.
    pub(crate) fn summary(&self) -> Table {
        let mut table = Table::new(1, &["", "mean", "least", "most"]);
        for track in &self.tracks {
            table.group(track.heading);
            for line in &track.chart.lines {
                table.row(summary_row(track.chart.y, line));
            }
        }
        if !self.bands.is_empty() {
            table.group(format!("shaded stretches of time: {}", self.bands.len()));
        }
        table
    }
}

fn summary_row(scale: Scale, line: &Line) -> [Cell; 4] {
    let values: Vec<f64> = line.values.iter().flatten().copied().collect();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    let cell = |value: Option<f64>| Cell::or(value.map(|value| text(scale, value)), "unknown");
    [
        line.label.as_str().into(),
        cell((!values.is_empty()).then_some(mean)),
        cell(least),
        cell(most),
    ]
}

fn text(scale: Scale, value: f64) -> String {
    match scale {
        Scale::LatencyNs => format_mean_ns(value),
        Scale::Bytes | Scale::BytesLog => format_bytes(whole(value)),
        Scale::Share => format_share(value),
        _ => format_rate(value),
    }
}

/// Returns the group's element: each track with its legend, which shows the values under the pointer.
pub(crate) fn tracks(group: &TrackGroup) -> Markup {
    html! {
        div.tracks id=(group.id) {
            div.chart-head {
                p.lead {
                    @if let Some(band) = group.bands.first() { span.swatch.band {} " " (band.label) }
                }
                output.moment {}
            }
            @for track in &group.tracks {
                figure.track id=(track.chart.id) {
                    figcaption.track-head {
                        h5 { (track.heading) }
                        ul.legend {
                            @for line in &track.chart.lines {
                                li {
                                    span class={ "swatch line-" (line.colour) @if line.dashed { " dashed" } } {}
                                    bdi { (line.label) } " " output {}
                                }
                            }
                        }
                    }
                    div.plot {}
                }
            }
        }
    }
}
