use seekscope_run::IoKind;

use super::*;
use crate::files::{Calls, FileName};
use crate::format::TextFormat;
use crate::latencies::{KERNEL_BUCKETS, Latencies};

fn reads(collection: &str, latency_ns: u64) -> FileCalls {
    let mut buckets = [0; KERNEL_BUCKETS];
    buckets[20] = 1;
    FileCalls {
        name: FileName::of_collection(collection),
        kind: IoKind::Read,
        calls: Calls {
            latencies: Latencies::new(buckets, latency_ns),
            ..Calls::default()
        },
    }
}

#[test]
fn many_files_of_many_servers_stay_within_the_bound() {
    let mut registry = Registry::new(400, "1.2.3");
    for second in 0..20u64 {
        for server in ["a:1", "b:1", "c:1"] {
            let files = (0..500).map(|i| reads(&format!("db.c{i}"), 1_000 * (i + 1)));
            let now_ns = second * 60_000_000_000;
            registry.count(server, now_ns, files.collect::<Vec<_>>());
            let page = registry.page(OwnUse::default());
            assert!(page.series_max() <= 400, "{}", page.series_max());
        }
    }
    let text = registry
        .page(OwnUse::default())
        .text(TextFormat::OpenMetrics);
    assert!(
        text.contains("collection=\"db.c499\""),
        "the one waited for longest"
    );
    assert!(text.contains("collection=\"other\""));
    assert!(text.contains("seekscope_exporter_build_info{version=\"1.2.3\"} 1\n"));
}

/// What is kept free for findings is given up before the sum of all files; where even that is too much, it is said.
#[test]
fn files_are_not_left_out_without_a_word() {
    let left_out = |text: &str| text.contains("what=\"figures of files are left out\"");
    for series_max in 60..200 {
        let mut registry = Registry::new(series_max, "1");
        for second in 0..3 {
            registry.count("a:1", second, [reads("db.c", 1_000), reads("db.d", 1_000)]);
        }
        let page = registry.page(OwnUse::default());
        assert!(
            page.series_max() <= series_max,
            "{series_max}: {}",
            page.series_max()
        );
        let text = page.text(TextFormat::Prometheus);
        let has_files = text.contains("collection=\"other\"");
        assert!(has_files != left_out(&text), "{series_max}: {text}");
    }
}

#[test]
fn so_many_servers_stay_within_the_bound_that_their_own_figures_do_not_fit() {
    let mut registry = Registry::new(300, "1");
    let sample = |source: &str, name: &str| CounterSample {
        t_ns: 1,
        source: source.into(),
        name: name.into(),
        value: 1.0,
    };
    let operations = ["insert", "query", "update", "delete", "getmore", "command"];
    let status = operations.map(|name| sample("serverStatus", &format!("opcounters.{name}")));
    let lacks = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")];
    let is_cut = |text: &str| text.contains("figures of the server are left out");
    for nth in 0..300 {
        let server = format!("s{nth:03}:1");
        registry.read(&server, &status);
        registry.count(&server, nth, [reads("db.c", 1_000), reads("db.d", 1_000)]);
        // What becomes known after its files were counted.
        registry.server(&server).limit(lacks);
        registry.server(&server).reading_s = Some(0.1);
        let page = registry.page(OwnUse {
            memory_bytes: Some(1),
            ..OwnUse::default()
        });
        let series = page.series();
        let text = page.text(TextFormat::Prometheus);
        assert!(series <= 300, "{series} of {nth}\n{text}");
        assert!(text.contains(&format!("seekscope_exporter_series {series}\n")));
        match nth {
            0 => assert!(
                text.contains("collection=\"db.c\"") && !is_cut(&text),
                "{text}"
            ),
            50..100 => {
                assert_eq!(text.matches("seekscope_up{").count() as u64, nth + 1);
                assert!(is_cut(&text), "{text}");
            }
            _ => {}
        }
    }
}

#[test]
fn the_layout_of_a_file_that_is_gone_is_told_no_longer() {
    let layout = |collection: &str| FileLayout {
        name: FileName::of_collection(collection),
        order_score: Some(0.0077),
        scan_now_s: Some(90.0),
        scan_restored_s: Some(9.0),
        file_bytes: 33_054_720,
        free_bytes: 0,
        leaf_pages: 1_822,
    };
    let mut registry = Registry::new(1_000, "1");
    let both = vec![layout("shop.orders"), layout("shop.carts")];
    registry.walked("a:1", 17.0, both);
    let shown = |registry: &mut Registry, collection: &str| {
        let text = registry
            .page(OwnUse::default())
            .text(TextFormat::Prometheus);
        let walked = "seekscope_layout_walk_timestamp_seconds{server=\"a:1\"} 17\n";
        assert!(text.contains(walked), "{text}");
        let mut lines = text
            .lines()
            .filter(|line| line.starts_with("seekscope_layout_"));
        lines.any(|line| line.contains(collection))
    };
    assert!(shown(&mut registry, "shop.orders"));
    registry.replace_layout("a:1", vec![layout("shop.carts")]);
    assert!(!shown(&mut registry, "shop.orders"));
    assert!(shown(&mut registry, "shop.carts"));
}

/// The programs of the first server make the host's calls slower, and those of others add nothing to that.
#[test]
fn by_how_much_calls_take_longer_is_told_once_and_not_where_it_is_noise() {
    let mut registry = Registry::new(1_000, "1");
    let mut text_with = |server: &str, is_tracing: bool, call_delay_s: f64| {
        let figures = registry.server(server);
        figures.is_tracing = is_tracing;
        figures.traced(TraceUse {
            call_delay_s,
            lost_calls: 0,
        });
        registry
            .page(OwnUse::default())
            .text(TextFormat::Prometheus)
    };
    for (server, noise_s) in [("a:1", 0.0), ("b:1", 1.6e-10), ("c:1", 4.5e-9)] {
        let text = text_with(server, true, noise_s);
        assert!(!text.contains("call_delay"), "{text}");
    }
    let told = "seekscope_exporter_call_delay_seconds 0.000000045\n";
    assert!(text_with("b:1", true, 4.5e-8).contains(told));
    // It was attached anew while another was counted.
    let text = text_with("b:1", false, 2e-9);
    assert!(text.contains(told), "{text}");
    assert!(text_with("a:1", false, 0.0).contains(told));
    assert!(!text_with("c:1", false, 0.0).contains("call_delay"));
}

#[test]
fn a_server_that_is_away_keeps_its_counters() {
    let mut registry = Registry::new(400, "1");
    let server = registry.server("a:1");
    server.is_up = true;
    for lost_calls in [1, 4] {
        server.traced(TraceUse {
            call_delay_s: 5e-8,
            lost_calls,
        });
    }
    let long = format!("x{}", "y".repeat(500));
    server.limit([(long.as_str(), "a"), ("x", "b"), ("x", long.as_str())]);
    server.lose();
    let text = registry
        .page(OwnUse::default())
        .text(TextFormat::Prometheus);
    assert!(text.contains("seekscope_up{server=\"a:1\"} 0\n"), "{text}");
    assert!(text.contains("seekscope_exporter_lost_calls_total{server=\"a:1\"} 3\n"));
    assert_eq!(text.matches("seekscope_exporter_limitation{").count(), 2);
    registry.forget("a:1");
    assert!(
        !registry
            .page(OwnUse::default())
            .text(TextFormat::Prometheus)
            .contains("a:1")
    );
}
