//! Chooses what is tuned: the knobs that the user names, or those that are worth it.

use std::collections::BTreeSet;

use seekscope_tune::space::{Configuration, Knob, Limit, Range, Space, SpaceError};

use super::Discovered;
use crate::knob_file::{KnobEntry, KnobFileError, Preset};

/// What is tuned.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Knobs, in the space's order.
    pub entries: Vec<KnobEntry>,
    pub space: Space,
    /// Presets whose values can all be set.
    pub presets: Vec<Preset>,
    /// Knobs and presets that are not used, and why.
    pub left_out: Vec<(String, String)>,
}

/// Why the requested knobs cannot be tuned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChooseError {
    #[error("knob `{name}` cannot be tuned here: {why}")]
    NotHere { name: String, why: String },
    #[error(transparent)]
    Name(#[from] KnobFileError),
    #[error(transparent)]
    Space(#[from] SpaceError),
    #[error("this server has no knob that may be tuned: {reasons}")]
    Nothing { reasons: String },
}

impl Discovered {
    /// Chooses the named knobs, or without names those that are worth a search.
    ///
    /// # Errors
    /// Returns an error if a named knob does not exist or cannot be tuned here, or nothing is left to tune.
    pub fn choose(&self, names: &[String]) -> Result<Chosen, ChooseError> {
        let mut left_out = self.left_out.clone();
        let wanted = self.wanted(names)?;
        let mut entries: Vec<KnobEntry> = Vec::new();
        for entry in &self.entries {
            let name = &entry.knob.name;
            if !wanted.contains(name.as_str()) {
                left_out.push((name.clone(), "not asked for".into()));
                continue;
            }
            if names.is_empty()
                && let Some(why) = self.short_runs.get(name)
            {
                left_out.push((name.clone(), why.clone()));
                continue;
            }
            let settled = self.settled(entry, &entries);
            match settled.and_then(|settled| self.above_shares(settled, &wanted)) {
                Ok(settled) => entries.push(settled),
                Err(why) if names.is_empty() => left_out.push((name.clone(), why)),
                Err(why) => {
                    return Err(ChooseError::NotHere {
                        name: name.clone(),
                        why,
                    });
                }
            }
        }
        if entries.is_empty() {
            let reasons = left_out.iter().map(|(name, why)| format!("{name}: {why}"));
            return Err(ChooseError::Nothing {
                reasons: reasons.collect::<Vec<_>>().join("; "),
            });
        }
        let knobs: Vec<Knob> = entries.iter().map(|entry| entry.knob.clone()).collect();
        let limits = self
            .limits
            .iter()
            .map(|limit| self.remaining(limit, &knobs));
        let limits = limits.collect();
        let space = Space::new(knobs, limits)?;
        let mut presets = Vec::new();
        for preset in &self.presets {
            match space.complete(&Configuration(preset.values.clone())) {
                Ok(_) => presets.push(preset.clone()),
                Err(error) => left_out.push((format!("preset {}", preset.name), error.to_string())),
            }
        }
        Ok(Chosen {
            entries,
            space,
            presets,
            left_out,
        })
    }

    fn wanted<'a>(&'a self, names: &'a [String]) -> Result<BTreeSet<&'a str>, ChooseError> {
        let known = || self.entries.iter().map(|entry| entry.knob.name.as_str());
        if names.is_empty() {
            let worth = self.entries.iter().filter(|entry| entry.search);
            return Ok(worth.map(|entry| entry.knob.name.as_str()).collect());
        }
        for name in names {
            if let Some((_, why)) = self.left_out.iter().find(|(other, _)| other == name) {
                return Err(ChooseError::NotHere {
                    name: name.clone(),
                    why: why.clone(),
                });
            }
            if !known().any(|other| other == name) {
                return Err(KnobFileError::unknown(name, known()).into());
            }
        }
        Ok(names.iter().map(String::as_str).collect())
    }

    /// Returns the knob among those tuned with it: dependencies that are not tuned keep their values.
    fn settled(&self, entry: &KnobEntry, earlier: &[KnobEntry]) -> Result<KnobEntry, String> {
        let mut entry = entry.clone();
        let tuned = |name: &str| earlier.iter().find(|other| other.knob.name == name);
        if let Some(when) = &entry.knob.when
            && tuned(&when.knob).is_none()
        {
            let other = self
                .entries
                .iter()
                .find(|other| other.knob.name == when.knob);
            match other {
                Some(other) if when.is.contains(&other.knob.default) => entry.knob.when = None,
                _ => return Err(format!("it depends on {}, which is not tuned", when.knob)),
            }
        }
        let Some(base) = entry.knob.share_of.clone() else {
            return Ok(entry);
        };
        let base = match tuned(&base) {
            Some(base) => base.knob.clone(),
            None => {
                let found = self.entries.iter().find(|other| other.knob.name == base);
                let found = found.and_then(|found| found.knob.default.number());
                let value =
                    found.ok_or_else(|| format!("it depends on {base}, which is not known"))?;
                return absolute(entry, value);
            }
        };
        let fits = |knob: &Knob| Space::new(vec![base.clone(), knob.clone()], Vec::new()).is_ok();
        if !fits(&entry.knob)
            && let Some(value) = entry.knob.default.number()
        {
            entry.knob.special.push(value);
        }
        if fits(&entry.knob) {
            return Ok(entry);
        }
        Err(format!(
            "its current value {} does not fit {}",
            entry.knob.default, base.name
        ))
    }

    /// Returns the knob, never below those that are at most as large and keep their values.
    fn above_shares(
        &self,
        mut entry: KnobEntry,
        wanted: &BTreeSet<&str>,
    ) -> Result<KnobEntry, String> {
        let name = entry.knob.name.clone();
        let shares = self.entries.iter().filter(|other| {
            other.knob.share_of.as_ref() == Some(&name)
                && !wanted.contains(other.knob.name.as_str())
        });
        for share in shares {
            let Some(value) = share.knob.default.number() else {
                continue;
            };
            let is_left = match &mut entry.knob.range {
                Range::Float { low, high, .. } => {
                    *low = low.max(value);
                    *low < *high
                }
                #[expect(clippy::cast_possible_truncation, reason = "saturates")]
                Range::Integer { low, high, .. } => {
                    *low = (*low).max(value.ceil() as i64);
                    *low < *high
                }
                _ => true,
            };
            if !is_left {
                return Err(format!(
                    "it cannot be below {0}, which stays at {value}, and cannot be above that either; name {0} as well",
                    share.knob.name
                ));
            }
        }
        Ok(entry)
    }

    /// Returns the limit with the knobs that are not tuned at their values.
    fn remaining(&self, limit: &Limit, tuned: &[Knob]) -> Limit {
        let mut limit = limit.clone();
        for entry in &self.entries {
            let name = &entry.knob.name;
            if tuned.iter().all(|knob| knob.name != *name)
                && let Some(weight) = limit.weights.remove(name)
                && let Some(value) = entry.knob.default.number()
            {
                limit.at_most -= weight * value;
            }
        }
        // A knob that the server does not have contributes nothing.
        limit
            .weights
            .retain(|name, _| tuned.iter().any(|knob| knob.name == *name));
        limit
    }
}

/// Converts shares of a value that does not change to absolute values.
fn absolute(mut entry: KnobEntry, base: f64) -> Result<KnobEntry, String> {
    entry.knob.share_of = None;
    match &mut entry.knob.range {
        Range::Float { low, high, .. } => (*low, *high) = (*low * base, *high * base),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, and is checked below"
        )]
        Range::Integer { low, high, .. } => {
            *high = (*high as f64 / 100.0 * base).floor() as i64;
            *low = ((*low as f64 / 100.0 * base).ceil() as i64).min(*high);
        }
        _ => {}
    }
    let value = entry.knob.default.clone();
    super::fit::set_default(&mut entry.knob, value)?;
    Ok(entry)
}
