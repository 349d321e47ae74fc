//! `host.open-files-limit`: collections, indexes and connections may run out of descriptors.

use seekscope_run::Finding;

use super::{Detector, unfit};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["host.open-files-limit"],
    detect,
};

/// Smallest share of the allowed files that are open: with fewer, a limit below the recommended one harms
/// nobody yet.
const OPEN_SHARE_MIN: f64 = 0.25;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let host = evidence.host_settings();
    let used = host.and_then(|h| Some(h.open_files? as f64 / h.open_files_limit?.max(1) as f64));
    if used.is_some_and(|share| share < OPEN_SHARE_MIN) {
        return Vec::new();
    }
    let risk = "The server has to be started anew.";
    unfit(
        answers,
        "open files",
        "host.open-files-limit",
        risk,
        |answer| format!("The server may open too few files: {}", answer.has),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.host().open_files_limit = Some(1024);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert!(!found[0].command.is_empty(), "{found:?}");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.host().open_files_limit = Some(64_000);
        recording.host().open_files = Some(40_000);
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.host().open_files_limit = Some(20_000);
        recording.host().open_files = Some(45);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
