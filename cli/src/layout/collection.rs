//! Measures the layout of one collection and its indexes, for commands that need it in addition to their own
//! work.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_layout::{DataDirectory, LayoutError, TableFile, WalkOptions};
use seekscope_run::{DataState, LayoutFile, LayoutMeasurement};
use seekscope_server::{FileMap, Namespace};

use super::measurement::named_file;
use super::record::Recorder;
use super::scan_disk::{ScanDisk, ScanDisks};
use crate::exit::message_of;

/// Gentle on hard disks, yet quick on SSDs.
const PARALLEL_READS: usize = 8;

/// The layout of one collection and its indexes. The collection's own file comes first.
#[derive(Debug, Clone, Default)]
pub struct CollectionLayout {
    pub layout: LayoutMeasurement,
}

impl CollectionLayout {
    /// Walks the files in the data directory at `path`, as of their newest checkpoint. `names` is what the
    /// server says of its files; it matters if the directory does not tell.
    pub fn measure(
        path: &Path,
        names: &FileMap,
        namespace: &Namespace,
        disk: ScanDisk,
        memory_bytes: u64,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let directory = DataDirectory::open(path, stop)?;
        let recorder = Recorder {
            disks: ScanDisks::one(disk),
            memory_bytes,
            updates_per_hour: None,
            since: None,
        };
        let files = (1u32..).zip(files_of(&directory, names, namespace)?);
        let files = files
            .map(|(id, table)| walk(&directory, names, &recorder, id, table, stop))
            .collect::<Result<Vec<_>>>()?;
        let layout = LayoutMeasurement {
            path: directory.path().display().to_string(),
            state: DataState::Live,
            names: directory.names,
            wiredtiger_version: directory.wiredtiger_version.clone(),
            predicted_for: recorder.disks.in_words(),
            disk_measured: recorder.disks.measured(),
            named: vec![namespace.to_string()],
            files,
            members: Vec::new(),
            history: Vec::new(),
        };
        Ok(Self { layout })
    }

    /// Returns the collection's own file, if it has figures.
    pub fn documents(&self) -> Option<&LayoutFile> {
        let first = self.layout.files.first()?;
        first.not_measured.is_none().then_some(first)
    }
}

/// Returns the collection's file, then those of its indexes; a table that several share is listed once.
fn files_of<'a>(
    directory: &'a DataDirectory,
    names: &FileMap,
    namespace: &Namespace,
) -> Result<Vec<&'a TableFile>> {
    let full_name = namespace.to_string();
    let own = directory.find(&full_name).or_else(|error| {
        let known = names.collection_file(namespace);
        known
            .and_then(|file| directory.find(&file).ok())
            .ok_or(error)
    })?;
    let mut files = vec![own];
    let of_indexes = names.index_files(namespace);
    files.extend(directory.tables().iter().filter(|table| {
        let is_named =
            table.namespace.as_deref() == Some(full_name.as_str()) && table.index.is_some();
        table.file != own.file && (is_named || of_indexes.contains(&table.file))
    }));
    Ok(files)
}

fn walk(
    directory: &DataDirectory,
    names: &FileMap,
    recorder: &Recorder,
    file_id: u32,
    table: &TableFile,
    stop: &AtomicBool,
) -> Result<LayoutFile> {
    let options = WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: None,
        stop,
        keep_pages: false,
    };
    let mut file = named_file(file_id, table, directory, names);
    let path = directory.path().join(&table.file);
    match directory.walk(table, &options) {
        Ok(walked) => recorder.fill(&mut file, &walked, &path),
        Err(error @ (LayoutError::Interrupted | LayoutError::NotInMetadata { .. })) => {
            return Err(error.into());
        }
        Err(error) => file.not_measured = Some(message_of(&error.into())),
    }
    Ok(file)
}
