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
