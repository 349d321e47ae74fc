//! A page as text, in the two formats that scrapers read.
//!
//! The formats differ in three ways: OpenMetrics names the family of a counter without `_total`, has lines for units,
//! and ends in `# EOF`.

use std::fmt::{Result, Write};

use crate::format::TextFormat;
use crate::latencies::Latencies;
use crate::metrics::{Metric, MetricKind};
use crate::page::{Labels, Page, Sample, Value};

/// Returns the page as text.
pub(crate) fn written(page: &Page, format: TextFormat) -> String {
    let mut text = String::new();
    for (metric, samples) in page.families() {
        // Writing into a string cannot fail.
        let _ = write_family(&mut text, metric, samples, format);
    }
    if format == TextFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_family(
    text: &mut String,
    metric: &Metric,
    samples: &[Sample],
    format: TextFormat,
) -> Result {
    let family = match format {
        TextFormat::OpenMetrics => metric.family(),
        TextFormat::Prometheus => metric.name,
    };
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    writeln!(text, "# HELP {family} {}", metric.help)?;
    writeln!(text, "# TYPE {family} {kind}")?;
    if let (TextFormat::OpenMetrics, Some(unit)) = (format, metric.unit()) {
        writeln!(text, "# UNIT {family} {unit}")?;
    }
    for sample in samples {
        match &sample.value {
            Value::Number(value) => {
                write_series(text, metric, "", &sample.labels, None)?;
                writeln!(text, " {value}")?;
            }
            Value::Histogram(calls) => write_histogram(text, metric, &sample.labels, calls)?,
        }
    }
    Ok(())
}

/// Writes the classic histogram: the text formats have no native ones.
fn write_histogram(
    text: &mut String,
    metric: &Metric,
    labels: &Labels,
    calls: &Latencies,
) -> Result {
    let bounds = calls.classic();
    let bounds = bounds.map(|(bound_s, count)| (bound_label(bound_s), count));
    let all = std::iter::once(("+Inf".to_string(), calls.calls()));
    for (bound, count) in bounds.chain(all) {
        write_series(text, metric, "_bucket", labels, Some(&bound))?;
        writeln!(text, " {count}")?;
    }
    write_series(text, metric, "_count", labels, None)?;
    writeln!(text, " {}", calls.calls())?;
    write_series(text, metric, "_sum", labels, None)?;
    writeln!(text, " {}", calls.sum_s())
}

/// Returns a bound as Go writes it. Prometheus writes so what it reads as a number from the other format, and a series
/// is to have the same name in both.
fn bound_label(bound_s: f64) -> String {
    if bound_s >= 1e-4 {
        return bound_s.to_string();
    }
    let scientific = format!("{bound_s:e}");
    match scientific.split_once("e-") {
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => scientific,
    }
}

fn write_series(
    text: &mut String,
    metric: &Metric,
    suffix: &str,
    labels: &Labels,
    bound: Option<&str>,
) -> Result {
    write!(text, "{}{suffix}", metric.name)?;
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let mut before = '{';
    for (name, value) in labels.chain(bound.map(|bound| ("le", bound))) {
        write!(text, "{before}{name}=\"")?;
        escape(text, value);
        text.push('"');
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    Ok(())
}

/// Appends the value of a label. Both formats escape the same three characters.
fn escape(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::latencies::KERNEL_BUCKETS;
    use crate::metrics;

    fn page() -> Page {
        let mut page = Page::default();
        let of = |server: &str| vec![("server", server.to_string())];
        page.add(&metrics::UP, of("a:1"), 1.0);
        page.add(&metrics::CACHE_READ_BYTES, of("a:1"), 4096.0);
        page.add(&metrics::UP, of("b\"\\\n:2"), 0.0);
        let mut buckets = [0; KERNEL_BUCKETS];
        (buckets[13], buckets[14], buckets[39]) = (1, 2, 1);
        let calls = Latencies::new(buckets, 2_250_000_000);
        page.add_histogram(&metrics::FILE_LATENCY, of("a:1"), calls);
        page
    }

    #[test]
    fn openmetrics() {
        let text = page().text(TextFormat::OpenMetrics);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("# HELP"))
            .collect();
        assert_eq!(
            lines,
            [
                "# TYPE seekscope_up gauge",
                "seekscope_up{server=\"a:1\"} 1",
                "seekscope_up{server=\"b\\\"\\\\\\n:2\"} 0",
                "# TYPE seekscope_wiredtiger_cache_read_bytes counter",
                "# UNIT seekscope_wiredtiger_cache_read_bytes bytes",
                "seekscope_wiredtiger_cache_read_bytes_total{server=\"a:1\"} 4096",
                "# TYPE seekscope_file_latency_seconds histogram",
                "# UNIT seekscope_file_latency_seconds seconds",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"1.6384e-05\"} 1",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"6.5536e-05\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.000262144\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.001048576\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.004194304\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.016777216\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.067108864\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.268435456\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"1.073741824\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"4.294967296\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"17.179869184\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"+Inf\"} 4",
                "seekscope_file_latency_seconds_count{server=\"a:1\"} 4",
                "seekscope_file_latency_seconds_sum{server=\"a:1\"} 2.25",
                "# EOF",
            ]
        );
        assert_eq!((page().series(), page().series_max()), (17, 18));
    }

    #[test]
    fn the_older_format_names_counters_in_full() {
        let text = page().text(TextFormat::Prometheus);
        assert!(text.contains("# TYPE seekscope_wiredtiger_cache_read_bytes_total counter\n"));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
    }

    proptest! {
        /// However a collection is called, there is one line per sample, and the name can be read back.
        #[test]
        fn any_label_stays_within_its_quotes(value in any::<String>()) {
            let mut page = Page::default();
            page.add(&metrics::UP, vec![("server", value.clone())], 1.0);
            let text = page.text(TextFormat::Prometheus);
            let lines: Vec<&str> = text.split('\n').collect();
            prop_assert_eq!(lines.len(), 4);
            let quoted = lines[2].strip_prefix("seekscope_up{server=\"").unwrap();
            let quoted = quoted.strip_suffix("\"} 1").unwrap();
            let mut read = String::new();
            let mut chars = quoted.chars();
            while let Some(c) = chars.next() {
                read.push(match c {
                    '\\' => match chars.next().unwrap() { 'n' => '\n', c => c },
                    '"' => return Err(TestCaseError::fail("a quote that is not escaped")),
                    c => c,
                });
            }
            prop_assert_eq!(read, value);
        }
    }
}
