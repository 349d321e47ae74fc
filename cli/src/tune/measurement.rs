//! Measures one run of the workload or command under the current setting: its figures, or why there are none.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{BenchStep, Verification};
use seekscope_server::ProcFs;
use seekscope_tune::early_stop::{CHECKPOINTS, EarlyStop};
use seekscope_tune::optimiser::Outcome;

use super::command_load::{self, Ran};
use super::memory_watch::MemoryWatch;
use super::metric::{Figures, Metric, rate_of_operation};
use super::partial::partial_figure;
use crate::bench::{Pace, Repeatable, Stage, StepDone, Stretch, Target, Watch};
use crate::exit::{Interrupted, message_of};

/// How often a run is checked for an early end.
const LOOK: Duration = Duration::from_millis(500);

/// What is run.
#[derive(Debug)]
pub enum Load {
    Workload(Box<Repeatable>),
    Command {
        command: String,
        limit: Duration,
        /// Length of a run, according to the user.
        takes: Option<Duration>,
    },
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    Measured {
        figures: Figures,
        /// Whether the run settled; `None` if that is unknown.
        steady: Option<bool>,
        /// The metric up to each checkpoint, if it can be known before the end.
        partial: [Option<f64>; CHECKPOINTS.len()],
    },
    /// It could not win; holds its extrapolated value.
    Early {
        value: f64,
        at_share: f64,
    },
    Failed {
        reason: String,
    },
    /// It was ended because the server's memory was about to be exhausted.
    NearlyFull {
        reason: String,
    },
}

/// The parameters of a run.
pub struct Asked<'a> {
    /// Unique in the run directory.
    pub name: String,
    pub seed: u64,
    pub metric: &'a Metric,
    /// Variables for a command.
    pub environment: BTreeMap<String, String>,
    /// If the run may end early: the value expected of the best setting, and what earlier runs taught.
    pub against: Option<(f64, &'a EarlyStop)>,
    /// The server's memory, which the run must not exhaust.
    pub memory: &'a MemoryWatch,
    /// Figures that a command has to print: the metric's and those of constraints.
    pub wanted: Vec<&'a str>,
}

impl Load {
    /// Runs the load. Returns an error only if the session cannot go on: a signal, or a run directory that
    /// cannot be written.
    pub async fn run(
        &self,
        stage: &mut Stage,
        target: Option<&Target>,
        asked: Asked<'_>,
    ) -> Result<Ended> {
        match (self, target) {
            (Self::Command { command, limit, .. }, _) => {
                let ran = command_load::run(command, &asked.environment, &asked.wanted, *limit);
                let ran = tokio::select! {
                    ran = stage.interruption.or(ran) => ran?,
                    reason = asked.memory.until_nearly_full() => {
                        return Ok(Ended::NearlyFull { reason });
                    }
                };
                match ran {
                    Ran::Failed(why) => Ok(Ended::Failed {
                        reason: format!("the command: {why}"),
                    }),
                    Ran::Done(mut figures) => {
                        let pid = target.and_then(|target| target.facts.pid);
                        add_memory(&mut figures, pid);
                        Ok(Ended::Measured {
                            figures,
                            steady: None,
                            partial: [None; CHECKPOINTS.len()],
                        })
                    }
                }
            }
            (Self::Workload(workload), Some(target)) => {
                run_workload(workload, stage, target, asked).await
            }
            (Self::Workload(_), None) => Ok(Ended::Failed {
                reason: "there is no server to run the workload on".into(),
            }),
        }
    }
}

async fn run_workload(
    workload: &Repeatable,
    stage: &mut Stage,
    target: &Target,
    asked: Asked<'_>,
) -> Result<Ended> {
    let watch = Watch::default();
    let stretch = Stretch {
        name: asked.name.clone(),
        pace: Pace::AsAsked,
        repetition: 1,
        duration: None,
        seed: Some(asked.seed),
        watch: Some(watch.clone()),
    };
    let looking = Looking {
        watch: &watch,
        metric: asked.metric,
        duration: workload.duration(),
        against: asked.against,
        memory: asked.memory,
    };
    let first = stage.measurement().steps.len();
    let (done, cut_short) = {
        let run = workload.run(stage, target, stretch);
        tokio::pin!(run);
        tokio::select! {
            biased;
            done = &mut run => (done, None),
            cut_short = looking.until_cut_short() => {
                watch.abandonment.decide();
                (run.await, Some(cut_short))
            }
        }
    };
    if let Some(cut_short) = cut_short {
        stage.interruption.check()?;
        return Ok(cut_short);
    }
    match done {
        Ok(done) => Ok(figures_of(stage, target, first, &done, &looking)),
        Err(error) if error.is::<Interrupted>() => Err(error),
        Err(error) => {
            stage.interruption.check()?;
            Ok(Ended::Failed {
                reason: message_of(&error),
            })
        }
    }
}

/// Observes a run in progress.
struct Looking<'a> {
    watch: &'a Watch,
    metric: &'a Metric,
    duration: Option<Duration>,
    against: Option<(f64, &'a EarlyStop)>,
    memory: &'a MemoryWatch,
}

impl Looking<'_> {
    /// Returns why the run is to be ended early.
    async fn until_cut_short(&self) -> Ended {
        tokio::select! {
            (value, at_share) = self.until_hopeless() => Ended::Early { value, at_share },
            reason = self.memory.until_nearly_full() => Ended::NearlyFull { reason },
        }
    }

    /// Returns the extrapolated value and the share of the window that was run, once a run cannot win.
    async fn until_hopeless(&self) -> (f64, f64) {
        let mut next = 0;
        loop {
            tokio::time::sleep(LOOK).await;
            let (Some((best, rule)), Some(share)) = (self.against, CHECKPOINTS.get(next)) else {
                std::future::pending::<()>().await;
                continue;
            };
            let Some(partial) = self.partial(*share) else {
                continue;
            };
            if let Some(Outcome::Measured { value, .. }) = rule.hopeless(next, partial, best) {
                return (value, *share);
            }
            next += 1;
        }
    }

    /// Returns the metric over the first `share` of the window; see [`partial_figure`].
    fn partial(&self, share: f64) -> Option<f64> {
        let window = self.duration?.mul_f64(share);
        partial_figure(self.watch, window, &self.metric.figure)
    }

    fn partials(&self) -> [Option<f64>; CHECKPOINTS.len()] {
        CHECKPOINTS.map(|share| self.partial(share))
    }
}

/// Returns the figures of the steps that a run added.
fn figures_of(
    stage: &mut Stage,
    target: &Target,
    first: usize,
    done: &[StepDone],
    looking: &Looking<'_>,
) -> Ended {
    let mut response = seekscope_run::latency_histogram();
    response.auto(true);
    for step in done {
        // Both are of the same kind; values that do not fit are left out.
        let _ = response.add(&step.response);
    }
    let steps = stage.measurement().steps.get(first..).unwrap_or_default();
    let last: Vec<&BenchStep> = done
        .iter()
        .filter_map(|step| steps.get(step.index.checked_sub(first)?))
        .collect();
    if let Some(reason) = refusal(&last) {
        return Ended::Failed { reason };
    }
    let mut figures = figures(&last);
    for (name, quantile) in [("p50_ms", 0.5), ("p99_ms", 0.99), ("p999_ms", 0.999)] {
        if !response.is_empty() {
            figures.insert(
                name.into(),
                response.value_at_quantile(quantile) as f64 / 1e6,
            );
        }
    }
    add_memory(&mut figures, target.facts.pid);
    let told: Vec<bool> = last
        .iter()
        // Of a run that is too noisy to tell, the noise is what counts.
        .filter_map(|step| Some(step.steady.as_ref()?.steady == Some(true)))
        .collect();
    Ended::Measured {
        figures,
        steady: (!told.is_empty()).then(|| told.iter().all(|steady| *steady)),
        partial: looking.partials(),
    }
}

/// Returns why a run does not count.
fn refusal(steps: &[&BenchStep]) -> Option<String> {
    for step in steps {
        if let Some(why) = step.invalid.first() {
            return Some(format!("the run is invalid: {why}"));
        }
        if let Some(fault) = step.verification.as_ref().and_then(Verification::fault) {
            return Some(fault.into());
        }
        let count = |f: fn(&seekscope_run::OperationResult) -> u64| -> u64 {
            step.operations.iter().map(f).sum()
        };
        let (done, errors) = (count(|o| o.count), count(|o| o.errors));
        if done == 0 || errors as f64 > MAX_ERRORS * (done + errors) as f64 {
            let first = step.failures.first();
            let why = first.map_or_else(String::new, |(operation, name, _, message)| {
                format!(", first: {operation}: {name}: {message}")
            });
            return Some(format!(
                "{errors} of {} operations failed{why}",
                done + errors
            ));
        }
    }
    steps.is_empty().then(|| "nothing was run".into())
}

/// Above this share of failed operations a run does not measure anything.
const MAX_ERRORS: f64 = 0.01;

/// Returns the throughput and the cost per operation, for steps that ran at the same time.
fn figures(steps: &[&BenchStep]) -> Figures {
    let mut figures = Figures::new();
    let all = steps.iter().map(|step| step.throughput_per_s).sum();
    figures.insert("throughput_per_s".into(), all);
    for operation in steps.iter().flat_map(|step| &step.operations) {
        let rate = figures.entry(rate_of_operation(&operation.name));
        *rate.or_default() += operation.per_s;
    }
    let Some(first) = steps.first() else {
        return figures;
    };
    let mut add = |name: &str, value: f64| {
        figures.insert(name.into(), value);
    };
    let elapsed_ns = first.ended_ns.saturating_sub(first.started_ns);
    add("seconds", elapsed_ns as f64 / 1e9);
    // Process and server usage are those of all steps together.
    let requests = steps.iter().map(|step| step.requests).sum::<u64>().max(1) as f64;
    add(
        "client_cpu_us_per_op",
        first.client_cpu_ns as f64 / 1e3 / requests,
    );
    let of_server = [
        ("server_cpu_us_per_op", first.server_cpu_ns, 1e3),
        ("server_read_bytes_per_op", first.server_read_bytes, 1.0),
        ("server_write_bytes_per_op", first.server_write_bytes, 1.0),
    ];
    for (name, value, divisor) in of_server {
        if let Some(value) = value {
            add(name, value as f64 / divisor / requests);
        }
    }
    figures
}

/// Adds the memory that the server's process uses now, if it can be observed.
fn add_memory(figures: &mut Figures, pid: Option<u32>) {
    let rss = pid.and_then(|pid| ProcFs::host().rss_bytes(pid).ok());
    if let Some(bytes) = rss {
        figures.insert("server_rss_bytes".into(), bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::OperationResult;

    use super::*;

    fn step() -> BenchStep {
        BenchStep {
            throughput_per_s: 500.0,
            requests: 1000,
            started_ns: 0,
            ended_ns: 2_000_000_000,
            server_cpu_ns: Some(50_000_000),
            operations: vec![OperationResult {
                name: "read".into(),
                per_s: 495.0,
                count: 990,
                errors: 5,
                ..OperationResult::default()
            }],
            ..BenchStep::default()
        }
    }

    #[test]
    fn costs_are_per_operation() {
        let figures = figures(&[&step()]);
        assert_eq!(figures["throughput_per_s"], 500.0);
        assert_eq!(figures["read:throughput_per_s"], 495.0);
        assert_eq!(figures["server_cpu_us_per_op"], 50.0);
        assert!(
            !figures.contains_key("server_read_bytes_per_op"),
            "unknown is not zero"
        );
    }

    #[test]
    fn a_run_that_failed_is_no_measurement() {
        assert_eq!(refusal(&[&step()]), None);
        let mut failing = step();
        failing.operations[0].errors = 200;
        assert!(refusal(&[&failing]).unwrap().contains("200 of 1190"));
        let invalid = BenchStep {
            invalid: vec!["backlog".into()],
            ..step()
        };
        assert!(refusal(&[&invalid]).unwrap().contains("backlog"));
        assert!(refusal(&[]).is_some());
    }
}
