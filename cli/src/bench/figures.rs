//! Computes a step's figures from its records: what was done after the warm-up, how often and how fast.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use seekscope_client::Operation;
use seekscope_run::{
    LatencySummary, OperationResult, RunDirectory, RunError, Steady, response_tag_of, tag_of,
};
use seekscope_stats::{Verdict, WarmUp, batch_means, median, steadiness, warm_up};

use super::step_recorder::{OperationTotals, SecondTotals};
use crate::args::WarmUpName;

/// Intervals of the log begin at whole milliseconds.
const LOG_RESOLUTION: Duration = Duration::from_millis(1);
const ALPHA: f64 = 0.05;
/// A second with a larger share of failed operations than this, and larger than usual, counts as an outage.
const FAILED_SHARE_MAX: f64 = 0.01;
const FAILED_TIMES_MAX: f64 = 2.0;
/// Consecutive seconds that make an outage.
const OUTAGE_S: u32 = 5;

/// The part of a step that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Index of the first second that counts.
    pub first: usize,
    pub warm_up_ended_ns: Option<u64>,
    pub steady: Option<Steady>,
    /// An outage followed, so what looks like a warm-up counts all the same.
    pub has_outage: bool,
}

/// Finds where the warm-up ends, and whether what follows is steady. `is_open`: the throughput is given, so the
/// service time is judged instead.
pub fn measured(seconds: &[SecondTotals], wanted: WarmUpName, is_open: bool) -> Measured {
    let whole = whole_seconds(seconds);
    let series = series(whole, is_open);
    let found = match wanted {
        WarmUpName::None => WarmUp::Cut(0),
        WarmUpName::For(time) => WarmUp::Cut(first_after(seconds, time)),
        WarmUpName::Auto => warm_up(&series),
    };
    let has_outage = match found {
        WarmUp::Cut(cut) => wanted == WarmUpName::Auto && cut > 0 && has_outage(whole, cut),
        WarmUp::NeverSettled | WarmUp::TooShort => false,
    };
    let (first, never_settled) = match found {
        WarmUp::Cut(cut) if !has_outage => (cut, false),
        WarmUp::Cut(_) | WarmUp::TooShort => (0, false),
        WarmUp::NeverSettled => (0, true),
    };
    let what = match is_open {
        true => "service time",
        false => "throughput",
    };
    Measured {
        first,
        warm_up_ended_ns: seconds.get(first).filter(|_| first > 0).map(|s| s.t_ns),
        steady: steady(series.get(first..).unwrap_or_default(), what, never_settled),
        has_outage,
    }
}

/// Returns whether many operations failed after the cut that the rule would make, or none completed for a while
/// once work had begun. To the rule, the good seconds before an outage look like a warm-up, as they differ most
/// from the rest. Failures during the warm-up belong to it, and so do later ones that are no more frequent.
fn has_outage(seconds: &[SecondTotals], cut: usize) -> bool {
    let (before, after) = seconds.split_at(cut.min(seconds.len()));
    let shares: Vec<f64> = before.iter().map(failed_share).collect();
    let usual = median(&shares).unwrap_or(0.0);
    let limit = FAILED_SHARE_MAX.max(FAILED_TIMES_MAX * usual);
    let is_silent = |second: &SecondTotals| sum(second, |o| o.done) == 0;
    let is_failing = |second: &SecondTotals| is_silent(second) || failed_share(second) > limit;
    // When a server hangs, operations in flight have not failed yet.
    let from_work = seconds.iter().skip_while(|second| is_silent(second));
    lasts(after.iter(), is_failing) || lasts(from_work, is_silent)
}

/// Returns whether the condition holds for the length of an outage.
fn lasts<'a>(
    seconds: impl IntoIterator<Item = &'a SecondTotals>,
    is_so: impl Fn(&SecondTotals) -> bool,
) -> bool {
    let mut in_a_row = 0;
    seconds.into_iter().any(|second| {
        in_a_row = if is_so(second) { in_a_row + 1 } else { 0 };
        in_a_row >= OUTAGE_S
    })
}

fn failed_share(second: &SecondTotals) -> f64 {
    let (errors, done) = (sum(second, |o| o.errors), sum(second, |o| o.done));
    errors as f64 / (errors + done).max(1) as f64
}

fn sum(second: &SecondTotals, of: fn(&OperationTotals) -> u64) -> u64 {
    second.operations.iter().map(of).sum()
}

/// Returns the seconds without the last one if it is cut short, as it usually is.
fn whole_seconds(seconds: &[SecondTotals]) -> &[SecondTotals] {
    match seconds {
        [whole @ .., last] if last.duration_ns < 900_000_000 => whole,
        _ => seconds,
    }
}

fn series(seconds: &[SecondTotals], is_open: bool) -> Vec<f64> {
    let value = |second: &SecondTotals| match is_open {
        true => {
            let weighted = second
                .operations
                .iter()
                .map(|o| o.service_p50_ns as f64 * o.done as f64);
            let done: u64 = second.operations.iter().map(|o| o.done).sum();
            weighted.sum::<f64>() / done.max(1) as f64
        }
        false => {
            let done: u64 = second.operations.iter().map(|o| o.done).sum();
            done as f64 * 1e9 / second.duration_ns.max(1) as f64
        }
    };
    seconds.iter().map(value).collect()
}

/// Returns the index of the first second after `time`; at least one second is always left to measure.
fn first_after(seconds: &[SecondTotals], time: Duration) -> usize {
    let Some(start) = seconds.first() else {
        return 0;
    };
    let ends_ns = start
        .t_ns
        .saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let first = seconds.iter().position(|second| second.t_ns >= ends_ns);
    first.unwrap_or(0)
}

fn steady(series: &[f64], what: &str, never_settled: bool) -> Option<Steady> {
    let found = steadiness(series)?;
    let minutes = series.len() as f64 / 60.0;
    // A line through the seconds may lead below nothing; no fall is of more than all.
    let [change, low, high] =
        [found.change, found.low, found.high].map(|share| share.max(-1.0) * 100.0);
    let change = format!(
        ": {what} changed by {change:+.1} % from first to last ({low:+.1} to {high:+.1} %, 95 %) over {minutes:.1} min"
    );
    let verdict = match found.verdict {
        _ if never_settled => "it never settled (MSER-5)",
        Verdict::Steady => "steady",
        Verdict::Drifting => "drifting",
        Verdict::CannotTell => "too short or noisy to tell",
    };
    let change = match found.verdict {
        // Figures of which nothing can be told are not told.
        Verdict::CannotTell => String::new(),
        Verdict::Steady | Verdict::Drifting => change,
    };
    Some(Steady {
        steady: match found.verdict {
            _ if never_settled => Some(false),
            Verdict::Steady => Some(true),
            Verdict::Drifting => Some(false),
            Verdict::CannotTell => None,
        },
        how: format!("{verdict}{change}"),
    })
}

/// Returns the latency distributions over a step's seconds that count, by tag.
pub fn histograms(
    directory: &RunDirectory,
    latencies_position: u64,
    run_started_ns: u64,
    counts_from_ns: Option<u64>,
) -> Result<BTreeMap<String, Histogram<u64>>, RunError> {
    let from = counts_from_ns.map_or(0, |ns| ns.saturating_sub(run_started_ns));
    let from = Duration::from_nanos(from).saturating_sub(LOG_RESOLUTION);
    directory.latency_histograms_where(latencies_position, |interval| interval.start >= from)
}

/// Returns the figures of each operation that occurred, over the seconds that count.
pub fn operations(
    step: &str,
    kinds: &[Operation],
    seconds: &[SecondTotals],
    histograms: &BTreeMap<String, Histogram<u64>>,
) -> Vec<OperationResult> {
    let time_ns: u64 = seconds.iter().map(|s| s.duration_ns).sum();
    let result = |(i, kind): (usize, &Operation)| {
        let of_kind = || seconds.iter().filter_map(|s| s.operations.get(i));
        let sum = |field: fn(&OperationTotals) -> u64| -> u64 { of_kind().map(field).sum() };
        let (count, errors) = (sum(|o| o.done), sum(|o| o.errors));
        let summary = |tag: &str| histograms.get(tag).map(LatencySummary::of);
        (count + errors > 0).then(|| OperationResult {
            name: kind.name.clone(),
            is_transaction: kind.is_transaction,
            count,
            errors,
            documents: sum(|o| o.documents),
            bytes: sum(|o| o.bytes),
            per_s: count as f64 * 1e9 / time_ns.max(1) as f64,
            per_s_interval: per_s_interval(seconds, i),
            service: summary(&tag_of(step, &kind.name)).unwrap_or_default(),
            response: summary(&response_tag_of(step, &kind.name)),
        })
    };
    kinds.iter().enumerate().filter_map(result).collect()
}

fn per_s_interval(seconds: &[SecondTotals], operation: usize) -> Option<(f64, f64)> {
    interval(seconds, |second| {
        second.operations.get(operation).map_or(0, |o| o.done)
    })
}

fn interval(seconds: &[SecondTotals], count: impl Fn(&SecondTotals) -> u64) -> Option<(f64, f64)> {
    let rate = |s: &SecondTotals| count(s) as f64 * 1e9 / s.duration_ns.max(1) as f64;
    let rates: Vec<f64> = whole_seconds(seconds).iter().map(rate).collect();
    let (low, high) = batch_means(&rates)?.interval(ALPHA);
    Some((low.max(0.0), high))
}

/// Rate of transactions that ended well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    pub per_s: f64,
    pub interval: Option<(f64, f64)>,
}

/// Computes the throughput over the seconds that count.
pub fn throughput(seconds: &[SecondTotals]) -> Throughput {
    let done = |second: &SecondTotals| second.transactions;
    let time_ns: u64 = seconds.iter().map(|s| s.duration_ns).sum();
    let total: u64 = seconds.iter().map(done).sum();
    Throughput {
        per_s: total as f64 * 1e9 / time_ns.max(1) as f64,
        interval: interval(seconds, done),
    }
}

/// Counts requests that were answered or failed. Transactions are left out where their requests are counted
/// individually.
pub fn requests(kinds: &[Operation], seconds: &[SecondTotals]) -> u64 {
    let all_are_transactions = kinds.iter().all(|kind| kind.is_transaction);
    let is_counted = |kind: &Operation| all_are_transactions || !kind.is_transaction;
    let of_second = |second: &SecondTotals| -> u64 {
        let counted = kinds
            .iter()
            .zip(&second.operations)
            .filter(|(kind, _)| is_counted(kind));
        counted.map(|(_, o)| o.done + o.errors).sum()
    };
    seconds.iter().map(of_second).sum()
}

/// Returns the p99 over all operations together, ns: of response time in an open loop, else of service time.
pub fn p99_of_all(operations: &[OperationResult]) -> u64 {
    let p99 = |o: &OperationResult| o.response.as_ref().unwrap_or(&o.service).p99_ns;
    operations.iter().map(p99).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(done: &[u64]) -> Vec<SecondTotals> {
        let second = |(i, done): (usize, &u64)| SecondTotals {
            t_ns: 5 + i as u64 * 1_000_000_000,
            duration_ns: 1_000_000_000,
            operations: vec![OperationTotals {
                done: *done,
                errors: 1,
                ..OperationTotals::default()
            }],
            transactions: *done,
            backlog: 0,
            client_cpu_ns: 0,
        };
        done.iter().enumerate().map(second).collect()
    }

    #[test]
    fn a_warm_up_is_found_and_left_out() {
        let mut done = vec![100, 200, 300, 400, 500];
        done.extend([1000; 60]);
        let seconds = seconds(&done);
        let auto = measured(&seconds, WarmUpName::Auto, false);
        assert_eq!(
            (auto.first, auto.warm_up_ended_ns),
            (5, Some(5_000_000_005))
        );
        assert!(auto.steady.is_some_and(|s| s.steady == Some(true)));
        let kinds = [Operation {
            name: "READ".into(),
            is_transaction: false,
        }];
        let all = operations("s", &kinds, &seconds[auto.first..], &BTreeMap::new());
        assert_eq!((all[0].count, all[0].errors), (60_000, 60));
        assert!((all[0].per_s - 1000.0).abs() < 1e-9 && all[0].per_s_interval.is_some());
        assert_eq!(measured(&seconds, WarmUpName::None, false).first, 0);
        let ten = WarmUpName::For(Duration::from_secs(10));
        assert_eq!(measured(&seconds, ten, false).first, 10);
        let beyond = WarmUpName::For(Duration::from_secs(1000));
        assert_eq!(measured(&seconds, beyond, false).first, 0);
    }

    #[test]
    fn nothing_is_cut_where_failures_follow() {
        let cut = |seconds: &[SecondTotals]| measured(seconds, WarmUpName::Auto, false).first;
        let mut done = vec![1000; 10];
        done.extend([0; 20]);
        assert_eq!(cut(&seconds(&done)), 0, "a server that failed");
        let mut hangs = seconds(&done);
        for second in hangs.iter_mut().flat_map(|s| &mut s.operations) {
            second.errors = 0;
        }
        assert_eq!(cut(&hangs), 0, "one that hangs");
        // The server came back, so the part before the outage counts too.
        done.extend([1000; 40]);
        assert_eq!(cut(&seconds(&done)), 0);
        // A slow first operation is not an outage.
        let mut late = vec![0; 10];
        late.extend([1000; 60]);
        let mut late = seconds(&late);
        for second in late.iter_mut().flat_map(|s| &mut s.operations) {
            second.errors = 0;
        }
        assert_eq!(cut(&late), 10);
    }

    #[test]
    fn a_failure_now_and_then_is_no_outage() {
        let mut done = vec![100, 200, 300, 400, 500];
        done.extend([1000; 60]);
        let mut found = seconds(&done);
        for second in [1, 30, 31] {
            found[second].operations[0].errors = 500;
        }
        let warmed = measured(&found, WarmUpName::Auto, false);
        assert_eq!((warmed.first, warmed.has_outage), (5, false));
        // Nor are failures of the workload that occur throughout.
        for second in &mut found {
            second.operations[0].errors = second.operations[0].done / 20;
        }
        assert_eq!(measured(&found, WarmUpName::Auto, false).first, 5);
        // Lasting failures that only start later are an outage, and it is reported that nothing was cut.
        let mut done = vec![1000; 10];
        done.extend([400; 50]);
        let mut broken = seconds(&done);
        for second in &mut broken[10..] {
            second.operations[0].errors = 40;
        }
        let kept = measured(&broken, WarmUpName::Auto, false);
        assert_eq!((kept.first, kept.has_outage), (0, true));
        assert_eq!(kept.warm_up_ended_ns, None);
    }
}
