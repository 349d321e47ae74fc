//! `space.nearly-full`: the data's filesystem has little room left.

use seekscope_run::Finding;
use seekscope_run::units::format_bytes;

use super::Detector;
use crate::wording::{mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["space.nearly-full"],
    detect,
};

/// Free share below which filesystems scatter new blocks and flash slows down.
const FREE_SHARE_MIN: f64 = 0.1;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(device) = evidence.device().filter(|device| device.size_bytes > 0) else {
        return Vec::new();
    };
    let free_share = device.free_bytes as f64 / device.size_bytes as f64;
    if free_share >= FREE_SHARE_MIN {
        return Vec::new();
    }
    let free = format_bytes(device.free_bytes);
    let mut sentences = vec![format!(
        "{free} of {} are free on {} (filesystem).",
        format_bytes(device.size_bytes),
        device.path
    )];
    let free_inside = answers.space.iter().map(|answer| answer.free_bytes);
    let inside = free_inside.fold(0, u64::saturating_add);
    if inside > 0 {
        sentences.push(format!(
            "Inside of the database's files {} more are free for its own reuse (layout or collStats).",
            format_bytes(inside)
        ));
    }
    let largest = answers.space.iter().max_by_key(|answer| answer.file_bytes);
    if let Some(largest) = largest.filter(|largest| largest.file_bytes > device.free_bytes) {
        sentences.push(format!(
            "The largest file, of {}, has {}: there is no room to rewrite it beside itself.",
            largest.name,
            format_bytes(largest.file_bytes)
        ));
    }
    vec![Finding {
        id: "space.nearly-full".into(),
        title: format!(
            "Only {free} ({}) are free on the data's filesystem",
            percent(free_share)
        ),
        evidence: sentences,
        confidence: "medium".into(),
        risk: "A server that cannot write its journal ends itself.".into(),
        command: mongosh(evidence.uri(), "db.adminCommand({listDatabases: 1})"),
        ..Finding::default()
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GIB, Recording};

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.device().free_bytes = 20 * GIB;
        let found = recording.findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "Only 20.0 GiB (2.0 %) are free on the data's filesystem"
        );
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.document.device = None;
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
