//! The survey: the questions that a database asks of a disk, in an order and at lengths that fit a
//! time budget, ending in the device model.

mod plan;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use seekscope_run::{DiskStep, EngineKind};

use crate::job::RateLimits;
use crate::model::knee_depth;
use crate::step::{self, Second};
use crate::{Contents, DiskError, FillOptions, TestFile};
pub use plan::{Profile, Question};

/// Size of the file whose blocks the journal steps overwrite.
const JOURNAL_FILE_BYTES: u64 = 128 << 20;
/// Size of the files whose blocks they write for the first time, one file at a time: more than a
/// step gets through. None of it is allocated before it is written.
const FRESH_FILE_BYTES: u64 = 512 << 20;
/// Space that a writing survey needs besides its file.
pub const EXTRA_BYTES: u64 = JOURNAL_FILE_BYTES + FRESH_FILE_BYTES;
/// Time between steps: creating threads, evicting files.
const OVERHEAD_PER_STEP: Duration = Duration::from_millis(60);
/// Limits by cgroups and clouds are granted in slices of a tenth of a second: a step that ends
/// within one counts too little or too much.
const SLICE: Duration = Duration::from_millis(100);

/// Rounds to whole slices, at least one.
fn whole_slices(length: Duration) -> Duration {
    let slices = length.as_secs_f64() / SLICE.as_secs_f64();
    SLICE.mul_f64(slices.floor().max(1.0))
}

/// Options of a survey.
#[derive(Debug, Clone)]
pub struct SurveyOptions {
    pub profile: Profile,
    /// Time budget that all steps are shortened to fit, including filling the file. `None`: full
    /// length.
    pub budget: Option<Duration>,
    /// io_uring, or threads with one request each.
    pub engine: EngineKind,
    /// Whether to use the page cache where direct I/O would be used.
    pub buffered: bool,
    /// Limits for measuring alongside others; the survey ends itself when the host suffers.
    pub limits: Option<RateLimits>,
    /// Length of the sustained profile's last step.
    pub sustained: Duration,
    pub seed: u64,
}

/// Receives events as they happen.
pub trait SurveyObserver {
    /// Called when a step begins; it is `number` of `total` and takes about `expected`.
    fn step_begins(&mut self, name: &str, number: usize, total: usize, expected: Duration);
    /// Called for each second of the running step.
    fn second(&mut self, second: &Second<'_>);
    /// Called when a step has ended.
    fn step_ended(&mut self, step: &DiskStep) -> Result<(), DiskError>;
}

/// How a survey ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SurveyEnd {
    Complete,
    Interrupted,
    /// It ended itself for the sake of others: some task of the host waited for I/O for this share
    /// of the time.
    HeldBack(f64),
}

/// A survey on a file.
#[derive(Debug)]
pub struct Survey<'a> {
    options: &'a SurveyOptions,
    file: &'a TestFile,
    /// Where files of the journal steps are created; `None` if nothing may be written.
    directory: Option<PathBuf>,
    steps: Vec<DiskStep>,
}

impl<'a> Survey<'a> {
    /// Returns a survey of `file`; if the file is not ours, no question that writes is asked.
    pub fn new(options: &'a SurveyOptions, file: &'a TestFile) -> Self {
        Self {
            options,
            file,
            directory: file.is_own().then(|| file.path().to_path_buf()),
            steps: Vec::new(),
        }
    }

    /// Returns the steps measured so far.
    pub fn steps(&self) -> &[DiskStep] {
        &self.steps
    }

    /// Asks all questions. `started` is when the budget began.
    pub fn run(
        &mut self,
        started: Instant,
        observer: &mut dyn SurveyObserver,
        cancel: &AtomicBool,
    ) -> Result<SurveyEnd, DiskError> {
        let questions = plan::questions(self.options, self.directory.is_some());
        let journal = self.journal_file(cancel)?;
        for (number, question) in questions.iter().enumerate() {
            let left = &questions[number..];
            let length = whole_slices(
                question
                    .length(self.options)
                    .mul_f64(self.scale(left, started)),
            );
            observer.step_begins(&question.name(), number + 1, questions.len(), length);
            let fresh = self.fresh_file(question)?;
            let journal = fresh.as_ref().or(journal.as_ref());
            let Some(step) = question.step(&self.context(journal, length)) else {
                continue;
            };
            if question.wants_cold(self.options) {
                self.file.evict()?;
            }
            let end = step::run(&step, &mut |second| observer.second(second), cancel)?;
            observer.step_ended(&end.step)?;
            self.steps.push(end.step);
            if end.interrupted || cancel.load(Ordering::Relaxed) {
                return Ok(SurveyEnd::Interrupted);
            }
            if let Some(pressure) = end.held_back {
                return Ok(SurveyEnd::HeldBack(pressure));
            }
        }
        Ok(SurveyEnd::Complete)
    }

    /// Returns the factor by which the remaining questions are shortened to keep the budget.
    fn scale(&self, left: &[Question], started: Instant) -> f64 {
        let Some(budget) = self.options.budget else {
            return 1.0;
        };
        let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
        let time = budget
            .saturating_sub(started.elapsed())
            .saturating_sub(OVERHEAD_PER_STEP * count);
        let wanted: Duration = left
            .iter()
            .map(|question| {
                let length = question.length(self.options);
                length + question.warm_up(length)
            })
            .sum();
        // Below a twentieth no result is meaningful; the budget is then exceeded.
        (time.as_secs_f64() / wanted.as_secs_f64().max(0.001)).clamp(0.05, 1.0)
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

    /// Returns the knee of the ramp so far; 32 before there is one.
    fn knee(&self) -> u32 {
        knee_depth(&self.steps).unwrap_or(32)
    }

    fn journal_file(&self, cancel: &AtomicBool) -> Result<Option<TestFile>, DiskError> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let mut fill = FillOptions::new(Contents::Random {
            seed: self.options.seed,
        });
        fill.bytes_per_s = self.options.limits.map(|limits| whole(limits.bytes_per_s));
        TestFile::create(directory, JOURNAL_FILE_BYTES, fill, &mut |_| {}, cancel).map(Some)
    }

    fn fresh_file(&self, question: &Question) -> Result<Option<TestFile>, DiskError> {
        match (&self.directory, question) {
            (Some(directory), Question::Journal { fresh: true, .. }) => {
                TestFile::create_sparse(directory, FRESH_FILE_BYTES).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Converts a positive rate to a whole number.
fn whole(rate: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates"
    )]
    let whole = rate as u64;
    whole
}
