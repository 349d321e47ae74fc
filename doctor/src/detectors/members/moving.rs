//! `shards.moving`: chunks were moved between shards while the cluster was watched, or one is being moved and does not get on.

use seekscope_run::units::format_count;
use seekscope_run::{Finding, OperationSeen};

use super::Detector;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.moving"],
    detect,
};

/// A move of one chunk that takes longer than this, s, does not get on: most take a second or two.
const SLOW_MOVE_S: f64 = 20.0;
/// The commands with which a shard moves a chunk, of all versions.
const MOVES: [&str; 2] = ["movechunk", "moverange"];

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let mut findings = moved(evidence);
    findings.extend(not_getting_on(evidence));
    findings
}

/// Finds a move that a shard was at work on for long, and had not done in the end.
fn not_getting_on(evidence: &Evidence<'_>) -> Option<Finding> {
    let members = evidence.examination().map_or(&[][..], |e| &e.members);
    let is_move = |operation: &&OperationSeen| {
        let kind = operation.kind.to_ascii_lowercase();
        let is_slow = operation.running_us as f64 / 1e6 >= SLOW_MOVE_S;
        MOVES.iter().any(|name| kind.contains(name)) && is_slow && !operation.has_ended()
    };
    let mut slow = members.iter().filter_map(|member| {
        // A router shows what its shards are at work on, and has none of their records.
        let shard = member.shard.as_ref()?;
        let operation = member.operations.iter().find(is_move)?;
        Some((member, shard, operation))
    });
    let (member, shard, operation) = slow.next()?;
    let of = operation.namespace.as_ref();
    let of = of.map_or(String::new(), |namespace| format!(" of {namespace}"));
    Some(Finding {
        id: "shards.moving".into(),
        subject: shard.clone(),
        title: format!(
            "{shard} has been moving a chunk{of} for {}, and had not done when the watch ended",
            duration(operation.running_us as f64 / 1e6)
        ),
        evidence: vec![
            "Until it is done, the balancer moves nothing else from or to this shard. What a shard has yet to delete of \
             chunks that it gave away (config.rangeDeletions) holds up one that would come back."
                .into(),
        ],
        confidence: "medium".into(),
        risk: "None: the command only reads.".into(),
        command: mongosh(
            &format!("mongodb://{}/?directConnection=true", member.name),
            "db.getSiblingDB('config').rangeDeletions.countDocuments({})",
        ),
        ..Finding::default()
    })
}

fn moved(evidence: &Evidence<'_>) -> Vec<Finding> {
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
    fn a_move_that_does_not_get_on() {
        let mut recording = Recording::new();
        let examined = recording.examined();
        examined.shard = Some("s2".into());
        examined.operations = vec![OperationSeen {
            kind: "command moveChunk".into(),
            namespace: Some("shop.events".into()),
            running_us: 55_700_000,
            looks: 11,
            ..OperationSeen::default()
        }];
        let title = &recording.findings(&DETECTOR)[0].title;
        assert!(
            title.starts_with("s2 has been moving a chunk of shop.events for 55.7 s"),
            "{title}"
        );
        recording.examined().operations[0].running_us = 2_000_000;
        assert_eq!(recording.findings(&DETECTOR), []);
    }

    #[test]
    fn healthy() {
        assert_eq!(found(Some(0)), []);
        assert_eq!(found(None), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
