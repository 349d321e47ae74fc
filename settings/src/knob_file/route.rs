//! Defines how a knob reaches what it sets.

use seekscope_run::tune::KnobValue;
use serde::{Deserialize, Serialize};

/// How a knob is set. `suffix` is appended to the value, e.g. "MB".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// A key of WiredTiger's connection: at run time by `wiredTigerEngineRuntimeConfig`, permanently in
    /// `storage.wiredTiger.engineConfig.configString`. Dots lead into groups: `eviction.threads_max`.
    Engine { key: String, suffix: String },
    /// A parameter of the server, by `setParameter`.
    Parameter { name: String },
    /// A dotted path in `mongod.conf`; the server is restarted. With a key, the path holds a WiredTiger text
    /// in which the key is set.
    Option {
        path: String,
        key: Option<String>,
        suffix: String,
    },
    /// A start option of a local server, by the name that benchmarks use.
    Local { name: String, suffix: String },
    /// A file of the host's kernel; `{device}` stands for the disk of the data directory.
    File { path: String },
    /// Shell commands of the user; `{value}` stands for the value, as one word. `read` prints the current
    /// value.
    Command { set: String, read: Option<String> },
    /// A variable of the measured command's environment.
    Environment { name: String },
}

/// Deepest level of any setting.
const DEPTH_MAX: usize = 8;
/// Where WiredTiger's connection is configured in `mongod.conf`.
pub(crate) const ENGINE_CONFIG: &str = "storage.wiredTiger.engineConfig.configString";

impl Route {
    /// Describes it in words, for tables.
    pub fn in_words(&self) -> String {
        match self {
            Self::Engine { key, .. } => format!("wiredTigerEngineRuntimeConfig {key}"),
            Self::Parameter { name } => format!("setParameter {name}"),
            Self::Option {
                path, key: None, ..
            } => format!("mongod.conf {path}"),
            Self::Option {
                path,
                key: Some(key),
                ..
            } => format!("mongod.conf {path} {key}"),
            Self::Local { name, .. } => format!("start option {name}"),
            Self::File { path } => path.clone(),
            Self::Command { set, .. } => set.clone(),
            Self::Environment { name } => format!("environment {name}"),
        }
    }

    /// Returns the value as it is set this way: a number with the suffix.
    pub(crate) fn with_suffix(&self, value: &KnobValue) -> String {
        let suffix = match self {
            Self::Engine { suffix, .. }
            | Self::Option { suffix, .. }
            | Self::Local { suffix, .. } => suffix.as_str(),
            _ => "",
        };
        match value.number() {
            Some(_) => format!("{value}{suffix}"),
            None => value.to_string(),
        }
    }

    /// Checks it and returns what is wrong, whoever wrote it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Engine { key, suffix } => {
                check_dotted("engine", key)?;
                check_suffix(suffix)
            }
            Self::Parameter { name } => check_word("parameter", name),
            Self::Option { path, key, suffix } => {
                check_dotted("option", path)?;
                key.as_deref()
                    .map_or(Ok(()), |key| check_dotted("key", key))?;
                check_suffix(suffix)
            }
            Self::Local { name, suffix } => {
                check_word("local", name)?;
                check_suffix(suffix)
            }
            Self::File { path } => crate::host_files::check_path(&path.replace("{device}", "x")),
            Self::Command { set, read } => {
                crate::script::check_set(set)?;
                match read {
                    Some(read) if read.trim().is_empty() => Err("`read` is empty".into()),
                    _ => Ok(()),
                }
            }
            Self::Environment { name } => {
                check_word("environment", name)?;
                match name.starts_with(|c: char| c.is_ascii_digit()) {
                    true => Err("a variable does not begin with a digit".into()),
                    false => Ok(()),
                }
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn check_word(what: &str, text: &str) -> Result<(), String> {
    is_word(text)
        .then_some(())
        .ok_or_else(|| format!("`{what}` takes letters, digits and underscores, not {text:?}"))
}

fn check_dotted(what: &str, text: &str) -> Result<(), String> {
    let deep = text.split('.').count() > DEPTH_MAX;
    (!deep && text.split('.').all(is_word))
        .then_some(())
        .ok_or_else(|| format!("`{what}` takes words joined by dots, not {text:?}"))
}

fn check_suffix(suffix: &str) -> Result<(), String> {
    suffix
        .bytes()
        .all(|b| b.is_ascii_alphabetic())
        .then_some(())
        .ok_or_else(|| format!("`suffix` takes letters, not {suffix:?}"))
}

pub(super) fn check_config(path: &str) -> Result<(), String> {
    check_dotted("config", path)
}
