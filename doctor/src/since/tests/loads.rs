//! What waited is compared for the same work, or not at all.

use super::*;

/// A regression: a server that did nothing was certified "gone: as predicted".
#[test]
fn an_idle_server_proves_nothing() {
    for id in [
        "disk.limited",
        "cache.too-small",
        "journal.slow-sync",
        "tickets.exhausted",
    ] {
        let before = at_load(run(None, vec![waiting(id, 55.0)]), 500.0, 148.0);
        let found = changes(&before, &at_load(run(None, Vec::new()), 0.0, 0.0));
        assert_eq!(
            (found[0].change.as_str(), found[0].after),
            ("unknown", None)
        );
        let verdict = &found[0].verdict;
        assert!(
            verdict.starts_with("cannot be told: the server had less to do"),
            "{verdict}"
        );
        assert!(verdict.contains(" per second then, 0 now"), "{verdict}");
        let mut unknown = at_load(run(None, Vec::new()), 500.0, 148.0);
        unknown.1.answers.work = None;
        let untold = changes(&before, &unknown);
        assert_eq!(untold[0].change, "unknown", "its work is not known");
    }
    // Checkpoints of a server that writes nothing are short.
    let long = |median_s: f64| {
        let mut run = run(None, vec![waiting("checkpoint.long", 55.0)]);
        run.1.findings[0].gain = None;
        run.1.answers.checkpoints = Some(crate::answers::CheckpointAnswer {
            median_s,
            ..Default::default()
        });
        run
    };
    let before = at_load(long(19.0), 500.0, 0.0);
    let idle = changes(&before, &at_load(long(0.1), 2.0, 0.0));
    assert_eq!(idle[0].change, "unknown");
    let like = changes(&before, &at_load(long(2.0), 450.0, 0.0));
    assert_eq!(
        (like[0].change.as_str(), like[0].after),
        ("better", Some(2.0))
    );
}

#[test]
fn what_the_load_cannot_explain_is_told() {
    let limited = |waited_s| {
        let run = run(None, vec![waiting("disk.limited", 55.0)]);
        with_waited(run, waited_s)
    };
    let change = |after: Run| {
        let before = at_load(limited(55.0), 500.0, 150.0);
        changes(&before, &after).remove(0)
    };
    let gone_at_ten_times = change(at_load(run(None, Vec::new()), 5000.0, 1500.0));
    assert_eq!(
        (gone_at_ten_times.change.as_str(), gone_at_ten_times.after),
        ("gone", Some(0.0))
    );
    assert_eq!(
        gone_at_ten_times.verdict,
        "as predicted: saved 55.0 s of waiting per hour, predicted 44.0 to 66.0, for the work of \
         then (150 reads past the cache per second then, 1,500 now)"
    );
    let more_at_ten_times = change(at_load(limited(400.0), 5000.0, 1500.0));
    assert_eq!(more_at_ten_times.change, "better", "less per read");
    let worse_at_ten_times = change(at_load(limited(9000.0), 5000.0, 1500.0));
    assert_eq!(
        worse_at_ten_times.change, "unknown",
        "a queue grows with the load"
    );
    let worse_at_a_tenth = change(at_load(limited(55.0), 50.0, 15.0));
    assert_eq!(
        (worse_at_a_tenth.change.as_str(), worse_at_a_tenth.after),
        ("worse", Some(550.0))
    );
    // The cache serves what the disk had to: that says nothing of the disk.
    let no_reads = change(at_load(run(None, Vec::new()), 500.0, 3.0));
    assert_eq!(no_reads.change, "unknown");
}

/// A regression: writes that waited for a limit were compared by all operations, most of which read from memory.
#[test]
fn a_disk_that_holds_back_writes_is_compared_by_writes() {
    let limited = |syncs_s: f64, writes_per_s: f64| {
        let mut run = at_load(run(None, vec![waiting("disk.limited", 55.0)]), 200.0, 0.0);
        run.1.answers.waited.syncs = syncs_s;
        run.1.findings[0].gain = Some(gain_of(syncs_s));
        let work = run.1.answers.work.as_mut().unwrap();
        work.writes_per_s = Some(writes_per_s);
        work.operations_per_s = Some(170.0 + writes_per_s);
        run
    };
    let found = changes(&limited(24_000.0, 50.0), &limited(12_000.0, 500.0)).remove(0);
    let work = found.work.as_ref().unwrap();
    assert_eq!((work.unit.as_str(), work.after_per_s), ("writes", 500.0));
    assert_eq!(found.after, Some(1_200.0), "{found:?}");
}

#[test]
fn waiting_is_compared_under_like_loads() {
    let scheduler = |saves: f64| Finding {
        gain: Some(Gain {
            unit: "s per hour".into(),
            ..waiting("", 0.0).gain.unwrap()
        }),
        ..waiting("scheduler.unfit", saves)
    };
    let before = at_load(run(None, vec![scheduler(55.0)]), 100.0, 100.0);
    let found = changes(&before, &at_load(run(None, Vec::new()), 110.0, 90.0));
    assert_eq!((found[0].before, found[0].after), (Some(50.0), None));
    assert_eq!(found[0].change, "gone", "a setting is as it is");
    assert!(
        found[0].verdict.starts_with("cannot be told"),
        "what it saved was not measured: {}",
        found[0].verdict
    );
    let idle = changes(&before, &at_load(run(None, Vec::new()), 0.0, 0.0));
    assert_eq!(idle[0].change, "gone", "a setting is as it is");
    assert!(idle[0].verdict.starts_with("cannot be told"), "{idle:?}");
    let old = || Finding {
        id: "server.old-settings".into(),
        ..Finding::default()
    };
    let before = at_load(run(None, vec![old()]), 100.0, 100.0);
    let idle = changes(&before, &at_load(run(None, vec![old()]), 0.0, 0.0));
    assert_eq!(
        (idle[0].change.as_str(), idle[0].verdict.as_str()),
        ("same", "it is as it was; nothing was predicted")
    );
}

/// A regression: what had been predicted was told as what was saved.
#[test]
fn what_was_saved_is_measured() {
    let too_small = |waited_s: f64| {
        let run = run(None, vec![waiting("cache.too-small", 55.0)]);
        at_load(with_waited(run, waited_s), 100.0, 100.0)
    };
    let well = at_load(with_waited(run(None, Vec::new()), 180.0), 100.0, 1.0);
    let found = changes(&too_small(200.0), &well).remove(0);
    assert_eq!((found.before, found.after), (Some(200.0), Some(180.0)));
    assert!(
        found
            .verdict
            .starts_with("less than predicted: saved 20.0 s"),
        "{}",
        found.verdict
    );
    // Another finding may explain it now, and no less is waited.
    let grown = at_load(with_waited(run(None, Vec::new()), 300.0), 100.0, 100.0);
    let found = changes(&too_small(200.0), &grown).remove(0);
    assert_eq!(found.change, "worse", "{found:?}");
}

#[test]
fn waiting_for_a_file_is_compared_by_the_calls_on_it() {
    let user = |calls_per_s: f64| crate::answers::DeviceUser {
        path: "a.wt".into(),
        role: seekscope_run::FileRole::Collection,
        namespace: Some("shop.orders".into()),
        thread_role: seekscope_pattern::ThreadRole::Application,
        writes: false,
        calls_per_s,
        bytes_per_s: 0.0,
        device_bytes_per_s: 0.0,
        waiting_s_per_s: calls_per_s / 1000.0,
        device_time_share: None,
        pattern: None,
        sequential_share: None,
        p50_ns: 0,
        p99_ns: 0,
    };
    let of = |id: &str| Finding {
        id: id.into(),
        subject: "shop.orders".into(),
        ..waiting(id, 55.0)
    };
    let with_calls = |finding: Finding, scan_s: f64, calls_per_s: Option<f64>| {
        let mut run = run(Some(scan_s), vec![finding]);
        run.1.findings[0].gain = Some(gain_of(calls_per_s.unwrap_or(0.0) * 3.6));
        run.1.answers.device_users = calls_per_s.map(user).into_iter().collect();
        at_load(run, 100.0, 100.0)
    };
    // The same calls, each as slow: nothing changed, however few they are.
    let before = with_calls(of("layout.key-order-lost"), 30.0, Some(100.0));
    let found = changes(
        &before,
        &with_calls(of("layout.key-order-lost"), 30.0, Some(20.0)),
    );
    assert_eq!(
        (found[0].before, found[0].after),
        (Some(360.0), Some(360.0))
    );
    assert_eq!(found[0].change, "same");
    // With as many calls, the calls decide; without any, the layout does.
    let as_many = with_calls(of("layout.key-order-lost"), 3.0, Some(90.0));
    let found = changes(&before, &as_many);
    assert_eq!(
        (found[0].after, found[0].change.as_str()),
        (Some(360.0), "same")
    );
    let found = changes(&before, &with_calls(of("layout.key-order-lost"), 3.0, None));
    assert_eq!(
        (found[0].after, found[0].change.as_str()),
        (Some(36.0), "better")
    );
    // An index is meant to reduce calls.
    let before = with_calls(of("query.collection-scan"), 30.0, Some(100.0));
    let found = changes(
        &before,
        &with_calls(of("query.collection-scan"), 30.0, Some(85.0)),
    );
    assert_eq!(found[0].before, Some(360.0));
    assert!(
        found[0].verdict.starts_with("less than predicted"),
        "{}",
        found[0].verdict
    );
    let found = changes(
        &before,
        &with_calls(of("query.collection-scan"), 30.0, None),
    );
    assert_eq!(found[0].after, Some(0.0), "nobody reads it any more");
}

#[test]
fn of_two_idle_runs_nothing_is_told() {
    let cache = Finding {
        id: "cache.too-small".into(),
        saves_s_per_hour: Some(2_900.0),
        ..Finding::default()
    };
    let earlier = at_load(run(None, vec![cache]), 0.0, 0.0);
    let now = at_load(run(None, Vec::new()), 0.0, 0.0);
    let told = changes(&earlier, &now).remove(0);
    assert_eq!(told.change, "unknown", "{told:?}");
    assert!(told.verdict.contains("is not counted"), "{told:?}");
}
