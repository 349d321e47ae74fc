//! `shards.broadcast`: operations that a router has to send to every shard of their collection.

use std::collections::{BTreeMap, BTreeSet};

use seekscope_run::units::{format_count, format_list};
use seekscope_run::{ClusterRecord, ExaminationRecord, FilterSeen, Finding, SentOperations};

use super::Detector;
use crate::wording::{begins_with, listed, mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.broadcast"],
    detect,
};

/// The fewest operations of a kind from which anything is concluded.
const OPERATIONS_MIN: u64 = 100;
/// The share of them that has to be sent to all shards, 0 to 1.
const SHARE_MIN: f64 = 0.5;
/// The most kinds of queries that are named.
const QUERIES_TOLD: usize = 3;
/// Kinds, and the words for several of them. Many documents that are inserted at once belong to many shards.
const KINDS: [(&str, &str); 4] = [
    ("find", "finds"),
    ("aggregate", "aggregations"),
    ("update", "updates"),
    ("delete", "deletes"),
];

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let examination = evidence.examination();
    let cluster = examination.and_then(|e| e.cluster.as_ref());
    let (Some(examination), Some(cluster)) = (examination, cluster) else {
        return Vec::new();
    };
    let kinds = KINDS.iter().filter_map(|(kind, several)| {
        let sent = cluster.sent.iter().find(|sent| sent.kind == *kind)?;
        is_broadcast(sent).then_some((sent, *several))
    });
    let kinds: Vec<(&SentOperations, &str)> = kinds.collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    let sum = |count: fn(&SentOperations) -> u64| -> f64 {
        kinds.iter().map(|(sent, _)| count(sent) as f64).sum()
    };
    let share = sum(|sent| sent.all_shards) / sum(of_sharded);
    let several: Vec<&str> = kinds.iter().map(|(_, several)| *several).collect();
    let counted = kinds.iter().map(|(sent, several)| {
        let (all, of) = (
            format_count(sent.all_shards),
            format_count(of_sharded(sent)),
        );
        format!("{all} of {of} {several}")
    });
    let counted: Vec<String> = counted.collect();
    let mut sentences = vec![
        format!(
            "Of the operations on sharded collections this router sent {} to every shard that has chunks of the \
             collection (shardingStatistics.numHostsTargeted; other routers count their own, and counting documents \
             is an aggregation).",
            counted.join(", ")
        ),
        "Each of these shards has to search, whether it has a matching document or not, and the slowest decides how \
         long it takes: more shards do not make such operations faster. Those that name one value of the shard key go \
         to one shard; a wide range of it, a sort by it, or no condition on it goes to all."
            .into(),
    ];
    sentences.extend(queries_without_key(examination, cluster));
    vec![Finding {
        id: "shards.broadcast".into(),
        title: format!(
            "{} of the {} on sharded collections go to all shards",
            percent(share),
            listed(&several)
        ),
        evidence: sentences,
        confidence: "medium".into(),
        risk: "None: the command only reads.".into(),
        command: mongosh(
            evidence.uri(),
            "db.serverStatus().shardingStatistics.numHostsTargeted",
        ),
        ..Finding::default()
    }]
}

fn of_sharded(sent: &SentOperations) -> u64 {
    let several = sent.all_shards.saturating_add(sent.several_shards);
    several.saturating_add(sent.one_shard)
}

fn is_broadcast(sent: &SentOperations) -> bool {
    let all = of_sharded(sent);
    all >= OPERATIONS_MIN && sent.all_shards as f64 >= SHARE_MIN * all as f64
}

/// Names what was seen on several shards, and does not ask for one value of the shard key.
fn queries_without_key(examination: &ExaminationRecord, cluster: &ClusterRecord) -> Option<String> {
    let mut shards_of: BTreeMap<(&str, &FilterSeen), BTreeSet<&str>> = BTreeMap::new();
    for member in &examination.members {
        let Some(shard) = member.shard.as_deref() else {
            continue;
        };
        for operation in &member.operations {
            if let (Some(namespace), Some(filter)) = (&operation.namespace, &operation.filter) {
                let shards = shards_of.entry((namespace, filter)).or_default();
                shards.insert(shard);
            }
        }
    }
    let named = shards_of
        .iter()
        .filter_map(|((namespace, filter), shards)| {
            let mut collections = cluster.collections.iter();
            let collection = collections.find(|one| one.namespace == *namespace)?;
            let lacks_key = !filter.fields.is_empty() && !has_key(filter, &collection.key);
            (lacks_key && shards.len() > 1).then(|| {
                let (fields, key) = (filter.fields.join(", "), &collection.key);
                format!("of {namespace} by {fields}, whose shard key is {key}")
            })
        });
    let mut named: Vec<String> = named.collect();
    named.dedup();
    let told = format_list(&named, QUERIES_TOLD, "; ");
    (!named.is_empty()).then(|| format!("Seen at work on several shards: searches {told}."))
}

/// Returns whether it asks for values of the first field of the shard key, so that each search is for some shards only.
fn has_key(filter: &FilterSeen, key: &str) -> bool {
    let mut fields = filter.equal.iter();
    fields.any(|field| begins_with(key, field))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{MemberRecord, OperationSeen, SpreadCollection};

    use super::*;
    use crate::testing::Recording;

    fn sent(kind: &str, all_shards: u64, one_shard: u64) -> SentOperations {
        SentOperations {
            kind: kind.into(),
            all_shards,
            one_shard,
            not_sharded: 1_000_000,
            ..SentOperations::default()
        }
    }

    /// A cluster whose router sent these, with one query seen on two shards.
    fn cluster(sent: Vec<SentOperations>, key: &str) -> Recording {
        let mut recording = Recording::new();
        recording.examination().cluster = Some(ClusterRecord {
            sent,
            collections: vec![SpreadCollection {
                namespace: "shop.events".into(),
                key: key.into(),
                ..SpreadCollection::default()
            }],
            ..ClusterRecord::default()
        });
        let on = |shard: &str| MemberRecord {
            shard: Some(shard.into()),
            operations: vec![OperationSeen {
                namespace: Some("shop.events".into()),
                filter: Some(FilterSeen {
                    fields: vec!["customer".into()],
                    ..FilterSeen::default()
                }),
                ..OperationSeen::default()
            }],
            ..MemberRecord::default()
        };
        recording.examination().members.extend([on("s0"), on("s1")]);
        recording
    }

    #[test]
    fn ill() {
        let counts = || vec![sent("find", 900, 100), sent("update", 600, 200)];
        let found = cluster(counts(), r#"{"_id":"hashed"}"#).findings(&DETECTOR);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            found[0].title,
            "83 % of the finds and updates on sharded collections go to all shards"
        );
        let said = found[0].evidence.join(" ");
        for words in [
            "sent 900 of 1,000 finds, 600 of 800 updates to every shard",
            r#"of shop.events by customer, whose shard key is {"_id":"hashed"}"#,
        ] {
            assert!(said.contains(words), "{said}");
        }
        // Which value is another question, and a range may be on all shards.
        let mut by_value = cluster(counts(), r#"{"customer":1}"#);
        let said = by_value.findings(&DETECTOR)[0].evidence.join(" ");
        assert!(said.contains("by customer, whose"), "{said}");
        for member in &mut by_value.examination().members {
            for operation in &mut member.operations {
                let filter = operation.filter.as_mut().unwrap();
                filter.equal = filter.fields.clone();
            }
        }
        let said = by_value.findings(&DETECTOR)[0].evidence.join(" ");
        assert!(!said.contains("Seen"), "{said}");
    }

    #[test]
    fn healthy() {
        let none = |sent| {
            let recording = cluster(vec![sent], r#"{"_id":1}"#);
            assert_eq!(recording.findings(&DETECTOR), []);
        };
        none(sent("find", 100, 900));
        none(sent("find", 50, 0));
        none(sent("insert", 900, 0));
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
