//! Marks events during a step, and defines the span of time that its figures show.

use seekscope_doctor::evidence::CHECKPOINT_STATE;
use seekscope_run::{BenchStep, CounterSample};

use super::BenchReportInput;
use crate::html::charts::Mark;

/// The most marks; more would hide the lines that they are drawn over.
const MARKS_MAX: usize = 60;

/// The time that a step's figures show, as seconds since the run began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) run_started_ns: u64,
    pub(super) started_ns: u64,
    pub(super) ended_ns: u64,
}

impl Span {
    pub(super) fn of(input: &BenchReportInput<'_>, step: &BenchStep) -> Self {
        Self {
            run_started_ns: input.document.started.monotonic_ns,
            started_ns: step.started_ns,
            ended_ns: step.ended_ns.max(step.started_ns),
        }
    }

    pub(super) fn holds(&self, t_ns: u64) -> bool {
        (self.started_ns..=self.ended_ns).contains(&t_ns)
    }

    /// Converts to seconds since the run began.
    pub(super) fn seconds(&self, t_ns: u64) -> f64 {
        t_ns.saturating_sub(self.run_started_ns) as f64 / 1e9
    }

    /// Returns the samples within it; samples are taken once a second, so one before and one after are
    /// included.
    pub(super) fn samples(
        self,
        counters: &[CounterSample],
    ) -> impl Iterator<Item = &CounterSample> {
        const MARGIN_NS: u64 = 1_500_000_000;
        let from = self.started_ns.saturating_sub(MARGIN_NS);
        let to = self.ended_ns.saturating_add(MARGIN_NS);
        counters
            .iter()
            .filter(move |s| (from..=to).contains(&s.t_ns))
    }
}

/// Marks the end of the warm-up, checkpoints, and other steps that began or ended meanwhile, such as index
/// builds.
pub(super) fn of_step(input: &BenchReportInput<'_>, step: &BenchStep) -> Vec<Mark> {
    let span = Span::of(input, step);
    let mark = |t_ns: u64, label: String| Mark {
        x: span.seconds(t_ns),
        label,
    };
    let mut marks = Vec::new();
    if let Some(t_ns) = step.warm_up_ended_ns {
        marks.push(mark(t_ns, "warm-up ended".into()));
    }
    for other in input.steps().iter().filter(|other| other.name != step.name) {
        let moments = [(other.started_ns, "began"), (other.ended_ns, "ended")];
        // The ends of steps that only follow one another would say nothing.
        let beside = other.started_ns < step.ended_ns && other.ended_ns > step.started_ns;
        for (t_ns, word) in moments
            .into_iter()
            .filter(|(t, _)| beside && span.holds(*t))
        {
            marks.push(mark(
                t_ns,
                format!("{} {word}", crate::escape::visible(&other.name)),
            ));
        }
    }
    marks.extend(checkpoints(input, span));
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    marks.truncate(MARKS_MAX);
    marks
}

fn checkpoints(input: &BenchReportInput<'_>, span: Span) -> Vec<Mark> {
    let mut running = false;
    let mut marks = Vec::new();
    let samples = span.samples(&input.records.counters);
    for sample in samples.filter(|s| CHECKPOINT_STATE.contains(&s.name.as_str())) {
        let now = sample.value > 0.0;
        if now != running && span.holds(sample.t_ns) {
            let word = if now {
                "checkpoint"
            } else {
                "checkpoint ended"
            };
            marks.push(Mark {
                x: span.seconds(sample.t_ns),
                label: word.into(),
            });
        }
        running = now;
    }
    marks
}
