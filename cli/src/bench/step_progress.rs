//! Shows the progress of a running step.

use seekscope_client::Second;
use seekscope_run::LatencySummary;
use seekscope_run::units::{format_count, format_ns};

use super::stage::AtOnce;
use crate::progress::{Progress, Step};

/// Returns a progress bar for steps that run at the same time.
pub fn bar(progress: Progress, plans: &[AtOnce]) -> Step {
    let names: Vec<&str> = plans.iter().map(|a| a.plan.name.as_str()).collect();
    let total: Option<u64> = plans
        .iter()
        .map(|a| a.plan.expected.or(a.plan.job.transactions))
        .sum();
    match total {
        Some(total) => progress.counted(names.join(", "), total),
        None => progress.step(names.join(", ")),
    }
}

/// Shows the second's rate and p99 beside the step's name.
pub fn show(bar: &Step, second: &Second, done: &mut u64) {
    let this_second: u64 = second.operations.iter().map(|o| o.done).sum();
    *done += this_second;
    bar.at(*done);
    let per_s = u128::from(this_second) * 1_000_000_000 / u128::from(second.duration_ns.max(1));
    let latencies = second.operations.iter().map(|o| {
        let histogram = o.response.as_ref().unwrap_or(&o.service);
        LatencySummary::of(histogram).p99_ns
    });
    bar.note(format!(
        "{}/s, p99 {}",
        format_count(u64::try_from(per_s).unwrap_or(u64::MAX)),
        format_ns(latencies.max().unwrap_or(0))
    ));
}
