//! `seekscope exporter`: what it does whatever scrapers and servers do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::exporter_process::{Exporter, Metrics};
use crate::prometheus::Prometheus;
use crate::support::{
    Bench, ForeignServer, as_nobody, assert_fails, load_documents, prometheus_tool, python,
    shared_machine, stderr, until, wait,
};

const PYTHON: &str = r"
import sys
from prometheus_client.parser import text_string_to_metric_families as prometheus
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
parse = openmetrics if sys.argv[1].endswith('.openmetrics') else prometheus
names = set()
for family in parse(open(sys.argv[1]).read()):
    for sample in family.samples:
        if sample.name == 'seekscope_file_bytes_total':
            names.add(sample.labels['collection'])
print('\n'.join(sorted(names)))
";

/// A namespace that would end a label, a line or a page.
const HOSTILE: &str = "shop.a\"} 1\n# \\<b>";

#[test]
fn both_formats_are_read_by_prometheus_own_parsers() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start_with_checkpoints(&bench.path("data"), "64MB", 1);
    let collections = ["shop.orders", HOSTILE].map(|name| name.parse().unwrap());
    for collection in &collections {
        load_documents(&server.uri, collection, 500);
    }
    let exporter = Exporter::start(&bench, &[&server.uri, "--every", "1s", "--no-layout"]);
    exporter.until(|m| m.of("seekscope_exporter_tracing", &[]) == Some(1.0));
    for collection in &collections {
        load_documents(&server.uri, collection, 5_000);
    }
    let is_shown = |m: &Metrics, name: &str| {
        m.of(
            "seekscope_file_bytes_total",
            &[name, "role=\"collection\"", "op=\"write\""],
        )
        .is_some()
    };
    exporter.until(|m| is_shown(m, "collection=\"shop.orders\"") && is_shown(m, "shop.a"));
    for (accept, ending, kind) in [
        (
            "application/openmetrics-text",
            "openmetrics",
            "application/openmetrics-text",
        ),
        ("text/plain", "text", "text/plain; version=0.0.4"),
    ] {
        let answer = exporter.get("/metrics", accept);
        assert!(answer.head.contains(kind), "{}", answer.head);
        let file = bench.path(&format!("metrics.{ending}"));
        std::fs::write(&file, &answer.body).unwrap();
        let names = python(PYTHON, &[&file]);
        assert!(names.contains("shop.orders"), "{names}");
        assert!(names.contains(HOSTILE), "{names}");
    }
    exporter.end();
}

#[test]
fn prometheus_itself_scrapes_it() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start_with_checkpoints(&bench.path("data"), "64MB", 1);
    let collection = HOSTILE.parse().unwrap();
    load_documents(&server.uri, &collection, 500);
    let exporter = Exporter::start(&bench, &[&server.uri, "--every", "1s"]);
    exporter.until(|m| m.of("seekscope_exporter_tracing", &[]) == Some(1.0));
    let prometheus = Prometheus::scraping(&bench, exporter.address, "");
    load_documents(&server.uri, &collection, 5_000);
    until(|| prometheus.query("up") == Some(vec![1.0]));
    until(|| {
        let written =
            prometheus.value(r#"sum(seekscope_file_latency_seconds_bucket{op="write",le="+Inf"})"#);
        let calls = prometheus.value(r#"sum(seekscope_file_latency_seconds_count{op="write"})"#);
        written.is_some_and(|written| written > 0.0) && written == calls
    });
    let more = "scrape_samples_scraped - on(instance) seekscope_exporter_series";
    assert_eq!(
        prometheus.value(more),
        Some(0.0),
        "it says how many there are"
    );
    let metrics = exporter.get("/metrics", "").body;
    let mut check = Command::new(prometheus_tool("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check
        .stdin
        .take()
        .unwrap()
        .write_all(metrics.as_bytes())
        .unwrap();
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "nothing to complain of");
    drop(prometheus);
    exporter.end();
}

/// One Prometheus takes native histograms, by protobuf, and another the text as ever. Of the same calls both say the same,
/// as far as docs/monitoring.md promises it.
#[test]
fn native_histograms_say_what_the_classic_ones_do() {
    const WRITES: [&str; 3] = [
        "role=\"collection\"",
        "collection=\"shop.orders\"",
        "op=\"write\"",
    ];
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start_with_checkpoints(&bench.path("data"), "64MB", 1);
    let collection = "shop.orders".parse().unwrap();
    load_documents(&server.uri, &collection, 500);
    let exporter = Exporter::start(&bench, &[&server.uri, "--every", "2s", "--no-layout"]);
    exporter.until(|m| m.of("seekscope_exporter_tracing", &[]) == Some(1.0));
    let classic = Prometheus::scraping(&bench, exporter.address, "");
    let native = Prometheus::with_native_histograms(&bench, exporter.address);
    until(|| [&classic, &native].map(|it| it.value("up")) == [Some(1.0); 2]);
    let metrics = exporter.metrics();
    let earlier = metrics.of("seekscope_file_latency_seconds_count", &WRITES);
    load_documents(&server.uri, &collection, 5_000);
    let [histogram, buckets, count, sum] = ["", "_bucket", "_count", "_sum"].map(|part| {
        let labels = WRITES.join(",");
        format!("seekscope_file_latency_seconds{part}{{{labels}}}")
    });
    let calls = || native.value(&format!("histogram_count({histogram})"));
    let quantiles = || {
        [0.51, 0.93, 0.99].map(|q| {
            let of = |it: &Prometheus, what: &str| {
                it.value(&format!("histogram_quantile({q},rate({what}[1m]))"))
            };
            (of(&native, &histogram), of(&classic, &buckets))
        })
    };
    let found = std::cell::RefCell::new(None);
    // Both have seen something of the load, the same, and nothing has come meanwhile.
    until(|| {
        let before = calls();
        let sums = (
            native.value(&format!("histogram_sum({histogram})")),
            classic.value(&sum),
        );
        found.replace(Some((sums, quantiles())));
        before > Some(earlier.unwrap_or(0.0)) && [calls(), classic.value(&count)] == [before; 2]
    });
    let ((native_sum, classic_sum), quantiles) = found.into_inner().unwrap();
    assert_eq!(native_sum, classic_sum, "the sum is exact");
    for (native, classic) in quantiles {
        let (native, classic) = (native.unwrap(), classic.unwrap());
        let bounds = (0..11).map(|i| f64::from(1 << 14) * f64::from(1 << (2 * i)) / 1e9);
        let (below, above): (Vec<f64>, Vec<f64>) = bounds.partition(|bound| *bound < classic);
        let (lower, upper) = (below.last().unwrap_or(&0.0), above.first().unwrap());
        assert!(
            (lower * 0.93..=*upper).contains(&native),
            "{native} is not in the bucket of {classic}"
        );
    }
    let of_all = "seekscope_file_latency_seconds";
    assert_eq!(classic.query(of_all), Some(vec![]), "it takes the text");
    assert_eq!(native.query(&buckets), Some(vec![]), "it takes protobuf");
    let more = format!(
        "scrape_samples_scraped - on(instance) seekscope_exporter_series - on(instance) count by (instance)({of_all}) * -13"
    );
    assert_eq!(native.value(&more), Some(0.0), "a histogram is one series");
    drop((classic, native));
    exporter.end();
}

#[test]
fn scrapes_are_answered_whatever_others_do() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let exporter = Exporter::start(&bench, &[&server.uri, "--every", "1s", "--no-trace"]);
    exporter.until(|m| m.of("seekscope_up", &[]) == Some(1.0));
    for (head, status) in [
        (
            "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            200,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            200,
        ),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", 200),
        (
            "GET /other HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            404,
        ),
        (
            "POST /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            405,
        ),
        ("\u{1}\u{2} nonsense\r\n\r\n", 400),
    ] {
        let answer = exporter.request(head).unwrap();
        assert_eq!(answer.status, status, "{head}: {}", answer.head);
    }
    let endless = format!("GET /{} HTTP/1.1\r\n", "x".repeat(1 << 20));
    // Refused, or cut off while it is still being sent.
    let answer = exporter.request(&endless);
    assert!(answer.is_err() || answer.is_ok_and(|a| a.status >= 400 || a.status == 0));
    let many = "a/b;q=1,".repeat(1_000);
    assert!(exporter.get("/metrics", &many).head.contains("text/plain"));
    let hanging: Vec<TcpStream> = (0..1_000)
        .filter_map(|i| {
            let mut stream = TcpStream::connect(exporter.address).ok()?;
            // Some have begun a request and go no further.
            let begun = if i % 2 == 0 { "GET /metr" } else { "" };
            stream.write_all(begun.as_bytes()).ok();
            Some(stream)
        })
        .collect();
    assert!(hanging.len() > 100);
    // They are held for some seconds, and then closed.
    until(|| {
        let scrape = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        exporter
            .request(scrape)
            .is_ok_and(|answer| answer.status == 200)
    });
    drop(hanging);
    exporter.end();
}

#[test]
fn it_leaves_nothing_and_tells_no_password() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let folder = bench.path("textfiles");
    std::fs::create_dir(&folder).unwrap();
    let uris = bench.path("uris");
    let refused = server.uri.replace("mongodb://", "mongodb://user:geheim@");
    let away = "mongodb://user:geheim@127.0.0.1:1/";
    std::fs::write(
        &uris,
        format!("# servers\n{}\n\n{away}\n{refused}\n", server.uri),
    )
    .unwrap();
    let exporter = Exporter::start(
        &bench,
        &[
            "--uri-file",
            uris.to_str().unwrap(),
            "--textfile",
            folder.to_str().unwrap(),
            "--every",
            "1s",
        ],
    );
    let metrics = exporter.until(|m| {
        m.of("seekscope_exporter_tracing", &["server=\"127.0.0.1:1\""]) == Some(0.0)
            && m.of("seekscope_exporter_last_reading_timestamp_seconds", &[])
                .is_some()
    });
    assert_eq!(
        metrics.of("seekscope_up", &["server=\"127.0.0.1:1\""]),
        Some(0.0)
    );
    assert!(bench.loaded_programs() > 0);
    let shown = [exporter.get("/metrics", ""), exporter.get("/", "")];
    assert!(shown.iter().all(|answer| !answer.body.contains("geheim")));
    let textfile = folder.join("seekscope.prom");
    until(|| std::fs::read_to_string(&textfile).is_ok_and(|text| text.contains("seekscope_up{")));
    let command_line = format!("/proc/{}/cmdline", exporter.child.id());
    assert!(
        !std::fs::read_to_string(command_line)
            .unwrap()
            .contains("geheim")
    );
    // Two that write to one file would show their servers by turns.
    let arguments = [
        "exporter",
        "mongodb://127.0.0.1:1/",
        "--textfile",
        folder.to_str().unwrap(),
    ];
    let second = bench.seekscope(&arguments).output().unwrap();
    assert_fails(&second, 3, &["another exporter writes to"]);
    exporter.end();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let left = std::fs::read_to_string(&textfile).unwrap();
    assert!(
        left.contains("seekscope_exporter_last_reading_timestamp_seconds{"),
        "{left}"
    );
    assert!(!left.contains("seekscope_up"), "{left}");
    assert_eq!(bench.loaded_programs(), 0);
}

#[test]
fn a_text_file_that_cannot_be_written_for_a_while_ends_nothing() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let folder = bench.path("textfiles");
    std::fs::create_dir(&folder).unwrap();
    let folder_name = folder.to_str().unwrap();
    let arguments = [&server.uri, "--textfile", folder_name, "--every", "1s"];
    let exporter = Exporter::start(&bench, &[&arguments[..], &["--no-trace"]].concat());
    let read_at = |m: &Metrics| m.of("seekscope_exporter_last_reading_timestamp_seconds", &[]);
    exporter.until(|m| read_at(m).is_some());
    std::fs::remove_dir_all(&folder).unwrap();
    let then = read_at(&exporter.metrics()).unwrap();
    exporter.until(|m| read_at(m).is_some_and(|now| now > then + 2.0));
    std::fs::create_dir(&folder).unwrap();
    until(|| folder.join("seekscope.prom").exists());
    exporter.end();
}

#[test]
fn only_the_needed_capabilities_are_kept() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let exporter = Exporter::start(&bench, &[&server.uri, "--every", "1s"]);
    exporter.until(|m| m.of("seekscope_exporter_tracing", &[]) == Some(1.0));
    let status = format!("/proc/{}/task", exporter.child.id());
    for thread in std::fs::read_dir(status).unwrap().flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
        let field = |name: &str| {
            let mut lines = status.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
                .trim()
                .to_owned()
        };
        // BPF 39, PERFMON 38, SYS_PTRACE 19, DAC_READ_SEARCH 2.
        let kept = 1u64 << 39 | 1 << 38 | 1 << 19 | 1 << 2;
        let has = u64::from_str_radix(&field("CapPrm:"), 16).unwrap();
        assert_eq!(has & !kept, 0, "{has:x}");
        assert_eq!(field("NoNewPrivs:"), "1");
    }
    exporter.end();
}

#[test]
fn without_rights_the_counters_remain() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let program = bench.seekscope(&[]).get_program().to_owned();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut child = as_nobody(program.as_ref())
        .args(["exporter", &server.uri, "--every", "1s", "--listen"])
        .arg(address.to_string())
        .spawn()
        .unwrap();
    let get = |path: &str| -> Option<String> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    until(|| get("/metrics").is_some_and(|text| text.contains("seekscope_wiredtiger_cache_bytes")));
    let text = get("/metrics").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        text.contains("seekscope_exporter_tracing{server=\"127.0.0.1:"),
        "{text}"
    );
    assert!(
        text.contains("what=\"calls on files are not counted\",why=\""),
        "{text}"
    );
    assert!(!text.contains("seekscope_file_"), "unknown is not zero");
}

#[test]
fn what_cannot_be_is_said_at_once() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |arguments: &[&str]| {
        let mut command = bench.seekscope(&["exporter"]);
        command.args(arguments).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait(&mut child, Duration::from_secs(30));
        child.wait_with_output().unwrap()
    };
    let uri = "mongodb://127.0.0.1:1/";
    assert_fails(
        &run(&[uri, "--listen", &address]),
        1,
        &["cannot listen", &address],
    );
    assert_fails(
        &run(&[uri, "--textfile", "/nowhere/at/all"]),
        2,
        &["not a folder", "/nowhere"],
    );
    assert_fails(
        &run(&["--uri-file", "/nowhere"]),
        2,
        &["cannot read", "/nowhere"],
    );
    std::fs::write(bench.path("empty"), "# nothing\n").unwrap();
    assert_fails(&run(&["--uri-file", "empty"]), 2, &["names no server"]);
    assert_fails(
        &run(&["mongodb://", "--listen", "127.0.0.1:0"]),
        2,
        &["mongodb://"],
    );
    assert_fails(&run(&[uri, "--series", "10"]), 2, &["--series"]);
    assert_fails(
        &run(&["--pid", "4194304", "--listen", "127.0.0.1:0"]),
        2,
        &["4194304"],
    );
}
