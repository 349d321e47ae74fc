//! Makes a step's record from what was recorded and from what the server reported before and after.

use std::fs;

use anyhow::Result;
use hdrhistogram::Histogram;
use seekscope_client::{Ended, ScheduleKind};
use seekscope_run::{
    BenchStep, ClockOffset, LatencySummary, Limitation, RunDirectory, StorageFacts,
    latency_histogram, parse_tag, service_tag_of_response,
};
use seekscope_server::{CpuTimes, ProcFs, ServerUse};
use seekscope_workload::NoCheckpoint;

use super::client_choice::Chosen;
use super::figures;
use super::stage::StepPlan;
use super::step_recorder::StepRecorder;
use super::target::Target;
use super::validity::{self, Fault, Judged};
use crate::args::WarmUpName;

/// What can be observed of the server before or after a step. There is a checkpoint at both ends, so that what
/// the server still has to write for a step is counted for that step and no other.
#[derive(Debug, Default)]
pub struct Around {
    /// Server usage at the start or end of the step.
    used: Option<ServerUse>,
    /// The server is on another host, so no work of this host is the server's.
    is_elsewhere: bool,
    host: CpuTimes,
    /// Server usage at the end of the checkpoint; `None` if there was none.
    settled: Option<ServerUse>,
    storage: Option<StorageFacts>,
    /// Why the two fields above are unknown.
    pub limitation: Option<Limitation>,
}

impl Around {
    /// Observes the server before a step; must come last. `is_shared`: see [`Self::settle`].
    pub async fn before(target: &Target, plan: &StepPlan, is_shared: bool) -> Self {
        let mut settled = Self::default();
        settled.settle(target, plan, is_shared).await;
        let Self {
            used,
            is_elsewhere,
            host,
            ..
        } = Self::ended(target);
        Self {
            used,
            is_elsewhere,
            host,
            ..settled
        }
    }

    /// Observes the server after a step; must come first. The checkpoint is still to come.
    pub fn ended(target: &Target) -> Self {
        Self {
            used: target.server_use(),
            is_elsewhere: target.is_elsewhere,
            host: CpuTimes::read(&ProcFs::host()),
            ..Self::default()
        }
    }

    /// Makes the server write a checkpoint. `is_shared`: other clients use the server, and the checkpoint would
    /// disturb their measurement.
    pub async fn settle(&mut self, target: &Target, plan: &StepPlan, is_shared: bool) {
        let settled = match is_shared {
            true => Err(NoCheckpoint::Shared),
            false => target.checkpoint().await,
        };
        match settled {
            Ok(()) => {
                self.settled = target.server_use();
                self.storage = target.storage(&plan.database, &plan.collections).await;
            }
            Err(error) => self.limitation = Some(error.limitation()),
        }
    }
}

/// A step's record, and results that do not belong in it.
pub struct SummedUp {
    pub step: BenchStep,
    pub response: Histogram<u64>,
    /// Whether the client, not the server, limited the rate.
    pub is_client_bound: bool,
    pub faults: Vec<Fault>,
    pub limitations: Vec<Limitation>,
}

/// Returns the record of a step.
pub fn summed_up(
    directory: &RunDirectory,
    run_started: ClockOffset,
    plan: &StepPlan,
    chosen: &Chosen,
    recorder: &StepRecorder,
    ended: &Ended,
) -> Result<SummedUp> {
    let is_open = !matches!(plan.job.schedule, ScheduleKind::Closed);
    let warm_up = match plan.kind {
        // Every record is loaded once, so nothing can be left out.
        "load" => WarmUpName::None,
        _ => plan.warm_up,
    };
    let measured = figures::measured(&recorder.seconds, warm_up, is_open);
    let uncut = measured.has_outage.then(|| uncut(&plan.name));
    let counted = recorder.seconds.get(measured.first..).unwrap_or_default();
    let histograms = figures::histograms(
        directory,
        recorder.latencies_position,
        run_started.monotonic_ns,
        measured.warm_up_ended_ns,
    )?;
    let kinds = plan.workload.operations();
    let throughput = figures::throughput(counted);
    let operations = figures::operations(&plan.name, kinds, counted, &histograms);
    let mut response = latency_histogram();
    response.auto(true);
    for (tag, histogram) in &histograms {
        if is_of_requests(tag, &plan.name, kinds, is_open) {
            response.add(histogram)?;
        }
    }
    let lag = LatencySummary::of(&recorder.lag);
    let judged = Judged {
        job: &plan.job,
        ended,
        seconds: &recorder.seconds,
        lag: &lag,
        response_p99_ns: figures::p99_of_all(&operations),
    };
    let faults = validity::faults(&judged);
    let client_bound = client_bound(plan, chosen, recorder);
    let step = BenchStep {
        name: plan.name.clone(),
        kind: plan.kind.into(),
        workload: plan.workload_name.clone(),
        repetition: plan.repetition,
        client: chosen.spec.kind(),
        client_reason: chosen.reason.clone(),
        arrivals: plan.arrivals.clone(),
        in_flight: u32::try_from(plan.job.in_flight).unwrap_or(u32::MAX),
        started_ns: ended.started_ns,
        ended_ns: ended.ended_ns,
        warm_up_ended_ns: measured.warm_up_ended_ns,
        steady: measured.steady,
        invalid: faults.iter().map(Fault::to_string).collect(),
        requests: figures::requests(kinds, &recorder.seconds),
        transactions: ended.transactions,
        offered_per_s: is_open.then(|| validity::offered_and_begun(&plan.job, ended).0),
        throughput_per_s: throughput.per_s,
        throughput_interval: throughput.interval,
        operations,
        failures: failures(plan, ended),
        backlog_at_end: ended.backlog,
        lag,
        client_cpu_ns: recorder.seconds.iter().map(|s| s.client_cpu_ns).sum(),
        client_rss_bytes: peak_rss_bytes(),
        ..BenchStep::default()
    };
    Ok(SummedUp {
        step,
        response,
        is_client_bound: client_bound.is_some(),
        faults,
        limitations: client_bound.into_iter().chain(uncut).collect(),
    })
}

/// Returns whether the tag is of single requests; those within transactions count.
fn is_of_requests(
    tag: &str,
    step: &str,
    kinds: &[seekscope_client::Operation],
    is_open: bool,
) -> bool {
    let (service, is_response) = match service_tag_of_response(tag) {
        Some(service) => (service, true),
        None => (tag, false),
    };
    // Other steps may have written at the same time.
    let Some((_, name)) = parse_tag(service).filter(|(found, _)| found == step) else {
        return false;
    };
    let is_single = kinds.iter().any(|k| k.name == name && !k.is_transaction);
    // A workload of transactions alone has no other requests.
    let all_are_transactions = kinds.iter().all(|k| k.is_transaction);
    is_response == is_open && (is_single || all_are_transactions)
}

fn failures(plan: &StepPlan, ended: &Ended) -> Vec<(String, String, u64, String)> {
    let kinds = plan.workload.operations();
    let of = |failure: &seekscope_client::FailureCount| {
        let kind = kinds.get(usize::from(failure.operation));
        let operation = kind.map_or_else(|| "?".into(), |k| k.name.clone());
        (
            operation,
            failure.name.clone(),
            failure.count,
            failure.message.clone(),
        )
    };
    ended.failures.iter().map(of).collect()
}

fn uncut(step: &str) -> Limitation {
    Limitation {
        what: format!("no warm-up was left out of \"{step}\""),
        why: "operations failed, or none was done, for several seconds on end, so the beginning, which differs \
              from the rest, may be its good part"
            .into(),
        remedy: "--warm-up with a time leaves that time out in any case".into(),
    }
}

fn client_bound(plan: &StepPlan, chosen: &Chosen, recorder: &StepRecorder) -> Option<Limitation> {
    let share = validity::client_bottleneck(&plan.job, &recorder.seconds)?;
    Some(Limitation {
        what: format!("the client, not the server, limited \"{}\"", plan.name),
        why: format!(
            "it used {:.0} % of its {} sending threads' time ({} client)",
            share * 100.0,
            plan.job.threads,
            chosen.name()
        ),
        remedy: "more --threads, or several clients with --clients N/M and `seekscope merge`"
            .into(),
    })
}

/// Adds the server's own figures between the two moments.
pub fn add_around(step: &mut BenchStep, before: &Around, after: &Around) {
    step.storage_before.clone_from(&before.storage);
    step.storage_after.clone_from(&after.storage);
    let between = |moment: fn(&Around) -> Option<&ServerUse>| {
        let (after, before) = (moment(after)?, moment(before)?);
        after.since(before)
    };
    let used = between(|around| around.used.as_ref());
    step.server_cpu_ns = used.map(|used| used.cpu_ns);
    step.server_read_bytes = used.and_then(|used| used.read_bytes);
    let server_ns = step.server_cpu_ns.or(after.is_elsewhere.then_some(0));
    let taken_ns = after.host.taken_since(&before.host);
    step.others_cpu_ns = taken_ns.zip(server_ns).map(|(taken_ns, server_ns)| {
        taken_ns.saturating_sub(server_ns.saturating_add(step.client_cpu_ns))
    });
    let settled = between(|around| around.settled.as_ref());
    step.server_write_bytes = settled.and_then(|used| used.write_bytes);
}

/// Returns this process's peak resident memory, `VmHWM` of proc_pid_status(5), in bytes; 0 if it cannot be
/// read.
fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step during which this host's CPUs were busy for five seconds, one of them for the client.
    fn others_cpu_ns(is_elsewhere: bool) -> Option<u64> {
        let at = |busy_s: u64| Around {
            is_elsewhere,
            host: CpuTimes {
                busy_ns: Some(busy_s * 1_000_000_000),
                stolen_ns: None,
            },
            ..Around::default()
        };
        let mut step = BenchStep {
            client_cpu_ns: 1_000_000_000,
            ..BenchStep::default()
        };
        add_around(&mut step, &at(10), &at(15));
        assert_eq!(step.server_cpu_ns, None);
        step.others_cpu_ns
    }

    #[test]
    fn what_others_used_is_known_without_a_server_on_this_host() {
        assert_eq!(others_cpu_ns(true), Some(4_000_000_000));
        // A server that cannot be observed would be counted among the others.
        assert_eq!(others_cpu_ns(false), None);
    }
}
