//! Workloads run by the engine with our own client, as the benchmark does.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use seekscope_client::choose::{Wanted, choose};
use seekscope_client::engine::{self, ClientSpec};
use seekscope_client::{EndReason, Ended, Job, Retries, ScheduleKind, Workload};
use seekscope_run::Verification;
use seekscope_workload::{ExpectedData, VerificationOptions, verify};

use crate::support::Fixture;

pub(crate) const DATABASE: &str = "bench";
pub(crate) const IN_FLIGHT: usize = 8;

/// What a stretch of work did.
pub(crate) struct Done {
    pub(crate) ended: Ended,
    /// Good outcomes by operation.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Documents of good outcomes by operation.
    pub(crate) documents: BTreeMap<String, u64>,
}

/// Runs a workload to its end, or for this many transactions.
pub(crate) async fn run<W>(fixture: &Fixture, workload: &W, transactions: Option<u64>) -> Done
where
    W: Workload + Clone + 'static,
{
    let choice = choose(&fixture.uri(), DATABASE, Wanted::Raw).unwrap();
    let client = ClientSpec::Raw(choice.raw.expect("our own client"));
    let job = Job {
        schedule: ScheduleKind::Closed,
        in_flight: IN_FLIGHT,
        threads: 2,
        transactions,
        duration: None,
        timeout: Duration::from_secs(60),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: Some(100),
    };
    let workload = workload.clone();
    let work = move || {
        let (mut counts, mut documents) = (BTreeMap::new(), BTreeMap::new());
        let stop = AtomicBool::new(false);
        let ended = engine::run(&client, &workload, &job, &stop, &mut |second| {
            for operation in second.operations {
                let name = &workload.operations()[usize::from(operation.operation)].name;
                *counts.entry(name.clone()).or_default() += operation.done;
                *documents.entry(name.clone()).or_default() += operation.documents;
            }
        });
        Done {
            ended: ended.unwrap(),
            counts,
            documents,
        }
    };
    let done = tokio::task::spawn_blocking(work).await.unwrap();
    assert_eq!(done.ended.reason, EndReason::Done);
    done
}

/// Asserts that everything is there and right; 500 documents are read back.
pub(crate) async fn assert_holds(fixture: &Fixture, expected: &[&dyn ExpectedData]) {
    let options = VerificationOptions {
        samples: 500,
        seed: 7,
        in_doubt: 0,
    };
    let found = verify(&fixture.server, DATABASE, expected, &options).await;
    let found: Verification = found.unwrap();
    assert!(found.holds() && found.sampled > 0, "{found:?}");
}
