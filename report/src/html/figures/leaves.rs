//! Collects leaf pages of one file for a figure: position in key order against offset in the file.

use seekscope_pattern::{Axis, DensityGrid};
use seekscope_run::LeafRecord;

use super::collector::{GRID_COLUMNS, byte_axis, figure};
use super::{FileFigures, PointBlock};
use crate::html::points::{Blobs, PointColumns};

/// Counts the leaf pages of one file into a grid, and keeps a sample of them.
pub(crate) struct LeafCollector {
    grid: DensityGrid,
    points: PointColumns,
    stride: u64,
}

impl LeafCollector {
    /// Creates a collector for `leaf_pages` leaves in a file of `file_bytes`; every `stride`-th becomes a
    /// point.
    pub(crate) fn new(leaf_pages: u64, file_bytes: u64, stride: usize) -> Self {
        let key_order = Axis {
            low: 0.0,
            high: leaf_pages.max(1) as f64,
            bins: GRID_COLUMNS,
        };
        Self {
            grid: DensityGrid::new(key_order, byte_axis(0, file_bytes.max(1))),
            points: PointColumns::default(),
            stride: stride.max(1) as u64,
        }
    }

    /// Counts a leaf.
    pub(crate) fn count(&mut self, leaf: &LeafRecord) {
        self.grid.add(leaf.ordinal as f64, leaf.offset as f64);
        if leaf.ordinal.is_multiple_of(self.stride) {
            self.points.push_leaf(leaf);
        }
    }

    /// Returns the figure with its caption.
    pub(crate) fn figures(self, label: String, caption: String, blobs: &mut Blobs) -> FileFigures {
        let none = DensityGrid::new(self.grid.x, self.grid.y);
        FileFigures {
            label,
            offset: figure(&[self.grid, none], caption, blobs),
            latency: None,
            points: PointBlock {
                count: self.points.len(),
                stride: usize::try_from(self.stride).unwrap_or(usize::MAX),
                blob: blobs.add(&self.points.encode()),
            },
        }
    }
}
