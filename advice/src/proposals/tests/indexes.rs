//! Which indexes are advised, and which are replaced.

use bson::{Bson, doc};
use seekscope_run::WayKind;

use super::super::indexes::SAME_KEYS;
use super::*;

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
fn an_index_makes_those_superfluous_whose_fields_it_begins_with() {
    let query = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    let found = |index: Document, is_on_shards| {
        let indexes = [index];
        let stored = Present {
            is_on_shards,
            ..present(&indexes)
        };
        let found = proposals(&[told(query).unwrap()], stored, &series());
        let Way::Index { replaces, .. } = found[1].way.clone() else {
            panic!("{found:?}");
        };
        let is_said = found[1].reason.contains("superfluous");
        assert_eq!(is_said, replaces.is_some(), "{found:?}");
        replaces
    };
    let keys = doc! { "device": -1 };
    let plain = || doc! { "name": "a", "key": keys.clone() };
    assert_eq!(found(plain(), false), Some(keys.clone()));
    assert_eq!(
        found(plain(), true),
        None,
        "it may be that of the shard key"
    );
    for (option, value) in [
        ("unique", Bson::Boolean(true)),
        ("sparse", Bson::Boolean(true)),
        ("partialFilterExpression", doc! { "ts": 1 }.into()),
        ("expireAfterSeconds", 5.into()),
    ] {
        let mut index = plain();
        index.insert(option, value);
        assert_eq!(found(index, false), None, "{option}");
    }
    let hashed = doc! { "name": "a", "key": { "device": "hashed" } };
    assert_eq!(found(hashed, false), None);
    let other = doc! { "name": "a", "key": { "value": 1 } };
    assert_eq!(found(other, false), None);
}

#[test]
fn the_reason_names_what_lacks_and_nothing_else() {
    let by_device = [doc! { "name": "a", "key": { "device": 1 } }];
    let reason = |query: &str, indexes: &[Document]| {
        let found = proposals(&[told(query).unwrap()], present(indexes), &series());
        found[1].reason.clone()
    };
    let sorted = r#"{"filter": {"device": "?"}, "sort": {"ts": 1}}"#;
    let ranged = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    for (query, indexes, expected) in [
        (sorted, &by_device[..], "but lacks the order after them."),
        (ranged, &by_device, "but lacks the range after them."),
        (
            ranged,
            &[],
            "No index begins with the fields that are compared, followed by the range.",
        ),
        (
            r#"{"device": "?"}"#,
            &[],
            "No index begins with the fields that are compared.",
        ),
        (
            r#"{"ts": {"$gte": "?"}}"#,
            &by_device,
            "No index begins with the range.",
        ),
        (
            r#"{"filter": {}, "sort": {"ts": 1}}"#,
            &by_device,
            "No index begins with the order.",
        ),
    ] {
        let reason = reason(query, indexes);
        assert!(reason.contains(expected), "{reason}");
    }
}
