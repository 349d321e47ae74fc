use super::*;
use seekscope_doctor::Diagnosis;
use seekscope_doctor::answers::{DeviceUser, MemberAnswer};
use seekscope_doctor::evidence::{COUNTERS, Counters};
use seekscope_run::{CounterSample, FileRole, MemberState, RunDocument};

fn verdict_of(findings: Vec<Finding>, device_load: Option<DeviceLoad>) -> String {
    let query = CounterSample {
        source: COUNTERS.into(),
        name: "opcounters.query".into(),
        t_ns: 1,
        value: 1.0,
    };
    verdict_with(findings, device_load, &Counters::new([query]))
}

fn verdict_with(
    findings: Vec<Finding>,
    device_load: Option<DeviceLoad>,
    counters: &Counters,
) -> String {
    let mut document = RunDocument::begin("doctor", Vec::new());
    document.outcome = Outcome::Ok;
    let answers = Answers {
        device_load,
        ..Answers::default()
    };
    verdict(&DoctorReportInput {
        document: &document,
        diagnosis: &Diagnosis { findings, answers },
        trace: None,
        counters,
        events: &|_| Ok(()),
        leaves: &|_| Ok(()),
    })
}

fn finding(id: &str, saves_s_per_hour: Option<f64>) -> Finding {
    Finding {
        id: id.into(),
        title: format!("title of {id}"),
        saves_s_per_hour,
        ..Finding::default()
    }
}

fn load(utilisation: Option<f64>, ceiling: Option<&str>) -> Option<DeviceLoad> {
    Some(DeviceLoad {
        utilisation,
        ability_measured: true,
        ceiling: ceiling.map(String::from),
        ..DeviceLoad::default()
    })
}

#[test]
fn what_reads_take_beyond_the_calls_is_told_where_it_is_much() {
    let of_each_second = |beside_s: f64| {
        let mut answers = Answers::default();
        answers.device_users.push(DeviceUser {
            path: String::new(),
            role: FileRole::Collection,
            namespace: None,
            thread_role: ThreadRole::Application,
            writes: false,
            calls_per_s: 0.0,
            bytes_per_s: 0.0,
            device_bytes_per_s: 0.0,
            waiting_s_per_s: 0.2,
            device_time_share: None,
            pattern: None,
            sequential_share: None,
            p50_ns: 0,
            p99_ns: 0,
        });
        answers.waited.reads = 0.1 * 3600.0;
        answers.waited.reads_from_memory = (0.1 + beside_s) * 3600.0;
        waits(&answers).unwrap()
    };
    let waits = "application threads wait 200 ms for files";
    assert_eq!(of_each_second(0.04), waits);
    assert_eq!(
        of_each_second(0.3),
        format!(
            "{waits}, and work 300 ms on what they read (checksums; before MongoDB 6.0 decompression, too)"
        )
    );
}

#[test]
fn says_how_the_disk_does_and_what_there_is_to_gain() {
    assert_eq!(
        verdict_of(
            vec![finding("a", Some(840.0)), finding("b", None)],
            load(Some(0.91), None)
        ),
        "The disk is the bottleneck: 91.0 % of what it can do is used. 2 findings; the first: title of a. Acting on \
         it saves about 840 s of waiting per hour."
    );
    let mut of_a_scan = finding("a", Some(840.0));
    of_a_scan.gain = Some(seekscope_run::Gain {
        value: 1.0,
        low: 1.0,
        high: 1.0,
        unit: "s per cold scan".into(),
    });
    let not_seen = verdict_of(vec![of_a_scan], load(Some(0.2), None));
    assert!(not_seen.ends_with(" One finding."), "{not_seen}");
    let mut of_queries = finding("a", Some(840.0));
    of_queries.operations = vec![seekscope_run::OperationKind::default()];
    let of_queries = verdict_of(vec![of_queries], load(Some(0.2), None));
    let told =
        "One finding: title of a. Acting on it saves about 840 s of operations' time per hour.";
    assert!(of_queries.ends_with(told), "{of_queries}");
    let room = verdict_of(Vec::new(), load(Some(0.2), None));
    assert!(
        room.starts_with("The disk has room") && room.ends_with(NO_CAUSE),
        "{room}"
    );
    let held = verdict_of(
        vec![finding("a", None)],
        load(Some(0.2), Some("cgroup read IOPS 150/s")),
    );
    assert!(
        held.starts_with("The disk is held back by cgroup read IOPS 150/s."),
        "{held}"
    );
}

/// A regression: writes wait for syncs, was said, and then that the first finding is another one.
#[test]
fn the_first_finding_is_named_unless_it_is_what_was_said() {
    let query = || finding("query.collection-scan", Some(440.0));
    let acting = "Acting on it saves about 440 s of waiting per hour.";
    let bound = || finding(SYNC_BOUND, None);
    let said = verdict_of(vec![query(), bound()], None);
    assert_eq!(
        said,
        format!("2 findings; the first: title of query.collection-scan. {acting}")
    );
    let before = verdict_of(vec![bound(), query()], None);
    assert_eq!(before, format!("title of {SYNC_BOUND}. 2 findings."));
    let alone = verdict_of(vec![query()], None);
    assert_eq!(
        alone,
        format!("One finding: title of query.collection-scan. {acting}")
    );
    let told = verdict_of(vec![finding(SYNC_BOUND, Some(440.0))], None);
    let expected = "One finding: acting on it saves about 440 s of waiting per hour.";
    assert_eq!(told, format!("title of {SYNC_BOUND}. {expected}"));
}

#[test]
fn members_that_are_missing_come_first() {
    let member = |name: &str, state, not_asked: Option<&str>| MemberAnswer {
        name: name.into(),
        state,
        not_asked: not_asked.map(String::from),
        ..MemberAnswer::default()
    };
    let mut document = RunDocument::begin("doctor", Vec::new());
    document.outcome = Outcome::Ok;
    let mut diagnosis = Diagnosis {
        findings: vec![finding(HEALTHY, None)],
        ..Diagnosis::default()
    };
    let said_by = |verdict: fn(&DoctorReportInput<'_>) -> String, diagnosis: &Diagnosis| {
        verdict(&DoctorReportInput {
            document: &document,
            diagnosis,
            trace: None,
            counters: &Counters::default(),
            events: &|_| Ok(()),
            leaves: &|_| Ok(()),
        })
    };
    let said = |diagnosis: &Diagnosis| said_by(verdict, diagnosis);
    diagnosis.answers.members = vec![
        member("db1", MemberState::Primary, None),
        member("db2", MemberState::Arbiter, Some("an arbiter has no data")),
    ];
    assert_eq!(said(&diagnosis), "title of disk.not-the-problem");
    let down = member("db3", MemberState::Down, Some("nothing listens there"));
    diagnosis.answers.members.push(down);
    diagnosis
        .answers
        .role_changes
        .push("The primary changed.".into());
    assert_eq!(
        said(&diagnosis),
        "Of 2 members 1 could not be asked: db3 (nothing listens there). The primary changed. title of \
         disk.not-the-problem"
    );
    assert_eq!(
        said_by(verdict_of_member, &diagnosis),
        "The primary changed. title of disk.not-the-problem"
    );
}

#[test]
fn a_healthy_disk_and_an_empty_run_say_so() {
    let healthy = vec![finding(HEALTHY, None), finding("index.unused", Some(3.0))];
    assert_eq!(
        verdict_of(healthy, load(Some(0.1), None)),
        "title of disk.not-the-problem"
    );
    // A regression: of a server that let no write through, that its disk is well came first.
    let locked = vec![
        finding("locks.fsync", Some(10_800.0)),
        finding(HEALTHY, None),
    ];
    assert_eq!(
        verdict_of(locked, load(Some(0.1), None)),
        "title of locks.fsync. 2 findings: acting on the first saves about 10,800 s of waiting per hour. title of \
         disk.not-the-problem."
    );
    assert!(verdict_of(Vec::new(), None).starts_with("Too little"));
    let unseen = verdict_with(Vec::new(), load(Some(0.2), None), &Counters::default());
    assert_eq!(unseen, UNSEEN);
    let odd = verdict_of(
        vec![finding("a", Some(f64::NAN))],
        load(Some(f64::NAN), None),
    );
    assert!(!odd.contains("NaN"), "{odd}");
}
