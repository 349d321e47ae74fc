//! `latency.hlog`, written by us, torn by a crash, and read by another implementation.

use std::io::Write;
use std::time::Duration;

use hdrhistogram::Histogram;
use seekscope_run::{
    LatencyLogWriter, RunDirectory, RunDocument, RunError, latency_histogram, tag_of,
};

/// A hundred latencies that differ by tag and second.
fn latencies(tag: u64, second: u64) -> Histogram<u64> {
    let mut histogram = latency_histogram();
    for n in 1..=100 {
        let latency_ns = n * n * 1000 * (tag + 1) + second * 1_000_000_000;
        histogram.record(latency_ns).unwrap();
    }
    histogram
}

fn tags() -> [String; 2] {
    [
        tag_of("ramp 4k, depth 8", "read"),
        tag_of("journal", "sync"),
    ]
}

fn write_seconds(writer: &mut LatencyLogWriter, seconds: std::ops::Range<u64>) {
    for second in seconds {
        for (i, tag) in (0..).zip(tags()) {
            let offset = Duration::from_secs(second);
            let length = Duration::from_secs(1);
            let histogram = latencies(i, second);
            writer.write(&tag, offset, length, &histogram).unwrap();
        }
    }
}

/// The sum of all seconds.
fn expected(tag: u64, seconds: u64) -> Histogram<u64> {
    let mut sum = latency_histogram();
    (0..seconds).for_each(|second| sum.add(latencies(tag, second)).unwrap());
    sum
}

#[test]
fn intervals_of_a_tag_are_merged_and_a_torn_line_is_ignored() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("disk", vec![])).unwrap();
    assert!(run.latency_histograms().unwrap().is_empty());
    write_seconds(&mut run.latency_log_writer().unwrap(), 0..3);

    let path = parent.path().join("latency.hlog");
    let append = |text: &str| {
        let mut log = std::fs::File::options().append(true).open(&path).unwrap();
        log.write_all(text.as_bytes()).unwrap();
    };
    let check = |seconds| {
        let read = run.latency_histograms().unwrap();
        assert_eq!(read.len(), 2);
        for (i, tag) in (0..).zip(tags()) {
            assert_eq!(read[&tag], expected(i, seconds), "{tag}");
        }
    };
    append("Tag=journal:sync,3.000,1.000,17,HISTFAAA");
    check(3);
    // A later writer goes on after the last whole line, and writes no second header.
    write_seconds(&mut run.latency_log_writer().unwrap(), 3..5);
    check(5);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("StartTimestamp").count(), 1);

    append("Tag=journal:sync,5.000,1.000,17,HISTFAAA\n");
    let damaged = run.latency_histograms();
    assert!(matches!(damaged, Err(RunError::Damaged { .. })));
}

#[test]
fn tags_that_would_break_the_log_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("disk", vec![])).unwrap();
    let mut writer = run.latency_log_writer().unwrap();
    let second = Duration::from_secs(1);
    for bad in ["", "a,b", "a b", "a\nb"] {
        let refused = writer.write(bad, second, second, &latency_histogram());
        assert!(matches!(refused, Err(RunError::Write { .. })), "{bad:?}");
    }
    assert!(run.latency_histograms().unwrap().is_empty());
}

#[test]
fn another_implementation_reads_the_same() {
    let parent = tempfile::tempdir().unwrap();
    let document = RunDocument::begin("disk", vec![]);
    let run = RunDirectory::create(parent.path(), &document).unwrap();
    write_seconds(&mut run.latency_log_writer().unwrap(), 0..3);
    let script = r#"
import json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
log = HistogramLogReader(sys.argv[1] + "/latency.hlog", HdrHistogram(1, 3600 * 10**9, 3))
rows = []
while (h := log.get_next_interval_histogram()) is not None:
    rows.append([h.get_tag(), h.get_start_time_stamp(), h.get_end_time_stamp(), h.get_total_count(),
                 h.get_min_value(), h.get_value_at_percentile(50), h.get_value_at_percentile(99), h.get_max_value()])
print(json.dumps(rows))
"#;
    let read = crate::python(script, parent.path());
    let rows = read.as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for (n, row) in (0..).zip(rows) {
        let (second, tag) = (n / 2, n % 2);
        let histogram = latencies(tag, second);
        assert_eq!(row[0], tags()[usize::try_from(tag).unwrap()]);
        // Their times are ms since 1970, read from decimals with three places.
        let started_ms = document.started.realtime_ns as f64 / 1e6;
        for (time, after_s) in [(&row[1], second), (&row[2], second + 1)] {
            let off_ms = time.as_f64().unwrap() - started_ms - after_s as f64 * 1000.0;
            assert!(off_ms.abs() < 2.0, "{off_ms} ms off");
        }
        let ours = [
            histogram.len(),
            histogram.min(),
            histogram.value_at_quantile(0.5),
            histogram.value_at_quantile(0.99),
            histogram.max(),
        ];
        assert_eq!(
            row.as_array().unwrap()[3..],
            ours.map(serde_json::Value::from)
        );
    }
}
