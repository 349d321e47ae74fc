//! Computes what a model sees of a configuration: one number per feature.

use super::{Range, Space};

/// A feature is a position in a range, from 0 to 1, or one of several names that are merely equal or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Numeric,
    Category,
}

impl Space {
    /// Returns one feature per knob, and a second one for each knob with special values: which of them it
    /// has. The second number is the knob's index.
    pub(crate) fn features(&self) -> Vec<(Feature, usize)> {
        let mut features = Vec::new();
        for (i, knob) in self.knobs.iter().enumerate() {
            features.push(match knob.range {
                Range::Categorical { .. } | Range::Bool => (Feature::Category, i),
                _ => (Feature::Numeric, i),
            });
            if !knob.special.is_empty() {
                features.push((Feature::Category, i));
            }
        }
        features
    }

    /// Returns the features of levels. A special value has no particular position in its range.
    pub(crate) fn featurise(&self, levels: &[f64]) -> Vec<f64> {
        let mut features = Vec::with_capacity(levels.len());
        for (i, knob) in self.knobs.iter().enumerate() {
            let special = knob.special.iter().position(|s| *s == levels[i]);
            features.push(match special {
                Some(_) => 0.5,
                None => knob.position(levels[i], self.base(i, levels)),
            });
            if !knob.special.is_empty() {
                features.push(special.map_or(0.0, |nth| nth as f64 + 1.0));
            }
        }
        features
    }
}
