//! Draws runs by length and gaps by distance as bars, and the course of a watched layout as lines.

use std::collections::BTreeSet;

use seekscope_run::{LayoutFile, LayoutMoment, ScanOrder};

use super::{LayoutReportInput, detailed, file_name};
use crate::escape::shortened;
use crate::html::charts::{BarChart, Line, LineChart, Scale};
use crate::numbers::format_block;

/// The most files whose bars or lines can be distinguished.
const FILES_MAX: usize = 5;
const NAME_CHARS: usize = 60;

/// Draws how many runs have each length.
pub(super) fn runs(input: &LayoutReportInput<'_>) -> Option<BarChart> {
    by_size("chart-runs", ("length", "runs"), &shown(input), |order| {
        order.run_lengths.clone()
    })
}

/// Draws how many steps have each distance, in both directions together.
pub(super) fn gaps(input: &LayoutReportInput<'_>) -> Option<BarChart> {
    by_size(
        "chart-gaps",
        ("distance", "steps"),
        &shown(input),
        |order| {
            let points = order.gaps.iter();
            points
                .map(|(from, forward, backward)| (*from, forward.saturating_add(*backward)))
                .collect()
        },
    )
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

/// Draws counts over sizes, from each to the double of it; a size that one file lacks is zero there.
fn by_size(
    id: &'static str,
    (x_name, y_name): (&str, &str),
    files: &[(&LayoutFile, &ScanOrder)],
    points: impl Fn(&ScanOrder) -> Vec<(u64, u64)>,
) -> Option<BarChart> {
    let all: Vec<Vec<(u64, u64)>> = files.iter().map(|(_, order)| points(order)).collect();
    let found: BTreeSet<u64> = all.iter().flatten().map(|(from, _)| *from).collect();
    if found.len() < 2 {
        return None;
    }
    let sizes = without_holes(found);
    let lines = files.iter().zip(&all).enumerate();
    let lines = lines.map(|(index, ((file, _), points))| {
        let count = |size: &u64| {
            let point = points.iter().find(|(from, _)| from == size);
            Some(point.map_or(0.0, |(_, count)| *count as f64))
        };
        Line::numbered(index, &label(file), sizes.iter().map(count).collect()).dashed(false)
    });
    let name = |size: &u64| match size {
        0 => "no gap".to_string(),
        size => format_block(*size),
    };
    let groups = sizes.iter().map(name).collect();
    Some(BarChart {
        x_name: Some(x_name.into()),
        y_name: Some(y_name.into()),
        ..BarChart::new(id, Scale::Count, groups, lines.collect())
    })
}

/// Adds the sizes between those that were found: bars stand at even distances, so that one which none of the files has
/// must have its place, too.
fn without_holes(mut sizes: BTreeSet<u64>) -> BTreeSet<u64> {
    let least = sizes.iter().copied().find(|size| *size > 0);
    let most = sizes.last().copied().unwrap_or(0);
    let double = |size: &u64| size.checked_mul(2).filter(|size| *size <= most);
    sizes.extend(std::iter::successors(least, double));
    sizes
}

fn label(file: &LayoutFile) -> String {
    shortened(&file_name(file), NAME_CHARS)
}

/// Draws the sequential share at each checkpoint that was seen.
pub(super) fn history(input: &LayoutReportInput<'_>) -> Option<LineChart> {
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
        "chart-history",
        (Scale::Seconds, Scale::Share),
        xs,
        lines.collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_without_a_gap_stand_apart_and_no_size_is_left_out() {
        let file = LayoutFile::default();
        let order = ScanOrder {
            gaps: vec![(0, 700, 0), (32_768, 3, 1), (131_072, 0, 2)],
            ..ScanOrder::default()
        };
        let files = [(&file, &order)];
        let chart = by_size("chart-gaps", ("distance", "steps"), &files, |order| {
            order
                .gaps
                .iter()
                .map(|(from, f, b)| (*from, f + b))
                .collect()
        });
        let chart = chart.unwrap();
        assert_eq!(chart.groups, ["no gap", "32 KiB", "64 KiB", "128 KiB"]);
        let counts = [700.0, 4.0, 0.0, 2.0].map(Some);
        assert_eq!(chart.series[0].values, counts);
        assert_eq!(chart.y_name.as_deref(), Some("steps"));
    }
}
