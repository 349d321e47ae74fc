//! Tests of [`super`]: what workloads write, and what they must not.

use bson::{Document, doc};
use seekscope_client::FailureKind;

use super::*;

fn request(verb: Verb, body: Document, statements: &[Document]) -> Request {
    let mut request = Request {
        verb,
        ..Request::default()
    };
    request.body.raw(&body.to_vec().unwrap());
    for statement in statements {
        request.statements.raw(&statement.to_vec().unwrap());
    }
    request.statement_count = u32::try_from(statements.len()).unwrap();
    request
}

fn refused(request: &Request) -> String {
    let failure = translate(request, "k").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
    failure.message
}

fn read(body: Document) -> (String, usize) {
    let request = request(Verb::Find, body, &[]);
    match translate(&request, "k").unwrap() {
        Plan::Read { statement, .. } => (statement.cql, statement.values.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_are_by_key_or_by_token() {
    let point =
        doc! { "find": "usertable", "filter": { "_id": "user1" }, "limit": 1, "singleBatch": true };
    let by_key = "SELECT * FROM \"k\".\"usertable\" WHERE \"y_id\" = ?";
    assert_eq!(read(point.clone()), (by_key.to_string(), 1));
    let mut one_field = point;
    one_field.insert("projection", doc! { "_id": 0, "field3": 1 });
    assert_eq!(read(one_field).0, by_key.replace('*', "\"field3\""));
    let scan = doc! {
        "find": "usertable", "filter": { "_id": { "$gte": "user1" } }, "sort": { "_id": 1 }, "limit": 7,
        "projection": { "field0": 1 },
    };
    let by_token = "SELECT \"y_id\", \"field0\" FROM \"k\".\"usertable\" \
                    WHERE token(\"y_id\") >= token(?) LIMIT ?";
    assert_eq!(read(scan), (by_token.to_string(), 2));
    let by_index = doc! { "find": "t", "filter": { "i": 5 } };
    assert_eq!(
        read(by_index).0,
        "SELECT * FROM \"k\".\"t\" WHERE \"i\" = ?"
    );
}

#[test]
fn writes_are_upserts_by_key() {
    let documents = [doc! { "_id": "a", "x": 1 }, doc! { "_id": "b", "x": 2 }];
    let inserts = request(Verb::Insert, doc! { "insert": "t" }, &documents);
    let Plan::Write {
        statements, model, ..
    } = translate(&inserts, "k").unwrap()
    else {
        panic!("no insert");
    };
    assert_eq!(statements.len(), 2);
    assert_eq!(model.unwrap().get_str("_id").unwrap(), "a");
    let insert = "INSERT INTO \"k\".\"t\" (\"y_id\", \"x\") VALUES (?, ?)";
    assert_eq!(statements[1].cql, insert);

    let set = doc! { "q": { "_id": "a" }, "u": { "$set": { "x": 5, "y": 6 } } };
    let updates = request(Verb::Update, doc! { "update": "t" }, &[set]);
    let Plan::Write {
        statements, model, ..
    } = translate(&updates, "k").unwrap()
    else {
        panic!("no update");
    };
    let update = "UPDATE \"k\".\"t\" SET \"x\" = ?, \"y\" = ? WHERE \"y_id\" = ?";
    assert_eq!(
        (statements[0].cql.as_str(), statements[0].values.len()),
        (update, 3)
    );
    assert!(model.is_none());

    let whole = doc! { "q": { "_id": "a" }, "u": { "_id": "a", "x": 7 }, "upsert": true };
    let replacements = request(Verb::Update, doc! { "update": "t" }, &[whole]);
    let Plan::Write { statements, .. } = translate(&replacements, "k").unwrap() else {
        panic!("no replacement");
    };
    assert_eq!(statements[0].cql, insert);
}

#[test]
fn indexes_get_names_of_their_own() {
    let keys = doc! { "key": { "i": 1 }, "name": "i_1 (ours)" };
    let body = doc! { "createIndexes": "aged", "indexes": [keys] };
    let create = request(Verb::Command, body, &[]);
    let Plan::CreateIndexes { indexes, .. } = translate(&create, "k").unwrap() else {
        panic!("no index");
    };
    assert_eq!(indexes, [("aged_i_1__ours_".to_string(), "i".to_string())]);
}

#[test]
fn what_has_no_counterpart_says_so() {
    let find = |filter: Document| request(Verb::Find, doc! { "find": "t", "filter": filter }, &[]);
    let update = |u: Document| {
        let statement = doc! { "q": { "_id": 1 }, "u": u };
        request(Verb::Update, doc! { "update": "t" }, &[statement])
    };
    let compound = doc! { "key": { "i": 1, "d": 1 }, "name": "both" };
    let index = doc! { "createIndexes": "t", "indexes": [compound] };
    for request in [
        find(doc! {}),
        find(doc! { "a": 1, "b": 2 }),
        find(doc! { "_id": { "$gte": 1 } }),
        update(doc! { "$inc": { "x": 1 } }),
        update(doc! { "x": 1 }),
        request(Verb::Command, index, &[]),
        request(Verb::Command, doc! { "ping": 1 }, &[]),
        request(Verb::Aggregate, doc! { "aggregate": "t" }, &[]),
    ] {
        assert!(refused(&request).contains("Cassandra"));
    }
    let mut cut = request(Verb::Insert, doc! { "insert": "t" }, &[doc! { "_id": 1 }]);
    cut.statements.raw(&[200, 0, 0, 0]);
    refused(&cut);
}
