//! `huge-pages.unfit`: this release of MongoDB needs the other setting.

use seekscope_run::Finding;

use super::{Detector, unfit};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["huge-pages.unfit"],
    detect,
};

fn detect(_evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let risk =
        "Takes effect for memory that is taken later: restart the server, a secondary first.";
    unfit(
        answers,
        "transparent huge pages",
        "huge-pages.unfit",
        risk,
        |answer| {
            format!(
                "Transparent huge pages are {}, this release wants {}",
                answer.has, answer.wants
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
        recording.host().transparent_huge_pages = Some("always".into());
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert!(!found[0].command.is_empty(), "{found:?}");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.host().transparent_huge_pages = Some("never".into());
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
