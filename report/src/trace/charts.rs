//! Draws lines over time and over sizes: rates, working sets, what a cache would miss.

use seekscope_pattern::{FileSlice, FileTrace};

use super::TraceReportInput;
use super::names::FileNames;
use super::tables::cache_size_steps;
use crate::html::charts::{Line, LineChart, Scale};

pub(super) const RATES: &str = "chart-rates";
pub(super) const WORKING_SET: &str = "chart-working-set";
pub(super) const GROWTH: &str = "chart-growth";
pub(super) const CACHE: &str = "chart-cache";

/// The most files whose lines can be distinguished.
const FILES_MAX: usize = 5;
/// The most slices that are drawn: a damaged analysis must not fill the memory.
const SLICES_MAX: u64 = 10_000;

/// Returns the charts that have something to draw.
pub(super) fn build(input: &TraceReportInput<'_>) -> Vec<LineChart> {
    [
        rates(input),
        working_set(input),
        growth(input),
        cache(input),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The slices of a trace as positions on an axis.
struct Slices {
    started_ns: u64,
    slice_ns: u64,
    count: usize,
}

impl Slices {
    fn of(input: &TraceReportInput<'_>) -> Option<Self> {
        let analysis = input.analysis;
        let slices = input.duration_ns().div_ceil(analysis.slice_ns.max(1));
        // A single slice shows no development.
        (2..=SLICES_MAX).contains(&slices).then_some(Self {
            started_ns: analysis.started_ns,
            slice_ns: analysis.slice_ns,
            count: usize::try_from(slices).ok()?,
        })
    }

    fn index(&self, slice: &FileSlice) -> Option<usize> {
        let since_ns = slice.started_ns.saturating_sub(self.started_ns);
        usize::try_from(since_ns / self.slice_ns)
            .ok()
            .filter(|&index| index < self.count)
    }

    /// Returns the middle of each slice, seconds since the beginning.
    fn middles_s(&self) -> Vec<f64> {
        let slice_s = self.slice_s();
        (0..self.count)
            .map(|index| (index as f64 + 0.5) * slice_s)
            .collect()
    }

    fn slice_s(&self) -> f64 {
        self.slice_ns as f64 / 1e9
    }

    fn chart(&self, id: &'static str, y: Scale, lines: Vec<Line>) -> Option<LineChart> {
        (!lines.is_empty())
            .then(|| LineChart::new(id, (Scale::TraceSeconds, y), self.middles_s(), lines))
    }
}

/// Draws reads, writes and syncs of all files.
fn rates(input: &TraceReportInput<'_>) -> Option<LineChart> {
    let slices = Slices::of(input)?;
    let count = |calls: fn(&FileSlice) -> u64| {
        let mut per_s = vec![Some(0.0); slices.count];
        for slice in input.analysis.files.iter().flat_map(|file| &file.slices) {
            if let Some(Some(rate)) = slices.index(slice).and_then(|i| per_s.get_mut(i)) {
                *rate += calls(slice) as f64 / slices.slice_s();
            }
        }
        per_s
    };
    let kinds: [(&str, Vec<Option<f64>>); 3] = [
        ("reads", count(|slice| slice.reads.map_or(0, |d| d.calls))),
        ("writes", count(|slice| slice.writes.map_or(0, |d| d.calls))),
        ("syncs", count(|slice| slice.syncs)),
    ];
    let occurs = |values: &[Option<f64>]| values.iter().flatten().any(|&rate| rate > 0.0);
    let lines = kinds.into_iter().filter(|(_, values)| occurs(values));
    let numbered = lines
        .enumerate()
        .map(|(i, (label, values))| Line::numbered(i, label, values));
    slices.chart(RATES, Scale::Rate, numbered.collect())
}

/// Returns the files with most distinct bytes read.
fn large_files<'a>(input: &TraceReportInput<'a>) -> Vec<&'a FileTrace> {
    let different = |file: &FileTrace| file.reads.pattern.as_ref().map_or(0, |p| p.distinct_bytes);
    let mut files: Vec<&FileTrace> = input
        .analysis
        .files
        .iter()
        .filter(|file| different(file) > 0)
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(different(file)));
    files.truncate(FILES_MAX);
    files
}

fn file_lines(
    input: &TraceReportInput<'_>,
    values: impl Fn(&FileTrace) -> Vec<Option<f64>>,
) -> Vec<Line> {
    let names = FileNames::of(input.analysis);
    let lines = large_files(input).into_iter().enumerate();
    lines
        .map(|(index, file)| Line::numbered(index, &names.short_name(&file.file), values(file)))
        .collect()
}

/// Draws the distinct bytes read in each slice.
fn working_set(input: &TraceReportInput<'_>) -> Option<LineChart> {
    let slices = Slices::of(input)?;
    let values = |file: &FileTrace| {
        let mut values = vec![Some(0.0); slices.count];
        for slice in &file.slices {
            let value = slices.index(slice).and_then(|i| values.get_mut(i));
            if let (Some(value), Some(reads)) = (value, slice.reads) {
                *value = Some(reads.distinct_bytes as f64);
            }
        }
        values
    };
    slices.chart(WORKING_SET, Scale::Bytes, file_lines(input, values))
}

/// Draws the distinct bytes read since the beginning.
fn growth(input: &TraceReportInput<'_>) -> Option<LineChart> {
    let slices = Slices::of(input)?;
    let values = |file: &FileTrace| {
        let mut new_bytes = vec![0u64; slices.count];
        for slice in &file.slices {
            let value = slices.index(slice).and_then(|i| new_bytes.get_mut(i));
            if let (Some(value), Some(reads)) = (value, slice.reads) {
                *value += reads.new_bytes;
            }
        }
        let sums = new_bytes.iter().scan(0u64, |sum, new| {
            *sum = sum.saturating_add(*new);
            Some(Some(*sum as f64))
        });
        sums.collect()
    };
    slices.chart(GROWTH, Scale::Bytes, file_lines(input, values))
}

/// Draws the miss ratio by cache size, for all files together.
fn cache(input: &TraceReportInput<'_>) -> Option<LineChart> {
    let reuse = &input.analysis.reuse;
    let sizes = cache_size_steps(reuse);
    if sizes.len() < 2 {
        return None;
    }
    let ratios = sizes.iter().map(|&size| reuse.miss_ratio(size)).collect();
    Some(LineChart::new(
        CACHE,
        (Scale::BytesLog, Scale::Share),
        sizes.iter().map(|&size| size as f64).collect(),
        vec![Line::numbered(0, "missed", ratios)],
    ))
}
