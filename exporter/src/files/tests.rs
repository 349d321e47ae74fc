use proptest::prelude::*;

use super::*;
use crate::format::TextFormat;
use crate::latencies::KERNEL_BUCKETS;

const MINUTE_NS: u64 = 60_000_000_000;
const MS: u64 = 1_000_000;

fn calls(latency_ns: u64) -> Calls {
    let mut buckets = [0; KERNEL_BUCKETS];
    buckets[latency_ns.max(1).ilog2() as usize] = 1;
    Calls {
        bytes: 4096,
        latencies: Latencies::new(buckets, latency_ns),
        ..Calls::default()
    }
}

fn reads(collection: &str, latency_ns: u64) -> FileCalls {
    FileCalls {
        name: FileName::of_collection(collection),
        kind: IoKind::Read,
        calls: calls(latency_ns),
    }
}

fn text(files: &Files) -> String {
    let mut page = Page::default();
    files.add_to(&mut page, "a:1");
    page.text(TextFormat::Prometheus)
}

/// Returns the bytes read of a collection, if it has series of its own.
fn bytes(files: &Files, collection: &str) -> Option<u64> {
    bytes_of(files, collection, "read")
}

/// Returns the bytes that this kind of call transferred, if there are series of it.
fn bytes_of(files: &Files, collection: &str, op: &str) -> Option<u64> {
    let text = text(files);
    let start = format!("collection=\"{collection}\",index=\"\",op=\"{op}\"}} ");
    let mut lines = text
        .lines()
        .filter(|line| line.starts_with("seekscope_file_bytes_total"));
    lines.find_map(|line| line.split_once(&start)?.1.parse().ok())
}

/// Returns the series of a file of which only reads were seen.
fn series_of_one() -> usize {
    let mut files = Files::default();
    files.add(0, [reads("a.x", 1)], usize::MAX);
    files.series() / 2
}

#[test]
fn calls_are_below_the_first_bound_that_is_greater() {
    let mut files = Files::default();
    files.add(0, [reads("a.x", 1)], usize::MAX);
    // 2^14 ns is the first bound: calls of 1 and 16,383 ns are below it, one of 16,384 ns is not.
    files.add(1, [reads("a.x", 16_383), reads("a.x", 16_384)], usize::MAX);
    let text = text(&files);
    assert!(text.contains("collection=\"a.x\",index=\"\",op=\"read\",le=\"1.6384e-05\"} 2\n"));
    assert!(text.contains("collection=\"a.x\",index=\"\",op=\"read\",le=\"6.5536e-05\"} 3\n"));
}

#[test]
fn the_largest_have_their_own_series_and_the_rest_is_summed() {
    let mut files = Files::default();
    let room = 3 * series_of_one();
    files.add(0, [reads("a.x", 9), reads("a.y", 7), reads("a.z", 5)], room);
    assert_eq!(bytes(&files, "a.x"), Some(0), "begins at 0");
    assert_eq!(bytes(&files, "a.z"), None);
    assert_eq!(bytes(&files, OTHERS), Some(0), "as well");
    files.add(1, [reads("a.x", 9), reads("a.z", 5)], room);
    assert_eq!(
        bytes(&files, "a.x"),
        Some(2 * 4096),
        "with that of the beginning"
    );
    assert_eq!(bytes(&files, OTHERS), Some(2 * 4096));
    assert_eq!(files.among_others(), 1);
}

#[test]
fn a_kind_of_call_begins_at_0_and_loses_none() {
    let writes = |latency_ns| FileCalls {
        kind: IoKind::Write,
        ..reads("a.x", latency_ns)
    };
    let mut files = Files::default();
    files.add(0, [reads("a.x", 9)], 1_000);
    files.add(1, [reads("a.x", 9)], 1_000);
    assert_eq!(bytes_of(&files, "a.x", "write"), None);
    files.add(2, [writes(9)], 1_000);
    assert_eq!(bytes_of(&files, "a.x", "write"), Some(0));
    assert_eq!(bytes_of(&files, OTHERS, "write"), Some(0));
    files.add(3, [writes(9)], 1_000);
    assert_eq!(bytes_of(&files, "a.x", "write"), Some(2 * 4096));
    assert_eq!(bytes_of(&files, OTHERS, "write"), Some(0));
    assert_eq!(bytes_of(&files, "a.x", "read"), Some(2 * 4096));
}

#[test]
fn what_is_shown_does_not_flap() {
    let mut files = Files::default();
    let room = 2 * series_of_one();
    files.add(0, [reads("a.x", 1_000 * MS)], room);
    // A little ahead is not enough, and neither is twice as much at once.
    files.add(MINUTE_NS, [reads("a.y", 5_000 * MS)], room);
    assert!(bytes(&files, "a.x").is_some() && bytes(&files, "a.y").is_none());
    files.add(
        11 * MINUTE_NS,
        [reads("a.x", 4_000 * MS), reads("a.y", 2_000 * MS)],
        room,
    );
    assert!(bytes(&files, "a.x").is_some() && bytes(&files, "a.y").is_none());
    files.add(12 * MINUTE_NS, [reads("a.y", 9_000 * MS)], room);
    assert!(bytes(&files, "a.x").is_none() && bytes(&files, "a.y").is_some());
    assert!(files.series() <= room);
}

/// Returns those of the collections that have series of their own.
fn shown<'a>(files: &Files, collections: &[&'a str]) -> Vec<&'a str> {
    let collections = collections.iter().copied();
    collections
        .filter(|collection| bytes(files, collection).is_some())
        .collect()
}

/// Reproduces a server after a load: each checkpoint writes a little for the server itself.
#[test]
fn what_was_waited_for_keeps_its_place_while_the_server_is_idle() {
    let mut files = Files::default();
    let room = 3 * series_of_one();
    let (orders, carts) = ("shop.orders", "shop.carts");
    files.add(0, [reads(orders, 14 * MS), reads(carts, 2 * MS)], room);
    let of_server = ["config.system.sessions", "admin.system.version", ""];
    for minute in 1..50 {
        let idle = of_server.map(|name| reads(name, MS / 2));
        files.add(minute * MINUTE_NS, idle, room);
        assert_eq!(shown(&files, &[orders, carts]), [orders, carts], "{minute}");
    }
    assert_eq!(shown(&files, &of_server), [""; 0]);
    // One that is hardly waited for comes in after the others alone.
    files.add(50 * MINUTE_NS, [reads("shop.rare", MS)], room);
    let users = [orders, carts, "shop.rare", "shop.new"];
    assert_eq!(shown(&files, &users), [orders, carts]);
    // One that is dropped or out of use does not keep its place against one that is waited for.
    files.add(51 * MINUTE_NS, [reads("shop.new", 12 * MS)], room);
    assert_eq!(shown(&files, &users), [orders, "shop.new"]);
}

#[test]
fn files_of_users_come_before_those_of_the_server_which_are_hardly_waited_for() {
    let mut files = Files::default();
    let room = 3 * series_of_one();
    let (sessions, oplog) = ("config.system.sessions", "local.oplog.rs");
    files.add(0, [reads(sessions, 6 * MS), reads(oplog, 900 * MS)], room);
    assert_eq!(shown(&files, &[sessions, oplog]), [sessions, oplog]);
    // At once.
    files.add(1, [reads("shop.orders", MS)], room);
    let all = ["shop.orders", sessions, oplog];
    assert_eq!(shown(&files, &all), ["shop.orders", oplog]);
    // The server's own come in again when they are waited for much longer.
    files.add(2, [reads(sessions, 120 * MS)], room);
    assert_eq!(shown(&files, &all), [sessions, oplog]);
    let orders = reads("shop.orders", 120 * MS);
    files.add(11 * MINUTE_NS, [orders, reads(oplog, MS)], room);
    assert_eq!(shown(&files, &all), ["shop.orders", oplog]);
    for (minute, waited_ns, expected) in [
        (22, 100 * MS, ["shop.orders", oplog]),
        (23, 200 * MS, [sessions, oplog]),
    ] {
        let counted = [reads(sessions, waited_ns), reads(oplog, MS)];
        files.add(minute * MINUTE_NS, counted, room);
        assert_eq!(shown(&files, &all), expected, "{minute}");
    }
}

#[test]
fn the_journal_counts_as_what_users_wait_for() {
    let name = |role: FileRole, collection: &str| FileName {
        role: role.name(),
        ..FileName::of_collection(collection)
    };
    assert!(!name(FileRole::Journal, "").is_internal());
    assert!(!name(FileRole::Index, "locals.orders").is_internal());
    assert!(name(FileRole::HistoryStore, "").is_internal());
    assert!(name(FileRole::Collection, "").is_internal());
    assert!(name(FileRole::Index, "config.system.sessions").is_internal());
}

#[test]
fn a_file_takes_room_for_the_kinds_of_calls_that_it_had() {
    let mut files = Files::default();
    let mut series = 0;
    let kinds = [IoKind::Read, IoKind::Write, IoKind::Sync];
    for (kind, more) in kinds.into_iter().zip([20, 17, 16]) {
        let call = FileCalls {
            kind,
            ..reads("a.x", 1)
        };
        files.add(0, [call], usize::MAX);
        series += 2 * more;
        assert_eq!(files.series(), series, "its own, and those of all others");
    }
}

#[test]
fn a_file_without_calls_ends() {
    let mut files = Files::default();
    files.add(0, [reads("a.gone", 1_000)], 1_000);
    files.add(59 * MINUTE_NS, [reads("a.x", 1_000)], 1_000);
    assert!(bytes(&files, "a.gone").is_some());
    files.add(60 * MINUTE_NS, [reads("a.x", 1_000)], 1_000);
    assert!(bytes(&files, "a.gone").is_none() && bytes(&files, "a.x").is_some());
    // The file is there after all, and goes on where it was.
    files.add(61 * MINUTE_NS, [reads("a.gone", 1_000)], 1_000);
    files.add(62 * MINUTE_NS, [reads("a.gone", 1_000)], 1_000);
    assert_eq!(bytes(&files, "a.gone"), Some(3 * 4096));
    files.add(2_000 * MINUTE_NS, [], 1_000);
    files.add(4_000 * MINUTE_NS, [], 1_000);
    assert_eq!(files.waiting.len(), 0, "nothing grows for ever");
}

#[test]
fn room_may_shrink() {
    let mut files = Files::default();
    let all = ["a.x", "a.y", "a.z"].map(|name| reads(name, 1_000));
    files.add(0, all.clone(), 1_000);
    files.add(MINUTE_NS, all, 2 * series_of_one());
    assert!(files.series() <= 2 * series_of_one());
}

proptest! {
    /// Whatever is read in whatever order: no counter goes back, also of a file that had no series for less than an
    /// hour, and the bound holds.
    #[test]
    fn counters_never_go_back(
        readings in prop::collection::vec(
            (0u64..20, prop::collection::vec((0usize..12, 0usize..3, 1u64..1 << 36), 0..12)),
            1..40,
        ),
        room in 60usize..250,
    ) {
        let kinds = [IoKind::Read, IoKind::Write, IoKind::Sync];
        let mut files = Files::default();
        let mut now_ns = 0;
        let mut before: HashMap<String, (f64, u64)> = HashMap::new();
        for (minutes, counted) in readings {
            now_ns += minutes * MINUTE_NS;
            let counted = counted.into_iter().map(|(file, kind, latency_ns)| {
                FileCalls {
                    kind: kinds[kind],
                    ..reads(&format!("a.c{file}"), latency_ns)
                }
            });
            files.add(now_ns, counted, room);
            prop_assert!(files.series() <= room, "{} series", files.series());
            let page = text(&files);
            let series = page.lines().filter(|line| !line.starts_with('#'));
            let now: HashMap<String, f64> = series
                .map(|line| {
                    let (name, value) = line.rsplit_once(' ').unwrap();
                    (name.to_string(), value.parse().unwrap())
                })
                .collect();
            for (name, value) in now {
                let last = before.insert(name.clone(), (value, now_ns));
                let must_go_on = last.filter(|(_, seen_ns)| now_ns - seen_ns < IDLE_MAX_NS);
                let least = must_go_on.map_or(0.0, |(value, _)| value);
                prop_assert!(value >= least, "{name}: {value} after {least}");
            }
        }
    }
}
