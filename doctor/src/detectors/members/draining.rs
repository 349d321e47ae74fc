//! `shards.draining`: a shard of a cluster is being removed.

use seekscope_run::units::{format_count, format_list};
use seekscope_run::{ClusterRecord, Finding, ShardOnDisk};

use super::Detector;
use crate::wording::mongosh;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.draining"],
    detect,
};

/// Databases in one sentence, so that it stays readable.
const DATABASES_TOLD: usize = 6;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let Some(cluster) = evidence.examination().and_then(|e| e.cluster.as_ref()) else {
        return Vec::new();
    };
    let shards = cluster.shards.iter().filter(|shard| shard.draining);
    shards
        .map(|shard| Finding {
            id: "shards.draining".into(),
            subject: shard.shard.clone(),
            title: title(shard),
            evidence: sentences(cluster, shard),
            confidence: "high".into(),
            risk: "None: the command only reads.".into(),
            command: mongosh(evidence.uri(), "sh.status()"),
            ..Finding::default()
        })
        .collect()
}

fn title(shard: &ShardOnDisk) -> String {
    let chunks = match shard.chunks {
        Some(0) => None,
        Some(1) => Some("one chunk of users' collections".to_string()),
        Some(count) => Some(format!(
            "{} chunks of users' collections",
            format_count(count)
        )),
        None => Some("an unknown number of chunks".into()),
    };
    let databases = match shard.databases.len() {
        0 => None,
        1 => Some("one database".to_string()),
        count => Some(format!("{} databases", format_count(count as u64))),
    };
    let left: Vec<String> = chunks.into_iter().chain(databases).collect();
    match left.is_empty() {
        true => format!(
            "The shard {} is being removed, and holds nothing of users any more",
            shard.shard
        ),
        false => format!(
            "The shard {} is being removed, and still has {}",
            shard.shard,
            left.join(" and ")
        ),
    }
}

fn sentences(cluster: &ClusterRecord, shard: &ShardOnDisk) -> Vec<String> {
    let mut sentences = vec![
        "Somebody ran removeShard (config.shards): no chunk comes to this shard, and its chunks are moved to the \
         others, which they have to read and write."
            .to_string(),
    ];
    if !shard.databases.is_empty() {
        let names: Vec<&str> = shard.databases.iter().map(String::as_str).collect();
        sentences.push(format!(
            "It is the primary shard of {}, and stays so until the command movePrimary moves them or they are dropped.",
            format_list(&names, DATABASES_TOLD, ", ")
        ));
    }
    if shard.chunks != Some(0) && cluster.balancer_on == Some(false) {
        sentences.push("The balancer is off, so that its chunks stay where they are.".into());
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn found(draining: bool, chunks: u64, databases: &[&str]) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.examination().cluster = Some(ClusterRecord {
            balancer_on: Some(false),
            shards: vec![ShardOnDisk {
                shard: "s1".into(),
                chunks: Some(chunks),
                draining,
                databases: databases.iter().map(ToString::to_string).collect(),
                ..ShardOnDisk::default()
            }],
            ..ClusterRecord::default()
        });
        recording.findings(&DETECTOR)
    }

    #[test]
    fn ill() {
        let busy = &found(true, 5, &["crm"])[0];
        let title = "The shard s1 is being removed, and still has 5 chunks of users' collections and one database";
        assert_eq!(busy.title, title);
        let said = busy.evidence.join(" ");
        assert!(said.contains("primary shard of crm"), "{said}");
        assert!(said.contains("balancer is off"), "{said}");
        let empty = &found(true, 0, &[])[0];
        assert!(
            empty.title.ends_with("holds nothing of users any more"),
            "{}",
            empty.title
        );
        assert_eq!(empty.evidence.len(), 1);
    }

    #[test]
    fn healthy() {
        assert_eq!(found(false, 5, &["crm"]), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
