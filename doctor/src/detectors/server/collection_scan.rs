//! `query.collection-scan`: operations read whole collections.
//!
//! An index is suggested only where a filter is known to be selective: the operation has one, and most of
//! what the server examines is rejected. An operation without a filter needs every document, and no index
//! changes that.

mod beyond_index;
mod examined;
mod index_scan;
mod joins;
mod logged;
mod present_index;
mod reading;
mod scans;

use seekscope_run::units::{format_count, format_list};
use seekscope_run::{CollectionFacts, FilterSeen, Finding, OperationSeen};

use self::examined::Examined;
use self::logged::{is_known_well, sentence as logged_sentence};
use self::reading::Reading;
use self::scans::{Scans, selection};
use super::Detector;
use crate::namespaces::is_internal;
use crate::wording::{advise, capitalised, duration, javascript_text, mongosh, mongosh_collection};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &[COLLECTION_SCAN, "query.index-scan"],
    detect,
};

const COLLECTION_SCAN: &str = "query.collection-scan";

/// Fewest samples of the running operations that show such a scan. One or two may be somebody's report.
const LOOKS_MIN: u32 = 3;
/// Kinds that make up less than this share of the scans that were seen do not decide what all examine together.
const SELDOM_SHARE: f64 = 0.1;
/// The most kinds that are told of those that were seen too seldom.
const SELDOM_TOLD: usize = 3;
/// Documents examined per result from which a filter is selective: an index would spare nine of ten.
const SELECTIVE_MIN: f64 = 10.0;

const INDEX_RISK: &str =
    "Each further index costs every write, and its build reads the collection once.";

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let seen = evidence.examined().map_or(&[][..], |m| &m.operations);
    let mut scans: Vec<&OperationSeen> = Vec::new();
    let joins = joins::without_index(evidence);
    let scanning = seen.iter().filter(|operation| reads_all(operation));
    // One that wants all of its collection, and joins without an index, takes its time for that.
    let wants_all = |operation: &OperationSeen| !operation.filter.as_ref().is_some_and(has_fields);
    let scanning = scanning.filter(|operation| {
        let mut joins = joins.iter();
        !(wants_all(operation) && joins.any(|join| join.operation == *operation))
    });
    scans.extend(scanning.filter(|operation| !is_capped(evidence, operation)));
    // Collections come in the order of their longest scans that were seen often.
    scans.sort_by_key(|operation| !is_seen_often(operation));
    let joined = joins.iter().map(|join| join.finding(evidence));
    let joined: Vec<Finding> = joined.collect();
    let examined = Examined::of(evidence);
    let much = examined.as_ref().filter(|examined| examined.is_much());
    if !scans.iter().any(|operation| is_seen_often(operation)) && joined.is_empty() {
        let named = index_scan::findings(evidence, answers, much, false);
        return match much {
            Some(examined) if named.is_empty() => vec![unnamed(evidence, examined, &scans)],
            _ => named,
        };
    }
    // The server counts all operations together: that says something about one only if no other reads in
    // vain.
    let all_seen: u32 = scans.iter().map(|operation| operation.times_seen()).sum();
    let is_seldom = |operation: &OperationSeen| {
        f64::from(operation.times_seen()) < SELDOM_SHARE * f64::from(all_seen)
    };
    let is_selective = seen
        .iter()
        .filter(|operation| reads_all(operation) && !is_seldom(operation))
        .all(selects)
        && examined
            .as_ref()
            .is_some_and(|e| e.documents_per_result() >= SELECTIVE_MIN);
    let kinds = scans.into_iter().map(|operation| {
        let kind = Kind::of(evidence, operation, is_selective, examined.as_ref());
        (operation, kind)
    });
    let mut scans = Scans::by_collection(evidence, kinds);
    scans.retain(|scans| is_seen_often(scans.first().0));
    let scans = scans
        .iter()
        .map(|scans| named(evidence, answers, scans, examined.as_ref()));
    let beside = index_scan::findings(evidence, answers, much, true);
    scans.chain(joined).chain(beside).collect()
}

/// How an index can help a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its filter matches few documents.
    Selective,
    /// It takes the first documents of an order among those that its filter matches.
    FirstOfMatches,
    /// It has no filter, but takes the first documents of an order, or the distinct values of a field.
    ByKeys,
    /// It has no filter.
    WantsAll,
    /// It asks for documents as they lie, for which no index is used.
    Natural,
    /// It selects by conditions alone for which an ordinary index is of no use.
    BeyondIndex,
    /// Its filter matches so many of the documents that an index would not spare the reading.
    TakesMany,
    /// It is not known whether it has a filter, or whether that matches few documents.
    Unknown,
}

/// Returns the keys of an index that serves the operation's order, as a document of the shell.
fn keys_of(operation: &OperationSeen) -> String {
    let keys = operation.filter.iter().flat_map(|filter| &filter.keys);
    document_of(keys.map(|key| (key.field.as_str(), key.descending)))
}

/// Returns the keys of an index that serves the operation: what is compared, then the order, then the rest.
fn all_keys_of(filter: &FilterSeen) -> String {
    let ascending = |field: &'_ String| (field.clone(), false);
    let ordered = filter
        .keys
        .iter()
        .map(|key| (key.field.clone(), key.descending));
    let all = filter.equal.iter().map(ascending).chain(ordered);
    let mut keys: Vec<(String, bool)> = Vec::new();
    for key in all.chain(filter.fields.iter().map(ascending)) {
        if !keys.iter().any(|known| known.0 == key.0) {
            keys.push(key);
        }
    }
    document_of(
        keys.iter()
            .map(|(field, descending)| (field.as_str(), *descending)),
    )
}

fn document_of<'a>(keys: impl Iterator<Item = (&'a str, bool)>) -> String {
    let keys = keys.map(|(field, descending)| {
        let direction = if descending { -1 } else { 1 };
        format!("{}: {direction}", javascript_text(field))
    });
    format!("{{{}}}", keys.collect::<Vec<_>>().join(", "))
}

/// Returns the command that makes an index on the server that takes writes, of these keys and options.
fn create_index(evidence: &Evidence<'_>, namespace: &str, keys_and_options: &str) -> String {
    let collection = mongosh_collection(namespace);
    let script = format!("{collection}.createIndex({keys_and_options})");
    mongosh(&evidence.uri_for_writes(), &script)
}

/// Returns the same for these keys and a filter's way of comparing texts.
fn create_index_for(
    evidence: &Evidence<'_>,
    namespace: &str,
    keys: &str,
    filter: &FilterSeen,
) -> String {
    let collated = filter
        .collation
        .as_ref()
        .map(|collation| format!("{keys}, {{collation: {collation}}}"));
    create_index(evidence, namespace, collated.as_deref().unwrap_or(keys))
}

impl Kind {
    /// Returns whether an index would spare the reading.
    fn is_spared(self) -> bool {
        matches!(self, Self::Selective | Self::FirstOfMatches | Self::ByKeys)
    }

    /// `is_selective` says what the server's counts of all operations tell, for those of which its log tells nothing.
    fn of(
        evidence: &Evidence<'_>,
        operation: &OperationSeen,
        is_selective: bool,
        examined: Option<&Examined>,
    ) -> Self {
        let is_in_vain = |e: &Examined| e.documents_per_result() >= SELECTIVE_MIN;
        let logged = Examined::of_logged(evidence, operation);
        let (is_selective, takes_many) = match &logged {
            Some(own) => {
                let selects = selects(operation);
                (selects && is_in_vain(own), selects && !is_in_vain(own))
            }
            None => (is_selective, false),
        };
        let is_in_vain = logged.as_ref().or(examined).is_some_and(is_in_vain);
        match &operation.filter {
            Some(filter) if filter.natural => Self::Natural,
            Some(filter) if filter.fields.is_empty() && !filter.keys.is_empty() => Self::ByKeys,
            Some(filter) if filter.fields.is_empty() => Self::WantsAll,
            Some(filter) if beyond_index::is_all_of(filter) => Self::BeyondIndex,
            Some(_) if takes_many => Self::TakesMany,
            Some(filter) if is_selective && beyond_index::is_none_of(filter) => Self::Selective,
            // An index on both has the matches in the order. Of a range or a part of it, it would have far more.
            Some(filter) if is_in_vain && is_of_values(filter) => match filter.keys.is_empty() {
                false if !filter.distinct => Self::FirstOfMatches,
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// Returns whether it asks for distinct values. How many there are, its result does not tell.
fn asks_for_distinct(operation: &OperationSeen) -> bool {
    let filter = operation.filter.as_ref();
    filter.is_some_and(|filter| filter.distinct)
}

/// Returns whether it selects by values of its fields alone.
fn is_of_values(filter: &FilterSeen) -> bool {
    !filter.fields.is_empty() && filter.equal.len() == filter.fields.len()
}

/// Returns whether it selects by a field, not by an operator alone.
fn has_fields(filter: &FilterSeen) -> bool {
    filter.fields.iter().any(|field| !field.starts_with('$'))
}

/// Returns whether it has a filter on a field, and returns what that matches.
fn selects(operation: &OperationSeen) -> bool {
    let filter = operation.filter.as_ref();
    filter.is_some_and(|filter| !filter.reduced && has_fields(filter))
}

/// Returns whether it is a scan worth reporting, however often it was seen. Maintenance commands scan by nature, and so
/// do members that follow the oplog.
fn reads_all(operation: &OperationSeen) -> bool {
    let plan = operation.plan.as_deref().unwrap_or_default();
    let namespace = operation.namespace.as_deref().unwrap_or_default();
    // What ends after some documents without having selected any does not read all.
    let ends_early = operation
        .filter
        .as_ref()
        .is_some_and(|filter| filter.limited && filter.fields.is_empty() && filter.keys.is_empty());
    plan.starts_with("COLLSCAN")
        && !ends_early
        && !is_internal(namespace)
        && !is_maintenance(operation)
}

/// Returns whether it was seen running, or called slow by the log, more often than a single report would be.
fn is_seen_often(operation: &OperationSeen) -> bool {
    operation.looks >= LOOKS_MIN || is_known_well(operation)
}

fn is_maintenance(operation: &OperationSeen) -> bool {
    const MAINTENANCE: [&str; 4] = ["index build", "initial sync", "compact", "validate"];
    MAINTENANCE.iter().any(|kind| operation.kind.contains(kind))
}

/// Returns whether it reads a capped collection. Cursors that follow one are meant to read it in its own order.
fn is_capped(evidence: &Evidence<'_>, operation: &OperationSeen) -> bool {
    collection_of(evidence, operation).is_some_and(|collection| collection.capped)
}

/// Returns what is known of the collection that it reads.
fn collection_of<'a>(
    evidence: &Evidence<'a>,
    operation: &OperationSeen,
) -> Option<&'a CollectionFacts> {
    evidence
        .examined()?
        .collection(operation.namespace.as_deref()?)
}

fn named(
    evidence: &Evidence<'_>,
    answers: &Answers,
    scans: &Scans<'_>,
    examined: Option<&Examined>,
) -> Finding {
    let (operation, kind) = scans.first();
    let namespace = operation.namespace.clone().unwrap_or_default();
    let reading = Reading::of(evidence, answers, operation, reads_all);
    let spared_share = scans.spared_share();
    let spared = reading.as_ref().filter(|_| kind.is_spared());
    let present = present_index::of(evidence, operation, kind);
    let about = about_index(operation, kind);
    let mut sentences = seen_often(evidence, operation, "COLLSCAN", about);
    sentences.extend(present.as_ref().map(|present| present.sentence()));
    if let Some(collection) = collection_of(evidence, operation) {
        sentences.push(format!(
            "The collection has {} documents (collStats).",
            format_count(collection.documents)
        ));
    }
    sentences.extend(examined.map(Examined::sentence));
    sentences.extend(
        reading
            .as_ref()
            .map(|reading| reading.sentence(kind, spared_share)),
    );
    sentences.extend(scans.others(evidence));
    let running = format!(
        "db.currentOp({{planSummary: \"COLLSCAN\", ns: {}}})",
        javascript_text(&namespace)
    );
    let helping = present
        .and_then(|present| present.command(evidence))
        .or_else(|| command(evidence, operation, kind));
    Finding {
        id: COLLECTION_SCAN.into(),
        title: match kind {
            Kind::WantsAll => {
                format!("Operations read all of {namespace} because they want all of it")
            }
            _ => format!("Operations read all of {namespace} (COLLSCAN)"),
        },
        subject: namespace.clone(),
        evidence: sentences,
        saves_s_per_hour: spared.map(|reading| reading.s_per_hour * spared_share),
        confidence: match spared.is_some() && !asks_for_distinct(operation) {
            true => "medium",
            false => "low",
        }
        .into(),
        operations: scans.kinds(),
        risk: match kind {
            Kind::WantsAll => {
                "A secondary that takes these reads has to read all of the collection, too.".into()
            }
            _ if helping.is_some() => INDEX_RISK.into(),
            // No index is advised.
            _ => String::new(),
        },
        command: helping.unwrap_or_else(|| mongosh(evidence.uri(), &running)),
        ..Finding::default()
    }
}

/// Returns the command that makes the index, or that tries which one is best; `None` where there is none to make.
fn command(evidence: &Evidence<'_>, operation: &OperationSeen, kind: Kind) -> Option<String> {
    let namespace = operation.namespace.as_deref()?;
    let filter = operation.filter.as_ref()?;
    // Trials compare texts by their bytes, and make up no elements of arrays.
    let is_tried = filter.collation.is_none() && !filter.elements;
    match kind {
        Kind::ByKeys => Some(create_index_for(
            evidence,
            namespace,
            &keys_of(operation),
            filter,
        )),
        Kind::Selective | Kind::FirstOfMatches if !is_tried => Some(create_index_for(
            evidence,
            namespace,
            &all_keys_of(filter),
            filter,
        )),
        Kind::Selective | Kind::FirstOfMatches => Some(advise(evidence.uri(), namespace)),
        // It tries indexes, and measures what they spare.
        Kind::Unknown if has_fields(filter) && is_tried => Some(advise(evidence.uri(), namespace)),
        Kind::BeyondIndex => beyond_index::command(evidence, namespace, filter),
        Kind::Unknown | Kind::WantsAll | Kind::Natural | Kind::TakesMany => None,
    }
}

/// Says what the log tells of an operation with this plan, how often it was seen running, and after the first of both what
/// is to be said about it.
fn seen_often(
    evidence: &Evidence<'_>,
    operation: &OperationSeen,
    plan: &str,
    about: String,
) -> Vec<String> {
    let what = format!("{} with plan {plan}", capitalised(&operation.kind));
    let running = (operation.looks > 0).then(|| seen_running(&what, operation));
    let logged = logged_sentence(evidence, operation, plan);
    // The log has all of them, and a look has moments.
    let mut sentences: Vec<String> = logged.into_iter().chain(running).collect();
    sentences.insert(sentences.len().min(1), about);
    sentences
}

/// Says in how many looks it was seen running.
fn seen_running(what: &str, operation: &OperationSeen) -> String {
    let looks = match operation.looks {
        1 => "one look".into(),
        looks => format!("{looks} looks"),
    };
    format!(
        "{what} was seen running in {looks}, {} at once, for up to {} (currentOp).",
        operation.at_once,
        duration(operation.running_us as f64 / 1e6)
    )
}

/// Says whether an index helps, and why.
fn about_index(operation: &OperationSeen, kind: Kind) -> String {
    let fields = operation.filter.iter().flat_map(|filter| &filter.fields);
    let fields = fields.cloned().collect::<Vec<String>>().join(", ");
    match kind {
        Kind::Selective => format!(
            "It selects by {fields}, and nearly all of what the server examines does not match, so an \
             index on that spares most of the reading."
        ),
        Kind::FirstOfMatches => format!(
            "It selects by values of {fields} and takes the first documents of an order: an index that begins with these \
             fields, followed by {}, lets it read those alone.",
            keys_of(operation)
        ),
        Kind::ByKeys => {
            let keys = keys_of(operation);
            match asks_for_distinct(operation) {
                true => format!(
                    "It asks for the distinct values of a field, and reads every document for them: an index on \
                     {keys} lets it read one key for each value, which spares most of the reading where these are few."
                ),
                false if operation.filter.as_ref().is_some_and(|filter| filter.skips) => format!(
                    "It takes documents of an order for which no index is used, after many others that it skips, and reads every \
                     document for them: with an index on {keys} it reads the keys of those that it skips, and none if it \
                     asks for what follows the last document of the page before."
                ),
                false => format!(
                    "It takes the first documents of an order for which no index is used, and reads every document for them: \
                     an index on {keys} lets it read those alone."
                ),
            }
        }
        Kind::Natural => "It asks for documents in the order in which they lie ($natural), and no index is used for that."
            .into(),
        Kind::BeyondIndex => operation
            .filter
            .as_ref()
            .map_or(String::new(), beyond_index::about),
        Kind::WantsAll => {
            let is_reduced = operation.filter.as_ref().is_some_and(|filter| filter.reduced);
            let counting = match is_reduced {
                true => " If it only counts documents, estimatedDocumentCount() reads none of them.",
                false => "",
            };
            let joins = operation.filter.as_ref().is_some_and(|filter| !filter.joins.is_empty());
            let joining = match joins {
                true => " It joins documents of other collections, too, and how much of its time that takes is not known.",
                false => "",
            };
            format!(
                "It has no filter, so it reads every document by design and no index spares that: run it less often or \
                 on a secondary, or keep its totals up to date instead.{counting}{joining}"
            )
        }
        Kind::TakesMany => format!(
            "It selects by {fields}, and one in less than {SELECTIVE_MIN:.0} of the documents that it examines matches: with \
             an index it would read nearly as much, and in less order."
        ),
        Kind::Unknown if fields.is_empty() => {
            "Whether it has a filter is not known; an index helps only where a filter takes few documents."
                .into()
        }
        Kind::Unknown if operation.filter.as_ref().is_some_and(|filter| filter.reduced) => format!(
            "It selects by {fields}, and its results are groups, counts or the first of what matches: how many documents \
             that takes is not known, and an index helps only where they are few."
        ),
        Kind::Unknown => format!(
            "It selects by {fields}; how many documents that takes is not known, and an index helps only \
             where they are few."
        ),
    }
}

/// Names what was seen too seldom for its cost to be told.
fn seldom_seen(scans: &[&OperationSeen]) -> Option<String> {
    let told = scans.iter().filter_map(|operation| {
        let namespace = operation.namespace.as_deref()?;
        Some(format!("{namespace}{}", selection(operation)))
    });
    let told: Vec<String> = told.collect();
    let list = format_list(&told, SELDOM_TOLD, "; ");
    (!told.is_empty()).then(|| {
        format!("Collections that were seen being read as a whole, though seldom: {list}.")
    })
}

fn unnamed(evidence: &Evidence<'_>, examined: &Examined, seldom: &[&OperationSeen]) -> Finding {
    let scans = "metrics.queryExecutor.collectionScans.nonTailable";
    let was_asked = evidence.examined().is_some();
    let was_log_read = evidence.slow_log_s().is_some();
    let looks = evidence
        .examined()
        .map_or(0, |member| member.operation_looks);
    let why = match evidence.status_rate(&[scans]) {
        Some(0.0) => "The server counted no collection scan (serverStatus), so indexes that leave many documents to \
                      examine do it, or aggregations that make one document of many."
            .into(),
        Some(per_s) if !was_asked => format!(
            "The server counted {per_s:.1} collection scans per second (serverStatus). Which collections they were of \
             its diagnostic files do not tell; running operations, the profiler and the log do."
        ),
        Some(per_s) if was_log_read => format!(
            "The server counted {per_s:.1} collection scans per second (serverStatus). None of one kind was running in as \
             many as {LOOKS_MIN} of {looks} looks (currentOp), and its log calls none of them slow often. The profiler shows them, and so does the \
             log where slowms is smaller."
        ),
        Some(per_s) => format!(
            "The server counted {per_s:.1} collection scans per second (serverStatus), and none of one kind was running in \
             as many as {LOOKS_MIN} of {looks} looks (currentOp). The profiler shows them, and so does the log where slowms is small."
        ),
        None if !was_asked => "Neither scans nor running operations are in the server's diagnostic files: collection \
                               scans, indexes that leave many documents to examine, or aggregations that make one \
                               document of many do it."
            .into(),
        None => "No collection scan was caught at it (currentOp): short ones, indexes that leave many documents \
                 to examine or aggregations that make one document of many do it."
            .into(),
    };
    let id = match evidence.status_rate(&[scans]) {
        Some(0.0) => "query.index-scan",
        _ => COLLECTION_SCAN,
    };
    Finding {
        id: id.into(),
        title: format!(
            "The server examines {:.0} {} for each document that it returns, updates or deletes",
            examined.per_result(),
            match examined.keys_per_s > examined.documents_per_s {
                true => "keys of indexes",
                false => "documents",
            }
        ),
        evidence: [examined.sentence(), why]
            .into_iter()
            .chain(seldom_seen(seldom))
            .collect(),
        confidence: "low".into(),
        risk: INDEX_RISK.into(),
        command: mongosh(
            evidence.uri(),
            "db.currentOp({planSummary: {$exists: true}})",
        ),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests;
