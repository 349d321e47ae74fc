//! sysbench-mongodb on the real server.

use mongodb::bson::{Document, doc};
use seekscope_workload::ExpectedData;
use seekscope_workload::sysbench::expected::expected;
use seekscope_workload::sysbench::{
    Era, SysbenchIndexes, SysbenchLoad, SysbenchRun, SysbenchSettings,
};

use crate::engine::{DATABASE, IN_FLIGHT, assert_holds, run};
use crate::support::Fixture;

const TRANSACTIONS: u64 = 40;

#[tokio::test]
async fn load_and_run() {
    let fixture = Fixture::start().await;
    let settings = SysbenchSettings {
        collections: 2,
        documents: 1_250,
        ..Era::Y2013To2015.defaults()
    };
    let indexes = run(&fixture, &SysbenchIndexes::new(&settings), None).await;
    assert_eq!(
        (indexes.counts["create index"], indexes.ended.failures.len()),
        (2, 0)
    );
    let load = run(&fixture, &SysbenchLoad::new(&settings), None).await;
    assert_eq!(load.ended.failures, []);
    assert_eq!(
        (load.counts["insert"], load.documents["insert"]),
        (4, 2_500)
    );
    let workload = SysbenchRun::new(settings.clone()).unwrap();
    for (changes, transactions) in [(None, 0), (Some(workload.changes()), TRANSACTIONS)] {
        if transactions > 0 {
            let done = run(&fixture, &workload, Some(transactions)).await;
            let failed: u64 = done.ended.failures.iter().map(|f| f.count).sum();
            // Two virtual users may replace the same document; all else must go well.
            assert!(failed <= IN_FLIGHT as u64, "{:?}", done.ended.failures);
            assert_eq!(done.counts["point select"], 10 * TRANSACTIONS);
            for step in ["simple range", "sum range", "order range", "distinct range"] {
                assert_eq!(done.counts[step], TRANSACTIONS, "{step}");
            }
            assert!(done.documents["simple range"] > 80 * TRANSACTIONS);
        }
        let expected = expected(&settings, changes);
        let all: Vec<&dyn ExpectedData> = expected.iter().map(|e| e as &dyn ExpectedData).collect();
        assert_holds(&fixture, &all).await;
    }
    let sums = fixture
        .server
        .database(DATABASE)
        .collection::<Document>("sbtest1");
    let back = sums
        .count_documents(doc! { "_id": { "$type": "int" } })
        .await
        .unwrap();
    assert!(back > 0, "nothing was deleted and put back");
}
