//! Draws the curve of cache misses by cache size, with its error.

use seekscope_doctor::answers::MemoryPoint;

use super::DoctorReportInput;
use crate::html::charts::{Line, LineChart, Scale};
use crate::page::{Block, Figure};

const ID: &str = "chart-memory";

/// Returns `None` where there are fewer than two different sizes.
pub(super) fn figure(input: &DoctorReportInput<'_>) -> Option<Block> {
    const READING: &str = "Of the reads that now go to the file, the share that still would, by the size of the \
        cache; dashed: how far that may be off.";
    Some(Figure::new("Reads that a cache would miss", READING).lines(chart(input)?))
}

fn chart(input: &DoctorReportInput<'_>) -> Option<LineChart> {
    let answer = input.answers().memory.as_ref()?;
    let cache_bytes = answer.cache_bytes.unwrap_or(0);
    let size = |point: &MemoryPoint| cache_bytes.saturating_add(point.added_bytes) as f64;
    // The axis is logarithmic.
    let points: Vec<&MemoryPoint> = answer
        .points
        .iter()
        .filter(|point| size(point) > 0.0)
        .collect();
    if points.len() < 2 {
        return None;
    }
    let ratios = |by: f64| {
        let ratio = |point: &&MemoryPoint| Some((point.miss_ratio + by).clamp(0.0, 1.0));
        points.iter().map(ratio).collect()
    };
    let mut lines = vec![Line::numbered(0, "missed", ratios(0.0))];
    if answer.error > 0.0 {
        for (label, by) in [("at most", answer.error), ("at least", -answer.error)] {
            let line = Line::numbered(1, label, ratios(by));
            lines.push(Line { colour: 6, ..line });
        }
    }
    let sizes = points.iter().map(|point| size(point)).collect();
    Some(LineChart::new(
        ID,
        (Scale::BytesLog, Scale::Share),
        sizes,
        lines,
    ))
}
