//! Finds which file holds which collection or index, for every command that shows files.
//!
//! Servers from 6.0 on return their whole catalogue at once. For others the catalogue in the data directory is
//! read, if permitted, which costs the server nothing. The server is asked about what is missing there (created
//! since the last checkpoint), or about everything if the directory cannot be read: one collection at a time
//! and within limits.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seekscope_layout::{DataDirectory, LayoutError};
use seekscope_run::{Limitation, NameSource};
use seekscope_server::{FileMap, Namespace, Server, ServerError, Unnamed};
use seekscope_wiredtiger::catalogue::CATALOGUE_FILE;

/// Time limit for reading the metadata of a data directory, which is long if there are very many tables.
const DIRECTORY_LIMIT: Duration = Duration::from_secs(10);
const WITH_ROLE: &str = "grant the user the role that `seekscope doctor --print-role` prints";
const WITH_DIRECTORY: &str = "run seekscope on the server's host as root or as the server's user";

/// The known names, and what is missing.
#[derive(Debug, Default)]
pub struct FileNames {
    pub map: FileMap,
    pub limitation: Option<Limitation>,
}

/// Why one of the three ways failed.
#[derive(Debug)]
struct Refusal {
    why: String,
    remedy: Option<&'static str>,
}

impl FileNames {
    /// Asks the server, if there is one, and reads its data directory, if known, at the path where this process
    /// can open it. For `named`, the server's answer takes precedence over the directory's catalogue, which is
    /// that of the last checkpoint.
    pub async fn find(
        server: Option<&Server>,
        directory: Option<&Path>,
        named: &[Namespace],
    ) -> Self {
        let catalogue = match server {
            Some(server) => match FileMap::of_catalogue(server).await {
                Ok(map) => return Self::of_catalogue(map),
                Err(error) => Some(Refusal::of_catalogue(&error)),
            },
            None => None,
        };
        let read = match directory {
            Some(path) => of_directory(path).await,
            None => Err(Refusal {
                why: "its data directory is not known".into(),
                remedy: Some(WITH_DIRECTORY),
            }),
        };
        let (mut map, directory) = match read {
            Ok(map) => (map, None),
            Err(refusal) => (FileMap::default(), Some(refusal)),
        };
        let asked = match server {
            Some(server) => Some(map.ask_about_the_rest(server, named).await),
            None => None,
        };
        let limitation = limitation(&map, catalogue, directory, asked);
        Self { map, limitation }
    }

    fn of_catalogue(map: FileMap) -> Self {
        let limitation = map.truncated.then(|| Limitation {
            what: SOME_UNNAMED.into(),
            why: "the server has more collections than seekscope reads from its catalogue".into(),
            remedy: String::new(),
        });
        Self { map, limitation }
    }
}

const SOME_UNNAMED: &str = "some files are shown without their collections";
const ALL_UNNAMED: &str = "files are shown without their collections";

/// Returns whether a limitation says that names are lacking, which a later question may turn up.
pub fn is_about_names(limitation: &Limitation) -> bool {
    [SOME_UNNAMED, ALL_UNNAMED].contains(&limitation.what.as_str())
}

fn limitation(
    map: &FileMap,
    catalogue: Option<Refusal>,
    directory: Option<Refusal>,
    asked: Option<Unnamed>,
) -> Option<Limitation> {
    // The directory names everything except what is newer than its last checkpoint; a server that does not
    // reveal the rest is not worth a limitation.
    let is_complete = match &asked {
        Some(unnamed) => unnamed.why.is_none() || (directory.is_none() && unnamed.is_refused),
        None => directory.is_none(),
    };
    if is_complete {
        return None;
    }
    let asked = asked.map(Refusal::of_unnamed);
    let refusals: Vec<Refusal> = [catalogue, directory, asked]
        .into_iter()
        .flatten()
        .collect();
    let mut remedies: Vec<&str> = refusals.iter().filter_map(|r| r.remedy).collect();
    remedies.sort_unstable();
    remedies.dedup();
    let why: Vec<String> = refusals.into_iter().map(|r| r.why).collect();
    let what = match map.is_empty() {
        true => ALL_UNNAMED,
        false => SOME_UNNAMED,
    };
    Some(Limitation {
        what: what.into(),
        why: why.join("; "),
        remedy: remedies.join(", or "),
    })
}

impl Refusal {
    fn of_catalogue(error: &ServerError) -> Self {
        match error {
            // Before 6.0 this stage does not exist, and no privilege enables it.
            ServerError::Failed { .. } => Self {
                why: "a server older than 6.0 does not return its catalogue in one answer".into(),
                remedy: None,
            },
            ServerError::NotAuthorised { .. } => Self {
                why: "the user is not allowed to read the server's catalogue".into(),
                remedy: Some(WITH_ROLE),
            },
            other => Self {
                why: other.to_string(),
                remedy: None,
            },
        }
    }

    fn of_directory(error: &LayoutError) -> Self {
        let remedy = matches!(error, LayoutError::PermissionDenied { .. });
        Self {
            why: error.to_string(),
            remedy: remedy.then_some(WITH_DIRECTORY),
        }
    }

    fn of_unnamed(unnamed: Unnamed) -> Self {
        let about = match unnamed.collections {
            0 => "the server was asked about its collections".to_string(),
            1 => "1 collection remains without a name".into(),
            n => format!("{n} collections remain without names"),
        };
        Self {
            why: format!("{about}: {}", unnamed.why.unwrap_or_default()),
            remedy: unnamed.is_refused.then_some(WITH_ROLE),
        }
    }
}

/// Reads the directory's catalogue on another thread: directories of very many tables take a while.
async fn of_directory(path: &Path) -> Result<FileMap, Refusal> {
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, path) = (Arc::clone(&stop), path.to_path_buf());
    let reading = tokio::task::spawn_blocking(move || DataDirectory::open(&path, &flag));
    let read = tokio::time::timeout(DIRECTORY_LIMIT, reading).await;
    stop.store(true, Ordering::Relaxed);
    match read {
        Ok(Ok(Ok(directory))) => named_by(&directory),
        Ok(Ok(Err(error))) => Err(Refusal::of_directory(&error)),
        Ok(Err(_)) | Err(_) => Err(Refusal {
            why: "reading the data directory's catalogue took too long".into(),
            remedy: None,
        }),
    }
}

fn named_by(directory: &DataDirectory) -> Result<FileMap, Refusal> {
    if directory.names == NameSource::TableNames {
        let why = match directory.unreadable_names.first() {
            Some(why) => why.to_string(),
            None if directory.path().join(CATALOGUE_FILE).exists() => {
                "no checkpoint contains the catalogue of its data directory yet".into()
            }
            None => "its data directory has no MongoDB catalogue".into(),
        };
        return Err(Refusal { why, remedy: None });
    }
    let mut map = FileMap::default();
    for table in directory.tables() {
        if let Some(namespace) = &table.namespace {
            map.add_table(table.ident(), namespace, table.index.as_deref());
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(why: &str, remedy: Option<&'static str>) -> Option<Refusal> {
        Some(Refusal {
            why: why.into(),
            remedy,
        })
    }

    #[test]
    fn nothing_is_missing_where_one_of_the_ways_names_all() {
        let map = FileMap::default();
        let old = || refusal("older than 6.0", None);
        let all_told = Some(Unnamed::default());
        assert_eq!(limitation(&map, old(), None, all_told.clone()), None);
        let closed = refusal("permission denied", Some(WITH_DIRECTORY));
        assert_eq!(limitation(&map, old(), closed, all_told), None);
        let refused = Unnamed {
            why: Some("the login may not run collStats".into()),
            is_refused: true,
            collections: 1,
        };
        assert_eq!(limitation(&map, old(), None, Some(refused)), None);
        assert_eq!(limitation(&map, None, None, None), None);
    }

    #[test]
    fn what_is_missing_names_what_would_help() {
        let refused = Unnamed {
            why: Some("the login may not run collStats".into()),
            is_refused: true,
            collections: 3,
        };
        let closed = || refusal("permission denied", Some(WITH_DIRECTORY));
        let old = refusal("older than 6.0", None);
        let map = FileMap::default();
        let found = limitation(&map, old, closed(), Some(refused.clone())).unwrap();
        assert_eq!(found.what, "files are shown without their collections");
        assert!(found.why.contains("3 collections"), "{found:?}");
        assert!(found.remedy.contains("--print-role"), "{found:?}");
        assert!(found.remedy.contains("as root"), "{found:?}");
        // No privilege makes a server faster.
        let slow = Unnamed {
            is_refused: false,
            ..refused
        };
        let mut map = FileMap::default();
        map.add_table("collection-1", "a.b", None);
        let found = limitation(&map, None, None, Some(slow)).unwrap();
        assert_eq!(found.what, SOME_UNNAMED);
        assert_eq!(found.remedy, "");
    }
}
