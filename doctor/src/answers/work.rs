//! Measures how much the server was asked to do, the basis for comparing two runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Evidence;

const WRITES: [&str; 3] = ["insert", "update", "delete"];
const READS: [&str; 2] = ["query", "getmore"];
/// Commands that read: `opcounters` counts them together with all other commands, those of monitoring among them.
const READING_COMMANDS: [&str; 4] = ["aggregate", "count", "distinct", "mapReduce"];
pub(crate) const PAGES_READ: &str = "wiredTiger.cache.pages read into cache";

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
    };
    (found != WorkAnswer::default()).then_some(found)
}

#[cfg(test)]
mod tests {
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
    }
}
