use ratatui::Terminal;
use ratatui::backend::TestBackend;
use seekscope_run::{CounterSample, Limitation};

use super::super::LiveWindow;
use super::super::tests::{START_NS, window};
use super::super::vitals::VitalsWindow;
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn sample(t_s: u64, source: &str, name: &str, value: f64) -> CounterSample {
    CounterSample {
        t_ns: START_NS + t_s * SECOND_NS,
        source: source.into(),
        name: name.into(),
        value,
    }
}

/// A server with 900 queries a second, of 0.2 ms each, and a disk with 100 reads a second, during a
/// checkpoint.
fn vitals() -> Vitals {
    let mut window = VitalsWindow::default();
    for t_s in [9, 10] {
        let counter = |per_s: f64| per_s * t_s as f64;
        let server = |name, value| sample(t_s, "serverStatus", name, value);
        let disk = |name, value| sample(t_s, "diskstats", name, value);
        window.push(vec![
            server("opcounters.query", counter(900.0)),
            server("opcounters.insert", counter(12.0)),
            server("opLatencies.reads.ops", counter(900.0)),
            server("opLatencies.reads.latency", counter(180_000.0)),
            server("wiredTiger.cache.maximum bytes configured", 1e9),
            server("wiredTiger.cache.bytes currently in the cache", 8e8),
            server("wiredTiger.cache.tracked dirty bytes in the cache", 4.1e7),
            server(
                "wiredTiger.transaction.transaction checkpoint currently running",
                1.0,
            ),
            disk("reads", counter(100.0)),
            disk("read_bytes", counter(4.7e6)),
            disk("read_ms", counter(400.0)),
            disk("writes", counter(0.0)),
            disk("busy_ms", counter(250.0)),
            disk("queue_ms", counter(400.0)),
            sample(t_s, "process", "cpu_ns", counter(1.5e9)),
        ]);
    }
    window.vitals(START_NS + 12 * SECOND_NS)
}

fn frame() -> TopFrame {
    TopFrame {
        subject: "mongod at 127.0.0.1:27017".into(),
        unix_ms: 1_800_000_000_000,
        elapsed_s: 10.0,
        disk: Some("vda".into()),
        vitals: vitals(),
        members: Vec::new(),
        files: Some(window().snapshot(START_NS + 10 * SECOND_NS, None)),
        limitations: Vec::new(),
    }
}

fn screen(shown: &TopFrame, controls: &TopControls, glyphs: Glyphs, size: (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let drawn = terminal.draw(|frame| draw(frame, shown, controls, glyphs));
    drawn.unwrap();
    terminal.backend().to_string()
}

#[test]
fn eighty_columns_without_unicode_show_everything() {
    let text = screen(&frame(), &TopControls::default(), Glyphs::Ascii, (80, 24));
    for part in [
        "912/s: query 900, insert 12",
        "reads 200 µs, writes -",
        "80.0 % of",
        "4.1 % dirty",
        "CHECKPOINT RUNNING for 3 s",
        "vda: 100 reads/s 4.70 MB/s 4.00 ms each",
        "busy 25.0 %, queue depth 0.40",
        "server 1.50 CPUs",
        "none lost",
        "wait ms/s",
        "in cache",
        "pattern",
        "random",
        "by time waited",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn the_order_is_the_readers() {
    let shown = frame();
    let first = |order| {
        let text = plain_text(&shown, order, 120, 1);
        text.lines().last().unwrap().to_string()
    };
    // 100 scattered reads a second of one file; 10 writes and as many syncs of the other.
    assert!(
        first(Order::Bytes).contains("collection-7.wt"),
        "{}",
        first(Order::Bytes)
    );
    assert!(first(Order::Calls).contains("collection-7.wt"));
    let mut controls = TopControls::default();
    for expected in [Order::Bytes, Order::Calls, Order::Waited] {
        controls.obey(TopKey::NextOrder, 2);
        assert_eq!(controls.order, expected);
    }
    controls.obey(TopKey::Down, 2);
    controls.obey(TopKey::Down, 2);
    assert_eq!(controls.skipped, 1, "the last file stays in sight");
    let text = screen(&shown, &controls, Glyphs::Unicode, (120, 24));
    assert!(
        text.contains("evil") && !text.contains("collection-7"),
        "{text}"
    );
}

#[test]
fn text_is_the_same_without_a_terminal_and_names_cannot_give_orders() {
    let text = plain_text(&frame(), Order::Waited, 200, 20);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.contains("\\u{1b}[2Jevil.wt"), "{text}");
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    let one = plain_text(&frame(), Order::Waited, 200, 1);
    assert_eq!(one.lines().count() + 1, text.lines().count());
}

#[test]
fn what_is_missing_is_said_and_not_zero() {
    let nothing = TopFrame {
        vitals: Vitals::default(),
        files: None,
        limitations: vec![Limitation {
            what: "files are not shown".into(),
            why: "no CAP_BPF".into(),
            remedy: "Run it as root".into(),
        }],
        ..frame()
    };
    let text = plain_text(&nothing, Order::Waited, 80, 20);
    for part in [
        "! files are not shown: no CAP_BPF. Run it as root",
        "its process is not visible from here",
        "vda: no counters yet",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("ops "), "nobody was asked:\n{text}");
    let json = json(&nothing, Order::Waited, 20);
    assert!(
        json["files"].is_null() && json["cache"]["used_share"].is_null(),
        "{json}"
    );
}

fn json(shown: &TopFrame, order: Order, files_max: u16) -> serde_json::Value {
    serde_json::to_value(TopOutput::of(shown, order, files_max)).unwrap()
}

#[test]
fn programs_get_the_same_figures() {
    let json = json(&frame(), Order::Calls, 1);
    assert_eq!(json["operations"]["per_s"]["query"], 900.0);
    assert_eq!(json["files"].as_array().unwrap().len(), 1);
    assert_eq!(json["files"][0]["path"], "/data/collection-7.wt");
    assert_eq!(json["files"][0]["pattern"], "random");
    assert_eq!(json["trace"]["lost"], 0);
    assert_eq!(json["checkpoint"]["running"], true);
}

/// Two members on one disk, and one elsewhere that answered 3 s ago.
fn several() -> TopFrame {
    let member = |label: &str, is_here| MemberVitals {
        label: label.into(),
        is_here,
        disk: is_here.then(|| "vda".into()),
        vitals: vitals(),
    };
    let mut elsewhere = member("shard1@b:1", false);
    elsewhere.vitals.operations.answered_s_ago = Some(3.0);
    TopFrame {
        vitals: Vitals {
            disk: vitals().disk,
            ..Vitals::default()
        },
        members: vec![
            member("shard0", true),
            member("shard\u{1b}1", true),
            elsewhere,
        ],
        ..frame()
    }
}

#[test]
fn several_members_have_a_line_each() {
    let text = plain_text(&several(), Order::Waited, 100, 20);
    let line = |of: &str| {
        let line = text.lines().find(|line| line.starts_with(of));
        line.unwrap_or_else(|| panic!("{of} in\n{text}"))
    };
    for part in ["912", "200 µs", "80.0 %", "4.1 %", "1.50", "for 3 s"] {
        assert!(line("shard0").contains(part), "{part} in\n{text}");
    }
    line("shard\\u{1b}1");
    assert!(line("shard1@b:1 (elsewhere)").contains("SILENT"), "{text}");
    let heads: Vec<&str> = text.lines().filter(|l| l.starts_with("disk ")).collect();
    assert_eq!(heads.len(), 1, "they share a disk:\n{text}");
    assert!(!text.contains("server "), "{text}");
    let narrow = screen(&several(), &TopControls::default(), Glyphs::Ascii, (80, 24));
    assert!(
        narrow.contains("dirty") && narrow.contains("wait ms/s"),
        "{narrow}"
    );
    let many = TopFrame {
        members: vec![several().members[0].clone(); 11],
        ..several()
    };
    let many = plain_text(&many, Order::Waited, 100, 20);
    assert!(many.contains("and 3 more members"), "{many}");
}

#[test]
fn programs_get_each_member_and_no_sum() {
    let json = json(&several(), Order::Calls, 1);
    let members = json["members"].as_array().unwrap();
    assert_eq!(members.len(), 3);
    assert_eq!(members[0]["member"], "shard0");
    assert_eq!(members[0]["cache"]["used_share"], 0.8);
    assert_eq!(members[0]["disk"]["name"], "vda");
    assert_eq!(members[2]["is_here"], false);
    assert!(json["cache"]["used_share"].is_null(), "{json}");
    let one = self::json(&frame(), Order::Calls, 1);
    assert_eq!(one.get("members"), None);
    assert_eq!(one["files"][0].get("member"), None);
}

#[test]
fn any_size_of_terminal_will_do() {
    let idle = TopFrame {
        files: Some(LiveWindow::new(0).snapshot(0, None)),
        ..frame()
    };
    for size in [(1, 1), (3, 2), (10, 5), (40, 10), (300, 100)] {
        let mut controls = TopControls::default();
        for _ in 0..2 {
            screen(&frame(), &controls, Glyphs::Unicode, size);
            screen(&idle, &controls, Glyphs::Ascii, size);
            controls.obey(TopKey::Help, 0);
        }
    }
    assert!(plain_text(&idle, Order::Bytes, 80, 5).contains("No file was read"));
}
