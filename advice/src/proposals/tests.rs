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
fn an_index_of_the_reverse_order_is_used_and_not_made_anew() {
    let query = r#"{"filter": {"device": "?"}, "sort": {"value": 1}, "returns": 20}"#;
    let order = |keys: Document| {
        let found = ways(query, &[doc! { "name": "a", "key": keys }], &series());
        assert!(
            found.iter().all(|way| way.kind() != WayKind::Index),
            "{found:?}"
        );
        found.into_iter().find(|way| way.kind() == WayKind::Order)
    };
    for keys in [
        doc! { "device": 1, "value": -1 },
        doc! { "device": -1, "value": 1 },
    ] {
        let expected = Way::Order {
            keys: keys.clone(),
            creates_index: false,
        };
        assert_eq!(order(keys), Some(expected));
    }
    let longer = order(doc! { "device": 1, "value": -1, "x": 1 });
    let expected = Way::Order {
        keys: doc! { "device": 1, "value": -1 },
        creates_index: false,
    };
    assert_eq!(longer, Some(expected), "reorder takes the first keys");
}

#[test]
fn an_index_that_has_the_order_in_other_directions_is_made_anew() {
    let query = r#"{"filter": {"device": "?"}, "sort": {"value": 1, "ts": -1}, "returns": 20}"#;
    let keys = doc! { "device": 1, "value": 1, "ts": 1 };
    let found = ways(
        query,
        &[doc! { "name": "a", "key": keys.clone() }],
        &series(),
    );
    let expected = Way::Index {
        keys: doc! { "device": 1, "value": 1, "ts": -1 },
        replaces: Some(keys),
        covers: false,
    };
    assert_eq!(found[0], expected);
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
fn an_index_that_begins_with_the_date_is_turned_round() {
    let turned = [doc! { "name": "a", "key": { "ts": 1, "device": 1 } }];
    let found = ways(
        r#"{"device": "?", "ts": {"$gte": "?"}}"#,
        &turned,
        &series(),
    );
    let expected = Way::Index {
        keys: doc! { "device": 1, "ts": 1 },
        replaces: Some(doc! { "ts": 1, "device": 1 }),
        covers: false,
    };
    assert_eq!(found[0], expected);
    // A unique index says something of the data.
    let unique = [doc! { "name": "a", "key": { "ts": 1, "device": 1 }, "unique": true }];
    let found = ways(
        r#"{"device": "?", "ts": {"$gte": "?"}}"#,
        &unique,
        &series(),
    );
    assert!(
        matches!(&found[0], Way::Index { replaces: None, .. }),
        "{found:?}"
    );
}

#[test]
fn an_index_that_serves_some_queries_is_no_index_for_all() {
    let query = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    for (option, value) in [
        ("partialFilterExpression", doc! { "ts": 1 }.into()),
        ("sparse", true.into()),
        ("collation", doc! { "locale": "de" }.into()),
        ("hidden", Bson::Boolean(true)),
    ] {
        let index = |keys: Document| {
            let mut index = doc! { "name": "a", "key": keys };
            index.insert(option, value.clone());
            [index]
        };
        let new = |keys| Way::Index {
            keys,
            replaces: None,
            covers: false,
        };
        let (keys, reversed) = (
            doc! { "device": 1, "ts": 1 },
            doc! { "device": -1, "ts": -1 },
        );
        let turned = ways(query, &index(doc! { "ts": 1, "device": 1 }), &series());
        assert_eq!(turned[0], new(keys.clone()), "{option}");
        // Not every server makes another one of the same keys.
        let found = ways(query, &index(keys), &series());
        assert_eq!(found[0], new(reversed.clone()), "{option}");
        let order = Way::Order {
            keys: reversed,
            creates_index: true,
        };
        assert_eq!(found[2], order, "{option}");
    }
    let hashed = [doc! { "name": "a", "key": { "device": "hashed" } }];
    let found = ways(r#"{"device": "?"}"#, &hashed, &series());
    assert!(
        matches!(&found[0], Way::Index { replaces: None, .. }),
        "{found:?}"
    );
}

#[test]
fn a_new_index_has_keys_that_no_other_has() {
    let sparse = |keys: Document| doc! { "name": "a", "key": keys, "sparse": true };
    let wanted = || doc! { "a": 1, "b": -1 };
    let reversed = doc! { "a": -1, "b": 1 };
    assert_eq!(free_keys(wanted(), &[]), wanted());
    let one = [sparse(wanted())];
    assert_eq!(free_keys(wanted(), &one), reversed);
    let both = [sparse(wanted()), sparse(reversed)];
    let longer = doc! { "a": 1, "b": -1, "_id": 1 };
    assert_eq!(free_keys(wanted(), &both), longer);
    let shape = told(r#"{"filter": {"a": 1}, "sort": {"b": -1}}"#).unwrap();
    for keys in [free_keys(wanted(), &one), longer] {
        assert!(is_served_by(&shape, &keys), "{keys}");
    }
}

#[test]
fn every_way_says_why_its_index_has_other_directions() {
    let query =
        r#"{"filter": {"device": "?"}, "projection": {"value": 1, "_id": 0}, "returns": 20}"#;
    let mut facts = series();
    facts.fields.push(FieldFacts {
        path: "value".into(),
        present: 100_000,
        ..FieldFacts::default()
    });
    let sparse = |keys: Document| doc! { "name": "a", "key": keys, "sparse": true };
    let indexes = [
        sparse(doc! { "device": 1 }),
        sparse(doc! { "device": 1, "value": 1 }),
    ];
    let found = proposals(&[told(query).unwrap()], present(&indexes), &facts);
    let kinds = [WayKind::Index, WayKind::Covering, WayKind::Order];
    for kind in kinds {
        let proposal = found.iter().find(|proposal| proposal.way.kind() == kind);
        let proposal = proposal.unwrap();
        assert!(proposal.reason.contains(SAME_KEYS), "{proposal:?}");
        let keys = &proposal.way.keys()[0];
        assert_eq!(keys.get("device"), Some(&Bson::Int32(-1)), "{proposal:?}");
        assert!(!has_keys(&indexes, keys), "{proposal:?}");
    }
}

#[test]
fn an_index_may_hold_all_that_is_asked_for() {
    let query = |fields: &str| {
        format!(r#"{{"filter": {{"device": "?"}}, "projection": {{{fields}, "_id": 0}}}}"#)
    };
    let served = |keys: Document| [doc! { "name": "a", "key": keys }];
    let by_device = served(doc! { "device": 1 });
    let expected = Way::Index {
        keys: doc! { "device": 1, "value": 1 },
        replaces: Some(doc! { "device": 1 }),
        covers: true,
    };
    let with = |path: &str, present, lists| {
        let mut facts = series();
        facts.fields.push(FieldFacts {
            path: path.into(),
            present,
            lists,
            ..FieldFacts::default()
        });
        facts
    };
    let facts = with("value", 100_000, 0);
    let found = |query: &str, indexes: &[Document], facts: &SampleFacts| {
        let found = ways(query, indexes, facts);
        let covers = |way: &Way| way.kind() == WayKind::Covering;
        found.into_iter().find(covers)
    };
    let value = query(r#""value": 1"#);
    assert_eq!(found(&value, &by_device, &facts), Some(expected));
    // What the index has, what there would be too much of, and what is there already.
    let many = (0..9).map(|n| format!(r#""f{n}": 1"#));
    let many = many.collect::<Vec<_>>().join(", ");
    for query in [
        query(r#""device": 1"#),
        query(&many),
        r#"{"device": 1}"#.into(),
    ] {
        assert_eq!(found(&query, &by_device, &facts), None, "{query}");
    }
    let covering = served(doc! { "device": -1, "x": 1, "value": 1 });
    assert_eq!(found(&value, &covering, &facts), None);
    for other in [
        with("value", 100_000, 1),
        with("value", 99_999, 0),
        series(),
    ] {
        assert_eq!(found(&value, &by_device, &other), None);
    }
    // A unique index says something of the data.
    let mut unique = by_device;
    unique[0].insert("unique", true);
    let way = found(&value, &unique, &facts);
    assert!(
        matches!(way, Some(Way::Index { replaces: None, .. })),
        "{way:?}"
    );
}

#[test]
fn indexes_of_the_same_fields_in_another_order_are_others() {
    let shapes = [
        r#"{"a": 1, "b": {"$gt": 1}}"#,
        r#"{"b": 1, "a": {"$gt": 1}}"#,
    ];
    let shapes = shapes.map(|query| told(query).unwrap());
    let capped = Present {
        keeps_file: true,
        ..present(&[])
    };
    let found = proposals(&shapes, capped, &series());
    // The collection as it is, each index, and both.
    assert_eq!(found.len(), 4, "{found:?}");
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
fn queries_that_no_single_index_serves_get_one_each() {
    let both = |queries: &[&str]| {
        let shapes: Vec<QueryShape> = queries.iter().map(|q| told(q).unwrap()).collect();
        let found = proposals(&shapes, present(&[]), &series());
        found.into_iter().find_map(|proposal| match proposal.way {
            Way::Indexes { each } => Some(each),
            _ => None,
        })
    };
    let (device, value) = (doc! { "device": 1 }, doc! { "value": 1 });
    let (of_device, of_value) = (r#"{"device": "?"}"#, r#"{"value": "?"}"#);
    let of_both = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    assert_eq!(
        both(&[of_device, of_value]),
        Some(vec![device, value.clone()])
    );
    let served = doc! { "device": 1, "ts": 1 };
    assert_eq!(
        both(&[of_device, of_value, of_both]),
        Some(vec![value, served])
    );
    for alike in [
        &[of_device][..],
        &[of_device, of_both],
        &[of_both, of_device],
    ] {
        assert_eq!(both(alike), None, "{alike:?}");
    }
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
