//! `numa.not-interleaved`: one node's memory fills up while others have free memory.

use seekscope_run::Finding;

use super::{Detector, unfit};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["numa.not-interleaved"],
    detect,
};

fn detect(_evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let risk = "The server has to be started anew.";
    unfit(answers, "NUMA", "numa.not-interleaved", risk, |answer| {
        format!("Memory is not spread over the NUMA nodes: {}", answer.has)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.host().numa_nodes = 2;
        recording.host().numa_interleaved = Some(false);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert!(!found[0].command.is_empty(), "{found:?}");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.host().numa_nodes = 2;
        recording.host().numa_interleaved = Some(true);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
