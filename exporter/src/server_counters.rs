//! Which counters of a server, its process, its control group and its disk become which metric.

use std::collections::HashMap;

use seekscope_run::CounterSample;

use crate::metrics as m;
use crate::metrics::{Metric, MetricKind};
use crate::page::Page;
use crate::rising::Rising;

const MS: f64 = 1e-3;
const US: f64 = 1e-6;
const NS: f64 = 1e-9;

/// One series and where its figure comes from.
struct Origin {
    metric: &'static Metric,
    label: Option<(&'static str, &'static str)>,
    /// The same as [`CounterSample::source`].
    source: &'static str,
    /// The names that releases of the server have had for it; the first that there is counts.
    names: &'static [&'static str],
    /// What one of the source's units is in the metric's.
    unit: f64,
    /// A state of several, of which all but 0 count as 1.
    is_state: bool,
}

const fn of(
    metric: &'static Metric,
    source: &'static str,
    names: &'static [&'static str],
    unit: f64,
) -> Origin {
    Origin {
        metric,
        label: None,
        source,
        names,
        unit,
        is_state: false,
    }
}

impl Origin {
    const fn state(self) -> Self {
        Self {
            is_state: true,
            ..self
        }
    }

    const fn with(self, name: &'static str, value: &'static str) -> Self {
        Self {
            label: Some((name, value)),
            ..self
        }
    }
}

/// The figures of WiredTiger in `serverStatus`.
macro_rules! wired_tiger {
    ($metric:expr, $unit:expr, $($name:literal),+) => {
        of($metric, STATUS, &[$(concat!("wiredTiger.", $name)),+], $unit)
    };
}

const STATUS: &str = "serverStatus";
const DISK: &str = "diskstats";
const PROCESS: &str = "process";
const GROUP: &str = "cgroup";

static ORIGINS: &[Origin] = &[
    of(&m::OPERATIONS, STATUS, &["opcounters.query"], 1.0).with("type", "query"),
    of(&m::OPERATIONS, STATUS, &["opcounters.insert"], 1.0).with("type", "insert"),
    of(&m::OPERATIONS, STATUS, &["opcounters.update"], 1.0).with("type", "update"),
    of(&m::OPERATIONS, STATUS, &["opcounters.delete"], 1.0).with("type", "delete"),
    of(&m::OPERATIONS, STATUS, &["opcounters.getmore"], 1.0).with("type", "getmore"),
    of(&m::OPERATIONS, STATUS, &["opcounters.command"], 1.0).with("type", "command"),
    of(
        &m::TIMED_OPERATIONS,
        STATUS,
        &["opLatencies.reads.ops"],
        1.0,
    )
    .with("kind", "reads"),
    of(
        &m::TIMED_OPERATIONS,
        STATUS,
        &["opLatencies.writes.ops"],
        1.0,
    )
    .with("kind", "writes"),
    of(
        &m::TIMED_OPERATIONS,
        STATUS,
        &["opLatencies.commands.ops"],
        1.0,
    )
    .with("kind", "commands"),
    of(
        &m::OPERATION_SECONDS,
        STATUS,
        &["opLatencies.reads.latency"],
        US,
    )
    .with("kind", "reads"),
    of(
        &m::OPERATION_SECONDS,
        STATUS,
        &["opLatencies.writes.latency"],
        US,
    )
    .with("kind", "writes"),
    of(
        &m::OPERATION_SECONDS,
        STATUS,
        &["opLatencies.commands.latency"],
        US,
    )
    .with("kind", "commands"),
    of(
        &m::QUEUED_OPERATIONS,
        STATUS,
        &["globalLock.currentQueue.readers"],
        1.0,
    )
    .with("kind", "readers"),
    of(
        &m::QUEUED_OPERATIONS,
        STATUS,
        &["globalLock.currentQueue.writers"],
        1.0,
    )
    .with("kind", "writers"),
    of(
        &m::ACTIVE_CLIENTS,
        STATUS,
        &["globalLock.activeClients.readers"],
        1.0,
    )
    .with("kind", "readers"),
    of(
        &m::ACTIVE_CLIENTS,
        STATUS,
        &["globalLock.activeClients.writers"],
        1.0,
    )
    .with("kind", "writers"),
    of(&m::TICKETS_USED, STATUS, READ_TICKETS_USED, 1.0).with("kind", "read"),
    of(&m::TICKETS_USED, STATUS, WRITE_TICKETS_USED, 1.0).with("kind", "write"),
    of(&m::TICKETS, STATUS, READ_TICKETS, 1.0).with("kind", "read"),
    of(&m::TICKETS, STATUS, WRITE_TICKETS, 1.0).with("kind", "write"),
    of(&m::CONNECTIONS, STATUS, &["connections.current"], 1.0),
    wired_tiger!(&m::CACHE_BYTES, 1.0, "cache.bytes currently in the cache"),
    wired_tiger!(
        &m::CACHE_DIRTY_BYTES,
        1.0,
        "cache.tracked dirty bytes in the cache"
    ),
    wired_tiger!(&m::CACHE_MAX_BYTES, 1.0, "cache.maximum bytes configured"),
    wired_tiger!(&m::CACHE_READ_BYTES, 1.0, "cache.bytes read into cache"),
    wired_tiger!(
        &m::CACHE_WRITTEN_BYTES,
        1.0,
        "cache.bytes written from cache"
    ),
    wired_tiger!(
        &m::CACHE_PAGES_REQUESTED,
        1.0,
        "cache.pages requested from the cache"
    ),
    wired_tiger!(&m::CACHE_PAGES_READ, 1.0, "cache.pages read into cache"),
    wired_tiger!(
        &m::APPLICATION_EVICTIONS,
        1.0,
        "cache.pages evicted by application threads",
        "cache.page evict attempts by application threads"
    ),
    wired_tiger!(
        &m::APPLICATION_EVICTION_SECONDS,
        US,
        "cache.application thread time evicting (usecs)",
        "thread-yield.application thread time evicting (usecs)"
    ),
    wired_tiger!(
        &m::CHECKPOINTS,
        1.0,
        "transaction.transaction checkpoints",
        "checkpoint.total succeed number of checkpoints",
        "checkpoint.number of checkpoints started by api",
        "checkpoint.generation"
    ),
    wired_tiger!(
        &m::CHECKPOINT_SECONDS,
        MS,
        "transaction.transaction checkpoint total time (msecs)",
        "checkpoint.total time (msecs)"
    ),
    wired_tiger!(
        &m::CHECKPOINT_RUNNING,
        1.0,
        "transaction.transaction checkpoint currently running",
        "checkpoint.progress state"
    )
    .state(),
    wired_tiger!(
        &m::CHECKPOINT_LAST,
        MS,
        "transaction.transaction checkpoint most recent time (msecs)",
        "checkpoint.most recent time (msecs)"
    ),
    wired_tiger!(&m::LOG_SYNCS, 1.0, "log.log sync operations"),
    wired_tiger!(
        &m::LOG_SYNC_SECONDS,
        US,
        "log.log sync time duration (usecs)"
    ),
    of(&m::REPLICATION_LAG, REPLICATION, &[LAG_S], 1.0),
    of(&m::DEVICE_REQUESTS, DISK, &["reads"], 1.0).with("op", "read"),
    of(&m::DEVICE_REQUESTS, DISK, &["writes"], 1.0).with("op", "write"),
    of(&m::DEVICE_REQUESTS, DISK, &["flushes"], 1.0).with("op", "flush"),
    of(&m::DEVICE_BYTES, DISK, &["read_bytes"], 1.0).with("op", "read"),
    of(&m::DEVICE_BYTES, DISK, &["write_bytes"], 1.0).with("op", "write"),
    of(&m::DEVICE_REQUEST_SECONDS, DISK, &["read_ms"], MS).with("op", "read"),
    of(&m::DEVICE_REQUEST_SECONDS, DISK, &["write_ms"], MS).with("op", "write"),
    of(&m::DEVICE_REQUEST_SECONDS, DISK, &["flush_ms"], MS).with("op", "flush"),
    of(&m::DEVICE_BUSY_SECONDS, DISK, &["busy_ms"], MS),
    of(&m::DEVICE_QUEUE_SECONDS, DISK, &["queue_ms"], MS),
    of(&m::PROCESS_CPU_SECONDS, PROCESS, &["cpu_ns"], NS),
    of(&m::PROCESS_MEMORY, PROCESS, &["rss_bytes"], 1.0),
    of(&m::PROCESS_DEVICE_BYTES, PROCESS, &["read_bytes"], 1.0).with("op", "read"),
    of(&m::PROCESS_DEVICE_BYTES, PROCESS, &["write_bytes"], 1.0).with("op", "write"),
    of(&m::CGROUP_CPU_SECONDS, GROUP, &["cpu_ns"], NS),
    of(
        &m::CGROUP_CPU_THROTTLED_SECONDS,
        GROUP,
        &["cpu_throttled_ns"],
        NS,
    ),
    of(&m::CGROUP_MEMORY, GROUP, &["memory_bytes"], 1.0),
    of(&m::CGROUP_MEMORY_LIMIT, GROUP, &["memory_limit_bytes"], 1.0),
    of(&m::CGROUP_REFAULTS, GROUP, &["memory_refault_bytes"], 1.0),
];

const READ_TICKETS_USED: &[&str] = &[
    "wiredTiger.concurrentTransactions.read.out",
    "queues.execution.read.out",
];
const WRITE_TICKETS_USED: &[&str] = &[
    "wiredTiger.concurrentTransactions.write.out",
    "queues.execution.write.out",
];
const READ_TICKETS: &[&str] = &[
    "wiredTiger.concurrentTransactions.read.totalTickets",
    "queues.execution.read.totalTickets",
];
const WRITE_TICKETS: &[&str] = &[
    "wiredTiger.concurrentTransactions.write.totalTickets",
    "queues.execution.write.totalTickets",
];

/// The source and name under which a secondary's lag is passed in, seconds.
pub const REPLICATION: &str = "replication";
pub const LAG_S: &str = "lag_s";

/// The pressure on the whole host: resource, tasks, and the name of the sample (µs).
const PRESSURES: [(&str, &str, &str); 6] = [
    ("cpu", "some", "cpu.some_us"),
    ("cpu", "full", "cpu.full_us"),
    ("io", "some", "io.some_us"),
    ("io", "full", "io.full_us"),
    ("memory", "some", "memory.some_us"),
    ("memory", "full", "memory.full_us"),
];

#[derive(Debug, Clone, Copy)]
enum Figure {
    Counter(Rising),
    Gauge(f64),
}

/// The figures of one server.
#[derive(Debug, Clone, Default)]
pub struct ServerCounters {
    /// The figures, by the index of their origin.
    figures: HashMap<usize, Figure>,
}

impl ServerCounters {
    /// Takes a reading. A gauge that is not in it is unknown from now on; a counter stays as it was.
    pub fn read(&mut self, samples: &[CounterSample]) {
        let by_name: HashMap<(&str, &str), f64> = samples
            .iter()
            .map(|sample| ((sample.source.as_str(), sample.name.as_str()), sample.value))
            .collect();
        for (i, origin) in ORIGINS.iter().enumerate() {
            let mut names = origin.names.iter();
            let value = names.find_map(|name| by_name.get(&(origin.source, *name)));
            let value = value.map(|value| match origin.is_state {
                true => f64::from(u8::from(*value != 0.0)),
                false => value * origin.unit,
            });
            match (origin.metric.kind, value) {
                (MetricKind::Counter, Some(value)) => {
                    let figure = self.figures.entry(i);
                    let figure = figure.or_insert(Figure::Counter(Rising::default()));
                    if let Figure::Counter(counter) = figure {
                        counter.read(value);
                    }
                }
                (MetricKind::Counter, None) => {}
                (_, Some(value)) => {
                    self.figures.insert(i, Figure::Gauge(value));
                }
                (_, None) => {
                    self.figures.remove(&i);
                }
            }
        }
    }

    /// Forgets the gauges, which nobody knows while the server is away.
    pub fn lose(&mut self) {
        self.read(&[]);
    }

    pub(crate) fn add_to(&self, page: &mut Page, server: &str, device: Option<&str>) {
        for (i, origin) in ORIGINS.iter().enumerate() {
            let value = match self.figures.get(&i) {
                Some(Figure::Counter(counter)) => counter.total(),
                Some(Figure::Gauge(value)) => *value,
                None => continue,
            };
            let mut labels = vec![("server", server.to_string())];
            if origin.source == DISK {
                labels.push(("device", device.unwrap_or_default().into()));
            }
            if let Some((name, label)) = origin.label {
                labels.push((name, label.into()));
            }
            page.add(origin.metric, labels, value);
        }
    }
}

/// The pressure on the host, which all servers share.
#[derive(Debug, Clone, Default)]
pub struct Pressure([Rising; PRESSURES.len()]);

impl Pressure {
    pub fn read(&mut self, samples: &[CounterSample]) {
        let of_host = samples.iter().filter(|sample| sample.source == "pressure");
        for sample in of_host {
            let known = PRESSURES
                .iter()
                .position(|(_, _, name)| *name == sample.name);
            if let Some(counter) = known.and_then(|i| self.0.get_mut(i)) {
                counter.read_of_host(sample.value * US);
            }
        }
    }

    pub(crate) fn add_to(&self, page: &mut Page) {
        for ((resource, tasks, _), counter) in PRESSURES.iter().zip(&self.0) {
            if counter.was_read() {
                let labels = vec![
                    ("resource", (*resource).to_string()),
                    ("tasks", (*tasks).to_string()),
                ];
                page.add(&m::PRESSURE, labels, counter.total());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::TextFormat;

    fn samples(rows: &[(&str, &str, f64)]) -> Vec<CounterSample> {
        let row = |(source, name, value): &(&str, &str, f64)| CounterSample {
            t_ns: 1,
            source: (*source).into(),
            name: (*name).into(),
            value: *value,
        };
        rows.iter().map(row).collect()
    }

    fn text(counters: &ServerCounters) -> String {
        let mut page = Page::default();
        counters.add_to(&mut page, "a:1", Some("vda"));
        page.text(TextFormat::Prometheus)
    }

    #[test]
    fn counters_begin_at_zero_and_gauges_are_as_told() {
        let mut counters = ServerCounters::default();
        for (queries, busy_ms, dirty) in [(100.0, 5_000.0, 7.0), (130.0, 5_500.0, 9.0)] {
            counters.read(&samples(&[
                ("serverStatus", "opcounters.query", queries),
                ("diskstats", "busy_ms", busy_ms),
                (
                    "serverStatus",
                    "wiredTiger.cache.tracked dirty bytes in the cache",
                    dirty,
                ),
                ("serverStatus", "unknown", 1.0),
            ]));
        }
        let shown = text(&counters);
        let has = |line: &str| assert!(shown.contains(line), "{line} is not in {shown}");
        has("seekscope_mongodb_operations_total{server=\"a:1\",type=\"query\"} 30\n");
        has("seekscope_device_busy_seconds_total{server=\"a:1\",device=\"vda\"} 0.5\n");
        has("seekscope_wiredtiger_cache_dirty_bytes{server=\"a:1\"} 9\n");
        counters.lose();
        let shown = text(&counters);
        assert!(!shown.contains("dirty_bytes"), "{shown}");
        assert!(shown.contains("type=\"query\"} 30"), "{shown}");
    }

    #[test]
    fn names_of_all_releases_are_known() {
        for (name, expected) in [
            (
                "wiredTiger.transaction.transaction checkpoint total time (msecs)",
                "0",
            ),
            ("wiredTiger.checkpoint.total time (msecs)", "0"),
        ] {
            let mut counters = ServerCounters::default();
            counters.read(&samples(&[("serverStatus", name, 1500.0)]));
            let line = format!(
                "seekscope_wiredtiger_checkpoint_seconds_total{{server=\"a:1\"}} {expected}\n"
            );
            assert!(text(&counters).contains(&line));
        }
    }

    /// From 7.1 on, the server reports which step of a checkpoint it is at.
    #[test]
    fn a_checkpoint_runs_at_any_step() {
        for (name, value, expected) in [
            (
                "wiredTiger.transaction.transaction checkpoint currently running",
                1.0,
                "1",
            ),
            ("wiredTiger.checkpoint.progress state", 12.0, "1"),
            ("wiredTiger.checkpoint.progress state", 0.0, "0"),
        ] {
            let mut counters = ServerCounters::default();
            counters.read(&samples(&[("serverStatus", name, value)]));
            let line =
                format!("seekscope_wiredtiger_checkpoint_running{{server=\"a:1\"}} {expected}\n");
            assert!(text(&counters).contains(&line), "{name} {value}");
        }
    }

    #[test]
    fn every_series_has_labels_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for origin in ORIGINS {
            assert!(
                seen.insert((origin.metric.name, origin.label)),
                "{:?}",
                origin.metric
            );
        }
    }
}
