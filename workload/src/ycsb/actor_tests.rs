//! Tests virtual users against a scripted server in memory: everything except the wire.

use std::collections::BTreeMap;

use bson::{RawDocument, RawDocumentBuf};
use seekscope_client::{
    Actor, ActorPlace, Failure, FailureKind, OperationId, Reply, Request, Verdict, Workload,
    request::Verb,
};

use super::rows::CheckBuffers;
use super::{ClientSlice, Edition, Properties, YcsbLoad, YcsbRun, YcsbSettings, workload};

/// A collection by key, and what was counted.
#[derive(Debug, Default)]
struct FakeServer {
    rows: BTreeMap<String, RawDocumentBuf>,
    /// Interval of inserts that fail; 0 = none.
    failing_inserts: u64,
    inserts: u64,
    good: BTreeMap<(OperationId, bool), u64>,
    bad: BTreeMap<(OperationId, &'static str), u64>,
    batches: Vec<u64>,
}

impl FakeServer {
    /// Runs this many transactions of one virtual user; returns how many there were.
    fn serve(&mut self, actor: &mut dyn Actor, transactions: u64) -> u64 {
        let mut request = Request::default();
        for done in 0..transactions {
            let Some(whole) = actor.begin() else {
                return done;
            };
            let mut all_good = true;
            loop {
                request.clear();
                let Some(operation) = actor.request(&mut request) else {
                    break;
                };
                match self.answer(&request, actor) {
                    Verdict::Good => *self.good.entry((operation, false)).or_default() += 1,
                    Verdict::Bad(name) => {
                        *self.bad.entry((operation, name)).or_default() += 1;
                        all_good = false;
                    }
                    Verdict::Abort(name) => {
                        *self.bad.entry((operation, name)).or_default() += 1;
                        all_good = false;
                        break;
                    }
                }
            }
            *self.good.entry((whole, true)).or_default() += u64::from(all_good);
        }
        transactions
    }

    fn answer(&mut self, request: &Request, actor: &mut dyn Actor) -> Verdict {
        let body = RawDocument::from_bytes(request.body.bytes()).unwrap();
        let mut reply = Reply::default();
        let mut first = None;
        match request.verb {
            Verb::Find => {
                assert_eq!(body.get_str("find").unwrap(), "usertable");
                let limit = usize::try_from(body.get_i32("limit").unwrap()).unwrap();
                let filter = body.get_document("filter").unwrap();
                let found: Vec<_> = match filter.get_str("_id") {
                    Ok(key) => {
                        assert!(body.get_bool("singleBatch").unwrap());
                        self.rows.get(key).into_iter().take(limit).collect()
                    }
                    Err(_) => {
                        assert!(body.get_document("sort").is_ok());
                        let from = filter.get_document("_id").unwrap();
                        let from = from.get_str("$gte").unwrap().to_owned();
                        self.rows
                            .range(from..)
                            .map(|(_, row)| row)
                            .take(limit)
                            .collect()
                    }
                };
                reply.returned = found.len() as u64;
                first = found.first().map(|row| (*row).clone());
            }
            Verb::Insert => {
                let documents = split(request.statements.bytes());
                assert_eq!(
                    documents.len(),
                    usize::try_from(request.statement_count).unwrap()
                );
                self.batches.push(documents.len() as u64);
                for document in documents {
                    self.inserts += 1;
                    let fails = self.inserts.is_multiple_of(self.failing_inserts);
                    let key = document.get_str("_id").unwrap().to_owned();
                    if fails || self.rows.contains_key(&key) {
                        let failure = Failure::of(FailureKind::Duplicate, "DuplicateKey", "");
                        return actor.reply(Err(&failure));
                    }
                    self.rows.insert(key, document);
                    reply.matched += 1;
                }
            }
            Verb::Update => {
                for statement in split(request.statements.bytes()) {
                    reply.matched += u64::from(self.update(&statement));
                }
            }
            other => panic!("{other:?}"),
        }
        reply.first = first.as_deref();
        actor.reply(Ok(&reply))
    }

    fn update(&mut self, statement: &RawDocument) -> bool {
        let key = statement.get_document("q").unwrap().get_str("_id").unwrap();
        let u = statement.get_document("u").unwrap();
        if statement.get_bool("upsert").unwrap_or(false) {
            self.rows.insert(key.to_owned(), u.to_owned());
            return true;
        }
        let Some(row) = self.rows.get_mut(key) else {
            return false;
        };
        let mut changed = bson::Document::try_from(&**row).unwrap();
        let set = u.get_document("$set").unwrap();
        for (name, value) in bson::Document::try_from(set).unwrap() {
            assert!(changed.insert(name, value).is_some(), "a new field");
        }
        *row = RawDocumentBuf::try_from(&changed).unwrap();
        true
    }

    fn errors(&self) -> u64 {
        self.bad.values().sum()
    }
}

/// Splits concatenated documents.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<RawDocumentBuf> {
    let mut documents = Vec::new();
    while !bytes.is_empty() {
        let length = usize::try_from(i32::from_le_bytes(bytes[..4].try_into().unwrap())).unwrap();
        documents.push(RawDocumentBuf::from_bytes(bytes[..length].to_vec()).unwrap());
        bytes = &bytes[length..];
    }
    documents
}

const PLACE: ActorPlace = ActorPlace { index: 0, count: 1 };

fn settings(letter: char, edition: Edition, more: &str) -> YcsbSettings {
    let mut properties = workload(letter).unwrap();
    properties.extend(Properties::parse(more).unwrap());
    YcsbSettings::new(&properties, edition, None).unwrap()
}

fn loaded(settings: &YcsbSettings) -> FakeServer {
    let mut server = FakeServer::default();
    let load = YcsbLoad::new(settings);
    let mut actor = load.actor(PLACE);
    server.serve(&mut *actor, u64::MAX);
    assert_eq!(
        (server.rows.len() as u64, server.errors()),
        (settings.load_count, 0)
    );
    server.good.clear();
    server
}

#[test]
fn the_last_partial_batch_is_sent() {
    let settings = settings('a', Edition::Ycsb, "recordcount=1005\nbatchsize=100");
    let server = loaded(&settings);
    let mut expected = vec![100; 10];
    expected.push(5);
    assert_eq!(server.batches, expected);
}

#[test]
fn several_users_and_clients_load_every_row_once() {
    let whole = "recordcount=2003\nbatchsize=10";
    let mut server = FakeServer::default();
    for index in 0..3 {
        let (start, count) = ClientSlice::new(index, 3).unwrap().load(2_003);
        let slice = format!("{whole}\ninsertstart={start}\ninsertcount={count}");
        let load = YcsbLoad::new(&settings('a', Edition::Corrected, &slice));
        let mut users: Vec<_> = (0..4)
            .map(|index| load.actor(ActorPlace { index, count: 4 }))
            .collect();
        while users
            .iter_mut()
            .map(|user| server.serve(&mut **user, 1))
            .sum::<u64>()
            > 0
        {}
    }
    assert_eq!((server.rows.len(), server.errors()), (2_003, 0));
}

#[test]
fn upserts_may_be_repeated() {
    let settings = settings('a', Edition::Ycsb, "mongodb.upsert=true\nbatchsize=7");
    let mut server = loaded(&settings);
    let again = YcsbLoad::new(&settings);
    server.serve(&mut *again.actor(PLACE), u64::MAX);
    assert_eq!((server.rows.len(), server.errors()), (1_000, 0));
}

#[test]
fn a_user_that_may_not_go_on_stops_its_load() {
    for (text, rows) in [
        ("core_workload_insertion_keep_going_on_error=false", 4),
        ("core_workload_insertion_keep_going_on_error=true", 800),
    ] {
        let settings = settings('a', Edition::Ycsb, text);
        let mut server = FakeServer {
            failing_inserts: 5,
            ..FakeServer::default()
        };
        server.serve(&mut *YcsbLoad::new(&settings).actor(PLACE), u64::MAX);
        assert_eq!(server.rows.len(), rows, "{text}");
    }
}

/// A to F in both editions: no errors, shares as requested, and every row correct.
#[test]
fn all_workloads_run_without_errors() {
    for edition in [Edition::Ycsb, Edition::Corrected] {
        for letter in super::WORKLOADS {
            let settings = settings(letter, edition, "operationcount=4000");
            let mut server = loaded(&settings);
            let run = YcsbRun::new(settings, ClientSlice::default()).unwrap();
            let mut users: Vec<_> = (0..4)
                .map(|index| run.actor(ActorPlace { index, count: 4 }))
                .collect();
            for _ in 0..1_000 {
                for user in &mut users {
                    server.serve(&mut **user, 1);
                }
            }
            assert_eq!(server.errors(), 0, "{letter} {edition:?}: {:?}", server.bad);
            let expected = 1_000 + run.inserted();
            assert_eq!(server.rows.len() as u64, expected);
            let inserts = matches!(letter, 'd' | 'e');
            assert_eq!(inserts, run.highest_inserted().is_some());
            if inserts {
                assert!((100..320).contains(&run.inserted()), "{}", run.inserted());
                assert_eq!(run.highest_inserted(), Some(expected - 1));
            }
            every_row_is_right(&run, &server, expected);
        }
    }
}

fn every_row_is_right(run: &YcsbRun, server: &FakeServer, records: u64) {
    let (mut key, mut room) = (String::new(), CheckBuffers::default());
    for record in 0..records {
        run.rows().key(record, &mut key);
        let row = &server.rows[&key];
        assert!(run.rows().is_row(record, row, &mut room), "{record}");
    }
}

#[test]
fn a_pair_counts_as_read_as_update_and_as_itself() {
    let settings = settings('f', Edition::Ycsb, "operationcount=1000");
    let mut server = loaded(&settings);
    let run = YcsbRun::new(settings, ClientSlice::default()).unwrap();
    let names: Vec<&str> = run.operations().iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["READ", "UPDATE", "READ-MODIFY-WRITE"]);
    assert!(run.operations()[2].is_transaction && !run.operations()[0].is_transaction);
    server.serve(&mut *run.actor(PLACE), 1_000);
    let [reads, updates, pairs] =
        [(0, false), (1, false), (2, true)].map(|at| server.good.get(&at).copied().unwrap_or(0));
    assert_eq!((reads, updates), (1_000, pairs));
    assert!((420..580).contains(&pairs), "{pairs}");
}

#[test]
fn a_pair_writes_what_follows_from_what_it_read() {
    let more = "recordcount=1\nreadproportion=0\nfieldcount=1";
    let settings = settings('f', Edition::Corrected, more);
    let mut server = loaded(&settings);
    let run = YcsbRun::new(settings, ClientSlice::default()).unwrap();
    server.serve(&mut *run.actor(PLACE), 25);
    let row = server.rows.values().next().unwrap();
    assert_eq!(run.rows().next_revision(0, row, 0), Some(26));
    every_row_is_right(&run, &server, 1);
}

#[test]
fn missing_rows_are_not_found() {
    for (edition, updates) in [(Edition::Ycsb, true), (Edition::Corrected, false)] {
        let settings = settings('f', edition, "readproportion=0");
        let run = YcsbRun::new(settings, ClientSlice::default()).unwrap();
        let mut server = FakeServer::default();
        server.serve(&mut *run.actor(PLACE), 10);
        assert_eq!(server.bad[&(0, "NOT_FOUND")], 10);
        assert_eq!(server.bad.contains_key(&(1, "NOT_FOUND")), updates);
        assert_eq!(server.good.values().sum::<u64>(), 0);
    }
    let e = settings('e', Edition::Ycsb, "insertproportion=0");
    let run = YcsbRun::new(e, ClientSlice::default()).unwrap();
    let mut server = FakeServer::default();
    server.serve(&mut *run.actor(PLACE), 10);
    assert_eq!(server.bad[&(0, "ERROR")], 10);
}

/// YCSB's readers request rows whose insert failed; ours do not.
#[test]
fn failed_inserts_are_left_out_in_the_corrected_edition_only() {
    for (edition, misses) in [(Edition::Ycsb, true), (Edition::Corrected, false)] {
        let settings = settings('d', edition, "insertproportion=0.5\nreadproportion=0.5");
        let mut server = loaded(&settings);
        server.failing_inserts = 3;
        server.inserts = 0;
        let run = YcsbRun::new(settings, ClientSlice::default()).unwrap();
        server.serve(&mut *run.actor(PLACE), 5_000);
        let failed = server.bad[&(1, "ERROR")];
        assert!(failed > 500);
        assert_eq!(
            server.bad.contains_key(&(0, "NOT_FOUND")),
            misses,
            "{edition:?}"
        );
        assert_eq!(run.inserted(), server.rows.len() as u64 - 1_000);
        assert_eq!(
            run.highest_inserted(),
            Some(1_000 + run.inserted() + failed - 1)
        );
    }
}

#[test]
fn a_second_run_begins_where_the_first_ended() {
    for edition in [Edition::Ycsb, Edition::Corrected] {
        let d = settings('d', edition, "insertproportion=0.2");
        let mut server = loaded(&d);
        let first = YcsbRun::new(d, ClientSlice::default()).unwrap();
        server.serve(&mut *first.actor(PLACE), 1_000);
        let begin = first.highest_inserted().unwrap() + 1;
        let repeated = YcsbRun::new(
            settings('d', edition, "insertproportion=0.2"),
            ClientSlice::default(),
        )
        .unwrap();
        let mut other = loaded(&settings('d', edition, ""));
        other.rows.extend(server.rows.clone());
        other.serve(&mut *repeated.actor(PLACE), 100);
        assert!(other.errors() > 0, "the same keys again");
        let more = format!("insertproportion=0.2\nfirstinsert={begin}");
        let second = YcsbRun::new(settings('d', edition, &more), ClientSlice::default()).unwrap();
        server.serve(&mut *second.actor(PLACE), 1_000);
        assert_eq!(server.errors(), 0, "{:?}", server.bad);
        assert!(second.inserted() > 0);
    }
}

#[test]
fn clients_insert_side_by_side() {
    let mut server = loaded(&settings('d', Edition::Corrected, ""));
    for index in 0..3 {
        let slice = ClientSlice::new(index, 3).unwrap();
        let d = settings('d', Edition::Corrected, "insertproportion=1");
        let run = YcsbRun::new(d, slice).unwrap();
        server.serve(&mut *run.actor(PLACE), 500);
    }
    assert_eq!(server.errors(), 0, "{:?}", server.bad);
}

#[test]
fn reads_are_verified_when_wanted() {
    for edition in [Edition::Ycsb, Edition::Corrected] {
        let c = settings('c', edition, "dataintegrity=true");
        let mut server = loaded(&c);
        let run = YcsbRun::new(c, ClientSlice::default()).unwrap();
        server.serve(&mut *run.actor(PLACE), 100);
        assert_eq!(server.errors(), 0);
        let other = server.rows.values().next().unwrap().clone();
        server
            .rows
            .values_mut()
            .for_each(|row| *row = other.clone());
        server.serve(&mut *run.actor(PLACE), 100);
        assert!(server.bad[&(0, "VERIFY")] > 90, "{:?}", server.bad);
    }
}

#[test]
fn runs_are_repeatable() {
    let requests = |seed: u64| {
        let a = settings('a', Edition::Corrected, &format!("seed={seed}"));
        let run = YcsbRun::new(a, ClientSlice::default()).unwrap();
        let (mut actor, mut all) = (run.actor(PLACE), Vec::new());
        for _ in 0..100 {
            let mut request = Request::default();
            actor.begin().unwrap();
            actor.request(&mut request).unwrap();
            all.push((request.body, request.statements));
        }
        all
    };
    assert_eq!(requests(1), requests(1));
    assert_ne!(requests(1), requests(2));
}
