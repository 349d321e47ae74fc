//! Defines what may be tuned: knobs with their ranges, and the unit cube in which the optimiser moves.
//!
//! There are three views of one setting of all knobs: a [`Configuration`] names each knob's value and is what
//! is stored, hashed and applied; a point of the unit cube has one coordinate per knob and is what is drawn;
//! the `levels` between them are one number per knob, in the knob's own unit (or the index of a choice).
//! Differences that do not reach a server do not count: values are snapped to what can be represented, and
//! knobs whose condition does not hold have no value at all.

mod configuration;
mod error;
mod feature;
mod knob;
mod level;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use configuration::{Configuration, Value};
pub use error::SpaceError;
pub(crate) use feature::Feature;
pub use knob::{ChangeCost, Condition, Knob, Limit, Range, Risk, Scale};

/// A checked set of knobs and limits on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Definition", into = "Definition")]
pub struct Space {
    knobs: Vec<Knob>,
    limits: Vec<Limit>,
    /// The knob whose share each knob is, and the knob that its condition depends on, by index.
    parents: Vec<(Option<usize>, Option<usize>)>,
    defaults: Vec<f64>,
}

/// The serialised form of a space.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Definition {
    knobs: Vec<Knob>,
    #[serde(default)]
    limits: Vec<Limit>,
}

impl TryFrom<Definition> for Space {
    type Error = SpaceError;
    fn try_from(definition: Definition) -> Result<Self, SpaceError> {
        Self::new(definition.knobs, definition.limits)
    }
}

impl From<Space> for Definition {
    fn from(space: Space) -> Self {
        Self {
            knobs: space.knobs,
            limits: space.limits,
        }
    }
}

impl Space {
    /// Checks the knobs: distinct names, non-empty ranges, defaults inside them, and shares and conditions
    /// that depend on knobs named earlier.
    pub fn new(knobs: Vec<Knob>, limits: Vec<Limit>) -> Result<Self, SpaceError> {
        let mut space = Self {
            knobs: Vec::new(),
            limits: Vec::new(),
            parents: Vec::new(),
            defaults: Vec::new(),
        };
        for knob in knobs {
            space.add(knob)?;
        }
        for limit in &limits {
            for name in limit.weights.keys() {
                space.numeric(name, "a limit")?;
            }
        }
        space.limits = limits;
        if !space.within_limits(&space.defaults) {
            return Err(SpaceError::DefaultBeyondLimit);
        }
        Ok(space)
    }

    fn add(&mut self, knob: Knob) -> Result<(), SpaceError> {
        let invalid = |why: &str| SpaceError::Knob {
            knob: knob.name.clone(),
            why: why.into(),
        };
        if knob.name.is_empty() || self.index(&knob.name).is_some() {
            return Err(invalid(
                "its name is empty or taken; give each knob its own",
            ));
        }
        knob.check().map_err(|why| invalid(&why))?;
        let share_of = (knob.share_of.as_deref())
            .map(|name| self.numeric(name, &knob.name))
            .transpose()?;
        let asks = match &knob.when {
            None => None,
            Some(when) => {
                let other = self.index(&when.knob).ok_or_else(|| {
                    invalid("its condition asks a knob that is not named before it")
                })?;
                if when.is.is_empty()
                    || (when.is.iter()).any(|v| self.knobs[other].level_of(v).is_none())
                {
                    return Err(invalid("its condition asks for a value that there is not"));
                }
                Some(other)
            }
        };
        let base = share_of.map(|other| self.defaults[other]);
        let default = knob.level_of(&knob.default).unwrap_or(f64::NAN);
        if !knob.admits(default, base) {
            return Err(invalid(
                "its default is not among its values; widen the range or name it as special",
            ));
        }
        self.defaults.push(default);
        self.parents.push((share_of, asks));
        self.knobs.push(knob);
        Ok(())
    }

    /// Returns the index of a knob that is always a positive number, as a share or a limit requires.
    fn numeric(&self, name: &str, wanted_by: &str) -> Result<usize, SpaceError> {
        let found = self.index(name).filter(|&index| {
            let knob = &self.knobs[index];
            knob.is_numeric() && knob.when.is_none() && knob.special.is_empty()
        });
        found.ok_or_else(|| SpaceError::Knob {
            knob: wanted_by.into(),
            why: format!(
                "it refers to `{name}`, which is not the name of an earlier knob that always is a number"
            ),
        })
    }

    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.knobs.iter().position(|knob| knob.name == name)
    }

    /// Returns the configuration in which every knob has its default.
    pub fn default_configuration(&self) -> Configuration {
        self.configuration(&self.defaults)
    }

    pub(crate) fn defaults(&self) -> &[f64] {
        &self.defaults
    }
}
