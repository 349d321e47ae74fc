//! What is in the collection afterwards is exactly what the generator says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bson::doc;
use seekscope_workload::{
    LoadOptions, Sdu, SduOptions, UpdateOptions, WorkloadError, load, update,
};

use crate::support::{Fixture, namespace};

#[tokio::test]
async fn loaded_documents_are_the_generated_ones() {
    let fixture = Fixture::start().await;
    let sdu = Sdu::new(SduOptions::default());
    let seen = AtomicU64::new(0);
    let options = LoadOptions {
        documents: 2_345,
        batch_documents: 100,
        writers: 3,
    };
    let report = load(&fixture.server, &namespace(), &sdu, &options, &|done| {
        seen.store(done, Ordering::Relaxed);
    })
    .await
    .unwrap();
    assert_eq!((report.documents, report.errors), (2_345, 0));
    assert_eq!(seen.load(Ordering::Relaxed), 2_345);

    let collection = fixture.collection();
    assert_eq!(collection.count_documents(doc! {}).await.unwrap(), 2_345);
    let mut bytes = 0;
    let mut cursor = collection
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await
        .unwrap();
    let mut number = 0;
    while cursor.advance().await.unwrap() {
        assert_eq!(cursor.current().to_owned(), sdu.document(number));
        bytes += cursor.current().as_bytes().len() as u64;
        number += 1;
    }
    assert_eq!((number, bytes), (2_345, report.bytes));
}

#[tokio::test]
async fn one_tenth_is_updated_and_sizes_stay() {
    let fixture = Fixture::start().await;
    let sdu = Sdu::new(SduOptions::default());
    fixture.load(&sdu, 1_000).await;
    let options = UpdateOptions::new(1_000, 0.1, 9);
    let report = update(&fixture.server, &namespace(), &sdu, &options, &|_| ())
        .await
        .unwrap();
    assert_eq!(
        (report.documents, report.missing, report.errors),
        (100, 0, 0)
    );

    let mut cursor = fixture
        .collection()
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await
        .unwrap();
    let (mut old, mut new, mut number) = (0, 0, 0);
    while cursor.advance().await.unwrap() {
        let found = cursor.current().to_owned();
        if found == sdu.document(number) {
            old += 1;
        } else if found == sdu.revised_document(number, 1) {
            new += 1;
        }
        number += 1;
    }
    assert_eq!((old, new), (900, 100));

    // More than there are: the rest is counted as missing, not as done.
    let options = UpdateOptions {
        revision: 2,
        ..UpdateOptions::new(2_000, 1.0, 9)
    };
    let report = update(&fixture.server, &namespace(), &sdu, &options, &|_| ())
        .await
        .unwrap();
    assert_eq!((report.documents, report.missing), (1_000, 1_000));
}

#[tokio::test]
async fn our_own_data_is_replaced_and_foreign_data_is_refused() {
    let fixture = Fixture::start().await;
    let sdu = Sdu::new(SduOptions::default());
    fixture.load(&sdu, 300).await;
    update(
        &fixture.server,
        &namespace(),
        &sdu,
        &UpdateOptions::new(300, 1.0, 1),
        &|_| (),
    )
    .await
    .unwrap();
    fixture.load(&sdu, 200).await;
    let collection = fixture.collection();
    assert_eq!(collection.count_documents(doc! {}).await.unwrap(), 200);

    let other = Sdu::new(SduOptions {
        seed: 2,
        ..SduOptions::default()
    });
    let refused = load(
        &fixture.server,
        &namespace(),
        &other,
        &LoadOptions::new(10),
        &|_| (),
    )
    .await;
    assert!(matches!(
        refused.unwrap_err(),
        WorkloadError::ForeignData { .. }
    ));
    assert_eq!(collection.count_documents(doc! {}).await.unwrap(), 200);
}

#[tokio::test]
async fn a_dropped_load_stops() {
    let fixture = Fixture::start().await;
    let sdu = Sdu::new(SduOptions::default());
    let target = namespace();
    let options = LoadOptions {
        batch_documents: 50,
        writers: 2,
        documents: 1_000_000,
    };
    let work = load(&fixture.server, &target, &sdu, &options, &|_| ());
    assert!(
        tokio::time::timeout(Duration::from_millis(500), work)
            .await
            .is_err()
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    let collection = fixture.collection();
    let count = collection.count_documents(doc! {}).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(collection.count_documents(doc! {}).await.unwrap(), count);
    assert!(count > 0 && count < 1_000_000, "{count}");
}
