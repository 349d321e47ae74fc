use std::time::Duration;

use super::*;

fn running(operation: &Document) -> Option<Running> {
    Running::read(operation, DefaultWriteConcern::Itself)
}

/// Returns a scan as mongod 4.2.2 shows it, without the fields that nobody reads.
fn scan(microsecs: i64) -> Document {
    doc! {
        "type": "op", "desc": "conn7", "appName": "shop", "active": true, "op": "query",
        "ns": "shop.orders", "secs_running": microsecs / 1_000_000, "microsecs_running": microsecs,
        "command": { "find": "orders", "filter": { "name": "SECRET" }, "$db": "shop" },
        "planSummary": "COLLSCAN", "waitingForLock": false, "waitingForFlowControl": false,
    }
}

/// The session is as mongod 4.4.6 shows one between two statements, without the fields that nobody reads.
#[test]
fn a_transaction_that_its_client_leaves_open_is_seen() {
    let mut session = doc! {
        "type": "idleSession", "desc": "inactive transaction", "active": false, "waitingForLock": false,
        "transaction": { "timeOpenMicros": 6_089_560_i64, "timeInactiveMicros": 6_089_463_i64 },
    };
    let open = running(&session).unwrap();
    assert_eq!(
        (open.alike.kind.as_str(), open.running_us),
        (OperationSeen::IDLE_TRANSACTION, 6_089_560)
    );
    session.remove("transaction");
    assert_eq!(running(&session), None);
}

/// Updates with `w: 3` while one of three members is down, as mongod 4.4.6 shows them, without unread fields.
#[test]
fn a_write_that_others_have_yet_to_acknowledge_is_told_from_one_at_work() {
    let acquired = doc! { "Global": { "acquireCount": { "r": 1_i64, "w": 2_i64 } } };
    let waiting = doc! {
        "type": "op", "desc": "conn28", "active": true, "op": "command", "ns": "shop.$cmd",
        "command": { "update": "orders", "ordered": true, "writeConcern": { "w": 3 }, "$db": "shop" },
        "microsecs_running": 2_999_452_i64, "locks": {}, "lockStats": acquired,
        "waitingForLock": false, "waitingForFlowControl": false,
    };
    let alike = |operation: &Document| running(operation).unwrap().alike;
    let seen = alike(&waiting);
    assert_eq!(seen.kind, OperationSeen::UNACKNOWLEDGED_WRITE);
    assert_eq!(seen.namespace.as_deref(), Some("shop.orders"));
    let with = |name: &str, value: Document| {
        let mut operation = waiting.clone();
        operation.insert(name, value);
        alike(&operation).kind
    };
    let majority =
        doc! { "findAndModify": "orders", "writeConcern": { "w": "majority" }, "$db": "shop" };
    assert_eq!(
        with("command", majority),
        OperationSeen::UNACKNOWLEDGED_WRITE
    );
    assert_eq!(
        with("locks", doc! { "Global": "w" }),
        "command update",
        "at work"
    );
    assert_eq!(
        with("lockStats", doc! {}),
        "command update",
        "not yet begun"
    );
    let read = doc! { "Global": { "acquireCount": { "r": 1_i64 } } };
    assert_eq!(with("lockStats", read), "command update", "has only read");
    let alone = doc! { "update": "orders", "writeConcern": { "w": 1 }, "$db": "shop" };
    assert_eq!(with("command", alone), "command update");
}

/// An insert as mongod 4.4.6 shows it for as long as it waits.
#[test]
fn a_write_is_unacknowledged_for_as_long_as_it_was_seen_to_be() {
    let mut looks = Looks::default();
    let waiting = |opid: i32| {
        doc! {
            "type": "op", "opid": opid, "active": true, "op": "insert", "ns": "shop.orders",
            "command": { "insert": "orders", "writeConcern": { "w": 3 }, "$db": "shop" },
            "microsecs_running": 189_i64, "locks": {},
            "lockStats": { "Global": { "acquireCount": { "w": 1_i64 } } },
        }
    };
    let begin = Instant::now();
    let mut longest_us = |after_s: u64, opids: &[i32]| {
        let all: Vec<Document> = opids.iter().copied().map(waiting).collect();
        let now = begin + Duration::from_secs(after_s);
        looks.add(&doc! { "inprog": all }, now);
        looks.take()[0].running_us
    };
    assert_eq!(longest_us(0, &[7]), 189);
    assert_eq!(longest_us(2, &[7, 8]), 2_000_000);
    assert_eq!(longest_us(3, &[8]), 1_000_000, "the other has ended");
    assert_eq!(longest_us(4, &[9]), 189);
    assert_eq!(longest_us(5, &[8]), 189, "another of this number");
}

#[test]
fn a_write_that_names_no_members_waits_for_those_of_the_default() {
    let mut looks = Looks::default();
    let write = |command: Document| {
        doc! {
            "type": "op", "active": true, "op": "command", "ns": "shop.$cmd", "command": command,
            "microsecs_running": 2_999_452_i64, "locks": {},
            "lockStats": { "Global": { "acquireCount": { "w": 1_i64 } } },
        }
    };
    let unsaid = doc! { "insert": "orders", "$db": "shop" };
    let by_itself = doc! { "insert": "lines", "writeConcern": { "w": 1 }, "$db": "shop" };
    let listing = doc! { "listCollections": 1, "$db": "shop" };
    let all = [unsaid, by_itself, listing].map(write).to_vec();
    let waiting = |looks: &mut Looks| {
        looks.add(&doc! { "inprog": all.clone() }, Instant::now());
        let seen = looks.take().into_iter();
        let seen = seen.filter(|one| one.kind == OperationSeen::UNACKNOWLEDGED_WRITE);
        seen.map(|one| one.namespace.unwrap())
            .collect::<Vec<String>>()
    };
    assert_eq!(waiting(&mut looks), [""; 0]);
    // As mongod 4.4.6 shows it once it was set, and 5.0 always.
    let status = doc! { "defaultRWConcern": {
        "defaultWriteConcern": { "w": "majority", "wtimeout": 0 },
    } };
    looks.note_default(&status);
    assert_eq!(waiting(&mut looks), ["shop.orders"]);
    looks.note_default(&doc! { "defaultRWConcern": { "defaultWriteConcern": { "w": 1 } } });
    assert_eq!(waiting(&mut looks), [""; 0]);
}

#[test]
fn idle_threads_and_our_own_questions_are_left_out() {
    let idle = doc! { "desc": "waitForMajority", "active": true, "op": "none", "ns": "" };
    let ours = doc! {
        "active": true, "op": "command", "ns": "admin.$cmd", "command": { "currentOp": 1 },
        "clientMetadata": { "application": { "name": "seekscope" } },
    };
    let news = doc! {
        "active": true, "op": "getmore", "ns": "local.oplog.rs",
        "cursor": { "tailable": true, "awaitData": true },
    };
    let hello = doc! {
        "active": true, "op": "command", "ns": "admin.$cmd",
        "command": { "hello": 1, "maxAwaitTimeMS": 10_000 },
    };
    for operation in [idle, ours, news, hello] {
        assert_eq!(running(&operation), None, "{operation}");
    }
}

/// The thread as mongod 4.4.6 shows it during a pass, without the fields that nobody reads.
#[test]
fn documents_that_expire_are_seen_to_be_deleted() {
    let pass = |opid: i32, is_active: bool| {
        doc! {
            "type": "op", "desc": "TTLMonitor", "active": is_active, "opid": opid, "op": "none", "ns": "", "command": {},
            "locks": {
                "ParallelBatchWriterMode": "r", "ReplicationStateTransition": "w", "Global": "w", "Database": "w",
                "Collection": "w",
            },
            "waitingForLock": false,
            "lockStats": { "Global": { "acquireCount": { "r": 1_i64, "w": 55_i64 } } },
            "waitingForFlowControl": false,
            "flowControlStats": { "acquireCount": 55_i64, "timeAcquiringMicros": 52_i64 },
        }
    };
    assert_eq!(running(&pass(279, false)), None, "between two passes");
    let mut looks = Looks::default();
    let begin = Instant::now();
    for (after_s, opid) in [(0, 279), (4, 279), (7, 279), (9, 312)] {
        let now = begin + Duration::from_secs(after_s);
        looks.add(&doc! { "inprog": [pass(opid, true)] }, now);
    }
    let seen = looks.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].kind.as_str(), seen[0].looks), ("TTLMonitor", 4));
    assert_eq!(seen[0].namespace, None);
    assert_eq!(seen[0].running_us, 7_000_000, "the longest pass");
}

#[test]
fn kinds() {
    let kind_of = |operation: Document| running(&operation).unwrap().alike.kind;
    let build = doc! {
        "op": "command", "ns": "shop.orders", "msg": "Index Build: inserting keys from external \
        sorter into index", "command": { "createIndexes": "orders" },
    };
    assert_eq!(kind_of(build), "index build");
    let builder = doc! { "op": "none", "desc": "IndexBuildsCoordinatorMongod-0", "msg": "x" };
    assert_eq!(kind_of(builder), "index build");
    let compact = doc! { "op": "command", "command": { "compact": "orders" } };
    assert_eq!(kind_of(compact), "compact");
    let cut_off = doc! {
        "op": "command", "ns": "shop.orders",
        "command": { "$truncated": "{ aggregate: \"orders\", pipeline: [ { $match: { a: 5" },
    };
    assert_eq!(kind_of(cut_off), "command aggregate");
    assert_eq!(kind_of(scan(1)), "query");
    let odd = doc! { "op": "command", "command": { "a: \"SECRET\"": 1 } };
    assert_eq!(kind_of(odd), "command");
}

#[test]
fn plans_keep_key_names_and_nothing_else() {
    for (plan, expected) in [
        ("COLLSCAN", "COLLSCAN"),
        ("IXSCAN { a: 1, b.c: -1 }", "IXSCAN { a: 1, b.c: -1 }"),
        (
            "IXSCAN { _fts: \"text\", _ftsx: 1 }",
            "IXSCAN { _fts: \"text\", _ftsx: 1 }",
        ),
        ("IXSCAN { a: \"SECRET\" }", "IXSCAN { a: ? }"),
        ("IXSCAN { a: 4711", "IXSCAN { a: ?"),
        (
            "IXSCAN { a: 1 }, IXSCAN { b: 1 }",
            "IXSCAN { a: 1 }, IXSCAN { b: 1 }",
        ),
    ] {
        assert_eq!(plan_without_values(plan), expected);
    }
}

#[test]
fn looks_at_a_server_that_is_locked_are_counted() {
    let mut looks = Looks::default();
    let worker = doc! { "active": true, "op": "none", "desc": "fsyncLockWorker" };
    looks.add(&doc! { "inprog": [worker.clone()] }, Instant::now());
    assert_eq!(looks.fsync_lock_count(), None);
    let locked = doc! { "inprog": [worker], "fsyncLock": true, "info": "use db.fsyncUnlock()" };
    looks.add(&locked, Instant::now());
    assert_eq!((looks.fsync_lock_count(), looks.count()), (Some(1), 2));
}

#[test]
fn looks_are_folded() {
    let mut looks = Looks::default();
    let build = |done: i64| {
        doc! {
            "active": true, "op": "command", "ns": "shop.orders", "microsecs_running": 9_000_000_i64,
            "msg": "Index Build", "command": { "createIndexes": "orders" },
            "progress": { "done": done, "total": 1000 }, "waitingForLock": done == 20,
        }
    };
    looks.add(
        &doc! { "inprog": [scan(50), scan(2_000_000), build(10)] },
        Instant::now(),
    );
    looks.add(&doc! { "inprog": [build(20)] }, Instant::now());
    looks.add(&doc! { "inprog": [scan(70), 5] }, Instant::now());
    let seen = looks.seen();
    assert_eq!(seen.len(), 2);
    let expected_build = OperationSeen {
        kind: "index build".into(),
        namespace: Some("shop.orders".into()),
        plan: None,
        running_us: 9_000_000,
        looks: 2,
        at_once: 1,
        sightings: 2,
        waiting_looks: 1,
        looks_since: 1,
        progress: Some((20, 1000)),
        filter: None,
        logged: None,
    };
    assert_eq!(seen[0], expected_build);
    assert_eq!((seen[1].looks, seen[1].at_once), (2, 2));
    assert_eq!(seen[1].looks_since, 0);
    assert_eq!(seen[1].running_us, 2_000_000);
    assert_eq!(seen[1].plan.as_deref(), Some("COLLSCAN"));
    assert_eq!(seen[1].filter.as_ref().unwrap().fields, ["name"]);
    assert!(!format!("{seen:?}").contains("SECRET"));
}

#[test]
fn hostile_replies_are_survived() {
    let many: Vec<Bson> = (0..3_000)
        .map(|n| Bson::Document(doc! { "op": "query", "ns": format!("a.c{n}"), "active": true }))
        .collect();
    let mut looks = Looks::default();
    looks.add(&doc! { "inprog": many }, Instant::now());
    assert_eq!(looks.seen.len(), DIFFERENT_MAX);
    assert_eq!(looks.seen().len(), KEPT_MAX);
    looks.add(&doc! { "inprog": { "a": 1 } }, Instant::now());
    let odd = doc! { "op": 5, "ns": "x".repeat(10_000), "microsecs_running": -1, "active": true };
    let odd = running(&odd).unwrap();
    assert_eq!(odd.running_us, 0);
    assert_eq!(odd.alike.namespace.unwrap().len(), TEXT_MAX_CHARS);
}
