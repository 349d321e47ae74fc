//! A scatter plot of any number of points in bounded space: how many fall into each cell.

use serde::{Deserialize, Serialize};

/// One axis of a grid: `bins` equal cells between `low` and `high`, both in the caller's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub bins: usize,
}

impl Axis {
    /// Returns the cell of `value`; values outside go to the edge cells, so no point is lost.
    pub fn bin(&self, value: f64) -> usize {
        let span = self.high - self.low;
        if span <= 0.0 || self.bins == 0 {
            return 0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast to an integer takes what is below 0 for 0"
        )]
        let cell = ((value - self.low) / span * self.bins as f64) as usize;
        cell.min(self.bins - 1)
    }
}

/// Counts per cell, row by row from the lowest y.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DensityGrid {
    pub x: Axis,
    pub y: Axis,
    pub counts: Vec<u32>,
}

impl DensityGrid {
    /// Returns an empty grid.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self {
            x,
            y,
            counts: vec![0; x.bins * y.bins],
        }
    }

    /// Counts a point.
    pub fn add(&mut self, x: f64, y: f64) {
        let cell = self.y.bin(y) * self.x.bins + self.x.bin(x);
        if let Some(count) = self.counts.get_mut(cell) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the number of points counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&c| u64::from(c)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lands_in_a_cell() {
        let axis = |bins| Axis {
            low: 0.0,
            high: 10.0,
            bins,
        };
        let mut grid = DensityGrid::new(axis(5), axis(2));
        for (x, y) in [
            (0.0, 0.0),
            (9.99, 9.99),
            (10.0, 10.0),
            (-5.0, 50.0),
            (4.0, 5.0),
            (f64::NAN, 1.0),
        ] {
            grid.add(x, y);
        }
        assert_eq!(grid.total(), 6);
        assert_eq!(grid.counts, [2, 0, 0, 0, 0, 1, 0, 1, 0, 2]);
        let mut point = DensityGrid::new(
            Axis {
                low: 3.0,
                high: 3.0,
                bins: 4,
            },
            axis(1),
        );
        point.add(3.0, 1.0);
        assert_eq!(point.total(), 1);
    }
}
