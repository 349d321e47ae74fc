//! Trials of a tuning session.

use std::fs::File;
use std::path::Path;

use super::RunDirectory;
use super::spooled_table::{SpoolLines, SpooledTable};
use crate::lines::read_json_lines;
use crate::parquet_file::{read_trials, write_trials};
use crate::{RunError, TuneTrial};

const TRIALS: SpooledTable<TuneTrial> = SpooledTable {
    parquet: "trials.parquet",
    spool: "trials.jsonl",
    write: write_trials,
    read: read_trials,
};
/// A journal that is not yet in its place.
const NEW: SpooledTable<TuneTrial> = SpooledTable {
    spool: "trials.jsonl.new",
    ..TRIALS
};

impl RunDirectory {
    /// Returns a journal for the trials of a session that begins or resumes; in the latter case it already
    /// holds the trials so far.
    pub fn trial_journal(&self) -> Result<TrialJournal, RunError> {
        let spool = self.path.join(TRIALS.spool);
        if !spool.exists() {
            // Written beside it first, so that half a journal is not taken for all of it.
            self.remove(NEW.spool)?;
            let mut lines = NEW.writer(self)?;
            lines.write(&TRIALS.rows(self)?)?;
            lines.sync()?;
            self.put_in_place(TRIALS.spool)?;
            let folder = File::open(&self.path).and_then(|folder| folder.sync_all());
            folder.map_err(RunError::io("write", &self.path))?;
        }
        Ok(TrialJournal(TRIALS.writer(self)?))
    }

    /// Converts the journal to `trials.parquet`.
    pub(super) fn finish_trials(&self) -> Result<(), RunError> {
        TRIALS.finish(self)
    }

    /// Returns the trials so far, in order: from the journal if there is one, without a torn last line;
    /// otherwise from `trials.parquet`.
    pub fn read_trials(&self) -> Result<Vec<TuneTrial>, RunError> {
        match Self::journalled_trials(&self.path)? {
            Some(trials) => Ok(trials),
            None => TRIALS.rows(self),
        }
    }

    /// Returns the trials of the journal, even while another process writes it; `None` if there is no journal,
    /// as before the first trial and after the run's end.
    pub fn journalled_trials(path: &Path) -> Result<Option<Vec<TuneTrial>>, RunError> {
        let spool = path.join(TRIALS.spool);
        if !spool.exists() {
            return Ok(None);
        }
        let trials = read_json_lines(&spool).map_err(RunError::io("read", &spool))?;
        Ok(Some(trials))
    }
}

/// Writes trials while a session goes on.
#[derive(Debug)]
pub struct TrialJournal(SpoolLines);

impl TrialJournal {
    /// Appends a trial and syncs it to the disk, since it took minutes. Its figures must be finite, as those of
    /// a session's trials are.
    pub fn append(&mut self, trial: &TuneTrial) -> Result<(), RunError> {
        self.0.write(std::slice::from_ref(trial))?;
        self.0.sync()
    }
}
