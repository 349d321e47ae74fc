//! What became of a finding is credited to what was done about it, once, and only if it was done.

use super::*;

/// A regression: such a finding has seconds and no interval, and nothing was said to have been predicted.
#[test]
fn time_of_operations_that_an_index_saves_is_compared() {
    let scanning_by = |finding: Vec<Finding>, writing_s: u64, operations: Option<u64>| {
        let mut run = at_load(run(None, finding), 100.0, 100.0);
        let mut member = seekscope_run::MemberRecord::default();
        member.collections.push(seekscope_run::CollectionFacts {
            namespace: "shop.orders".into(),
            reading_ns: Some(0),
            writing_ns: Some(writing_s * 1_000_000_000),
            operations,
            ..Default::default()
        });
        run.0.examination.as_mut().unwrap().members.push(member);
        run
    };
    let scanning = |finding, writing_s| scanning_by(finding, writing_s, None);
    let named = Finding {
        id: "query.collection-scan".into(),
        subject: "shop.orders".into(),
        saves_s_per_hour: Some(1_000.0),
        ..Finding::default()
    };
    let before = scanning(vec![named.clone()], 18);
    let found = changes(&before, &scanning(Vec::new(), 1)).remove(0);
    assert_eq!(found.change, "gone");
    assert!(
        found.verdict.starts_with("as predicted: saved 1"),
        "{}",
        found.verdict
    );
    // An index that serves its queries badly is no cure, and no other illness.
    let otherwise = Finding {
        id: "query.index-scan".into(),
        ..named.clone()
    };
    let found = changes(&before, &scanning(vec![otherwise], 36)).remove(0);
    assert_eq!(found.change, "worse");
    assert!(
        found.verdict.ends_with("see query.index-scan"),
        "{}",
        found.verdict
    );
    // Other operations go on, and those on the collection do or do not.
    let before_by = scanning_by(vec![named.clone()], 18, Some(600));
    let found = changes(&before_by, &scanning_by(Vec::new(), 1, Some(500))).remove(0);
    assert_eq!(found.change, "gone");
    let found = changes(&before_by, &scanning_by(Vec::new(), 0, Some(0))).remove(0);
    assert_eq!(found.change, "unknown");
    assert!(
        found
            .verdict
            .contains("operations on the collection per second then, 0 now"),
        "{}",
        found.verdict
    );
    // Caught no more, and counted all the same.
    let unnamed = Finding {
        subject: String::new(),
        ..named
    };
    let found = changes(&before, &scanning(vec![unnamed], 18)).remove(0);
    assert_eq!(found.change, "unknown", "{}", found.verdict);
}

/// Two findings that explain the waiting for reads, of which one was acted on.
#[test]
fn what_was_saved_is_told_once() {
    let of = |findings, waited| with_waited(at_load(run(None, findings), 100.0, 50.0), waited);
    let (memory, cache) = (
        waiting("memory.short", 400.0),
        waiting("cache.too-small", 200.0),
    );
    let before = of(vec![cache.clone(), memory.clone()], 600.0);
    let after = of(vec![cache], 150.0);
    let found = changes(&before, &after);
    assert_eq!(
        (&*found[0].id, &*found[0].change),
        ("cache.too-small", "unknown")
    );
    assert!(
        found[0]
            .verdict
            .contains("the same waiting as memory.short"),
        "{}",
        found[0].verdict
    );
    assert_eq!((&*found[1].change, found[1].after), ("gone", Some(150.0)));
    assert!(
        found[1].verdict.contains("saved 450"),
        "{}",
        found[1].verdict
    );
    let both_gone = changes(&of(vec![memory], 600.0), &of(Vec::new(), 150.0));
    assert!(both_gone[0].verdict.contains("saved 450"));
}

/// A regression: one finding pointed to another, and that said nothing either, while 18 times as much was waited.
#[test]
fn what_grew_under_a_limit_that_stands_is_told_where_others_point_to() {
    let of = |waited: f64, per_s: f64, findings: Vec<Finding>| {
        let run = at_load(run(None, findings), per_s, per_s);
        let mut run = with_waited(run, waited);
        let examination = run.0.examination.as_mut().unwrap();
        examination.members = vec![seekscope_run::MemberRecord::default()];
        let surroundings = &mut examination.host.as_mut().unwrap().surroundings;
        surroundings.io_limits = vec![seekscope_run::IoLimit {
            cgroup: "/db".into(),
            device: "8:0".into(),
            what: "read IOPS".into(),
            per_s: 150,
        }];
        run
    };
    let both = || {
        vec![
            waiting("memory.short", 400.0),
            waiting("disk.limited", 3_000.0),
        ]
    };
    let before = of(3_631.0, 100.0, both());
    for after in [both(), Vec::new()] {
        let found = changes(&before, &of(68_389.0, 230.0, after));
        let limited = &found[1];
        assert_eq!(limited.change, "worse", "{limited:?}");
        let now_s = limited.after.unwrap() / 100.0 * 230.0;
        assert!((now_s - 68_389.0).abs() < 1.0, "{limited:?}");
        let told = "what it advises was not done, and it became worse: ";
        assert!(limited.verdict.starts_with(told), "{limited:?}");
        assert!(
            limited.verdict.contains("reads past the cache"),
            "{limited:?}"
        );
    }
    // Under a heavier load nothing is told of a limit that was not looked at, except what is waited.
    let alone = |waited, per_s| with_waited(at_load(run(None, both()), per_s, per_s), waited);
    let found = changes(&alone(3_631.0, 100.0), &alone(68_389.0, 230.0));
    for change in found {
        assert_eq!(change.change, "unknown", "{change:?}");
        assert!(
            change.verdict.contains("68,389 s per hour are waited now"),
            "{change:?}"
        );
    }
    // Less is waited, and nothing was done about any of them, so that none can be pointed to.
    let unchanged = |waited, findings| {
        let mut run = of(waited, 100.0, findings);
        let examination = run.0.examination.as_mut().unwrap();
        examination.members[0].target.cache_bytes = Some(1 << 30);
        run
    };
    let limit_and_cache = vec![
        waiting("disk.limited", 3_000.0),
        waiting("cache.too-small", 400.0),
    ];
    let before = unchanged(3_631.0, limit_and_cache.clone());
    let again = changes(&before, &unchanged(400.0, limit_and_cache));
    let told = "still there, not acted on: the limits are what they were, so it is what is asked";
    assert!(again[0].verdict.starts_with(told), "{again:?}");
    assert_eq!((&*again[0].change, again[0].after), ("same", Some(400.0)));
    let found = changes(&before, &unchanged(400.0, Vec::new()));
    for (change, why) in found
        .iter()
        .zip(["the limits are", "the cache is no larger"])
    {
        assert_eq!(change.change, "unknown", "{change:?}");
        assert!(change.verdict.contains(why), "{change:?}");
    }
}

/// Operations on shop.orders of which the log tells: how many per hour, and the ms that each takes.
pub(super) fn logged(kind: &str, per_hour: u64, each_ms: u64) -> seekscope_run::OperationSeen {
    seekscope_run::OperationSeen {
        kind: kind.into(),
        namespace: Some("shop.orders".into()),
        logged: Some(seekscope_run::LoggedOperations {
            count: per_hour,
            took_us: per_hour * each_ms * 1000,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// A run whose log covers an hour, with these operations on shop.orders per second.
pub(super) fn with_log(
    slow: &[seekscope_run::OperationSeen],
    per_s: u64,
    indexes: &[&str],
    findings: Vec<Finding>,
) -> Run {
    let mut run = at_load(run(None, findings), 100.0, 100.0);
    let watched_s = run.0.phases[0].duration_ns() / 1_000_000_000;
    let index = |keys: &&str| seekscope_run::IndexFacts {
        keys: (*keys).into(),
        ..Default::default()
    };
    let member = seekscope_run::MemberRecord {
        slow_log_s: Some(3600.0),
        operations: slow.to_vec(),
        collections: vec![seekscope_run::CollectionFacts {
            namespace: "shop.orders".into(),
            reading_ns: Some(watched_s * 5_000_000_000),
            operations: Some(per_s * watched_s),
            indexes: indexes.iter().map(index).collect(),
            ..Default::default()
        }],
        ..Default::default()
    };
    run.0.examination.as_mut().unwrap().members = vec![member];
    run
}

pub(super) fn scan_of(operation: &seekscope_run::OperationSeen, saves: f64) -> Finding {
    Finding {
        id: "query.collection-scan".into(),
        subject: "shop.orders".into(),
        saves_s_per_hour: Some(saves),
        operations: seekscope_run::OperationKind::of_all([operation]),
        ..Finding::default()
    }
}

/// A regression: two indexes were each credited with what all operations on the collection became faster, three of which
/// nobody served.
#[test]
fn an_index_is_credited_with_the_operations_that_it_serves() {
    let distinct = logged("command distinct", 1_000, 3_600);
    let join = logged("command aggregate", 3_600, 1_000);
    let group = logged("query", 1_800, 2_000);
    let findings = vec![scan_of(&distinct, 3_500.0), scan_of(&join, 3_400.0)];
    let slow = [distinct.clone(), join, group.clone()];
    let before = with_log(&slow, 12, &["a"], findings.clone());
    // The one is in the log no more, the other a hundredth of the time, and all that is asked is far more.
    let fast = logged("command aggregate", 36_000, 10);
    let slow = [fast, group.clone()];
    let unserved = scan_of(&group, 3_000.0);
    let after = with_log(&slow, 235, &["a", "b"], vec![unserved]);
    let found = changes(&before, &after);
    let list: Vec<(&str, Option<f64>)> = found
        .iter()
        .map(|change| (change.change.as_str(), change.after.map(f64::round)))
        .collect();
    let expected = [
        ("gone", Some(0.0)),
        // A hundredth is left.
        ("gone", Some(34.0)),
        ("new", Some(3600.0)),
    ];
    assert_eq!(list, expected, "{found:#?}");
    assert_eq!(
        found[0].verdict,
        "as predicted: saved 3,500 s of waiting per hour, predicted 2,625 to 4,375, for the work of then (12 operations on \
         the collection per second then, 235 now)"
    );
    assert!(
        found[1]
            .verdict
            .contains("(1.0 such operations in the log per second then, 10 now"),
        "{}",
        found[1].verdict
    );
    let predicted = found[0].predicted.as_ref().unwrap();
    assert_eq!((predicted.value, predicted.low), (3_500.0, 2_625.0));
    assert_eq!(found[2].before.map(f64::round), Some(3600.0), "{found:#?}");
    // Of a collection that is hardly asked any more, the log lacks them for another reason.
    let idle = with_log(&[], 1, &["a", "b"], Vec::new());
    let found = changes(&before, &idle).remove(0);
    assert_eq!((found.change.as_str(), found.after), ("unknown", None));
    assert!(
        found
            .verdict
            .starts_with("cannot be told: the server had less to do"),
        "{found:?}"
    );
    // Findings of older versions name no operations, and are the same as before.
    let unnamed = Finding {
        operations: Vec::new(),
        ..findings[0].clone()
    };
    let again = with_log(&slow, 12, &["a"], vec![scan_of(&group, 3_000.0)]);
    let found = changes(&with_log(&slow, 12, &["a"], vec![unnamed]), &again);
    assert_eq!((found.len(), found[0].change.as_str()), (1, "same"));
}

/// Those that became fast are in the log no more, and the few that are left do not stand for them.
#[test]
fn operations_that_the_log_no_longer_has_became_fast() {
    let often = logged("query", 7_200, 500);
    let seldom = logged("query", 72, 500);
    let before = with_log(
        std::slice::from_ref(&often),
        12,
        &["a"],
        vec![scan_of(&often, 3_500.0)],
    );
    let found = changes(&before, &with_log(&[seldom], 14, &["a", "b"], Vec::new())).remove(0);
    let after = found.after.map(f64::round);
    assert_eq!((found.change.as_str(), after), ("gone", Some(35.0)));
}

/// A regression: scans that were only stopped were certified as what an index had saved.
#[test]
fn what_was_not_acted_on_is_not_the_remedy() {
    let with = |cache_bytes: u64, indexes: &[&str], findings: Vec<Finding>| {
        let mut one = at_load(run(None, findings), 500.0, 148.0);
        let mut member = seekscope_run::MemberRecord::default();
        member.target.cache_bytes = Some(cache_bytes);
        let indexes = indexes.iter().map(|keys| seekscope_run::IndexFacts {
            keys: (*keys).into(),
            ..seekscope_run::IndexFacts::default()
        });
        member.collections = vec![seekscope_run::CollectionFacts {
            namespace: "shop.orders".into(),
            indexes: indexes.collect(),
            ..seekscope_run::CollectionFacts::default()
        }];
        one.0.examination.as_mut().unwrap().members = vec![member];
        one
    };
    let scan = || Finding {
        subject: "shop.orders".into(),
        ..waiting("query.collection-scan", 55.0)
    };
    let id = r#"{ "_id": 1 }"#;
    let before = with(
        1 << 28,
        &[id],
        vec![scan(), waiting("cache.too-small", 55.0)],
    );
    let verdicts = |now: &Run| -> Vec<String> {
        let found = changes(&before, now);
        found.into_iter().map(|change| change.verdict).collect()
    };
    for verdict in verdicts(&with(1 << 28, &[id], Vec::new())) {
        assert!(
            verdict.contains("it is what is asked of the server that changed"),
            "{verdict}"
        );
    }
    for verdict in verdicts(&with(1 << 30, &[id, r#"{ "by": 1 }"#], Vec::new())) {
        assert!(!verdict.contains("it is what is asked"), "{verdict}");
    }
}

/// A regression: of a limit that still stood "gone, as predicted" was said once nobody wrote any more.
#[test]
fn a_limit_that_still_stands_was_no_remedy() {
    let limited = |per_s: u64, findings: Vec<Finding>| {
        let mut one = at_load(run(None, findings), 500.0, 148.0);
        let examination = one.0.examination.as_mut().unwrap();
        examination.members = vec![seekscope_run::MemberRecord::default()];
        let surroundings = &mut examination.host.as_mut().unwrap().surroundings;
        surroundings.io_limits = vec![seekscope_run::IoLimit {
            cgroup: "/db".into(),
            device: "8:0".into(),
            what: "write IOPS".into(),
            per_s,
        }];
        one
    };
    let before = limited(50, vec![waiting("disk.limited", 3570.0)]);
    let verdict = |per_s: u64| {
        changes(&before, &limited(per_s, Vec::new()))
            .remove(0)
            .verdict
    };
    assert!(verdict(50).contains("the limits are what they were"));
    assert!(!verdict(5_000).contains("the limits are what they were"));
}
