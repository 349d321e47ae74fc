//! Evaluates what the model says about the knobs once a search is over: importance, slices of the response,
//! and the smallest change that keeps the gain.

mod importance;
mod minimal;
mod slices;
#[cfg(test)]
mod tests;

use crate::optimiser::{Believed, Goal, History, Optimiser};
use crate::space::Space;

/// The model after a session, for queries.
#[derive(Debug, Clone)]
pub struct Analysis {
    space: Space,
    goal: Goal,
    believed: Believed,
    /// Levels of the recommended setting.
    best: Vec<f64>,
}

impl Optimiser {
    /// Returns `None` before two settings have worked.
    pub fn analyse(&mut self, history: &History) -> Option<Analysis> {
        let believed = self.believe(history)?;
        let best = believed.incumbent()?.0.levels.clone();
        Some(Analysis {
            space: self.space().clone(),
            goal: self.goal(),
            believed,
            best,
        })
    }
}

impl Analysis {
    fn features(&self, levels: &[f64]) -> Vec<f64> {
        self.space.featurise(levels)
    }

    /// Returns the levels with one coordinate of the cube moved.
    fn moved(&self, levels: &[f64], knob: usize, coordinate: f64) -> Vec<f64> {
        let mut point = self.space.point_of(levels);
        point[knob] = coordinate;
        self.space.levels_at(&point)
    }

    /// Returns the expected value and the ends of its 95 % interval.
    fn expected(&self, levels: &[f64]) -> [f64; 3] {
        let belief = self.believed.model.at(&self.features(levels));
        let value = |z: f64| self.goal.value(belief.mean + z * belief.deviation);
        let (a, b) = (value(-1.96), value(1.96));
        [value(0.0), a.min(b), a.max(b)]
    }
}
