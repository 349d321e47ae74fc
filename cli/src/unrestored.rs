//! Settings of servers that commands left changed, because they were killed or could not put them back: what they were
//! is in the folders that the locks on those servers name.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seekscope_run::Limitation;
use seekscope_server::Server;
use seekscope_settings::{Originals, TunerLock};

use crate::exit::Elsewhere;

/// How the names of the folders begin that have the originals of one server each, in the folder of a run that sets
/// several.
pub const ORIGINALS_OF: &str = "originals-";

/// What a command left changed on its servers.
pub struct Unrestored {
    /// The folder with their originals.
    folder: PathBuf,
    originals: Vec<Originals>,
}

impl fmt::Display for Unrestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.in_words();
        let remedy = remedy(&self.folder);
        write!(
            f,
            "An earlier run did not restore {settings}; restore it with: {remedy}"
        )
    }
}

impl Unrestored {
    /// Returns the settings of each server that has some.
    fn in_words(&self) -> String {
        let of_server = |originals: &Originals| {
            let settings = originals.outstanding_in_words().join(", ");
            match (settings.as_str(), originals.server.as_str()) {
                ("", _) => None,
                (_, "") => Some(settings),
                (_, server) => Some(format!("{settings} on {server}")),
            }
        };
        let all: Vec<String> = self.originals.iter().filter_map(of_server).collect();
        all.join(", ")
    }
}

/// Returns the command that puts back what the folder has the originals of.
pub fn remedy(folder: &Path) -> String {
    format!("seekscope tune --restore {}", folder.display())
}

/// Returns what earlier commands left changed, as far as their folders still say it.
pub fn all(leases: &Path) -> Vec<Unrestored> {
    let folders = TunerLock::last_runs(&folder_of_locks(leases)).into_iter();
    folders.filter_map(|folder| of_run(&folder)).collect()
}

/// Says that an earlier command left this server changed, which is measured as it is.
pub fn limitation(leases: &Path, server: &Server) -> Option<Limitation> {
    let is_of_it = |left: &Unrestored| {
        let mut originals = left.originals.iter();
        originals.any(|one| !one.outstanding().is_empty() && one.are_of(server.addresses()))
    };
    let left = all(leases).into_iter().find(is_of_it)?;
    Some(Limitation {
        what: format!(
            "the server does not have the settings of its owner, which were {}",
            left.in_words()
        ),
        why: "an earlier run changed them and did not restore them".into(),
        remedy: remedy(&left.folder),
    })
}

/// Refuses a server with unrestored settings of an earlier command, which would be taken for the server's own. The
/// command that is `resumed` puts back its own.
pub fn refuse(lock: &TunerLock, resumed: Option<&Path>) -> Result<()> {
    let Some(folder) = lock.last_run() else {
        return Ok(());
    };
    if resumed.and_then(|run| run.canonicalize().ok()).as_deref() == Some(folder) {
        return Ok(());
    }
    let Some(left) = of_run(folder) else {
        return Ok(());
    };
    Err(Elsewhere(format!(
        "an earlier run ended before it could restore {}, and this run would take the changed \
         values for the original ones: run {} first",
        left.in_words(),
        remedy(folder)
    ))
    .into())
}

/// Returns the folder for locks, created if it is missing.
pub fn lock_folder(leases: &Path) -> Result<PathBuf> {
    let folder = folder_of_locks(leases);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn folder_of_locks(leases: &Path) -> PathBuf {
    leases.join("tuners")
}

/// Returns the folders with the originals of one server each below that of a run, in the order of their names.
pub fn folders_below(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with(ORIGINALS_OF)
    });
    let mut folders: Vec<PathBuf> = named
        .map(|entry| entry.path())
        .filter(|folder| folder.is_dir() && !matches!(Originals::load(folder), Ok(None)))
        .collect();
    folders.sort();
    folders
}

/// Returns what was noted before the first change, of one server or of each; what cannot be read says nothing.
pub fn originals_of(run: &Path) -> Vec<Originals> {
    let folders = std::iter::once(run.to_path_buf()).chain(folders_below(run));
    let read = folders.filter_map(|folder| Originals::load(&folder).ok().flatten());
    read.collect()
}

/// Returns what this run left changed. A folder that is gone or unreadable says nothing.
pub fn of_run(run: &Path) -> Option<Unrestored> {
    let originals = originals_of(run);
    let is_left = originals.iter().any(|one| !one.outstanding().is_empty());
    is_left.then(|| Unrestored {
        folder: run.to_path_buf(),
        originals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_run_left_changed_is_told_until_it_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let (leases, run) = (root.path().join("leases"), root.path().join("run"));
        std::fs::create_dir(&run).unwrap();
        assert!(all(&leases).is_empty());
        let originals = |restored: bool| {
            let text = serde_json::json!({
                "schema": "seekscope-originals-1", "server": "mongodb://h:7/", "members": "h:7",
                "knobs": [{
                    "name": "sync", "set": { "parameter": { "name": "syncdelay" } },
                    "baseline": 60, "conditional": false,
                }],
                "touched": ["sync"], "refused": [], "files": {}, "config": null,
                "restored": restored,
            });
            let path = run.join("originals.json");
            std::fs::write(path, text.to_string()).unwrap();
        };
        originals(false);
        let locks = lock_folder(&leases).unwrap();
        let lock = || TunerLock::server(&locks, &[("h".into(), 7)]).unwrap();
        let mut first = lock();
        refuse(&first, None).unwrap();
        first.name_run(&run).unwrap();
        assert!(all(&leases).is_empty(), "it is at work");
        drop(first);
        let told: Vec<String> = all(&leases).iter().map(Unrestored::to_string).collect();
        let remedy = remedy(&run);
        let expected = format!(
            "An earlier run did not restore sync = 60 (setParameter syncdelay) on mongodb://h:7/; restore it with: {remedy}"
        );
        assert_eq!(told, [expected]);
        let refused = refuse(&lock(), None).unwrap_err().to_string();
        assert!(
            refused.contains("sync = 60") && refused.contains(&remedy),
            "{refused}"
        );
        refuse(&lock(), Some(&run)).unwrap();
        originals(true);
        refuse(&lock(), None).unwrap();
        assert!(all(&leases).is_empty());
    }
}
