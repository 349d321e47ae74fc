//! The survey: the questions that a database asks of a disk, in an order and at lengths that fit a
//! budget of time, ending in the device model.

mod plan;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use seekscope_run::{DiskStep, EngineKind};

use crate::model::knee_depth;
use crate::step::{self, Second};
use crate::{Contents, DiskError, FillOptions, TestFile};
pub use plan::{Profile, Question};

/// Files of the journal steps.
const JOURNAL_FILE_BYTES: u64 = 128 << 20;
/// Between steps: making threads, evicting files.
const OVERHEAD_PER_STEP: Duration = Duration::from_millis(60);
/// Share of the time in which some task on the host waits for I/O beyond which a survey beside a
/// database ends itself.
const PRESSURE_MAX: f64 = 0.6;

/// Limits by cgroups and clouds are granted in slices of a tenth of a second: a step that is cut
/// within one counts too little or too much.
const SLICE: Duration = Duration::from_millis(100);

/// Whole slices, at least one.
fn whole_slices(length: Duration) -> Duration {
    let slices = length.as_secs_f64() / SLICE.as_secs_f64();
    SLICE.mul_f64(slices.floor().max(1.0))
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct SurveyOptions {
    pub profile: Profile,
    /// All steps are shortened to fit, filling the file included. `None`: at full length.
    pub budget: Option<Duration>,
    /// io_uring, or threads with one request each.
    pub engine: EngineKind,
    /// Go through the page cache where direct I/O would be used.
    pub buffered: bool,
    /// No job exceeds so many operations per second, and the survey ends itself when the host
    /// suffers.
    pub rate_per_s_max: Option<f64>,
    /// Length of the sustained profile's last step.
    pub sustained: Duration,
    pub seed: u64,
}

/// Told what happens as it happens.
pub trait SurveyObserver {
    /// A step begins; it is `number` of `total` and takes about `expected`.
    fn step_begins(&mut self, name: &str, number: usize, total: usize, expected: Duration);
    /// A second of the step under way.
    fn second(&mut self, second: &Second<'_>);
    /// A step has ended.
    fn step_ended(&mut self, step: &DiskStep) -> Result<(), DiskError>;
}

/// How a survey ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SurveyEnd {
    Complete,
    Interrupted,
    /// It ended itself for the sake of others; says why.
    HeldBack(String),
}

/// A survey on a file.
#[derive(Debug)]
pub struct Survey<'a> {
    options: &'a SurveyOptions,
    file: &'a TestFile,
    /// Where files of the journal steps are made; `None` when nothing may be written.
    directory: Option<PathBuf>,
    steps: Vec<DiskStep>,
    /// Written beside the file itself.
    written_bytes: u64,
}

impl<'a> Survey<'a> {
    /// On `file`; on one that is not ours nothing that writes is asked.
    pub fn new(options: &'a SurveyOptions, file: &'a TestFile) -> Self {
        Self {
            options,
            file,
            directory: file.is_own().then(|| file.path().to_path_buf()),
            steps: Vec::new(),
            written_bytes: 0,
        }
    }

    /// The steps measured so far.
    pub fn steps(&self) -> &[DiskStep] {
        &self.steps
    }

    /// Bytes written by steps, the file's own filling left out.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Asks all questions. `started` is when the budget began to run.
    pub fn run(
        &mut self,
        started: Instant,
        observer: &mut dyn SurveyObserver,
        cancel: &AtomicBool,
    ) -> Result<SurveyEnd, DiskError> {
        let questions = plan::questions(self.options.profile, self.directory.is_some());
        let scale = self.scale(&questions, started);
        let journal = self.journal_file(cancel)?;
        let total = questions.len();
        for (number, question) in questions.into_iter().enumerate() {
            let length = whole_slices(question.length(self.options).mul_f64(scale));
            observer.step_begins(&question.name(), number + 1, total, length);
            let fresh = self.fresh_file(&question)?;
            let journal = fresh.as_ref().or(journal.as_ref());
            let step = question.step(&self.context(journal, length));
            let Some(step) = step else { continue };
            self.evict(&question)?;
            let end = step::run(&step, &mut |second| observer.second(second), cancel)?;
            self.count_written(&end.step);
            observer.step_ended(&end.step)?;
            let pressure = end.step.io_pressure;
            self.steps.push(end.step);
            if end.interrupted || cancel.load(Ordering::Relaxed) {
                return Ok(SurveyEnd::Interrupted);
            }
            if let Some(why) = self.must_hold_back(pressure) {
                return Ok(SurveyEnd::HeldBack(why));
            }
        }
        Ok(SurveyEnd::Complete)
    }

    /// By how much steps are lengthened or shortened to use up the budget.
    fn scale(&self, questions: &[Question], started: Instant) -> f64 {
        let Some(budget) = self.options.budget else {
            return 1.0;
        };
        let count = u32::try_from(questions.len()).unwrap_or(u32::MAX);
        let left = budget
            .saturating_sub(started.elapsed())
            .saturating_sub(OVERHEAD_PER_STEP * count);
        let wanted: Duration = questions.iter().map(|q| q.length(self.options)).sum();
        // Below a twentieth nothing can be said any more; the budget is then exceeded.
        (left.as_secs_f64() / wanted.as_secs_f64().max(0.001)).clamp(0.05, 1.0)
    }

    fn context<'b>(&'b self, journal: Option<&'b TestFile>, length: Duration) -> plan::Context<'b> {
        plan::Context {
            options: self.options,
            file: self.file,
            journal,
            length,
            knee: self.knee(),
        }
    }

    /// The knee of the ramp so far; 32 before there is one.
    fn knee(&self) -> u32 {
        knee_depth(&self.steps).unwrap_or(32)
    }

    fn journal_file(&self, cancel: &AtomicBool) -> Result<Option<TestFile>, DiskError> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let contents = Contents::Random {
            seed: self.options.seed,
        };
        let fill = FillOptions::new(contents);
        TestFile::create(directory, JOURNAL_FILE_BYTES, fill, &mut |_| {}, cancel).map(Some)
    }

    fn fresh_file(&self, question: &Question) -> Result<Option<TestFile>, DiskError> {
        match (&self.directory, question) {
            (Some(directory), Question::Journal { fresh: true, .. }) => {
                TestFile::create_sparse(directory, JOURNAL_FILE_BYTES).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn evict(&self, question: &Question) -> Result<(), DiskError> {
        if question.wants_cold(self.options) {
            self.file.evict()?;
        }
        Ok(())
    }

    fn count_written(&mut self, step: &DiskStep) {
        self.written_bytes += step.jobs.iter().map(|job| job.writes.bytes).sum::<u64>();
    }

    fn must_hold_back(&self, pressure: Option<f64>) -> Option<String> {
        self.options.rate_per_s_max?;
        let pressure = pressure.filter(|p| *p > PRESSURE_MAX)?;
        Some(format!(
            "tasks on this host waited for I/O for {:.0} % of the last step",
            pressure * 100.0
        ))
    }
}
