//! Defines values by name: what is stored, compared and applied.

pub use seekscope_run::KnobValue as Value;
use seekscope_run::KnobValues;
use serde::{Deserialize, Serialize};

use super::{Range, Space, SpaceError};

/// Converts a number as people write it: to an integer if it is to be whole.
pub(super) fn value_from_number(number: f64, whole: bool) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it has no fraction, and saturates"
    )]
    if whole && number.fract() == 0.0 {
        return Value::Integer(number as i64);
    }
    Value::Float(number)
}

/// A value for each knob that exists under the values of the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Configuration(pub KnobValues);

impl Configuration {
    /// Returns a number that equal canonical configurations share, on any machine and in any release (FNV-1a
    /// of names and values).
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for (name, value) in &self.0 {
            for byte in format!("{name}={value}\n").bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }
}

impl Space {
    /// Checks values by name, fills in the defaults of knobs that are not named, and removes knobs that do
    /// not exist under these values: the canonical form, in which equal settings are equal.
    pub fn complete(&self, values: &Configuration) -> Result<Configuration, SpaceError> {
        Ok(self.configuration(&self.levels_of(values)?))
    }

    /// Returns the levels of the values; see [`Space::complete`].
    pub(crate) fn levels_of(&self, values: &Configuration) -> Result<Vec<f64>, SpaceError> {
        for name in values.0.keys() {
            if self.index(name).is_none() {
                let known: Vec<&str> = self.knobs.iter().map(|k| k.name.as_str()).collect();
                return Err(SpaceError::Unknown {
                    name: name.clone(),
                    known: known.join(", "),
                });
            }
        }
        let mut levels = self.defaults.clone();
        for (i, knob) in self.knobs.iter().enumerate() {
            let base = self.base(i, &levels);
            let (low, high) = knob.bounds(base);
            let Some(value) = values.0.get(&knob.name) else {
                // A default that was a share of another default must stay below a smaller value.
                if base.is_some() && !knob.special.contains(&levels[i]) {
                    levels[i] = levels[i].clamp(low.min(high), high);
                }
                continue;
            };
            let level = knob
                .level_of(value)
                .filter(|&level| knob.admits(level, base));
            levels[i] = level.ok_or_else(|| SpaceError::Value {
                knob: knob.name.clone(),
                value: value.to_string(),
                range: match &knob.range {
                    Range::Categorical { choices } => choices.join(", "),
                    Range::Bool => "true, false".into(),
                    Range::Ordinal { values } => format!("{values:?}"),
                    _ => format!("{low} to {high}{}", specials(&knob.special)),
                },
            })?;
        }
        for i in 0..levels.len() {
            if !self.active(i, &levels) {
                levels[i] = self.defaults[i];
            }
        }
        match self.exceeded(&levels) {
            Some(limit) => Err(SpaceError::BeyondLimit {
                limit: limit.name.clone(),
            }),
            None => Ok(levels),
        }
    }

    pub(crate) fn configuration(&self, levels: &[f64]) -> Configuration {
        let knobs = self.knobs.iter().enumerate();
        let existing = knobs.filter(|(i, _)| self.active(*i, levels));
        Configuration(
            existing
                .map(|(i, knob)| (knob.name.clone(), knob.value_of(levels[i])))
                .collect(),
        )
    }
}

fn specials(special: &[f64]) -> String {
    special
        .iter()
        .map(|value| format!(", or {value}"))
        .collect()
}
