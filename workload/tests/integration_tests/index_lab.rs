//! Indexes of every kind on a real server.

use std::sync::Mutex;
use std::time::Duration;

use bson::doc;
use seekscope_client::{ClientSpec, RawTarget};
use seekscope_server::Namespace;
use seekscope_workload::index_lab::{
    BigIndexDocuments, Foreground, IndexLab, IndexedDocuments, MemoryLimit, kinds, quiesce,
};
use seekscope_workload::{Sdu, SduOptions};

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
            let build = lab.build(kind, repetition, &|_| ()).await.unwrap();
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
    let fixture = Fixture::start().await;
    let documents = IndexedDocuments::Sdu(Box::new(Sdu::new(SduOptions::default())));
    let lab = lab(&fixture, documents.clone(), 3_000).await;
    let target = RawTarget::parse(&fixture.uri(), "seekscope_bench").unwrap();
    let foreground = Foreground {
        client: ClientSpec::Raw(target),
        per_s: 200.0,
        in_flight: 4,
        threads: 1,
        margin: Duration::from_millis(2500),
        seed: 1,
    };
    let told = Mutex::new(0);
    let kind = kinds(&documents)
        .iter()
        .find(|k| k.name == "string")
        .unwrap();
    let (build, run) = lab
        .build_under_load(kind, 1, &foreground, &|_| *told.lock().unwrap() += 1)
        .await
        .unwrap();
    assert_eq!(
        (build.failure.as_deref(), build.verified),
        (None, Some(true)),
        "{build:?}"
    );
    let p99 = build.foreground_p99_ns.expect("before, during and after");
    assert!(p99.iter().all(|ns| *ns > 0), "{p99:?}");
    let done: u64 = run
        .seconds
        .iter()
        .flat_map(|s| &s.operations)
        .map(|o| o.done)
        .sum();
    assert!(done > 500, "{done} operations");
    assert_eq!(run.ended.failures, []);
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

#[tokio::test]
async fn a_server_without_the_memory_limit_says_so() {
    let fixture = Fixture::start().await;
    let refused = MemoryLimit::set(&fixture.server, 100).await.unwrap_err();
    assert!(refused.to_string().contains("getParameter"), "{refused}");
}
