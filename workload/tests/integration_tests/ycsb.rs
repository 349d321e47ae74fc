//! Workloads A to F on the real server: no failures, and every row what it must be afterwards.

use mongodb::bson::doc;
use seekscope_workload::ycsb::{
    ClientSlice, Edition, Properties, WORKLOADS, YcsbExpected, YcsbLoad, YcsbRun, YcsbSettings,
    workload,
};

use crate::engine::{DATABASE, assert_holds, run};
use crate::support::Fixture;

const OPERATIONS: u64 = 400;

fn settings(letter: char, edition: Edition, more: &str) -> YcsbSettings {
    let mut properties = workload(letter).unwrap();
    let text = format!("recordcount=2000\noperationcount={OPERATIONS}\n{more}");
    properties.extend(Properties::parse(&text).unwrap());
    YcsbSettings::new(&properties, edition, None).unwrap()
}

#[tokio::test]
async fn all_workloads_in_both_editions() {
    let fixture = Fixture::start().await;
    for edition in [Edition::Ycsb, Edition::Corrected] {
        let database = fixture.server.database(DATABASE);
        database.drop().await.unwrap();
        let load = settings('a', edition, "batchsize=300");
        let done = run(&fixture, &YcsbLoad::new(&load), None).await;
        assert_eq!(done.ended.failures, []);
        // 2000 is no multiple of 300: the last batch is smaller, and is there.
        assert_eq!(
            (done.counts["INSERT"], done.documents["INSERT"]),
            (7, 2_000)
        );
        assert_holds(&fixture, &[&YcsbExpected::after_load(&load)]).await;
        let mut next = 2_000;
        for letter in WORKLOADS {
            let more = format!("firstinsert={next}");
            let workload = YcsbRun::new(settings(letter, edition, &more), ClientSlice::default());
            let workload = workload.unwrap();
            let done = run(&fixture, &workload, Some(OPERATIONS)).await;
            assert_eq!(done.ended.failures, [], "{letter} {edition:?}");
            let pairs = done.counts.get("READ-MODIFY-WRITE").copied().unwrap_or(0);
            let total: u64 = done.counts.values().sum();
            // The parts of a pair are counted too.
            assert_eq!(total - 2 * pairs, OPERATIONS, "{letter} {:?}", done.counts);
            assert_holds(&fixture, &[&YcsbExpected::after_run(&workload)]).await;
            next = workload
                .highest_inserted()
                .map_or(next, |highest| highest + 1);
        }
        assert!(next > 2_010, "{next}");
    }
}

/// What a second run of D on the same data would do without knowing of the first.
#[tokio::test]
async fn keys_that_are_taken_are_failures() {
    let fixture = Fixture::start().await;
    let d = || settings('d', Edition::Corrected, "insertproportion=0.5");
    run(&fixture, &YcsbLoad::new(&d()), None).await;
    let first = YcsbRun::new(d(), ClientSlice::default()).unwrap();
    run(&fixture, &first, Some(400)).await;
    let second = YcsbRun::new(d(), ClientSlice::default()).unwrap();
    let done = run(&fixture, &second, Some(100)).await;
    assert_eq!(done.counts["INSERT"], 0);
    assert!(
        done.ended.failures.iter().any(|f| f.count > 20),
        "{:?}",
        done.ended.failures
    );
    // Reads of the corrected edition leave out what was not inserted.
    assert_eq!(done.ended.failures.len(), 1, "{:?}", done.ended.failures);
}

#[tokio::test]
async fn rows_that_are_missing_or_changed_are_found() {
    let fixture = Fixture::start().await;
    let c = settings(
        'c',
        Edition::Corrected,
        "dataintegrity=true\nmongodb.upsert=true\nbatchsize=50",
    );
    let load = YcsbLoad::new(&c);
    run(&fixture, &load, None).await;
    assert_holds(&fixture, &[&YcsbExpected::after_load(&c)]).await;
    let rows = fixture
        .server
        .database(DATABASE)
        .collection::<mongodb::bson::Document>("usertable");
    let half = doc! { "_id": { "$lt": "user5" } };
    rows.delete_many(half).await.unwrap();
    rows.update_many(doc! {}, doc! { "$set": { "field3": "text" } })
        .await
        .unwrap();
    let workload = YcsbRun::new(c, ClientSlice::default()).unwrap();
    let done = run(&fixture, &workload, Some(90)).await;
    assert_eq!(done.counts["READ"], 0);
    let mut names: Vec<&str> = done.ended.failures.iter().map(|f| &*f.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["NOT_FOUND", "VERIFY"]);
}
