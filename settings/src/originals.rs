//! Records on disk what everything was set to before the first change, so that any later process can put it
//! back.
//!
//! `originals.json` names each knob with its value and says which of them were touched; a knob is recorded as
//! touched before it is first changed. A copy of `mongod.conf` is kept beside it, readable only by its owner,
//! until everything is put back: it may hold passwords, which is why it is not part of the JSON. The
//! connection string is stored without credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use seekscope_run::tune::KnobValue;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::apply::ServerProcess;
use crate::knob_file::Route;
use crate::lock::members;

const FILE: &str = "originals.json";
const CONFIG_COPY: &str = "originals.mongod.conf";
const SCHEMA: &str = "seekscope-originals-1";
const FILE_MAX_BYTES: u64 = 4 << 20;

/// The state before the first change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Originals {
    pub(crate) schema: String,
    /// Connection string without credentials; empty if there is no server.
    pub server: String,
    /// The members in the connection string, in canonical form.
    pub(crate) members: String,
    pub(crate) knobs: Vec<Target>,
    /// Knobs that were changed, or were about to be.
    pub(crate) touched: BTreeSet<String>,
    /// Touched knobs whose values the server has rejected so far: they were not changed, and cannot be put
    /// back either.
    pub(crate) refused: BTreeSet<String>,
    /// The values of the touched knobs in the configuration that was applied last and read back.
    #[serde(default)]
    pub(crate) applied: Option<BTreeMap<String, KnobValue>>,
    /// The values of the touched knobs in the configuration that is being applied, or that could not be.
    #[serde(default)]
    pub(crate) applying: Option<BTreeMap<String, KnobValue>>,
    /// Touched knobs that somebody else has set, and that were left to them.
    #[serde(default)]
    pub(crate) left_to_others: BTreeSet<String>,
    /// The process in which settings were made that a running server takes: they end with it.
    #[serde(default)]
    pub(crate) process: Option<ServerProcess>,
    /// Text of WiredTiger's runtime configuration before the first key was set.
    #[serde(default)]
    pub(crate) engine_text: Option<String>,
    /// Original content of each file of the kernel.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) config: Option<ConfigOriginal>,
    /// True once everything is as it was.
    pub restored: bool,
}

/// A knob: how it is set, and its original value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) set: Route,
    pub(crate) baseline: KnobValue,
    /// It exists only under some values of another knob.
    pub(crate) conditional: bool,
}

impl Target {
    /// Returns whether it is set in the configuration file.
    pub(crate) fn is_option(&self) -> bool {
        matches!(self.set, Route::Option { .. })
    }

    /// Returns whether it is set in the server's process, with which it ends.
    pub(crate) fn is_of_process(&self) -> bool {
        matches!(self.set, Route::Engine { .. } | Route::Parameter { .. })
    }

    /// Says what its original value is, and how it is set.
    pub(crate) fn in_words(&self) -> String {
        let (name, value, set) = (&self.name, &self.baseline, self.set.in_words());
        format!("{name} = {value} ({set})")
    }
}

/// How the configuration file is put back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigOriginal {
    pub(crate) path: PathBuf,
    /// `None` if it may hold a secret, which is not kept: whoever restores gives it again.
    pub(crate) command: Option<String>,
    pub(crate) limit_s: u64,
    pub(crate) sha256: String,
}

/// Why originals cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum OriginalsError {
    #[error("{path}: {source}; nothing is changed without it")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is not what seekscope wrote: {why}")]
    Invalid { path: PathBuf, why: String },
    #[error(
        "{path} names settings that an earlier session did not put back; run `seekscope tune --restore` first"
    )]
    Unrestored { path: PathBuf },
    #[error("the originals are those of {recorded}, not of {given}; name that server")]
    OtherServer { recorded: String, given: String },
}

impl Originals {
    pub(crate) fn new(server: String, members: String) -> Self {
        Self {
            schema: SCHEMA.into(),
            server,
            members,
            knobs: Vec::new(),
            touched: BTreeSet::new(),
            refused: BTreeSet::new(),
            applied: None,
            applying: None,
            left_to_others: BTreeSet::new(),
            process: None,
            engine_text: None,
            files: BTreeMap::new(),
            config: None,
            restored: false,
        }
    }

    /// Loads what was recorded in the folder; `None` if nothing was.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or other users may have written it: it names commands to be run.
    pub fn load(folder: &Path) -> Result<Option<Self>, OriginalsError> {
        let path = folder.join(FILE);
        let text = match read_own(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed(&path))?,
        };
        let invalid = |why: String| OriginalsError::Invalid {
            path: path.clone(),
            why,
        };
        let originals: Self =
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if originals.schema != SCHEMA {
            return Err(invalid(format!("its schema is {:?}", originals.schema)));
        }
        for target in &originals.knobs {
            target.set.check().map_err(invalid)?;
        }
        Ok(Some(originals))
    }

    /// Returns the knobs that were changed and are not known to be as they were.
    pub fn outstanding(&self) -> Vec<&str> {
        let touched = self.touched.iter().map(String::as_str);
        touched.filter(|_| !self.restored).collect()
    }

    /// Returns the same in words, each with its original value.
    pub fn outstanding_in_words(&self) -> Vec<String> {
        let names = self.outstanding();
        let knobs = self.knobs.iter();
        knobs
            .filter(|target| names.contains(&target.name.as_str()))
            .map(|target| target.in_words())
            .collect()
    }

    /// Returns the value that the knob was set to last; `None` where it may have been another.
    pub(crate) fn last_set(&self, knob: &str) -> Option<&KnobValue> {
        let applied = self.applied.as_ref()?.get(knob)?;
        let applying = self.applying.as_ref();
        applying
            .is_none_or(|applying| applying.get(knob) == Some(applied))
            .then_some(applied)
    }

    /// Returns whether they are of the server with these addresses, whatever it was called, or of one of its members.
    pub fn are_of(&self, addresses: &[(String, u16)]) -> bool {
        let all = members(addresses);
        self.members == all || all.split(',').any(|member| member == self.members)
    }

    /// Returns the server, `host:port`, where they are of that alone and not of the set that it may be in.
    pub fn member(&self) -> Option<&str> {
        let (_, rest) = self.server.split_once("://")?;
        let (host, rest) = rest.split_once('/')?;
        let (_, options) = rest.split_once('?')?;
        let is_direct = |option: &str| option.eq_ignore_ascii_case("directConnection=true");
        (!host.contains(',') && options.split('&').any(is_direct)).then_some(host)
    }

    /// Saves the record; it is on the disk when this returns.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), OriginalsError> {
        let path = folder.join(FILE);
        let write = || save(&path, &serde_json::to_vec_pretty(self)?);
        write().map_err(failed(&path))
    }

    /// Keeps the text of the configuration file until everything is put back.
    pub(crate) fn save_config(folder: &Path, text: &str) -> Result<String, OriginalsError> {
        let path = folder.join(CONFIG_COPY);
        save(&path, text.as_bytes()).map_err(failed(&path))?;
        Ok(sum(text))
    }

    /// Returns the original text of the configuration file.
    pub(crate) fn config_text(&self, folder: &Path) -> Result<Option<String>, OriginalsError> {
        let Some(config) = self.config.as_ref().filter(|_| !self.restored) else {
            return Ok(None);
        };
        let path = folder.join(CONFIG_COPY);
        let text = read_own(&path).map_err(failed(&path))?;
        if sum(&text) != config.sha256 {
            let why = "it was changed since it was written".into();
            return Err(OriginalsError::Invalid { path, why });
        }
        Ok(Some(text))
    }

    /// Records that everything is as it was; the copy of the configuration file is not needed any more.
    pub(crate) fn close(&mut self, folder: &Path) -> Result<(), OriginalsError> {
        self.restored = true;
        (self.applied, self.applying) = (None, None);
        self.save(folder)?;
        match fs::remove_file(folder.join(CONFIG_COPY)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&folder.join(CONFIG_COPY))(error))
            }
            _ => Ok(()),
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> OriginalsError {
    let path = path.to_path_buf();
    move |source| OriginalsError::Io { path, source }
}

fn sum(text: &str) -> String {
    let sum = Sha256::digest(text.as_bytes());
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the file with mode 0600 from the beginning, completely or not at all.
fn save(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".originals-")
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    fs::File::open(folder)?.sync_all()
}

fn read_own(path: &Path) -> io::Result<String> {
    let metadata = fs::symlink_metadata(path)?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_file() || !ours || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "it is not a file that only this user may write",
        ));
    }
    if metadata.len() > FILE_MAX_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    fs::read_to_string(path)
}
