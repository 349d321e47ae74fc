//! Operations that wait for CPUs take longer, and did not become slower.

use super::remedies::{logged, scan_of, with_log};
use super::*;

/// A run whose log has this many scans of 60,000 documents in an hour, of such mean and longest duration, on a host of
/// two CPUs with such a load.
fn scanning(count: u64, ms: u64, longest_ms: u64, per_s: u64, load: f64) -> Run {
    let mut scan = logged("query", count, ms);
    let seen = scan.logged.as_mut().unwrap();
    (seen.longest_us, seen.documents_examined) = (longest_ms * 1000, count * 60_000);
    let saves = count as f64 * ms as f64 / 1000.0;
    let finding = scan_of(&scan, saves);
    let mut run = with_log(&[scan], per_s, &["_id"], vec![finding]);
    run.0.host = Some(seekscope_run::HostFacts {
        cpus: 2,
        load_1m: load,
        ..Default::default()
    });
    run
}

fn change(before: &Run, after: &Run) -> FindingChange {
    changes(before, after).remove(0)
}

/// The same, in which some task waited for a CPU in such a share of the watch.
fn cpu_pressure_share(mut run: Run, share: f64) -> Run {
    let work = run.1.answers.work.as_mut().unwrap();
    work.cpu_pressure_share = Some(share);
    run
}

/// A regression: half as many scans, of which as many were slow because others had the CPUs, were "worse".
#[test]
fn what_others_make_slower_is_not_worse() {
    let before = scanning(100, 114, 368, 18, 1.0);
    let fewer = change(&before, &scanning(93, 234, 994, 8, 10.6));
    assert_eq!(
        (&*fewer.change, fewer.after),
        ("unknown", None),
        "{fewer:?}"
    );
    let told = "but other processes may have had the CPUs (a load of 10.6 on 2 CPUs) now; it is found again, with 21.8 s of waiting per hour now";
    assert!(fewer.verdict.contains(told), "{fewer:?}");
    let ends = "; 18 operations on the collection per second then, 8.0 now";
    assert!(fewer.verdict.ends_with(ends), "{fewer:?}");
    // Others have gone: that is no remedy.
    let quiet = change(&scanning(93, 234, 994, 8, 10.6), &before);
    assert_eq!(
        (&*quiet.change, quiet.after),
        ("unknown", None),
        "{quiet:?}"
    );
    assert!(quiet.verdict.contains("on 2 CPUs) then;"), "{quiet:?}");
    // With CPUs for all they did become slower.
    let slower = change(&before, &scanning(93, 234, 994, 18, 1.0));
    assert_eq!(slower.change, "worse", "{slower:?}");
    let told = "what it advises was not done, and it became worse: the collection has the indexes that it had, and its \
                operations took 114 ms on average then and take 234 now";
    assert_eq!(slower.verdict, told);
}

/// A regression: the same load was "worse" by as much as single operations differ.
#[test]
fn what_single_operations_differ_by_is_no_change() {
    let before = scanning(91, 96, 357, 18, 1.0);
    let noise = change(&before, &scanning(100, 114, 368, 18, 1.0));
    assert_eq!(noise.change, "same", "{noise:?}");
    assert!(
        noise
            .verdict
            .contains("a difference within the spread of their own durations"),
        "{noise:?}"
    );
    // As many that are all alike tell more.
    let alike = change(
        &scanning(91, 96, 97, 18, 1.0),
        &scanning(100, 114, 115, 18, 1.0),
    );
    assert_eq!(alike.change, "worse", "{alike:?}");
}

/// A collection that grew takes longer to read, and no longer for what is read.
#[test]
fn time_is_told_for_what_is_examined() {
    let before = scanning(1_000, 100, 110, 18, 1.0);
    let mut grown = scanning(1_000, 200, 220, 18, 1.0);
    let member = &mut grown.0.examination.as_mut().unwrap().members[0];
    let seen = member.operations[0].logged.as_mut().unwrap();
    seen.documents_examined *= 2;
    assert_eq!(change(&before, &grown).change, "same");
}

/// An index that other queries use leaves these as they are; one that serves them is told by what it saves.
#[test]
fn an_index_that_does_not_serve_them_is_no_remedy() {
    let before = scanning(100, 200, 400, 18, 10.0);
    let of = |examined: u64| {
        let mut now = scanning(100, 100, 200, 18, 1.0);
        let member = &mut now.0.examination.as_mut().unwrap().members[0];
        member.collections[0]
            .indexes
            .push(seekscope_run::IndexFacts {
                keys: "b".into(),
                ..Default::default()
            });
        let seen = member.operations[0].logged.as_mut().unwrap();
        seen.documents_examined = examined;
        now
    };
    let unserved = change(&before, &of(100 * 60_000));
    assert_eq!(unserved.change, "unknown", "{unserved:?}");
    assert_eq!(change(&before, &of(100)).change, "better");
}

/// Where the log does not tell, the CPUs do.
#[test]
fn the_time_on_a_collection_is_not_worse_while_others_have_the_cpus() {
    let of = |seconds: u64, load: f64| {
        let mut run = scanning(1, 1, 1, 18, load);
        let member = &mut run.0.examination.as_mut().unwrap().members[0];
        member.operations.clear();
        member.collections[0].reading_ns = Some(seconds * 1_000_000_000);
        run.1.findings[0].saves_s_per_hour = Some(seconds as f64 * 60.0);
        run
    };
    assert_eq!(change(&of(10, 1.0), &of(30, 1.0)).change, "worse");
    let told = change(&of(10, 1.0), &of(30, 9.0));
    assert_eq!(told.change, "same", "{told:?}");
    assert!(
        told.verdict.starts_with("still there, not acted on: "),
        "{told:?}"
    );
}

/// The load average is of the minute before, in which others may have come or gone.
#[test]
fn the_watch_itself_tells_of_the_cpus() {
    let before = cpu_pressure_share(scanning(100, 114, 368, 18, 1.0), 0.1);
    let slower = |load, share| cpu_pressure_share(scanning(93, 234, 994, 18, load), share);
    let alone = change(&before, &slower(10.6, 0.1));
    assert_eq!(alone.change, "worse", "{alone:?}");
    let crowded = change(&before, &slower(1.0, 0.92));
    assert_eq!(crowded.change, "unknown", "{crowded:?}");
    let told = "other processes may have had the CPUs (some task waited for one in 92 % of the time, on 2 CPUs) now";
    assert!(crowded.verdict.contains(told), "{crowded:?}");
}

/// A regression: an index that serves nobody was credited with scans that the log lacked once others left the CPUs.
#[test]
fn an_index_is_not_credited_with_cpus_that_others_left() {
    let examining = |mut run: Run, documents_per_s: Option<f64>| {
        let work = run.1.answers.work.as_mut().unwrap();
        work.documents_examined_per_s = documents_per_s;
        run
    };
    // 100 scans of 60,000 documents in an hour.
    let before = |load| examining(scanning(100, 200, 400, 18, load), Some(1_700.0));
    let after = |documents_per_s| {
        let mut run = with_log(&[], 18, &["_id", "b"], Vec::new());
        run.0.host = before(1.0).0.host;
        examining(run, documents_per_s)
    };
    for documents_per_s in [Some(1_690.0), None] {
        let untold = change(&before(10.0), &after(documents_per_s));
        assert_eq!((&*untold.change, untold.after), ("unknown", None));
        let told =
            "(a load of 10.0 on 2 CPUs) then, and nothing shows that less is examined for them now";
        assert!(untold.verdict.ends_with(told), "{untold:?}");
    }
    for (load, documents_per_s) in [(10.0, 20.0), (1.0, 1_690.0)] {
        let gone = change(&before(load), &after(Some(documents_per_s)));
        assert_eq!((&*gone.change, gone.after), ("gone", Some(0.0)), "{gone:?}");
    }
    // Another kind has left the log as well, and what is examined no more may be its documents.
    let mut two = before(10.0);
    let mut other = logged("query", 300, 200);
    other.kind = "command aggregate".into();
    other.logged.as_mut().unwrap().documents_examined = 300 * 60_000;
    let member = &mut two.0.examination.as_mut().unwrap().members[0];
    member.operations.push(other);
    let two = examining(two, Some(6_700.0));
    assert_eq!(change(&two, &after(Some(1_700.0))).change, "unknown");
    assert_eq!(change(&two, &after(Some(20.0))).change, "gone");
}

/// A regression: a heavier load of other processes made the server "worse".
#[test]
fn how_much_others_take_makes_the_server_no_worse() {
    let of = |s_per_hour: f64, share: f64| {
        let mut run = at_load(
            run(None, vec![waiting("cpu.saturated", s_per_hour)]),
            1.0,
            1.0,
        );
        run.1.findings[0].gain = Some(gain_of(s_per_hour));
        run.1.answers.waited.processors = s_per_hour;
        cpu_pressure_share(run, share)
    };
    for (then, now) in [(600.0, 3_600.0), (3_600.0, 600.0)] {
        let found = change(&of(then, 0.7), &of(now, 0.95));
        assert_eq!((&*found.change, found.after), ("same", Some(now)));
        let told = "(some task waited for one in 70 % of the time then, in 95 % now)";
        assert!(found.verdict.ends_with(told), "{found:?}");
    }
    // A quota is the owner's.
    let by_quota = |s_per_hour: f64| {
        let mut run = of(s_per_hour, 0.7);
        run.1.answers.waited.processors = 0.0;
        run
    };
    assert_eq!(change(&by_quota(600.0), &by_quota(3_600.0)).change, "worse");
}
