//! Exports runs to other tools. Each writer takes the events in the order of the run and writes
//! them as they come; only files and threads must be known beforehand.

mod chrome;
mod csv;
mod fio;
mod start_order;

pub use chrome::ChromeWriter;
pub use csv::{COLUMNS, CsvWriter};
pub use fio::{FioVersion, FioWriter};

use std::collections::HashMap;

use seekscope_run::{FileRecord, ThreadRecord};

/// The files and threads that events refer to, by number.
#[derive(Debug, Clone, Default)]
pub struct Names {
    files: HashMap<u32, FileRecord>,
    threads: HashMap<u32, String>,
}

impl Names {
    /// Collects the names of a run's files and threads.
    pub fn of(files: Vec<FileRecord>, threads: Vec<ThreadRecord>) -> Self {
        Self {
            files: files.into_iter().map(|f| (f.file_id, f)).collect(),
            threads: threads.into_iter().map(|t| (t.tid, t.name)).collect(),
        }
    }

    /// Returns the path of a file; empty if the run does not know it.
    pub fn path(&self, file_id: u32) -> &str {
        self.files.get(&file_id).map_or("", |f| &f.path)
    }

    /// Returns the name of a thread; empty if the run does not know it.
    pub fn thread(&self, tid: u32) -> &str {
        self.threads.get(&tid).map_or("", String::as_str)
    }
}
