//! Maps files to collections and indexes for a long-running view, while collections come and go.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use seekscope_run::{FileRecord, FileRole, Limitation};
use seekscope_server::FileMap;

use crate::file_names::FileNames;
use crate::member_files::MemberFiles;
use crate::name_renewal::NameRenewal;
use crate::session::name_file;
use crate::subjects::Subject;

/// The known names, shared by clones; the thread that collects events uses one.
#[derive(Clone, Default)]
pub struct KnownNames(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    map: FileMap,
    /// The names where several members are watched; empty otherwise.
    members: MemberFiles,
    renewal: NameRenewal,
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
        if is_table && file.namespace.is_none() {
            known.renewal.lacks(Path::new(&file.path));
        }
    }

    /// Queries the names of all of them. Returns limitations if some are missing.
    pub async fn ask<'a>(&self, subjects: impl Iterator<Item = &'a Subject>) -> Vec<Limitation> {
        let began = Instant::now();
        let (mut map, mut members) = (FileMap::default(), MemberFiles::default());
        let mut limitations = Vec::new();
        for subject in subjects {
            let names =
                FileNames::find(subject.server.as_ref(), subject.data().as_deref(), &[]).await;
            let limitation = names.limitation.into_iter();
            limitations.extend(limitation.map(|l| subject.limitation(l)));
            match (&subject.label, subject.pid) {
                (Some(label), Some(pid)) => {
                    let data = subject.dbpath.as_deref();
                    members.add(label, pid, data, names.map);
                }
                _ => map = names.map,
            }
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (known.map, known.members) = (map, members);
        known.renewal.asked(began, Instant::now());
        limitations
    }

    /// Returns whether to query again because there are tables without names.
    pub fn want_asking(&self) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.renewal.is_due(Instant::now())
    }
}
