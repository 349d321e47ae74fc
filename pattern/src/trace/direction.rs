//! The pattern of one direction: a file's reads or writes, a disk's read or write requests.

use seekscope_run::IoEvent;

use super::classify::{ACCESSES_MIN, kind_of};
use super::hash::NumberMap;
use super::latency::LatencyGrid;
use super::result::{DirectionTrace, LatencyByOutcome, PatternShape};
use super::sketch::Sketch;
use super::steps::{Judge, Judged, Step, StepCounts};
use super::touched::Touched;
use crate::access::Access;
use crate::{AccessPattern, Direction, PatternKind, Transfers};

/// The most threads per direction whose own steps are followed; later ones are left out.
const THREADS_MAX: usize = 256;

/// The share from which a thread's own steps count as sequential.
const SEQUENTIAL_THREAD_SHARE: f64 = 0.8;

/// Counts everything about one direction except the calls as such.
pub(crate) struct PatternCounter {
    judge: Judge,
    counts: StepCounts,
    touched: Touched,
    first_byte: u64,
    last_byte: u64,
    bytes: u64,
    distinct_bytes: u64,
    runs: Runs,
    gaps: Gaps,
    threads: NumberMap<u32, ThreadSteps>,
}

/// The findings about an access, for counting it a second time in a slice.
pub(crate) struct Noted {
    pub(crate) judged: Judged,
    pub(crate) new_bytes: u64,
}

impl PatternCounter {
    pub(crate) fn new(exact_max: usize) -> Self {
        Self {
            judge: Judge::default(),
            counts: StepCounts::default(),
            touched: Touched::default(),
            first_byte: u64::MAX,
            last_byte: 0,
            bytes: 0,
            distinct_bytes: 0,
            runs: Runs::new(exact_max),
            gaps: Gaps::new(exact_max),
            threads: NumberMap::default(),
        }
    }

    /// Takes the next access in order of start.
    pub(crate) fn add(&mut self, access: Access, tid: u32) -> Noted {
        let judged = self.judge.next(access);
        self.counts.add(&judged);
        let new_bytes = self.touched.add(access.offset, access.end());
        self.first_byte = self.first_byte.min(access.offset);
        self.last_byte = self.last_byte.max(access.end());
        self.bytes += access.bytes;
        self.distinct_bytes += new_bytes;
        self.runs
            .add(access.bytes, judged.step.is_some_and(Step::is_contiguous));
        if let Some(step) = judged.step {
            self.gaps.add(step);
        }
        if self.threads.len() < THREADS_MAX || self.threads.contains_key(&tid) {
            self.threads.entry(tid).or_default().add(access);
        }
        Noted { judged, new_bytes }
    }

    pub(crate) fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Returns the pattern; `None` without accesses.
    pub(crate) fn pattern(&self) -> Option<AccessPattern> {
        let counts = &self.counts;
        if counts.accesses == 0 {
            return None;
        }
        let kind = kind_of(counts.accesses, &counts.evidence());
        let backward_share = counts.share(counts.backward);
        let (run_accesses, run_bytes) = self.runs.finish();
        let seek_bytes = self.gaps.all();
        let stride = self.judge.stride_bytes();
        Some(AccessPattern {
            kind,
            direction: match backward_share {
                b if b <= 0.1 => Direction::Forward,
                b if b >= 0.9 => Direction::Backward,
                _ => Direction::Both,
            },
            accesses: counts.accesses,
            contiguous_share: counts.share(counts.contiguous),
            sequential_share: counts.share(counts.sequential),
            backward_share,
            seeks: counts.accesses - counts.sequential,
            run_accesses: run_accesses.quantiles(),
            run_bytes: run_bytes.quantiles(),
            seek_bytes: seek_bytes.quantiles(),
            stride_bytes: stride.filter(|_| kind == PatternKind::Strided),
            first_byte: self.first_byte,
            last_byte: self.last_byte,
            bytes: self.bytes,
            distinct_bytes: self.distinct_bytes,
            reread_share: 1.0 - self.distinct_bytes as f64 / self.bytes.max(1) as f64,
            interleaved_streams: self.judge.interleaved_streams(),
        })
    }

    fn shape(&self, latencies: &LatencyGrid) -> PatternShape {
        let (run_accesses, run_bytes) = self.runs.finish();
        let busy = self
            .threads
            .values()
            .filter(|t| t.steps + 1 >= ACCESSES_MIN);
        let alone = |t: &&ThreadSteps| t.sequential as f64 / t.steps as f64;
        let (steps, sequential) = self
            .threads
            .values()
            .fold((0, 0), |sum, t| (sum.0 + t.steps, sum.1 + t.sequential));
        PatternShape {
            run_accesses: run_accesses.distribution(),
            run_bytes: run_bytes.distribution(),
            forward_gap_bytes: self.gaps.forward().distribution(),
            backward_gap_bytes: self.gaps.backward.distribution(),
            seek_distance_bytes: self.gaps.seeks().distribution(),
            sequential_latency_ns: latencies.sequential().quantiles(),
            seek_latency_ns: latencies.seeks().quantiles(),
            evidence: self.counts.evidence(),
            threads: busy.clone().count() as u64,
            sequential_threads: busy.filter(|t| alone(t) >= SEQUENTIAL_THREAD_SHARE).count() as u64,
            thread_sequential_share: sequential as f64 / steps.max(1) as f64,
        }
    }
}

/// Counts the calls of one direction and, once one of them has transferred a byte, their pattern.
pub(crate) struct DirectionCounter {
    exact_max: usize,
    calls: u64,
    bytes: u64,
    errors: u64,
    latencies: LatencyGrid,
    pub(crate) pattern: Option<Box<PatternCounter>>,
}

impl DirectionCounter {
    pub(crate) fn new(exact_max: usize) -> Self {
        Self {
            exact_max,
            calls: 0,
            bytes: 0,
            errors: 0,
            latencies: LatencyGrid::default(),
            pattern: None,
        }
    }

    /// Takes the next call or request in order of start, with its access, if any.
    pub(crate) fn add(&mut self, event: &IoEvent, access: Option<Access>) -> Option<Noted> {
        let exact_max = self.exact_max;
        self.calls += 1;
        self.bytes += event.bytes();
        self.errors += u64::from(event.result < 0);
        let noted = access.map(|access| {
            self.pattern
                .get_or_insert_with(|| Box::new(PatternCounter::new(exact_max)))
                .add(access, event.tid)
        });
        let step = noted.as_ref().and_then(|noted| noted.judged.step);
        let outcome = event.cache_outcome();
        self.latencies
            .add(outcome, step, event.latency_ns, exact_max);
        noted
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn latency_by_outcome(&self) -> LatencyByOutcome {
        self.latencies.by_outcome()
    }

    pub(crate) fn finish(&self) -> DirectionTrace {
        DirectionTrace {
            transfers: Transfers {
                calls: self.calls,
                bytes: self.bytes,
                errors: self.errors,
                latency_ns: self.latencies.all().quantiles(),
            },
            pattern: self.pattern.as_ref().and_then(|p| p.pattern()),
            shape: self.pattern.as_ref().map(|p| p.shape(&self.latencies)),
        }
    }
}

/// Gaps by kind; every gap that is not 0 is in exactly one of these.
struct Gaps {
    /// Forward, inside the sequential window.
    small: Sketch,
    /// Forward, beyond it.
    far: Sketch,
    backward: Sketch,
}

impl Gaps {
    fn new(exact_max: usize) -> Self {
        Self {
            small: Sketch::new(exact_max),
            far: Sketch::new(exact_max),
            backward: Sketch::new(exact_max),
        }
    }

    fn add(&mut self, step: Step) {
        match () {
            () if step.is_contiguous() => return,
            () if step.gap_is_backward => &mut self.backward,
            () if step.is_sequential() => &mut self.small,
            () => &mut self.far,
        }
        .add(step.gap_bytes);
    }

    fn forward(&self) -> Sketch {
        let mut sum = self.small.clone();
        sum.merge(&self.far);
        sum
    }

    /// Returns the seek distances: the gaps of the steps that are not sequential.
    fn seeks(&self) -> Sketch {
        let mut sum = self.far.clone();
        sum.merge(&self.backward);
        sum
    }

    fn all(&self) -> Sketch {
        let mut sum = self.forward();
        sum.merge(&self.backward);
        sum
    }
}

/// Runs, which are series of contiguous accesses.
struct Runs {
    accesses: Sketch,
    bytes: Sketch,
    /// Accesses and bytes of the present run.
    current: (u64, u64),
}

impl Runs {
    fn new(exact_max: usize) -> Self {
        Self {
            accesses: Sketch::new(exact_max),
            bytes: Sketch::new(exact_max),
            current: (0, 0),
        }
    }

    fn add(&mut self, bytes: u64, contiguous: bool) {
        if !contiguous {
            self.close();
        }
        self.current.0 += 1;
        self.current.1 += bytes;
    }

    fn close(&mut self) {
        if self.current.0 > 0 {
            self.accesses.add(self.current.0);
            self.bytes.add(self.current.1);
        }
        self.current = (0, 0);
    }

    /// Returns the sketches, with the present run as the last one.
    fn finish(&self) -> (Sketch, Sketch) {
        let mut all = Self {
            accesses: self.accesses.clone(),
            bytes: self.bytes.clone(),
            current: self.current,
        };
        all.close();
        (all.accesses, all.bytes)
    }
}

/// Steps from a thread's access to the same thread's next.
#[derive(Default)]
struct ThreadSteps {
    last: Option<Access>,
    steps: u64,
    sequential: u64,
}

impl ThreadSteps {
    fn add(&mut self, access: Access) {
        if let Some(last) = self.last {
            self.steps += 1;
            self.sequential += u64::from(Step::between(last, access).is_sequential());
        }
        self.last = Some(access);
    }
}
