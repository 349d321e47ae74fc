//! `scheduler.unfit`: the kernel's queue idles between processes.

use seekscope_run::Finding;

use super::{Detector, unfit};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["scheduler.unfit"],
    detect,
};

fn detect(_evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let risk = "None: it takes effect at once and until the next start; a udev rule keeps it.";
    unfit(
        answers,
        "I/O scheduler",
        "scheduler.unfit",
        risk,
        |answer| {
            format!(
                "The I/O scheduler is {}, which idles the disk to share it fairly",
                answer.has
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.device().scheduler = Some("bfq".into());
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert!(!found[0].command.is_empty(), "{found:?}");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.device().scheduler = Some("mq-deadline".into());
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
