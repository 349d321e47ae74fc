//! Finds latencies that a run's figures were made from and that its log no longer holds, as where the file was cut
//! off or not copied.

use std::path::Path;

use seekscope_run::{BenchMeasurement, Limitation};

const LOG: &str = "latency.hlog";
const REMEDY: &str = "copy the run again with all its files";
/// Share of an operation's latencies that the log may lack, for what lies at the edge of the warm-up.
const LOST_SHARE_MAX: f64 = 0.01;

/// An operation of which the log holds fewer latencies than its figures were made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostLatencies {
    step: String,
    operation: String,
    /// Latencies that the figures were made from.
    known: u64,
    /// Latencies among them that the log holds.
    found: u64,
}

impl LostLatencies {
    /// Returns the first such operation. `kept` counts the latencies in the log by step and operation.
    pub fn first(bench: &BenchMeasurement, kept: impl Fn(&str, &str) -> u64) -> Option<Self> {
        let operations = bench.steps.iter().flat_map(|step| {
            step.operations
                .iter()
                .map(move |operation| (step, operation))
        });
        let mut all = operations.map(|(step, operation)| Self {
            step: step.name.clone(),
            operation: operation.name.clone(),
            known: operation.service.count,
            found: kept(&step.name, &operation.name),
        });
        all.find(|one| (one.found as f64) < one.known as f64 * (1.0 - LOST_SHARE_MAX))
    }

    /// Says why nothing can be made from the latencies of the run in the directory `run`.
    pub fn refusal(&self, run: &Path) -> String {
        format!("{} {}: {REMEDY}", run.join(LOG).display(), self.holds())
    }

    /// Says what is not shown of the run.
    pub fn limitation(&self) -> Limitation {
        Limitation {
            what: format!(
                "{LOG} {}, so what is drawn of them is incomplete; the tables have what run.json says",
                self.holds()
            ),
            why: "the file was cut off, or not copied".into(),
            remedy: REMEDY.into(),
        }
    }

    fn holds(&self) -> String {
        format!(
            "holds {} of the {} latencies of {} in \"{}\"",
            self.found, self.known, self.operation, self.step
        )
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{BenchStep, LatencySummary, OperationResult};

    use super::*;

    #[test]
    fn a_log_that_was_cut_off_is_told_and_the_edge_of_the_warm_up_is_not() {
        let operation = OperationResult {
            name: "READ".into(),
            service: LatencySummary {
                count: 2830,
                ..LatencySummary::default()
            },
            ..OperationResult::default()
        };
        let bench = BenchMeasurement {
            steps: vec![BenchStep {
                name: "b".into(),
                operations: vec![operation],
                ..BenchStep::default()
            }],
            ..BenchMeasurement::default()
        };
        assert_eq!(LostLatencies::first(&bench, |_, _| 2830), None);
        assert_eq!(LostLatencies::first(&bench, |_, _| 2810), None);
        let lost = LostLatencies::first(&bench, |_, _| 1411).unwrap();
        assert_eq!(
            lost.refusal(Path::new("dm")),
            "dm/latency.hlog holds 1411 of the 2830 latencies of READ in \"b\": copy the run again with all its files"
        );
        let told = lost.limitation().what;
        assert!(told.contains("holds 1411 of the 2830"), "{told}");
    }
}
