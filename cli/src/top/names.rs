//! Maps files to collections and indexes for a long-running view, while collections come and go.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use seekscope_run::{FileRecord, FileRole, Limitation};
use seekscope_server::FileMap;

use crate::file_names::FileNames;
use crate::member_files::MemberFiles;
use crate::session::name_file;
use crate::subjects::Subject;

/// Minimum time between queries for new collections.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// The known names, shared by clones; the thread that collects events uses one.
#[derive(Clone, Default)]
pub struct KnownNames(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    map: FileMap,
    /// The names where several members are watched; empty otherwise.
    members: MemberFiles,
    /// A table was seen whose name is unknown.
    is_lacking: bool,
    asked: Option<Instant>,
}

impl KnownNames {
    /// Gives a file its role, namespace and member.
    pub fn name(&self, file: &mut FileRecord) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.members.is_empty() {
            true => name_file(&known.map, file),
            false => known.members.name(file),
        }
        let is_table = matches!(file.role, FileRole::Collection | FileRole::Index);
        known.is_lacking |= is_table && file.namespace.is_none();
    }

    /// Queries the names of all of them. Returns limitations if some are missing.
    pub async fn ask<'a>(&self, subjects: impl Iterator<Item = &'a Subject>) -> Vec<Limitation> {
        let (mut found, mut limitations) = (Known::default(), Vec::new());
        for subject in subjects {
            let names =
                FileNames::find(subject.server.as_ref(), subject.data().as_deref(), &[]).await;
            let limitation = names.limitation.into_iter();
            limitations.extend(limitation.map(|l| subject.limitation(l)));
            match (&subject.label, subject.pid) {
                (Some(label), Some(pid)) => {
                    let data = subject.dbpath.as_deref();
                    found.members.add(label, pid, data, names.map);
                }
                _ => found.map = names.map,
            }
        }
        found.asked = Some(Instant::now());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
        limitations
    }

    /// Returns whether to query again because there are tables without names.
    pub fn want_asking(&self) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_lacking && known.asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN)
    }
}
