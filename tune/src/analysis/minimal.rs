//! Finds the smallest change: every knob that hardly helps, or may not help at all, goes back to its default.

use seekscope_run::tune::MinimalChange;

use super::Analysis;

/// A knob goes back to its default if that costs less than this share.
const LOSS_MAX: f64 = 0.01;

impl Analysis {
    /// Sets knobs back one after another, always the one that costs least, as long as each step costs less
    /// than 1 % and the setting is likely to work. Where some knobs are told from nothing, those that are not go back
    /// whatever the model says they cost: a duel against the best setting finds out if they did help.
    pub fn minimal_change(&self) -> MinimalChange {
        let model = &self.believed.model;
        let mean = |levels: &[f64]| model.mean(&self.features(levels));
        let defaults = self.space.defaults();
        let works_at_best = model.feasible(&self.features(&self.best));
        let needed: Vec<bool> = (0..defaults.len()).map(|knob| self.needs(knob)).collect();
        let some_are_needed = needed.iter().any(|needed| *needed);
        let (mut levels, mut reset) = (self.best.clone(), Vec::new());
        loop {
            let here = mean(&levels);
            let changed = (0..levels.len()).filter(|&knob| levels[knob] != defaults[knob]);
            let candidates = changed.filter_map(|knob| {
                let candidate = self.with_default(&levels, knob)?;
                let works = model.feasible(&self.features(&candidate));
                let loss = here - mean(&candidate);
                // Failing is a cost too: a safe setting is not given up to have fewer changes.
                let costs_nothing = loss < LOSS_MAX || (some_are_needed && !needed[knob]);
                let fine = costs_nothing && works >= works_at_best.min(0.9) - 0.05;
                fine.then_some((loss, knob, candidate))
            });
            let Some((_, knob, candidate)) = candidates.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            reset.push(self.space.knobs()[knob].name.clone());
            levels = candidate;
        }
        let (loss, deviation) = self.difference(&self.best, &levels);
        let share = |score: f64| 1.0 - (-score).exp();
        let names = self.space.knobs().iter().enumerate();
        MinimalChange {
            values: self.space.configuration(&levels).0,
            reset,
            changed: names
                .filter(|(i, _)| levels[*i] != defaults[*i])
                .map(|(_, knob)| knob.name.clone())
                .collect(),
            loss: share(loss),
            loss_low: share(loss - 1.96 * deviation),
            loss_high: share(loss + 1.96 * deviation),
        }
    }

    /// Returns the levels with one knob at its default, if the space allows it.
    fn with_default(&self, levels: &[f64], knob: usize) -> Option<Vec<f64>> {
        let mut values = self.space.configuration(levels);
        let knob = &self.space.knobs()[knob];
        values.0.insert(knob.name.clone(), knob.default.clone());
        self.space.levels_of(&values).ok()
    }

    /// Returns how much higher the score of `a` is than that of `b`, and the standard deviation of that
    /// difference.
    fn difference(&self, a: &[f64], b: &[f64]) -> (f64, f64) {
        let (process, unit) = self.believed.model.process();
        let (a, b) = (self.features(a), self.features(b));
        let ((mean_a, white_a), (mean_b, white_b)) = (process.joint(&a), process.joint(&b));
        let prior = process.prior_covariance(&a, &a) + process.prior_covariance(&b, &b)
            - 2.0 * process.prior_covariance(&a, &b);
        let explained: f64 = white_a
            .iter()
            .zip(&white_b)
            .map(|(a, b)| (a - b).powi(2))
            .sum();
        (
            unit * (mean_a - mean_b),
            unit * (prior - explained).max(0.0).sqrt(),
        )
    }
}
