//! Computes the present state of server, process and disk from the last two samples of their counters.

use std::collections::HashMap;

use schemars::JsonSchema;
use seekscope_doctor::evidence::{CHECKPOINT_LAST_MS, CHECKPOINT_STATE, Counters};
use seekscope_run::CounterSample;
use serde::Serialize;

/// Kinds of operations, as `serverStatus.opcounters` names them.
const OPERATIONS: [&str; 6] = ["query", "insert", "update", "delete", "getmore", "command"];
const CACHE: &str = "wiredTiger.cache.";

/// The last two samples of each source. Sources answer at different times, and a server under load sometimes
/// not at all: the others are then still updated.
#[derive(Debug, Clone, Default)]
pub struct VitalsWindow {
    sources: HashMap<String, [Vec<CounterSample>; 2]>,
    /// Time when the running checkpoint was first seen, CLOCK_MONOTONIC ns.
    checkpoint_since_ns: Option<u64>,
}

/// The state. Rates are means between the last two samples; unknown values are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Vitals {
    pub operations: Operations,
    pub disk: DiskVitals,
    pub cache: CacheVitals,
    pub checkpoint: CheckpointVitals,
    pub process: ProcessVitals,
    /// Seekscope's own use: mean number of processors, and memory.
    pub own_cpus: Option<f64>,
    pub own_memory_bytes: Option<f64>,
    /// Share of the time (0 to 1) in which some task of the host waited for I/O.
    pub io_pressure: Option<f64>,
}

/// The clients' load.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Operations {
    /// Time since the server's last answer, s; `None` if it was never asked or never answered.
    pub answered_s_ago: Option<f64>,
    /// Kind and rate per second.
    pub per_s: Vec<(&'static str, f64)>,
    /// Mean time that the server itself took for reads, ms.
    pub read_ms: Option<f64>,
    pub write_ms: Option<f64>,
    pub command_ms: Option<f64>,
    pub queued: Option<f64>,
    pub active: Option<f64>,
}

/// The disk under the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DiskVitals {
    pub reads_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    /// Mean time of a read, queue included, ms.
    pub read_ms: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub write_ms: Option<f64>,
    /// Share of the time (0 to 1) with at least one request in flight. For a disk that serves many at a time
    /// it does not say how much more it could do.
    pub busy_share: Option<f64>,
    /// Mean number of requests in flight.
    pub queue_depth: Option<f64>,
}

/// WiredTiger's cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CacheVitals {
    pub bytes_max: Option<f64>,
    /// Used share, 0 to 1.
    pub used_share: Option<f64>,
    /// Dirty share, 0 to 1.
    pub dirty_share: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub written_bytes_per_s: Option<f64>,
    /// Share (0 to 1) of the requested pages that were not in this cache.
    pub miss_share: Option<f64>,
}

/// WiredTiger's checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CheckpointVitals {
    pub running: Option<bool>,
    /// Time for which it has been seen running, s.
    pub running_s: Option<f64>,
    /// Duration of the last one.
    pub last_s: Option<f64>,
}

/// The server's process, by the kernel's counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ProcessVitals {
    /// Mean number of processors in use.
    pub cpus: Option<f64>,
    pub memory_bytes: Option<f64>,
    /// Bytes that it made the block layer read, that is, from the disk.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes that it made the block layer write, that is, to the disk.
    pub write_bytes_per_s: Option<f64>,
    /// Its read calls, those on sockets included.
    pub read_calls_per_s: Option<f64>,
    pub write_calls_per_s: Option<f64>,
}

impl Operations {
    /// Returns operations of all kinds, per second.
    pub fn total_per_s(&self) -> Option<f64> {
        (!self.per_s.is_empty()).then(|| self.per_s.iter().map(|(_, rate)| rate).sum())
    }
}

impl VitalsWindow {
    /// Adds the samples of one moment; each source's second last sample is dropped.
    pub fn push(&mut self, samples: Vec<CounterSample>) {
        let mut by_source: HashMap<String, Vec<CounterSample>> = HashMap::new();
        for sample in samples {
            let rows = by_source.entry(sample.source.clone()).or_default();
            rows.push(sample);
        }
        for (source, rows) in by_source {
            let [earlier, last] = self.sources.entry(source).or_default();
            *earlier = std::mem::replace(last, rows);
        }
        let last = self.sources.get("serverStatus").map(|[_, last]| last);
        let running = last
            .into_iter()
            .flatten()
            .find(|row| CHECKPOINT_STATE.contains(&row.name.as_str()) && row.value > 0.0);
        self.checkpoint_since_ns = match (running, self.checkpoint_since_ns) {
            (Some(row), None) => Some(row.t_ns),
            (Some(_), since) => since,
            (None, _) => None,
        };
    }

    /// Returns the state at `now_ns` (CLOCK_MONOTONIC).
    pub fn vitals(&self, now_ns: u64) -> Vitals {
        let rows = self.sources.values().flatten().flatten();
        let counters = Now(Counters::new(rows.cloned()));
        let own = |name| counters.last("client", name);
        let cpus = |source| Some(counters.rate(source, "cpu_ns")? / 1e9);
        Vitals {
            operations: self.operations(&counters, now_ns),
            disk: disk(&counters),
            cache: cache(&counters),
            checkpoint: self.checkpoint(&counters, now_ns),
            process: ProcessVitals {
                cpus: cpus("process"),
                memory_bytes: counters.last("process", "rss_bytes"),
                read_bytes_per_s: counters.rate("process", "read_bytes"),
                write_bytes_per_s: counters.rate("process", "write_bytes"),
                read_calls_per_s: counters.rate("process", "read_calls"),
                write_calls_per_s: counters.rate("process", "write_calls"),
            },
            own_cpus: cpus("client"),
            own_memory_bytes: own("rss_bytes"),
            io_pressure: counters.rate("pressure", "io.some_us").map(|us| us / 1e6),
        }
    }

    fn operations(&self, counters: &Now, now_ns: u64) -> Operations {
        let answered = self.sources.get("serverStatus");
        let answered_ns = answered
            .and_then(|[_, last]| last.first())
            .map(|row| row.t_ns);
        let kind = |kind: &'static str| {
            let rate = counters.rate("serverStatus", &format!("opcounters.{kind}"))?;
            Some((kind, rate))
        };
        // Counted in µs.
        let mean_ms = |of: &str| {
            let name = |what| format!("opLatencies.{of}.{what}");
            let us = counters.per("serverStatus", &name("latency"), &name("ops"))?;
            Some(us / 1e3)
        };
        let gauge = |name| counters.last("serverStatus", name);
        Operations {
            answered_s_ago: answered_ns.map(|ns| now_ns.saturating_sub(ns) as f64 / 1e9),
            per_s: OPERATIONS.into_iter().filter_map(kind).collect(),
            read_ms: mean_ms("reads"),
            write_ms: mean_ms("writes"),
            command_ms: mean_ms("commands"),
            queued: gauge("globalLock.currentQueue.total"),
            active: gauge("globalLock.activeClients.total"),
        }
    }

    fn checkpoint(&self, counters: &Now, now_ns: u64) -> CheckpointVitals {
        let known = |names: &[&str]| {
            let mut names = names.iter();
            names.find_map(|name| counters.last("serverStatus", name))
        };
        let since = self.checkpoint_since_ns;
        CheckpointVitals {
            running: known(&CHECKPOINT_STATE).map(|_| since.is_some()),
            running_s: since.map(|ns| now_ns.saturating_sub(ns) as f64 / 1e9),
            last_s: known(&CHECKPOINT_LAST_MS).map(|ms| ms / 1e3),
        }
    }
}

fn disk(counters: &Now) -> DiskVitals {
    let rate = |name| counters.rate("diskstats", name);
    DiskVitals {
        reads_per_s: rate("reads"),
        read_bytes_per_s: rate("read_bytes"),
        read_ms: counters.per("diskstats", "read_ms", "reads"),
        writes_per_s: rate("writes"),
        write_bytes_per_s: rate("write_bytes"),
        write_ms: counters.per("diskstats", "write_ms", "writes"),
        busy_share: rate("busy_ms").map(|ms| (ms / 1e3).min(1.0)),
        queue_depth: rate("queue_ms").map(|ms| ms / 1e3),
    }
}

fn cache(counters: &Now) -> CacheVitals {
    let name = |what: &str| format!("{CACHE}{what}");
    let gauge = |what| counters.last("serverStatus", &name(what));
    let rate = |what| counters.rate("serverStatus", &name(what));
    let bytes_max = gauge("maximum bytes configured").filter(|bytes| *bytes > 0.0);
    let share = |bytes: Option<f64>| Some(bytes? / bytes_max?);
    let asked = name("pages requested from the cache");
    CacheVitals {
        bytes_max,
        used_share: share(gauge("bytes currently in the cache")),
        dirty_share: share(gauge("tracked dirty bytes in the cache")),
        read_bytes_per_s: rate("bytes read into cache"),
        written_bytes_per_s: rate("bytes written from cache"),
        miss_share: counters.per("serverStatus", &name("pages read into cache"), &asked),
    }
}

/// Two samples of each source, for queries.
struct Now(Counters);

impl Now {
    fn last(&self, source: &str, name: &str) -> Option<f64> {
        self.0.get(source, name)?.last()
    }

    fn rate(&self, source: &str, name: &str) -> Option<f64> {
        self.0.get(source, name)?.rate_per_s()
    }

    /// Returns the rise of one counter divided by that of another; `None` if the latter did not rise.
    fn per(&self, source: &str, what: &str, of: &str) -> Option<f64> {
        let rise = |name| self.0.get(source, name)?.increase();
        let of = rise(of).filter(|of| *of > 0.0)?;
        Some(rise(what)? / of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(t_s: u64, source: &str, values: &[(&str, f64)]) -> Vec<CounterSample> {
        let row = |&(name, value): &(&str, f64)| CounterSample {
            t_ns: t_s * 1_000_000_000,
            source: source.into(),
            name: name.into(),
            value,
        };
        values.iter().map(row).collect()
    }

    #[test]
    fn rates_are_those_between_the_last_two_answers() {
        let mut window = VitalsWindow::default();
        for (t_s, queries, latency_us) in [(1, 0.0, 0.0), (2, 50.0, 1e6), (4, 250.0, 1.1e6)] {
            window.push(rows(
                t_s,
                "serverStatus",
                &[
                    ("opcounters.query", queries),
                    ("opLatencies.reads.latency", latency_us),
                    ("opLatencies.reads.ops", queries),
                ],
            ));
        }
        // The server does not answer; the disk does.
        let disk = |busy_ms| [("busy_ms", busy_ms), ("reads", 7.0), ("read_ms", 3.0)];
        window.push(rows(5, "diskstats", &disk(100.0)));
        window.push(rows(6, "diskstats", &disk(350.0)));
        let vitals = window.vitals(7_000_000_000);
        assert_eq!(vitals.operations.per_s, [("query", 100.0)]);
        assert_eq!(vitals.operations.read_ms, Some(0.5));
        assert_eq!(vitals.operations.answered_s_ago, Some(3.0));
        assert_eq!(vitals.disk.busy_share, Some(0.25));
        assert_eq!(vitals.disk.read_ms, None, "no request, no time of one");
        assert_eq!(vitals.operations.write_ms, None);
    }

    #[test]
    fn a_checkpoint_is_timed_from_when_it_was_first_seen() {
        let mut window = VitalsWindow::default();
        let mut at = |t_s, running| {
            let [name, ..] = CHECKPOINT_STATE;
            window.push(rows(t_s, "serverStatus", &[(name, running)]));
            window.vitals((t_s + 1) * 1_000_000_000).checkpoint
        };
        assert_eq!(at(1, 0.0).running, Some(false));
        assert_eq!(at(2, 1.0).running_s, Some(1.0));
        assert_eq!(at(4, 1.0).running_s, Some(3.0));
        let over = at(5, 0.0);
        assert_eq!((over.running, over.running_s), (Some(false), None));
        assert_eq!(VitalsWindow::default().vitals(9), Vitals::default());
    }
}
