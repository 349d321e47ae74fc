//! The server's limit of memory for index builds, set for the command and put back at its end. It is a knob of `tune`:
//! what it was is on the disk before it is changed, and a lock names where, so that a kill does not lose it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use mongodb::bson::doc;
use seekscope_run::tune::KnobValue;
use seekscope_server::Server;
use seekscope_settings::{
    Applier, ApplyError, Catalogue, KnobEntry, Means, Reign, Route, ServerProgram, TunerLock,
};
use seekscope_tune::space::Configuration;

use crate::bench::target::Target;
use crate::unrestored;

const KNOB: &str = "index_build_memory";

/// A server whose limit was changed. [`MemoryLimit::restore`] restores it; dropping does not, since that
/// requires a command.
pub struct MemoryLimit {
    applier: Applier,
    /// As it was named, which may be a set.
    named: Server,
    /// That of the set's primary, which has the limit: other members do not.
    reign: Option<Reign>,
    /// Has the original.
    folder: PathBuf,
    /// Name the folder with the original.
    _locks: Vec<TunerLock>,
}

/// Locks a server whose limit is to be set, and the primary of a set; a private one ends with this process and needs no
/// lock. Refuses a server that others tune, or that a killed run left changed.
pub async fn lock(target: &Target, leases: &Path) -> Result<Vec<TunerLock>> {
    if target.facts.local {
        return Ok(Vec::new());
    }
    let folder = unrestored::lock_folder(leases)?;
    let server = target.server()?;
    let all = [server, &server.writer().await].map(|one| one.addresses().to_vec());
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
        let named = target.server()?.clone();
        let reign = Reign::of(&named).await?;
        let server = named.writer().await;
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
            named,
            reign,
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

    /// Checks that the set, if it is one, still has the primary that has the limit.
    pub async fn check(&self) -> Result<(), ApplyError> {
        match &self.reign {
            Some(reign) => Ok(reign.check(&self.named).await?),
            None => Ok(()),
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
