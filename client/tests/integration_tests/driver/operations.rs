//! What is asked for is done, and counted as the server counts it.

use bson::{RawDocument, doc};
use seekscope_client::FailureKind;
use seekscope_client::request::{Transaction, Verb};

use super::fixture::{TestServer, done, failed, first, number, request, send, within};

#[tokio::test]
async fn point_operations() {
    let server = TestServer::start(&[]);
    let mut client = server.client().await;
    let document = doc! { "_id": "user1", "field0": "x" };
    let reply = done(
        &mut client,
        Verb::Insert,
        doc! { "insert": "c" },
        std::slice::from_ref(&document),
    )
    .await;
    assert_eq!(reply.matched, 1);
    let find = doc! { "find": "c", "filter": { "_id": "user1" }, "limit": 1, "singleBatch": true };
    let reply = done(&mut client, Verb::Find, find.clone(), &[]).await;
    let bytes = document.to_vec().unwrap();
    assert_eq!((reply.returned, reply.bytes), (1, bytes.len() as u64));
    assert_eq!(first(&reply), RawDocument::from_bytes(&bytes).unwrap());

    let delete = doc! { "delete": "c" };
    let one = [doc! { "q": { "_id": "user1" }, "limit": 1 }];
    for deleted in [1, 0] {
        let reply = done(&mut client, Verb::Delete, delete.clone(), &one).await;
        assert_eq!(reply.matched, deleted);
    }
    let reply = done(&mut client, Verb::Find, find, &[]).await;
    assert_eq!((reply.returned, reply.first), (0, None));
}

#[tokio::test]
async fn updates_of_every_kind() {
    let server = TestServer::start(&[]);
    let mut client = server.client().await;
    let document = [doc! { "_id": "user1", "field0": "x" }];
    done(&mut client, Verb::Insert, doc! { "insert": "c" }, &document).await;
    let body = doc! { "update": "c", "ordered": true };
    for (statement, matched, modified) in [
        (
            doc! { "q": { "_id": "user1" }, "u": { "$set": { "field0": "y" } } },
            1,
            1,
        ),
        (
            doc! { "q": { "_id": "user1" }, "u": { "$set": { "field0": "y" } } },
            1,
            0,
        ),
        (
            doc! { "q": { "_id": "nobody" }, "u": { "$set": { "field0": "y" } } },
            0,
            0,
        ),
        (
            doc! { "q": { "_id": "user2" }, "u": { "n": 1 }, "upsert": true },
            1,
            0,
        ),
        (
            doc! { "q": { "_id": "user2" }, "u": { "n": 2 }, "multi": false },
            1,
            1,
        ),
        (
            doc! { "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true },
            2,
            2,
        ),
        (
            doc! { "q": { "_id": "user1" }, "u": [{ "$set": { "n": 9 } }] },
            1,
            1,
        ),
    ] {
        let reply = done(
            &mut client,
            Verb::Update,
            body.clone(),
            std::slice::from_ref(&statement),
        )
        .await;
        assert_eq!(
            (reply.matched, reply.modified),
            (matched, modified),
            "{statement}"
        );
    }
    let several = [
        doc! { "q": { "_id": "user1" }, "u": { "$set": { "n": 1 } } },
        doc! { "q": { "_id": "user2" }, "u": { "$set": { "n": 3 } } },
    ];
    let reply = done(&mut client, Verb::Update, body, &several).await;
    assert_eq!((reply.matched, reply.modified), (2, 1));

    let distinct = doc! { "distinct": "c", "key": "n", "query": {} };
    let reply = done(&mut client, Verb::Command, distinct, &[]).await;
    let body = reply.body.unwrap();
    let values = body.get_array("values").unwrap().into_iter();
    assert_eq!(values.count(), 2);
}

#[tokio::test]
async fn cursors_are_read_to_their_end_unless_told_otherwise() {
    let server = TestServer::start(&[]);
    let mut client = server.client().await;
    let documents: Vec<_> = (0..500).map(|n| doc! { "_id": n, "k": n % 7 }).collect();
    done(
        &mut client,
        Verb::Insert,
        doc! { "insert": "c" },
        &documents,
    )
    .await;
    for (body, returned, id) in [
        (
            doc! { "find": "c", "filter": { "_id": { "$gte": 100 } }, "batchSize": 30, "sort": { "_id": 1 } },
            400,
            100,
        ),
        (
            doc! { "find": "c", "limit": 50, "batchSize": 20, "sort": { "_id": -1 } },
            50,
            499,
        ),
        (
            doc! { "find": "c", "skip": 490, "sort": { "_id": 1 }, "singleBatch": true },
            10,
            490,
        ),
        (
            doc! { "find": "c", "sort": { "_id": 1 }, "singleBatch": true },
            101,
            0,
        ),
    ] {
        let reply = done(&mut client, Verb::Find, body.clone(), &[]).await;
        assert_eq!(reply.returned, returned, "{body}");
        assert_eq!(number(&reply, "_id"), id, "{body}");
    }
    let pipeline = [
        doc! { "$match": { "_id": { "$lt": 70 } } },
        doc! { "$group": { "_id": bson::Bson::Null, "sum": { "$sum": "$k" } } },
    ];
    let body = doc! { "aggregate": "c", "pipeline": pipeline.to_vec(), "cursor": {} };
    let reply = done(&mut client, Verb::Aggregate, body, &[]).await;
    assert_eq!(number(&reply, "sum"), 210);
}

#[tokio::test]
async fn a_batch_is_done_up_to_or_around_a_duplicate() {
    let server = TestServer::start(&[]);
    let mut client = server.client().await;
    let one = [doc! { "_id": 3 }];
    done(&mut client, Verb::Insert, doc! { "insert": "c" }, &one).await;
    let batch: Vec<_> = (1..=5).map(|n| doc! { "_id": n }).collect();
    let ordered = doc! { "insert": "c", "ordered": true };
    let failure = failed(&mut client, Verb::Insert, ordered, &batch).await;
    assert_eq!(
        (
            failure.kind,
            failure.code,
            failure.name.as_str(),
            failure.done
        ),
        (FailureKind::Duplicate, Some(11000), "DuplicateKey", 2)
    );
    let unordered = doc! { "insert": "c", "ordered": false };
    let failure = failed(&mut client, Verb::Insert, unordered, &batch).await;
    assert_eq!((failure.kind, failure.done), (FailureKind::Duplicate, 2));
    let reply = done(&mut client, Verb::Find, doc! { "find": "c" }, &[]).await;
    assert_eq!(reply.returned, 5);
    let failure = failed(&mut client, Verb::Insert, doc! { "insert": "c" }, &one).await;
    assert_eq!((failure.kind, failure.done), (FailureKind::Duplicate, 0));

    // Several updates in one command: the second takes a key that is there.
    let upsert = |id: i32| doc! { "q": { "x": id }, "u": { "_id": id }, "upsert": true };
    let several = [upsert(6), upsert(3), upsert(7)];
    for (ordered, done) in [(true, 1), (false, 2)] {
        let body = doc! { "update": "d", "ordered": ordered };
        self::done(
            &mut client,
            Verb::Command,
            doc! { "create": format!("d{ordered}") },
            &[],
        )
        .await;
        let clean = doc! { "delete": "d" };
        let all = [doc! { "q": {}, "limit": 0 }];
        self::done(&mut client, Verb::Delete, clean, &all).await;
        self::done(&mut client, Verb::Insert, doc! { "insert": "d" }, &one).await;
        let failure = failed(&mut client, Verb::Update, body, &several).await;
        assert_eq!((failure.kind, failure.done), (FailureKind::Duplicate, done));
    }
}

#[tokio::test]
async fn transactions_are_committed_aborted_or_forgotten() {
    let server = TestServer::start(&[]);
    let mut client = server.client().await;
    let mut other = server.client().await;
    done(&mut other, Verb::Command, doc! { "create": "c" }, &[]).await;
    let insert = |id: i32| request(Verb::Insert, doc! { "insert": "c" }, &[doc! { "_id": id }]);
    let end = |name: &str| request(Verb::Command, doc! { name: 1 }, &[]);
    for (ids, end, visible) in [
        ([1, 2], end("commitTransaction"), 2),
        ([3, 4], end("abortTransaction"), 2),
    ] {
        let started = within(insert(ids[0]), Transaction::Start);
        send(&mut client, &started).await.unwrap();
        let continued = within(insert(ids[1]), Transaction::Continue);
        send(&mut client, &continued).await.unwrap();
        let read = within(
            request(Verb::Find, doc! { "find": "c" }, &[]),
            Transaction::Continue,
        );
        let inside = send(&mut client, &read).await.unwrap();
        send(&mut client, &within(end, Transaction::End))
            .await
            .unwrap();
        let outside = done(&mut other, Verb::Find, doc! { "find": "c" }, &[]).await;
        assert_eq!(outside.returned, visible);
        assert!(inside.returned >= 2);
    }
    // One that its actor gave up does not stand in the way of the next.
    send(&mut client, &within(insert(5), Transaction::Start))
        .await
        .unwrap();
    send(&mut client, &within(insert(6), Transaction::Start))
        .await
        .unwrap();
    send(
        &mut client,
        &within(end("commitTransaction"), Transaction::End),
    )
    .await
    .unwrap();
    let reply = done(
        &mut other,
        Verb::Find,
        doc! { "find": "c", "filter": { "_id": { "$gte": 5 } } },
        &[],
    )
    .await;
    assert_eq!(number(&reply, "_id"), 6);
    assert_eq!(reply.returned, 1);
    let stray = within(insert(7), Transaction::Continue);
    let failure = send(&mut client, &stray).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
}

#[tokio::test]
async fn every_virtual_user_has_its_connection() {
    let server = TestServer::start(&[]);
    let uri = server.uri("", "directConnection=true&maxPoolSize=2");
    let target = seekscope_client::DriverTarget::new(&uri, "d");
    let factory: &dyn seekscope_client::AsyncClientFactory = &target;
    let mut clients = factory.connect(40).await.unwrap();
    assert_eq!(clients.len(), 40);
    let status = doc! { "serverStatus": 1 };
    let mut other = server.client().await;
    let reply = done(&mut other, Verb::Command, status, &[]).await;
    let current = reply
        .body
        .unwrap()
        .get_document("connections")
        .unwrap()
        .get_i32("current")
        .unwrap();
    assert!(current >= 40, "{current}");
    done(&mut clients[39], Verb::Find, doc! { "find": "c" }, &[]).await;
}
