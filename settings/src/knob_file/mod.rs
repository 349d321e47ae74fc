//! Knobs as people write them: one TOML format for the compiled-in catalogue and for files of users.
//!
//! ```toml
//! [[knob]]
//! name = "eviction_dirty_trigger"
//! type = "integer"; low = 3; high = 80; scale = "log"; default = 20   # a line each
//! change = "R"; risk = "P"
//! set = { engine = "eviction_dirty_trigger" }
//! ```

mod error;
mod parse;
mod route;
mod run_min;
#[cfg(test)]
mod tests;
mod write;

use seekscope_run::tune::{KnobValues, TunedKnob};
use seekscope_tune::space::{Knob, Limit};

pub use error::KnobFileError;
pub(crate) use route::ENGINE_CONFIG;
pub use route::Route;
pub use run_min::RunMin;

use crate::version::Versions;

/// What a file says. Knobs of one name are alternatives, for servers of different versions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnobFile {
    pub knobs: Vec<KnobEntry>,
    pub presets: Vec<Preset>,
    pub limits: Vec<Limit>,
    /// Settings that are never tuned, and why.
    pub pinned: Vec<Pinned>,
}

/// A knob, how it is set, and what people should know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnobEntry {
    pub knob: Knob,
    pub set: Route,
    /// Where it stands in `mongod.conf`, if that is another place than `set`: a dotted path.
    pub config: Option<String>,
    /// What stands there is the value times this.
    pub config_factor: f64,
    /// e.g. "%", "MB"; for people.
    pub unit: String,
    pub versions: Versions,
    pub why: String,
    /// Tuned unless other knobs are named.
    pub search: bool,
    /// Bounds and default are percent of the server's memory; discovery turns them into MiB.
    pub percent_of_memory: bool,
    /// It sets a number of threads, which is not raised above the processors that the server may use.
    pub at_most_cpus: bool,
    /// Searched unasked only with longer runs.
    pub run_min: Option<RunMin>,
}

/// Known-good values to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    pub name: String,
    pub values: KnobValues,
    pub versions: Versions,
    pub why: String,
}

/// A setting that is never tuned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    pub name: String,
    pub why: String,
}

impl KnobFile {
    /// Reads the format; see the module.
    ///
    /// # Errors
    /// With the position, if it is no such file: unknown fields, impossible ranges, unsafe texts.
    pub fn parse(text: &str) -> Result<Self, KnobFileError> {
        parse::parse(text)
    }

    /// All alternatives of a knob.
    ///
    /// # Errors
    /// If there are none: with the reason if it is pinned, else with names that are like it.
    pub fn find(&self, name: &str) -> Result<Vec<&KnobEntry>, KnobFileError> {
        let found: Vec<_> = self.knobs.iter().filter(|k| k.knob.name == name).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(pinned) = self.pinned.iter().find(|pinned| pinned.name == name) {
            return Err(KnobFileError::Pinned {
                name: name.into(),
                why: pinned.why.clone(),
            });
        }
        Err(KnobFileError::unknown(
            name,
            self.knobs.iter().map(|entry| entry.knob.name.as_str()),
        ))
    }

    /// Adds what another file says; its knobs replace ours of the same name.
    pub fn merge(&mut self, other: Self) {
        let replaced = |entry: &KnobEntry| {
            let mut names = other.knobs.iter().map(|k| &k.knob.name);
            names.any(|name| *name == entry.knob.name)
        };
        self.knobs.retain(|entry| !replaced(entry));
        self.knobs.extend(other.knobs);
        self.presets.extend(other.presets);
        self.limits.extend(other.limits);
        self.pinned.extend(other.pinned);
    }

    /// The file's text, with what people should know of each knob as comments.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
}

impl KnobEntry {
    /// Values in words, e.g. "3 to 80, logarithmic".
    pub fn range_in_words(&self) -> String {
        write::range_in_words(self)
    }

    /// As a run's record has it; the default is the baseline.
    pub fn tuned(&self) -> TunedKnob {
        TunedKnob {
            name: self.knob.name.clone(),
            baseline: self.knob.default.clone(),
            range: self.range_in_words(),
            logarithmic: self.is_logarithmic(),
            change: write::change_letter(self.knob.change).into(),
            risk: write::risk_letter(self.knob.risk).into(),
            how: self.set.in_words(),
        }
    }

    /// Whether it is drawn on a logarithmic axis.
    pub fn is_logarithmic(&self) -> bool {
        use seekscope_tune::space::{Range, Scale};
        matches!(
            self.knob.range,
            Range::Float {
                scale: Scale::Log,
                ..
            } | Range::Integer {
                scale: Scale::Log,
                ..
            } | Range::Ordinal { .. }
        )
    }
}
