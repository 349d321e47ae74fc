//! What is examined for what is found.

use seekscope_run::units::{format_count, whole};

use crate::Evidence;
use crate::answers::DOCUMENTS_EXAMINED;

/// Documents, or keys of indexes, examined for each result, over the whole server; the manual calls 1 the ideal.
const EXAMINED_PER_RESULT_MIN: f64 = 100.0;
/// Documents or keys examined per second; below this the disk hardly notices.
const EXAMINED_PER_S_MIN: f64 = 1000.0;

/// What the server examined: by its counts over all operations, or by its log for those of one kind.
pub(super) struct Examined {
    pub(super) documents_per_s: f64,
    /// Keys of indexes.
    pub(super) keys_per_s: f64,
    /// Documents returned, updated and deleted, that is, what was looked for.
    pub(super) results_per_s: f64,
    /// Fewer results than that are taken for it.
    pub(super) least_per_s: f64,
}

impl Examined {
    pub(super) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let results = ["returned", "updated", "deleted"];
        let rates =
            results.map(|what| evidence.status_rate(&[&format!("metrics.document.{what}")]));
        Some(Self {
            documents_per_s: evidence.status_rate(&[DOCUMENTS_EXAMINED])?,
            keys_per_s: evidence
                .status_rate(&["metrics.queryExecutor.scanned"])
                .unwrap_or(0.0),
            // Without any of these counters nothing is known about results.
            results_per_s: rates.into_iter().flatten().reduce(|a, b| a + b)?,
            least_per_s: 1.0,
        })
    }

    pub(super) fn results_at_least(&self) -> f64 {
        self.results_per_s.max(self.least_per_s)
    }

    /// Documents or keys per second, whichever are more.
    pub(super) fn most_per_s(&self) -> f64 {
        self.documents_per_s.max(self.keys_per_s)
    }

    pub(super) fn per_result(&self) -> f64 {
        self.most_per_s() / self.results_at_least()
    }

    /// Documents examined for each result: all that a collection scan examines.
    pub(super) fn documents_per_result(&self) -> f64 {
        self.documents_per_s / self.results_at_least()
    }

    pub(super) fn is_much(&self) -> bool {
        self.most_per_s() >= EXAMINED_PER_S_MIN && self.per_result() >= EXAMINED_PER_RESULT_MIN
    }

    pub(super) fn sentence(&self) -> String {
        let keys = match self.keys_per_s > self.documents_per_s {
            true => format!(
                "{} keys of indexes and ",
                format_count(whole(self.keys_per_s))
            ),
            false => String::new(),
        };
        format!(
            "The server examined {keys}{} documents per second and returned, updated or deleted {} (serverStatus).",
            format_count(whole(self.documents_per_s)),
            format_count(whole(self.results_per_s))
        )
    }
}
