//! Collects events of one file, or requests of one disk, for two figures.

use seekscope_pattern::{Axis, DensityGrid};
use seekscope_run::{IoEvent, IoKind};

use super::{Figure, FileFigures, PointBlock};
use crate::html::points::{Blobs, PointColumns, push_counts};

/// Grid columns: about one per two screen pixels of a figure half a window wide.
pub(super) const GRID_COLUMNS: usize = 600;
pub(super) const GRID_ROWS: usize = 300;

/// Limits on the contents of figures, which determine nearly all of a page's size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FigureLimits {
    /// Number of files with a figure, and of disks; the tables have the others.
    pub(crate) files: usize,
    pub(crate) disks: usize,
    /// The most points for zooming in; of more events every k-th becomes one.
    pub(crate) points: u64,
}

impl FigureLimits {
    /// Limits for a page that shows nothing else.
    pub(crate) const ALONE: Self = Self {
        files: 12,
        disks: 8,
        points: 1_000_000,
    };

    /// Returns k, where every k-th event becomes a point.
    pub(crate) fn stride(&self, events: u64) -> usize {
        usize::try_from(events.div_ceil(self.points).max(1)).unwrap_or(usize::MAX)
    }
}

/// The stretch of time that figures show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeSpan {
    started_ns: u64,
    /// Unit of the points' time column.
    unit_ns: u64,
    axis: Axis,
}

impl TimeSpan {
    /// Creates the span between two times, CLOCK_MONOTONIC ns.
    pub(crate) fn new(started_ns: u64, ended_ns: u64) -> Self {
        let duration_ns = ended_ns.saturating_sub(started_ns).max(1);
        Self {
            started_ns,
            // Microseconds, unless the span is longer than 71 minutes and 32 bits would overflow.
            unit_ns: duration_ns.div_ceil(u64::from(u32::MAX)).max(1000),
            axis: Axis {
                low: 0.0,
                high: duration_ns as f64 / 1e9,
                bins: GRID_COLUMNS,
            },
        }
    }

    /// Returns seconds per unit of the points' time column.
    pub(crate) fn unit_s(&self) -> f64 {
        self.unit_ns as f64 / 1e9
    }
}

/// Returns an axis of offsets or positions from `low` to `high` bytes.
pub(crate) fn byte_axis(low: u64, high: u64) -> Axis {
    Axis {
        low: low as f64,
        high: high as f64,
        bins: GRID_ROWS,
    }
}

/// Returns an axis of whole decades around the latencies, each given as shortest and longest.
pub(crate) fn latency_axis(ranges_ns: impl Iterator<Item = (u64, u64)>) -> Axis {
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    for (shortest_ns, longest_ns) in ranges_ns {
        low = low.min(log10_ns(shortest_ns));
        high = high.max(log10_ns(longest_ns));
    }
    let low = if low.is_finite() { low.floor() } else { 0.0 };
    Axis {
        low,
        high: high.ceil().max(low + 1.0),
        bins: GRID_ROWS,
    }
}

fn log10_ns(latency_ns: u64) -> f64 {
    (latency_ns.max(1) as f64).log10()
}

/// The grids and points of one file, while events are being counted.
pub(crate) struct Collector {
    time: TimeSpan,
    offset: [DensityGrid; 2],
    latency: [DensityGrid; 2],
    points: PointColumns,
    unknown_offsets: u64,
}

impl Collector {
    pub(crate) fn new(time: TimeSpan, offset: Axis, latency: Axis) -> Self {
        let pair = |y| [time.axis; 2].map(|x| DensityGrid::new(x, y));
        Self {
            time,
            offset: pair(offset),
            latency: pair(latency),
            points: PointColumns::default(),
            unknown_offsets: 0,
        }
    }

    /// Counts a read or write; with `keep` it becomes a point too. Other events are ignored.
    pub(crate) fn count(&mut self, event: &IoEvent, keep: bool) {
        let direction = match event.op.kind() {
            IoKind::Read => 0,
            IoKind::Write => 1,
            IoKind::Sync | IoKind::Discard => return,
        };
        let since_start_ns = event.t_ns.saturating_sub(self.time.started_ns);
        let seconds = since_start_ns as f64 / 1e9;
        match event.offset {
            Some(offset) => self.offset[direction].add(seconds, offset as f64),
            None => self.unknown_offsets += 1,
        }
        self.latency[direction].add(seconds, log10_ns(event.latency_ns));
        if keep {
            self.points.push(since_start_ns / self.time.unit_ns, event);
        }
    }

    /// Returns the number of points kept so far.
    pub(crate) fn points(&self) -> usize {
        self.points.len()
    }

    /// Returns the number of events that do not appear in the figure of offsets.
    pub(crate) fn unknown_offsets(&self) -> u64 {
        self.unknown_offsets
    }

    /// Returns the figures with their captions; each point represents `stride` events.
    pub(crate) fn figures(
        self,
        label: String,
        [offset, latency]: [String; 2],
        stride: usize,
        blobs: &mut Blobs,
    ) -> FileFigures {
        FileFigures {
            label,
            offset: figure(&self.offset, offset, blobs),
            latency: Some(figure(&self.latency, latency, blobs)),
            points: PointBlock {
                count: self.points.len(),
                stride,
                blob: blobs.add(&self.points.encode()),
            },
        }
    }
}

pub(super) fn figure(grids: &[DensityGrid; 2], caption: String, blobs: &mut Blobs) -> Figure {
    let [reads, writes] = grids;
    let mut bytes = Vec::with_capacity(reads.counts.len() + writes.counts.len());
    push_counts(&mut bytes, &reads.counts);
    push_counts(&mut bytes, &writes.counts);
    Figure {
        x: reads.x,
        y: reads.y,
        blob: blobs.add(&bytes),
        caption,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_axis_spans_whole_decades() {
        let axis = |ranges: &[(u64, u64)]| {
            let axis = latency_axis(ranges.iter().copied());
            (axis.low, axis.high)
        };
        assert_eq!(axis(&[(700, 20_000), (3_000, 9_000_000)]), (2.0, 7.0));
        assert_eq!(axis(&[]), (0.0, 1.0));
        assert_eq!(axis(&[(1000, 1000)]), (3.0, 4.0));
    }
}
