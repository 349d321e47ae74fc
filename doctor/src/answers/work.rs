//! Measures how much the server was asked to do, the basis for comparing two runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::evidence::cpu;

const WRITES: [&str; 3] = ["insert", "update", "delete"];
const READS: [&str; 2] = ["query", "getmore"];
/// Commands that read: `opcounters` counts them together with all other commands, those of monitoring among them.
const READING_COMMANDS: [&str; 4] = ["aggregate", "count", "distinct", "mapReduce"];
pub(crate) const PAGES_READ: &str = "wiredTiger.cache.pages read into cache";
pub(crate) const DOCUMENTS_EXAMINED: &str = "metrics.queryExecutor.scannedObjects";

/// Work per second of the observation; null where nothing reports it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkAnswer {
    /// Client operations: inserts, queries, updates, deletes, getmores, aggregations, counts and distincts (serverStatus).
    pub operations_per_s: Option<f64>,
    /// Client operations that write.
    pub writes_per_s: Option<f64>,
    /// Pages that were not in the server's cache (serverStatus).
    pub pages_read_per_s: Option<f64>,
    /// Read calls of the server (trace).
    pub read_calls_per_s: Option<f64>,
    /// Documents that queries and commands examined (serverStatus).
    pub documents_examined_per_s: Option<f64>,
    /// Share (0..=1) of the observation in which some task of the server's host waited for a CPU (pressure).
    pub cpu_pressure_share: Option<f64>,
}

pub(super) fn work(evidence: &Evidence<'_>) -> Option<WorkAnswer> {
    let sum = |names: &[String]| {
        let rates = names
            .iter()
            .filter_map(|name| evidence.status_rate(&[name]));
        rates.reduce(|a, b| a + b)
    };
    let counted = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("opcounters.{name}"))
            .collect()
    };
    let writes: Vec<String> = counted(&WRITES);
    let mut operations: Vec<String> = counted(&READS);
    operations.extend_from_slice(&writes);
    operations.extend(READING_COMMANDS.map(|name| format!("metrics.commands.{name}.total")));
    let traced = || Some(evidence.trace?.reads.calls as f64 / evidence.traced_s()?);
    let found = WorkAnswer {
        operations_per_s: sum(&operations),
        writes_per_s: sum(&writes),
        pages_read_per_s: evidence.status_rate(&[PAGES_READ]),
        read_calls_per_s: traced(),
        documents_examined_per_s: evidence.status_rate(&[DOCUMENTS_EXAMINED]),
        // Pressure is that of the host which seekscope ran on.
        cpu_pressure_share: evidence
            .host_settings()
            .and_then(|_| cpu::pressure(evidence)),
    };
    (found != WorkAnswer::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::DOCUMENTS_EXAMINED;
    use crate::testing::Recording;

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let work = |recording: &Recording| recording.examine(|_, answers| answers.work);
        let mut recording = Recording::new();
        assert_eq!(work(&recording), None);
        recording.rising("opcounters.query", 30.0);
        recording.rising("opcounters.update", 12.0);
        recording.rising("opcounters.command", 1000.0);
        recording.rising("metrics.commands.aggregate.total", 3.0);
        let found = work(&recording).unwrap();
        assert_eq!(
            (found.operations_per_s, found.writes_per_s),
            (Some(45.0), Some(12.0))
        );
        assert_eq!(
            (found.pages_read_per_s, found.read_calls_per_s),
            (None, None)
        );
        assert_eq!(
            (found.documents_examined_per_s, found.cpu_pressure_share),
            (None, None)
        );
    }

    /// What the watch itself saw of the CPUs, and of what was examined.
    #[test]
    fn the_work_of_the_cpus_is_kept() {
        let mut recording = Recording::new();
        recording.rising(DOCUMENTS_EXAMINED, 5_000.0);
        recording.values("pressure", "cpu.some_us", |s| s * 0.7e6);
        let found = recording.examine(|_, answers| answers.work).unwrap();
        assert_eq!(found.documents_examined_per_s, Some(5_000.0));
        assert!((found.cpu_pressure_share.unwrap() - 0.7).abs() < 1e-9);
    }
}
