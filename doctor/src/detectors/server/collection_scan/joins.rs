//! Joins without an index: for each of its documents, an aggregation reads all of another collection. The server
//! shows the plan for its own collection only, so that it looks as if it had an index.

use seekscope_run::units::format_count;
use seekscope_run::{CollectionFacts, Finding, JoinSeen, OperationKind, OperationSeen};

use super::present_index::{beginning_with, finds_by};
use super::reading::took_s;
use super::{
    INDEX_RISK, create_index_for, has_fields, is_seen_often, logged_sentence, reads_all,
    seen_running,
};
use crate::Evidence;
use crate::wording::{capitalised, duration, javascript_text};

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
    operations.retain(|operation| is_seen_often(operation));
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
            let has_index = operation
                .filter
                .as_ref()
                .is_some_and(|filter| finds_by(from, &join.field, filter));
            let needs_index = from.documents >= DOCUMENTS_MIN && !has_index;
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

impl Join<'_> {
    /// Returns whether the log counts fewer documents than there are in the other collection, of which each join reads
    /// all. Up to some release it counts those of the aggregation's own collection alone.
    fn is_left_out_of_the_log(&self) -> bool {
        let logged = self.operation.logged.as_ref();
        logged.is_some_and(|logged| logged.documents_examined < self.from.documents)
    }

    pub(super) fn finding(&self, evidence: &Evidence<'_>) -> Finding {
        let operation = self.operation;
        let Self { join, from, .. } = self;
        let whose = operation.namespace.as_deref().unwrap_or_default();
        let running_s = took_s(evidence, operation);
        let running_s = running_s.zip(evidence.observed_s());
        let s_per_hour = running_s.map(|(running_s, observed_s)| running_s / observed_s * 3600.0);
        let kind = capitalised(&operation.kind);
        let mut sentences = vec![match operation.looks {
            0 => format!(
                "{kind} on {whose} looks up {} in {}.",
                join.field, from.namespace
            ),
            _ => {
                let (field, from) = (&join.field, &from.namespace);
                let what = format!("{kind} on {whose} that looks up {field} in {from}");
                seen_running(&what, operation)
            }
        }];
        let plan = operation.plan.as_deref().unwrap_or_default();
        sentences.extend(logged_sentence(evidence, operation, plan).map(|logged| {
            match self.is_left_out_of_the_log() {
                true => format!(
                    "{logged} The log does not count what was read from {}.",
                    from.namespace
                ),
                false => logged,
            }
        }));
        sentences.push(
            format!(
                "{} has {} documents, and none of its indexes that can be used begins with {} ($indexStats): each \
                 document that is joined reads all of them.",
                from.namespace,
                format_count(from.documents),
                join.field
            ),
        );
        let filter = operation.filter.clone().unwrap_or_default();
        let present = beginning_with(from, &join.field, &filter);
        sentences.extend(present.as_ref().map(|present| present.sentence()));
        // What it selects of its own collection without an index may take as long, or far longer.
        let is_scan_too = reads_all(operation) && has_fields(&filter);
        sentences.extend(s_per_hour.map(|s| {
            let saved = match is_scan_too {
                true => "they read all of their own collection, too, and how much of the time the join takes is not known",
                false => "an index saves most of that",
            };
            let s = duration(s);
            format!("They ran for {s} per hour; {saved}.")
        }));
        Finding {
            id: "query.collection-scan".into(),
            title: format!(
                "Aggregations on {whose} read all of {} for each document that they join: no index that can be used begins with {}",
                from.namespace, join.field
            ),
            subject: from.namespace.clone(),
            evidence: sentences,
            saves_s_per_hour: s_per_hour.filter(|_| !is_scan_too),
            operations: OperationKind::of_all([operation]),
            confidence: if is_scan_too { "low" } else { "medium" }.into(),
            risk: INDEX_RISK.into(),
            command: present
                .and_then(|present| present.command(evidence))
                .unwrap_or_else(|| {
                    let keys = format!("{{{}: 1}}", javascript_text(&join.field));
                    create_index_for(evidence, &from.namespace, &keys, &filter)
                }),
            ..Finding::default()
        }
    }
}
