//! Processor time and memory of a proposal after 100 trials of 20 knobs.
#![expect(clippy::print_stdout, reason = "the benchmark's result")]

use anyhow::{Context, Result};
use seekscope_stats::{SplitMix64, quantile_sorted};
use seekscope_tune::optimiser::{Goal, History, Optimiser, Outcome, Trial};
use seekscope_tune::synthetic::Surface;

use crate::regret::levels;

const TRIALS: usize = 100;
const PROPOSALS: usize = 30;

pub(crate) fn print() -> Result<()> {
    let space = Surface::Sparse20.space()?;
    let (mut history, mut rng) = (History::default(), SplitMix64::new(1));
    let mut optimiser = Optimiser::new(space.clone(), &[], Goal::Maximise, 1)?;
    let mut times = Vec::new();
    let before = peak_kib()?;
    while history.trials.len() < TRIALS + PROPOSALS {
        let start = processor_ns()?;
        let configuration = optimiser.propose(&history).configuration;
        if history.trials.len() >= TRIALS {
            times.push((processor_ns()? - start) as f64 / 1e6);
        }
        let outcome = match Surface::Sparse20.measure(&levels(&space, &configuration)?, &mut rng) {
            Some(value) => Outcome::Measured { value, noise: 1.0 },
            None => Outcome::Failed {
                reason: "it fails there".into(),
            },
        };
        history.trials.push(Trial {
            configuration,
            outcome,
        });
    }
    let grown = peak_kib()? - before;
    times.sort_by(f64::total_cmp);
    let at = |q| quantile_sorted(&times, q).unwrap_or(f64::NAN);
    let start = processor_ns()?;
    Optimiser::new(space, &[], Goal::Maximise, 1)?.propose(&history);
    let resumed = (processor_ns()? - start) as f64 / 1e9;
    println!(
        "a proposal after {TRIALS} to {} trials of 20 knobs: median {:.1} ms of processor time, slowest {:.1} ms (at most 20), \
         peak memory {:.1} MB (at most 20); the first one after resuming: {resumed:.2} s",
        TRIALS + PROPOSALS,
        at(0.5),
        at(1.0),
        grown as f64 / 1024.0,
    );
    Ok(())
}

/// Time that this thread has had on a processor: what else the machine does is no cost of a proposal.
fn processor_ns() -> Result<u64> {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = schedule.split_whitespace().next();
    Ok(first.context("nothing in schedstat")?.parse()?)
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> Result<i64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmHWM in /proc/self/status")?.parse()?)
}
