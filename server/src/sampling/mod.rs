//! Samples what the server and the host report about themselves, once a second during a measurement.
//!
//! Each source is asked separately: one that fails or hangs leaves out only its own rows.

mod cgroup;
mod group_memory;
mod host;
mod processors;
mod run_delay;
pub(crate) mod server_status;

pub use group_memory::GroupMemory;
pub use host::CpuTimes;
pub use processors::processors_allowed;

use std::convert::Infallible;
use std::time::Duration;

use seekscope_run::examination::COUNTERS_OF_MEMBER;
use seekscope_run::{CounterSample, monotonic_ns};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::process::ProcFs;
use crate::server::Server;
use host::HostCounters;
use server_status::ServerStatus;

const PERIOD: Duration = Duration::from_secs(1);

/// The sources of counters of one server, each asked once a second.
#[derive(Debug)]
pub struct Sampler {
    /// `None` for a server of which only its own figures are taken.
    host: Option<HostCounters>,
    /// `None` for a server that is not MongoDB's kind.
    status: Option<ServerStatus>,
}

impl Sampler {
    /// Creates a sampler for a server, its process if it is on this host, and the disk under its data
    /// (`major:minor`, as in [`seekscope_run::DeviceFacts::device`]) if known.
    pub fn new(server: &Server, proc_fs: &ProcFs, pid: Option<u32>, device: Option<&str>) -> Self {
        Self {
            host: Some(HostCounters::new(proc_fs, pid, device)),
            status: Some(ServerStatus::new(server, server_status::SOURCE.into())),
        }
    }

    /// Creates a sampler for a server of which only the process is examined, as in [`Self::new`].
    pub fn of_host(proc_fs: &ProcFs, pid: Option<u32>, device: Option<&str>) -> Self {
        Self {
            host: Some(HostCounters::new(proc_fs, pid, device)),
            status: None,
        }
    }

    /// Creates a sampler for a server on another host, of which only `serverStatus` is asked.
    pub fn of_status(server: &Server) -> Self {
        Self {
            host: None,
            status: Some(ServerStatus::new(server, server_status::SOURCE.into())),
        }
    }

    /// Creates a sampler for another member of the deployment: `serverStatus` alone, under a source that names
    /// it ([`COUNTERS_OF_MEMBER`]).
    pub fn of_member(name: &str, server: &Server) -> Self {
        let source = format!("{COUNTERS_OF_MEMBER}{name}");
        Self {
            host: None,
            status: Some(ServerStatus::new(server, source)),
        }
    }

    /// Reads everything once. Takes about as long as the server does, at most half a second; an answer that
    /// arrives later is included in a later sample.
    pub async fn sample(&mut self) -> Vec<CounterSample> {
        let mut rows = Rows::now();
        if let Some(host) = &mut self.host {
            host.read(&mut rows);
        }
        if let Some(status) = &mut self.status {
            status.read(&mut rows).await;
        }
        rows.samples
    }

    /// Passes samples on once a second until `each` fails or the future is dropped. A second in which the host
    /// was too busy is left out, not made up for.
    pub async fn every_second<E>(
        &mut self,
        mut each: impl FnMut(&[CounterSample]) -> Result<(), E>,
    ) -> Result<Infallible, E> {
        let mut ticks = interval_at(Instant::now(), PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            each(&self.sample().await)?;
        }
    }
}

/// Rows that were read at the same time.
#[derive(Debug)]
struct Rows {
    t_ns: u64,
    samples: Vec<CounterSample>,
}

impl Rows {
    fn now() -> Self {
        Self {
            t_ns: monotonic_ns(),
            samples: Vec::new(),
        }
    }

    /// Appends a value; one that is not finite is left out.
    fn push(&mut self, source: &str, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.samples.push(CounterSample {
                t_ns: self.t_ns,
                source: source.into(),
                name: name.into(),
                value,
            });
        }
    }

    /// Appends a count, if it is known.
    fn count<E>(&mut self, source: &str, name: &str, value: Result<u64, E>) {
        if let Ok(value) = value {
            self.push(source, name, value as f64);
        }
    }
}
