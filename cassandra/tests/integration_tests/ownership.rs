//! Tests which data belongs to whom.

use bson::doc;
use scylla::client::session_builder::SessionBuilder;
use seekscope_cassandra::{CqlError, CqlTarget, OwnedKeyspace};
use seekscope_client::request::Verb;
use seekscope_workload::DataSet;

use crate::cassandra_server::shared;
use crate::requests::Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_keyspace_is_refused_and_stays_as_it_was() {
    let server = shared();
    let node = format!("127.0.0.1:{}", server.port);
    let session = SessionBuilder::new()
        .known_node(node)
        .build()
        .await
        .unwrap();
    for cql in [
        "CREATE KEYSPACE theirs WITH replication = \
         {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE theirs.usertable (y_id text PRIMARY KEY, field0 text)",
        "INSERT INTO theirs.usertable (y_id, field0) VALUES ('user1', 'precious')",
    ] {
        session.query_unpaged(cql, ()).await.unwrap();
    }
    let uri = server.uri("theirs", "");
    let target = CqlTarget::parse(&uri, "unused").unwrap();
    let refused = OwnedKeyspace::open(&target).await.unwrap_err();
    assert!(
        matches!(refused, CqlError::ForeignKeyspace { count: 1, .. }),
        "{refused}"
    );
    let refused = Client::connect(&uri).await.err().expect("refused too");
    assert!(refused.message.contains("usertable"), "{}", refused.message);
    let rows = session
        .query_unpaged("SELECT field0 FROM theirs.usertable", ())
        .await
        .unwrap();
    let rows = rows.into_rows_result().unwrap();
    assert_eq!(rows.single_row::<(String,)>().unwrap().0, "precious");
    let tables = session.query_unpaged(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'theirs'",
        (),
    );
    assert_eq!(
        tables.await.unwrap().into_rows_result().unwrap().rows_num(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_sets_are_noted_and_only_theirs_are_dropped() {
    let server = shared();
    let uri = server.uri("ours", "");
    let target = CqlTarget::parse(&uri, "unused").unwrap();
    let mut keyspace = OwnedKeyspace::open(&target).await.unwrap();
    assert!(keyspace.data_sets().is_empty());
    let data_set = DataSet::new("ycsb", vec!["usertable".into()], "ycsb", 1, 1);
    keyspace.record(data_set.clone()).await.unwrap();
    let same_table = DataSet::new("other", vec!["usertable".into()], "x", 1, 1);
    assert!(keyspace.record(same_table).await.is_err());

    let mut client = Client::connect(&uri).await.unwrap();
    let row = doc! { "_id": "user1" }.to_vec().unwrap();
    let insert = doc! { "insert": "usertable" };
    client.send(Verb::Insert, insert, &[row]).await.unwrap();
    keyspace.set_loaded("ycsb").await.unwrap();
    keyspace.advance("ycsb", 9).await.unwrap();
    keyspace.advance("ycsb", 7).await.unwrap();

    let mut later = OwnedKeyspace::open(&target).await.unwrap();
    let found = later.data_set("ycsb").unwrap();
    assert!(found.loaded && found.next_insert == 9 && found.is_same_data(&data_set));
    later.drop_data_set("ycsb").await.unwrap();
    let count = client
        .send(Verb::Command, doc! { "count": "usertable" }, &[])
        .await;
    assert!(count.is_err(), "the table is gone");
    later.drop().await.unwrap();
    assert!(
        OwnedKeyspace::open(&target)
            .await
            .unwrap()
            .data_sets()
            .is_empty()
    );
}
