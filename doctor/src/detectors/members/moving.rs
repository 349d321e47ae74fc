//! `shards.moving`: chunks were moved between shards while the cluster was watched.

use seekscope_run::Finding;
use seekscope_run::units::format_count;

use super::Detector;
use crate::wording::mongosh;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.moving"],
    detect,
};

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let cluster = evidence.examination().and_then(|e| e.cluster.as_ref());
    let Some(moved) = cluster
        .and_then(|c| c.moved_chunks)
        .filter(|moved| *moved > 0)
    else {
        return Vec::new();
    };
    let chunks = if moved == 1 {
        "chunk was"
    } else {
        "chunks were"
    };
    vec![Finding {
        id: "shards.moving".into(),
        title: format!(
            "{} {chunks} moved between shards while the cluster was watched",
            format_count(moved)
        ),
        evidence: vec![
            "Each move reads the documents on one shard, inserts them on another and deletes them on the first (the \
             cluster's log, config.changelog): what is said of the shards' work includes that."
                .into(),
        ],
        confidence: "high".into(),
        risk: "None: the command only reads.".into(),
        command: mongosh(evidence.uri(), "sh.status()"),
        ..Finding::default()
    }]
}

#[cfg(test)]
mod tests {
    use seekscope_run::ClusterRecord;

    use super::*;
    use crate::testing::Recording;

    fn found(moved_chunks: Option<u64>) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.examination().cluster = Some(ClusterRecord {
            moved_chunks,
            ..ClusterRecord::default()
        });
        recording.findings(&DETECTOR)
    }

    #[test]
    fn ill() {
        let title = &found(Some(3))[0].title;
        assert!(title.starts_with("3 chunks were moved"), "{title}");
    }

    #[test]
    fn healthy() {
        assert_eq!(found(Some(0)), []);
        assert_eq!(found(None), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
