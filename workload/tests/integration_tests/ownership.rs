//! Foreign data stay untouched; ours are known again, and go without a trace.

use bson::{Document, doc};
use seekscope_workload::ownership::OWNER;
use seekscope_workload::{DataSet, OwnedDatabase, WorkloadError};

use crate::support::Fixture;

const DATABASE: &str = "bench_test";

fn ycsb() -> DataSet {
    let mut data_set = DataSet::new("ycsb", vec!["usertable".into()], "ycsb", 1_000, 7);
    data_set.settings.insert("fieldcount".into(), "10".into());
    data_set
}

async fn names(fixture: &Fixture) -> Vec<String> {
    let database = fixture.server.database(DATABASE);
    let mut names = database.list_collection_names().await.unwrap();
    names.sort();
    names
}

async fn insert(fixture: &Fixture, collection: &str) {
    let collection = fixture
        .server
        .database(DATABASE)
        .collection::<Document>(collection);
    collection.insert_one(doc! { "_id": 1 }).await.unwrap();
}

#[tokio::test]
async fn a_database_with_foreign_data_is_refused_and_left_alone() {
    let fixture = Fixture::start().await;
    insert(&fixture, "orders").await;
    let error = OwnedDatabase::open(&fixture.server, DATABASE)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        WorkloadError::ForeignDatabase { count: 1, .. }
    ));
    assert!(error.to_string().contains("(orders)"), "{error}");
    assert_eq!(names(&fixture).await, ["orders"]);

    // An entry that somebody else wrote does not make it ours.
    insert(&fixture, OWNER).await;
    let error = OwnedDatabase::open(&fixture.server, DATABASE)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("did not write"), "{error}");
    assert_eq!(names(&fixture).await, ["orders", OWNER]);
    for name in ["admin", "config", "local", "", "a.b", "a$b"] {
        let error = OwnedDatabase::open(&fixture.server, name)
            .await
            .unwrap_err();
        assert!(
            matches!(error, WorkloadError::Database { .. }),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn our_data_are_known_again_and_only_they_are_dropped() {
    let fixture = Fixture::start().await;
    let open = || OwnedDatabase::open(&fixture.server, DATABASE);
    let mut database = open().await.unwrap();
    assert!(names(&fixture).await.is_empty(), "opening changes nothing");
    database.record(ycsb()).await.unwrap();
    insert(&fixture, "usertable").await;
    let lab = DataSet::new("lab", vec!["a".into(), "b".into()], "1", 5, 1);
    database.record(lab.clone()).await.unwrap();

    database.set_loaded("ycsb").await.unwrap();
    database.advance("ycsb", 1_200).await.unwrap();
    database.advance("ycsb", 1_100).await.unwrap();
    let mut again = open().await.unwrap();
    let found = again.data_set("ycsb").unwrap();
    assert!(found.loaded && found.is_same_data(&ycsb()));
    assert_eq!(
        found.next_insert, 1_200,
        "a slower client does not turn it back"
    );
    let mut other = ycsb();
    other.settings.insert("fieldcount".into(), "5".into());
    assert!(!found.is_same_data(&other));

    // Somebody writes beside us: nothing is dropped that no entry lists, and the next run is refused.
    insert(&fixture, "theirs").await;
    let taken = DataSet::new("x", vec!["theirs".into()], "1", 5, 1);
    assert!(again.record(taken).await.is_err());
    let ours = DataSet::new("x", vec!["usertable".into()], "1", 5, 1);
    assert!(
        again.record(ours).await.is_err(),
        "it is of another data set"
    );
    again.drop_data_set("ycsb").await.unwrap();
    assert_eq!(names(&fixture).await, [OWNER, "theirs"]);
    assert!(matches!(
        open().await,
        Err(WorkloadError::ForeignDatabase { .. })
    ));
    again.drop_all().await.unwrap();
    assert_eq!(names(&fixture).await, ["theirs"]);
}

#[tokio::test]
async fn of_many_foreign_collections_some_are_named_and_the_rest_counted() {
    let fixture = Fixture::start().await;
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        insert(&fixture, name).await;
    }
    let error = OwnedDatabase::open(&fixture.server, DATABASE).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("holds 7 collections"), "{error}");
    assert!(error.contains("(a, b, c, d, e and 2 more)"), "{error}");
}

#[tokio::test]
async fn an_empty_collection_is_taken_as_it_is_and_never_dropped() {
    let fixture = Fixture::start().await;
    let server = fixture.server.database(DATABASE);
    for prepared in ["usertable", "theirs"] {
        server.create_collection(prepared).await.unwrap();
    }
    let open = || OwnedDatabase::open(&fixture.server, DATABASE);
    for _ in 0..2 {
        let mut database = open().await.unwrap();
        database.record(ycsb()).await.unwrap();
        let found = database.data_set("ycsb").unwrap();
        assert_eq!(found.prepared, ["usertable"]);
        let other = DataSet::new("other", vec!["usertable".into()], "1", 5, 1);
        assert!(database.record(other).await.is_err(), "it is ycsb's now");
        insert(&fixture, "usertable").await;
        // A later run knows from the entry what was there before.
        let mut database = open().await.unwrap();
        database.drop_data_set("ycsb").await.unwrap();
        assert_eq!(names(&fixture).await, ["theirs", "usertable"]);
        let count = fixture.server.count(DATABASE, "usertable").await;
        assert_eq!(count.unwrap(), 0);
    }
}
