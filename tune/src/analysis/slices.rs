//! Computes slices of the response at the recommended setting.

use seekscope_run::tune::{HeatMap, Measured, Slice, SlicePoint};

use super::Analysis;

const POINTS: usize = 25;
const MAP_POINTS: usize = 12;

impl Analysis {
    /// Returns distinct levels of a knob over its range, at the recommended setting, with their coordinates.
    fn grid(&self, knob: usize, points: usize) -> Vec<(f64, f64)> {
        let mut grid: Vec<(f64, f64)> = Vec::new();
        let count = self.space.knobs()[knob].choices().unwrap_or(points);
        for nth in 0..count {
            let coordinate = (nth as f64 + 0.5) / count as f64;
            let level = self.moved(&self.best, knob, coordinate)[knob];
            if grid.iter().all(|(known, _)| *known != level) {
                grid.push((level, coordinate));
            }
        }
        grid
    }

    /// Returns the response along a knob; `None` for an unknown name.
    pub fn slice(&self, name: &str) -> Option<Slice> {
        let knob = self.space.index(name)?;
        let value_of = |level| self.space.knobs()[knob].value_of(level);
        let point = |(level, coordinate): (f64, f64)| {
            let levels = self.moved(&self.best, knob, coordinate);
            let [expected, low, high] = self.expected(&levels);
            SlicePoint {
                at: value_of(level),
                expected,
                low,
                high,
                works: self.believed.model.feasible(&self.features(&levels)),
            }
        };
        let known = self.believed.known.iter();
        let measured = known.map(|setting| Measured {
            at: value_of(setting.levels[knob]),
            value: setting.succeeds().then(|| self.goal.value(setting.mean())),
        });
        Some(Slice {
            knob: name.into(),
            points: self.grid(knob, POINTS).into_iter().map(point).collect(),
            measured: measured.collect(),
        })
    }

    /// Returns the response over two knobs; `None` for unknown names.
    pub fn heat_map(&self, first: &str, second: &str) -> Option<HeatMap> {
        let (a, b) = (self.space.index(first)?, self.space.index(second)?);
        let grids = [self.grid(a, MAP_POINTS), self.grid(b, MAP_POINTS)];
        let expected = |(_, i): &(f64, f64), (_, j): &(f64, f64)| {
            let mut point = self.space.point_of(&self.best);
            (point[a], point[b]) = (*i, *j);
            self.expected(&self.space.levels_at(&point))[0]
        };
        let values = |grid: &[(f64, f64)], knob: usize| {
            grid.iter()
                .map(|(level, _)| self.space.knobs()[knob].value_of(*level))
                .collect()
        };
        Some(HeatMap {
            knobs: [first.into(), second.into()],
            at: [values(&grids[0], a), values(&grids[1], b)],
            expected: (grids[0].iter())
                .map(|i| grids[1].iter().map(|j| expected(i, j)).collect())
                .collect(),
        })
    }
}
