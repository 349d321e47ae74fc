//! A step's record from what was recorded of it, and from what the server said before and after.

use std::fs;

use anyhow::Result;
use hdrhistogram::Histogram;
use seekscope_client::{Ended, ScheduleKind};
use seekscope_run::{
    BenchStep, ClockOffset, LatencySummary, Limitation, RunDirectory, StorageFacts,
    latency_histogram, parse_tag, service_tag_of_response,
};
use seekscope_server::{CpuTimes, ProcFs, ServerUse};
use seekscope_workload::without_checkpoint;

use super::client_choice::Chosen;
use super::figures;
use super::stage::StepPlan;
use super::step_recorder::StepRecorder;
use super::target::Target;
use super::validity::{self, Judged};
use crate::args::WarmUpName;
use crate::exit::message_of;

/// What can be seen of the server from outside before a step, or after it. A checkpoint stands at either end:
/// what the server still has to write for a step is the step's, and no other's.
#[derive(Debug, Default)]
pub struct Around {
    /// Where the step begins or ends.
    used: Option<ServerUse>,
    host: CpuTimes,
    /// Where the checkpoint has ended; `None` if there was none.
    settled: Option<ServerUse>,
    storage: Option<StorageFacts>,
    /// Why the last two are not known.
    pub limitation: Option<Limitation>,
}

impl Around {
    /// To be taken last before a step.
    pub async fn before(target: &Target, plan: &StepPlan) -> Self {
        let mut around = Self::default();
        around.settle(target, plan).await;
        around.used = target.server_use();
        around.host = CpuTimes::read(&ProcFs::host());
        around
    }

    /// To be taken first after a step; the checkpoint is still to come.
    pub fn ended(target: &Target) -> Self {
        Self {
            used: target.server_use(),
            host: CpuTimes::read(&ProcFs::host()),
            ..Self::default()
        }
    }

    /// Has the server write a checkpoint.
    pub async fn settle(&mut self, target: &Target, plan: &StepPlan) {
        match target.checkpoint().await {
            Ok(()) => {
                self.settled = target.server_use();
                self.storage = target.storage(&plan.database, &plan.collections).await;
            }
            Err(error) => self.limitation = Some(without_checkpoint(&message_of(&error))),
        }
    }
}

/// A step's record with what does not belong into it.
pub struct SummedUp {
    pub step: BenchStep,
    pub response: Histogram<u64>,
    /// The client, not the server, limited it.
    pub is_client_bound: bool,
    pub limitations: Vec<Limitation>,
}

/// See the module.
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
        // Every record is loaded once: nothing can be left out.
        "load" => WarmUpName::None,
        _ => plan.warm_up,
    };
    let measured = figures::measured(&recorder.seconds, warm_up, is_open);
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
    let invalid = validity::faults(&judged);
    let limitations: Vec<Limitation> = client_bound(plan, chosen, recorder).into_iter().collect();
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
        invalid,
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
        is_client_bound: !limitations.is_empty(),
        limitations,
    })
}

/// Of single requests: those of transactions are among them.
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
    // A workload of transactions alone has no others.
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

/// The server's own figures between the two moments.
pub fn add_around(step: &mut BenchStep, before: &Around, after: &Around) {
    step.storage_before.clone_from(&before.storage);
    step.storage_after.clone_from(&after.storage);
    let between = |moment: fn(&Around) -> Option<&ServerUse>| {
        let (after, before) = (moment(after)?, moment(before)?);
        after.since(before)
    };
    if let Some(used) = between(|around| around.used.as_ref()) {
        step.server_cpu_ns = Some(used.cpu_ns);
        step.server_read_bytes = used.read_bytes;
        let ours_ns = used.cpu_ns.saturating_add(step.client_cpu_ns);
        let taken_ns = after.host.taken_since(&before.host);
        step.others_cpu_ns = taken_ns.map(|ns| ns.saturating_sub(ours_ns));
    }
    let settled = between(|around| around.settled.as_ref());
    step.server_write_bytes = settled.and_then(|used| used.write_bytes);
}

/// `VmHWM` of this process: proc_pid_status(5). 0 where it cannot be read.
fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
