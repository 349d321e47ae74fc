//! The figures of a change are those that the reports of both runs print.

use super::*;

/// A run in which this many writes wait for this long, s per hour, most of which a limit is to blame for.
fn held_back(waited: f64, gain: f64, writes_per_s: f64, limit: u64) -> Run {
    let mut run = at_load(
        run(None, vec![waiting("disk.limited", gain)]),
        writes_per_s,
        0.0,
    );
    run.1.answers.waited.syncs = waited;
    run.1.findings[0].gain = Some(Gain {
        high: waited,
        ..gain_of(gain)
    });
    let host = run.0.examination.as_mut().unwrap().host.as_mut().unwrap();
    host.surroundings.io_limits = vec![seekscope_run::IoLimit {
        cgroup: "/db".into(),
        device: "8:0".into(),
        what: "write IOPS".into(),
        per_s: limit,
    }];
    run.0.examination.as_mut().unwrap().members = vec![seekscope_run::MemberRecord::default()];
    run
}

/// A regression: the figure of now was that for the work of then, beside a finding with twice as much.
#[test]
fn what_is_scaled_says_so_and_what_it_is_without() {
    let before = held_back(11_924.0, 11_672.0, 67.0, 100);
    let found = changes(&before, &held_back(23_128.0, 22_884.0, 121.0, 100)).remove(0);
    assert_eq!((&*found.change, found.before), ("same", Some(11_672.0)));
    assert_eq!(found.after.map(f64::round), Some(12_671.0), "{found:?}");
    assert_eq!(
        found.verdict,
        "nothing changed for the work of then (67 writes per second then, 121 now; at the work of now it is 22,884), and it \
         was not acted on: the limits are what they were"
    );
    let as_much = changes(&before, &held_back(12_000.0, 11_700.0, 68.0, 100)).remove(0);
    assert!(!as_much.verdict.contains("the work of"), "{as_much:?}");
}

/// A regression: all waiting of a kind was taken for what the finding had promised to save of it.
#[test]
fn what_is_gone_is_told_by_what_was_promised() {
    let before = held_back(11_441.0, 11_084.0, 63.0, 100);
    let mut after = held_back(5_652.0, 1.0, 560.0, 5_000);
    after.1.findings.clear();
    let found = changes(&before, &after).remove(0);
    assert_eq!((&*found.change, found.before), ("gone", Some(11_084.0)));
    // All but 279 s of what was to be saved: 636 s are waited for the work of then.
    assert_eq!(found.after.map(f64::round), Some(279.0), "{found:?}");
    assert!(
        found.verdict.starts_with(
            "as predicted: saved 10,805 s of waiting per hour, predicted 8,867 to 11,441,"
        ),
        "{found:?}"
    );
}

/// What it saves by itself is printed where others take a part first.
#[test]
fn a_gain_that_others_share_is_that_of_its_own() {
    let mut before = held_back(8_000.0, 805.0, 60.0, 100);
    before.1.findings[0].alone_s_per_hour = Some(6_542.0);
    let found = changes(&before, &before).remove(0);
    assert_eq!((found.before, found.after), (Some(6_542.0), Some(6_542.0)));
    assert_eq!(found.predicted.unwrap().value, 6_542.0);
}

#[test]
fn a_remedy_that_was_applied_is_told_by_what_is_waited() {
    let of = |waited: f64, gain: f64, cache: u64| {
        let mut run = at_load(
            run(None, vec![waiting("cache.too-small", gain)]),
            100.0,
            100.0,
        );
        run.1.answers.waited.reads = waited;
        run.1.findings[0].gain = Some(gain_of(gain));
        let mut member = seekscope_run::MemberRecord::default();
        member.target.cache_bytes = Some(cache << 20);
        run.0.examination.as_mut().unwrap().members = vec![member];
        run
    };
    // A further step would save as much again: that is not what is left of the first.
    let found = changes(&of(2_000.0, 1_000.0, 256), &of(1_100.0, 1_000.0, 1_280)).remove(0);
    assert_eq!(
        (&*found.change, found.after),
        ("better", Some(100.0)),
        "{found:?}"
    );
    assert!(
        found.verdict.starts_with("as predicted: saved 900 s"),
        "{found:?}"
    );
}
