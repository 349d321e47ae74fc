use seekscope_run::{NamedValue, RoleChange};

use super::*;
use crate::testing::{GIB, Recording, START_NS};

/// A set with a member for each pair of read latency (µs per page) and operations per second; the first is
/// the examined primary.
fn set(members: &[(f64, f64)]) -> Recording {
    let mut recording = Recording::new();
    let examined = recording.examined().clone();
    let record = |at: usize| MemberRecord {
        name: format!("db{}:27017", at + 1),
        state: match at {
            0 => MemberState::Primary,
            _ => MemberState::Secondary,
        },
        ..examined.clone()
    };
    recording.examination().members = (0..members.len()).map(record).collect();
    for (at, (us, operations)) in members.iter().enumerate() {
        let source = match at {
            0 => "serverStatus".into(),
            _ => format!("serverStatus@db{}:27017", at + 1),
        };
        let page = "wiredTiger.cache.application threads page read from disk to cache";
        recording.values(&source, &format!("{page} count"), |s| 100.0 * s);
        recording.values(&source, &format!("{page} time (usecs)"), |s| 100.0 * s * us);
        recording.values(&source, "opcounters.query", |s| operations * s);
    }
    recording
}

const ALIKE: (f64, f64) = (800.0, 300.0);

fn found(recording: &Recording) -> Option<MemberDifference> {
    recording.examine(|_, answers| answers.member_difference.clone())
}

#[test]
fn members_that_are_alike() {
    assert_eq!(found(&set(&[ALIKE; 3])), None);
    assert_eq!(found(&set(&[ALIKE])), None);
    let recording = set(&[ALIKE; 3]);
    let answers = recording.examine(|_, answers| answers.members.clone());
    let names = |at: usize| {
        answers[at]
            .figures
            .iter()
            .map(|(n, _)| n)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(0), names(2));
    let read = answers[1]
        .figures
        .iter()
        .find(|(n, _)| n.starts_with("page read"));
    assert_eq!(read.unwrap().1, Some(0.8));
}

#[test]
fn the_one_with_the_slow_disk() {
    let recording = set(&[ALIKE, ALIKE, (9_000.0, 300.0)]);
    let difference = found(&recording).unwrap();
    assert_eq!(difference.member, "db3:27017");
    assert_eq!(difference.factor, "page read from disk, ms");
    assert_eq!(
        (difference.value.as_str(), difference.others.as_str()),
        ("9.0", "0.80")
    );

    let of_two = set(&[(9_000.0, 300.0), ALIKE]);
    assert_eq!(found(&of_two).unwrap().member, "db1:27017");
}

/// A primary has more to do than its secondaries, but not more than a primary of another shard.
#[test]
fn load_is_compared_between_those_with_the_same_part() {
    let mut recording = set(&[(800.0, 9_000.0), ALIKE, ALIKE]);
    assert_eq!(found(&recording), None);
    for member in &mut recording.examination().members {
        member.state = MemberState::Primary;
    }
    assert_eq!(
        found(&recording).unwrap().factor,
        "operations of users per s"
    );
}

/// A secondary that another one copies the oplog from does the same for users, and a smaller cache is not hidden.
#[test]
fn the_duties_of_a_sync_source_set_no_member_apart() {
    let mut recording = set(&[ALIKE; 4]);
    for (name, per_s) in [("getmore", 500.0), ("command", 400.0)] {
        let name = format!("opcounters.{name}");
        recording.values("serverStatus@db2:27017", &name, |s| per_s * s);
    }
    assert_eq!(found(&recording), None);
    recording.examination().members[3].target.cache_bytes = Some(GIB);
    assert_eq!(found(&recording).unwrap().factor, "cache, GiB");
}

/// Work explains what a member does slowly, and whatever else differs comes before it.
#[test]
fn the_work_of_a_member_is_named_last() {
    let mut recording = set(&[ALIKE, ALIKE, ALIKE, (800.0, 90_000.0)]);
    for (at, us) in [100.0, 100.0, 100.0, 90_000.0].into_iter().enumerate() {
        let source = match at {
            0 => "serverStatus".into(),
            _ => format!("serverStatus@db{}:27017", at + 1),
        };
        recording.values(&source, "opLatencies.writes.ops", |s| 100.0 * s);
        recording.values(&source, "opLatencies.writes.latency", |s| 100.0 * us * s);
    }
    let factor = |recording: &Recording| found(recording).map(|d| (d.member, d.factor)).unwrap();
    let busy = (
        "db4:27017".to_string(),
        "operations of users per s".to_string(),
    );
    assert_eq!(factor(&recording), busy);
    for (at, member) in recording.examination().members.iter_mut().enumerate() {
        member.options.push(NamedValue {
            name: "storage.directoryPerDB".into(),
            value: (at == 2).to_string(),
        });
    }
    assert_eq!(factor(&recording).1, "storage.directoryPerDB");
    recording.examination().members[1].target.cache_bytes = Some(GIB);
    assert_eq!(factor(&recording).1, "cache, GiB");
}

#[test]
fn settings_differ_where_figures_do_not() {
    let mut recording = set(&[ALIKE; 3]);
    let option = |name: &str, value: &str| NamedValue {
        name: name.into(),
        value: value.into(),
    };
    for (at, member) in recording.examination().members.iter_mut().enumerate() {
        member
            .options
            .push(option("net.port", &format!("2701{at}")));
    }
    let last = &mut recording.examination().members[2];
    last.options.push(option("storage.directoryPerDB", "true"));
    let difference = found(&recording).unwrap();
    assert_eq!(difference.factor, "storage.directoryPerDB");
    assert_eq!(
        (difference.value.as_str(), difference.others.as_str()),
        ("true", NOT_SET)
    );

    recording.examination().members[1].target.cache_bytes = Some(GIB);
    assert_eq!(found(&recording).unwrap().factor, "cache, GiB");
    recording.examination().members[1].not_asked = Some("refused".into());
    assert_ne!(found(&recording).unwrap().factor, "cache, GiB");
}

#[test]
fn a_file_that_awaits_its_checkpoint_is_not_compared() {
    let mut recording = set(&[ALIKE; 3]);
    let sizes = [GIB * 6 / 10, GIB / 1000, GIB * 6 / 10];
    let collections = sizes.map(|storage_bytes| seekscope_run::CollectionFacts {
        data_bytes: GIB,
        storage_bytes,
        ..Default::default()
    });
    let members = recording.examination().members.iter_mut();
    for (member, collection) in members.zip(collections) {
        member.collections = vec![collection];
    }
    assert_eq!(found(&recording), None);
    let aged = &mut recording.examination().members[1].collections[0];
    aged.storage_bytes = 2 * GIB;
    let factor = found(&recording).unwrap().factor;
    assert_eq!(factor, "bytes on disk per byte of documents");
}

/// Such a member writes what the others wrote before it was asked; what it has is compared all the same.
#[test]
fn a_delayed_or_hidden_member_does_other_work() {
    for hide in [
        (|member| member.delay_s = Some(20.0)) as fn(&mut MemberRecord),
        |member| member.hidden = true,
    ] {
        let mut recording = set(&[ALIKE; 5]);
        let written = "wiredTiger.cache.bytes written from cache";
        for (number, mib_per_s) in [(2, 9.0), (3, 9.0), (4, 9.0), (5, 0.0)] {
            let source = format!("serverStatus@db{number}:27017");
            recording.values(&source, written, |s| s * mib_per_s * 1_048_576.0);
        }
        assert_eq!(
            found(&recording).unwrap().factor,
            "written from cache, MiB/s"
        );
        hide(&mut recording.examination().members[4]);
        assert_eq!(found(&recording), None);
        recording.examination().members[4].target.cache_bytes = Some(GIB);
        assert_eq!(found(&recording).unwrap().factor, "cache, GiB");
    }
}

/// A member in its initial sync answers no `getParameter`, which is not a value.
#[test]
fn what_could_not_be_read_is_not_compared() {
    let mut recording = set(&[ALIKE; 4]);
    let parameter = |value: &str| NamedValue {
        name: "cachePressureThreshold".into(),
        value: value.into(),
    };
    let examination = recording.examination();
    for member in &mut examination.members {
        member.parameters = vec![parameter("95")];
    }
    let syncing = &mut examination.members[3];
    syncing.parameters.clear();
    syncing.target.version.clear();
    syncing.state = MemberState::InitialSync;
    assert_eq!(found(&recording), None);
    recording.examination().members[1].parameters = vec![parameter("80")];
    let difference = found(&recording).unwrap();
    assert_eq!(
        (difference.member.as_str(), difference.value.as_str()),
        ("db2:27017", "80")
    );
    let answers = recording.examine(|_, answers| answers.members.clone());
    assert_eq!(answers[3].differing_settings, []);
    recording.examination().members[0].parameters.clear();
    assert_eq!(found(&recording), None, "either of two");
}

/// Figures of work are those of two duties then; what members have is compared all the same.
#[test]
fn a_failover_is_told_and_ends_the_comparison_of_work() {
    let mut recording = set(&[ALIKE, (800.0, 9_000.0), ALIKE, ALIKE]);
    assert_eq!(found(&recording).unwrap().member, "db2:27017");
    let sentences =
        |recording: &Recording| recording.examine(|_, answers| answers.role_changes.clone());
    assert!(sentences(&recording).is_empty());
    let members = &mut recording.examination().members;
    for (at, state) in [(0, MemberState::Secondary), (1, MemberState::Primary)] {
        members[at].role_change = Some(RoleChange {
            state,
            seen_ns: START_NS + 12_000_000_000,
        });
    }
    assert_eq!(found(&recording), None);
    assert_eq!(
        sentences(&recording),
        [
            "The primary changed from db1:27017 to db2:27017 within 12 s: figures of before and after are mixed."
        ]
    );
    recording.examination().members[1].role_change = None;
    assert!(sentences(&recording)[0].starts_with("db1:27017 changed from primary to secondary"));
    recording.examination().members[3].target.cache_bytes = Some(GIB);
    assert_eq!(found(&recording).unwrap().factor, "cache, GiB");
}
