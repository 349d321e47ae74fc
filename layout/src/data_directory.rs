//! A data directory: its state, its files and their names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use seekscope_run::layout::{DataState, NameSource};
use seekscope_wiredtiger::catalogue::{CATALOGUE_FILE, Catalogue};
use seekscope_wiredtiger::size_storer::{SIZE_STORER_FILE, StoredSize};
use seekscope_wiredtiger::walk::KeyValue;

use crate::LayoutError;
use crate::data_file::DataFile;
use crate::gate::Gate;
use crate::live::server_is_running;
use crate::page_cache::PageCache;
use crate::recognise;
use crate::snapshot::{Snapshot, Source};
use crate::table_files::{Names, TableFile, TableFiles};
use crate::unlisted::table_files_below;

/// A WiredTiger data directory, whether of a running server or not: also a snapshot, a copy or a
/// hot backup.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// A guess that only affects the wording of errors; see `live.rs`.
    pub state: DataState,
    /// Version of the engine, e.g. "11.3.0"; `None` if the directory does not say, as copied
    /// backups do not.
    pub wiredtiger_version: Option<String>,
    pub names: NameSource,
    /// Why MongoDB's catalogue or counts, if present, could not be used.
    pub unreadable_names: Vec<LayoutError>,
    tables: TableFiles,
    /// The source of `tables` and names; walks may have led to a newer snapshot since.
    named_from: Option<Source>,
    pub(crate) snapshot: Mutex<Option<Arc<Snapshot>>>,
    pub(crate) cache: PageCache,
}

impl DataDirectory {
    /// Reads what is there: the metadata and MongoDB's catalogue and counts. Locks and writes
    /// nothing. [`LayoutError::NotADataDirectory`] says what `path` looks like instead.
    pub fn open(path: &Path, stop: &AtomicBool) -> Result<Self, LayoutError> {
        let metadata = path.metadata().map_err(|e| LayoutError::reading(path, e))?;
        if !metadata.is_dir() {
            return Err(LayoutError::NotADataDirectory {
                path: path.into(),
                finding: "it is a file".to_owned(),
            });
        }
        let mut directory = Self {
            path: path.into(),
            state: DataState::default(),
            wiredtiger_version: None,
            names: NameSource::default(),
            unreadable_names: Vec::new(),
            tables: TableFiles::default(),
            named_from: None,
            snapshot: Mutex::new(None),
            cache: PageCache::default(),
        };
        match directory.refresh(stop) {
            Ok(_) => Ok(directory),
            Err(LayoutError::Missing { .. }) if !recognise::is_data_directory(path) => {
                Err(LayoutError::NotADataDirectory {
                    path: path.into(),
                    finding: recognise::describe(path),
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the data directory that a file lies in, at most two folders up (directoryPerDB and
    /// directoryForIndexes), and the file's name there. `None` for a lone file.
    pub fn containing(
        file: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<(Self, String)>, LayoutError> {
        let failed = |e| LayoutError::reading(file, e);
        let as_named = std::path::absolute(file).map_err(failed)?;
        let as_linked = file.canonicalize().map_err(failed)?;
        for path in [as_named, as_linked] {
            let mut above = path.ancestors().skip(1).take(3);
            if let Some(folder) = above.find(|folder| recognise::is_data_directory(folder)) {
                let name = path.strip_prefix(folder).unwrap_or(&path);
                let name = name.to_string_lossy().into_owned();
                return Ok(Some((Self::open(folder, stop)?, name)));
            }
        }
        Ok(None)
    }

    /// Reads names and counts again if the server has taken a checkpoint since. Returns false if it
    /// has not.
    pub fn refresh(&mut self, stop: &AtomicBool) -> Result<bool, LayoutError> {
        let gate = Gate::new(stop, None);
        let running = server_is_running(&self.path, Path::new("/proc"));
        if running {
            self.state = DataState::Live;
        }
        let what = "the metadata";
        let (snapshot, _) = self.with_restarts(&gate, what, Ok)?;
        self.state = match (&snapshot.source, running) {
            (_, true) => DataState::Live,
            (Source::Backup(..), false) => DataState::Backup,
            (Source::Turtle(_), false) => DataState::Stopped,
        };
        if self.named_from.as_ref() == Some(&snapshot.source) {
            return Ok(false);
        }
        self.unreadable_names.clear();
        let names = self.read_names(&gate)?;
        self.names = match (&names.catalogue, snapshot.metadata.file(CATALOGUE_FILE)) {
            (Some(_), _) => NameSource::Catalogue,
            (None, Some(_)) => NameSource::IndexMetadata,
            (None, None) => NameSource::TableNames,
        };
        // Reading the names may have led to a newer snapshot.
        let snapshot = self.held_snapshot().unwrap_or(snapshot);
        self.wiredtiger_version.clone_from(&snapshot.version);
        let on_disk = table_files_below(&self.path);
        self.tables = TableFiles::new(&snapshot, names, self.names, on_disk);
        self.named_from = Some(snapshot.source.clone());
        Ok(true)
    }

    /// Returns whether a server runs here now; a guess, as [`Self::state`] is.
    pub fn has_server(&self) -> bool {
        server_is_running(&self.path, Path::new("/proc"))
    }

    /// Returns the directory's path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the user files, sorted by name; those of WiredTiger and MongoDB themselves are not
    /// listed.
    pub fn tables(&self) -> &[TableFile] {
        self.tables.listed()
    }

    /// Finds a file by `database.collection`, `database.collection/index`, file name or ident; by
    /// file name or ident also those that are not listed. [`LayoutError::NoSuchTable`] lists what
    /// there is.
    pub fn find(&self, wanted: &str) -> Result<&TableFile, LayoutError> {
        self.tables.find(wanted, &self.path)
    }

    fn read_names(&mut self, gate: &Gate<'_>) -> Result<Names, LayoutError> {
        let add = |catalogue: &mut Catalogue, (_, entry): KeyValue| catalogue.add(&entry);
        let catalogue = self.read_if_readable(gate, CATALOGUE_FILE, add)?;
        if let Some(Catalogue { unreadable, .. }) = catalogue
            && unreadable > 0
        {
            self.unreadable_names.push(LayoutError::CatalogueEntries {
                path: self.path.join(CATALOGUE_FILE),
                entries: unreadable,
            });
        }
        let add =
            |sizes: &mut BTreeMap<_, _>, row: KeyValue| sizes.extend(StoredSize::of_row(&row));
        let sizes = self.read_if_readable(gate, SIZE_STORER_FILE, add)?;
        Ok(Names {
            catalogue,
            sizes: sizes.unwrap_or_default(),
        })
    }

    /// Returns what `add` makes of a table's rows; `None` if there is no such file, or if it is not
    /// readable, which is recorded: the trees can be walked all the same. Only a request to stop is
    /// an error.
    fn read_if_readable<T: Default>(
        &mut self,
        gate: &Gate<'_>,
        file: &str,
        add: impl Fn(&mut T, KeyValue),
    ) -> Result<Option<T>, LayoutError> {
        let snapshot = self.held_snapshot();
        if snapshot.is_some_and(|s| s.metadata.file(file).is_none()) {
            return Ok(None);
        }
        let read = |snapshot: Arc<Snapshot>| {
            // Each attempt begins anew.
            let mut made = T::default();
            let each_row = &mut |row| add(&mut made, row);
            snapshot.read_rows(&self.path, file, gate, &self.cache, each_row)?;
            Ok(made)
        };
        match self.with_restarts(gate, file, read) {
            Ok((made, _)) => Ok(Some(made)),
            Err(LayoutError::Interrupted) => Err(LayoutError::Interrupted),
            Err(error) => {
                self.unreadable_names.push(error);
                Ok(None)
            }
        }
    }

    /// Opens the table's file for reading, without read-ahead and without leaving a trace.
    pub fn open_table(&self, table: &TableFile) -> Result<std::fs::File, LayoutError> {
        let file = self.open_file(&table.file)?.without_read_ahead();
        Ok(file.into_file())
    }

    /// Returns whether a server is known to run here, which may overtake what is read.
    pub(crate) fn may_move_on(&self) -> bool {
        self.state == DataState::Live
    }

    /// Opens a file of this directory.
    pub(crate) fn open_file(&self, name: &str) -> Result<DataFile, LayoutError> {
        DataFile::open(&crate::tree_reading::path_of(&self.path, name)?)
    }
}
