//! Joins without an index: for each of its documents, an aggregation reads all of another collection. The server
//! shows the plan for its own collection only, so that it looks as if it had an index.

use seekscope_run::units::format_count;
use seekscope_run::{CollectionFacts, Finding, JoinSeen, OperationSeen};

use super::{INDEX_RISK, LOOKS_MIN, seen_running_s};
use crate::Evidence;
use crate::wording::{capitalised, duration, javascript_text, mongosh, mongosh_collection};

/// Fewest documents of the other collection. Reading fewer takes no longer than looking into an index.
const DOCUMENTS_MIN: u64 = 1_000;

/// A join whose field no index of the other collection begins with.
pub(super) struct Join<'a> {
    pub(super) operation: &'a OperationSeen,
    join: &'a JoinSeen,
    /// The other collection.
    from: &'a CollectionFacts,
}

/// Returns the joins that were seen running; of those of one field the one that was seen most often.
pub(super) fn without_index<'a>(evidence: &Evidence<'a>) -> Vec<Join<'a>> {
    let Some(member) = evidence.examined() else {
        return Vec::new();
    };
    let mut operations: Vec<&OperationSeen> = member.operations.iter().collect();
    operations.retain(|operation| operation.looks >= LOOKS_MIN);
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.looks));
    let mut found: Vec<Join<'a>> = Vec::new();
    for operation in operations {
        for join in operation.filter.iter().flat_map(|filter| &filter.joins) {
            let Some(from) = other_collection(&member.collections, operation, join) else {
                continue;
            };
            let is_known = |known: &Join<'_>| {
                known.from.namespace == from.namespace && known.join.field == join.field
            };
            let needs_index = from.documents >= DOCUMENTS_MIN && !has_index(from, &join.field);
            if needs_index && !found.iter().any(is_known) {
                found.push(Join {
                    operation,
                    join,
                    from,
                });
            }
        }
    }
    found
}

fn other_collection<'a>(
    collections: &'a [CollectionFacts],
    operation: &OperationSeen,
    join: &JoinSeen,
) -> Option<&'a CollectionFacts> {
    let (database, _) = operation.namespace.as_deref()?.split_once('.')?;
    let is_it = |c: &&CollectionFacts| {
        c.namespace.split_once('.') == Some((database, join.collection.as_str()))
    };
    collections.iter().find(is_it)
}

/// Can an index find documents by the field? Where the indexes are not known, nothing is missed.
fn has_index(collection: &CollectionFacts, field: &str) -> bool {
    let begins = format!("{{{}:", javascript_text(field));
    let mut indexes = collection.indexes.iter();
    (collection.clustered && field == "_id")
        || collection.indexes.is_empty()
        || indexes.any(|index| index.keys.starts_with(&begins) || index.keys.contains("$**"))
}

impl Join<'_> {
    pub(super) fn finding(&self, evidence: &Evidence<'_>) -> Finding {
        let operation = self.operation;
        let Self { join, from, .. } = self;
        let whose = operation.namespace.as_deref().unwrap_or_default();
        let running_s = seen_running_s(evidence, f64::from(operation.looks));
        let running_s = running_s.zip(evidence.observed_s());
        let s_per_hour = running_s.map(|(running_s, observed_s)| running_s / observed_s * 3600.0);
        let mut sentences = vec![
            format!(
                "{} on {whose} that looks up {} in {} was seen running in {} looks, {} at once, for up to {} (currentOp).",
                capitalised(&operation.kind),
                join.field,
                from.namespace,
                operation.looks,
                operation.at_once,
                duration(operation.running_us as f64 / 1e6),
            ),
            format!(
                "{} has {} documents, and none of its indexes begins with {} ($indexStats): each document that is \
                 joined reads all of them.",
                from.namespace,
                format_count(from.documents),
                join.field
            ),
        ];
        sentences.extend(s_per_hour.map(|s| {
            format!(
                "They were seen running for {} per hour; an index saves most of that (currentOp).",
                duration(s)
            )
        }));
        Finding {
            id: "query.collection-scan".into(),
            title: format!(
                "Aggregations on {whose} read all of {} for each document that they join: no index begins with {}",
                from.namespace, join.field
            ),
            subject: from.namespace.clone(),
            evidence: sentences,
            saves_s_per_hour: s_per_hour,
            confidence: "medium".into(),
            risk: INDEX_RISK.into(),
            command: mongosh(
                &evidence.uri_for_writes(),
                &format!(
                    "{}.createIndex({{{}: 1}})",
                    mongosh_collection(&from.namespace),
                    javascript_text(&join.field)
                ),
            ),
            ..Finding::default()
        }
    }
}
