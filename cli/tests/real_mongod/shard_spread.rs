//! What `doctor` says of data that is spread unevenly over the shards of a cluster.

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use serde_json::Value;

use crate::running::{Running, own};
use crate::schemas::assert_valid;
use crate::support::{Bench, json, shared_machine, until};

const UNEVEN: &str = "spread.uneven";
const EVEN: &str = "spread.even";
/// The number of documents, about 3 KiB each.
const DOCUMENTS: u64 = 4_000;

/// A cluster that keeps chunks small and where they are, with such collections.
fn cluster(collections: &[(&str, Document)]) -> Running {
    let cluster = own(Topology::Sharded { shards: 2 }, &[]);
    cluster.command("admin", doc! { "balancerStop": 1 });
    let size =
        doc! { "q": { "_id": "chunksize" }, "u": { "$set": { "value": 1 } }, "upsert": true };
    cluster.command("config", doc! { "update": "settings", "updates": [size] });
    cluster.command("admin", doc! { "enableSharding": "spread" });
    for (namespace, key) in collections {
        let shard = doc! { "shardCollection": namespace, "key": key };
        cluster.command("admin", shard);
        cluster.load(namespace, DOCUMENTS);
    }
    cluster.command("admin", doc! { "fsync": 1 });
    cluster
}

fn examined(bench: &Bench, cluster: &Running, length: &str, run: &str) -> Value {
    let mongos = cluster.member("mongos").uri();
    json(&mut bench.seekscope(&["doctor", &mongos, "--for", length, "--out", run]))
}

fn findings<'a>(document: &'a Value, id: &str) -> Vec<&'a Value> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["id"] == id).collect()
}

/// The first answer to a question.
fn first(cluster: &Running, database: &str, find: Document) -> Document {
    let reply = cluster.command(database, find);
    let cursor = reply.get_document("cursor").unwrap();
    let first = cursor.get_array("firstBatch").unwrap()[0].as_document();
    first.unwrap().clone()
}

/// Splits the chunk that holds the document at `place`.
fn split(cluster: &Running, namespace: &str, place: i32) {
    let (database, collection) = namespace.split_once('.').unwrap();
    let at_place = doc! { "find": collection, "sort": { "_id": 1 }, "skip": place, "limit": 1 };
    let at_place = first(cluster, database, at_place);
    let middle = doc! { "_id": at_place.get("_id").unwrap().clone() };
    cluster.command("admin", doc! { "split": namespace, "middle": middle });
}

/// Moves the documents below the one at `place` to the other shard; returns the one that they were on.
fn move_below(cluster: &Running, namespace: &str, place: i32) -> String {
    split(cluster, namespace, place);
    let least = doc! { "_id": mongodb::bson::Bson::MinKey };
    let chunk = doc! { "find": "chunks", "filter": { "ns": namespace, "min": least.clone() } };
    let from = first(cluster, "config", chunk);
    let from = from.get_str("shard").unwrap();
    let to = if from == "shard-0" {
        "shard-1"
    } else {
        "shard-0"
    };
    let moving = doc! { "moveChunk": namespace, "find": least, "to": to };
    cluster.command("admin", moving);
    from.into()
}

#[test]
fn a_shard_with_too_much_of_a_collection_is_named_and_chunks_that_move_are_counted() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = cluster(&[
        (UNEVEN, doc! { "_id": 1 }),
        (EVEN, doc! { "_id": "hashed" }),
    ]);
    for place in [1_000, 2_000, 3_000] {
        split(&cluster, UNEVEN, place);
    }
    let document = std::thread::scope(|scope| {
        let examining = scope.spawn(|| examined(&bench, &cluster, "12s", "run"));
        // The members' runs begin when the router has been asked, or right before.
        until(|| bench.path("run/member-1/io.spool").exists());
        std::thread::sleep(std::time::Duration::from_secs(1));
        move_below(&cluster, UNEVEN, 100);
        examining.join().unwrap()
    });
    assert_valid("doctor", &document);
    let cluster_record = &document["examination"]["cluster"];
    assert_eq!(cluster_record["moved_chunks"], 1, "{cluster_record:#}");
    assert_eq!(cluster_record["balancer_on"], false);
    assert_eq!(cluster_record["chunk_bytes"], 1 << 20);
    let collections = cluster_record["collections"].as_array().unwrap();
    for collection in collections {
        let shards = collection["shards"].as_array().unwrap();
        let all = |what: &str| {
            let each = shards.iter().map(|shard| shard[what].as_u64().unwrap());
            each.sum::<u64>()
        };
        // A shard keeps copies of what it has just given away.
        let copies = match collection["namespace"] == UNEVEN {
            true => 100,
            false => 0,
        };
        assert_eq!(all("documents"), DOCUMENTS + copies, "{collection:#}");
        if collection["namespace"] == UNEVEN {
            assert_eq!(all("chunks"), 5, "{collection:#}");
            let empty = shards.iter().any(|shard| shard["chunks"] == 0);
            assert!(!empty, "as it is in the end: {collection:#}");
        }
    }
    assert_eq!(collections.len(), 2, "{cluster_record:#}");

    let uneven = findings(&document, "shards.uneven");
    let [uneven] = uneven.as_slice() else {
        panic!("{uneven:#?}");
    };
    assert_eq!(uneven["subject"], UNEVEN, "{uneven:#}");
    let said = uneven["evidence"].to_string();
    assert!(said.contains("balancer is off"), "{said}");
    assert_eq!(findings(&document, "shards.moving").len(), 1);

    let shards = document["summary"]["answers"]["shards"].as_array().unwrap();
    let shares = shards
        .iter()
        .map(|shard| shard["disk_share"].as_f64().unwrap());
    let sum: f64 = shares.sum();
    assert!((sum - 1.0).abs() < 1e-9, "{shards:#?}");
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains(
        "ONE CHUNK of users' collections WAS MOVED between shards during the observation"
    ));

    // With chunks of the usual size this is not worth a move.
    let usual = doc! { "q": { "_id": "chunksize" }, "limit": 1 };
    cluster.command("config", doc! { "delete": "settings", "deletes": [usual] });
    let document = examined(&bench, &cluster, "3s", "later");
    assert!(findings(&document, "shards.uneven").is_empty());
    assert!(findings(&document, "shards.moving").is_empty());
    assert_eq!(document["examination"]["cluster"]["moved_chunks"], 0);
}

/// Whether the balancer helps depends on more than whether it is on.
#[test]
fn what_keeps_a_collection_where_it_is_is_named() {
    const ZONED: &str = "spread.zoned";
    const ONE_VALUE: &str = "spread.one_value";
    const LEFT_ALONE: &str = "spread.left_alone";
    const MOVED: &str = "spread.moved";
    const FAILING: &str = "spread.failing";
    let _machine = shared_machine();
    let bench = Bench::new();
    let by_id = doc! { "_id": 1 };
    let cluster = cluster(&[
        (ZONED, by_id.clone()),
        // No document has this field.
        (ONE_VALUE, doc! { "region": 1 }),
        (LEFT_ALONE, by_id.clone()),
        (MOVED, by_id),
    ]);
    let keeper = move_below(&cluster, ZONED, 10);
    for place in [1_000, 2_000, 3_000] {
        split(&cluster, LEFT_ALONE, place);
    }
    // Its copies of these stay for a quarter of an hour.
    move_below(&cluster, MOVED, (DOCUMENTS / 2).try_into().unwrap());
    let attempts = fail_to_move(&cluster, FAILING);
    cluster.command("admin", doc! { "addShardToZone": &keeper, "zone": "eu" });
    let (least, most) = (mongodb::bson::Bson::MinKey, mongodb::bson::Bson::MaxKey);
    let (min, max) = (doc! { "_id": least }, doc! { "_id": most });
    let range = doc! { "updateZoneKeyRange": ZONED, "min": min, "max": max, "zone": "eu" };
    cluster.command("admin", range);
    let set = doc! { "q": { "_id": LEFT_ALONE }, "u": { "$set": { "noBalance": true } } };
    cluster.command("config", doc! { "update": "collections", "updates": [set] });

    let document = examined(&bench, &cluster, "3s", "run");
    assert_valid("doctor", &document);
    let uneven = findings(&document, "shards.uneven");
    let subjects = uneven
        .iter()
        .map(|finding| finding["subject"].as_str().unwrap());
    let mut subjects: Vec<&str> = subjects.collect();
    subjects.sort_unstable();
    assert_eq!(subjects, [LEFT_ALONE, ONE_VALUE, ZONED], "{uneven:#?}");
    for (subject, words) in [
        (LEFT_ALONE, "told to leave this collection alone"),
        (ONE_VALUE, "All of it is one chunk"),
        (ZONED, "to shards (eu)"),
    ] {
        let of_subject = |finding: &&&Value| finding["subject"] == subject;
        let finding = uneven.iter().find(of_subject).unwrap();
        let said = finding["evidence"].to_string();
        assert!(said.contains(words), "{finding:#}");
    }
    assert!(findings(&document, "shards.draining").is_empty());
    let moving = findings(&document, "shards.moving");
    let [failing] = moving.as_slice() else {
        panic!("{moving:#?}");
    };
    let title = failing["title"].as_str().unwrap();
    let expected =
        format!("{attempts} attempts to move a chunk of {FAILING} failed in the last hour");
    assert!(title.starts_with(&expected), "{failing:#}");

    // The other one, so that what it has is little.
    let leaving = if keeper == "shard-0" {
        "shard-1"
    } else {
        "shard-0"
    };
    cluster.command("admin", doc! { "removeShard": leaving });
    let document = examined(&bench, &cluster, "3s", "removing");
    let draining = findings(&document, "shards.draining");
    assert_eq!(draining.len(), 1, "{draining:#?}");
    assert_eq!(draining[0]["subject"], leaving);
    let title = draining[0]["title"].as_str().unwrap();
    assert!(title.contains("still has 3 chunks"), "{title}");
    let said = draining[0]["evidence"].to_string();
    assert!(said.contains("The balancer is off"), "{said}");
    assert!(findings(&document, "shards.uneven").is_empty());
}

/// Tries to move a chunk to the shard that has a document with the same `_id`, which is unique on each shard alone. Returns
/// how many attempts failed.
fn fail_to_move(cluster: &Running, namespace: &str) -> usize {
    const ATTEMPTS: usize = 2;
    let (_, collection) = namespace.split_once('.').unwrap();
    let shard = doc! { "shardCollection": namespace, "key": { "place": 1 } };
    cluster.command("admin", shard);
    let insert = |place: i32| {
        let document = doc! { "_id": 1, "place": place };
        let insert = doc! { "insert": collection, "documents": [document] };
        cluster.command("spread", insert);
    };
    insert(0);
    let middle = doc! { "split": namespace, "middle": { "place": 100 } };
    cluster.command("admin", middle);
    let chunk = doc! { "find": "chunks", "filter": { "ns": namespace, "max.place": 100 } };
    let other = match first(cluster, "config", chunk).get_str("shard").unwrap() {
        "shard-0" => "shard-1",
        _ => "shard-0",
    };
    let move_at =
        |place: i32| doc! { "moveChunk": namespace, "find": { "place": place }, "to": other };
    cluster.command("admin", move_at(100));
    insert(100);
    for _ in 0..ATTEMPTS {
        cluster.try_command("admin", move_at(0)).unwrap_err();
    }
    ATTEMPTS
}

/// Documents whose field `at` grows, this many at a time.
fn insert_events(cluster: &Running, ats: std::ops::Range<i32>, at_once: usize) {
    let ats: Vec<i32> = ats.collect();
    let inserts = ats.chunks(at_once).map(|batch| {
        let event = |at: &i32| doc! { "at": *at, "customer": *at % 50, "text": "a".repeat(200) };
        let documents: Vec<Document> = batch.iter().map(event).collect();
        doc! { "insert": "events", "documents": documents }
    });
    cluster.commands("spread", inserts);
}

#[test]
fn a_shard_that_takes_all_inserts_and_finds_that_all_have_to_answer_are_named() {
    const EVENTS: &str = "spread.events";
    const FINDS: u64 = 150;
    const DELETES: i32 = 30;
    const NEW: i32 = 300;
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = cluster(&[]);
    let shard = doc! { "shardCollection": EVENTS, "key": { "at": 1 } };
    cluster.command("admin", shard);
    insert_events(&cluster, 0..4_000, 500);
    let middle = doc! { "split": EVENTS, "middle": { "at": 2_000 } };
    cluster.command("admin", middle);
    let moved = doc! { "find": "chunks", "filter": { "ns": EVENTS, "max.at": 2_000 } };
    let moved = first(&cluster, "config", moved);
    let taker = moved.get_str("shard").unwrap();
    let other = match taker {
        "shard-0" => "shard-1",
        _ => "shard-0",
    };
    let moving = doc! { "moveChunk": EVENTS, "find": { "at": 0 }, "to": other };
    cluster.command("admin", moving);

    let document = std::thread::scope(|scope| {
        let examining = scope.spawn(|| examined(&bench, &cluster, "12s", "run"));
        // The members' runs begin when the router has been asked, or right before.
        until(|| bench.path("run/member-1/io.spool").exists());
        std::thread::sleep(std::time::Duration::from_secs(1));
        insert_events(&cluster, 4_000..4_000 + NEW, 1);
        let find = |_: u64| doc! { "find": "events", "filter": { "customer": 7 }, "limit": 1 };
        cluster.commands("spread", (0..FINDS).map(find));
        let delete =
            |at: i32| doc! { "delete": "events", "deletes": [{ "q": { "at": at }, "limit": 1 }] };
        cluster.commands("spread", (0..DELETES).map(delete));
        examining.join().unwrap()
    });
    assert_valid("doctor", &document);
    let record = &document["examination"]["cluster"];
    let sent = record["sent"].as_array().unwrap();
    let of = |kind: &str| sent.iter().find(|sent| sent["kind"] == kind).unwrap();
    assert_eq!(of("find")["all_shards"], FINDS, "{record:#}");
    assert_eq!(of("delete")["all_shards"], 0, "{record:#}");
    assert_eq!(of("delete")["one_shard"], DELETES, "{record:#}");
    // What is asked about collections goes to all shards as well, and is not counted.
    assert_eq!(of("aggregate")["all_shards"], 0, "{record:#}");
    let hot = findings(&document, "shards.hot");
    let [hot] = hot.as_slice() else {
        panic!("{document:#}");
    };
    let title = hot["title"].as_str().unwrap();
    // The deletes go to the other.
    let expected = format!("of the writes to {EVENTS} go to one of 2 shards, {taker}");
    assert!(title.ends_with(&expected), "{hot:#}");
    let said = hot["evidence"].to_string();
    assert!(said.contains("did 300 of 330 writes to it"), "{said}");
    let verdict = document["summary"]["verdict"].to_string();
    assert!(verdict.contains(title), "{verdict}");
    let broadcast = findings(&document, "shards.broadcast");
    let [broadcast] = broadcast.as_slice() else {
        panic!("{document:#}");
    };
    assert_eq!(
        broadcast["title"],
        "100 % of the finds on sharded collections go to all shards"
    );

    // In peace there is nothing to tell.
    let document = examined(&bench, &cluster, "3s", "later");
    assert!(findings(&document, "shards.hot").is_empty());
    assert!(findings(&document, "shards.broadcast").is_empty());
}
