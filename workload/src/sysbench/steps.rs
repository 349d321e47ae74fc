//! Defines the steps of a transaction, and the commands they send.

use seekscope_client::{BsonWriter, Request, request::Verb};

use super::settings::StepCounts;

/// The steps, in the order of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
    Commit,
}

impl Step {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PointSelect => "point select",
            Self::SimpleRange => "simple range",
            Self::SumRange => "sum range",
            Self::OrderRange => "order range",
            Self::DistinctRange => "distinct range",
            Self::IndexUpdate => "index update",
            Self::NonIndexUpdate => "non-index update",
            Self::Delete => "delete",
            Self::Insert => "insert",
            Self::Commit => "commit",
        }
    }
}

/// Returns all steps of one transaction, without the commit.
pub(super) fn steps_of(counts: &StepCounts) -> Vec<Step> {
    let repeated = [
        (Step::PointSelect, counts.point_selects),
        (Step::SimpleRange, counts.simple_ranges),
        (Step::SumRange, counts.sum_ranges),
        (Step::OrderRange, counts.order_ranges),
        (Step::DistinctRange, counts.distinct_ranges),
        (Step::IndexUpdate, counts.index_updates),
        (Step::NonIndexUpdate, counts.non_index_updates),
    ];
    let mut steps: Vec<Step> = repeated
        .into_iter()
        .flat_map(|(step, count)| std::iter::repeat_n(step, count.into()))
        .collect();
    for _ in 0..counts.replacements {
        steps.extend([Step::Delete, Step::Insert]);
    }
    steps
}

/// Ids from the first to the last, inclusive.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdRange {
    pub(super) first: i32,
    pub(super) last: i32,
}

pub(super) fn point_select(collection: &str, id: i32, request: &mut Request) {
    request.verb = Verb::Find;
    let body = request.body.begin().string("find", collection);
    body.begin_document("filter").int32("_id", id).end();
    project_only("projection", "c", body);
    body.int32("limit", 1).boolean("singleBatch", true).end();
}

pub(super) fn range(collection: &str, range: IdRange, is_sorted: bool, request: &mut Request) {
    request.verb = Verb::Find;
    let body = request.body.begin().string("find", collection);
    filter("filter", range, body);
    if is_sorted {
        body.begin_document("sort").int32("c", 1).end();
    }
    project_only("projection", "c", body);
    body.end();
}

pub(super) fn sum_range(collection: &str, range: IdRange, request: &mut Request) {
    request.verb = Verb::Aggregate;
    let body = request.body.begin().string("aggregate", collection);
    body.begin_array("pipeline").begin_document("0");
    filter("$match", range, body);
    body.end().begin_document("1");
    project_only("$project", "k", body);
    body.end().begin_document("2").begin_document("$group");
    body.null("_id").begin_document("average");
    body.string("$sum", "$k").end().end().end().end();
    body.begin_document("cursor").end().end();
}

pub(super) fn distinct_range(collection: &str, range: IdRange, request: &mut Request) {
    request.verb = Verb::Command;
    let body = request.body.begin().string("distinct", collection);
    body.string("key", "c");
    filter("query", range, body);
    body.end();
}

/// Writes the head of an insert, update or delete of one statement.
pub(super) fn write(verb: Verb, collection: &str, request: &mut Request) {
    request.verb = verb;
    let name = match verb {
        Verb::Update => "update",
        Verb::Delete => "delete",
        _ => "insert",
    };
    request.body.begin().string(name, collection);
    request.body.boolean("ordered", true).end();
    request.statement_count = 1;
}

fn filter(name: &str, range: IdRange, body: &mut BsonWriter) {
    body.begin_document(name).begin_document("_id");
    body.int32("$gte", range.first).int32("$lte", range.last);
    body.end().end();
}

fn project_only(name: &str, field: &str, body: &mut BsonWriter) {
    body.begin_document(name);
    body.int32(field, 1).int32("_id", 0).end();
}
