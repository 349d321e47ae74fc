//! Reads and writes knobs as people write them: one TOML format for the compiled-in catalogue and for users'
//! files.
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
use seekscope_tune::space::{ChangeCost, Knob, Limit};

pub use error::KnobFileError;
pub(crate) use route::ENGINE_CONFIG;
pub use route::Route;
pub use run_min::RunMin;

use crate::version::Versions;

/// The content of a file. Knobs with the same name are alternatives, for servers of different versions.
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
    /// Its path in `mongod.conf`, if that differs from `set`: a dotted path.
    pub config: Option<String>,
    /// Factor from the value to what the file contains.
    pub config_factor: f64,
    /// Unit for people, e.g. "%", "MB".
    pub unit: String,
    pub versions: Versions,
    pub why: String,
    /// Tuned unless other knobs are named.
    pub search: bool,
    /// Bounds and default are percentages of the server's memory; discovery converts them to MiB.
    pub percent_of_memory: bool,
    /// It sets a number of threads, which is not raised above the number of processors that the server may
    /// use.
    pub at_most_cpus: bool,
    /// Why it is not tuned on a member of a replica set; empty if it is.
    pub not_in_sets: String,
    /// The shortest runs for which the knob is searched without being requested.
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
    /// Returns an error with its position if it is not such a file: unknown fields, impossible ranges, unsafe
    /// texts.
    pub fn parse(text: &str) -> Result<Self, KnobFileError> {
        parse::parse(text)
    }

    /// Returns all alternatives of a knob.
    ///
    /// # Errors
    /// Returns an error if there are none: with the reason if it is pinned, else with similar names.
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

    /// Adds the content of another file; its knobs replace ours with the same name.
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

    /// Returns the file's text, with notes on each knob as comments.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
}

impl KnobEntry {
    /// Returns the values in words, e.g. "3 to 80, logarithmic".
    pub fn range_in_words(&self) -> String {
        write::range_in_words(self)
    }

    /// Returns how it is set: a parameter that a server accepts only at its start goes into its configuration file.
    pub fn route(&self) -> Route {
        match &self.set {
            Route::Parameter { name } if self.knob.change == ChangeCost::Restart => Route::Option {
                path: format!("setParameter.{name}"),
                key: None,
                suffix: String::new(),
            },
            other => other.clone(),
        }
    }

    /// Returns whether it is set in the server's configuration file, for which the server is restarted.
    pub fn needs_restart(&self) -> bool {
        matches!(self.route(), Route::Option { .. })
    }

    /// Returns the knob as recorded in a run; the default is the baseline.
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

    /// Returns whether it is drawn on a logarithmic axis.
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
