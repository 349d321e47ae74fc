//! YCSB's workloads through the engine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use seekscope_cassandra::{CqlFactory, CqlTarget, OwnedKeyspace, verify};
use seekscope_client::{
    ClientSpec, EndReason, Ended, FailureKind, Job, Retries, ScheduleKind, Second, Workload, run,
};
use seekscope_workload::VerificationOptions;
use seekscope_workload::ycsb::{
    ClientSlice, Edition, YcsbExpected, YcsbLoad, YcsbRun, YcsbSettings, workload,
};

use crate::cassandra_server::{CassandraServer, shared};

const RECORDS: u64 = 1_000;
const SAMPLES: VerificationOptions = VerificationOptions {
    samples: 200,
    seed: 1,
    in_doubt: 0,
};

/// Ended well by operation's name, and how it ended.
struct Outcome {
    done: Vec<(String, u64)>,
    ended: Ended,
}

impl Outcome {
    fn of(&self, name: &str) -> u64 {
        let found = self.done.iter().find(|(operation, _)| operation == name);
        found.map_or(0, |(_, done)| *done)
    }
}

fn settings(letter: char, edition: Edition) -> YcsbSettings {
    let mut properties = workload(letter).unwrap();
    properties.set("recordcount", RECORDS.to_string());
    properties.set("operationcount", "500");
    // The longest scans of E need not be in a small test.
    properties.set("maxscanlength", "20");
    YcsbSettings::new(&properties, edition, None).unwrap()
}

fn work(uri: &str, workload: &dyn Workload, job: &Job) -> Outcome {
    let target = CqlTarget::parse(uri, "unused").unwrap();
    let client = ClientSpec::Async(Arc::new(CqlFactory::new(target)));
    let mut done: Vec<(String, u64)> = workload
        .operations()
        .iter()
        .map(|operation| (operation.name.clone(), 0))
        .collect();
    let mut add = |second: Second| {
        for operation in &second.operations {
            done[usize::from(operation.operation)].1 += operation.done;
        }
    };
    let stop = AtomicBool::new(false);
    let ended = run(&client, workload, job, &stop, &mut add).unwrap();
    Outcome { done, ended }
}

fn job(transactions: Option<u64>) -> Job {
    Job {
        schedule: ScheduleKind::Closed,
        in_flight: 8,
        threads: 1,
        transactions,
        duration: None,
        timeout: Duration::from_secs(30),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: None,
    }
}

fn load(uri: &str, settings: &YcsbSettings) {
    let loaded = work(uri, &YcsbLoad::new(settings), &job(None));
    assert_eq!(loaded.of("INSERT"), RECORDS, "{:?}", loaded.ended.failures);
    assert_eq!(loaded.ended.reason, EndReason::Done);
}

/// In the wiki's order: what inserts comes last, or on data of its own.
fn all_workloads(edition: Edition, keyspace: &str) {
    let server = shared();
    let uri = server.uri(keyspace, "consistency=one");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    load(&uri, &settings('a', edition));
    let target = CqlTarget::parse(&uri, "unused").unwrap();
    for letter in ['a', 'b', 'c', 'f', 'd', 'e'] {
        if letter == 'e' {
            let dropped = async { OwnedKeyspace::open(&target).await?.drop().await };
            runtime.block_on(dropped).unwrap();
            load(&uri, &settings('e', edition));
        }
        let settings = settings(letter, edition);
        let workload = YcsbRun::new(settings, ClientSlice::default()).unwrap();
        let outcome = work(&uri, &workload, &job(Some(500)));
        assert!(
            outcome.ended.failures.is_empty(),
            "{letter}: {:?}",
            outcome.ended.failures
        );
        let transactions: u64 = ["READ", "UPDATE", "INSERT", "SCAN"]
            .map(|n| outcome.of(n))
            .iter()
            .sum();
        let pairs = outcome.of("READ-MODIFY-WRITE");
        assert_eq!(
            transactions,
            500 + pairs,
            "{letter}: a pair is a read and an update"
        );
        let expected = YcsbExpected::after_run(&workload);
        let verified = async {
            let keyspace = OwnedKeyspace::open(&target).await?;
            verify(&keyspace, &[&expected], &SAMPLES).await
        };
        let verified = runtime.block_on(verified).unwrap();
        assert!(verified.holds(), "{letter}: {verified:?}");
        assert_eq!(
            (verified.sampled, verified.counted),
            (200, Some(RECORDS + outcome.of("INSERT")))
        );
    }
}

#[test]
fn a_to_f_as_ycsb_are_done_and_verified() {
    all_workloads(Edition::Ycsb, "ycsb");
}

#[test]
fn a_to_f_corrected_are_done_and_every_byte_is_verified() {
    all_workloads(Edition::Corrected, "corrected");
}

#[test]
fn a_server_that_dies_is_failures_and_no_throughput() {
    let mut server = CassandraServer::start();
    let uri = server.uri("dies", "");
    let settings = settings('a', Edition::Ycsb);
    load(&uri, &settings);
    let workload = YcsbRun::new(settings, ClientSlice::default()).unwrap();
    let job = Job {
        schedule: ScheduleKind::Constant { per_s: 100.0 },
        duration: Some(Duration::from_secs(8)),
        ..job(None)
    };
    let outcome = std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&uri, &workload, &job));
        std::thread::sleep(Duration::from_secs(4));
        server.kill();
        working.join().unwrap()
    });
    let good: u64 = outcome.done.iter().map(|(_, done)| done).sum();
    let failed: u64 = outcome.ended.failures.iter().map(|f| f.count).sum();
    assert!(good > 0 && failed > 0);
    assert!(good + failed <= outcome.ended.transactions);
    let lost = |f: &seekscope_client::FailureCount| f.kind == Some(FailureKind::Connection);
    assert!(
        outcome.ended.failures.iter().any(lost),
        "{:?}",
        outcome.ended.failures
    );
    // A stretch of work that begins without a server cannot begin.
    let target = CqlTarget::parse(&uri, "unused").unwrap();
    let client = ClientSpec::Async(Arc::new(CqlFactory::new(target)));
    let stop = AtomicBool::new(false);
    let error = run(&client, &workload, &job, &stop, &mut |_| ()).unwrap_err();
    assert!(!error.to_string().is_empty(), "{error}");
}
