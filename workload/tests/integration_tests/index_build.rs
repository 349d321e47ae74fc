//! Building, refusing and dropping.

use bson::doc;
use mongodb::options::Hint;
use seekscope_workload::{IndexKeys, IndexPlan, Sdu, SduOptions, WorkloadError, drop_index};

use crate::support::{Fixture, namespace};

#[tokio::test]
async fn an_index_is_built_used_and_dropped() {
    let fixture = Fixture::start().await;
    let (server, target) = (&fixture.server, namespace());
    let keys = IndexKeys::parse(r#"{"i": 1}"#).unwrap();
    let nothing = IndexPlan::check(server, &target, &keys, "i_1")
        .await
        .unwrap_err();
    assert!(matches!(nothing, WorkloadError::NoData { .. }), "{nothing}");

    fixture.load(&Sdu::new(SduOptions::default()), 500).await;
    let plan = IndexPlan::check(server, &target, &keys, &keys.default_name())
        .await
        .unwrap();
    let built = plan.build(server).await.unwrap();
    assert_eq!(
        (built.keys.as_str(), built.name.as_str()),
        (r#"{"i":1}"#, "i_1")
    );
    assert_eq!(built.documents, 500);
    assert!(built.elapsed_ns > 0);
    let again = IndexPlan::check(server, &target, &keys, "i_1")
        .await
        .unwrap_err();
    assert!(
        matches!(again, WorkloadError::IndexExists { .. }),
        "{again}"
    );

    let names = fixture.collection().list_index_names().await.unwrap();
    assert!(names.contains(&"i_1".to_string()), "{names:?}");
    let collection = fixture.collection();
    let hinted = collection.count_documents(doc! { "i": { "$gte": 0 } });
    assert_eq!(hinted.hint(Hint::Name("i_1".into())).await.unwrap(), 500);
    drop_index(server, &target, "i_1").await.unwrap();
    assert_eq!(
        fixture.collection().list_index_names().await.unwrap(),
        ["_id_"]
    );
    drop_index(server, &target, "i_1").await.unwrap_err();
}
