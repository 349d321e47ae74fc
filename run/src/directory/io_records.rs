//! I/O events, and the files and threads they refer to: spools while the run goes on, `io.parquet`,
//! `files.parquet` and `threads.parquet` after it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::RunDirectory;
use crate::io_spool::{SpoolReader, SpoolWriter};
use crate::lines::{JsonLinesWriter, read_json_lines};
use crate::parquet_file::{
    ROWS_PER_GROUP, io_writer, read_files, read_io, read_io_while, read_threads, write_files,
    write_threads,
};
use crate::{FileRecord, IoEvent, RunDocument, RunError, ThreadRecord};

const IO: &str = "io.parquet";
const FILES: &str = "files.parquet";
const THREADS: &str = "threads.parquet";
/// Events not yet turned into `io.parquet`, with the files and threads they refer to.
const IO_SPOOL: &str = "io.spool";
const FILES_SPOOL: &str = "files.spool";
const THREADS_SPOOL: &str = "threads.spool";

impl RunDirectory {
    /// Refuses a run whose recorded calls are gone: it would look like one in which nothing was called.
    pub(super) fn check_trace(&self, document: &RunDocument) -> Result<(), RunError> {
        let is_there = |name: &&str| self.path.join(*name).exists();
        let damaged = |reason: String| RunError::Damaged {
            path: self.path.clone(),
            reason,
        };
        let others = [FILES, THREADS];
        if is_there(&IO) {
            let missing = others.into_iter().find(|name| !is_there(name));
            return missing.map_or(Ok(()), |name| {
                Err(damaged(format!(
                    "{name} is missing, without which it is unknown what the calls \
                     in {IO} belong to"
                )))
            });
        }
        let traces = document
            .phases
            .iter()
            .filter_map(|phase| phase.trace.as_ref());
        let written: u64 = traces.map(|trace| trace.written).sum();
        match written > 0 && !is_there(&super::totals_records::TOTALS) {
            true => Err(damaged(format!(
                "{IO} is missing, in which {written} calls were recorded"
            ))),
            false => Ok(()),
        }
    }

    /// Returns a writer for a tracer's events while the run goes on. May be called repeatedly; later writers
    /// append.
    pub fn io_writer(&self) -> Result<IoWriter, RunError> {
        let events_path = self.path.join(IO_SPOOL);
        let files_path = self.path.join(FILES_SPOOL);
        let threads_path = self.path.join(THREADS_SPOOL);
        Ok(IoWriter {
            events: SpoolWriter::append_to(&events_path)
                .map_err(RunError::io("open", &events_path))?,
            files: JsonLinesWriter::append_to(&files_path)
                .map_err(RunError::io("open", &files_path))?,
            threads: JsonLinesWriter::append_to(&threads_path)
                .map_err(RunError::io("open", &threads_path))?,
            events_path,
            files_path,
            threads_path,
        })
    }

    /// Turns the spools into Parquet files. A run has far fewer files than events, so the files are held in
    /// memory.
    pub(super) fn finish_io(&self) -> Result<(), RunError> {
        let spool = self.path.join(IO_SPOOL);
        if !spool.exists() {
            return Ok(());
        }
        let parquet = self.path.join(IO);
        let failed = RunError::write(&parquet);
        let mut reader = SpoolReader::open(&spool).map_err(RunError::io("read", &spool))?;
        let mut writer = io_writer(&self.path_of_new(IO)).map_err(&failed)?;
        let mut events = Vec::new();
        loop {
            reader
                .read(ROWS_PER_GROUP, &mut events)
                .map_err(RunError::io("read", &spool))?;
            if events.is_empty() {
                break;
            }
            writer.write_group(&events).map_err(&failed)?;
        }
        writer.finish().map_err(&failed)?;
        self.save_files(&self.spooled_files()?)?;
        self.save_threads(&self.spooled_threads()?)?;
        // The rows must be safe before their only other copy is removed.
        self.put_in_place(IO)?;
        self.remove(IO_SPOOL)?;
        self.remove(FILES_SPOOL)?;
        self.remove(THREADS_SPOOL)
    }

    /// Returns the spooled files. Later lines about the same file replace earlier ones. There are no lines if
    /// the run was killed before the first; there are no events then either.
    fn spooled_files(&self) -> Result<Vec<FileRecord>, RunError> {
        let path = self.path.join(FILES_SPOOL);
        let lines: Vec<FileRecord> = read_json_lines(&path).map_err(RunError::io("read", &path))?;
        let files: BTreeMap<u32, FileRecord> =
            lines.into_iter().map(|file| (file.file_id, file)).collect();
        Ok(files.into_values().collect())
    }

    /// Replaces `files.parquet`, e.g. once roles and namespaces are known.
    pub fn save_files(&self, files: &[FileRecord]) -> Result<(), RunError> {
        let path = self.path.join(FILES);
        write_files(&self.path_of_new(FILES), files).map_err(RunError::write(&path))?;
        self.put_in_place(FILES)
    }

    fn spooled_threads(&self) -> Result<Vec<ThreadRecord>, RunError> {
        let path = self.path.join(THREADS_SPOOL);
        let lines: Vec<ThreadRecord> =
            read_json_lines(&path).map_err(RunError::io("read", &path))?;
        let threads: BTreeMap<u32, ThreadRecord> = lines
            .into_iter()
            .map(|thread| (thread.tid, thread))
            .collect();
        Ok(threads.into_values().collect())
    }

    fn save_threads(&self, threads: &[ThreadRecord]) -> Result<(), RunError> {
        let path = self.path.join(THREADS);
        write_threads(&self.path_of_new(THREADS), threads).map_err(RunError::write(&path))?;
        self.put_in_place(THREADS)
    }

    /// Returns the threads of the run; empty if nothing was traced.
    pub fn threads(&self) -> Result<Vec<ThreadRecord>, RunError> {
        let path = self.path.join(THREADS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_threads(&path).map_err(RunError::damaged(&path))
    }

    /// Returns the files of the run; empty if nothing was traced.
    pub fn files(&self) -> Result<Vec<FileRecord>, RunError> {
        let path = self.path.join(FILES);
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_files(&path).map_err(RunError::damaged(&path))
    }

    /// Passes all events to `each`, read in batches, in the order in which they were recorded.
    pub fn for_each_event(&self, mut each: impl FnMut(&IoEvent)) -> Result<(), RunError> {
        let path = self.path.join(IO);
        if !path.exists() {
            return Ok(());
        }
        read_io(&path, |events| events.iter().for_each(&mut each)).map_err(RunError::damaged(&path))
    }

    /// Like [`Self::for_each_event`], in batches, until `each` returns false.
    pub fn for_events_while(&self, each: impl FnMut(&[IoEvent]) -> bool) -> Result<(), RunError> {
        let path = self.path.join(IO);
        if !path.exists() {
            return Ok(());
        }
        read_io_while(&path, each).map_err(RunError::damaged(&path))
    }
}

/// Writes events and files while a run goes on.
#[derive(Debug)]
pub struct IoWriter {
    events: SpoolWriter,
    events_path: PathBuf,
    files: JsonLinesWriter,
    files_path: PathBuf,
    threads: JsonLinesWriter,
    threads_path: PathBuf,
}

impl IoWriter {
    /// Appends an event (buffered).
    pub fn event(&mut self, event: &IoEvent) -> Result<(), RunError> {
        self.events
            .write(event)
            .map_err(RunError::io("write", &self.events_path))
    }

    /// Appends or replaces a file at once.
    pub fn file(&mut self, file: &FileRecord) -> Result<(), RunError> {
        self.files
            .write(file)
            .map_err(RunError::io("write", &self.files_path))
    }

    /// Appends or replaces a thread at once.
    pub fn thread(&mut self, thread: &ThreadRecord) -> Result<(), RunError> {
        self.threads
            .write(thread)
            .map_err(RunError::io("write", &self.threads_path))
    }

    /// Writes buffered events to the file.
    pub fn flush(&mut self) -> Result<(), RunError> {
        self.events
            .flush()
            .map_err(RunError::io("write", &self.events_path))
    }
}
