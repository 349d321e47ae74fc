//! Converts between the unit interval and a knob's levels: one number per knob, in its own unit.

use super::configuration::value_from_number;
use super::{Knob, Range, Scale, Space, Value};

/// The part of the unit interval that each special value gets: a tenth finds it within some 20 draws.
const SPECIAL_SPAN: f64 = 0.1;
/// Significant digits of proposed floats: people read them, and no server notices the fifth.
const DIGITS: i32 = 4;

impl Knob {
    /// Returns the level of a value, if the knob can have it at all (ignoring bounds).
    pub(super) fn level_of(&self, value: &Value) -> Option<f64> {
        match (&self.range, value) {
            (Range::Bool, Value::Bool(on)) => Some(f64::from(u8::from(*on))),
            (Range::Categorical { choices }, Value::Text(text)) => {
                choices.iter().position(|c| c == text).map(|i| i as f64)
            }
            (Range::Bool | Range::Categorical { .. }, _) => None,
            (_, value) => value.number(),
        }
    }

    /// Returns the value of a level; see [`Knob::level_of`].
    pub(crate) fn value_of(&self, level: f64) -> Value {
        match &self.range {
            Range::Bool => Value::Bool(level > 0.5),
            Range::Categorical { choices } => {
                Value::Text(choices.get(index(level)).cloned().unwrap_or_default())
            }
            _ => value_from_number(level, matches!(self.range, Range::Integer { .. })),
        }
    }

    /// Returns how many names the knob chooses from; `None` for numbers.
    pub(crate) fn choices(&self) -> Option<usize> {
        match &self.range {
            Range::Categorical { choices } => Some(choices.len()),
            Range::Bool => Some(2),
            _ => None,
        }
    }

    /// Returns the lowest and highest level, given the level of the knob whose share this one is.
    pub(super) fn bounds(&self, base: Option<f64>) -> (f64, f64) {
        let base = base.unwrap_or(1.0);
        match &self.range {
            Range::Float { low, high, .. } => (low * base, high * base),
            Range::Integer { low, high, .. } if self.share_of.is_none() => {
                (*low as f64, *high as f64)
            }
            // Whole-number shares could only be 0 or 1, so they are given in hundredths.
            Range::Integer { low, high, .. } => {
                let high = (*high as f64 / 100.0 * base).floor();
                ((*low as f64 / 100.0 * base).ceil().min(high), high)
            }
            Range::Ordinal { values } => (
                values.first().copied().unwrap_or(0.0),
                values.last().copied().unwrap_or(0.0),
            ),
            Range::Categorical { choices } => (0.0, choices.len() as f64 - 1.0),
            Range::Bool => (0.0, 1.0),
        }
    }

    pub(super) fn admits(&self, level: f64, base: Option<f64>) -> bool {
        if self.special.contains(&level) {
            return true;
        }
        let (low, high) = self.bounds(base);
        // A share times its base may be off in the last digit.
        let slack = 1e-9 * (high - low).abs();
        let inside = level >= low - slack && level <= high + slack;
        inside
            && match &self.range {
                Range::Integer { .. } => level.fract() == 0.0,
                Range::Ordinal { values } => values.contains(&level),
                _ => true,
            }
    }

    /// Returns the position in the range, 0 to 1, of a level that is not special; choices count from 0.
    pub(super) fn position(&self, level: f64, base: Option<f64>) -> f64 {
        let (low, high) = self.bounds(base);
        match &self.range {
            Range::Categorical { .. } | Range::Bool => level,
            Range::Ordinal { values } => {
                let below = values.iter().filter(|v| **v < level).count();
                (below as f64 / (values.len() as f64 - 1.0)).min(1.0)
            }
            Range::Float {
                scale: Scale::Log, ..
            }
            | Range::Integer {
                scale: Scale::Log, ..
            } if low > 0.0 && high > low => {
                ((level.max(low) / low).ln() / (high / low).ln()).clamp(0.0, 1.0)
            }
            _ if high > low => ((level - low) / (high - low)).clamp(0.0, 1.0),
            _ => 0.5,
        }
    }

    /// Returns the level at a coordinate of the unit cube, snapped to what can be represented.
    pub(super) fn level_at(&self, coordinate: f64, base: Option<f64>) -> f64 {
        let coordinate = if coordinate.is_finite() {
            coordinate.clamp(0.0, 1.0)
        } else {
            0.5
        };
        let specials = SPECIAL_SPAN * self.special.len() as f64;
        if coordinate < specials {
            return self.special[index(coordinate / SPECIAL_SPAN).min(self.special.len() - 1)];
        }
        let at = (coordinate - specials) / (1.0 - specials);
        let (low, high) = self.bounds(base);
        let nth = |count: usize| (at * count as f64).floor().min(count as f64 - 1.0);
        match &self.range {
            Range::Categorical { choices } => nth(choices.len()),
            Range::Bool => nth(2),
            Range::Ordinal { values } => values[index(nth(values.len()))],
            Range::Float { scale, .. } => {
                significant(between(low, high, *scale, at)).clamp(low, high)
            }
            Range::Integer { scale, .. } => between(low, high, *scale, at).round().clamp(low, high),
        }
    }

    /// Returns a coordinate that leads back to the level: the inverse of [`Knob::level_at`].
    pub(super) fn coordinate(&self, level: f64, base: Option<f64>) -> f64 {
        if let Some(nth) = self.special.iter().position(|special| *special == level) {
            return (nth as f64 + 0.5) * SPECIAL_SPAN;
        }
        let specials = SPECIAL_SPAN * self.special.len() as f64;
        let position = self.position(level, base);
        let middle = |nth: f64, count: usize| (nth + 0.5) / count as f64;
        let at = match &self.range {
            Range::Categorical { choices } => middle(position, choices.len()),
            Range::Bool => middle(position, 2),
            Range::Ordinal { values } => {
                middle(position * (values.len() as f64 - 1.0), values.len())
            }
            _ => position,
        };
        specials + at * (1.0 - specials)
    }
}

fn between(low: f64, high: f64, scale: Scale, at: f64) -> f64 {
    match scale {
        Scale::Log if low > 0.0 => low * (high / low).powf(at),
        _ => low + at * (high - low),
    }
}

fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a double has 308 decades")]
    let decade = value.abs().log10().floor() as i32;
    let unit = 10f64.powi(DIGITS - 1 - decade);
    let rounded = (value * unit).round() / unit;
    if rounded.is_finite() { rounded } else { value }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and every use checks the bounds"
)]
fn index(level: f64) -> usize {
    level as usize
}

impl Space {
    /// Returns the levels at a point of the unit cube. Knobs that do not exist there have their default.
    pub(crate) fn levels_at(&self, point: &[f64]) -> Vec<f64> {
        let mut levels = Vec::with_capacity(self.knobs.len());
        for (i, knob) in self.knobs.iter().enumerate() {
            let base = self.base(i, &levels);
            let drawn = knob.level_at(point.get(i).copied().unwrap_or(0.5), base);
            levels.push(drawn);
            if !self.active(i, &levels) {
                levels[i] = self.defaults[i];
            }
        }
        levels
    }

    /// Returns the point of the unit cube for the levels.
    pub(crate) fn point_of(&self, levels: &[f64]) -> Vec<f64> {
        let knobs = self.knobs.iter().enumerate();
        knobs
            .map(|(i, knob)| knob.coordinate(levels[i], self.base(i, levels)))
            .collect()
    }

    /// Returns the level of the knob whose share this one is.
    pub(super) fn base(&self, knob: usize, levels: &[f64]) -> Option<f64> {
        self.parents[knob].0.map(|other| levels[other])
    }

    /// Returns whether a knob's condition holds, and that of the knob that it depends on.
    pub(crate) fn active(&self, knob: usize, levels: &[f64]) -> bool {
        let (Some(other), Some(when)) = (self.parents[knob].1, &self.knobs[knob].when) else {
            return true;
        };
        let asked = &self.knobs[other];
        let holds = (when.is.iter()).any(|value| asked.level_of(value) == Some(levels[other]));
        holds && self.active(other, levels)
    }

    pub(crate) fn within_limits(&self, levels: &[f64]) -> bool {
        self.exceeded(levels).is_none()
    }

    /// Returns the first limit that the levels exceed.
    pub(super) fn exceeded(&self, levels: &[f64]) -> Option<&super::Limit> {
        self.limits.iter().find(|limit| {
            let sum: f64 = (limit.weights.iter())
                .filter_map(|(name, weight)| Some(weight * levels[self.index(name)?]))
                .sum();
            sum.is_nan() || sum > limit.at_most
        })
    }
}
