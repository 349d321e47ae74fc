//! Which file is which collection or index: as the server says, or else as its data directory does.

use std::path::{Component, Path};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use seekscope_layout::DataDirectory;
use seekscope_run::{FileRecord, FileRole, Limitation};
use seekscope_server::{FileMap, Server};

use crate::session::name_file;

/// New collections are asked for no more often.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// `directoryPerDB` and `directoryForIndexes` put up to two folders before a table's name.
const FOLDERS_MAX: usize = 2;

/// Clones share what is known; one is asked by the thread that collects events.
#[derive(Clone, Default)]
pub struct FileNames(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    map: FileMap,
    directory: Option<DataDirectory>,
    /// A table was seen that nobody could name.
    is_lacking: bool,
    asked: Option<Instant>,
}

impl FileNames {
    /// Gives a file its role and namespace.
    pub fn name(&self, file: &mut FileRecord) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        name_file(&known.map, file);
        if file.namespace.is_none() {
            if let Some(directory) = &known.directory {
                name_by_directory(directory, file);
            }
            let is_table = matches!(file.role, FileRole::Collection | FileRole::Index);
            known.is_lacking |= is_table && file.namespace.is_none();
        }
    }

    /// Learns the names. The server is asked first: its answer needs no right on its files.
    pub async fn ask(&self, server: Option<&Server>, dbpath: Option<&Path>) -> Option<Limitation> {
        let map = match server {
            Some(server) => FileMap::read(server, None).await.map_err(|e| e.to_string()),
            None => Err("there is no login to ask the server with".into()),
        };
        let directory = || match dbpath {
            Some(path) => {
                DataDirectory::open(path, &AtomicBool::new(false)).map_err(|e| e.to_string())
            }
            None => Err("where its data lies is not known".into()),
        };
        // Servers before 6.0 do not tell, their directories do.
        let directory = map.is_err().then(directory);
        let limitation = match (&map, &directory) {
            (Err(server), Some(Err(directory))) => Some(Limitation {
                what: "files are shown without their collections".into(),
                why: format!("{server}; {directory}"),
                remedy: "Grant the user the built-in role clusterMonitor".into(),
            }),
            _ => None,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known {
            map: map.unwrap_or_default(),
            directory: directory.and_then(Result::ok),
            is_lacking: false,
            asked: Some(Instant::now()),
        };
        limitation
    }

    /// Is it time to ask again, because there are tables without names?
    pub fn want_asking(&self) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_lacking && known.asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN)
    }
}

/// By the end of its path: a server in a container sees its files elsewhere than we do.
fn name_by_directory(directory: &DataDirectory, file: &mut FileRecord) {
    let path = Path::new(&file.path);
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let ends = (1..=(1 + FOLDERS_MAX).min(parts.len())).rev();
    let mut names = ends.map(|length| parts[parts.len() - length..].join("/"));
    let tables = directory.tables();
    let table = names.find_map(|name| tables.iter().find(|table| table.file == name));
    if let Some(namespace) = table.and_then(|table| table.namespace.as_ref()) {
        let index = table.and_then(|table| table.index.as_ref());
        (file.role, file.namespace) = match index {
            Some(index) => (FileRole::Index, Some(format!("{namespace}/{index}"))),
            None => (FileRole::Collection, Some(namespace.clone())),
        };
    }
}
