//! What is missing, altered or too much is found.

use bson::{Bson, Document, RawDocument, doc};
use seekscope_run::Verification;
use seekscope_stats::SplitMix64;
use seekscope_workload::{ExpectedData, VerificationOptions, verify};

use crate::support::Fixture;

const DOCUMENTS: i64 = 1_200;

/// `{_id: n, square: n * n}` for the numbers below [`DOCUMENTS`].
struct Squares;

impl ExpectedData for Squares {
    fn collection(&self) -> &str {
        "squares"
    }

    fn expected_count(&self) -> Option<u64> {
        u64::try_from(DOCUMENTS).ok()
    }

    fn sample(&self, random: &mut SplitMix64) -> Option<Bson> {
        let n = random.below(DOCUMENTS.cast_unsigned());
        Some(Bson::Int64(n.cast_signed()))
    }

    fn matches(&self, id: &Bson, document: &RawDocument) -> bool {
        let n = id.as_i64().unwrap();
        document
            .get_i64("square")
            .is_ok_and(|square| square == n * n)
    }
}

#[tokio::test]
async fn losses_and_changes_are_counted() {
    let fixture = Fixture::start().await;
    let collection = fixture
        .server
        .database("v")
        .collection::<Document>("squares");
    // Integers of the smaller type are the same keys to a server.
    let documents = (0..DOCUMENTS).map(|n| {
        let id = i32::try_from(n).map(Bson::Int32).unwrap();
        doc! { "_id": if n % 2 == 0 { id } else { Bson::Int64(n) }, "square": n * n }
    });
    collection.insert_many(documents).await.unwrap();
    let run = async |in_doubt| {
        let options = VerificationOptions {
            samples: 20_000,
            seed: 1,
            in_doubt,
        };
        let found = verify(&fixture.server, "v", &[&Squares], &options).await;
        found.unwrap()
    };
    let all = DOCUMENTS.cast_unsigned();
    let whole = Verification {
        expected: Some(all),
        counted: Some(all),
        sampled: all,
        ..Verification::default()
    };
    assert_eq!(run(0).await, whole);
    assert!(whole.holds());

    collection.delete_one(doc! { "_id": 7 }).await.unwrap();
    let altered = collection.update_one(doc! { "_id": 8 }, doc! { "$inc": { "square": 1 } });
    altered.await.unwrap();
    let found = run(0).await;
    assert_eq!(
        (found.counted, found.missing, found.different),
        (Some(all - 1), 1, 1)
    );
    assert!(!found.holds());

    collection
        .insert_one(doc! { "_id": 7, "square": 49_i64 })
        .await
        .unwrap();
    let repaired = collection.update_one(doc! { "_id": 8 }, doc! { "$set": { "square": 64_i64 } });
    repaired.await.unwrap();
    collection
        .insert_one(doc! { "_id": "extra" })
        .await
        .unwrap();
    assert!(!run(0).await.holds(), "more than was acknowledged");
    assert!(
        run(1).await.holds(),
        "a write without an answer explains it"
    );
}
