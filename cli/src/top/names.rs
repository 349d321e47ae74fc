//! Maps files to collections and indexes for a long-running view, while collections come and go.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use seekscope_run::{FileRecord, FileRole, Limitation};
use seekscope_server::{FileMap, Server};

use crate::file_names::FileNames;
use crate::session::name_file;

/// Minimum time between queries for new collections.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// The known names, shared by clones; the thread that collects events uses one.
#[derive(Clone, Default)]
pub struct KnownNames(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    map: FileMap,
    /// A table was seen whose name is unknown.
    is_lacking: bool,
    asked: Option<Instant>,
}

impl KnownNames {
    /// Gives a file its role and namespace.
    pub fn name(&self, file: &mut FileRecord) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        name_file(&known.map, file);
        let is_table = matches!(file.role, FileRole::Collection | FileRole::Index);
        known.is_lacking |= is_table && file.namespace.is_none();
    }

    /// Queries the names. Returns a limitation if some are missing.
    pub async fn ask(&self, server: Option<&Server>, dbpath: Option<&Path>) -> Option<Limitation> {
        let names = FileNames::find(server, dbpath, &[]).await;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known {
            map: names.map,
            is_lacking: false,
            asked: Some(Instant::now()),
        };
        names.limitation
    }

    /// Returns whether to query again because there are tables without names.
    pub fn want_asking(&self) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_lacking && known.asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN)
    }
}
