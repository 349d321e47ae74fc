//! Shows what the examined server reported: running operations, collections, warnings.

use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{CollectionFacts, FilterSeen, MemberRecord, OperationSeen};

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX, UNKNOWN, and_more};
use crate::numbers::{counted, format_share};
use crate::table::{Cell, Table};

fn examined<'a>(input: &DoctorReportInput<'a>) -> Option<&'a MemberRecord> {
    input.examination()?.examined()
}

/// Returns its start-up warnings.
pub(in super::super) fn warnings(input: &DoctorReportInput<'_>) -> Vec<String> {
    let warnings = examined(input).map_or(&[][..], |member| &member.warnings);
    let texts = warnings.iter().take(ROWS_MAX);
    texts
        .map(|warning| format!("It warned at its start: {warning}"))
        .collect()
}

/// Returns the operations that were seen running, or that the log calls slow.
pub(in super::super) fn operations(input: &DoctorReportInput<'_>) -> Option<Table> {
    let operations = &examined(input)?.operations;
    let columns = [
        "operation",
        "collection",
        "plan",
        "selects by",
        "longest",
        "seen in looks",
        "at once",
        "waiting in looks",
        "progress",
        "called slow by the log",
    ];
    let mut table = Table::new(4, &columns);
    for operation in operations.iter().take(ROWS_MAX) {
        table.row(operation_row(operation));
    }
    and_more(&mut table, operations.len());
    table.or_nothing()
}

fn operation_row(operation: &OperationSeen) -> [Cell; 10] {
    let progress = operation.progress.filter(|(_, total)| *total > 0);
    let progress = progress.map(|(done, total)| format_share(done as f64 / total as f64));
    let logged = operation.logged.as_ref();
    let longest_us = logged.map_or(0, |logged| logged.longest_us);
    let logged = logged.map(|logged| {
        let took = format_ns(logged.took_us.saturating_mul(1000));
        format!("{}, {took} in all", counted(logged.count, "time"))
    });
    [
        operation.kind.as_str().into(),
        Cell::or(operation.namespace.clone(), NONE),
        Cell::or(operation.plan.clone(), NONE),
        Cell::or(operation.filter.as_ref().map(selection), NONE),
        format_ns(operation.running_us.max(longest_us).saturating_mul(1000)).into(),
        format_count(u64::from(operation.looks)).into(),
        format_count(u64::from(operation.at_once)).into(),
        format_count(u64::from(operation.waiting_looks)).into(),
        Cell::or(progress, NONE),
        Cell::or(logged, NONE),
    ]
}

fn selection(filter: &FilterSeen) -> String {
    if !filter.fields.is_empty() {
        return filter.fields.join(", ");
    }
    let keys = filter.keys.iter();
    let keys: Vec<&str> = keys.map(|key| key.field.as_str()).collect();
    match (keys.as_slice(), filter.distinct) {
        ([], _) => "nothing: it takes every document".into(),
        (keys, true) => format!("nothing: the distinct values of {}", keys.join(", ")),
        (keys, false) => format!("nothing: the first by {}", keys.join(", ")),
    }
}

/// Returns the largest and the busiest collections.
pub(in super::super) fn collections(input: &DoctorReportInput<'_>) -> Option<Table> {
    let member = examined(input)?;
    let columns = [
        "collection",
        "documents",
        "data",
        "file",
        "indexes",
        "in cache",
        "read into cache",
        "written from cache",
        "reading",
        "writing",
    ];
    let mut table = Table::new(1, &columns);
    for collection in member.collections.iter().take(ROWS_MAX) {
        table.row(collection_row(collection));
    }
    if member.collections_left_out > 0 {
        let count = format_count(member.collections_left_out);
        table.group(format!("and {count} of which nothing was asked"));
    }
    table.or_nothing()
}

fn collection_row(collection: &CollectionFacts) -> [Cell; 10] {
    let indexes = collection
        .indexes
        .iter()
        .fold(0u64, |sum, index| sum.saturating_add(index.bytes));
    let bytes = |bytes: Option<u64>| Cell::or(bytes.map(format_bytes), UNKNOWN);
    let ns = |ns: Option<u64>| Cell::or(ns.map(format_ns), UNKNOWN);
    [
        collection.namespace.as_str().into(),
        format_count(collection.documents).into(),
        format_bytes(collection.data_bytes).into(),
        format_bytes(collection.storage_bytes).into(),
        format!("{} ({})", collection.indexes.len(), format_bytes(indexes)).into(),
        bytes(collection.in_cache_bytes),
        bytes(collection.read_into_cache_bytes),
        bytes(collection.written_from_cache_bytes),
        ns(collection.reading_ns),
        ns(collection.writing_ns),
    ]
}
