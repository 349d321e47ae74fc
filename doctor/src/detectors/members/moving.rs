//! `shards.moving`: chunks were moved between shards while the cluster was watched, cannot be moved, or one is being moved
//! and does not get on.

use seekscope_run::units::format_count;
use seekscope_run::{FailedMoves, Finding, OperationSeen, SpreadCollection};

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

const FAILS: &str = "Nothing of the collection was moved since (config.changelog). Each attempt copies the chunk to the other \
                     shard and deletes it there again, and the balancer makes the next one in its next round.";
const LATEST_FAILURES: &str = r#"db.getSiblingDB("config").changelog.find({what: "moveChunk.error"}).sort({time: -1}).limit(5).toArray()"#;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let mut findings = moved(evidence);
    findings.extend(not_getting_on(evidence));
    findings.extend(failing(evidence));
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

/// Finds collections whose chunks could not be moved.
fn failing(evidence: &Evidence<'_>) -> Vec<Finding> {
    let cluster = evidence.examination().and_then(|e| e.cluster.as_ref());
    let collections = cluster.map_or(&[][..], |cluster| &cluster.collections);
    let failing = collections.iter().filter_map(|collection| {
        let most = collection.failed_moves.iter().max_by_key(|f| f.attempts)?;
        Some((collection, most))
    });
    let finding = |(collection, most): (&SpreadCollection, &FailedMoves)| {
        let attempts = collection.failed_moves.iter().map(|failed| failed.attempts);
        let attempts = attempts.fold(0, u64::saturating_add);
        let namespace = &collection.namespace;
        let times = match attempts {
            1 => "An attempt to move a chunk".into(),
            _ => format!("{} attempts to move a chunk", format_count(attempts)),
        };
        let often = match collection.failed_moves.len() {
            1 => "",
            _ => " most often",
        };
        Finding {
            id: "shards.moving".into(),
            subject: namespace.clone(),
            title: format!(
                "{times} of {namespace} failed in the last hour,{often} from {} to {}",
                most.from, most.to
            ),
            evidence: vec![
                FAILS.into(),
                format!(
                    "The log of the primary of {} says why (\"c\":\"MIGRATE\"). Often a unique index is in the way: its \
                     values, those of _id as well, are unique on each shard alone, and two shards may have the same one.",
                    most.to
                ),
            ],
            confidence: "high".into(),
            risk: "None: the command only reads.".into(),
            command: mongosh(evidence.uri(), LATEST_FAILURES),
            ..Finding::default()
        }
    };
    failing.map(finding).collect()
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
    fn moves_that_fail() {
        let failed = |to: &str, attempts| FailedMoves {
            from: "s0".into(),
            to: to.into(),
            attempts,
        };
        let mut recording = Recording::new();
        let mut collections = vec![SpreadCollection::default(); 2];
        collections[1].namespace = "shop.events".into();
        collections[1].failed_moves = vec![failed("s1", 2), failed("s2", 4)];
        recording.examination().cluster = Some(ClusterRecord {
            collections,
            ..ClusterRecord::default()
        });
        let [finding] = recording.findings(&DETECTOR).try_into().unwrap();
        assert_eq!(
            finding.title,
            "6 attempts to move a chunk of shop.events failed in the last hour, most often from s0 to s2"
        );
        assert_eq!(finding.subject, "shop.events");
    }

    #[test]
    fn healthy() {
        assert_eq!(found(Some(0)), []);
        assert_eq!(found(None), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
