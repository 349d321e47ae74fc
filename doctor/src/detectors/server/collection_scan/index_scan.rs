//! `query.index-scan`: operations that have an index, and read far more of it than they return.
//!
//! The server's log tells what operations of one kind examine, where they are slow. Else the server counts what all operations
//! examine together: so where collection scans were seen that may have examined it, only those are named that read in vain
//! by what they ask for.

use seekscope_run::units::{format_count, whole};
use seekscope_run::{Finding, OperationKind, OperationSeen};

use super::{
    Examined, INDEX_RISK, Reading, collection_of, is_maintenance, is_seen_often, seen_often,
};
use crate::namespaces::is_internal;
use crate::wording::{advise, duration, javascript_text, mongosh};
use crate::{Answers, Evidence};

/// Why an operation reads more of an index than it returns, which decides what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It skips what it reads.
    Skips,
    /// It looks for a pattern that may begin anywhere in a text.
    Pattern,
    /// The index has not the fields, or not in the order, that the operation needs.
    OtherIndex,
}

/// Returns the findings, one for each collection. `examined` is what all operations examine, if that is much;
/// `beside_scans` says that collection scans were seen.
pub(super) fn findings(
    evidence: &Evidence<'_>,
    answers: &Answers,
    examined: Option<&Examined>,
    beside_scans: bool,
) -> Vec<Finding> {
    let seen = evidence.examined().map_or(&[][..], |m| &m.operations);
    let mut longest: Vec<(&OperationSeen, Option<Examined>)> = Vec::new();
    let meant = seen.iter().filter(|operation| is_meant(operation));
    for operation in meant {
        let own = Examined::of_logged(evidence, operation);
        let is_named = match &own {
            Some(own) => own.is_much(),
            None => {
                examined.is_some() && (!beside_scans || cause_of(operation) != Cause::OtherIndex)
            }
        };
        let mut known = longest.iter();
        if is_named && !known.any(|(known, _)| known.namespace == operation.namespace) {
            longest.push((operation, own));
        }
    }
    // What another one groups or counts was examined, too, and not in vain.
    let mut others = seen.iter().filter(|operation| is_index_scan(operation));
    let is_alone = longest.len() == 1
        && !beside_scans
        && others.all(|one| reads_in_vain(one) || is_served(one));
    let findings = longest.into_iter().filter_map(|(operation, own)| {
        let is_alone = is_alone || own.is_some();
        let counted = examined.map(Examined::sentence).filter(|_| own.is_none());
        let examined = own.as_ref().or(examined)?;
        let mut found = finding(evidence, answers, operation, examined, is_alone);
        found.evidence.extend(counted);
        Some(found)
    });
    findings.collect()
}

/// Returns whether it may read an index in vain, as far as is known of what it asks for.
fn is_meant(operation: &OperationSeen) -> bool {
    let is_unknown = operation.filter.is_none();
    is_index_scan(operation)
        && is_seen_often(operation)
        && (is_unknown || reads_in_vain(operation))
        && !is_served(operation)
}

/// Returns whether its index has just what it asks for: the fields that it compares with values, and then the order. It
/// reads no more of it than it returns.
fn is_served(operation: &OperationSeen) -> bool {
    let plan = operation.plan.as_deref().unwrap_or_default();
    let (Some(filter), Some(index)) = (&operation.filter, key_names(plan)) else {
        return false;
    };
    let (values, rest) = index.split_at(filter.fields.len().min(index.len()));
    let order: Vec<&str> = filter.keys.iter().map(|key| key.field.as_str()).collect();
    !filter.skips
        && filter.fields.len() == filter.equal.len()
        && filter
            .fields
            .iter()
            .all(|field| values.contains(&field.as_str()))
        && rest.starts_with(&order)
}

/// Returns the names of the keys of the plan's index; `None` if it reads several.
fn key_names(plan: &str) -> Option<Vec<&str>> {
    let keys = plan.strip_prefix("IXSCAN {")?.strip_suffix('}')?;
    let names = keys
        .split(',')
        .map(|key| key.split(':').next().unwrap_or_default().trim());
    (!keys.contains('{')).then(|| names.collect())
}

/// Returns whether its results show how much of what it reads it asks for. Of a group or a count, they do not.
fn reads_in_vain(operation: &OperationSeen) -> bool {
    let filter = operation.filter.as_ref();
    filter.is_some_and(|filter| !filter.reduced || !filter.keys.is_empty())
}

/// Returns whether it scans an index, or counts its keys.
fn is_index_scan(operation: &OperationSeen) -> bool {
    let plan = operation.plan.as_deref().unwrap_or_default();
    let namespace = operation.namespace.as_deref().unwrap_or_default();
    (plan.contains("IXSCAN") || plan.contains("COUNT_SCAN"))
        && !is_internal(namespace)
        && !is_maintenance(operation)
}

fn cause_of(operation: &OperationSeen) -> Cause {
    match &operation.filter {
        Some(filter) if filter.skips => Cause::Skips,
        Some(filter) if !filter.patterns.is_empty() => Cause::Pattern,
        _ => Cause::OtherIndex,
    }
}

fn finding(
    evidence: &Evidence<'_>,
    answers: &Answers,
    operation: &OperationSeen,
    examined: &Examined,
    is_alone: bool,
) -> Finding {
    let namespace = operation.namespace.clone().unwrap_or_default();
    let plan = operation.plan.as_deref().unwrap_or_default();
    let cause = cause_of(operation);
    let reading = Reading::of(evidence, answers, operation, is_meant);
    let mut sentences = seen_often(evidence, operation, plan, about(operation, cause));
    if let Some(collection) = collection_of(evidence, operation) {
        sentences.push(format!(
            "The collection has {} documents (collStats).",
            format_count(collection.documents)
        ));
    }
    let took = reading.as_ref().map(|reading| {
        let Reading { what, source, .. } = reading;
        let s = duration(reading.s_per_hour);
        match is_alone {
            true => format!("{what} {s} per hour; nearly all of that is spared ({source})."),
            false => {
                format!("{what} {s} per hour; how much of that is spared is not known ({source}).")
            }
        }
    });
    sentences.extend(took);
    let seen = evidence.examined().map_or(&[][..], |m| &m.operations);
    let on_it = seen
        .iter()
        .filter(|other| other.namespace == operation.namespace);
    let running = format!("db.currentOp({{ns: {}}})", javascript_text(&namespace));
    Finding {
        id: "query.index-scan".into(),
        title: match is_alone {
            true if examined.results_per_s < examined.least_per_s => format!(
                "Operations on {namespace} read {} keys of an index per second for next to no results",
                format_count(whole(examined.keys_per_s))
            ),
            true => format!(
                "Operations on {namespace} read {} for each result",
                examined.of_each_result()
            ),
            false => {
                format!("Operations on {namespace} read far more of an index than they return")
            }
        },
        subject: namespace.clone(),
        evidence: sentences,
        saves_s_per_hour: reading
            .filter(|_| is_alone)
            .map(|reading| reading.s_per_hour * examined.share_in_vain()),
        operations: OperationKind::of_all(on_it.filter(|other| is_meant(other))),
        confidence: if is_alone { "medium" } else { "low" }.into(),
        risk: match cause {
            Cause::OtherIndex => INDEX_RISK.into(),
            Cause::Skips | Cause::Pattern => "The program that asks has to be changed.".into(),
        },
        command: match cause {
            Cause::OtherIndex => advise(evidence.uri(), &namespace),
            Cause::Skips | Cause::Pattern => mongosh(evidence.uri(), &running),
        },
        ..Finding::default()
    }
}

/// Says why so much is read, and what helps.
fn about(operation: &OperationSeen, cause: Cause) -> String {
    let filter = operation.filter.as_ref();
    let names = |names: &[String]| names.join(", ");
    match cause {
        Cause::Skips => "It skips documents, and the server reads all that it skips: asking for those that follow the \
                         last one of the page before, by the keys of the order, reads none of them."
            .into(),
        Cause::Pattern => format!(
            "It looks for a pattern that may begin anywhere in {}, or in any letters, so every key of the index is \
             compared: only a pattern that begins with ^ and minds the case, or a text index, reads fewer. (For whole \
             values in any letters there are indexes with a collation.)",
            names(filter.map_or(&[][..], |filter| &filter.patterns))
        ),
        Cause::OtherIndex => {
            let fields = filter.map_or(&[][..], |filter| &filter.fields);
            let selects = match fields {
                [] => String::new(),
                fields => format!("It selects by {}. ", names(fields)),
            };
            format!(
                "{selects}An index that begins with the fields that are compared for equality, followed by the keys \
                 of the order and then by those of ranges, is read only where something is found."
            )
        }
    }
}

impl Examined {
    /// Returns what was examined for each result, in words.
    fn of_each_result(&self) -> String {
        let of = |per_s: f64| format_count(whole(per_s / self.results_at_least()));
        let documents = of(self.documents_per_s);
        let noun = match documents.as_str() {
            "1" => "document",
            _ => "documents",
        };
        format!(
            "{} keys of an index and {documents} {noun}",
            of(self.keys_per_s)
        )
    }

    /// Returns the share of what was examined that was no result.
    fn share_in_vain(&self) -> f64 {
        1.0 - 1.0 / self.per_result().max(1.0)
    }
}
