//! A run directory on disk: created once, written as the run goes on, and opened by any later command. Its
//! parts are `io_records`, `totals_records`, `interval_records`, `counter_records`, `layout_records`,
//! `trial_records` and [`crate::latency_log`].

mod counter_records;
mod interval_records;
mod io_records;
mod layout_records;
mod spooled_table;
mod totals_records;
mod trial_records;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::{ClockOffset, RunDocument, RunError};

pub use counter_records::CounterWriter;
pub use interval_records::IntervalWriter;
pub use io_records::IoWriter;
pub use layout_records::LeafWriter;
pub use totals_records::TotalsWriter;
pub use trial_records::TrialJournal;

const DOCUMENT: &str = "run.json";
/// The self-contained report.
const REPORT: &str = "report.html";

/// A process that we start holds our lock until it has become its program, so a lock that was just released may
/// seem taken for that moment.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A run directory, locked while it is open: two processes never write the same run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// When the run began, on both clocks.
    started: ClockOffset,
    /// Folders that were created for it, the innermost first.
    made: Vec<PathBuf>,
    /// Holds the lock, which the kernel releases however the process ends.
    _lock: File,
}

/// Creates the folder of a run; one that exists has to be empty.
fn make_empty(path: &Path) -> Result<(), RunError> {
    let existing = path.ancestors().find(|place| place.exists());
    if let Some(file) = existing.filter(|place| !place.is_dir()) {
        return Err(RunError::NotAFolder { path: file.into() });
    }
    fs::create_dir_all(path).map_err(RunError::io("create", path))?;
    let mut entries = fs::read_dir(path).map_err(RunError::io("read", path))?;
    match entries.next() {
        Some(_) => Err(RunError::Occupied { path: path.into() }),
        None => Ok(()),
    }
}

/// Locks the folder. Filesystems without locks are treated as unlocked.
fn lock(path: &Path) -> Result<File, RunError> {
    let folder = File::open(path).map_err(RunError::io("open", path))?;
    for _ in 0..LOCK_TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            _ => return Ok(folder),
        }
    }
    Err(RunError::InUse { path: path.into() })
}

impl RunDirectory {
    /// Creates the folder and its parents, and writes `document` into it. An existing empty folder is accepted;
    /// anything else is refused.
    pub fn create(path: &Path, document: &RunDocument) -> Result<Self, RunError> {
        let made = path.ancestors().take_while(|folder| !folder.exists());
        let made = made.filter(|folder| !folder.as_os_str().is_empty());
        let made = made.map(Path::to_path_buf).collect();
        make_empty(path)?;
        let path = path.canonicalize().map_err(RunError::io("resolve", path))?;
        let directory = Self {
            _lock: lock(&path)?,
            started: document.started,
            made,
            path,
        };
        directory.save(document)?;
        Ok(directory)
    }

    /// Opens a run. If it crashed before its records became Parquet files, they are converted now.
    pub fn open(path: &Path) -> Result<(Self, RunDocument), RunError> {
        let document = Self::read_document(path)?;
        let directory = Self {
            path: path.canonicalize().map_err(RunError::io("resolve", path))?,
            started: document.started,
            made: Vec::new(),
            _lock: lock(path)?,
        };
        directory.finish_records()?;
        directory.check_trace(&document)?;
        Ok((directory, document))
    }

    /// Copies the document and all records of a finished run into a folder, which is created, or is empty. The page is left out: it
    /// is made anew.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written, with its path.
    pub fn copy_records(from: &Path, to: &Path) -> Result<(), RunError> {
        make_empty(to)?;
        let entries = fs::read_dir(from).map_err(RunError::io("read", from))?;
        for entry in entries.flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && entry.file_name() != REPORT {
                let target = to.join(entry.file_name());
                fs::copy(entry.path(), &target).map_err(RunError::io("write", &target))?;
            }
        }
        Ok(())
    }

    /// Returns whether the run holds nothing but the document.
    pub fn has_no_records(&self) -> Result<bool, RunError> {
        let entries = fs::read_dir(&self.path).map_err(RunError::io("read", &self.path))?;
        let mut names = entries.flatten().map(|entry| entry.file_name());
        Ok(names.all(|name| name == DOCUMENT))
    }

    /// Removes a run that came to nothing: its document, and the folders that were created for it, unless they
    /// hold something else by now.
    pub fn discard(&self) -> Result<(), RunError> {
        self.remove(DOCUMENT)?;
        for folder in &self.made {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Reads the present state of a run, even while another process works on it.
    pub fn read_document(path: &Path) -> Result<RunDocument, RunError> {
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
            other => other.map_err(RunError::io("read", &file))?,
        };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(RunError::damaged(&file))?;
        let found = value["schema"].as_str().unwrap_or("none").to_string();
        match found.strip_prefix("seekscope/run/").map(str::parse::<u32>) {
            Some(Ok(0..=1)) => {}
            Some(Ok(_)) => return Err(RunError::TooNew { path: file, found }),
            _ => return Err(RunError::NotARun { path: path.into() }),
        }
        serde_json::from_value(value).map_err(RunError::damaged(&file))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns when the run began.
    pub(crate) fn started(&self) -> ClockOffset {
        self.started
    }

    /// Returns the path for the report.
    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// Replaces `run.json` atomically (a reader never sees half of it).
    pub fn save(&self, document: &RunDocument) -> Result<(), RunError> {
        let path = self.path.join(DOCUMENT);
        let json = serde_json::to_vec_pretty(document).map_err(RunError::write(&path))?;
        self.replace(DOCUMENT, &json)
    }

    /// Replaces `report.html` atomically.
    pub fn save_report(&self, html: &str) -> Result<(), RunError> {
        self.replace(REPORT, html.as_bytes())
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let (path, new) = (self.path.join(name), self.path_of_new(name));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| {
            // Half a file on a full disk serves nobody.
            let _ = fs::remove_file(&new);
            RunError::io("write", &path)(error)
        })
    }

    /// Turns what the writers left into Parquet files; does nothing if they left nothing. To be called once,
    /// when nothing more will be recorded: anything recorded afterwards would replace these files when the run
    /// is finished or opened again.
    pub fn finish_records(&self) -> Result<(), RunError> {
        self.finish_io()?;
        self.finish_totals()?;
        self.finish_intervals()?;
        self.finish_counters()?;
        self.finish_trials()
    }

    /// Returns the path at which the next version of a file is written before [`Self::put_in_place`].
    fn path_of_new(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.new"))
    }

    /// Replaces a file by its next version and syncs that to the disk.
    fn put_in_place(&self, name: &str) -> Result<(), RunError> {
        let (path, new) = (self.path.join(name), self.path_of_new(name));
        fs::rename(&new, &path).map_err(RunError::io("rename", &new))?;
        let sync = || File::open(&path)?.sync_all();
        sync().map_err(RunError::io("write", &path))
    }

    /// Removes a file; it is not an error if there is none.
    fn remove(&self, name: &str) -> Result<(), RunError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(RunError::io("remove", &path)),
        }
    }
}
