//! Others use the collection meanwhile: they write, drop it, rename it, reorder it too.

use std::collections::HashMap;
use std::sync::Arc;

use bson::{Document, RawDocumentBuf, doc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use seekscope_reorder::{
    By, Judge, ReorderError, Step, WriterControl, Writers, apply, pending, resume,
};
use seekscope_server::Namespace;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::support::{Act, Bed, namespace, never};

/// Writers hold the lock for reading while a write is under way.
struct Gate {
    lock: Arc<RwLock<()>>,
    closed: Option<OwnedRwLockWriteGuard<()>>,
}

impl WriterControl for Gate {
    fn stop(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async {
            self.closed = Some(self.lock.clone().write_owned().await);
            Ok(())
        }
        .boxed()
    }

    fn go_on(&mut self) -> BoxFuture<'_, Result<(), String>> {
        self.closed = None;
        async { Ok(()) }.boxed()
    }
}

/// Writes to keys of its own until told to end; returns what should be there of them.
async fn write(
    bed: Arc<Bed>,
    gate: Arc<RwLock<()>>,
    end: Arc<RwLock<bool>>,
    writer: i32,
) -> HashMap<i32, Document> {
    let collection = bed.collection("c");
    let mut expected = HashMap::new();
    let mut n = 0;
    while !*end.read().await {
        let _open = gate.read().await;
        n += 1;
        let (id, other) = (
            writer * 1_000_000 + n % 400,
            writer * 1_000_000 + (n + 1) % 400,
        );
        // Held by no document, then by this, and soon by the next: the order of changes matters to the
        // unique index.
        let unique = format!("{writer}-{}", n % 7);
        let holder: Vec<i32> = expected
            .iter()
            .filter(|(_, d): &(_, &Document)| d.get_str("u").is_ok_and(|u| u == unique))
            .map(|(i, _)| *i)
            .collect();
        for holder in holder {
            collection.delete_one(doc! { "_id": holder }).await.unwrap();
            expected.remove(&holder);
        }
        let document = doc! { "_id": id, "u": unique, "n": n, "t": "z".repeat(n as usize % 900) };
        collection
            .replace_one(doc! { "_id": id }, &document)
            .upsert(true)
            .await
            .unwrap();
        expected.insert(id, document);
        if n % 5 == 0 && expected.contains_key(&other) {
            collection.delete_one(doc! { "_id": other }).await.unwrap();
            expected.remove(&other);
        }
    }
    expected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_acknowledged_write_is_there_once() {
    let bed = Arc::new(Bed::replica_set().await);
    let documents =
        (0..20_000).map(|i| doc! { "_id": -1 - i, "u": format!("old{i}"), "t": "x".repeat(700) });
    bed.collection("c").insert_many(documents).await.unwrap();
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { "u": 1 }, "name": "u", "unique": true }] }).await;
    let (gate, end) = (Arc::new(RwLock::new(())), Arc::new(RwLock::new(false)));
    let writers: Vec<_> = (1..4)
        .map(|writer| tokio::spawn(write(bed.clone(), gate.clone(), end.clone(), writer)))
        .collect();
    let control = Gate {
        lock: gate.clone(),
        closed: None,
    };
    let mut request = bed.request("c", By::Natural, Writers::Paused(Box::new(control)));
    let done = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    // They go on to write afterwards, into the copy.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    *end.write().await = true;
    let mut expected = HashMap::new();
    for writer in writers {
        expected.extend(writer.await.unwrap());
    }
    assert!(done.applied_changes > 0 && done.blocked_s > 0.0, "{done:?}");
    let found = bed.scan("c").await;
    let mut news: HashMap<i32, Document> = HashMap::new();
    let mut old = 0;
    for document in &found {
        let document: Document = document.try_into().unwrap();
        match document.get_i32("_id").unwrap() {
            ..0 => old += 1,
            id => assert!(news.insert(id, document).is_none(), "{id} is there twice"),
        }
    }
    assert_eq!(old, 20_000);
    assert_eq!(news.len(), expected.len());
    for (id, document) in &expected {
        assert_eq!(news.get(id), Some(document), "{id}");
    }
    assert_eq!(bed.names().await, ["c"]);
}

async fn filled(bed: &Bed) -> Vec<RawDocumentBuf> {
    let documents = (0..2000).map(|i| doc! { "_id": i, "t": "x".repeat(100) });
    bed.collection("c").insert_many(documents).await.unwrap();
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { "t": 1 }, "name": "t" }] })
        .await;
    bed.scan("c").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_against_the_promise_ends_it() {
    // On a standalone at any time, on a replica set in the last moment.
    for (bed, step) in [
        (Bed::standalone().await, Step::Copying),
        (Bed::standalone().await, Step::BuildingIndexes),
        (Bed::replica_set().await, Step::Swapping),
    ] {
        filled(&bed).await;
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        let collection = bed.collection("c");
        let act = Act::at(step, async move {
            collection
                .update_one(doc! { "_id": 7 }, doc! { "$set": { "t": "new" } })
                .await
                .unwrap();
        });
        let error = apply(&bed.server, &mut request, &act, never())
            .await
            .unwrap_err();
        assert!(
            matches!(error, ReorderError::Aborted { .. }),
            "{step}: {error}"
        );
        let after = bed
            .collection("c")
            .find_one(doc! { "_id": 7 })
            .await
            .unwrap()
            .unwrap();
        assert!(after.get_str("t").is_ok_and(|t| t == "new"), "{step}");
        assert_eq!(bed.names().await, ["c"], "{step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_before_the_last_moment_are_brought_over() {
    let bed = Bed::replica_set().await;
    filled(&bed).await;
    let collection = bed.collection("c");
    let act = Act::at(Step::BuildingIndexes, async move {
        collection.delete_one(doc! { "_id": 5 }).await.unwrap();
        // The same key for the server, of another type.
        collection.delete_one(doc! { "_id": 6 }).await.unwrap();
        collection
            .insert_one(doc! { "_id": 6.0, "$x": 1, "a.b": 2 })
            .await
            .unwrap();
    });
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    apply(&bed.server, &mut request, &act, never())
        .await
        .unwrap();
    let found = bed
        .collection("c")
        .find_one(doc! { "_id": 6 })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found, doc! { "_id": 6.0, "$x": 1, "a.b": 2 });
    assert_eq!(bed.scan("c").await.len(), 1999);
}

/// A document that moved to the end would be read there by every scan from then on.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_brought_over_keeps_its_place() {
    let bed = Bed::replica_set().await;
    filled(&bed).await;
    let collection = bed.collection("c");
    let act = Act::at(Step::BuildingIndexes, async move {
        for id in (0..2000).step_by(7) {
            let set = doc! { "$set": { "t": format!("changed {id}"), "n": id } };
            collection
                .update_one(doc! { "_id": id }, set)
                .await
                .unwrap();
        }
    });
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let done = apply(&bed.server, &mut request, &act, never())
        .await
        .unwrap();
    assert_eq!(done.applied_changes, 286, "none of them twice");
    let found = bed.scan("c").await;
    let ids: Vec<i32> = found.iter().map(|d| d.get_i32("_id").unwrap()).collect();
    assert_eq!(ids, (0..2000).collect::<Vec<i32>>());
    let changed = found.iter().filter(|d| d.get("n").unwrap().is_some());
    assert_eq!(changed.count(), 286);
}

struct NeverGoodEnough;

impl Judge for NeverGoodEnough {
    fn judge<'a>(
        &'a mut self,
        copy: &'a Namespace,
        changes: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        assert_eq!(changes, 0);
        assert_eq!(copy.to_string(), "d.seekscope_reorder.c");
        async { Err("it is no better".into()) }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_no_better_does_not_take_its_place() {
    for bed in [Bed::standalone().await, Bed::replica_set().await] {
        let before = filled(&bed).await;
        let definition = bed.definition("c").await;
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        request.judge = Some(Box::new(NeverGoodEnough));
        let error = apply(&bed.server, &mut request, &(), never())
            .await
            .unwrap_err();
        assert!(
            matches!(&error, ReorderError::NoBetter { why, .. } if why == "it is no better"),
            "{error}"
        );
        assert_eq!(bed.names().await, ["c"]);
        assert!(bed.scan("c").await == before);
        assert_eq!(bed.definition("c").await, definition);
    }
}

/// What was forced or ordered by an index when it began is not thrown away for its order by `resume`, which is
/// told neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_judged_on_resume_as_it_was_begun() {
    let by_index = || By::Index(doc! { "t": 1 });
    for (by, begun, resumed, is_taken) in [
        (By::Natural, true, false, true),
        (By::Natural, false, true, true),
        (by_index(), false, false, true),
        (By::Natural, false, false, false),
    ] {
        let bed = Bed::replica_set().await;
        filled(&bed).await;
        let mut request = bed.request("c", by, Writers::Quiesced);
        request.force = begun;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let act = Act::at(Step::CatchingUp, async move {
            sender.send(()).unwrap();
        });
        tokio::select! {
            biased;
            _ = receiver => {}
            done = apply(&bed.server, &mut request, &act, never()) => panic!("{done:?}"),
        }
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        request.force = resumed;
        request.judge = Some(Box::new(NeverGoodEnough));
        let done = resume(&bed.server, &mut request, &(), never()).await;
        match done {
            Ok(done) => assert!(is_taken, "{done:?}"),
            Err(ReorderError::NoBetter { .. }) => assert!(!is_taken),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(bed.names().await, ["c"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_or_renamed_by_others_it_is_left_to_them() {
    for (bed, step) in [
        (Bed::standalone().await, Step::Copying),
        (Bed::standalone().await, Step::Verifying),
        (Bed::replica_set().await, Step::Copying),
        (Bed::replica_set().await, Step::CatchingUp),
        (Bed::replica_set().await, Step::Swapping),
    ] {
        let before = filled(&bed).await;
        let admin = bed.server.clone();
        let rename = Act::at(step, async move {
            let rename = doc! { "renameCollection": "d.c", "to": "d.theirs" };
            admin.command("admin", rename).await.unwrap();
        });
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        let error = apply(&bed.server, &mut request, &rename, never())
            .await
            .unwrap_err();
        assert_eq!(bed.names().await, ["theirs"], "{step}: {error}");
        assert!(bed.scan("theirs").await == before, "{step}");

        filled(&bed).await;
        let collection = bed.collection("c");
        let drop_it = Act::at(step, async move {
            collection.drop().await.unwrap();
            collection
                .insert_one(doc! { "_id": "new one" })
                .await
                .unwrap();
        });
        let error = apply(&bed.server, &mut request, &drop_it, never())
            .await
            .unwrap_err();
        assert_eq!(bed.names().await, ["c", "theirs"], "{step}: {error}");
        assert_eq!(bed.scan("c").await.len(), 1, "{step}");
        assert_eq!(pending(&bed.server, None).await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_are_refused() {
    let bed = Bed::replica_set().await;
    filled(&bed).await;
    let mut second = bed.request("c", By::Natural, Writers::Quiesced);
    let server = bed.server.clone();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let act = Act::at(Step::Verifying, async move {
        sender
            .send(apply(&server, &mut second, &(), never()).await)
            .unwrap();
        let found = pending(&server, None).await.unwrap();
        assert!(found.len() == 1 && found[0].alive && found[0].namespace == namespace("c"));
    });
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    apply(&bed.server, &mut request, &act, never())
        .await
        .unwrap();
    let error = receiver.recv().await.unwrap().unwrap_err();
    assert!(matches!(error, ReorderError::Busy { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_cannot_be_built_rolls_back() {
    let bed = Bed::replica_set().await;
    let before = filled(&bed).await;
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { "_id": 1, "t": 1 }, "name": "u", "unique": true },
        { "key": { "u": 1 }, "name": "unique", "unique": true, "sparse": true }] }).await;
    let copy = bed.collection("seekscope_reorder.c");
    let act = Act::at(Step::BuildingIndexes, async move {
        copy.insert_many([doc! { "u": "same" }, doc! { "u": "same" }])
            .await
            .unwrap();
    });
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let error = apply(&bed.server, &mut request, &act, never())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("same"),
        "the value is named: {error}"
    );
    assert_eq!(bed.names().await, ["c"]);
    assert!(bed.scan("c").await == before);
}
