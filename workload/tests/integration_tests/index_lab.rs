//! Indexes of every kind on a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bson::doc;
use seekscope_client::{ClientSpec, Job, RawTarget, Retries, ScheduleKind, run};
use seekscope_server::Namespace;
use seekscope_workload::index_lab::{BigIndexDocuments, IndexLab, IndexedDocuments, kinds, p99_ns};
use seekscope_workload::{Sdu, SduOptions, quiesce};

use crate::support::Fixture;

fn namespace() -> Namespace {
    Namespace::new("seekscope_bench", "big").unwrap()
}

async fn lab(fixture: &Fixture, documents: IndexedDocuments, count: u64) -> IndexLab {
    let lab = IndexLab::prepare(&fixture.server, &namespace(), documents, count, &|_| ()).await;
    let directory = fixture.data_directory();
    lab.unwrap().seen_as(Some(fixture.pid()), Some(directory))
}

#[tokio::test]
async fn every_kind_is_built_and_verified_or_recorded_with_the_server_s_reason() {
    let fixture = Fixture::start().await;
    let documents = IndexedDocuments::BigIndex(BigIndexDocuments { seed: 3 });
    let lab = lab(&fixture, documents.clone(), 2_000).await;
    let quiet = quiesce(
        &fixture.server,
        Some(fixture.pid()),
        Duration::from_secs(30),
    )
    .await;
    assert_eq!(quiet, None, "the server becomes quiet");
    for kind in kinds(&documents) {
        for repetition in 1..=2 {
            let built = lab.create(kind, &|_| ()).await.unwrap();
            let concluded = lab.conclude(kind, repetition, built).await.unwrap();
            assert_eq!(concluded.limitation, None);
            let build = concluded.build;
            assert_eq!(
                (build.kind.as_str(), build.repetition),
                (kind.name, repetition)
            );
            assert!(
                build.elapsed_ns > 0 && build.server_rss_bytes.unwrap() > 0,
                "{build:?}"
            );
            match &build.failure {
                Some(reason) => {
                    assert!(["hashed", "text"].contains(&kind.name), "{build:?}");
                    assert!(reason.contains("not supported"), "{reason}");
                    assert_eq!(build.verified, None);
                }
                None => {
                    assert_eq!(build.verified, Some(true), "{build:?}");
                    assert!(
                        build.keys_per_s > 0.0 && build.index_bytes.unwrap() > 0,
                        "{build:?}"
                    );
                    assert_eq!(build.temp_bytes, Some(0), "this server sorts in memory");
                }
            }
        }
    }
    let big = fixture
        .server
        .database("seekscope_bench")
        .collection::<bson::Document>("big");
    assert_eq!(
        big.list_index_names().await.unwrap(),
        ["_id_"],
        "all are dropped again"
    );
}

#[tokio::test]
async fn other_load_beside_a_build_has_its_p99_before_during_and_after() {
    const MARGIN: Duration = Duration::from_millis(2500);
    let fixture = Fixture::start().await;
    let documents = IndexedDocuments::Sdu(Box::new(Sdu::new(SduOptions::default())));
    let lab = lab(&fixture, documents.clone(), 3_000).await;
    let target = RawTarget::parse(&fixture.uri(), "seekscope_bench").unwrap();
    let operations = lab.point_operations(1);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let others = tokio::task::spawn_blocking(move || {
        let mut seconds = Vec::new();
        let mut keep = |second| seconds.push(second);
        let client = ClientSpec::Raw(Box::new(target));
        let ended = run(&client, &operations, &two_hundred_per_s(), &flag, &mut keep);
        (ended.unwrap(), seconds)
    });
    let kind = kinds(&documents)
        .iter()
        .find(|k| k.name == "string")
        .unwrap();
    tokio::time::sleep(MARGIN).await;
    let built = lab.create(kind, &|_| ()).await.unwrap();
    tokio::time::sleep(MARGIN).await;
    stop.store(true, Ordering::Relaxed);
    let (ended, seconds) = others.await.unwrap();
    lab.remove_inserted().await.unwrap();
    let p99 = p99_ns(&seconds, &built).expect("before, during and after");
    let build = lab.conclude(kind, 1, built).await.unwrap().build;
    let is_told = p99.map(|ns| ns.is_some_and(|ns| ns > 0));
    let is_long = build.elapsed_ns >= 2_000_000_000;
    assert_eq!(is_told, [true, is_long, true], "{p99:?}");
    assert_eq!(
        (build.failure.as_deref(), build.verified),
        (None, Some(true)),
        "{build:?}"
    );
    let done: u64 = seconds
        .iter()
        .flat_map(|s| &s.operations)
        .map(|o| o.done)
        .sum();
    assert!(done > 500, "{done} operations");
    assert_eq!(ended.failures, []);
    let collection = fixture
        .server
        .database("seekscope_bench")
        .collection::<bson::Document>("big");
    assert_eq!(
        collection.count_documents(doc! {}).await.unwrap(),
        3_000,
        "inserts are removed"
    );
}

fn two_hundred_per_s() -> Job {
    Job {
        schedule: ScheduleKind::Constant { per_s: 200.0 },
        in_flight: 4,
        threads: 1,
        transactions: None,
        duration: None,
        timeout: Duration::from_secs(60),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: Some(100),
    }
}
