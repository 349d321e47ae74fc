//! The state of a whole data directory at one moment, according to its metadata: every file with
//! its checkpoints. It stays readable until the server's next checkpoint or two.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use seekscope_wiredtiger::file_config::FileConfig;
use seekscope_wiredtiger::metadata::Metadata;
use seekscope_wiredtiger::turtle::{METADATA_FILE, Turtle};
use seekscope_wiredtiger::walk::{TreeWalk, Visit};

use crate::LayoutError;
use crate::data_file::DataFile;
use crate::gate::Gate;
use crate::page_cache::{PageCache, WalkPages};
use crate::tree_reading::{RowSink, TreeReader, path_of};

/// A turtle takes a kilobyte or two.
const TURTLE_BYTES_MAX: u64 = 1 << 20;
/// Enough for the metadata of a hundred thousand files, at a kilobyte per file.
const BACKUP_BYTES_MAX: u64 = 256 << 20;

/// Pages of a table with rows to read that are kept, all those of most servers. A server that moves
/// on causes them to be read repeatedly; what is beyond is read from the kernel's cache then.
const PAGES_BYTES_MAX: usize = 8 << 20;

/// What the metadata is read from, so that a change is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The text of the turtle.
    Turtle(Vec<u8>),
    /// Written once, while a backup cursor is open: identified by inode, length and time.
    Backup(u64, u64, i64, i64),
}

impl Source {
    /// Finds the present source. A backup cursor pins the checkpoints it lists for as long as it is
    /// open, and in a copy made through one it is what the copied files match; so it takes
    /// precedence over the turtle. A turtle is replaced by renaming; where that was interrupted
    /// only the new one is there.
    pub(crate) fn of(directory: &Path) -> Result<Self, LayoutError> {
        let backup = directory.join("WiredTiger.backup");
        if let Ok(m) = backup.metadata() {
            return Ok(Self::Backup(m.ino(), m.len(), m.mtime(), m.mtime_nsec()));
        }
        let read = |name| DataFile::read_whole(&directory.join(name), TURTLE_BYTES_MAX);
        let turtle = match read("WiredTiger.turtle") {
            Err(missing @ LayoutError::Missing { .. }) => {
                read("WiredTiger.turtle.set").map_err(|_| missing)
            }
            other => other,
        };
        Ok(Self::Turtle(turtle?))
    }
}

/// The metadata at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) source: Source,
    /// Version of WiredTiger, e.g. "11.3.0"; `None` for copied backups, which do not say.
    pub(crate) version: Option<String>,
    pub(crate) metadata: Metadata,
    /// The configuration of the metadata's own file, which a backup does not list.
    metadata_config: Option<Arc<FileConfig>>,
}

impl Snapshot {
    /// Reads the metadata that `source` leads to, once; a server may interfere.
    pub(crate) fn read(
        directory: &Path,
        source: Source,
        gate: &Gate<'_>,
        cache: &PageCache,
    ) -> Result<Self, LayoutError> {
        let malformed = |name: &str| {
            let path = directory.join(name);
            move |source| LayoutError::Turtle { path, source }
        };
        let Source::Turtle(text) = &source else {
            let name = "WiredTiger.backup";
            let text = DataFile::read_whole(&directory.join(name), BACKUP_BYTES_MAX)?;
            let metadata = Metadata::from_backup(&text).map_err(malformed(name))?;
            return Ok(Self {
                source,
                // Backups do not say, but a server with a backup under way also has a turtle.
                version: metadata
                    .version
                    .clone()
                    .or_else(|| turtle_version(directory)),
                metadata,
                metadata_config: None,
            });
        };
        let turtle = Turtle::parse(text).map_err(malformed("WiredTiger.turtle"))?;
        let (file, config) = (METADATA_FILE, turtle.metadata);
        let mut metadata = Metadata::default();
        let each_row = &mut |row| metadata.add_row(&row);
        read_rows(directory, file, &config, gate, cache, each_row)?;
        Ok(Self {
            source,
            version: turtle.version,
            metadata,
            metadata_config: Some(Arc::new(config)),
        })
    }

    /// Returns how to read a file, and from which roots.
    pub(crate) fn config(&self, file: &str) -> Result<Arc<FileConfig>, LayoutError> {
        if let (METADATA_FILE, Some(config)) = (file, &self.metadata_config) {
            return Ok(Arc::clone(config));
        }
        match self.metadata.file(file) {
            Some(Ok(config)) => Ok(Arc::clone(config)),
            Some(Err(source)) => Err(LayoutError::Config {
                file: file.into(),
                source: source.clone(),
            }),
            None => Err(LayoutError::NotInMetadata { file: file.into() }),
        }
    }

    /// Reads all rows of a table. After an error some may have been handed over.
    pub(crate) fn read_rows(
        &self,
        directory: &Path,
        file: &str,
        gate: &Gate<'_>,
        cache: &PageCache,
        each_row: &mut RowSink<'_>,
    ) -> Result<(), LayoutError> {
        let config = self.config(file)?;
        read_rows(directory, file, &config, gate, cache, each_row)
    }
}

fn turtle_version(directory: &Path) -> Option<String> {
    let text = DataFile::read_whole(&directory.join("WiredTiger.turtle"), TURTLE_BYTES_MAX);
    Turtle::parse(&text.ok()?).ok()?.version
}

fn read_rows(
    directory: &Path,
    name: &str,
    config: &FileConfig,
    gate: &Gate<'_>,
    cache: &PageCache,
    each_row: &mut RowSink<'_>,
) -> Result<(), LayoutError> {
    let cookie = config.newest_checkpoint().and_then(|c| c.cookie);
    let Some((cookie, root)) = cookie.and_then(|cookie| Some((cookie, cookie.root?))) else {
        return Ok(());
    };
    let file = DataFile::open(&path_of(directory, name)?)?;
    let failed = |source| LayoutError::Block {
        path: directory.join(name),
        source,
    };
    let walk = TreeWalk::new(root, config.format(), cookie.file_bytes, Visit::Rows);
    let mut walk = walk.map_err(failed)?;
    let pages = WalkPages::new(cache.take(name), PAGES_BYTES_MAX);
    let mut reader = TreeReader::new(file, gate, pages);
    let supplied = reader.supply(&mut walk, each_row);
    cache.keep(name, reader.into_pages(supplied.is_ok()));
    supplied?;
    walk.rows().map_err(failed)?.into_iter().for_each(each_row);
    Ok(())
}
