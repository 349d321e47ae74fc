//! A trouble that is still there is not unknown, and what is left of one is not new.

use super::*;

/// A run with this much waiting for reads, s per hour, a cache of this many MiB, and memory of this many.
fn with_memory(reads: f64, cache: u64, memory: u64, findings: &[&str]) -> Run {
    let findings = findings.iter().map(|id| waiting(id, reads)).collect();
    let mut run = with_waited(at_load(run(None, findings), 100.0, 100.0), reads);
    run.0.host = Some(seekscope_run::HostFacts {
        memory_bytes: 64 << 30,
        ..Default::default()
    });
    let examination = run.0.examination.as_mut().unwrap();
    let host = examination.host.as_mut().unwrap();
    host.surroundings.memory_limit_bytes = Some(memory << 20);
    let mut member = seekscope_run::MemberRecord::default();
    member.target.cache_bytes = Some(cache << 20);
    examination.members = vec![member];
    run
}

/// A regression: the first finding of the run was "unknown", because another one explained its waiting, too.
#[test]
fn what_is_found_again_and_was_not_acted_on_is_still_there() {
    let before = with_memory(7_539.0, 256, 1_100, &["memory.short", "cache.too-small"]);
    let found = changes(
        &before,
        &with_memory(652.0, 256, 1_664, &["cache.too-small"]),
    );
    assert_eq!((&*found[0].id, &*found[0].change), ("memory.short", "gone"));
    assert_eq!((&*found[1].change, found[1].after), ("same", Some(652.0)));
    assert_eq!(
        found[1].verdict,
        "still there, not acted on: the cache is no larger than it was; what became of the waiting that it shares with \
         memory.short is told there"
    );
}

#[test]
fn memory_that_is_no_larger_was_no_remedy() {
    let before = with_memory(7_539.0, 256, 1_100, &["memory.short"]);
    let change = |memory: u64, cache: u64, findings: &[&str]| {
        changes(&before, &with_memory(36.0, cache, memory, findings)).remove(0)
    };
    let gone = change(1_100, 256, &[]);
    assert_eq!(gone.change, "unknown", "{gone:?}");
    assert!(
        gone.verdict
            .contains("the server has no more memory than it had, so"),
        "{gone:?}"
    );
    let again = change(1_100, 256, &["memory.short"]);
    assert_eq!(
        (&*again.change, again.after),
        ("same", Some(36.0)),
        "{again:?}"
    );
    for (memory, cache) in [(1_664, 256), (1_100, 128)] {
        assert_eq!(change(memory, cache, &[]).change, "gone");
    }
}

/// A regression: syncs for which writes waited behind a limit before were "new" once it was lifted.
#[test]
fn what_is_left_of_an_older_trouble_is_not_new() {
    let of = |syncs: f64, writes_per_s: f64, id: &str| {
        let mut run = at_load(run(None, vec![waiting(id, syncs)]), writes_per_s, 0.0);
        run.1.answers.waited.syncs = syncs;
        run.1.findings[0].gain = (id == "disk.limited").then(|| gain_of(syncs));
        run
    };
    let before = of(11_441.0, 63.0, "disk.limited");
    let left = changes(&before, &of(5_652.0, 560.0, "journal.sync-bound")).remove(1);
    assert_eq!((&*left.id, &*left.change), ("journal.sync-bound", "better"));
    assert_eq!(
        left.verdict,
        "not new: the same waiting was explained by disk.limited, which was predicted to save 11,441: it was 11,441 s of waiting per \
         hour then and is 5,652 now (63 operations per second then, 560 now)"
    );
    // More is waited than then.
    let more = changes(&before, &of(20_000.0, 63.0, "journal.sync-bound")).remove(1);
    assert_eq!(more.change, "new", "{more:?}");
    // Its cause is still there.
    let mut both = of(5_652.0, 63.0, "disk.limited");
    both.1.findings.push(waiting("journal.sync-bound", 0.0));
    assert_eq!(changes(&before, &both).remove(1).change, "new");
}

#[test]
fn memory_that_a_larger_cache_took_is_connected_with_it() {
    let before = with_memory(900.0, 256, 1_664, &["cache.too-small"]);
    let mut after = with_memory(900.0, 1_280, 1_664, &["memory.short"]);
    let work = after.1.answers.work.as_mut().unwrap();
    (work.operations_per_s, work.pages_read_per_s) = (Some(125.0), Some(30.0));
    let found = changes(&before, &after).remove(1);
    assert_eq!((&*found.id, &*found.change), ("memory.short", "better"));
    let told = "the cache grew from 256 MiB to 1.25 GiB between the runs, and that memory is no longer available to the page cache";
    assert!(found.verdict.ends_with(told), "{found:?}");
}
