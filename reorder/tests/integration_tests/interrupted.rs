//! Dropped at any step, as if killed: resumed or rolled back, nothing is lost and nothing left behind.

use std::process::Command;
use std::sync::{Arc, Mutex};

use bson::{RawDocumentBuf, doc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use seekscope_reorder::{
    By, Phase, ReorderError, RolledBack, Step, WriterControl, Writers, apply, pending, resume,
    rollback,
};

use crate::support::{Act, Bed, namespace, never};

const STEPS: [Step; 8] = [
    Step::Trying,
    Step::Copying,
    Step::Verifying,
    Step::BuildingIndexes,
    Step::CatchingUp,
    Step::LastMoment,
    Step::Swapping,
    Step::CleaningUp,
];

async fn filled(bed: &Bed) -> Vec<RawDocumentBuf> {
    let documents =
        (0..3000).map(|i| doc! { "_id": i, "a": (i * 7919) % 3000, "t": "x".repeat(300) });
    bed.collection("c").insert_many(documents).await.unwrap();
    bed.run(
        doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" },
        { "key": { "at": 1 }, "name": "ttl", "expireAfterSeconds": 3600 }] },
    )
    .await;
    bed.scan("c").await
}

/// Reorders until a step begins, and is then no more.
async fn interrupt(bed: &Bed, step: Step) -> bool {
    interrupt_with(bed, step, Writers::Quiesced).await
}

async fn interrupt_with(bed: &Bed, step: Step, writers: Writers) -> bool {
    let mut request = bed.request("c", By::Index(doc! { "a": 1 }), writers);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let act = Act::at(step, async move {
        sender.send(()).unwrap();
    });
    tokio::select! {
        biased;
        _ = receiver => true,
        done = apply(&bed.server, &mut request, &act, never()) => {
            done.unwrap();
            false
        }
    }
}

fn sorted(mut documents: Vec<RawDocumentBuf>) -> Vec<RawDocumentBuf> {
    documents.sort_by_key(|d| d.get_i32("_id").unwrap());
    documents
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_from_any_step() {
    for replica_set in [true, false] {
        for step in STEPS {
            let bed = if replica_set {
                Bed::replica_set().await
            } else {
                Bed::standalone().await
            };
            let before = filled(&bed).await;
            let definition = bed.definition("c").await;
            if !interrupt(&bed, step).await {
                continue; // The step has no part in it.
            }
            let found = pending(&bed.server, None).await.unwrap();
            if found.is_empty() && step == Step::CleaningUp {
                assert_eq!(bed.names().await, ["c"]);
                continue;
            }
            assert!(found.len() == 1 && !found[0].alive, "{step}: {found:?}");
            let mut expected = before;
            if replica_set && step < Step::CleaningUp {
                // Writers went on: this is to be found afterwards.
                let all = bed.collection("c");
                all.delete_one(doc! { "_id": 0 }).await.unwrap();
                all.insert_one(doc! { "_id": 5000, "a": 5000 })
                    .await
                    .unwrap();
                expected = bed.scan("c").await;
            }
            let mut request = bed.request("c", By::Natural, Writers::Quiesced);
            let again = apply(&bed.server, &mut request, &(), never())
                .await
                .unwrap_err();
            assert!(
                matches!(again, ReorderError::Unfinished { .. }),
                "{step}: {again}"
            );
            let done = resume(&bed.server, &mut request, &(), never())
                .await
                .unwrap();
            // That a swap is about to begin may have been on its way to the server when it was looked at.
            let mut recorded = vec![found[0].phase.name()];
            if step == Step::Swapping {
                recorded.push(Phase::Swapping.name());
            }
            let resumed_from = done.resumed_from.as_deref().unwrap();
            assert!(
                recorded.contains(&resumed_from),
                "{step}: {resumed_from}, not {recorded:?}"
            );
            let after = bed.scan("c").await;
            let order: Vec<i32> = after.iter().map(|d| d.get_i32("a").unwrap()).collect();
            assert!(order.is_sorted(), "{step}");
            assert!(sorted(after) == sorted(expected), "{step}");
            assert_eq!(bed.names().await, ["c"], "{step}");
            let reordered = bed.definition("c").await;
            assert_eq!(
                (&reordered.0, &reordered.1),
                (&definition.0, &definition.1),
                "{step}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rolled_back_from_any_step() {
    for step in STEPS {
        let bed = Bed::replica_set().await;
        let before = filled(&bed).await;
        let definition = bed.definition("c").await;
        assert!(interrupt(&bed, step).await, "{step}");
        let found = pending(&bed.server, Some(&namespace("c"))).await.unwrap();
        if found.is_empty() && step == Step::CleaningUp {
            // The last command was under way and has done its work.
            assert_eq!(bed.names().await, ["c"]);
            continue;
        }
        let phase = found[0].phase;
        let rolled_back = rollback(&bed.server, &namespace("c"), &()).await.unwrap();
        assert_eq!(bed.names().await, ["c"], "{step}");
        if step == Step::CleaningUp {
            assert_eq!(
                (rolled_back, phase),
                (RolledBack::AlreadySwapped, Phase::Swapping)
            );
            assert!(sorted(bed.scan("c").await) == sorted(before));
        } else {
            assert_eq!(rolled_back, RolledBack::Original, "{step}");
            assert!(bed.scan("c").await == before, "{step}");
            assert_eq!(bed.definition("c").await, definition, "{step}");
        }
        let none = rollback(&bed.server, &namespace("c"), &())
            .await
            .unwrap_err();
        assert!(
            matches!(none, ReorderError::NothingPending { .. }),
            "{none}"
        );
    }
}

/// How often writers were stopped, and went on.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<(u32, u32)>>);

impl Told {
    fn so_far(&self) -> (u32, u32) {
        *self.0.lock().unwrap()
    }

    fn writers(&self) -> Writers {
        Writers::Paused(Box::new(self.clone()))
    }
}

impl WriterControl for Told {
    fn stop(&mut self) -> BoxFuture<'_, Result<(), String>> {
        self.0.lock().unwrap().0 += 1;
        async { Ok(()) }.boxed()
    }

    fn go_on(&mut self) -> BoxFuture<'_, Result<(), String>> {
        self.0.lock().unwrap().1 += 1;
        async { Ok(()) }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn that_writers_were_paused_is_known_afterwards() {
    for resumed in [true, false] {
        let bed = Bed::replica_set().await;
        filled(&bed).await;
        let told = Told::default();
        assert!(interrupt_with(&bed, Step::CatchingUp, told.writers()).await);
        let found = pending(&bed.server, None).await.unwrap();
        assert!(!found[0].writers_paused, "not yet");
        rollback(&bed.server, &namespace("c"), &()).await.unwrap();
        assert!(interrupt_with(&bed, Step::Swapping, told.writers()).await);
        assert_eq!(told.so_far(), (1, 0));
        let found = pending(&bed.server, None).await.unwrap();
        assert!(found[0].writers_paused);
        if resumed {
            let mut request = bed.request("c", By::Natural, told.writers());
            resume(&bed.server, &mut request, &(), never())
                .await
                .unwrap();
            assert_eq!(told.so_far(), (2, 2), "at once, and again at the end");
        } else {
            rollback(&bed.server, &namespace("c"), &()).await.unwrap();
            assert_eq!(told.so_far(), (1, 0), "for the caller, who knows how");
        }
        assert_eq!(bed.names().await, ["c"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_do_not_go_on_stay_recorded() {
    struct Stuck;
    impl WriterControl for Stuck {
        fn stop(&mut self) -> BoxFuture<'_, Result<(), String>> {
            async { Ok(()) }.boxed()
        }

        fn go_on(&mut self) -> BoxFuture<'_, Result<(), String>> {
            async { Err("stuck".into()) }.boxed()
        }
    }
    let bed = Bed::replica_set().await;
    let before = filled(&bed).await;
    let mut request = bed.request("c", By::Natural, Writers::Paused(Box::new(Stuck)));
    let error = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap_err();
    assert!(
        matches!(error, ReorderError::WritersStillStopped { .. }),
        "{error}"
    );
    assert!(bed.scan("c").await == before, "swapped all the same");
    let found = pending(&bed.server, None).await.unwrap();
    assert!(found[0].writers_paused);
    let rolled_back = rollback(&bed.server, &namespace("c"), &()).await.unwrap();
    assert_eq!(rolled_back, RolledBack::AlreadySwapped);
    assert_eq!(bed.names().await, ["c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_said_in_a_sentence_with_what_to_do() {
    for step in [Step::Copying, Step::CatchingUp, Step::Swapping] {
        let bed = Bed::replica_set().await;
        filled(&bed).await;
        let pid = bed.pid();
        let act = Act::at(step, async move {
            let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
            assert!(kill.unwrap().success());
        });
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        let error = apply(&bed.server, &mut request, &act, never())
            .await
            .unwrap_err();
        let said = error.to_string();
        assert!(said.contains("--resume"), "{step}: {said}");
        for dump in ["Kind", "labels", "Some("] {
            assert!(!said.contains(dump), "{step}: {said}");
        }
        match error {
            ReorderError::ServerGone { .. } => assert!(step < Step::Swapping),
            ReorderError::SwapUnknown { why, .. } => {
                assert!(matches!(*why, ReorderError::Server(_)), "{why}");
                assert_eq!(step, Step::Swapping);
            }
            other => panic!("{step}: {other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_copy_takes_the_place_of_a_lost_original() {
    let (bed, before) = loop {
        let bed = Bed::replica_set().await;
        let before = filled(&bed).await;
        assert!(interrupt(&bed, Step::CleaningUp).await);
        // Else the last command was under way and has done its work.
        let found = pending(&bed.server, Some(&namespace("c"))).await.unwrap();
        if !found.is_empty() {
            break (bed, before);
        }
    };
    // A server that does not rename in one piece may die between the two halves.
    bed.server
        .command(
            "admin",
            doc! { "renameCollection": "d.c", "to": "d.seekscope_reorder.c" },
        )
        .await
        .unwrap();
    let refused = rollback(&bed.server, &namespace("c"), &())
        .await
        .unwrap_err();
    assert!(matches!(refused, ReorderError::Refused { .. }), "{refused}");
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    resume(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert!(sorted(bed.scan("c").await) == sorted(before));
    assert_eq!(bed.names().await, ["c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_on_request_it_rolls_back() {
    for step in STEPS {
        let bed = Bed::replica_set().await;
        let before = filled(&bed).await;
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let act = Act::at(step, async move {
            let _ = sender.send(());
        });
        let stop = async move {
            receiver.await.unwrap();
        };
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        let outcome = apply(&bed.server, &mut request, &act, stop).await;
        assert_eq!(bed.names().await, ["c"], "{step}: {outcome:?}");
        assert!(bed.scan("c").await == before, "{step}");
        // The swap is not stopped any more.
        match outcome {
            Err(ReorderError::Stopped) => assert!(step < Step::Swapping),
            other => assert!(other.is_ok() && step >= Step::Swapping, "{step}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_stays_what_it_was_unless_another_is_given() {
    for (given, holds) in [(None, 8_000_000), (Some(50_000_000), 50_000_000)] {
        let bed = Bed::replica_set().await;
        let before = filled(&bed).await;
        let mut request = bed.request("c", By::Natural, Writers::Quiesced);
        request.max_rate_bytes_per_s = Some(8_000_000);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let act = Act::at(Step::Verifying, async move {
            sender.send(()).unwrap();
        });
        tokio::select! {
            biased;
            _ = receiver => {}
            done = apply(&bed.server, &mut request, &act, never()) => {
                panic!("not interrupted: {done:?}")
            }
        }
        let found = pending(&bed.server, None).await.unwrap();
        assert_eq!(found[0].max_rate_bytes_per_s, Some(8_000_000));
        let mut later = bed.request("c", By::Natural, Writers::Quiesced);
        later.max_rate_bytes_per_s = given;
        let done = resume(&bed.server, &mut later, &(), never()).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(later.max_rate_bytes_per_s, Some(holds));
        assert!(sorted(bed.scan("c").await) == sorted(before));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_added_meanwhile_is_not_lost() {
    let bed = Bed::replica_set().await;
    filled(&bed).await;
    assert!(interrupt(&bed, Step::CatchingUp).await);
    bed.run(doc! { "createIndexes": "c", "indexes": [{ "key": { "t": 1 }, "name": "later" }] })
        .await;
    let definition = bed.definition("c").await;
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let done = resume(&bed.server, &mut request, &(), never())
        .await
        .unwrap();
    assert_eq!(done.indexes, 3);
    assert_eq!(bed.definition("c").await.1, definition.1);
}

/// The late writes are like the single updates of a batch that goes on after its client was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_late_writes_make_anew_is_dropped_again() {
    let bed = Bed::replica_set().await;
    let before = filled(&bed).await;
    assert!(interrupt(&bed, Step::CatchingUp).await);
    let copy = bed.collection("seekscope_reorder.c");
    let late = tokio::spawn(async move {
        for id in 0..400 {
            let replaced = copy.replace_one(doc! { "_id": id }, doc! { "_id": id, "late": true });
            // What meets the drop may be refused.
            let _ = replaced.upsert(true).await;
        }
    });
    let rolled_back = rollback(&bed.server, &namespace("c"), &()).await;
    late.await.unwrap();
    assert_eq!(rolled_back.unwrap(), RolledBack::Original);
    assert!(bed.scan("c").await == before);
    assert_eq!(bed.names().await, ["c"]);
}

/// Somebody else's collection is left alone, but for one that came when the copy had been dropped.
#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_is_not_the_copy_is_left_alone() {
    let bed = Bed::replica_set().await;
    filled(&bed).await;
    assert!(interrupt(&bed, Step::CatchingUp).await);
    let copy = bed.collection("seekscope_reorder.c");
    copy.drop().await.unwrap();
    copy.insert_one(doc! { "theirs": true }).await.unwrap();
    let refused = rollback(&bed.server, &namespace("c"), &())
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("drop it yourself"),
        "{refused}"
    );
    // A run that was killed after its drop, whose last write came later.
    let records = bed.collection("seekscope_reorder");
    let dropping = doc! { "$set": { "dropping": true } };
    records
        .update_one(doc! { "_id": "c" }, dropping)
        .await
        .unwrap();
    rollback(&bed.server, &namespace("c"), &()).await.unwrap();
    assert_eq!(bed.names().await, ["c"]);
}
