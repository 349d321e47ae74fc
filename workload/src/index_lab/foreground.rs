//! Other load beside an index build: what its users wait before, during and after.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bson::doc;
use hdrhistogram::Histogram;
use seekscope_client::{
    ClientError, ClientSpec, Ended, Job, Retries, ScheduleKind, Second, Workload, run,
};
use seekscope_run::BenchIndexBuild;

use super::kind::IndexKind;
use super::lab::{BuildProgress, IndexLab};
use super::point_operations::PointOperations;
use crate::WorkloadError;
use crate::sdu::id;

const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// An operation that waits for a build longer than this has failed.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);
/// Failures in a row after which the other load gives up.
const FAILURES_MAX: u64 = 1_000;

/// How the other load is sent.
#[derive(Debug, Clone)]
pub struct Foreground {
    pub client: ClientSpec,
    /// Operations per second, at even distances whatever the server does.
    pub per_s: f64,
    pub in_flight: usize,
    pub threads: usize,
    /// How long it runs before the build begins, and after it has ended.
    pub margin: Duration,
    pub seed: u64,
}

/// What the other load did beside one build.
#[derive(Debug, Clone)]
pub struct ForegroundRun {
    pub ended: Ended,
    pub seconds: Vec<Second>,
    /// CLOCK_MONOTONIC ns.
    pub build_started_ns: u64,
    pub build_ended_ns: u64,
}

impl ForegroundRun {
    /// p99 of response time before, during and after the build, ns; seconds that the begin or the end
    /// of the build lies in count as during. `None` where one of the three saw no operation.
    pub fn p99_ns(&self) -> Option<[u64; 3]> {
        let mut stretches = [const { None::<Histogram<u64>> }; 3];
        for second in &self.seconds {
            let ended_ns = second.t_ns.saturating_add(second.duration_ns);
            let stretch = if ended_ns <= self.build_started_ns {
                0
            } else if second.t_ns < self.build_ended_ns {
                1
            } else {
                2
            };
            for operation in &second.operations {
                let times = operation.response.as_ref().unwrap_or(&operation.service);
                match &mut stretches[stretch] {
                    // Both have the engine's bounds.
                    Some(sum) => sum.add(times).ok()?,
                    empty => *empty = Some(times.clone()),
                }
            }
        }
        let p99 = |times: &Option<Histogram<u64>>| {
            let times = times.as_ref().filter(|times| !times.is_empty())?;
            Some(times.value_at_quantile(0.99))
        };
        Some([
            p99(&stretches[0])?,
            p99(&stretches[1])?,
            p99(&stretches[2])?,
        ])
    }
}

/// How the other load ended, and its seconds.
type Sent = (Ended, Vec<Second>);

/// The engine on a thread; dropping it stops and joins it.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Sent, ClientError>>>,
}

impl Running {
    fn start(foreground: &Foreground, workload: PointOperations) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (client, job, flag) = (
            foreground.client.clone(),
            job(foreground),
            Arc::clone(&stop),
        );
        let thread = thread::spawn(move || {
            let mut seconds = Vec::new();
            let workload: &dyn Workload = &workload;
            let ended = run(&client, workload, &job, &flag, &mut |second| {
                seconds.push(second)
            })?;
            Ok((ended, seconds))
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Waits, but not for longer than the engine runs.
    async fn wait(&self, time: Duration) {
        let start = std::time::Instant::now();
        while start.elapsed() < time && self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            tokio::time::sleep(LOOK_INTERVAL.min(time)).await;
        }
    }

    async fn end(mut self) -> Result<Sent, WorkloadError> {
        self.stop.store(true, Ordering::Relaxed);
        while self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(outcome)) => Ok(outcome?),
            _ => Err(WorkloadError::ForegroundLost),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has told so already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn job(foreground: &Foreground) -> Job {
    Job {
        schedule: ScheduleKind::Constant {
            per_s: foreground.per_s,
        },
        in_flight: foreground.in_flight,
        threads: foreground.threads,
        transactions: None,
        duration: None,
        timeout: OPERATION_TIMEOUT,
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: Some(FAILURES_MAX),
    }
}

impl IndexLab {
    /// As [`IndexLab::build`], beside other load. The collection then holds what it held before, but
    /// for changed numbers.
    pub async fn build_under_load(
        &self,
        kind: &IndexKind,
        repetition: u32,
        foreground: &Foreground,
        progress: &(dyn Fn(BuildProgress) + Send + Sync),
    ) -> Result<(BenchIndexBuild, ForegroundRun), WorkloadError> {
        let collection = self.namespace.collection();
        let workload = PointOperations::new(
            collection,
            self.documents.clone(),
            self.count,
            foreground.seed,
        );
        let running = Running::start(foreground, workload);
        running.wait(foreground.margin).await;
        let built = self.create(kind, progress).await?;
        running.wait(foreground.margin).await;
        let (ended, seconds) = running.end().await?;
        let run = ForegroundRun {
            ended,
            seconds,
            build_started_ns: built.started_ns,
            build_ended_ns: built.ended_ns,
        };
        self.remove_inserted().await?;
        let mut result = self.conclude(kind, repetition, built).await?;
        result.foreground_p99_ns = run.p99_ns();
        Ok((result, run))
    }

    /// Documents that the other load inserted and did not delete.
    async fn remove_inserted(&self) -> Result<(), WorkloadError> {
        let (database, collection) = (self.namespace.database(), self.namespace.collection());
        let all = doc! { "q": { "_id": { "$gte": id(self.count) } }, "limit": 0 };
        let command = doc! { "delete": collection, "deletes": [all] };
        self.server.command(database, command).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use seekscope_client::{EndReason, OperationSecond};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn histogram(ns: &[u64]) -> Histogram<u64> {
        let mut times = Histogram::new(3).unwrap();
        ns.iter().for_each(|ns| times.record(*ns).unwrap());
        times
    }

    fn second(t_ns: u64, response_ns: u64) -> Second {
        let operation = OperationSecond {
            operation: 0,
            done: 1,
            errors: BTreeMap::new(),
            documents: 1,
            bytes: 1,
            service: histogram(&[1]),
            response: Some(histogram(&[response_ns])),
        };
        Second {
            t_ns,
            duration_ns: SECOND_NS,
            operations: vec![operation],
            in_flight: 1.0,
            backlog: 0,
            lag: histogram(&[]),
            client_cpu_ns: 0,
        }
    }

    fn run(seconds: Vec<Second>) -> ForegroundRun {
        ForegroundRun {
            ended: Ended {
                started_ns: 0,
                ended_ns: 0,
                reason: EndReason::Stopped,
                transactions: 0,
                failures: Vec::new(),
                in_doubt: 0,
                retried: 0,
                backlog: 0,
            },
            seconds,
            build_started_ns: 5 * SECOND_NS / 2,
            build_ended_ns: 9 * SECOND_NS / 2,
        }
    }

    #[test]
    fn seconds_are_before_during_or_after_the_build() {
        let seconds = (0..8)
            .map(|s| second(s * SECOND_NS, 1000 * (s + 1)))
            .collect();
        let [before, during, after] = run(seconds).p99_ns().unwrap();
        assert!(before.abs_diff(2000) < 5 && during.abs_diff(5000) < 5 && after.abs_diff(8000) < 8);
    }

    #[test]
    fn without_a_before_or_after_there_is_nothing_to_compare() {
        let seconds = (2..5).map(|s| second(s * SECOND_NS, 1000)).collect();
        assert_eq!(run(seconds).p99_ns(), None);
        assert_eq!(run(Vec::new()).p99_ns(), None);
    }
}
