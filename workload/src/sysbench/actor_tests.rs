//! Tests virtual users against a scripted server in memory: everything except the wire.

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use seekscope_client::{
    Actor, ActorPlace, Failure, FailureKind, Reply, Request, Verdict, Workload,
    request::{Transaction, Verb},
};
use seekscope_stats::SplitMix64;

use super::expected::expected;
use super::settings::StepCounts;
use super::{Era, Ids, SysbenchIndexes, SysbenchLoad, SysbenchRun, SysbenchSettings};
use crate::verification::ExpectedData;
use crate::ycsb::actor_tests::split;

const PLACE: ActorPlace = ActorPlace { index: 0, count: 1 };

/// Collections by name, documents by number; and every command received.
#[derive(Debug, Default)]
struct FakeServer {
    collections: BTreeMap<String, BTreeMap<i64, RawDocumentBuf>>,
    /// Verbs with the name of the command, in order.
    commands: Vec<(Verb, Transaction, Document)>,
    batches: Vec<u32>,
    /// If set, inserts are refused as duplicates or otherwise, from this number on.
    refuse: Option<FailureKind>,
    verdicts: Vec<Verdict>,
}

impl FakeServer {
    fn serve(&mut self, actor: &mut dyn Actor, transactions: u64) -> u64 {
        let mut request = Request::default();
        for done in 0..transactions {
            if actor.begin().is_none() {
                return done;
            }
            loop {
                request.clear();
                if actor.request(&mut request).is_none() {
                    break;
                }
                let verdict = match self.answer(&request) {
                    Ok(matched) => actor.reply(Ok(&Reply {
                        matched,
                        ..Reply::default()
                    })),
                    Err(failure) => actor.reply(Err(&failure)),
                };
                self.verdicts.push(verdict);
                if matches!(verdict, Verdict::Abort(_)) {
                    break;
                }
            }
        }
        transactions
    }

    fn answer(&mut self, request: &Request) -> Result<u64, Failure> {
        let body = RawDocument::from_bytes(request.body.bytes()).unwrap();
        let body = Document::try_from(body).unwrap();
        let name = body.iter().next().map(|(_, value)| value.clone()).unwrap();
        self.commands
            .push((request.verb, request.in_transaction, body));
        let Bson::String(name) = name else {
            return Ok(0);
        };
        let collection = self.collections.entry(name).or_default();
        let statements = split(request.statements.bytes());
        assert_eq!(
            statements.len(),
            usize::try_from(request.statement_count).unwrap()
        );
        match request.verb {
            Verb::Insert => {
                self.batches.push(request.statement_count);
                if let Some(kind) = self.refuse {
                    return Err(Failure::of(kind, "Refused", ""));
                }
                for document in &statements {
                    let id = number(document.get("_id").unwrap().unwrap());
                    assert!(collection.insert(id, document.clone()).is_none());
                }
                Ok(statements.len() as u64)
            }
            Verb::Delete => {
                let q = statements[0].get_document("q").unwrap();
                let id = number(q.get("_id").unwrap().unwrap());
                Ok(u64::from(collection.remove(&id).is_some()))
            }
            _ => Ok(1),
        }
    }
}

fn number(value: bson::RawBsonRef<'_>) -> i64 {
    value
        .as_i64()
        .or_else(|| value.as_i32().map(i64::from))
        .unwrap()
}

fn settings(collections: u32, documents: u32) -> SysbenchSettings {
    SysbenchSettings {
        collections,
        documents,
        ..Era::default().defaults()
    }
}

fn loaded(settings: &SysbenchSettings, users: usize) -> FakeServer {
    let mut server = FakeServer::default();
    let load = SysbenchLoad::new(settings);
    let mut users: Vec<_> = (0..users)
        .map(|index| {
            load.actor(ActorPlace {
                index,
                count: users,
            })
        })
        .collect();
    while users
        .iter_mut()
        .map(|user| server.serve(&mut **user, 1))
        .sum::<u64>()
        > 0
    {}
    server
}

#[test]
fn however_many_load_it_the_data_are_the_same() {
    let settings = settings(3, 2_500);
    let alone = loaded(&settings, 1);
    assert_eq!(alone.collections.len(), 3);
    assert!(alone.collections.values().all(|c| c.len() == 2_500));
    assert_eq!(alone.batches, [1_000, 1_000, 500].repeat(3));
    assert_eq!(loaded(&settings, 7).collections, alone.collections);
}

#[test]
fn the_original_leaves_the_rest_out() {
    let original = SysbenchSettings {
        exact_original: true,
        ..settings(2, 2_500)
    };
    for users in [1, 5] {
        let server = loaded(&original, users);
        assert_eq!(server.collections.len(), 2);
        assert!(server.collections.values().all(|c| c.len() == 2_000));
    }
}

#[test]
fn an_index_on_every_collection() {
    let mut server = FakeServer::default();
    server.serve(
        &mut *SysbenchIndexes::new(&settings(3, 10)).actor(PLACE),
        10,
    );
    let sent: Vec<&Document> = server.commands.iter().map(|(_, _, body)| body).collect();
    let index = |n| doc! { "createIndexes": format!("sbtest{n}"), "indexes": [{ "key": { "k": 1 }, "name": "k_1" }] };
    assert_eq!(sent, [&index(1), &index(2), &index(3)]);
}

#[test]
fn a_transaction_is_the_originals_eighteen_commands() {
    let run = SysbenchRun::new(settings(1, 1_000)).unwrap();
    let mut server = loaded(run.settings(), 1);
    server.commands.clear();
    server.serve(&mut *run.actor(PLACE), 1);
    let sent = std::mem::take(&mut server.commands);
    let verbs: Vec<Verb> = sent.iter().map(|(verb, ..)| *verb).collect();
    let mut expected = vec![Verb::Find; 11];
    expected.extend([Verb::Aggregate, Verb::Find, Verb::Command]);
    expected.extend([Verb::Update, Verb::Update, Verb::Delete, Verb::Insert]);
    assert_eq!(verbs, expected);
    assert!(sent.iter().all(|(_, part, _)| *part == Transaction::None));

    // The ids, drawn as in Java: the collection first, then one id for each command.
    let mut java = crate::generators::JavaRandom::new(run.settings().seed);
    java.next_int_below(1);
    let mut id = || java.next_int_below(1_000) + 1;
    let projection = doc! { "c": 1, "_id": 0 };
    for (_, _, body) in &sent[..10] {
        let wanted = doc! { "find": "sbtest1", "filter": { "_id": id() }, "projection": projection.clone(), "limit": 1, "singleBatch": true };
        assert_eq!(*body, wanted);
    }
    let mut range = || {
        let first = id();
        doc! { "_id": { "$gte": first, "$lte": first + 99 } }
    };
    assert_eq!(
        sent[10].2,
        doc! { "find": "sbtest1", "filter": range(), "projection": projection.clone() }
    );
    assert_eq!(
        sent[11].2,
        doc! { "aggregate": "sbtest1", "pipeline": [
            { "$match": range() },
            { "$project": { "k": 1, "_id": 0 } },
            { "$group": { "_id": null, "average": { "$sum": "$k" } } },
        ], "cursor": {} }
    );
    assert_eq!(
        sent[12].2,
        doc! { "find": "sbtest1", "filter": range(), "sort": { "c": 1 }, "projection": projection }
    );
    assert_eq!(
        sent[13].2,
        doc! { "distinct": "sbtest1", "key": "c", "query": range() }
    );
}

#[test]
fn operations_are_named_and_counted_by_step() {
    let names = |settings| -> Vec<String> {
        let run = SysbenchRun::new(settings).unwrap();
        run.operations().iter().map(|op| op.name.clone()).collect()
    };
    let all = names(settings(1, 10));
    assert_eq!(all.len(), 10);
    assert_eq!(
        (&*all[0], &*all[8], &*all[9]),
        ("point select", "insert", "transaction")
    );
    let read_only = SysbenchSettings {
        steps: StepCounts::default().read_only(),
        ..settings(1, 10)
    };
    assert_eq!(
        names(read_only),
        [
            "point select",
            "simple range",
            "sum range",
            "order range",
            "distinct range",
            "transaction"
        ]
    );
}

#[test]
fn real_transactions_begin_and_commit() {
    let run = SysbenchRun::new(SysbenchSettings {
        is_transaction: true,
        ..settings(2, 1_000)
    })
    .unwrap();
    let mut server = loaded(run.settings(), 1);
    server.commands.clear();
    server.serve(&mut *run.actor(PLACE), 1);
    assert_eq!(server.commands.len(), 19);
    let parts: Vec<Transaction> = server.commands.iter().map(|(_, part, _)| *part).collect();
    assert_eq!(parts[0], Transaction::Start);
    assert!(
        parts[1..18]
            .iter()
            .all(|part| *part == Transaction::Continue)
    );
    assert_eq!(parts[18], Transaction::End);
    assert_eq!(server.commands[18].2, doc! { "commitTransaction": 1 });
}

#[test]
fn every_document_is_there_after_a_run() {
    for ids in [
        Ids::Uniform,
        Ids::Zipfian { theta: 0.8 },
        Ids::Pareto { h: 0.2 },
    ] {
        let run = SysbenchRun::new(SysbenchSettings {
            ids,
            ..settings(2, 300)
        })
        .unwrap();
        let mut server = loaded(run.settings(), 1);
        server.serve(&mut *run.actor(PLACE), 200);
        assert!(
            server
                .verdicts
                .iter()
                .all(|verdict| *verdict == Verdict::Good)
        );
        let mut random = SplitMix64::new(1);
        for expected in expected(run.settings(), Some(run.changes())) {
            let collection = &server.collections[expected.collection()];
            assert_eq!(expected.expected_count(), Some(collection.len() as u64));
            for _ in 0..300 {
                let id = expected.sample(&mut random).unwrap();
                let document = &collection[&id.as_i64().unwrap()];
                assert!(expected.matches(&id, document));
                assert!(!expected.matches(&Bson::Int64(0), document));
            }
        }
    }
}

#[test]
fn skewed_ids_are_skewed() {
    for (ids, least) in [
        (Ids::Zipfian { theta: 0.8 }, 0.4),
        // A fifth of the ids, four fifths of the draws.
        (Ids::Pareto { h: 0.2 }, 0.77),
    ] {
        let settings = SysbenchSettings {
            ids,
            steps: StepCounts {
                point_selects: 1_000,
                ..StepCounts::default().read_only()
            },
            ..settings(1, 1_000)
        };
        let run = SysbenchRun::new(settings).unwrap();
        let mut server = FakeServer::default();
        server.serve(&mut *run.actor(PLACE), 1);
        let low = server.commands[..1_000].iter().filter(|(_, _, body)| {
            let id = body.get_document("filter").unwrap().get_i32("_id").unwrap();
            assert!((1..=1_000).contains(&id));
            id <= 200
        });
        let share = low.count() as f64 / 1_000.0;
        assert!(share > least && share < 0.9, "{ids:?}: {share}");
    }
}

/// The rest of the transaction is omitted; what is known of the documents remains correct.
#[test]
fn a_refused_insert_ends_the_transaction() {
    for (kind, is_sampled) in [
        (FailureKind::Duplicate, true),
        (FailureKind::Timeout, false),
    ] {
        let steps = StepCounts {
            replacements: 2,
            ..StepCounts::default()
        };
        let run = SysbenchRun::new(SysbenchSettings {
            steps,
            ..settings(1, 1)
        })
        .unwrap();
        let mut server = loaded(run.settings(), 1);
        server.refuse = Some(kind);
        server.commands.clear();
        server.serve(&mut *run.actor(PLACE), 1);
        assert_eq!(server.commands.len(), 18);
        assert_eq!(server.verdicts.last(), Some(&Verdict::Abort("ERROR")));
        let expected = &expected(run.settings(), Some(run.changes()))[0];
        assert_eq!(expected.expected_count(), Some(0));
        assert_eq!(
            expected.sample(&mut SplitMix64::new(1)).is_some(),
            is_sampled
        );
    }
}
