//! The questions, how long each takes, and the job that answers it.

use std::time::Duration;

use seekscope_run::units::format_bytes;
use seekscope_run::{AccessKind, EngineKind, ReadAdvice, StepGroup};

use super::SurveyOptions;
use crate::step::Step;
use crate::{Job, TestFile};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The largest size of WiredTiger's leaf pages on disk, by default.
const LEAF_BYTES: u64 = 32 * KIB;
/// Bytes that a burst writes between syncs; a quick survey has no time for more.
const BURST_SYNC_BYTES: u64 = 256 * MIB;

/// Fits into memory and is read once during the warm-up even on a slow disk.
const CACHED_BYTES: u64 = 8 * MIB;

pub(super) const RAMP_DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
pub(super) const RAMP_BLOCKS: [u64; 3] = [4 * KIB, 16 * KIB, LEAF_BYTES];
const MODEL_BLOCKS: [u64; 4] = [4 * KIB, LEAF_BYTES, 128 * KIB, MIB];
const WINDOWS: [u64; 5] = [8 * KIB, 32 * KIB, 128 * KIB, MIB, 4 * MIB];

/// How thorough a survey is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Everything, briefly: fits into 90 s.
    Quick,
    /// Everything, about eight times as long.
    Full,
    /// Quick, then random reads for many minutes, to see burst credits and caches run out.
    Sustained,
}

impl Profile {
    /// Returns "quick", "full" or "sustained".
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Sustained => "sustained",
        }
    }
}

/// One question, answered by one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// What the generator can do without a disk.
    Generator,
    /// How long one read of this size takes.
    Size { block: u64 },
    /// How many random reads there are with this many in flight.
    Ramp { block: u64, depth: u32 },
    /// How fast large sequential reads are.
    SequentialDirect { depth: u32 },
    /// How fast cold leaf pages arrive in this order. `None` is in order, otherwise runs of this
    /// length.
    Order { run: Option<u64> },
    /// The cost of leaf pages that are in the page cache.
    Cached,
    /// The effect of a read-ahead window of this size.
    ReadAhead { window: u64, random: bool },
    /// How long a journal commit takes.
    Journal {
        block: u64,
        writers: u32,
        fresh: bool,
    },
    /// How long a journal commit takes while a checkpoint is written.
    Checkpoint,
    /// 70 % reads, 30 % writes.
    Mixed,
    /// Page faults on a mapping.
    Mmap { advice: ReadAdvice },
    /// Random reads for minutes.
    Sustained,
}

/// Returns all questions of a profile. Similar questions are placed side by side, so that drift of
/// the disk affects them alike.
pub(super) fn questions(options: &SurveyOptions, may_write: bool) -> Vec<Question> {
    let mut all = vec![Question::Generator];
    all.extend(MODEL_BLOCKS.map(|block| Question::Size { block }));
    for depth in RAMP_DEPTHS {
        all.extend(RAMP_BLOCKS.map(|block| Question::Ramp { block, depth }));
    }
    all.extend([1, 8].map(|depth| Question::SequentialDirect { depth }));
    all.extend([None, Some(1), Some(8), Some(64)].map(|run| Question::Order { run }));
    all.push(Question::Cached);
    for window in WINDOWS {
        all.extend([false, true].map(|random| Question::ReadAhead { window, random }));
    }
    all.extend([ReadAdvice::Random, ReadAdvice::Normal].map(|advice| Question::Mmap { advice }));
    if may_write {
        for (block, writers) in [(4 * KIB, 1), (4 * KIB, 8), (16 * KIB, 1), (16 * KIB, 8)] {
            all.extend([true, false].map(|fresh| Question::Journal {
                block,
                writers,
                fresh,
            }));
        }
        // The checkpoint comes last: what it leaves in the page cache is written back afterwards.
        all.extend([Question::Mixed, Question::Checkpoint]);
    }
    if options.limits.is_some() {
        // Each fault would fetch as much as the device's read-ahead, which no rate here bounds.
        let unbounded = Question::Mmap {
            advice: ReadAdvice::Normal,
        };
        all.retain(|question| *question != unbounded);
    }
    if options.profile == Profile::Sustained {
        all.push(Question::Sustained);
    }
    all
}

/// The circumstances for which a question's job is made.
pub(super) struct Context<'a> {
    pub(super) options: &'a SurveyOptions,
    pub(super) file: &'a TestFile,
    pub(super) journal: Option<&'a TestFile>,
    pub(super) length: Duration,
    /// The depth beyond which more gains little.
    pub(super) knee: u32,
}

impl Question {
    fn group(self) -> StepGroup {
        match self {
            Self::Generator => StepGroup::Generator,
            Self::Size { .. } => StepGroup::Size,
            Self::Ramp { .. } => StepGroup::Ramp,
            Self::SequentialDirect { .. } => StepGroup::SequentialDirect,
            Self::Order { .. } => StepGroup::Order,
            Self::Cached => StepGroup::Cached,
            Self::ReadAhead { .. } => StepGroup::ReadAhead,
            Self::Journal { .. } => StepGroup::Journal,
            Self::Checkpoint => StepGroup::Checkpoint,
            Self::Mixed => StepGroup::Mixed,
            Self::Mmap { .. } => StepGroup::Mmap,
            Self::Sustained => StepGroup::Sustained,
        }
    }

    /// Returns a name, unique among the questions.
    pub(super) fn name(self) -> String {
        match self {
            Self::Generator => "generator alone".into(),
            Self::Size { block } => format!("one random read of {}", format_bytes(block)),
            Self::Ramp { block, depth } => {
                format!("random read {}, depth {depth}", format_bytes(block))
            }
            Self::SequentialDirect { depth } => {
                format!("sequential read 1 MiB direct, depth {depth}")
            }
            Self::Order { run: None } => "32 KiB cold, in order".into(),
            Self::Order { run: Some(1) } => "32 KiB cold, shuffled".into(),
            Self::Order { run: Some(n) } => format!("32 KiB cold, runs of {n}"),
            Self::Cached => "32 KiB from the page cache".into(),
            Self::ReadAhead { window, random } => {
                let order = if random { "random" } else { "in order" };
                format!("read-ahead {}, {order}", format_bytes(window))
            }
            Self::Journal {
                block,
                writers,
                fresh,
            } => {
                let blocks = if fresh { "fresh blocks" } else { "overwriting" };
                let plural = if writers == 1 { "writer" } else { "writers" };
                format!(
                    "journal {}, {writers} {plural}, {blocks}",
                    format_bytes(block)
                )
            }
            Self::Checkpoint => "journal 4 KiB during a checkpoint".into(),
            Self::Mixed => "70 % reads, 30 % writes".into(),
            Self::Mmap {
                advice: ReadAdvice::Random,
            } => "page faults, random advice".into(),
            Self::Mmap { .. } => "page faults, no advice".into(),
            Self::Sustained => "sustained random read".into(),
        }
    }

    /// Returns the measured time at full length; a quick survey of all questions takes about 70 s.
    pub(super) fn length(self, options: &SurveyOptions) -> Duration {
        let quick = match self {
            Self::Sustained => return options.sustained,
            Self::Generator | Self::Cached => return Duration::from_millis(400),
            Self::Ramp { .. } | Self::ReadAhead { .. } => 0.85,
            Self::Journal { .. } => 0.9,
            Self::Size { .. } | Self::Mmap { .. } => 1.5,
            Self::SequentialDirect { .. } => 2.0,
            Self::Order { .. } => 3.5,
            Self::Checkpoint | Self::Mixed => 4.0,
        };
        let factor = if options.profile == Profile::Full {
            8.0
        } else {
            1.0
        };
        Duration::from_secs_f64(quick * factor)
    }

    /// Returns the time before `length` that is not measured.
    pub(super) fn warm_up(self, length: Duration) -> Duration {
        match self {
            // The data that these use is cold or fresh only once.
            Self::Order { .. }
            | Self::ReadAhead { .. }
            | Self::Mmap { .. }
            | Self::Journal { fresh: true, .. } => Duration::ZERO,
            _ => (length / 8).min(Duration::from_secs(1)),
        }
    }

    /// Returns whether the page cache must hold nothing of the file.
    pub(super) fn wants_cold(self, options: &SurveyOptions) -> bool {
        let cached = matches!(
            self,
            Self::Order { .. } | Self::ReadAhead { .. } | Self::Mmap { .. }
        );
        cached || (options.buffered && self != Self::Generator)
    }

    /// Returns the step that answers it; `None` if it needs to write and nothing may be written.
    pub(super) fn step<'a>(self, context: &Context<'a>) -> Option<Step<'a>> {
        let main = context.file;
        let jobs = match self {
            Self::Journal { .. } => vec![(self.job(context), context.journal?)],
            Self::Checkpoint => {
                vec![
                    (self.job(context), context.journal?),
                    (burst(context), main),
                ]
            }
            _ => vec![(self.job(context), main)],
        };
        Some(Step {
            group: self.group(),
            name: self.name(),
            jobs,
            pressure_max: context.options.limits.map(|limits| limits.pressure_max),
        })
    }

    fn job(self, context: &Context<'_>) -> Job {
        let mut job = self.shape(context);
        let options = context.options;
        job.runtime = context.length;
        job.warm_up = self.warm_up(context.length);
        job.seed = options.seed ^ u64::from(self.name().bytes().map(u32::from).sum::<u32>());
        if let Some(limits) = options.limits.filter(|_| self != Self::Generator) {
            job.hold_to(&limits, if self == Self::Checkpoint { 2 } else { 1 });
        }
        if options.buffered && job.facts.direct {
            (job.facts.direct, job.facts.advice) = (false, ReadAdvice::Random);
        }
        job
    }

    fn shape(self, context: &Context<'_>) -> Job {
        let options = context.options;
        match self {
            Self::Generator => Job::new(AccessKind::RandRead, EngineKind::Null),
            Self::Size { block } => queued(options, AccessKind::RandRead, block, 1),
            Self::Ramp { block, depth } => queued(options, AccessKind::RandRead, block, depth),
            Self::SequentialDirect { depth } => queued(options, AccessKind::Read, MIB, depth),
            Self::Mixed => {
                let mut job = queued(options, AccessKind::RandRw, 4 * KIB, context.knee);
                job.facts.read_share = 0.7;
                job
            }
            Self::Sustained => queued(options, AccessKind::RandRead, 4 * KIB, context.knee),
            Self::Order { run } => {
                let access = run.map_or(AccessKind::Read, |_| AccessKind::RandRead);
                let mut job = cached(access, LEAF_BYTES);
                job.facts.run_blocks = run;
                if run == Some(1) {
                    // Denser reads leave neighbours in the cache, which the kernel takes for traces
                    // of a stream and reads ahead of.
                    job.operations_max = Some((context.file.bytes() / LEAF_BYTES / 10).max(1));
                }
                job
            }
            Self::Cached => {
                let mut job = cached(AccessKind::Read, LEAF_BYTES);
                let bytes = CACHED_BYTES.min(context.file.bytes());
                (job.once, job.region) = (false, Some(0..bytes));
                job
            }
            Self::ReadAhead { window, random } => {
                let access = if random {
                    AccessKind::RandRead
                } else {
                    AccessKind::Read
                };
                let mut job = cached(access, 4 * KIB);
                job.facts.window_bytes = Some(window);
                job
            }
            Self::Journal {
                block,
                writers,
                fresh,
            } => {
                let mut job = journal(block, writers);
                (job.facts.fresh_blocks, job.once) = (fresh, fresh);
                job
            }
            Self::Checkpoint => journal(4 * KIB, 1),
            Self::Mmap { advice } => {
                let mut job = Job::new(AccessKind::RandRead, EngineKind::Mmap);
                job.facts.advice = advice;
                job
            }
        }
    }
}

/// Returns a job of direct requests with `depth` in flight: in one ring, or one each from as many
/// threads.
fn queued(options: &SurveyOptions, access: AccessKind, block: u64, depth: u32) -> Job {
    let mut job = Job::new(access, options.engine);
    job.facts.block_bytes = block;
    match options.engine {
        EngineKind::Uring => job.facts.depth = depth,
        _ => job.facts.threads = depth,
    }
    job
}

/// Returns a job of cold reads through the page cache, each block at most once.
fn cached(access: AccessKind, block: u64) -> Job {
    let mut job = Job::new(access, EngineKind::Sync);
    job.facts.direct = false;
    job.facts.block_bytes = block;
    job.once = true;
    job
}

/// Returns a job of sequential writes through the page cache, each with its sync, as a journal is
/// written.
fn journal(block: u64, writers: u32) -> Job {
    let mut job = Job::new(AccessKind::Write, EngineKind::Sync);
    job.facts.direct = false;
    job.facts.block_bytes = block;
    job.facts.threads = writers;
    job.facts.sync_each_write = true;
    job
}

/// Returns a job of large writes with an occasional sync, as a checkpoint makes them.
fn burst(context: &Context<'_>) -> Job {
    let mut job = Job::new(AccessKind::Write, EngineKind::Sync);
    job.facts.direct = false;
    job.facts.block_bytes = MIB;
    job.facts.sync_every_bytes = Some(match context.options.profile {
        Profile::Full => 1 << 30,
        _ => BURST_SYNC_BYTES,
    });
    if let Some(limits) = &context.options.limits {
        job.hold_to(limits, 2);
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_a_quick_survey_is_quick() {
        let options = SurveyOptions {
            profile: Profile::Quick,
            budget: None,
            engine: EngineKind::Uring,
            buffered: false,
            limits: None,
            sustained: Duration::from_secs(1200),
            seed: 1,
        };
        let all = questions(&options, true);
        let names: HashSet<String> = all.iter().map(|q| q.name()).collect();
        assert_eq!(names.len(), all.len());
        let total: Duration = all.iter().map(|q| q.length(&options)).sum();
        assert!(total < Duration::from_secs(76), "{total:?}");
        assert!(questions(&options, false).iter().all(|q| {
            !matches!(
                q,
                Question::Journal { .. } | Question::Checkpoint | Question::Mixed
            )
        }));
    }
}
