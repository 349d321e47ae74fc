use seekscope_run::{
    ConditionSeen, FilterSeen, IndexFacts, IndexOption, JoinSeen, KeySeen, LoggedOperations,
};

use super::*;
use crate::testing::Recording;

fn scan(looks: u32, plan: &str) -> OperationSeen {
    OperationSeen {
        kind: "command find".into(),
        namespace: Some("shop.orders".into()),
        plan: Some(plan.into()),
        running_us: 12_000_000,
        looks,
        at_once: 2,
        ..OperationSeen::default()
    }
}

#[test]
fn ill() {
    let mut recording = Recording::new();
    recording.examined().operations = vec![scan(9, "COLLSCAN"), scan(4, "COLLSCAN")];
    let found = recording.findings(&DETECTOR);
    assert_eq!(found.len(), 1, "once for a collection");
    assert_eq!(found[0].subject, "shop.orders");
    assert_eq!(
        found[0].title,
        "Operations read all of shop.orders (COLLSCAN)"
    );
    assert!(
        found[0].evidence[0].contains("9 looks, 2 at once, for up to 12.0 s"),
        "{found:?}"
    );

    let in_vain = || {
        let mut counted = Recording::new();
        counted.rising("metrics.queryExecutor.scannedObjects", 50_000.0);
        counted.rising("metrics.document.returned", 20.0);
        counted
    };
    let mut counted = in_vain();
    let found = counted.findings(&DETECTOR);
    assert!(
        found[0].title.contains("2500 documents for each document"),
        "{found:?}"
    );
    assert!(found[0].evidence[1].contains("was caught"), "{found:?}");
    let counter = "metrics.queryExecutor.collectionScans.nonTailable";
    let mut short = in_vain();
    short.rising(counter, 10.0);
    let found = short.findings(&DETECTOR);
    assert!(found[0].evidence[1].contains("counted 10.0 collection scans per second"));
    counted.steady(counter, 5.0);
    let found = counted.findings(&DETECTOR);
    assert!(found[0].evidence[1].contains("counted no collection scan"));
}

fn by(fields: &[&str], reduced: bool) -> OperationSeen {
    OperationSeen {
        filter: Some(FilterSeen {
            fields: fields.iter().map(|field| (*field).into()).collect(),
            reduced,
            ..FilterSeen::default()
        }),
        ..scan(9, "COLLSCAN")
    }
}

/// Records operations that read shop.orders, and readers that waited for them.
fn waiting(operations: Vec<OperationSeen>) -> Recording {
    let mut recording = Recording::new();
    recording.examined().operations = operations;
    recording.examined().collections = vec![CollectionFacts {
        namespace: "shop.orders".into(),
        read_into_cache_bytes: Some(1 << 20),
        ..CollectionFacts::default()
    }];
    let read = "wiredTiger.cache.application threads page read from disk to cache";
    recording.rising(&format!("{read} time (usecs)"), 1e5);
    recording.rising(&format!("{read} count"), 100.0);
    recording
}

/// The same with the server's counts per second.
fn waited_for(operations: Vec<OperationSeen>, examined: f64, results: f64) -> Finding {
    let mut recording = waiting(operations);
    recording.rising("metrics.queryExecutor.scannedObjects", examined);
    recording.rising("metrics.document.returned", results);
    recording.findings(&DETECTOR).remove(0)
}

#[test]
fn updates_and_deletes_are_results() {
    let mut recording = Recording::new();
    recording.rising("metrics.queryExecutor.scannedObjects", 7_000.0);
    recording.rising("metrics.document.returned", 0.0);
    recording.rising("metrics.document.updated", 6_500.0);
    recording.rising("metrics.document.deleted", 500.0);
    assert_eq!(recording.findings(&DETECTOR), []);
}

#[test]
fn an_index_is_promised_to_a_selective_filter_alone() {
    let selective = waited_for(vec![by(&["customer"], false)], 50_000.0, 20.0);
    assert!(selective.evidence[1].starts_with("It selects by customer, and nearly all"));
    assert!((selective.saves_s_per_hour.unwrap() - 360.0).abs() < 1.0);

    let wide = waited_for(vec![by(&["customer"], false)], 50_000.0, 40_000.0);
    let unknown = waited_for(vec![scan(9, "COLLSCAN")], 50_000.0, 20.0);
    let grouped = waited_for(vec![by(&["customer"], true)], 50_000.0, 20.0);
    let beside = vec![by(&["customer"], false), by(&[], true)];
    let beside = waited_for(beside, 50_000.0, 20.0);
    let of_code = waited_for(vec![by(&["$where"], false)], 50_000.0, 20.0);
    for finding in [wide, unknown, grouped, beside, of_code] {
        assert_eq!(finding.saves_s_per_hour, None, "{finding:?}");
        assert!(finding.evidence[1].contains("is not known"), "{finding:?}");
    }
}

/// They have no filter, and an index spares them nearly all reading.
#[test]
fn an_index_is_promised_to_the_first_of_an_order_and_to_distinct_values() {
    let by_key = |field: &str, descending: bool, distinct: bool| {
        let mut operation = by(&[], true);
        let filter = operation.filter.as_mut().unwrap();
        filter.keys = vec![KeySeen {
            field: field.into(),
            descending,
        }];
        filter.distinct = distinct;
        waited_for(vec![operation], 50_000.0, 1.0)
    };
    let first = by_key("k", true, false);
    assert!(
        first.evidence[1].contains("index on {\"k\": -1}"),
        "{first:?}"
    );
    assert!(first.command.contains("createIndex"), "{first:?}");
    assert!(first.saves_s_per_hour.is_some());
    let distinct = by_key("status", false, true);
    assert!(
        distinct.evidence[1].contains("distinct values"),
        "{distinct:?}"
    );
    assert!(distinct.saves_s_per_hour.is_some());
}

#[test]
fn an_index_is_promised_to_the_first_of_an_order_among_matches() {
    let mut operation = by(&["customer"], true);
    let filter = operation.filter.as_mut().unwrap();
    filter.keys = vec![KeySeen {
        field: "at".into(),
        descending: true,
    }];
    // An index on the order is read from its beginning until enough of a range was found, which may be all of it.
    let range = waited_for(vec![operation.clone()], 50_000.0, 20.0);
    assert_eq!(range.saves_s_per_hour, None, "{range:?}");
    operation.filter.as_mut().unwrap().equal = vec!["customer".into()];
    let found = waited_for(vec![operation.clone()], 50_000.0, 20.0);
    assert!(
        found.evidence[1].contains("followed by {\"at\": -1}"),
        "{found:?}"
    );
    assert!(found.saves_s_per_hour.is_some(), "{found:?}");
    assert!(found.command.contains(" advise "), "{found:?}");
    let found = waited_for(vec![operation], 100.0, 50.0);
    assert_eq!(found.saves_s_per_hour, None, "little was examined in vain");
}

/// Records an operation with an index that reads this many keys per second for 10 results.
fn reading_keys(change: impl FnOnce(&mut FilterSeen), keys: f64) -> Vec<Finding> {
    let mut operation = by(&["name"], false);
    operation.plan = Some("IXSCAN { at: 1, name: 1 }".into());
    change(operation.filter.as_mut().unwrap());
    let mut recording = waiting(vec![operation]);
    recording.rising("metrics.queryExecutor.scanned", keys);
    recording.rising("metrics.queryExecutor.scannedObjects", 10.0);
    recording.rising("metrics.document.returned", 10.0);
    recording.findings(&DETECTOR)
}

#[test]
fn an_index_that_is_read_in_vain_is_named_with_what_helps() {
    let found = &reading_keys(|_| (), 20_000.0)[0];
    assert_eq!(
        found.title,
        "Operations on shop.orders read 2,000 keys of an index and 1 document for each result"
    );
    assert_eq!(found.id, "query.index-scan");
    assert!(found.command.contains(" advise "), "{found:?}");
    assert!(found.saves_s_per_hour.is_some(), "{found:?}");
    let pattern = &reading_keys(|filter| filter.patterns = vec!["name".into()], 20_000.0)[0];
    assert!(
        pattern.evidence[1].contains("may begin anywhere in name"),
        "{pattern:?}"
    );
    let skips = &reading_keys(|filter| filter.skips = true, 20_000.0)[0];
    assert!(skips.evidence[1].contains("reads all that it skips"));
    for finding in [pattern, skips] {
        assert!(!finding.command.contains("advise"), "{finding:?}");
    }
    assert_eq!(reading_keys(|_| (), 500.0), [], "few");

    // What is found by the values of the index's first fields is read alone: something else read all the others.
    let served = |filter: &mut FilterSeen| {
        filter.fields = vec!["at".into()];
        filter.equal = vec!["at".into()];
    };
    let found = &reading_keys(served, 20_000.0)[0];
    assert_eq!(
        (found.subject.as_str(), found.saves_s_per_hour),
        ("", None),
        "{found:?}"
    );
    let in_order = |filter: &mut FilterSeen| {
        served(filter);
        filter.reduced = true;
        filter.keys = vec![KeySeen {
            field: "name".into(),
            descending: true,
        }];
    };
    assert_eq!(reading_keys(in_order, 20_000.0)[0].subject, "");
    let grouped = &reading_keys(|filter| filter.reduced = true, 20_000.0)[0];
    assert_eq!(grouped.saves_s_per_hour, None, "{grouped:?}");
    assert!(grouped.evidence[1].contains("aggregations"), "{grouped:?}");

    // Beside a scan of everything, the counts are of both.
    let mut paging = by(&[], false);
    paging.plan = Some("IXSCAN { at: 1 }".into());
    paging.filter.as_mut().unwrap().skips = true;
    let mut recording = waiting(vec![by(&[], true), paging]);
    recording.rising("metrics.queryExecutor.scanned", 20_000.0);
    recording.rising("metrics.queryExecutor.scannedObjects", 20_000.0);
    recording.rising("metrics.document.returned", 10.0);
    let found = recording.findings(&DETECTOR);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].title.contains("far more of an index"), "{found:?}");
    assert_eq!(found[1].saves_s_per_hour, None);
}

#[test]
fn no_index_is_promised_to_a_group_over_everything() {
    let found = waited_for(vec![by(&[], true)], 50_000.0, 1.0);
    assert_eq!(found.saves_s_per_hour, None);
    assert!(
        found.evidence[1].contains("no index spares that"),
        "{found:?}"
    );
    assert!(!found.risk.contains("index"), "{found:?}");
}

/// A regression: of a group over what matches, the results were taken for the matches, and an index that nobody advised had
/// its risk told.
#[test]
fn a_group_over_matches_is_tried_or_has_no_risk() {
    let group = by(&["region"], true);
    let tried = waited_for(vec![group.clone()], 50_000.0, 1.0);
    assert!(
        tried.evidence[1].contains("its results are groups, counts or the first"),
        "{tried:?}"
    );
    assert!(tried.command.contains(" advise "), "{tried:?}");
    assert!(tried.risk.contains("index"), "{tried:?}");
    let mut in_english = group;
    in_english.filter.as_mut().unwrap().collation = Some(r#"{"locale":"en"}"#.into());
    let untried = waited_for(vec![in_english], 50_000.0, 1.0);
    assert!(untried.command.contains("currentOp"), "{untried:?}");
    assert_eq!(untried.risk, "", "{untried:?}");
}

#[test]
fn counters_are_not_called_a_trace() {
    let found = waiting(vec![scan(9, "COLLSCAN")]).findings(&DETECTOR);
    let sentence = found[0].evidence.last().unwrap();
    assert!(sentence.contains("waited 6 min per hour"), "{sentence}");
    assert!(!sentence.contains("trace"), "{sentence}");
}

/// They use CPU time and wait for nothing.
#[test]
fn scans_that_memory_serves_take_their_time() {
    let mut recording = Recording::new();
    let by_key = OperationSeen {
        looks: 1,
        ..scan(1, "IXSCAN { _id: 1 }")
    };
    recording.examined().operations = vec![by(&["customer"], false), by_key];
    recording.examined().collections = vec![CollectionFacts {
        namespace: "shop.orders".into(),
        reading_ns: Some(30_000_000_000),
        ..CollectionFacts::default()
    }];
    recording.rising("metrics.queryExecutor.scannedObjects", 50_000.0);
    recording.rising("metrics.document.returned", 20.0);
    recording.rising("opLatencies.reads.latency", 0.5e6);
    let seconds = recording.examine(|evidence, _| evidence.observed_s().unwrap());
    let found = recording.findings(&DETECTOR).remove(0);
    let expected = 30.0 / seconds * 3600.0 * 0.9;
    let saves = found.saves_s_per_hour.unwrap();
    assert!((saves - expected).abs() < 1.0, "{saves} of {expected}");
    let sentence = found.evidence.last().unwrap();
    assert!(
        sentence.starts_with("The scans took 27 min per hour"),
        "{sentence}"
    );
}

#[test]
fn a_count_that_the_longest_scan_contradicts_is_not_believed() {
    let mut recording = Recording::new();
    recording.examined().operations = vec![by(&["customer"], true)];
    recording.examined().collections = vec![CollectionFacts {
        namespace: "shop.orders".into(),
        reading_ns: Some(3_000_000),
        ..CollectionFacts::default()
    }];
    let seconds = recording.examine(|evidence, _| evidence.observed_s().unwrap());
    let found = recording.findings(&DETECTOR).remove(0);
    let sentence = found.evidence.last().unwrap();
    let expected = duration(12.0 / seconds * 3600.0);
    let begin = format!("The scans were seen running for {expected} per hour");
    assert!(sentence.starts_with(&begin), "{sentence}");
}

/// A regression: a scan that had begun before the watch was counted in it as a whole, 4,118 s per hour of one connection.
#[test]
fn no_scan_takes_longer_than_it_ran_at_once() {
    let mut recording = Recording::new();
    recording.examined().operations = vec![by(&["customer"], true)];
    let at_once = f64::from(recording.examined().operations[0].at_once.max(1));
    recording.examined().collections = vec![CollectionFacts {
        namespace: "shop.orders".into(),
        reading_ns: Some(1_000_000_000_000),
        ..CollectionFacts::default()
    }];
    let found = recording.findings(&DETECTOR).remove(0);
    let sentence = found.evidence.last().unwrap();
    let begin = format!("The scans took {} per hour", duration(at_once * 3600.0));
    assert!(sentence.starts_with(&begin), "{sentence}");
}

#[test]
fn capped_collections_are_followed() {
    let mut recording = Recording::new();
    recording.examined().operations = vec![scan(60, "COLLSCAN")];
    recording.examined().collections = vec![CollectionFacts {
        namespace: "shop.orders".into(),
        capped: true,
        ..CollectionFacts::default()
    }];
    assert_eq!(recording.findings(&DETECTOR), []);
}

#[test]
fn healthy() {
    let mut recording = Recording::new();
    assert_eq!(recording.findings(&DETECTOR), []);
    let build = OperationSeen {
        kind: "index build".into(),
        ..scan(9, "COLLSCAN")
    };
    recording.examined().operations = vec![scan(9, "IXSCAN { a: 1 }"), scan(1, "COLLSCAN"), build];
    let tail = OperationSeen {
        namespace: Some("local.oplog.rs".into()),
        ..scan(60, "COLLSCAN")
    };
    recording.examined().operations.push(tail);
    recording.rising("metrics.queryExecutor.scannedObjects", 50_000.0);
    recording.rising("metrics.document.returned", 40_000.0);
    assert_eq!(recording.findings(&DETECTOR), []);
}

/// Records an aggregation of shop.orders that looks `no` up in shop.customers, which has this index.
fn joining(keys: &str, documents: u64) -> Recording {
    let mut recording = Recording::new();
    let mut operation = by(&["day"], false);
    operation.kind = "command aggregate".into();
    operation.plan = Some("IXSCAN { day: 1 }".into());
    operation.filter.as_mut().unwrap().joins = vec![JoinSeen {
        collection: "customers".into(),
        field: "no".into(),
    }];
    let index = |keys: &str| IndexFacts {
        keys: keys.into(),
        ..IndexFacts::default()
    };
    recording.examined().operations = vec![operation];
    recording.examined().operation_looks = 30;
    recording.examined().collections = vec![CollectionFacts {
        namespace: "shop.customers".into(),
        documents,
        indexes: vec![index(r#"{"_id":1}"#), index(keys)],
        ..CollectionFacts::default()
    }];
    recording
}

#[test]
fn a_join_without_an_index_is_named_with_the_collection_that_lacks_it() {
    let found = joining(r#"{"name":1,"no":1}"#, 20_000).findings(&DETECTOR);
    assert_eq!(found.len(), 1, "{found:?}");
    let found = &found[0];
    assert_eq!(found.subject, "shop.customers");
    assert_eq!(
        found.title,
        "Aggregations on shop.orders read all of shop.customers for each document that they join: no index that can be used begins with no"
    );
    assert!(
        found.command.contains(r#"createIndex({"no": 1})"#),
        "{found:?}"
    );
    let saves = found.saves_s_per_hour.unwrap();
    assert!((saves - 0.3 * 3600.0).abs() < 1.0, "9 of 30 looks: {saves}");
}

/// A regression: "1,560 documents were examined" stood beside "each document that is joined reads all of them".
#[test]
fn what_the_log_does_not_count_of_a_join_is_told() {
    let said = |documents_examined: u64| {
        let mut recording = joining(r#"{"name":1,"no":1}"#, 20_000);
        recording.examined().slow_log_s = Some(40.0);
        recording.examined().operations[0].logged = Some(LoggedOperations {
            count: 78,
            took_us: 7_560_000,
            longest_us: 278_000,
            documents_examined,
            keys_examined: 1_560,
            results: 1_560,
            ..LoggedOperations::default()
        });
        recording.findings(&DETECTOR).remove(0).evidence.join(" ")
    };
    let untold = "The log does not count what was read from shop.customers.";
    assert!(said(1_560).contains(untold), "{}", said(1_560));
    assert!(!said(31_201_560).contains(untold), "newer releases do");
}

#[test]
fn a_join_by_an_index_or_with_few_documents_is_not_named() {
    let none: [Finding; 0] = [];
    for keys in [r#"{"no":1}"#, r#"{"no":"hashed"}"#, r#"{"$**":1}"#] {
        assert_eq!(joining(keys, 20_000).findings(&DETECTOR), none, "{keys}");
    }
    assert_eq!(joining(r#"{"name":1}"#, 50).findings(&DETECTOR), none);
}

/// The plan is that of its own collection, which a join of everything has to read.
#[test]
fn what_joins_without_an_index_is_no_scan_besides() {
    let mut recording = joining(r#"{"name":1}"#, 20_000);
    let operation = &mut recording.examined().operations[0];
    operation.plan = Some("COLLSCAN".into());
    let selecting = operation.clone();
    operation.filter.as_mut().unwrap().fields.clear();
    let found = recording.findings(&DETECTOR);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].subject, "shop.customers");
    // What it selects without an index may be what takes the time.
    recording.examined().operations = vec![selecting];
    let found = recording.findings(&DETECTOR);
    let subjects: Vec<&str> = found.iter().map(|f| f.subject.as_str()).collect();
    assert_eq!(subjects, ["shop.orders", "shop.customers"]);
    assert_eq!(found[1].saves_s_per_hour, None, "{found:?}");
}

#[test]
fn a_join_is_not_served_by_an_index_that_is_not_used() {
    let with = |change: &dyn Fn(&mut IndexFacts)| {
        let mut recording = joining(r#"{"no":1}"#, 20_000);
        change(&mut recording.examined().collections[0].indexes[1]);
        recording.findings(&DETECTOR).len()
    };
    assert_eq!(with(&|_| {}), 0);
    assert_eq!(with(&|index| index.options = vec![IndexOption::Sparse]), 0);
    for option in [IndexOption::Hidden, IndexOption::Partial] {
        assert_eq!(with(&|index| index.options = vec![option]), 1, "{option:?}");
    }
    let english = |uses: u64| {
        with(&move |index| {
            index.collation = Some(r#"{"locale":"en"}"#.into());
            index.uses = Some(uses);
        })
    };
    assert_eq!((english(0), english(7)), (1, 0), "numbers are found by it");
    assert_eq!(with(&|index| index.keys = r#"{"meta.$**":1}"#.into()), 1);
    let mut hidden = joining(r#"{"no":1}"#, 20_000);
    let index = &mut hidden.examined().collections[0].indexes[1];
    (index.name, index.options) = ("no_1".into(), vec![IndexOption::Hidden]);
    let found = hidden.findings(&DETECTOR).remove(0);
    assert!(
        found.command.contains(r#"unhideIndex("no_1")"#),
        "{found:?}"
    );
}

/// Records a query that an index would serve, and an index that the collection has.
fn with_index(change: impl FnOnce(&mut FilterSeen), keys: &str, option: IndexOption) -> Finding {
    let mut operation = by(&[], true);
    let filter = operation.filter.as_mut().unwrap();
    filter.keys = vec![KeySeen {
        field: "n".into(),
        descending: true,
    }];
    change(filter);
    let mut recording = waiting(vec![operation]);
    recording.examined().collections[0].indexes = vec![IndexFacts {
        name: "n_-1".into(),
        keys: keys.into(),
        options: vec![option],
        ..IndexFacts::default()
    }];
    recording.rising("metrics.queryExecutor.scannedObjects", 50_000.0);
    recording.rising("metrics.document.returned", 10.0);
    recording.findings(&DETECTOR).remove(0)
}

#[test]
fn an_index_that_is_there_and_not_used_is_named() {
    for keys in [r#"{"n":-1}"#, r#"{"n":1}"#] {
        let hidden = with_index(|_| (), keys, IndexOption::Hidden);
        assert!(
            hidden.command.contains(r#"unhideIndex("n_-1")"#),
            "{hidden:?}"
        );
        assert!(
            hidden.evidence[2].contains("n_-1 has these keys, and is hidden"),
            "{hidden:?}"
        );
    }
    let partial = with_index(|_| (), r#"{"n":-1}"#, IndexOption::Partial);
    assert!(partial.command.contains("getIndexes()"), "{partial:?}");
    let other = with_index(|_| (), r#"{"m":1}"#, IndexOption::Hidden);
    assert!(
        other.command.contains(r#"createIndex({"n": -1})"#),
        "{other:?}"
    );
    let english = |filter: &mut FilterSeen| {
        filter.collation = Some(r#"{"locale":"en","strength":2}"#.into());
    };
    let collated = with_index(english, r#"{"n":-1}"#, IndexOption::Unique);
    let command = r#"createIndex({"n": -1}, {collation: {"locale":"en","strength":2}})"#;
    assert!(collated.command.contains(command), "{collated:?}");
    assert!(
        collated.evidence[2].contains("another collation"),
        "{collated:?}"
    );
}

#[test]
fn conditions_beyond_an_index_get_no_promise() {
    let selecting = |operator: &str| {
        let mut operation = by(&["place"], false);
        operation.filter.as_mut().unwrap().beyond = vec![ConditionSeen {
            field: "place".into(),
            operator: operator.into(),
        }];
        waited_for(vec![operation], 50_000.0, 20.0)
    };
    for (operator, words, command) in [
        ("$size", "with $size", "currentOp"),
        (
            "$geoWithin",
            "a 2dsphere index",
            r#"createIndex({"place": "2dsphere"})"#,
        ),
        // Which index helps depends on values, which are not read.
        ("$exists", "a sparse one is not used", "currentOp"),
    ] {
        let found = selecting(operator);
        assert_eq!(found.saves_s_per_hour, None, "{found:?}");
        assert!(found.evidence[1].contains(words), "{found:?}");
        assert!(found.command.contains(command), "{found:?}");
    }
    let mut operation = by(&["slug"], false);
    operation.filter.as_mut().unwrap().patterns = vec!["slug".into()];
    let pattern = waited_for(vec![operation], 50_000.0, 20.0);
    assert_eq!(pattern.saves_s_per_hour, None, "{pattern:?}");
    let mut operation = by(&[], true);
    operation.filter.as_mut().unwrap().natural = true;
    let natural = waited_for(vec![operation], 50_000.0, 20.0);
    assert!(natural.evidence[1].contains("$natural"), "{natural:?}");
}

/// A regression: keys of another query's index were counted as what the scan examined in vain.
#[test]
fn keys_of_indexes_do_not_make_a_scan_selective() {
    let mut recording = waiting(vec![by(&["region"], false)]);
    recording.rising("metrics.queryExecutor.scanned", 1_900_000.0);
    recording.rising("metrics.queryExecutor.scannedObjects", 95_000.0);
    recording.rising("metrics.document.updated", 83_000.0);
    recording.rising("metrics.document.returned", 400.0);
    let found = recording.findings(&DETECTOR).remove(0);
    assert_eq!(found.saves_s_per_hour, None, "{found:?}");
}

#[test]
fn the_scan_that_an_index_spares_represents_its_collection() {
    let mut first = by(&[], true);
    first.looks = 5;
    first.filter.as_mut().unwrap().keys = vec![KeySeen {
        field: "total".into(),
        descending: true,
    }];
    let found = waited_for(vec![by(&[], true), first], 50_000.0, 1.0);
    assert!(
        found.command.contains(r#"createIndex({"total": -1})"#),
        "{found:?}"
    );
    let saves = found.saves_s_per_hour.unwrap();
    assert!(
        (saves - 360.0 * 5.0 / 14.0).abs() < 1.0,
        "its own share: {saves}"
    );
    let others = found.evidence.last().unwrap();
    let begins = "One other kind of operation read all of the collection, too: command find (";
    assert!(
        others.starts_with(begins) && others.ends_with(" per hour)."),
        "{found:?}"
    );
}
