//! Finds which knobs of a file a server has, and what they are set to now.
//!
//! The server's own replies decide; versions in the file only choose between rows and explain. What no reply
//! reports is taken from the file and marked as [`Source::Documented`].

mod ask;
mod choose;
mod current;
mod fit;
mod memory;
mod processors;
mod runs;

use std::collections::BTreeMap;
use std::fmt;

use mongodb::bson::{Bson, Document};
use seekscope_run::tune::{KnobValue, KnobValues};
use seekscope_tune::space::{ChangeCost, Limit, Risk};

pub use ask::read_scripts;
pub use choose::{ChooseError, Chosen};
pub(crate) use current::RUNTIME_CONFIG;
use memory::Bounds;
pub use memory::ServerMemory;
pub use runs::Runs;

use crate::host_files::HostFiles;
use crate::knob_file::{KnobEntry, KnobFile, Preset, Route};
use crate::version::Version;

/// A server's replies about itself; empty where it does not answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerReplies {
    /// `buildInfo`.
    pub build_info: Document,
    /// `getParameter: "*"`.
    pub parameters: Document,
    /// `getCmdLineOpts`.
    pub options: Document,
    /// `serverStatus`.
    pub status: Document,
    /// `hostInfo`.
    pub host: Document,
    /// Commands that were refused, and why.
    pub refused: Vec<(String, String)>,
}

/// What the user allows to be tuned beyond what a running server accepts at no risk but speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unlocked {
    /// Risk D.
    pub durability: bool,
    /// Risk A.
    pub availability: bool,
    /// Change S: a configuration file and a restart command are available.
    pub restart: bool,
    /// Change L.
    pub reload: bool,
}

/// Facts besides the server's replies.
#[derive(Debug, Clone, Default)]
pub struct Surroundings<'a> {
    pub unlocked: Unlocked,
    /// The server's host, if it is this one and its files may be set.
    pub host: Option<&'a HostFiles>,
    /// The start options of a server of our own, as far as specified; `None` for other servers.
    pub local: Option<&'a KnobValues>,
    /// What the `read` commands of knobs printed; see [`read_scripts`].
    pub scripts: BTreeMap<String, Result<String, String>>,
    /// Memory of the server's host if it does not report that itself, MiB.
    pub memory_mib: Option<u64>,
    /// `None` if the memory groups of the server's process are not visible from here.
    pub seen: Option<ServerMemory>,
    /// Processors that the server's process may use, if visible from here.
    pub cpus: Option<u32>,
    /// `None` if knobs are only listed.
    pub runs: Option<Runs<'a>>,
}

/// Source of a current value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A parameter or figure of the running server.
    Server,
    /// Its command line or configuration file.
    Configured,
    /// The start options that we give our own server.
    StartOption,
    /// A file of the kernel.
    HostFile,
    /// The user's `read` command.
    Script,
    /// Not reported: the default that the knob's description names.
    Documented,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "the server says so",
            Self::Configured => "configured",
            Self::StartOption => "start option",
            Self::HostFile => "the kernel says so",
            Self::Script => "its read command says so",
            Self::Documented => "documented default; the server does not say",
        })
    }
}

/// The knobs that can be tuned here.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    /// `None` if the server does not report it.
    pub version: Option<Version>,
    /// Knobs with the current value as default, in the file's order.
    pub entries: Vec<KnobEntry>,
    /// Knob and why it cannot be tuned here.
    pub left_out: Vec<(String, String)>,
    /// Source of each entry's default.
    pub sources: BTreeMap<String, Source>,
    pub presets: Vec<Preset>,
    pub limits: Vec<Limit>,
    /// WiredTiger's configuration texts at the server's start, by their path in `mongod.conf`.
    pub configured: BTreeMap<String, String>,
    /// Knobs that may exhaust the server's memory: what bounds them, and what does not.
    pub memory_risks: BTreeMap<String, String>,
    /// Knobs that set numbers of threads: what bounds them.
    pub cpu_bounds: BTreeMap<String, String>,
    /// Knobs that no run can judge, and why. They are tuned only on request.
    pub short_runs: BTreeMap<String, String>,
}

/// Returns which knobs of `file` can be tuned here and what they are set to.
pub fn discover(
    file: &KnobFile,
    replies: &ServerReplies,
    surroundings: &Surroundings<'_>,
) -> Discovered {
    let version = replies.build_info.get_str("version").ok();
    let version = version.and_then(Version::parse);
    let mut found = Discovered {
        version,
        entries: Vec::new(),
        left_out: Vec::new(),
        sources: BTreeMap::new(),
        presets: file.presets.clone(),
        limits: file.limits.clone(),
        configured: current::configured_texts(&replies.options),
        memory_risks: BTreeMap::new(),
        cpu_bounds: BTreeMap::new(),
        short_runs: BTreeMap::new(),
    };
    found
        .presets
        .retain(|preset| preset.versions.include(version));
    let mut names: Vec<&str> = Vec::new();
    for entry in &file.knobs {
        if !names.contains(&entry.knob.name.as_str()) {
            names.push(&entry.knob.name);
        }
    }
    for name in names {
        let mut why = String::new();
        let mut rows = file.knobs.iter().filter(|entry| entry.knob.name == name);
        let examined = rows.find_map(|entry| {
            match examine(entry, version, replies, surroundings) {
                Ok(found) => Some(found),
                Err(reason) => {
                    // The last row's reason: rows are ordered from old versions to new ones.
                    why = reason;
                    None
                }
            }
        });
        match examined {
            Some((entry, source, said)) => {
                let said = said.map(|said| (name.to_owned(), said));
                found.memory_risks.extend(said);
                found.sources.insert(name.into(), source);
                found.entries.push(entry);
            }
            None => found.left_out.push((name.into(), why)),
        }
    }
    found.bound_threads(replies, surroundings.cpus);
    found.judge_runs(file, replies, surroundings);
    found
}

/// Returns the knob with its current value as default and a note on its memory, or why it cannot be tuned.
fn examine(
    entry: &KnobEntry,
    version: Option<Version>,
    replies: &ServerReplies,
    surroundings: &Surroundings<'_>,
) -> Result<(KnobEntry, Source, Option<String>), String> {
    if !entry.versions.include(version) {
        let version = version.map_or_else(String::new, |version| version.to_string());
        return Err(format!("it is for {}; this is {version}", entry.versions));
    }
    if !entry.not_in_sets.is_empty() && replies.status.contains_key("repl") {
        return Err(format!(
            "on a member of a replica set {}",
            entry.not_in_sets
        ));
    }
    locked(entry, surroundings)?;
    let mut entry = entry.clone();
    let of_host = memory_mib(&replies.host).or(surroundings.memory_mib);
    let of_groups = surroundings.seen.and_then(|seen| seen.limit_mib);
    let bounds = Bounds {
        memory_mib: of_host.into_iter().chain(of_groups).min(),
        seen: surroundings.seen,
        is_users: !entry.percent_of_memory,
        status: &replies.status,
    };
    if entry.percent_of_memory {
        let memory = bounds.memory_mib;
        let memory = memory.ok_or("the memory of the server's host is not known")?;
        fit::scale_to_memory(&mut entry, memory)?;
    }
    let (value, source) = current::current(&mut entry, replies, surroundings)?;
    let is_guess = source == Source::Documented && !bounds.is_users;
    if is_guess && bounds.seen.is_none() {
        return Err("neither its size nor the server's memory groups can be seen from here".into());
    }
    let said = bounds.apply(&mut entry, &value);
    fit::set_default(&mut entry.knob, value)?;
    Ok((entry, source, said))
}

/// Rejects what the user has not unlocked.
fn locked(entry: &KnobEntry, surroundings: &Surroundings<'_>) -> Result<(), String> {
    let unlocked = surroundings.unlocked;
    let refused = match (entry.knob.risk, entry.knob.change) {
        (Risk::Durability, _) if !unlocked.durability => {
            "it weakens durability or lengthens recovery; --allow-durability unlocks it"
        }
        (Risk::Availability, _) if !unlocked.availability => {
            "it can make operations fail; --allow-availability unlocks it"
        }
        (Risk::Pinned, _) => "it is never tuned",
        (_, ChangeCost::Reload) if !unlocked.reload => {
            "it needs the data to be loaded anew; --reload unlocks it"
        }
        (_, ChangeCost::Restart)
            if !unlocked.restart
                && matches!(entry.set, Route::Option { .. } | Route::Parameter { .. }) =>
        {
            "it needs a restart; --config-file and --restart-command allow that"
        }
        _ => return Ok(()),
    };
    Err(refused.into())
}

/// Returns the memory that the server may use of its host, by `hostInfo`.
fn memory_mib(host: &Document) -> Option<u64> {
    let system = host.get_document("system").ok()?;
    let size = |name: &str| system.get(name).and_then(whole).filter(|mib| *mib > 0);
    let all = size("memSizeMB")?;
    u64::try_from(size("memLimitMB").map_or(all, |limit| limit.min(all))).ok()
}

fn whole(value: &Bson) -> Option<i64> {
    match value_of(value)? {
        KnobValue::Integer(value) => Some(value),
        #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
        KnobValue::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => Some(value as i64),
        _ => None,
    }
}

/// Converts a reply's value to a knob's; `None` for documents, dates and the like.
pub(crate) fn value_of(value: &Bson) -> Option<KnobValue> {
    Some(match value {
        Bson::Int32(value) => KnobValue::Integer((*value).into()),
        Bson::Int64(value) => KnobValue::Integer(*value),
        Bson::Double(value) if value.is_finite() => KnobValue::Float(*value),
        Bson::Boolean(value) => KnobValue::Bool(*value),
        Bson::String(text) => KnobValue::Text(text.clone()),
        _ => return None,
    })
}
