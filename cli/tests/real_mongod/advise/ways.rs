//! The advised way, and how far its prediction is from what that way costs when the whole collection is stored so.

use mongodb::bson::{DateTime, Document, doc};
use seekscope_stats::SplitMix64;
use serde_json::Value;

use super::{
    DATABASE, DEVICES, MINUTE_MS, Prepared, advice, advised, document, index, insert, read_anew,
    sample, text, way,
};
use crate::running::beforehand;
use crate::support::{Bench, shared_machine};

/// Minutes that a query asks for.
const STRETCH: i64 = 120;
/// One device of this many is left where the samples of others are deleted.
const LEFT: i64 = 4;

/// Blocks that the server reads for a query with everything but the upper pages of the files out of its cache: queries
/// of a fresh server.
fn blocks(running: &Prepared, collection: &str, keys: &Document, queries: &[Document]) -> f64 {
    let read = || {
        let stats = running.command(DATABASE, doc! { "collStats": collection });
        let pages = |file: &Document| {
            let cache = file.get_document("cache").unwrap();
            f64::from(cache.get_i32("pages read into cache").unwrap())
        };
        let indexes = stats.get_document("indexDetails").unwrap().iter();
        let indexes = indexes.map(|(_, index)| pages(index.as_document().unwrap()));
        pages(stats.get_document("wiredTiger").unwrap()) + indexes.sum::<f64>()
    };
    let nothing: Document = keys
        .keys()
        .map(|key| (key.clone(), "nothing".into()))
        .collect();
    running.command(
        DATABASE,
        doc! { "find": collection, "filter": nothing, "hint": keys },
    );
    running.command(DATABASE, doc! { "find": collection, "limit": 1 });
    let before = read();
    for query in queries {
        let mut find = doc! { "find": collection, "hint": keys, "batchSize": 10_000 };
        find.extend(query.clone());
        running.command(DATABASE, find);
    }
    (read() - before) / queries.len() as f64
}

/// The same of a server that was restarted with the collection's files, which closes every page of the cache.
fn cold_blocks(
    running: &mut Prepared,
    collection: &str,
    keys: &Document,
    queries: &[Document],
) -> f64 {
    running.restart();
    blocks(running, collection, keys, queries)
}

/// The predicted reduction is within a quarter of the measured one.
fn assert_reduction(summary: &Value, kind: &str, measured: (f64, f64)) {
    let blocks = |kind: &str| way(summary, kind)["blocks_per_query"].as_f64().unwrap();
    let predicted = blocks("present") - blocks(kind);
    let true_one = measured.0 - measured.1;
    assert!(
        (predicted / true_one - 1.0).abs() <= 0.25,
        "predicted {predicted}, measured {measured:?}: {summary:#}"
    );
}

/// Queries for the samples of some device in each of the stretches of time that make up this many minutes. Pages at one
/// place of a file hold up to three times as much as at another, so that a few stretches say nothing of the whole.
fn stretches(minutes: i64, span_ms: i64) -> Vec<Document> {
    let one = |n: i64| {
        let from = 1_700_000_000_000 + n * STRETCH * MINUTE_MS;
        let until = DateTime::from_millis(from + STRETCH * MINUTE_MS);
        let from = DateTime::from_millis(from - from.rem_euclid(span_ms));
        let device = format!("device {}", n * LEFT % DEVICES);
        doc! { "filter": { "device": device, "ts": { "$gte": from, "$lt": until } } }
    };
    (0..minutes / STRETCH).map(one).collect()
}

/// Besides blocks, the test compares the times that inserts take.
#[test]
fn series_are_to_be_joined_and_the_prediction_comes_true() {
    let minutes = 4_000;
    let keys = doc! { "device": 1, "ts": 1 };
    let (_machine, mut running) = beforehand(|| {
        let running = Prepared::start();
        insert(&running, "series", DEVICES * minutes, sample);
        index(&running, "series", keys.clone());
        running
    });
    let bench = Bench::new();
    read_anew(&mut running, "series");
    let query = r#"{"filter": {"device": "?", "ts": {"$gte": "?", "$lt": "?"}}, "per_s": 10, "returns": 120}"#;
    let summary = advice(&bench, &running, "series", query, &["--sample", "20000"]);
    assert_eq!(summary["sample"]["documents"], 20_000);
    let joined = advised(&summary);
    assert_eq!(joined["kind"], "buckets", "{summary:#}");
    let span_ms = joined["bucket_ms"].as_i64().unwrap();
    // Everything was read once since the start, which says nothing of what the cache will do.
    assert!(summary["collection"]["missed_share"].is_null());
    assert!(joined["s_per_hour"].is_null());

    // For real: the whole collection in the same buckets.
    let ms = doc! { "$toLong": "$ts" };
    let start = doc! { "$subtract": [ms.clone(), { "$mod": [ms, span_ms] }] };
    let pipeline = vec![
        doc! { "$group": { "_id": { "d": "$device", "s": start }, "samples": { "$push": { "ts": "$ts", "value": "$value" } } } },
        doc! { "$sort": { "_id.s": 1 } },
        doc! { "$project": { "_id": 0, "device": "$_id.d", "ts": { "$toDate": "$_id.s" }, "samples": 1 } },
        doc! { "$out": "joined" },
    ];
    running.command(
        DATABASE,
        doc! { "aggregate": "series", "pipeline": pipeline, "cursor": {}, "allowDiskUse": true },
    );
    index(&running, "joined", keys.clone());
    // Fewer bytes, and what adding a sample to its bucket takes.
    let bytes = |kind: &str| {
        way(&summary, kind)["stored_bytes_per_document"]
            .as_f64()
            .unwrap()
    };
    assert!(bytes("compressor") < bytes("present"), "{summary:#}");
    let insert_ns = |kind: &str| way(&summary, kind)["insert_ns"].as_f64().unwrap();
    assert!(insert_ns("buckets") > insert_ns("present"), "{summary:#}");

    let present = cold_blocks(&mut running, "series", &keys, &stretches(minutes, 1));
    let after = cold_blocks(&mut running, "joined", &keys, &stretches(minutes, span_ms));
    assert_reduction(&summary, "buckets", (present, after));
}

#[test]
fn pages_that_deletes_left_nearly_empty_are_predicted_as_they_are() {
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let minutes = 2_400;
    insert(&running, "emptied", DEVICES * minutes, sample);
    let gone = (0..DEVICES).filter(|device| device % LEFT != 0);
    let gone: Vec<String> = gone.map(|device| format!("device {device}")).collect();
    let delete = doc! { "q": { "device": { "$in": gone } }, "limit": 0 };
    // Pages that were written before are not joined when documents of theirs are deleted.
    running.restart();
    running.command(DATABASE, doc! { "delete": "emptied", "deletes": [delete] });
    let keys = doc! { "device": 1, "ts": 1 };
    index(&running, "emptied", keys.clone());
    running.restart();
    let query = r#"{"filter": {"device": "?", "ts": {"$gte": "?", "$lt": "?"}}, "returns": 120}"#;
    let asked = |running: &Prepared| {
        let more = ["--sample", "10000"];
        let document = document(&bench, running, "emptied", query, &more);
        let limitations = document["limitations"].to_string();
        let is_said = limitations.contains("how full the collection's pages are is not known");
        (document["summary"].clone(), is_said)
    };
    let (unknown, is_said) = asked(&running);
    assert!(is_said);
    assert_eq!(unknown["collection"]["page_bytes"], Value::Null);
    read_anew(&mut running, "emptied");
    let (known, is_said) = asked(&running);
    assert!(!is_said);
    assert!(known["collection"]["page_bytes"].as_f64().unwrap() < 30_000.0);

    let present = cold_blocks(&mut running, "emptied", &keys, &stretches(minutes, 1));
    let predicted = |summary: &Value| {
        way(summary, "present")["blocks_per_query"]
            .as_f64()
            .unwrap()
    };
    assert!(predicted(&unknown) < 0.5 * present, "{unknown:#}");
    assert!(
        (predicted(&known) / present - 1.0).abs() <= 0.25,
        "measured {present}: {known:#}"
    );
}

#[test]
fn an_index_that_begins_with_the_date_is_to_be_turned_round_and_the_prediction_comes_true() {
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    // Each device's samples came in one go.
    let per_device = 200;
    let document = |n: i64| {
        let (device, minute) = (n / per_device, n % per_device);
        let at = DateTime::from_millis(1_700_000_000_000 + minute * MINUTE_MS);
        doc! { "device": device * 7_919 % 100_003, "ts": at, "text": text(n, 200) }
    };
    insert(&running, "dated", 1_000 * per_device, document);
    let by_time = doc! { "ts": 1, "device": 1 };
    index(&running, "dated", by_time.clone());
    read_anew(&mut running, "dated");
    // How full the leaves of the index are is known of one that is in use.
    running.command(
        DATABASE,
        doc! { "find": "dated", "filter": { "text": 1 }, "hint": by_time.clone() },
    );
    let query = r#"{"filter": {"device": "?", "ts": {"$gte": "?"}}, "returns": 50}"#;
    let summary = advice(&bench, &running, "dated", query, &["--sample", "40000"]);
    let turned = advised(&summary);
    assert_eq!(turned["kind"], "index", "{summary:#}");
    assert_eq!(turned["keys"], r#"{ "device": 1, "ts": 1 }"#);
    assert_eq!(turned["replaces"], r#"{ "ts": 1, "device": 1 }"#);

    let keys = doc! { "device": 1, "ts": 1 };
    let made = doc! { "key": keys.clone(), "name": "turned" };
    let made = doc! { "createIndexes": "dated", "indexes": [made] };
    running.command(DATABASE, made);
    let from = DateTime::from_millis(1_700_000_000_000 + 150 * MINUTE_MS);
    let one =
        |n: i64| doc! { "filter": { "device": n * 97 * 7_919 % 100_003, "ts": { "$gte": from } } };
    let queries: Vec<Document> = (1..=1).map(one).collect();
    let present = cold_blocks(&mut running, "dated", &by_time, &queries);
    let after = cold_blocks(&mut running, "dated", &keys, &queries);
    assert_reduction(&summary, "index", (present, after));
}

/// A scan is asked fewer queries than an index, which then find other documents.
#[test]
fn the_index_of_values_that_are_not_equally_frequent_is_advised() {
    let _machine = shared_machine();
    let running = Prepared::start();
    let bench = Bench::new();
    // Customer 0 has 200 orders, customer 1 has 199, and so on.
    let customer = |n: i64| {
        let random = SplitMix64::new(n.unsigned_abs()).next_u64() % 20_100;
        let below = |count: &i64| count * (401 - count) / 2 <= i64::try_from(random).unwrap();
        (0..200).take_while(below).last().unwrap_or(0)
    };
    let document = |n: i64| doc! { "customer": customer(n), "text": text(n, 500) };
    insert(&running, "orders", 20_000, document);
    let summary = advice(&bench, &running, "orders", r#"{"customer": "?"}"#, &[]);
    let index = way(&summary, "index");
    assert_eq!(
        index["not_measured"],
        serde_json::Value::Null,
        "{summary:#}"
    );
    let advised = advised(&summary);
    assert_eq!(advised["keys"], r#"{ "customer": 1 }"#, "{summary:#}");
}

/// A hint makes mongod use an index that does not hold all documents, and lose those that it lacks.
#[test]
fn an_index_of_some_documents_is_not_taken_for_one_of_all() {
    let _machine = shared_machine();
    let running = Prepared::start();
    let bench = Bench::new();
    let document = |n: i64| {
        let random = SplitMix64::new(n.unsigned_abs()).next_u64();
        let status = ["paid", "done", "done", "new"][usize::try_from(random % 4).unwrap()];
        let amount = i64::try_from((random >> 8) % 10_000).unwrap();
        doc! { "status": status, "amount": amount, "text": text(n, 500) }
    };
    insert(&running, "orders", 20_000, document);
    let some = doc! { "amount": { "$gt": 9_000 } };
    let partial = doc! { "key": { "status": 1 }, "name": "some", "partialFilterExpression": some };
    running.command(
        DATABASE,
        doc! { "createIndexes": "orders", "indexes": [partial] },
    );
    let query = r#"{"filter": {"status": "?", "amount": {"$gt": "?"}}, "per_s": 5}"#;
    let summary = advice(&bench, &running, "orders", query, &["--sample", "6000"]);
    let present = way(&summary, "present");
    assert_eq!(present["not_measured"], Value::Null, "{summary:#}");
    let index = way(&summary, "index");
    let blocks = |way: &Value| way["blocks_per_query"].as_f64().unwrap();
    assert!(blocks(index) < blocks(present) / 2.0, "{summary:#}");
    // The server takes these keys beside those that are there.
    let keys: Value = serde_json::from_str(index["keys"].as_str().unwrap()).unwrap();
    let keys = mongodb::bson::serialize_to_document(&keys).unwrap();
    self::index(&running, "orders", keys);
}

#[test]
fn queries_that_no_single_index_serves_are_advised_one_each() {
    let _machine = shared_machine();
    let running = Prepared::start();
    let bench = Bench::new();
    let document = |n: i64| {
        let random = SplitMix64::new(n.unsigned_abs()).next_u64();
        let below = |count: u64, shift: u32| i64::try_from((random >> shift) % count).unwrap();
        doc! { "customer": below(2_000, 0), "article": below(1_500, 24), "text": text(n, 300) }
    };
    insert(&running, "orders", 20_000, document);
    let query = |field: &str| format!(r#"{{"filter": {{"{field}": "?"}}, "per_s": 5}}"#);
    let more = ["--query", &query("article")];
    let summary = advice(&bench, &running, "orders", &query("customer"), &more);
    let advised = advised(&summary);
    assert_eq!(advised["kind"], "indexes", "{summary:#}");
    let others = advised["more_keys"].as_array().unwrap();
    let mut keys: Vec<&str> = others.iter().filter_map(Value::as_str).collect();
    keys.extend(advised["keys"].as_str());
    keys.sort_unstable();
    assert_eq!(keys, [r#"{ "article": 1 }"#, r#"{ "customer": 1 }"#]);
    let blocks = |way: &Value| way["blocks_per_query"].as_f64().unwrap();
    let one = blocks(way(&summary, "index"));
    assert!(blocks(advised) < one / 2.0, "{summary:#}");
}

/// A query that stops at the tenth match reads little without an index, and one that returns all that matches reads all.
#[test]
fn a_query_that_has_enough_early_is_not_what_an_index_is_advised_for() {
    let _machine = shared_machine();
    let running = Prepared::start();
    let bench = Bench::new();
    let count = 60_000;
    let document = |n: i64| {
        let random = |of: i64| {
            let below = SplitMix64::new((2 * n + of).unsigned_abs()).next_u64() % 600;
            i64::try_from(below).unwrap()
        };
        doc! { "tag": random(0) % 20, "customer": random(1), "text": text(n, 300) }
    };
    insert(&running, "orders", count, document);
    let tags = r#"{"filter": {"tag": "?"}, "returns": 10, "per_s": 5}"#;
    let customers = r#"{"filter": {"customer": "?"}, "per_s": 5}"#;
    let more = ["--query", customers, "--sample", "20000"];
    let summary = advice(&bench, &running, "orders", tags, &more);
    assert_eq!(
        advised(&summary)["keys"],
        r#"{ "customer": 1 }"#,
        "{summary:#}"
    );
    let shapes = summary["shapes"].as_array().unwrap();
    let blocks = |field: &str| {
        let asks = |shape: &Value| shape["equality"][0] == field;
        let shape = shapes.iter().position(asks).unwrap();
        let cost = &way(&summary, "present")["costs"][shape];
        cost["blocks"].as_f64().unwrap()
    };
    let explain = doc! { "find": "orders", "filter": { "tag": 7 }, "limit": 10 };
    let explain = doc! { "explain": explain, "verbosity": "executionStats" };
    let reply = running.command(DATABASE, explain);
    let stats = reply.get_document("executionStats").unwrap();
    let examined = stats.get_i32("totalDocsExamined").unwrap();
    assert!(examined < 1_000, "{reply}");
    // About 200 documents of 60,000.
    let (tag, customer) = (blocks("tag"), blocks("customer"));
    assert!(tag < 0.02 * customer, "{tag} {customer} {examined}");
}

#[test]
fn ranges_of_a_scattered_field_want_their_order_and_the_prediction_comes_true() {
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let count = 200_000;
    let document = |n: i64| {
        let price = SplitMix64::new(n.unsigned_abs()).next_u64() % 1_000_000_000;
        doc! { "price": i64::try_from(price).unwrap(), "text": text(n, 300) }
    };
    insert(&running, "items", count, document);
    let keys = doc! { "price": 1 };
    index(&running, "items", keys.clone());
    let query = r#"{"filter": {"price": {"$gte": "?", "$lt": "?"}}, "returns": 200}"#;
    let summary = advice(&bench, &running, "items", query, &["--sample", "10000"]);
    let ordered = advised(&summary);
    assert_eq!(
        (&ordered["kind"], &ordered["keys"]),
        (&"order".into(), &r#"{ "price": 1 }"#.into())
    );

    let pipeline = vec![doc! { "$sort": keys.clone() }, doc! { "$out": "ordered" }];
    running.command(
        DATABASE,
        doc! { "aggregate": "items", "pipeline": pipeline, "cursor": {}, "allowDiskUse": true },
    );
    index(&running, "ordered", keys.clone());
    let one = |n: i64| {
        let from = n * 166_666_666;
        doc! { "filter": { "price": { "$gte": from, "$lt": from + 1_000_000 } } }
    };
    let queries: Vec<Document> = (1..=5).map(one).collect();
    let present = cold_blocks(&mut running, "items", &keys, &queries);
    let after = cold_blocks(&mut running, "ordered", &keys, &queries);
    assert_reduction(&summary, "order", (present, after));
}

#[test]
fn an_index_that_holds_all_that_is_asked_for_is_advised_and_the_prediction_comes_true() {
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let customers = 2_000;
    let document = |n: i64| {
        let customer = n * 7_919 % customers;
        doc! { "customer": customer, "amount": n % 977, "text": text(n, 400) }
    };
    insert(&running, "paid", 100_000, document);
    index(&running, "paid", doc! { "customer": 1 });
    read_anew(&mut running, "paid");
    let query =
        r#"{"filter": {"customer": "?"}, "projection": {"amount": 1, "_id": 0}, "returns": 50}"#;
    let summary = advice(&bench, &running, "paid", query, &["--sample", "10000"]);
    let covering = advised(&summary);
    assert_eq!(covering["kind"], "covering", "{summary:#}");
    assert_eq!(covering["keys"], r#"{ "customer": 1, "amount": 1 }"#);
    assert_eq!(covering["replaces"], r#"{ "customer": 1 }"#);
    assert_eq!(covering["costs"][0]["collection_blocks"], 0.0);

    let keys = doc! { "customer": 1, "amount": 1 };
    let made = doc! { "key": keys.clone(), "name": "covering" };
    running.command(
        DATABASE,
        doc! { "createIndexes": "paid", "indexes": [made] },
    );
    let projection = doc! { "amount": 1, "_id": 0 };
    let one = |n: i64| doc! { "filter": { "customer": n * 97 }, "projection": projection.clone() };
    // Few, since those of a row find leaves of the earlier ones in the cache.
    let queries: Vec<Document> = (1..=4).map(one).collect();
    let present = cold_blocks(&mut running, "paid", &doc! { "customer": 1 }, &queries);
    let after = cold_blocks(&mut running, "paid", &keys, &queries);
    assert_reduction(&summary, "covering", (present, after));
}

#[test]
fn inserts_of_a_scattered_id_read_blocks_of_its_index_and_the_prediction_comes_true() {
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let count = 400_000;
    let document = |n: i64| doc! { "_id": text(n, 32), "customer": n % 500, "text": text(n, 60) };
    insert(&running, "random", count, document);
    index(&running, "random", doc! { "customer": 1 });
    let query = r#"{"filter": {"customer": "?"}, "returns": 5}"#;
    let summary = advice(&bench, &running, "random", query, &["--sample", "50000"]);
    let predicted = |kind: &str| {
        way(&summary, kind)["id_blocks_per_insert"]
            .as_f64()
            .unwrap()
    };
    assert!(predicted("growing_id") < 0.1, "{summary:#}");

    running.restart();
    let pages = |running: &Prepared| {
        let none = doc! { "find": "random", "filter": { "_id": "none" } };
        running.command(DATABASE, none);
        let stats = running.command(DATABASE, doc! { "collStats": "random" });
        let index = stats.get_document("indexDetails").unwrap();
        let index = index.get_document("_id_").unwrap();
        f64::from(
            index
                .get_document("cache")
                .unwrap()
                .get_i32("pages read into cache")
                .unwrap(),
        )
    };
    let before = pages(&running);
    let more = 200;
    for n in count..count + more {
        let insert = doc! { "insert": "random", "documents": [document(n)] };
        running.command(DATABASE, insert);
    }
    let measured = (pages(&running) - before) / more as f64;
    let predicted = predicted("present");
    assert!(
        (predicted / measured - 1.0).abs() <= 0.25,
        "{predicted} {measured}"
    );
}
