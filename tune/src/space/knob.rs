//! Defines a knob: its values, the cost of a change and its risk.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Value;

/// How a range is spread over the unit interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    #[default]
    Linear,
    /// Equal ratios get equal space; the range must be positive.
    Log,
}

/// The values of a knob. Bounds are inclusive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Range {
    Float {
        low: f64,
        high: f64,
        #[serde(default)]
        scale: Scale,
    },
    Integer {
        low: i64,
        high: i64,
        #[serde(default)]
        scale: Scale,
    },
    /// Numbers in ascending order, such as powers of two; neighbours are similar.
    Ordinal {
        values: Vec<f64>,
    },
    /// Names without an order.
    Categorical {
        choices: Vec<String>,
    },
    Bool,
}

/// What is necessary to change a knob's value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChangeCost {
    /// A command to the running server.
    #[default]
    #[serde(rename = "R")]
    Runtime,
    /// A setting of the whole host.
    #[serde(rename = "H")]
    Host,
    /// A restart of the server.
    #[serde(rename = "S")]
    Restart,
    /// Reloading the data, because only new tables have it.
    #[serde(rename = "L")]
    Reload,
}

/// The damage that a bad value can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Risk {
    /// Cost performance, nothing else.
    #[default]
    #[serde(rename = "P")]
    Performance,
    /// Exhaust memory.
    #[serde(rename = "M")]
    Memory,
    /// Weaken what an acknowledged write means, or lengthen recovery.
    #[serde(rename = "D")]
    Durability,
    /// Make operations fail or mean something else.
    #[serde(rename = "A")]
    Availability,
    /// Anything: recorded, never tuned.
    #[serde(rename = "X")]
    Pinned,
}

/// A condition: a knob exists only while an earlier one has one of these values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub knob: String,
    pub is: Vec<Value>,
}

/// A limit on the weighted sum of some knobs, e.g. of all that take memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Name of the limit in messages when it is exceeded.
    pub name: String,
    /// Names of knobs that are always numeric.
    pub weights: BTreeMap<String, f64>,
    pub at_most: f64,
}

/// A setting that can be tuned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knob {
    pub name: String,
    #[serde(flatten)]
    pub range: Range,
    pub default: Value,
    /// Numbers with a special meaning, such as 0 for "unlimited"; inside the range or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub special: Vec<f64>,
    /// The knob that the bounds are shares of, so that e.g. a target stays below its trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    #[serde(default)]
    pub change: ChangeCost,
    #[serde(default)]
    pub risk: Risk,
}

/// Whole numbers beyond this are not all represented by a double.
const EXACT_MAX: i64 = 1 << 53;
const CHOICES_MAX: usize = 1000;

impl Knob {
    /// Creates a performance knob that a running server applies at once.
    pub fn new(name: &str, range: Range, default: Value) -> Self {
        Self {
            name: name.into(),
            range,
            default,
            special: Vec::new(),
            share_of: None,
            when: None,
            change: ChangeCost::default(),
            risk: Risk::default(),
        }
    }

    pub(super) fn is_numeric(&self) -> bool {
        !matches!(self.range, Range::Categorical { .. } | Range::Bool)
    }

    /// Checks the knob by itself and returns what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.range {
            Range::Float { low, high, scale } => check_bounds(*low, *high, *scale)?,
            Range::Integer { low, high, scale } => {
                if *low < -EXACT_MAX || *high > EXACT_MAX {
                    return Err("its bounds are beyond 2^53".into());
                }
                check_bounds(*low as f64, *high as f64, *scale)?;
            }
            Range::Ordinal { values } => {
                let ascending = values.windows(2).all(|pair| pair[0] < pair[1]);
                if !ascending || values.len() > CHOICES_MAX || values.iter().any(|v| !v.is_finite())
                {
                    return Err("its values must be finite numbers in ascending order".into());
                }
                at_least_two(values.len())?;
            }
            Range::Categorical { choices } => {
                let mut sorted = choices.clone();
                sorted.sort_unstable();
                sorted.dedup();
                if sorted.len() != choices.len() || choices.len() > CHOICES_MAX {
                    return Err("its choices must differ from one another".into());
                }
                at_least_two(choices.len())?;
            }
            Range::Bool => {}
        }
        let only_numbers = !self.special.is_empty() || self.share_of.is_some();
        if only_numbers && !self.is_numeric() {
            return Err("only numbers have special values and shares".into());
        }
        if self.special.len() > 4 || self.special.iter().any(|v| !v.is_finite()) {
            return Err("special values are finite, and no more than four".into());
        }
        if self.share_of.is_some() && matches!(self.range, Range::Ordinal { .. }) {
            return Err("a list of values cannot be shares of another knob".into());
        }
        Ok(())
    }
}

fn at_least_two(values: usize) -> Result<(), String> {
    (values >= 2)
        .then_some(())
        .ok_or_else(|| "it needs two values or more to be tuned".into())
}

fn check_bounds(low: f64, high: f64, scale: Scale) -> Result<(), String> {
    if !(low < high && (high - low).is_finite()) {
        return Err(format!(
            "its lower bound {low} must be below its upper bound {high}"
        ));
    }
    if scale == Scale::Log && low <= 0.0 {
        return Err(format!(
            "a logarithmic range cannot begin at {low}; begin above zero"
        ));
    }
    Ok(())
}
