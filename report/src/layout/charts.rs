//! Draws lines: runs by length, gaps by distance, and the course of a watched layout.

use seekscope_run::{LayoutFile, LayoutMoment, ScanOrder};

use super::{LayoutReportInput, detailed, file_name};
use crate::escape::shortened;
use crate::html::charts::{Line, LineChart, Scale};

pub(super) const RUNS: &str = "chart-runs";
pub(super) const GAPS: &str = "chart-gaps";
pub(super) const HISTORY: &str = "chart-history";

/// Most files whose lines can be distinguished.
const FILES_MAX: usize = 5;
const NAME_CHARS: usize = 60;

/// Returns the charts that have something to draw.
pub(super) fn build(input: &LayoutReportInput<'_>) -> Vec<LineChart> {
    let files = shown(input);
    let runs = |order: &ScanOrder| {
        let points = order.run_lengths.iter();
        points.map(|(from, runs)| (*from, *runs)).collect()
    };
    let gaps = |order: &ScanOrder| {
        let points = order.gaps.iter();
        points
            .map(|(from, forward, backward)| (*from, forward.saturating_add(*backward)))
            .collect()
    };
    [
        by_size(RUNS, &files, runs),
        by_size(GAPS, &files, gaps),
        history(input),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the named files, else those with most to gain; only files with an order.
fn shown<'a>(input: &LayoutReportInput<'a>) -> Vec<(&'a LayoutFile, &'a ScanOrder)> {
    let Some(measurement) = input.measurement() else {
        return Vec::new();
    };
    let ordered = |file: &'a LayoutFile| Some((file, file.order.as_ref()?));
    let named: Vec<_> = detailed(measurement).filter_map(ordered).collect();
    let all = || measurement.files.iter().filter_map(ordered).collect();
    let mut files = if named.is_empty() { all() } else { named };
    files.truncate(FILES_MAX);
    files
}

/// Draws counts over sizes; a size that one file lacks is zero there.
fn by_size(
    id: &'static str,
    files: &[(&LayoutFile, &ScanOrder)],
    points: impl Fn(&ScanOrder) -> Vec<(u64, u64)>,
) -> Option<LineChart> {
    let all: Vec<Vec<(u64, u64)>> = files.iter().map(|(_, order)| points(order)).collect();
    let mut sizes: Vec<u64> = all.iter().flatten().map(|(from, _)| *from).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return None;
    }
    let lines = files.iter().zip(&all).enumerate();
    let lines = lines.map(|(index, ((file, _), points))| {
        let count = |size: &u64| {
            let point = points.iter().find(|(from, _)| from == size);
            Some(point.map_or(0.0, |(_, count)| *count as f64))
        };
        Line::numbered(index, &label(file), sizes.iter().map(count).collect())
    });
    let xs = sizes.iter().map(|size| *size as f64).collect();
    Some(LineChart::new(
        id,
        (Scale::BytesLog, Scale::Count),
        xs,
        lines.collect(),
    ))
}

fn label(file: &LayoutFile) -> String {
    shortened(&file_name(file), NAME_CHARS)
}

/// Draws the sequential share at each checkpoint that was seen.
fn history(input: &LayoutReportInput<'_>) -> Option<LineChart> {
    let measurement = input.measurement()?;
    let mut times: Vec<u64> = measurement.history.iter().map(|m| m.t_ns).collect();
    times.sort_unstable();
    times.dedup();
    if times.len() < 2 {
        return None;
    }
    let moments = |file: &LayoutFile| -> Vec<&LayoutMoment> {
        let own = measurement.history.iter();
        own.filter(|m| m.file_id == file.file_id).collect()
    };
    let watched = measurement.files.iter().map(|file| (file, moments(file)));
    let watched = watched.filter(|(_, moments)| !moments.is_empty());
    let lines = watched.take(FILES_MAX).enumerate();
    let lines = lines.map(|(index, (file, moments))| {
        let value = |t: &u64| {
            let moment = moments.iter().find(|m| m.t_ns == *t);
            moment.map(|m| m.sequential_share)
        };
        Line::numbered(index, &label(file), times.iter().map(value).collect())
    });
    let started_ns = input.document.started.monotonic_ns;
    let seconds = |t: &u64| t.saturating_sub(started_ns) as f64 / 1e9;
    let xs = times.iter().map(seconds).collect();
    Some(LineChart::new(
        HISTORY,
        (Scale::Seconds, Scale::Share),
        xs,
        lines.collect(),
    ))
}
