//! YCSB from a thread of its own until it is stopped, and how many operations it did when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;
use seekscope_client::{ClientSpec, Ended, Job, RawTarget, Retries, ScheduleKind, Second, run};
use seekscope_run::latency_histogram;
use seekscope_workload::ownership::DEFAULT_DATABASE;
use seekscope_workload::ycsb::{self, ClientSlice, Edition, YcsbLoad, YcsbRun, YcsbSettings};

const THREADS: usize = 1;
/// The client's name for requests that were under way when the work was stopped.
const GIVEN_UP_AT_THE_END: &str = "Abandoned";
/// Rows of one insert.
const BATCH: &str = "100";

/// What is sent.
#[derive(Debug, Clone)]
pub struct YcsbTask {
    /// YCSB's workload, 'a' to 'f'.
    pub letter: char,
    /// The rows that the server has, or will have after [`Self::fill`]; about 1.1 KiB each.
    pub rows: u64,
    /// Properties that differ from the workload's.
    pub properties: Vec<(&'static str, &'static str)>,
    pub in_flight: usize,
    /// Operations per second; `None`: each virtual user sends when its last operation has ended.
    pub per_s: Option<f64>,
}

/// Operations that ended well in about a second.
#[derive(Debug, Clone, PartialEq)]
pub struct DoneInSecond {
    /// Start, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    pub duration_ns: u64,
    pub operations: u64,
    /// Time from the scheduled start (in a closed loop, from sending) to the reply, ns.
    pub response: Histogram<u64>,
}

/// A load that runs; dropping it stops it.
#[derive(Debug)]
pub struct RunningLoad {
    stop: Arc<AtomicBool>,
    seconds: Arc<Mutex<Vec<DoneInSecond>>>,
    thread: Option<JoinHandle<Result<Ended>>>,
}

impl YcsbTask {
    /// Returns a task on this many rows, with defaults for the rest.
    pub fn rows(rows: u64) -> Self {
        Self {
            letter: 'a',
            rows,
            properties: Vec::new(),
            in_flight: 8,
            per_s: None,
        }
    }

    fn settings(&self) -> Result<YcsbSettings> {
        let mut properties = ycsb::workload(self.letter)?;
        properties.set("recordcount", self.rows.to_string());
        properties.set("operationcount", "0");
        properties.set("batchsize", BATCH);
        for &(name, value) in &self.properties {
            properties.set(name, value);
        }
        Ok(YcsbSettings::new(&properties, Edition::Ycsb, None)?)
    }

    fn job(&self) -> Job {
        Job {
            schedule: match self.per_s {
                Some(per_s) => ScheduleKind::Constant { per_s },
                None => ScheduleKind::Closed,
            },
            in_flight: self.in_flight,
            threads: THREADS,
            transactions: None,
            duration: None,
            timeout: Duration::from_secs(60),
            start_at_ns: None,
            retries: Retries::default(),
            failures_in_a_row_max: Some(100),
        }
    }

    /// Inserts the rows. Blocks.
    pub fn fill(&self, uri: &str) -> Result<()> {
        let load = YcsbLoad::new(&self.settings()?);
        let job = Job {
            schedule: ScheduleKind::Closed,
            ..self.job()
        };
        let never = AtomicBool::new(false);
        let ended = run(&client(uri)?, &load, &job, &never, &mut |_| {})?;
        ensure!(ended.failures.is_empty(), "{:?}", ended.failures);
        Ok(())
    }

    /// Begins, and goes on until [`RunningLoad::stop`].
    pub fn start(&self, uri: &str) -> Result<RunningLoad> {
        let alone = ClientSlice::new(0, 1).context("one client of one")?;
        let workload = YcsbRun::new(self.settings()?, alone)?;
        let (client, job) = (client(uri)?, self.job());
        let stop = Arc::new(AtomicBool::new(false));
        let seconds = Arc::new(Mutex::new(Vec::new()));
        let (stopped, kept) = (stop.clone(), seconds.clone());
        let thread = std::thread::spawn(move || {
            let mut keep = |second: Second| {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(done_in(&second));
            };
            Ok(run(&client, &workload, &job, &stopped, &mut keep)?)
        });
        Ok(RunningLoad {
            stop,
            seconds,
            thread: Some(thread),
        })
    }
}

impl RunningLoad {
    /// Ends it; what it did, in the order of time. An error if anything failed meanwhile, other than what
    /// was given up because it had no answer yet at the end.
    pub fn stop(mut self) -> Result<Vec<DoneInSecond>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("stopped before")?;
        let ended = thread.join().map_err(|_| anyhow!("the load panicked"))??;
        let mut failures = ended.failures;
        failures.retain(|failure| failure.name != GIVEN_UP_AT_THE_END);
        ensure!(failures.is_empty(), "{failures:?}");
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *seconds))
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn client(uri: &str) -> Result<ClientSpec> {
    let target = RawTarget::parse(uri, DEFAULT_DATABASE).map_err(anyhow::Error::msg)?;
    Ok(ClientSpec::Raw(Box::new(target)))
}

fn done_in(second: &Second) -> DoneInSecond {
    let mut response = latency_histogram();
    for operation in &second.operations {
        // Both are made with the same bounds, so that nothing is refused.
        let _ = response.add(operation.response.as_ref().unwrap_or(&operation.service));
    }
    DoneInSecond {
        t_ns: second.t_ns,
        duration_ns: second.duration_ns,
        operations: second.operations.iter().map(|one| one.done).sum(),
        response,
    }
}

/// What was done between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    pub operations_per_s: f64,
    /// 99th percentile of the response time, ns.
    pub p99_ns: u64,
}

/// What was done between two moments, CLOCK_MONOTONIC ns; operations of a second that is partly outside
/// count in proportion. `None` where nothing was counted.
pub fn done_between(seconds: &[DoneInSecond], from_ns: u64, to_ns: u64) -> Option<Done> {
    let (mut operations, mut covered_ns) = (0.0, 0);
    let mut response = latency_histogram();
    for second in seconds {
        let ends_ns = second.t_ns + second.duration_ns;
        let inside_ns = ends_ns.min(to_ns).saturating_sub(second.t_ns.max(from_ns));
        if inside_ns > 0 {
            operations += second.operations as f64 * inside_ns as f64 / second.duration_ns as f64;
            covered_ns += inside_ns;
            let _ = response.add(&second.response);
        }
    }
    (covered_ns > 0).then(|| Done {
        operations_per_s: operations * 1e9 / covered_ns as f64,
        p99_ns: response.value_at_quantile(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_seconds_count_in_proportion() {
        let seconds: Vec<DoneInSecond> = (0..4)
            .map(|at| DoneInSecond {
                t_ns: at * 1_000_000_000,
                duration_ns: 1_000_000_000,
                operations: 100 * (at + 1),
                response: {
                    let mut response = latency_histogram();
                    response.record_n(1000 * (at + 1), 100).unwrap();
                    response
                },
            })
            .collect();
        let done = done_between(&seconds, 500_000_000, 2_000_000_000).unwrap();
        let rate = done.operations_per_s;
        assert!((rate - 250.0 / 1.5).abs() < 1e-9, "{rate}");
        assert_eq!(done.p99_ns / 10, 200, "of the first two seconds");
        assert_eq!(done_between(&seconds, 9_000_000_000, 10_000_000_000), None);
    }
}
