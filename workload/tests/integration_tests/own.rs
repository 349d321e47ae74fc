//! Workloads that users write, on a real server.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use bson::{Document, RawDocumentBuf, doc};
use seekscope_client::{ClientSpec, Ended, RawTarget, Workload};
use seekscope_workload::own::builtin::BUILTINS;
use seekscope_workload::own::sample::{
    Observed, ShapeText, sample_collection, sample_file, workload_text,
};
use seekscope_workload::own::{ExpectedCollection, Plan, PlanOptions, RoleRun, Source, run_phase};
use seekscope_workload::{ExpectedData, Sdu, SduOptions, VerificationOptions, verify};

use crate::support::Fixture;

const DATABASE: &str = "seekscope_bench";
/// Transactions of a role that would go on longer.
const TRANSACTIONS: u64 = 100;

/// What all phases did: (phase, role, operation) → done well.
type Done = BTreeMap<(String, String, String), u64>;

async fn run_plan(fixture: &Fixture, plan: Plan) -> (Plan, Done, Vec<Ended>) {
    for index in plan
        .collections
        .iter()
        .flat_map(|collection| &collection.indexes_before)
    {
        fixture
            .server
            .command(DATABASE, index.clone())
            .await
            .unwrap();
    }
    let (mut plan, mut done, mut all) = (plan, Done::new(), Vec::new());
    for phase in 0..plan.phases.len() {
        let target = RawTarget::parse(&fixture.uri(), DATABASE).unwrap();
        let worked = tokio::task::spawn_blocking(move || {
            let (seen, ended) = run_one(&ClientSpec::Raw(Box::new(target)), &plan, phase);
            (plan, seen, ended)
        });
        let (returned, seen, ended) = worked.await.unwrap();
        plan = returned;
        done.extend(seen);
        all.extend(ended);
        let indexes = plan
            .collections
            .iter()
            .flat_map(|collection| &collection.indexes_after);
        for (_, index) in indexes.filter(|(after, _)| *after == phase) {
            fixture
                .server
                .command(DATABASE, index.clone())
                .await
                .unwrap();
        }
    }
    (plan, done, all)
}

fn run_one(client: &ClientSpec, plan: &Plan, phase: usize) -> (Done, Vec<Ended>) {
    let phase = &plan.phases[phase];
    let run = |role| {
        let role: &seekscope_workload::own::plan::RolePlan = role;
        let mut job = role.job(1, Some(500.0));
        if job.duration.take().is_some() {
            job.transactions = Some(TRANSACTIONS);
        }
        RoleRun {
            workload: role as &dyn Workload,
            job,
            background: role.end.background,
        }
    };
    let runs: Vec<RoleRun<'_>> = phase.roles.iter().map(run).collect();
    let mut done = Done::new();
    let ended = run_phase(
        client,
        &runs,
        &AtomicBool::new(false),
        &mut |place, second| {
            let role = &phase.roles[place];
            for operation in &second.operations {
                let name = role.operations()[usize::from(operation.operation)]
                    .name
                    .clone();
                *done
                    .entry((phase.name.clone(), role.name.clone(), name))
                    .or_default() += operation.done;
            }
        },
    );
    (done, ended.unwrap().into_iter().flatten().collect())
}

fn parsed(name: &str, text: &str, scale: f64) -> Plan {
    let options = PlanOptions {
        scale,
        ..PlanOptions::default()
    };
    Plan::parse(Source { file: name, text }, options).unwrap_or_else(|error| panic!("{error}"))
}

async fn verified(fixture: &Fixture, plan: &Plan) -> seekscope_run::Verification {
    let expected: Vec<ExpectedCollection<'_>> = plan
        .collections
        .iter()
        .map(ExpectedCollection::new)
        .collect();
    let expected: Vec<&dyn ExpectedData> =
        expected.iter().map(|e| e as &dyn ExpectedData).collect();
    let options = VerificationOptions {
        samples: 200,
        seed: 1,
        in_doubt: 0,
    };
    verify(&fixture.server, DATABASE, &expected, &options)
        .await
        .unwrap()
}

#[tokio::test]
async fn every_builtin_runs_without_a_failure_and_leaves_what_it_should() {
    let fixture = Fixture::start().await;
    for builtin in BUILTINS {
        let plan = parsed(builtin.name, builtin.text, 0.02);
        let (plan, done, ended) = run_plan(&fixture, plan).await;
        for ended in &ended {
            assert!(
                ended.failures.is_empty(),
                "{}: {:?}",
                builtin.name,
                ended.failures
            );
        }
        let roles: usize = plan.phases.iter().map(|phase| phase.roles.len()).sum();
        assert_eq!(ended.len(), roles, "{}: {done:?}", builtin.name);
        // In one phase or another: an index may be built before those beside it come to each operation.
        let mut by_role = BTreeMap::new();
        for ((_, role, operation), count) in &done {
            *by_role.entry((role, operation)).or_insert(0) += count;
        }
        assert!(
            by_role.values().all(|count| *count > 0),
            "{}: {done:?}",
            builtin.name
        );
        let found = verified(&fixture, &plan).await;
        assert!(found.holds(), "{}: {found:?}", builtin.name);
        // Deletes leave nothing that can be known.
        assert_eq!(
            found.sampled > 0,
            builtin.name != "sysbench",
            "{}: {found:?}",
            builtin.name
        );
        fixture
            .server
            .command(DATABASE, doc! { "dropDatabase": 1 })
            .await
            .unwrap();
    }
}

const ALL_OPERATIONS: &str = r#"
name = "all"
[collections.accounts]
records = 500
indexes = [{ keys = { branch = 1 } }, { keys = { owner = 1, branch = -1 }, when = "after-load" }]
[collections.accounts.fields]
_id = { template = "account{record:6}" }
owner = { template = "owner{hash}" }
branch = { int32 = { uniform = [0, 9] } }
balance = { double = 100.0 }
[collections.payments]
[collections.payments.fields]
_id = { uuid = true }
account = { reference = { collection = "accounts", keys = "zipf" } }

[[phases]]
name = "load"
[[phases.roles]]
name = "loader"
users = 3
[[phases.roles.operations]]
load = { collection = "accounts", batch = 70 }

[[phases]]
name = "run"
pause = "10ms"
[[phases.roles]]
name = "clerks"
users = 4
transactions = 400
[[phases.roles.operations]]
find_one = { collection = "accounts", keys = { hotspot = { data = 0.1, operations = 0.9 } }, projection = { owner = 1 } }
[[phases.roles.operations]]
name = "by owner"
find_one = { collection = "accounts", filter = { owner = "@record.owner" } }
[[phases.roles.operations]]
name = "inc"
update = { collection = "accounts", keys = { normal = { mean = 0.5, deviation = 0.1 } }, set = { seen = { boolean = 1 } }, inc = { balance = { double = { uniform = [-5, 5] } } } }
[[phases.roles.operations]]
name = "many"
parameters = { branch = { int32 = { uniform = [0, 9] } } }
update = { collection = "accounts", filter = { branch = "@branch" }, many = true, update = '[{"$set": {"touched": "@record"}}]' }
[[phases.roles.operations]]
insert = { collection = "payments", batch = 5 }
[[phases.roles.operations]]
distinct = { collection = "accounts", field = "branch" }
[[phases.roles.operations]]
command = { command = { count = "accounts" } }
[[phases.roles]]
name = "auditor"
background = true
arrivals = { constant = 50 }
[[phases.roles.operations]]
name = "sum"
aggregate = { collection = "accounts", pipeline = '[{"$group": {"_id": "$branch", "sum": {"$sum": "$balance"}}}]' }

[[phases]]
name = "share"
[[phases.roles]]
name = "steady"
transactions = 20
arrivals = { share = { percent = 80, phase = "run", role = "clerks" } }
[[phases.roles.operations]]
find = { collection = "accounts", filter = { _id = { "$gte" = "@key" } }, sort = { _id = 1 }, limit = { uniform = [1, 5] } }
"#;

#[tokio::test]
async fn every_operation_works_and_roles_run_at_the_same_time() {
    let fixture = Fixture::start().await;
    let (plan, done, ended) = run_plan(&fixture, parsed("all", ALL_OPERATIONS, 1.0)).await;
    assert!(
        ended.iter().all(|ended| ended.failures.is_empty()),
        "{ended:?}"
    );
    assert!(done.values().all(|count| *count > 0), "{done:?}");
    let clerks = |name: &str| done[&("run".into(), "clerks".into(), name.to_string())];
    let names = [
        "find_one accounts",
        "by owner",
        "inc",
        "many",
        "insert payments",
        "distinct accounts",
        "command",
    ];
    assert_eq!(names.map(clerks).iter().sum::<u64>(), 400);
    let accounts = fixture
        .server
        .database(DATABASE)
        .collection::<Document>("accounts");
    let mut names = accounts.list_index_names().await.unwrap();
    names.sort();
    assert_eq!(names, ["_id_", "branch_1", "owner_1_branch_-1"]);
    assert!(
        accounts
            .count_documents(doc! { "seen": true })
            .await
            .unwrap()
            > 0
    );
    let found = verified(&fixture, &plan).await;
    assert!(
        found.holds() && found.expected == Some(500 + 5 * clerks("insert payments")),
        "{found:?}"
    );
    // A payment's account is one that exists.
    let payments = fixture
        .server
        .database(DATABASE)
        .collection::<Document>("payments");
    let payment = payments.find_one(doc! {}).await.unwrap().unwrap();
    let account = doc! { "_id": payment.get_str("account").unwrap() };
    assert!(accounts.find_one(account).await.unwrap().is_some());
    // What was changed behind our back is noticed.
    accounts
        .update_one(
            doc! { "_id": "account000007" },
            doc! { "$set": { "owner": "me" } },
        )
        .await
        .unwrap();
    accounts
        .delete_one(doc! { "_id": "account000008" })
        .await
        .unwrap();
    let found = verified(&fixture, &plan).await;
    assert!(
        !found.holds()
            && found.different <= 1
            && found.counted.unwrap() + 1 == found.expected.unwrap(),
        "{found:?}"
    );
}

fn observed_of(text: &str) -> Observed {
    let plan = parsed("sampled", text, 1.0);
    let mut writer = seekscope_client::BsonWriter::default();
    let mut observed = Observed::default();
    for record in 0..500 {
        writer.clear();
        plan.collections[0].write_document(record, &mut writer);
        observed.add(bson::RawDocument::from_bytes(writer.bytes()).unwrap());
    }
    observed
}

fn assert_alike(sample: &Observed, secret: Option<&str>) {
    let text = workload_text(
        sample,
        &ShapeText {
            collection: "c.d",
            records: 500,
            keep_values: false,
        },
    );
    if let Some(secret) = secret {
        assert!(!text.contains(secret), "{text}");
    }
    let made = observed_of(&text);
    let ratio = made.mean_bytes() / sample.mean_bytes();
    assert!(
        (0.9..1.1).contains(&ratio),
        "{ratio}: {} of {}\n{text}",
        made.mean_bytes(),
        sample.mean_bytes()
    );
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::File::create(&path)
        .unwrap()
        .write_all(bytes)
        .unwrap();
    path
}

fn nested_json(n: usize) -> String {
    let tags: Vec<String> = (0..n % 7)
        .map(|tag| format!("\"tag{}\"", tag * n))
        .collect();
    let email = if n.is_multiple_of(3) {
        format!(", \"email\": \"secret{n}@example.com\"")
    } else {
        String::new()
    };
    format!(
        "{{\"_id\": {{\"$oid\": \"{n:024x}\"}}, \"n\": {n}, \"kind\": \"{}\", \"note\": {}, \"tags\": [{}], \
         \"at\": {{\"$date\": \"2026-01-{:02}T00:00:00Z\"}}, \"in\": {{\"deep\": {{\"x\": {}.5, \"text\": \"{}\"}}}}{email}}}",
        ["secret-a", "secret-bb"][n % 2],
        if n.is_multiple_of(5) {
            "null".into()
        } else {
            format!("\"{}\"", "word ".repeat(n % 11))
        },
        tags.join(","),
        n % 28 + 1,
        n * 3,
        "lorem ipsum dolor ".repeat(n % 5 + 1),
    )
}

#[tokio::test]
async fn a_sample_becomes_a_workload_of_the_same_size_without_its_values() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let json: Vec<String> = (0..800).map(nested_json).collect();
    let lines = write(folder.path(), "x.jsonl", json.join("\n").as_bytes());
    let array = write(
        folder.path(),
        "x.json",
        format!(" [{}]", json.join(",\n")).as_bytes(),
    );
    for file in [&lines, &array] {
        let sample = sample_file(file, 500).unwrap();
        assert_eq!(sample.documents, 500);
        assert_alike(&sample, Some("secret"));
    }
    let sdu = Sdu::new(SduOptions::default());
    let mut dump = Vec::new();
    (0..600).for_each(|n| sdu.append_document(n, 0, &mut dump));
    let dump = write(folder.path(), "x.bson", &dump);
    assert_alike(&sample_file(&dump, 1_000).unwrap(), None);

    let fixture = Fixture::start().await;
    fixture.load(&sdu, 400).await;
    let sample = sample_collection(&fixture.server, &crate::support::namespace(), 300)
        .await
        .unwrap();
    assert!(sample.documents > 200, "{}", sample.documents);
    assert_alike(&sample, None);
}

#[test]
fn a_sample_of_uncommon_fields_becomes_a_workload_that_runs() {
    let mut sample = Observed::default();
    for n in 0..100_i64 {
        let mut nested = bson::doc! { "": "x".repeat(20) };
        if n % 2 == 0 {
            nested.insert("_id", n);
        }
        let document = bson::doc! { "_id": n, "": n * 7, "nested": nested };
        sample.add(&bson::RawDocumentBuf::try_from(&document).unwrap());
    }
    assert_alike(&sample, None);
}

#[test]
fn what_a_workload_has_not_of_a_sample_is_said_in_it() {
    let mut sample = Observed::default();
    for n in 0..100_i32 {
        let id: bson::Bson = match n % 4 {
            0 => n.into(),
            _ => format!("{n:033}").into(),
        };
        let document = bson::doc! { "_id": id, "in": [{ "x": f64::INFINITY }, { "x": 1.5 }] };
        sample.add(&bson::RawDocumentBuf::try_from(&document).unwrap());
    }
    let shape = ShapeText {
        collection: "mixed",
        records: 100,
        keep_values: false,
    };
    let text = workload_text(&sample, &shape);
    assert!(
        text.contains("one kind, which is that of 75 of the 100 values"),
        "{text}"
    );
    assert!(
        text.contains("replaced by finite numbers: 100 values"),
        "{text}"
    );
}

/// Batches are of documents of mean size, and all in one may be of the largest.
#[test]
fn a_sample_with_a_large_document_becomes_a_workload_that_runs() {
    let mut sample = Observed::default();
    for n in 0..1_000_usize {
        let length = if n == 500 { 10 << 20 } else { 20 };
        let document = bson::doc! { "_id": n as i64, "text": "x".repeat(length) };
        sample.add(&bson::RawDocumentBuf::try_from(&document).unwrap());
    }
    let shape = ShapeText {
        collection: "big",
        records: 1_000,
        keep_values: false,
    };
    let text = workload_text(&sample, &shape);
    let plan = parsed("sampled", &text, 1.0);
    assert!(
        plan.collections[0].document_bytes_max() > 10 << 20,
        "{text}"
    );
}

#[test]
fn broken_samples_are_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let document = RawDocumentBuf::try_from(&doc! { "a": 1 }).unwrap();
    let cases: [(&str, Vec<u8>); 7] = [
        ("empty", vec![]),
        ("text", b"hello".to_vec()),
        ("numbers", b"[1, 2]".to_vec()),
        ("half", br#"{"a": "#.to_vec()),
        ("deep", b"[".repeat(100_000)),
        ("length", vec![255, 255, 255, 127, 0, 0, 0, 0]),
        (
            "torn",
            [document.as_bytes(), &[9, 0, 0, 0, 77, 77, 77, 77, 77]].concat(),
        ),
    ];
    for (name, bytes) in cases {
        let path = write(folder.path(), name, &bytes);
        let result = sample_file(&path, 100);
        assert!(
            result.is_err(),
            "{name}: {:?}",
            result.map(|sample| sample.documents)
        );
    }
    assert!(sample_file(&folder.path().join("missing"), 1).is_err());
}
