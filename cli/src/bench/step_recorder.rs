//! What a running step writes to the run directory: a row and a distribution for each second and operation, and
//! the client's own state among the counters.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use seekscope_client::{Operation, OperationSecond, Second};
use seekscope_run::directory::CounterWriter;
use seekscope_run::{
    ClockOffset, CounterSample, Interval, IntervalWriter, LatencyLogWriter, LatencySummary,
    RunDirectory, RunError, latency_histogram, response_tag_of, tag_of,
};

/// A second's counts, kept for the figures of the whole step.
#[derive(Debug, Clone)]
pub struct SecondTotals {
    pub t_ns: u64,
    pub duration_ns: u64,
    /// One entry per operation of the workload, in its order.
    pub operations: Vec<OperationTotals>,
    /// Transactions that ended well.
    pub transactions: u64,
    pub backlog: u64,
    pub client_cpu_ns: u64,
}

/// An operation's counts in a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct OperationTotals {
    pub done: u64,
    pub errors: u64,
    pub documents: u64,
    pub bytes: u64,
    /// Median service time, ns; 0 if there were no operations.
    pub service_p50_ns: u64,
}

/// Records the seconds of one step.
pub struct StepRecorder {
    step: String,
    operations: Vec<Operation>,
    run_started: ClockOffset,
    intervals: IntervalWriter,
    latencies: LatencyLogWriter,
    counters: CounterWriter,
    pub latencies_position: u64,
    pub seconds: Vec<SecondTotals>,
    pub lag: Histogram<u64>,
    /// The first write error; nothing is recorded after it.
    pub failure: Option<RunError>,
}

impl StepRecorder {
    pub fn new(
        directory: &RunDirectory,
        run_started: ClockOffset,
        step: &str,
        operations: &[Operation],
    ) -> Result<Self, RunError> {
        let latencies = directory.latency_log_writer()?;
        Ok(Self {
            step: step.into(),
            operations: operations.to_vec(),
            run_started,
            intervals: directory.interval_writer()?,
            latencies_position: latencies.position()?,
            latencies,
            counters: directory.counter_writer()?,
            seconds: Vec::new(),
            lag: latency_histogram(),
            failure: None,
        })
    }

    /// Records a second. Afterwards `failure` tells whether it could be written.
    pub fn second(&mut self, second: &Second) {
        if self.failure.is_some() {
            return;
        }
        self.seconds.push(totals(second));
        // Values above an hour are recorded as an hour.
        for value in second.lag.iter_recorded() {
            let at = value.value_iterated_to();
            self.lag.saturating_record_n(at, value.count_at_value());
        }
        if let Err(error) = self.write(second) {
            self.failure = Some(error);
        }
    }

    fn write(&mut self, second: &Second) -> Result<(), RunError> {
        for operation in &second.operations {
            self.write_operation(second, operation)?;
        }
        self.counters.write(&client_state(second, &self.operations))
    }

    fn write_operation(
        &mut self,
        second: &Second,
        operation: &OperationSecond,
    ) -> Result<(), RunError> {
        let errors = operation.error_count();
        let response = operation.response.as_ref();
        if operation.done + errors == 0 && response.is_none_or(Histogram::is_empty) {
            return Ok(());
        }
        let name = self
            .operations
            .get(usize::from(operation.operation))
            .map_or("?", |o| o.name.as_str())
            .to_string();
        self.intervals.write(&Interval {
            step: self.step.clone(),
            operation: name.clone(),
            t_ns: second.t_ns,
            duration_ns: second.duration_ns,
            count: operation.done + errors,
            errors,
            bytes: operation.bytes,
            latency: LatencySummary::of(&operation.service),
            response: response.map(LatencySummary::of),
        })?;
        self.write_latency(second, &tag_of(&self.step, &name), &operation.service)?;
        match response {
            Some(response) => {
                self.write_latency(second, &response_tag_of(&self.step, &name), response)
            }
            None => Ok(()),
        }
    }

    fn write_latency(
        &mut self,
        second: &Second,
        tag: &str,
        histogram: &Histogram<u64>,
    ) -> Result<(), RunError> {
        if histogram.is_empty() {
            return Ok(());
        }
        let offset_ns = second.t_ns.saturating_sub(self.run_started.monotonic_ns);
        self.latencies.write(
            tag,
            Duration::from_nanos(offset_ns),
            Duration::from_nanos(second.duration_ns),
            histogram,
        )
    }
}

fn totals(second: &Second) -> SecondTotals {
    let operations = second.operations.iter().map(|operation| OperationTotals {
        done: operation.done,
        errors: operation.error_count(),
        documents: operation.documents,
        bytes: operation.bytes,
        service_p50_ns: match operation.service.is_empty() {
            true => 0,
            false => operation.service.value_at_quantile(0.5),
        },
    });
    SecondTotals {
        t_ns: second.t_ns,
        duration_ns: second.duration_ns,
        operations: operations.collect(),
        transactions: second.transactions,
        backlog: second.backlog,
        client_cpu_ns: second.client_cpu_ns,
    }
}

/// Returns the generator's state, and errors by name, which intervals only count.
fn client_state(second: &Second, operations: &[Operation]) -> Vec<CounterSample> {
    let t_ns = second.t_ns.saturating_add(second.duration_ns);
    let sample = |name: String, value: f64| CounterSample {
        t_ns,
        source: "client".into(),
        name,
        value,
    };
    let mut samples = vec![
        sample("operations in flight".into(), second.in_flight),
        sample("backlog".into(), second.backlog as f64),
    ];
    if !second.lag.is_empty() {
        let p99 = second.lag.value_at_quantile(0.99);
        samples.push(sample("lag_p99_ns".into(), p99 as f64));
    }
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for (operation, facts) in second.operations.iter().zip(operations) {
        for (name, count) in &operation.errors {
            *errors
                .entry(format!("errors: {} {name}", facts.name))
                .or_default() += count;
        }
    }
    samples.extend(
        errors
            .into_iter()
            .map(|(name, count)| sample(name, count as f64)),
    );
    samples
}
