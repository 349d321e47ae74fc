//! A run directory on disk: created once, written as the run goes on, opened by any later command.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::io_spool::{SpoolReader, SpoolWriter};
use crate::parquet_file::{IoParquetWriter, ROWS_PER_GROUP, read_files, read_io, write_files};
use crate::{FileRecord, IoEvent, RunDocument, document};

const DOCUMENT: &str = "run.json";
const IO: &str = "io.parquet";
const FILES: &str = "files.parquet";
/// Events not yet turned into `io.parquet`, and the files they refer to.
const IO_SPOOL: &str = "io.spool";
const FILES_SPOOL: &str = "files.spool";
/// The self-contained report.
const REPORT: &str = "report.html";

/// What can go wrong with a run directory. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a run directory: it holds no {DOCUMENT}", path.display())]
    NotARun { path: PathBuf },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} was written by a newer seekscope (schema {found}, this one reads up to {}); update seekscope to open it", path.display(), document::SCHEMA)]
    TooNew { path: PathBuf, found: String },
    #[error("{} exists and is not empty; name another --out, seekscope does not write into foreign folders", path.display())]
    Occupied { path: PathBuf },
    #[error("{} is in use: its run is still going on; wait for its end, or stop it", path.display())]
    InUse { path: PathBuf },
    #[error("cannot write {}: {reason}", path.display())]
    Write { path: PathBuf, reason: String },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}

/// A run directory, locked as long as it is open: two processes never write the same run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Holds the lock, which the kernel releases however the process ends.
    _lock: File,
}

/// Locks the folder. Filesystems that know no locks are taken as unlocked.
fn lock(path: &Path) -> Result<File, RunError> {
    let folder = File::open(path).map_err(io_error("open", path))?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(RunError::InUse { path: path.into() }),
        _ => Ok(folder),
    }
}

impl RunDirectory {
    /// Makes the folder (parents too) and writes `document` into it. An existing empty folder
    /// will do; anything else is refused.
    pub fn create(path: &Path, document: &RunDocument) -> Result<Self, RunError> {
        fs::create_dir_all(path).map_err(io_error("create", path))?;
        let mut entries = fs::read_dir(path).map_err(io_error("read", path))?;
        if entries.next().is_some() {
            return Err(RunError::Occupied { path: path.into() });
        }
        let path = path.canonicalize().map_err(io_error("resolve", path))?;
        let directory = Self {
            _lock: lock(&path)?,
            path,
        };
        directory.save(document)?;
        Ok(directory)
    }

    /// Opens a run. If it crashed before its events became `io.parquet`, they do so now.
    pub fn open(path: &Path) -> Result<(Self, RunDocument), RunError> {
        let file = path.join(DOCUMENT);
        let text = match fs::read_to_string(&file) {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(RunError::NotARun { path: path.into() });
            }
            other => other.map_err(io_error("read", &file))?,
        };
        let damaged = |e: serde_json::Error| RunError::Damaged {
            path: file.clone(),
            reason: e.to_string(),
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        let found = value["schema"].as_str().unwrap_or("none").to_string();
        match found.strip_prefix("seekscope/run/").map(str::parse::<u32>) {
            Some(Ok(0..=1)) => {}
            Some(Ok(_)) => return Err(RunError::TooNew { path: file, found }),
            _ => return Err(RunError::NotARun { path: path.into() }),
        }
        let document = serde_json::from_value(value).map_err(damaged)?;
        let directory = Self {
            path: path.canonicalize().map_err(io_error("resolve", path))?,
            _lock: lock(path)?,
        };
        directory.finish_io()?;
        Ok((directory, document))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the report goes.
    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// Replaces `run.json` in one step (a reader never sees half of it).
    pub fn save(&self, document: &RunDocument) -> Result<(), RunError> {
        let path = self.path.join(DOCUMENT);
        let json = serde_json::to_vec_pretty(document).map_err(|e| RunError::Write {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        self.replace(DOCUMENT, &json)
    }

    /// Replaces `report.html` in one step.
    pub fn save_report(&self, html: &str) -> Result<(), RunError> {
        self.replace(REPORT, html.as_bytes())
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&new, &path)
        };
        write().map_err(io_error("write", &path))
    }

    /// Where a tracer puts events while the run goes on. May be asked for again and again; later
    /// writers append.
    pub fn io_writer(&self) -> Result<IoWriter, RunError> {
        let events_path = self.path.join(IO_SPOOL);
        let files_path = self.path.join(FILES_SPOOL);
        let events =
            SpoolWriter::append_to(&events_path).map_err(io_error("open", &events_path))?;
        let files = File::options()
            .create(true)
            .append(true)
            .open(&files_path)
            .map_err(io_error("open", &files_path))?;
        Ok(IoWriter {
            events,
            events_path,
            files,
            files_path,
        })
    }

    /// Turns what the writers left into `io.parquet` and `files.parquet`; nothing to do without.
    /// A run has many times fewer files than events, so those are held in memory.
    pub fn finish_io(&self) -> Result<(), RunError> {
        let spool = self.path.join(IO_SPOOL);
        if !spool.exists() {
            return Ok(());
        }
        let parquet = self.path.join(IO);
        let parquet_new = self.path.join(format!("{IO}.new"));
        let failed = |e: parquet::errors::ParquetError| RunError::Write {
            path: parquet.clone(),
            reason: e.to_string(),
        };
        let mut reader = SpoolReader::open(&spool).map_err(io_error("read", &spool))?;
        let mut writer = IoParquetWriter::create(&parquet_new).map_err(failed)?;
        loop {
            let events = reader
                .read(ROWS_PER_GROUP)
                .map_err(io_error("read", &spool))?;
            if events.is_empty() {
                break;
            }
            writer.write_group(&events).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        self.save_files(&self.spooled_files()?)?;
        fs::rename(&parquet_new, &parquet).map_err(io_error("rename", &parquet_new))?;
        // The rows must be safe before their only other copy goes.
        for written in [IO, FILES] {
            let path = self.path.join(written);
            let sync = || File::open(&path)?.sync_all();
            sync().map_err(io_error("write", &path))?;
        }
        for spool in [IO_SPOOL, FILES_SPOOL] {
            let path = self.path.join(spool);
            match fs::remove_file(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(io_error("remove", &path))?,
            }
        }
        Ok(())
    }

    /// Later lines about the same file replace earlier ones; a torn last line is ignored.
    fn spooled_files(&self) -> Result<Vec<FileRecord>, RunError> {
        let path = self.path.join(FILES_SPOOL);
        let text = match fs::read(&path) {
            // Killed between the two: there are no events either.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(io_error("read", &path))?,
        };
        let mut files = std::collections::BTreeMap::new();
        for line in text.split(|b| *b == b'\n') {
            if let Ok(file) = serde_json::from_slice::<FileRecord>(line) {
                files.insert(file.file_id, file);
            }
        }
        Ok(files.into_values().collect())
    }

    /// Replaces `files.parquet`, e.g. once roles and namespaces are known.
    pub fn save_files(&self, files: &[FileRecord]) -> Result<(), RunError> {
        let (path, new) = (
            self.path.join(FILES),
            self.path.join(format!("{FILES}.new")),
        );
        write_files(&new, files).map_err(|e| RunError::Write {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        fs::rename(&new, &path).map_err(io_error("rename", &new))
    }

    /// The files of the run; empty when nothing was traced.
    pub fn files(&self) -> Result<Vec<FileRecord>, RunError> {
        let path = self.path.join(FILES);
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_files(&path).map_err(|e| RunError::Damaged {
            path,
            reason: e.to_string(),
        })
    }

    /// Passes all events on, many at a time, in the order in which they were recorded.
    pub fn for_each_event(&self, mut each: impl FnMut(&IoEvent)) -> Result<(), RunError> {
        let path = self.path.join(IO);
        if !path.exists() {
            return Ok(());
        }
        read_io(&path, |events| events.iter().for_each(&mut each)).map_err(|e| RunError::Damaged {
            path,
            reason: e.to_string(),
        })
    }
}

/// Takes events and files while a run goes on.
#[derive(Debug)]
pub struct IoWriter {
    events: SpoolWriter,
    events_path: PathBuf,
    files: File,
    files_path: PathBuf,
}

impl IoWriter {
    /// Appends an event (buffered).
    pub fn event(&mut self, event: &IoEvent) -> Result<(), RunError> {
        self.events
            .write(event)
            .map_err(io_error("write", &self.events_path))
    }

    /// Appends or replaces a file, at once.
    pub fn file(&mut self, file: &FileRecord) -> Result<(), RunError> {
        let mut line = serde_json::to_vec(file).map_err(|e| RunError::Write {
            path: self.files_path.clone(),
            reason: e.to_string(),
        })?;
        line.push(b'\n');
        self.files
            .write_all(&line)
            .map_err(io_error("write", &self.files_path))
    }

    /// Brings buffered events to the file.
    pub fn flush(&mut self) -> Result<(), RunError> {
        self.events
            .flush()
            .map_err(io_error("write", &self.events_path))
    }
}
