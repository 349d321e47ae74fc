use seekscope_run::{LayoutFile, NamedValue, OperationKind, ScanOrder};

use super::*;
use crate::testing::{GIB, Recording};

/// Returns a secondary whose pages take `read_us` to read, with leaves of this order.
fn member(number: usize, read_us: f64, score: f64) -> ExaminedMember {
    let mut recording = Recording::new();
    let record = recording.examined();
    record.name = format!("db{number}:27017");
    record.state = seekscope_run::MemberState::Secondary;
    recording.layout(LayoutFile {
        namespace: Some("shop.orders".into()),
        leaf_bytes: GIB,
        order: Some(ScanOrder {
            score,
            ..ScanOrder::default()
        }),
        ..LayoutFile::default()
    });
    let page = "wiredTiger.cache.application threads page read from disk to cache";
    recording.rising(&format!("{page} count"), 100.0);
    recording.rising(&format!("{page} time (usecs)"), 100.0 * read_us);
    ExaminedMember {
        run: MemberRun {
            member: format!("db{number}:27017"),
            shard: None,
            folder: format!("member-{number}"),
        },
        counters: recording.counters(),
        diagnosis: Diagnosis::default(),
        verdict: String::new(),
        document: recording.document,
    }
}

fn concluded(members: Vec<ExaminedMember>) -> Diagnosis {
    let mut document = RunDocument::begin("doctor", Vec::new());
    conclude(&mut document, &mut Counters::default(), members)
}

fn factor(members: Vec<ExaminedMember>) -> Option<(String, String)> {
    let difference = concluded(members).answers.member_difference?;
    Some((difference.member, difference.factor))
}

/// A secondary's own run knows neither its primary nor the routers of its cluster.
#[test]
fn commands_name_the_servers_that_take_writes() {
    let with = |shard: Option<&str>, placeholder: &str| {
        let mut members = vec![member(1, 200.0, 0.9), member(2, 200.0, 0.9)];
        members[0].diagnosis.findings.push(Finding {
            id: "query.collection-scan".into(),
            command: format!("mongosh {placeholder} --eval 1"),
            ..Finding::default()
        });
        for member in &mut members {
            member.run.shard = shard.map(String::from);
        }
        let primary = members[1].document.examination.as_mut().unwrap();
        primary.members[0].state = MemberState::Primary;
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.target = Some(seekscope_run::TargetFacts {
            uri: "mongodb://router:27017/?tls=true".into(),
            ..Default::default()
        });
        let found = conclude(&mut document, &mut Counters::default(), members).findings;
        let scan = found.into_iter().find(|f| f.id == "query.collection-scan");
        scan.unwrap().command
    };
    let at_primary = "mongosh mongodb://db2:27017/ --eval 1";
    assert_eq!(with(None, SOME_PRIMARY), at_primary);
    let routed = "mongosh 'mongodb://router:27017/?tls=true' --eval 1";
    assert_eq!(with(Some("shard-0"), SOME_ROUTER), routed);
    assert!(with(None, SOME_ROUTER).contains(SOME_ROUTER), "no cluster");
}

/// One shard has an unsharded collection besides, which lies in order.
#[test]
fn only_the_order_of_what_all_have_is_compared() {
    let mut members: Vec<_> = (1..=3).map(|n| member(n, 200.0, 0.05)).collect();
    let files = &mut members[0].document.layout.as_mut().unwrap().files;
    files.push(LayoutFile {
        namespace: Some("shop.single".into()),
        leaf_bytes: 4 * GIB,
        order: Some(ScanOrder {
            score: 1.0,
            ..ScanOrder::default()
        }),
        ..LayoutFile::default()
    });
    assert_eq!(factor(members), None);
}

#[test]
fn the_cause_is_named_rather_than_what_follows_from_it() {
    assert_eq!(
        factor((1..=3).map(|n| member(n, 800.0, 0.97)).collect()),
        None
    );
    let slow_disk = vec![
        member(1, 800.0, 0.97),
        member(2, 9_000.0, 0.97),
        member(3, 800.0, 0.97),
    ];
    let expected = (
        "db2:27017".to_string(),
        "page read from disk, ms".to_string(),
    );
    assert_eq!(factor(slow_disk), Some(expected));
    // Reading at random takes longer, too.
    let aged = vec![
        member(1, 800.0, 0.97),
        member(2, 800.0, 0.97),
        member(3, 9_000.0, 0.2),
    ];
    let expected = (
        "db3:27017".to_string(),
        "avoidable seeks of a scan, %".to_string(),
    );
    assert_eq!(factor(aged), Some(expected));
    let mut small = vec![
        member(1, 800.0, 0.97),
        member(2, 800.0, 0.97),
        member(3, 4_000.0, 0.97),
    ];
    let record = small[2].document.examination.as_mut().unwrap();
    record.members[0].target.cache_bytes = Some(GIB);
    let expected = ("db3:27017".to_string(), "cache, GiB".to_string());
    assert_eq!(factor(small), Some(expected));
}

/// Its pages take longer to read, too, which follows from the limit.
#[test]
fn a_limit_of_its_control_group_sets_a_member_apart() {
    let mut members = vec![
        member(1, 800.0, 0.97),
        member(2, 800.0, 0.97),
        member(3, 9_000.0, 0.97),
    ];
    for member in &mut members {
        let examination = member.document.examination.as_mut().unwrap();
        examination.host = Some(seekscope_run::HostSettings::default());
    }
    let examination = members[2].document.examination.as_mut().unwrap();
    let surroundings = &mut examination.host.as_mut().unwrap().surroundings;
    surroundings.io_limits.push(seekscope_run::IoLimit {
        cgroup: "/db".into(),
        device: "254:0".into(),
        what: "write IOPS".into(),
        per_s: 60,
    });
    members[2].diagnosis.findings.push(Finding {
        id: "disk.limited".into(),
        title: "A limit holds it back: cgroup /db write IOPS 60/s".into(),
        ..Finding::default()
    });
    let concluded = concluded(members);
    let differs = concluded.findings.iter().find(|f| f.id == "member.differs");
    let differs = differs.unwrap();
    assert_eq!(
        differs.title,
        "db3:27017 is not like its fellows: its control group's limit on write IOPS is 60/s, elsewhere none"
    );
    assert_eq!(differs.command, "");
    assert!(
        differs.evidence[1].contains("told under \"A limit"),
        "{differs:?}"
    );
}

#[test]
fn a_router_that_was_lost_comes_first() {
    let mut members: Vec<ExaminedMember> = (1..=2).map(|n| member(n, 800.0, 0.97)).collect();
    for member in &mut members {
        member.diagnosis.findings = vec![Finding {
            id: NOTHING_WRONG.into(),
            ..Finding::default()
        }];
    }
    let mut document = RunDocument::begin("doctor", Vec::new());
    let examination = document.examination.get_or_insert_default();
    examination.server_lost_after_ns = Some(5_000_000_000);
    examination.members = vec![MemberRecord {
        name: "router:27017".into(),
        state: MemberState::Router,
        ..MemberRecord::default()
    }];
    let findings = conclude(&mut document, &mut Counters::default(), members).findings;
    let headings: Vec<String> = findings.iter().map(Finding::heading).collect();
    assert_eq!(
        headings[0],
        "router:27017: The mongos was lost 5.00 s after the watch began"
    );
    assert!(
        headings[1].contains("disks of the 2 members"),
        "{headings:?}"
    );
}

#[test]
fn what_several_have_is_told_once() {
    let finding = |saves_s: f64| Finding {
        id: "cache.too-small".into(),
        title: "The cache is too small".into(),
        saves_s_per_hour: Some(saves_s),
        ..Finding::default()
    };
    let mut members: Vec<ExaminedMember> = (1..=3).map(|n| member(n, 800.0, 0.97)).collect();
    members[0].diagnosis.findings = vec![finding(40.0)];
    members[2].diagnosis.findings = vec![finding(400.0)];
    let findings = concluded(members).findings;
    let [told] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!(told.heading(), "db3:27017: The cache is too small");
    assert_eq!(
        told.evidence,
        ["The same was found on db1:27017 (there it would save 40 s per hour)."]
    );
}

#[test]
fn findings_about_other_operations_on_a_collection_are_not_the_same() {
    let about = |kind: &str| Finding {
        id: "query.collection-scan".into(),
        subject: "shop.orders".into(),
        title: kind.into(),
        operations: vec![OperationKind {
            kind: kind.into(),
            ..OperationKind::default()
        }],
        ..Finding::default()
    };
    let mut members: Vec<ExaminedMember> = (1..=2).map(|n| member(n, 800.0, 0.97)).collect();
    members[0].diagnosis.findings = vec![about("query"), about("command distinct")];
    members[1].diagnosis.findings = vec![about("query")];
    let findings = concluded(members).findings;
    let titles: Vec<&str> = findings.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(titles, ["query", "command distinct"]);
}

#[test]
fn nothing_is_wrong_only_if_every_run_says_so() {
    let well = || Finding {
        id: NOTHING_WRONG.into(),
        title: "Nothing is wrong with the disk.".into(),
        ..Finding::default()
    };
    let mut members: Vec<ExaminedMember> = (1..=2).map(|n| member(n, 800.0, 0.97)).collect();
    members[0].diagnosis.findings = vec![well()];
    assert_eq!(concluded(members).findings, []);
    let mut members: Vec<ExaminedMember> = (1..=2).map(|n| member(n, 800.0, 0.97)).collect();
    members
        .iter_mut()
        .for_each(|m| m.diagnosis.findings = vec![well()]);
    let findings = concluded(members).findings;
    assert!(findings[0].title.contains("2 members"), "{findings:?}");
}

#[test]
fn members_that_were_only_asked_are_kept_and_none_twice() {
    let mut first = member(1, 800.0, 0.97);
    let elsewhere = MemberRecord {
        name: "db9:27017".into(),
        options: vec![NamedValue {
            name: "storage.directoryPerDB".into(),
            value: "true".into(),
        }],
        ..MemberRecord::default()
    };
    first
        .document
        .examination
        .as_mut()
        .unwrap()
        .members
        .push(elsewhere);
    let mut document = RunDocument::begin("doctor", Vec::new());
    let mut counters = Counters::default();
    conclude(
        &mut document,
        &mut counters,
        vec![first, member(2, 800.0, 0.97)],
    );
    // Concluding again from what was stored changes nothing.
    let again = document.examination.clone();
    let names = |document: &RunDocument| -> Vec<String> {
        let members = &document.examination.as_ref().unwrap().members;
        members.iter().map(|member| member.name.clone()).collect()
    };
    assert_eq!(names(&document), ["db1:27017", "db2:27017", "db9:27017"]);
    let members = vec![member(1, 800.0, 0.97), member(2, 800.0, 0.97)];
    conclude(&mut document, &mut Counters::default(), members);
    assert_eq!(document.examination, again);
}
