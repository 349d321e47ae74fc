//! The samples of one moment and their text, in the two formats that scrapers read: OpenMetrics 1.0, and the older
//! text format 0.0.4 of Prometheus, which node_exporter's textfile collector reads too.
//!
//! The formats differ in three ways: OpenMetrics names the family of a counter without `_total`, has lines for units,
//! and ends in `# EOF`.

use std::fmt::Write;

use crate::metrics::{Metric, MetricKind};

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// Chooses by the header `Accept` of a request. Whoever does not ask for OpenMetrics gets the older format.
    pub fn accepted_by(accept: &str) -> Self {
        let wants = accept.split(',').any(|kind| {
            kind.trim_start()
                .starts_with("application/openmetrics-text")
        });
        if wants {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// Returns the value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    suffix: &'static str,
    labels: Labels,
    value: f64,
}

/// All samples, by family in the order in which each family first appeared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    families: Vec<(&'static Metric, Vec<Sample>)>,
}

impl Page {
    /// Adds a sample.
    pub fn add(&mut self, metric: &'static Metric, labels: Labels, value: f64) {
        self.sample(metric, "", labels, value);
    }

    /// Adds a histogram: `upper_bounds_s` with the number of calls up to each, and the sum of all, seconds. The last
    /// count is that of all calls and belongs to no bound.
    pub fn add_histogram(
        &mut self,
        metric: &'static Metric,
        labels: &Labels,
        upper_bounds_s: &[f64],
        counts_up_to: &[u64],
        sum_s: f64,
    ) {
        let bounds = upper_bounds_s.iter().map(ToString::to_string);
        let bounds = bounds.chain(std::iter::once("+Inf".to_string()));
        for (bound, count) in bounds.zip(counts_up_to) {
            let mut labels = labels.clone();
            labels.push(("le", bound));
            self.sample(metric, "_bucket", labels, *count as f64);
        }
        let count = counts_up_to.last().copied().unwrap_or(0);
        self.sample(metric, "_count", labels.clone(), count as f64);
        self.sample(metric, "_sum", labels.clone(), sum_s);
    }

    fn sample(
        &mut self,
        metric: &'static Metric,
        suffix: &'static str,
        labels: Labels,
        value: f64,
    ) {
        let sample = Sample {
            suffix,
            labels,
            value,
        };
        let mut families = self.families.iter_mut();
        match families.find(|(known, _)| known.name == metric.name) {
            Some((_, samples)) => samples.push(sample),
            None => self.families.push((metric, vec![sample])),
        }
    }

    /// Adds all samples of another page.
    pub(crate) fn append(&mut self, other: Page) {
        for (metric, samples) in other.families {
            for sample in samples {
                self.sample(metric, sample.suffix, sample.labels, sample.value);
            }
        }
    }

    /// Keeps the first samples, by family.
    pub(crate) fn truncate(&mut self, series_max: usize) {
        let mut left = series_max;
        for (_, samples) in &mut self.families {
            samples.truncate(left);
            left -= samples.len();
        }
        self.families.retain(|(_, samples)| !samples.is_empty());
    }

    /// Returns the number of samples, each of which is a time series.
    pub fn series(&self) -> usize {
        self.families.iter().map(|(_, samples)| samples.len()).sum()
    }

    /// Returns the text.
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        for (metric, samples) in &self.families {
            // Writing into a string cannot fail.
            let _ = write_family(&mut text, metric, samples, format);
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn write_family(
    text: &mut String,
    metric: &Metric,
    samples: &[Sample],
    format: Format,
) -> std::fmt::Result {
    let family = match format {
        Format::OpenMetrics => metric.family(),
        Format::Prometheus => metric.name,
    };
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    writeln!(text, "# HELP {family} {}", metric.help)?;
    writeln!(text, "# TYPE {family} {kind}")?;
    if let (Format::OpenMetrics, Some(unit)) = (format, metric.unit()) {
        writeln!(text, "# UNIT {family} {unit}")?;
    }
    for sample in samples {
        write!(text, "{}{}", metric.name, sample.suffix)?;
        for (i, (name, value)) in sample.labels.iter().enumerate() {
            write!(text, "{}{name}=\"", if i == 0 { '{' } else { ',' })?;
            escape(text, value);
            text.push('"');
        }
        if !sample.labels.is_empty() {
            text.push('}');
        }
        writeln!(text, " {}", sample.value)?;
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
    use crate::metrics;

    fn page() -> Page {
        let mut page = Page::default();
        let of = |server: &str| vec![("server", server.to_string())];
        page.add(&metrics::UP, of("a:1"), 1.0);
        page.add(&metrics::CACHE_READ_BYTES, of("a:1"), 4096.0);
        page.add(&metrics::UP, of("b\"\\\n:2"), 0.0);
        page.add_histogram(
            &metrics::FILE_LATENCY,
            &of("a:1"),
            &[0.001, 0.5],
            &[1, 3, 4],
            2.25,
        );
        page
    }

    #[test]
    fn openmetrics() {
        let text = page().text(Format::OpenMetrics);
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
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.001\"} 1",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"0.5\"} 3",
                "seekscope_file_latency_seconds_bucket{server=\"a:1\",le=\"+Inf\"} 4",
                "seekscope_file_latency_seconds_count{server=\"a:1\"} 4",
                "seekscope_file_latency_seconds_sum{server=\"a:1\"} 2.25",
                "# EOF",
            ]
        );
        assert_eq!(page().series(), 8);
    }

    #[test]
    fn the_older_format_names_counters_in_full() {
        let text = page().text(Format::Prometheus);
        assert!(text.contains("# TYPE seekscope_wiredtiger_cache_read_bytes_total counter\n"));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
    }

    #[test]
    fn the_scraper_chooses() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.3";
        assert_eq!(Format::accepted_by(prometheus), Format::OpenMetrics);
        for other in ["", "*/*", "text/plain", "x-application/openmetrics-text"] {
            assert_eq!(Format::accepted_by(other), Format::Prometheus, "{other}");
        }
    }

    proptest! {
        /// However a collection is called, there is one line per sample, and the name can be read back.
        #[test]
        fn any_label_stays_within_its_quotes(value in any::<String>()) {
            let mut page = Page::default();
            page.add(&metrics::UP, vec![("server", value.clone())], 1.0);
            let text = page.text(Format::Prometheus);
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
