//! The server's limit of memory for index builds, set for the command and put back at its end. It is a knob of `tune`:
//! what it was is on the disk before it is changed, and a lock names where, so that a kill does not lose it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use mongodb::bson::doc;
use seekscope_run::tune::KnobValue;
use seekscope_server::Server;
use seekscope_settings::{Applier, Catalogue, KnobEntry, Means, Route, ServerProgram, TunerLock};
use seekscope_tune::space::Configuration;

use crate::bench::target::Target;
use crate::unrestored;

const KNOB: &str = "index_build_memory";

/// A server whose limit was changed. [`MemoryLimit::restore`] restores it; dropping does not, since that
/// requires a command.
pub struct MemoryLimit {
    applier: Applier,
    /// The folder that holds the original value.
    folder: PathBuf,
    /// Name the folder with the original.
    _locks: Vec<TunerLock>,
}

/// Locks a server whose limit is to be set, and the primary of a set; a private one ends with this process and needs no
/// lock. Refuses a server that others tune, or that an earlier run left changed.
pub fn lock(target: &Target, leases: &Path) -> Result<Vec<TunerLock>> {
    if target.facts.local {
        return Ok(Vec::new());
    }
    let folder = unrestored::lock_folder(leases)?;
    let all = [target.server()?, target.writer()?].map(|one| one.addresses().to_vec());
    let locks = TunerLock::servers(&folder, &all)?;
    for lock in &locks {
        unrestored::refuse(lock, None)?;
    }
    Ok(locks)
}

impl MemoryLimit {
    /// Records in `folder`, which is created, what the limit is, and sets it, MiB. An error leaves it as it was.
    pub async fn set(
        target: &Target,
        mut locks: Vec<TunerLock>,
        megabytes: u32,
        folder: &Path,
    ) -> Result<Self> {
        // The one that is locked, also if the set has elected another meanwhile: the caller finds that out.
        let server = target.writer()?.clone();
        let entry = entry(&server).await?;
        std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let means = Means {
            server: Some(server),
            ..Means::default()
        };
        let mut applier = Applier::begin(&[entry], means, folder)?;
        for lock in &mut locks {
            lock.name_run(folder).context("cannot write the lock")?;
        }
        let value = KnobValue::Integer(megabytes.into());
        let wanted = Configuration([(KNOB.to_string(), value)].into());
        let set = applier.apply(&wanted).await;
        let mut limit = Self {
            applier,
            folder: folder.into(),
            _locks: locks,
        };
        match set {
            Ok(_) => Ok(limit),
            Err(error) => {
                // The server may have taken a value that reads as another.
                limit.restore().await?;
                Err(error.into())
            }
        }
    }

    /// Restores the former limit. The error says where and why it is not restored, and what it was.
    pub async fn restore(&mut self) -> Result<()> {
        let restored = self.applier.restore().await;
        let server = self.applier.server().map(Server::shown_uri);
        let server = server.unwrap_or_default();
        let mut knobs = restored.knobs.into_iter();
        knobs.try_for_each(|(_, knob)| knob.map_err(|why| anyhow!("{server}: {why}")))
    }

    /// Returns the folder with the original.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Returns the knob with the server's present limit as its original value.
async fn entry(server: &Server) -> Result<KnobEntry> {
    let file = Catalogue::of(ServerProgram::Mongod)?;
    let mut entries = file.find(KNOB)?.into_iter().cloned();
    let mut entry = entries.next().context("the catalogue has no such knob")?;
    if let Route::Parameter { name } = &entry.set {
        let question = doc! { "getParameter": 1, name: 1 };
        let reply = server.command("admin", question).await?;
        let value = reply.get_i32(name).map(i64::from);
        let value = value.or_else(|_| reply.get_i64(name));
        entry.knob.default = KnobValue::Integer(value.context("its value is no whole number")?);
    }
    Ok(entry)
}
