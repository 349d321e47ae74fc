//! `oplog.too-short`: a member that has to be resynced would fall off the oplog meanwhile.

use seekscope_run::Finding;

use super::Detector;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["oplog.too-short"],
    detect,
};

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let resync = answers.durations.iter().find(|job| job.job == "resync");
    let Some((resync, window_s)) = resync.and_then(|job| Some((job, job.oplog_window_s?))) else {
        return Vec::new();
    };
    // It can only succeed if it is quicker than expected.
    if window_s >= resync.now_s {
        return Vec::new();
    }
    let ranges = format!("{} to {}", duration(resync.low_s), duration(resync.high_s));
    vec![Finding {
        id: "oplog.too-short".into(),
        title: format!(
            "The oplog reaches back {}, a resync takes about {}",
            duration(window_s),
            duration(resync.now_s)
        ),
        evidence: vec![
            format!(
                "From the first to the last entry of a full oplog are {} (oplog of the member with the \
                 shortest).",
                duration(window_s)
            ),
            format!("A resync is expected to take {ranges}: {} ({}).", resync.phases, resync.basis),
            "From MongoDB 4.4 on the member that is copied keeps what an initial sync still needs, if its \
             disk has room for it."
                .into(),
        ],
        // Even at its quickest it would not succeed.
        confidence: if window_s < resync.low_s { "medium" } else { "low" }.into(),
        risk: "A larger oplog takes its size from the disk.".into(),
        command: mongosh(evidence.uri(), &resize(evidence, resync.high_s / window_s)),
        ..Finding::default()
    }]
}

/// Smallest oplog that the server accepts, MiB (manual, `replSetResizeOplog`).
const OPLOG_MIN_MIB: f64 = 990.0;

/// Returns a command that makes the window as long as the resync at its slowest. mongosh sends whole numbers
/// as integers, which the server rejects here.
fn resize(evidence: &Evidence<'_>, factor: f64) -> String {
    let oplog = evidence.examined().and_then(|member| member.oplog);
    match oplog.filter(|oplog| oplog.size_bytes > 0) {
        Some(oplog) => format!(
            "db.adminCommand({{replSetResizeOplog: 1, size: Double({:.0})}})",
            (oplog.size_bytes as f64 * factor / (1u64 << 20) as f64)
                .ceil()
                .max(OPLOG_MIN_MIB)
        ),
        None => "db.getReplicationInfo()".into(),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{CollectionFacts, OplogFacts};

    use super::*;
    use crate::testing::{GIB, Recording, flash};

    fn with_window(window_s: f64) -> Recording {
        let mut recording = Recording::new();
        recording.ability(flash(1e-4));
        recording.examined().collections = vec![CollectionFacts {
            namespace: "shop.orders".into(),
            documents: 10_000_000,
            data_bytes: 10 * GIB,
            storage_bytes: 5 * GIB,
            ..CollectionFacts::default()
        }];
        recording.examined().oplog = Some(OplogFacts {
            size_bytes: GIB,
            used_bytes: GIB,
            window_s,
        });
        recording
    }

    #[test]
    fn ill() {
        let found = with_window(30.0).findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .title
                .starts_with("The oplog reaches back 30.0 s, a resync takes about")
        );
        assert!(found[0].command.contains("size: Double("), "{found:?}");
        assert_eq!(found[0].confidence, "medium");
        let mut small = with_window(30.0);
        small.examined().oplog.as_mut().unwrap().size_bytes = 1 << 20;
        let command = &small.findings(&DETECTOR)[0].command;
        assert!(command.contains("size: Double(990)"), "{command}");
    }

    #[test]
    fn healthy() {
        assert_eq!(with_window(86_400.0).findings(&DETECTOR), []);
        let mut standalone = with_window(30.0);
        standalone.examined().oplog = None;
        assert_eq!(standalone.findings(&DETECTOR), []);
    }
}
