//! What a reordered collection is: the same documents, options and indexes, in the order wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bson::{Bson, Document, RawDocumentBuf, doc};
use seekscope_reorder::{By, Definition, ReorderError, Step, Writers, apply, pending};

use crate::support::{Act, Bed, namespace, never};

#[tokio::test(flavor = "multi_thread")]
async fn natural_order_is_kept_on_a_standalone_server() {
    let bed = Bed::standalone().await;
    let documents = (0..3000).map(|i| doc! { "_id": (i * 7919) % 3000, "text": "x".repeat(500) });
    bed.collection("c").insert_many(documents).await.unwrap();
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { "text": 1 }, "name": "t" }] })
        .await;
    let (before, definition) = (bed.scan("c").await, bed.definition("c").await);
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let done = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert_eq!((done.documents, done.indexes), (3000, 1));
    assert!(bed.scan("c").await == before);
    let after = bed.definition("c").await;
    assert_eq!((&after.0, &after.1), (&definition.0, &definition.1));
    assert_ne!(after.2, definition.2, "it is another collection");
    assert_eq!(bed.names().await, ["c"]);
    assert_eq!(pending(&bed.server, None).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_gives_the_order() {
    let bed = Bed::replica_set().await;
    let documents =
        (0..2500).map(|i| doc! { "_id": i, "a": (i * 7919) % 50, "b": (i * 31) % 2500 });
    bed.collection("c").insert_many(documents).await.unwrap();
    let key = doc! { "a": 1, "b": -1 };
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": key.clone(), "name": "ab" }] })
        .await;
    let mut request = bed.request("c", By::Index(key.clone()), Writers::Quiesced);
    let done = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert_eq!(done.writes_seen_by, "change stream");
    let found = bed.scan("c").await;
    let order: Vec<(i32, i32)> = found
        .iter()
        .map(|d| (d.get_i32("a").unwrap(), -d.get_i32("b").unwrap()))
        .collect();
    assert!(order.is_sorted());
    assert_eq!(found.len(), 2500);
    let mut request = bed.request("c", By::Index(doc! { "b": 1 }), Writers::Quiesced);
    let refused = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap_err();
    assert!(matches!(refused, ReorderError::Refused { .. }), "{refused}");
    assert_eq!(bed.names().await, ["c"]);
}

/// One of each type that BSON has.
fn every_type() -> Document {
    doc! {
        "double": 1.5, "nan": f64::NAN, "minus zero": -0.0, "text": "ä\0b", "document": { "": { "a.b": 1 } },
        "array": [1, [2, {}], []],
        "binary": Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::UserDefined(0x80), bytes: vec![0, 255] }),
        "uuid": bson::Uuid::from_bytes([7; 16]), "undefined": Bson::Undefined,
        "object id": bson::oid::ObjectId::from_bytes([9; 12]), "true": true, "null": null,
        "date": bson::DateTime::from_millis(-5), "far date": bson::DateTime::MAX,
        "regex": Bson::RegularExpression(bson::Regex { pattern: "^a".try_into().unwrap(), options: "im".try_into().unwrap() }),
        "code": Bson::JavaScriptCode("f()".into()),
        "scoped": Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "f()".into(), scope: doc! { "x": 1 } }),
        "symbol": Bson::Symbol("s".into()), "int32": i32::MIN, "int64": i64::MAX,
        "timestamp": bson::Timestamp { time: 5, increment: 6 },
        "decimal": Bson::Decimal128("1.500".parse().unwrap()), "min": Bson::MinKey, "max": Bson::MaxKey,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_odd_names_and_the_largest_documents_stay_as_they_are() {
    let bed = Bed::replica_set().await;
    let mut all = every_type();
    all.insert("_id", doc! { "every": ["type", 1.0] });
    let odd = doc! { "_id": "odd", "a.b": { "$c": 1, "": 2, "d..": { "$inc": 3 } }, "x$": 1 };
    let id_last = doc! { "z": 1, "_id": Bson::MaxKey };
    bed.collection("c")
        .insert_many([all, odd, id_last])
        .await
        .unwrap();
    for i in 0..3 {
        let text = "y".repeat((16 << 20) - 64);
        bed.collection("c")
            .insert_one(doc! { "_id": i, "t": text })
            .await
            .unwrap();
    }
    bed.collection("c")
        .insert_one(doc! { "_id": 1.5 })
        .await
        .unwrap();
    let before: Vec<RawDocumentBuf> = bed.scan("c").await;
    assert_eq!(before.len(), 7);
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    let after = bed.scan("c").await;
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(a, b)| a.as_bytes() == b.as_bytes())
    );
    assert_eq!(after.len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn options_and_indexes_are_equal() {
    let bed = Bed::replica_set().await;
    let schema =
        doc! { "$jsonSchema": { "required": ["a"], "properties": { "a": { "bsonType": "int" } } } };
    bed.run(
        doc! { "create": "c", "validator": schema, "validationLevel": "moderate",
        "validationAction": "error", "collation": { "locale": "de", "strength": 2 } },
    )
    .await;
    let de = doc! { "locale": "de", "strength": 2 };
    bed.run(doc! { "createIndexes": "c", "indexes": [
        { "key": { "a": 1 }, "name": "unique", "unique": true },
        { "key": { "t": 1 }, "name": "ttl", "expireAfterSeconds": 86_400 },
        { "key": { "p": 1 }, "name": "partial", "partialFilterExpression": { "p": { "$gt": 5 } } },
        { "key": { "s": -1, "b.c": 1 }, "name": "sparse", "sparse": true },
        { "key": { "h": 1 }, "name": "hidden", "hidden": true },
        { "key": { "$**": 1 }, "name": "wildcard" },
        { "key": { "x": 1 }, "name": "simple", "collation": { "locale": "simple" } },
        { "key": { "y": 1 }, "name": "other", "collation": { "locale": "fr" } },
        { "key": { "z": 1 }, "name": "same", "collation": de },
    ] })
    .await;
    let documents =
        (0..500).map(|i| doc! { "_id": format!("K{i}"), "a": i, "t": bson::DateTime::now() });
    bed.collection("c").insert_many(documents).await.unwrap();
    // Valid no more by the time of the copy.
    bed.run(doc! { "collMod": "c", "validator": { "never": true } })
        .await;
    let before = bed.definition("c").await;
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let done = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert_eq!((done.documents, done.indexes), (500, 9));
    let after = bed.definition("c").await;
    assert_eq!(after.0, before.0);
    assert_eq!(after.1, before.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capped_collection_stays_one_and_needs_quiet() {
    let bed = Bed::standalone().await;
    bed.run(doc! { "create": "c", "capped": true, "size": 1 << 20, "max": 100 })
        .await;
    let documents = (0..250).map(|i| doc! { "_id": (i * 7919) % 250 });
    bed.collection("c").insert_many(documents).await.unwrap();
    let (before, definition) = (bed.scan("c").await, bed.definition("c").await);
    assert_eq!(before.len(), 100);
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert!(bed.scan("c").await == before);
    assert_eq!(bed.definition("c").await.0, definition.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reordered_is_refused_with_the_reason() {
    let bed = Bed::standalone().await;
    bed.collection("c")
        .insert_one(doc! { "_id": 1 })
        .await
        .unwrap();
    bed.run(doc! { "create": "view", "viewOn": "c", "pipeline": [] })
        .await;
    bed.run(doc! { "create": "series", "timeseries": { "timeField": "t" } })
        .await;
    let names = bed.names().await;
    for (name, why) in [
        ("view", "view"),
        ("series", "time-series"),
        ("nowhere", "no collection"),
        ("seekscope_reorder", "seekscope's own"),
    ] {
        let mut request = bed.request(name, By::Natural, Writers::Quiesced);
        let refused = apply(&bed.server, &mut request, &(), never())
            .await
            .unwrap_err();
        assert!(matches!(refused, ReorderError::Refused { .. }), "{refused}");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let mut request = bed.request("c", By::Natural, Writers::BlockedByServer);
    let refused = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("setUserWriteBlockMode"),
        "{refused}"
    );
    // An index of arrays: a document would have several places.
    bed.collection("c")
        .insert_one(doc! { "_id": 2, "tags": ["a", "b"], "one": 1 })
        .await
        .unwrap();
    for field in ["tags", "one"] {
        bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { field: 1 }, "name": field }] })
            .await;
    }
    let by = By::Index(doc! { "tags": 1 });
    let mut request = bed.request("c", by, Writers::Quiesced);
    let refused = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap_err();
    assert!(matches!(refused, ReorderError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("multikey"), "{refused}");
    let definition = Definition::read(&bed.server, &namespace("c"))
        .await
        .unwrap();
    assert_eq!(
        definition.refusal(&By::Index(doc! { "one": 1 }), true),
        None
    );
    // Somebody's collection that bears the copy's name.
    bed.collection("seekscope_reorder.c")
        .insert_one(doc! { "mine": 1 })
        .await
        .unwrap();
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let refused = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap_err();
    assert!(matches!(refused, ReorderError::Refused { .. }), "{refused}");
    bed.collection("seekscope_reorder.c").drop().await.unwrap();
    assert_eq!(bed.names().await, names);
    assert_eq!(
        pending(&bed.server, Some(&namespace("c"))).await.unwrap(),
        []
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_the_server_takes_no_more_is_told_before_anything_is_copied() {
    let bed = Bed::replica_set().await;
    let documents = (0..500).map(|i| doc! { "_id": i, "a": i });
    bed.collection("c").insert_many(documents).await.unwrap();
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "soon" }] })
        .await;
    // It can be told of an index, but no index is made with it.
    bed.run(doc! { "collMod": "c", "index": { "name": "soon", "prepareUnique": true } })
        .await;
    let before = bed.definition("c").await;
    let copying = Arc::new(AtomicBool::new(false));
    let copies = copying.clone();
    let act = Act::at(Step::Copying, async move {
        copies.store(true, Ordering::Relaxed);
    });
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let refused = apply(&bed.server, &mut request, &act, never())
        .await
        .unwrap_err();
    assert!(matches!(refused, ReorderError::Refused { .. }), "{refused}");
    let said = refused.to_string();
    for words in ["index soon", "prepareUnique", "drop that index"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!copying.load(Ordering::Relaxed));
    assert_eq!(bed.names().await, ["c"]);
    assert_eq!(bed.definition("c").await, before);
    assert_eq!(pending(&bed.server, None).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_collection_is_reordered_too() {
    let bed = Bed::replica_set().await;
    bed.run(doc! { "create": "c" }).await;
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let done = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert_eq!(done.documents, 0);
    assert_eq!(bed.names().await, ["c"]);
}
