//! Whatever the events: no panic, shares in range, sums that add up, and on small traces the same
//! as counting over all events at once.

use proptest::prelude::*;
use seekscope_pattern::{
    AccessPattern, AnalysisOptions, FileTrace, SEQUENTIAL_WINDOW_BYTES, TraceAnalyser,
    TraceAnalysis,
};
use seekscope_run::{BlockRequest, CacheOutcome, IoEvent, IoFlags, IoLayer, IoOp};

/// Numbers that are near one another, near the ends, or anything.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..64u64,
        4 => (0..64u64).prop_map(|n| n * 4096),
        1 => (0..64u64).prop_map(|n| u64::MAX - n * 4096),
        1 => any::<u64>(),
    ]
}

fn event() -> impl Strategy<Value = IoEvent> {
    let who = (number(), 0..3u32, 0..4u32, 0..IoOp::ALL.len());
    let what = (any::<u16>(), proptest::option::of(number()), number());
    let how = (
        prop_oneof![3 => 1..20_000i32, 1 => any::<i32>()],
        any::<u32>(),
        proptest::option::of(number()),
    );
    (who, what, how).prop_map(
        |((t_ns, file_id, tid, op), (flags, offset, latency_ns), how)| IoEvent {
            t_ns,
            pid: 1,
            tid,
            file_id,
            op: IoOp::ALL[op],
            flags: IoFlags(flags),
            offset,
            length: how.0.unsigned_abs(),
            latency_ns,
            result: how.0,
            device_read_bytes: how.1,
            request: how.2.map(|sector| BlockRequest {
                disk_major: tid,
                disk_minor: file_id,
                sector,
            }),
        },
    )
}

fn analyse(events: &[IoEvent], options: AnalysisOptions) -> TraceAnalysis {
    let mut analyser = TraceAnalyser::new(options);
    for event in events {
        analyser.push(event);
    }
    analyser.finish(&[], &[])
}

fn assert_sound(pattern: &AccessPattern) {
    for share in [
        pattern.contiguous_share,
        pattern.sequential_share,
        pattern.backward_share,
        pattern.reread_share,
    ] {
        assert!((0.0..=1.0).contains(&share), "{pattern:?}");
    }
    assert!(pattern.distinct_bytes <= pattern.bytes && pattern.first_byte <= pattern.last_byte);
    assert!(pattern.seeks >= 1 && pattern.seeks <= pattern.accesses);
    assert!((1..=64).contains(&pattern.interleaved_streams));
}

fn assert_adds_up(file: &FileTrace) {
    let source = file.read_bytes_by_source;
    let parts = source.hit_bytes + source.miss_bytes + source.waited_bytes;
    assert_eq!(source.asked_bytes, file.reads.transfers.bytes);
    assert_eq!(
        source.asked_bytes,
        parts + source.direct_bytes + source.unknown_bytes
    );
    for (direction, slices) in [
        (
            &file.reads,
            file.slices
                .iter()
                .filter_map(|s| s.reads)
                .collect::<Vec<_>>(),
        ),
        (
            &file.writes,
            file.slices.iter().filter_map(|s| s.writes).collect(),
        ),
    ] {
        let transfers = direction.transfers;
        assert_eq!(transfers.calls, slices.iter().map(|s| s.calls).sum::<u64>());
        assert_eq!(transfers.bytes, slices.iter().map(|s| s.bytes).sum::<u64>());
        assert_eq!(
            transfers.errors,
            slices.iter().map(|s| s.errors).sum::<u64>()
        );
        assert_eq!(transfers.calls, transfers.latency_ns.count);
        let (Some(pattern), Some(shape)) = (&direction.pattern, &direction.shape) else {
            assert!(direction.pattern.is_none() && direction.shape.is_none());
            continue;
        };
        assert_sound(pattern);
        assert_eq!(
            pattern.distinct_bytes,
            slices.iter().map(|s| s.new_bytes).sum::<u64>()
        );
        let runs = &shape.run_accesses.quantiles;
        assert_eq!(shape.seek_distance_bytes.quantiles.count, pattern.seeks - 1);
        let gaps =
            shape.forward_gap_bytes.quantiles.count + shape.backward_gap_bytes.quantiles.count;
        assert_eq!(
            (gaps, pattern.seek_bytes.count),
            (runs.count - 1, runs.count - 1)
        );
    }
    let syncs: u64 = file.slices.iter().map(|s| s.syncs).sum();
    assert_eq!(file.syncs.calls, syncs);
}

/// The definitions, word for word, over all accesses at once.
fn assert_same_as_counted(file: &FileTrace, events: &[IoEvent]) {
    let mut reads: Vec<&IoEvent> = events
        .iter()
        .filter(|e| e.op.is_read() && e.file_id == file.file.file_id)
        .collect();
    reads.sort_by_key(|e| e.t_ns);
    let hits = reads
        .iter()
        .filter(|e| e.cache_outcome() == Some(CacheOutcome::Hit))
        .count();
    assert_eq!(
        (file.reads.transfers.calls, file.cache.hits),
        (reads.len() as u64, hits as u64)
    );
    let accesses: Vec<(u64, u64)> = reads
        .iter()
        .filter(|e| e.result > 0)
        .filter_map(|e| Some((e.offset?, e.offset?.saturating_add(e.bytes()))))
        .collect();
    let Some(pattern) = &file.reads.pattern else {
        return assert!(accesses.is_empty());
    };
    let steps = || accesses.windows(2).map(|pair| (pair[0], pair[1]));
    let share = |count: usize| count as f64 / (accesses.len() - 1).max(1) as f64;
    let sequential = steps()
        .filter(|(a, b)| b.0 >= a.1 && b.0 - a.1 <= SEQUENTIAL_WINDOW_BYTES)
        .count();
    assert_eq!(pattern.accesses, accesses.len() as u64);
    assert_eq!(
        pattern.contiguous_share,
        share(steps().filter(|(a, b)| a.1 == b.0).count())
    );
    assert_eq!(pattern.sequential_share, share(sequential));
    assert_eq!(
        pattern.backward_share,
        share(steps().filter(|(a, b)| b.0 < a.0).count())
    );
    assert_eq!(pattern.seeks, (accesses.len() - sequential) as u64);
    assert_eq!(Some(pattern.first_byte), accesses.iter().map(|a| a.0).min());
    assert_eq!(Some(pattern.last_byte), accesses.iter().map(|a| a.1).max());
    let mut sorted = accesses.clone();
    sorted.sort_unstable();
    let (mut distinct, mut to) = (0, 0);
    for (start, end) in sorted {
        distinct += end.saturating_sub(start.max(to));
        to = to.max(end);
    }
    // Beyond 64 stretches whole pages are counted.
    if accesses.len() <= 64 {
        assert_eq!(pattern.distinct_bytes, distinct);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_events(
        events in proptest::collection::vec(event(), 0..200),
        slices_max in 1..10usize,
        slice_ns in number(),
    ) {
        let options = AnalysisOptions { slice_ns, slices_max, ..AnalysisOptions::default() };
        let analysis = analyse(&events, options);
        let at_file = |e: &&IoEvent| e.op.layer() == IoLayer::File;
        let calls = events.iter().filter(at_file).count() as u64;
        prop_assert_eq!(analysis.events, events.len() as u64);
        prop_assert_eq!(analysis.late_events, 0);
        prop_assert_eq!(analysis.reads.calls + analysis.writes.calls + analysis.syncs.calls, calls);
        let by_thread = analysis.threads.iter().map(|t| t.reads.calls + t.writes.calls + t.syncs.calls);
        prop_assert_eq!(by_thread.sum::<u64>(), calls);
        prop_assert_eq!(analysis.roles.iter().map(|r| r.threads).sum::<u64>(), analysis.threads.len() as u64);
        prop_assert_eq!(analysis.files.iter().map(|f| f.reads.transfers.bytes).sum::<u64>(), analysis.reads.bytes);
        for file in &analysis.files {
            prop_assert!(file.slices.len() <= slices_max);
            assert_adds_up(file);
            assert_same_as_counted(file, &events);
        }
        for disk in &analysis.disks {
            let purpose = disk.read_bytes_by_purpose;
            let sum = purpose.file_bytes + purpose.metadata_bytes + purpose.unknown_bytes;
            prop_assert_eq!(sum, disk.reads.transfers.bytes);
        }
    }

    #[test]
    fn bounds_lose_no_call(events in proptest::collection::vec(event(), 0..200)) {
        let options = AnalysisOptions {
            files_max: 1,
            reorder_events: 3,
            exact_values_max: 2,
            ..AnalysisOptions::default()
        };
        let analysis = analyse(&events, options);
        prop_assert!(analysis.files.len() <= 1);
        let calls = analysis.reads.calls + analysis.writes.calls + analysis.syncs.calls;
        let in_files: u64 = analysis
            .files
            .iter()
            .map(|f| f.reads.transfers.calls + f.writes.transfers.calls + f.syncs.calls)
            .sum();
        prop_assert_eq!(in_files + analysis.files_beyond.calls, calls);
    }
}

#[test]
fn nothing_is_nothing() {
    let analysis = analyse(&[], AnalysisOptions::default());
    let slice_ns = AnalysisOptions::default().slice_ns;
    assert_eq!(
        analysis,
        TraceAnalysis {
            slice_ns,
            reuse: analysis.reuse.clone(),
            ..TraceAnalysis::default()
        }
    );
    assert_eq!(analysis.reuse.miss_ratio(4096), None);
}
