//! A running command's directory and document, saved after every step and ended exactly once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use seekscope_run::{
    FileRecord, Limitation, Outcome, PathState, Phase, RunDirectory, RunDocument, TraceFacts,
    monotonic_ns,
};
use seekscope_server::FileMap;

use crate::exit::Usage;
use crate::member_files::MemberFiles;

/// Beginning of the limitation that makes a run incomplete.
pub const TRACE_BROKE_OFF: &str = "the trace broke off in";

/// A run in progress.
pub struct Session {
    /// Shared with work on other threads, such as the walk over data files.
    pub directory: Arc<RunDirectory>,
    pub document: RunDocument,
    /// Which file is which, once the server has reported it.
    pub file_map: Option<FileMap>,
    /// The same where several members are looked at; empty otherwise.
    pub members: MemberFiles,
    /// Files examined without a trace; they are added to those of the trace at the end.
    pub more_files: Vec<FileRecord>,
    /// The current phase. Kept here because an interrupted phase must outlive the future that was measuring it.
    open_phase: Arc<Mutex<Option<OpenPhase>>>,
    is_discarded: bool,
}

/// A phase that has begun; it is complete once its measurement is dropped.
pub struct OpenPhase {
    pub phase: Phase,
    /// Why its trace is missing although it was begun.
    pub trace_failure: Option<String>,
}

/// Returns `./seekscope-runs/COMMAND-DATE-TIME`, in UTC, with a number appended if that exists.
fn default_folder(command: &str) -> PathBuf {
    let name = format!(
        "{command}-{}",
        jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S")
    );
    let folder = |suffix: &str| Path::new("seekscope-runs").join(format!("{name}{suffix}"));
    let numbered = (2..).map(|n| folder(&format!("-{n}")));
    std::iter::once(folder(""))
        .chain(numbered)
        .find(|f| !f.exists())
        .unwrap_or_else(|| folder(""))
}

/// Returns the folder for a run of this command.
pub fn run_folder(command: &str, out: Option<&Path>) -> PathBuf {
    out.map_or_else(|| default_folder(command), Path::to_path_buf)
}

/// Explains, by the reason for its end, why a run has nothing to show.
pub fn measured_nothing(path: &Path, document: &RunDocument) -> Usage {
    let why = document.outcome_reason.as_deref().unwrap_or_default();
    Usage(format!("{} measured nothing: {why}", path.display()))
}

/// Adds role and namespace to a file if its path is known.
pub fn name_file(map: &FileMap, file: &mut FileRecord) {
    if file.path_state != PathState::Unresolved {
        (file.role, file.namespace) = map.classify(Path::new(&file.path));
    }
}

/// Records something that a run could not do, once.
pub fn limit(document: &mut RunDocument, limitation: Limitation) {
    if !document.limitations.contains(&limitation) {
        document.limitations.push(limitation);
    }
}

/// Returns a trailer for a trace that was killed before it had one, with `written` events found.
pub fn truncated_trace(written: u64) -> TraceFacts {
    TraceFacts {
        backend: "unknown".into(),
        backend_reason: "the run was killed before the trailer of the trace was written".into(),
        truncated: true,
        seen: written,
        written,
        ..TraceFacts::default()
    }
}

/// Returns the limitation for such a trace.
pub fn no_trailer(phase: &str) -> Limitation {
    Limitation {
        what: format!(
            "the trace of \"{phase}\" has no trailer: its last events, and how many were lost, are unknown"
        ),
        why: "the run was killed".into(),
        remedy: "run it again".into(),
    }
}

impl Session {
    /// Creates the run directory.
    pub fn begin(command: &str, arguments: Vec<String>, out: Option<&Path>) -> Result<Self> {
        let document = RunDocument::begin(command, arguments);
        Ok(Self::reopen(
            RunDirectory::create(&run_folder(command, out), &document)?,
            document,
        ))
    }

    /// Reopens an existing run.
    pub fn reopen(directory: RunDirectory, document: RunDocument) -> Self {
        Self {
            directory: Arc::new(directory),
            document,
            file_map: None,
            members: MemberFiles::default(),
            more_files: Vec::new(),
            open_phase: Arc::default(),
            is_discarded: false,
        }
    }

    /// Returns the folder for our own data: next to the run unless another was named, on the disk that the user
    /// works on.
    pub fn data_folder(&self, named: Option<&Path>) -> Result<PathBuf> {
        match named {
            Some(folder) => Ok(folder.canonicalize().map_err(|error| {
                let folder = folder.display();
                Usage(format!(
                    "--data-dir {folder} cannot be used: {error}; name an existing folder"
                ))
            })?),
            None => Ok(self
                .directory
                .path()
                .parent()
                .unwrap_or(Path::new("/"))
                .to_path_buf()),
        }
    }

    /// Saves what is known so far.
    pub fn save(&self) -> Result<()> {
        if self.is_discarded {
            return Ok(());
        }
        Ok(self.directory.save(&self.document)?)
    }

    /// Saves what is known, and the page that shows it.
    pub fn save_with_page(&self, page: &str) -> Result<()> {
        self.save()?;
        self.save_page(page)
    }

    /// Writes `report.html`.
    pub fn save_page(&self, page: &str) -> Result<()> {
        Ok(self.directory.save_report(page)?)
    }

    /// Returns whether the attempt failed before anything was found out, so that its folder was removed.
    pub fn is_discarded(&self) -> bool {
        self.is_discarded
    }

    /// Returns the slot in which a measurement stores its phase.
    pub fn phase_slot(&self) -> Arc<Mutex<Option<OpenPhase>>> {
        Arc::clone(&self.open_phase)
    }

    /// Records that a phase has begun, so that even a killed run says what its events are.
    pub fn open_phase(&mut self, phase: &Phase) -> Result<()> {
        self.document.phases.push(phase.clone());
        self.save()
    }

    /// Takes over the phase whose measurement has ended.
    pub fn close_phase(&mut self) -> Result<()> {
        let open = self
            .open_phase
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(OpenPhase {
            phase,
            trace_failure,
        }) = open
        else {
            return Ok(());
        };
        if let Some(why) = trace_failure {
            self.limit(Limitation {
                what: format!("{TRACE_BROKE_OFF} \"{}\"", phase.name),
                why,
                remedy: "run it again; if it happens again, report it".into(),
            });
        }
        self.document
            .phases
            .retain(|p| p.started_ns != phase.started_ns);
        self.document.phases.push(phase);
        self.save()
    }

    /// Returns the error if a trace did not account for every event that it saw.
    pub fn unaccounted(&self) -> Option<String> {
        let mut traces = self.document.phases.iter().filter_map(|p| p.trace.as_ref());
        let wrong = traces.find(|trace| !trace.adds_up())?;
        Some(format!(
            "the counts of the trace do not add up: {} events were seen, {} written, \
             {} lost, {} overwritten",
            wrong.seen, wrong.written, wrong.lost, wrong.overwritten
        ))
    }

    /// Records something that cannot be done, once.
    pub fn limit(&mut self, limitation: Limitation) {
        limit(&mut self.document, limitation);
    }

    /// Marks the end. `reason` says why the outcome is not `ok`. An attempt that failed before there was
    /// anything to keep, such as the server's name, leaves no folder: the error says it all.
    pub fn end(&mut self, outcome: Outcome, reason: Option<String>) -> Result<()> {
        let closed = self.close_phase();
        self.document.outcome = outcome;
        self.document.outcome_reason = reason;
        self.document.ended_ns = Some(monotonic_ns());
        closed?;
        self.directory.finish_records()?;
        self.name_files()?;
        if outcome == Outcome::Failed && self.found_nothing() && self.directory.has_no_records()? {
            self.is_discarded = true;
            return Ok(self.directory.discard()?);
        }
        self.save()
    }

    /// Returns whether the document only says that something was attempted.
    fn found_nothing(&self) -> bool {
        let RunDocument {
            target,
            phases,
            disk,
            bench,
            layout,
            reorder,
            prefetch,
            tune,
            advice,
            ..
        } = &self.document;
        let has_benched = bench.as_ref().is_some_and(|bench| !bench.is_empty());
        let has_tuned = tune.as_ref().is_some_and(|tune| !tune.knobs.is_empty());
        let is_measured = disk.is_some() || layout.is_some() || prefetch.is_some();
        // A benchmark that was refused knows its server, and leaves its folder to the next attempt.
        let is_connected = target.is_some() && bench.is_none();
        let is_known = is_connected || !phases.is_empty() || reorder.is_some() || advice.is_some();
        !(is_known || is_measured || has_benched || has_tuned)
    }

    /// Returns what adds role, namespace and member to a file, as far as they are known now.
    pub fn naming(&self) -> impl Fn(&mut FileRecord) + Send + use<> {
        let (map, members) = (self.file_map.clone(), self.members.clone());
        move |file| match &map {
            None => members.name(file),
            Some(map) => name_file(map, file),
        }
    }

    /// Adds roles, namespaces and members to the files of the run.
    fn name_files(&self) -> Result<()> {
        let is_named = self.file_map.is_some() || !self.members.is_empty();
        if !is_named && self.more_files.is_empty() {
            return Ok(());
        }
        let mut files = self.directory.files()?;
        if is_named {
            files.iter_mut().for_each(self.naming());
        }
        files.extend(self.more_files.iter().cloned());
        if !files.is_empty() {
            self.directory.save_files(&files)?;
        }
        Ok(())
    }
}
