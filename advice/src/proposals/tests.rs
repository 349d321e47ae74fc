mod indexes;

use bson::doc;
use seekscope_run::WayKind;

use super::*;
use crate::sample::FieldFacts;
use crate::shape::told;

fn series() -> SampleFacts {
    let ts = FieldFacts {
        path: "ts".into(),
        present: 100_000,
        dates: 100_000,
        distinct: 1_000,
        follows_age: true,
        dates_ms: Some((0, 1_000 * MINUTE_MS)),
        ..FieldFacts::default()
    };
    let device = FieldFacts {
        path: "device".into(),
        present: 100_000,
        distinct: 100,
        ..FieldFacts::default()
    };
    SampleFacts {
        documents: 100_000,
        bytes: 100_000 * 150,
        fields: vec![ts, device],
    }
}

fn present(indexes: &[Document]) -> Present<'_> {
    Present {
        indexes,
        keeps_file: false,
        is_on_shards: false,
        is_of_secondary: false,
        compressor: None,
    }
}

fn ways(query: &str, indexes: &[Document], facts: &SampleFacts) -> Vec<Way> {
    let found = proposals(&[told(query).unwrap()], present(indexes), facts);
    found
        .into_iter()
        .skip(1)
        .map(|proposal| proposal.way)
        .collect()
}

#[test]
fn series_are_put_into_buckets_and_in_order() {
    let served = [doc! { "name": "a", "key": { "device": 1, "ts": 1 } }];
    let found = ways(
        r#"{"device": "?", "ts": {"$gte": "?"}}"#,
        &served,
        &series(),
    );
    let buckets = Way::Buckets {
        keys: vec!["device".into()],
        time: "ts".into(),
        span_ms: HOUR_MS,
    };
    assert_eq!(
        found,
        [
            buckets,
            Way::Order {
                keys: doc! { "device": 1, "ts": 1 },
                creates_index: false,
            }
        ]
    );
}

#[test]
fn a_list_of_keys_finds_several_and_a_limit_of_one_does_not() {
    let mut facts = series();
    facts.fields.push(FieldFacts {
        path: "key".into(),
        present: 100_000,
        distinct: 100_000,
        ..FieldFacts::default()
    });
    let of = |query: &str| returns_several(&told(query).unwrap(), &facts);
    assert!(!of(r#"{"key": "?"}"#));
    assert!(of(r#"{"key": {"$in": ["?", "?"]}}"#));
    assert!(of(r#"{"device": "?"}"#));
    assert!(!of(r#"{"filter": {"device": "?"}, "limit": 1}"#));
    assert!(of(r#"{"filter": {"device": "?"}, "limit": 10}"#));
}

#[test]
fn fields_of_a_bucket_lie_side_by_side() {
    for (keys, time, fits) in [
        (["m.d"], "ts", true),
        (["m"], "m.ts", false),
        (["_id.d"], "ts", false),
        (["samples"], "ts", false),
        (["samples2"], "ts", true),
    ] {
        assert_eq!(
            fit_side_by_side(&keys.map(String::from), time),
            fits,
            "{keys:?}"
        );
    }
}

#[test]
fn a_capped_collection_is_given_indexes_alone() {
    let shapes = [told(r#"{"device": "?", "ts": {"$gte": "?"}}"#).unwrap()];
    let capped = Present {
        keeps_file: true,
        ..present(&[])
    };
    let found = proposals(&shapes, capped, &series());
    let kinds: Vec<WayKind> = found.iter().map(|proposal| proposal.way.kind()).collect();
    assert_eq!(kinds, [WayKind::Present, WayKind::Index]);
}

#[test]
fn what_is_read_together_may_be_compressed_better() {
    let several = [told(r#"{"device": "?"}"#).unwrap()];
    let of = |shapes: &[QueryShape], compressor| {
        let stored = Present {
            compressor,
            ..present(&[])
        };
        let found = proposals(shapes, stored, &series());
        let is_it = |proposal: &Proposal| proposal.way.kind() == WayKind::Compressor;
        found.into_iter().find(is_it).map(|p| p.way.name())
    };
    let zstd = Some("the compressor zstd".to_owned());
    for uncompressed in ["snappy", "none", ""] {
        assert_eq!(of(&several, Some(uncompressed)), zstd);
    }
    assert_eq!(of(&several, Some("zlib")), None);
    assert_eq!(of(&several, None), None);
    let one = told(r#"{"filter": {"device": "?"}, "returns": 1}"#).unwrap();
    assert_eq!(of(&[one], Some("snappy")), None);
}

#[test]
fn a_scattered_id_that_nobody_asks_for_may_grow() {
    let with_id = |follows_age| {
        let mut facts = series();
        facts.fields.push(FieldFacts {
            path: "_id".into(),
            present: 100_000,
            distinct: 100_000,
            follows_age,
            ..FieldFacts::default()
        });
        facts
    };
    let grows =
        |query: &str, facts: &SampleFacts| ways(query, &[], facts).contains(&Way::GrowingId);
    assert!(grows(r#"{"device": "?"}"#, &with_id(false)));
    assert!(!grows(r#"{"device": "?"}"#, &with_id(true)));
    assert!(!grows(r#"{"_id": "?"}"#, &with_id(false)));
    assert!(!grows(r#"{"device": "?"}"#, &series()));
    // A clustered collection has no index on it.
    let clustered = Present {
        keeps_file: true,
        ..present(&[])
    };
    let shapes = [told(r#"{"device": "?"}"#).unwrap()];
    let found = proposals(&shapes, clustered, &with_id(false));
    assert!(found.iter().all(|proposal| proposal.way != Way::GrowingId));
    let of_secondary = Present {
        is_of_secondary: true,
        ..present(&[])
    };
    let found = proposals(&shapes, of_secondary, &with_id(false));
    assert!(found.iter().all(|proposal| proposal.way != Way::GrowingId));
}

#[test]
fn what_is_stored_well_gets_no_proposal() {
    let served = [doc! { "name": "_id_", "key": { "_id": 1 } }];
    let key = FieldFacts {
        path: "_id".into(),
        present: 100_000,
        distinct: 100_000,
        follows_age: true,
        ..FieldFacts::default()
    };
    let mut facts = series();
    facts.fields.push(key);
    assert_eq!(ways(r#"{"_id": "?"}"#, &served, &facts), []);
    let by_time = [doc! { "name": "a", "key": { "ts": 1 } }];
    assert_eq!(ways(r#"{"ts": {"$gte": "?"}}"#, &by_time, &facts), []);
}

#[test]
fn only_the_first_field_of_an_order_that_is_not_compared_puts_answers_into_a_stretch_of_time() {
    let by_age = |query: &str| asks_by_age(&told(query).unwrap(), &series());
    for query in [
        r#"{"device": 7, "ts": {"$gte": 1}}"#,
        r#"{"filter": {"device": 7}, "sort": {"ts": -1}}"#,
        r#"{"filter": {"device": 7}, "sort": {"device": 1, "ts": -1}}"#,
    ] {
        assert!(by_age(query), "{query}");
    }
    for query in [
        r#"{"filter": {"device": 7}, "sort": {"v": -1, "ts": 1}}"#,
        r#"{"filter": {"device": {"$in": [7, 8]}}, "sort": {"device": 1, "ts": -1}}"#,
        r#"{"filter": {"device": 7}, "sort": {"v": 1}}"#,
    ] {
        assert!(!by_age(query), "{query}");
    }
}
