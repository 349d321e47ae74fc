//! A page as Prometheus' protobuf format has it, the only one with native histograms: for each family a message
//! `io.prometheus.client.MetricFamily` after its length.
//!
//! The messages are those of [client_model](https://github.com/prometheus/client_model)'s `metrics.proto`, as far as we
//! fill them in. All fields are optional there; `required` here means that we always write it, also where it is 0.
//!
//! A histogram has its native buckets and its classic ones. Prometheus takes what it is configured for: the native ones,
//! the classic ones beside them, or these alone where it asks for this format for another reason. Without them that
//! would leave a single bucket with all calls, and nothing to the rules and dashboards, which want the classic ones.

use prost::{Enumeration, Message};

use crate::latencies::{Latencies, NATIVE_SCHEMA};
use crate::metrics::{Metric as KnownMetric, MetricKind};
use crate::page::{Page, Sample, Value};

/// Half the breadth of the bucket around zero, s: 2^-128, as in Prometheus' own libraries. We have nothing in it, but a
/// histogram with such a bucket is known as native while it has no calls yet. The other mark, a span of no buckets, is
/// known from Prometheus 2.47 on only.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(string, required, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", required, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, optional, tag = "5")]
    unit: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(string, required, tag = "2")]
    value: String,
}

/// `Gauge` and `Counter`, which have the value in the same field.
#[derive(Clone, Copy, PartialEq, Message)]
struct Number {
    #[prost(double, required, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, required, tag = "1")]
    sample_count: u64,
    #[prost(double, required, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, required, tag = "5")]
    schema: i32,
    #[prost(double, required, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, required, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    /// The count of each bucket less that of the one before.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    positive_delta: Vec<i64>,
}

/// A classic bucket. That of all calls is left out, as Prometheus' own libraries do: it follows from the count.
#[derive(Clone, Copy, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, required, tag = "1")]
    cumulative_count: u64,
    #[prost(double, required, tag = "2")]
    upper_bound: f64,
}

/// Native buckets in a row, of which the first has the index `offset`.
#[derive(Clone, Copy, PartialEq, Message)]
struct BucketSpan {
    #[prost(sint32, required, tag = "1")]
    offset: i32,
    #[prost(uint32, required, tag = "2")]
    length: u32,
}

/// Returns the messages of all families.
pub(crate) fn encoded(page: &Page) -> Vec<u8> {
    let families = page.families();
    let messages = families.map(|(metric, samples)| {
        MetricFamily::of(metric, samples).encode_length_delimited_to_vec()
    });
    messages.flatten().collect()
}

impl MetricFamily {
    fn of(metric: &KnownMetric, samples: &[Sample]) -> Self {
        let kind = match metric.kind {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge => MetricType::Gauge,
            MetricKind::Histogram => MetricType::Histogram,
        };
        let samples = samples.iter();
        Self {
            name: metric.name.into(),
            help: metric.help.into(),
            kind: kind.into(),
            metric: samples.map(|sample| Metric::of(kind, sample)).collect(),
            unit: metric.unit().map(Into::into),
        }
    }
}

impl Metric {
    fn of(kind: MetricType, sample: &Sample) -> Self {
        let labels = sample.labels.iter();
        let label = labels.map(|(name, value)| LabelPair {
            name: (*name).into(),
            value: value.clone(),
        });
        let mut metric = Self {
            label: label.collect(),
            ..Self::default()
        };
        match &sample.value {
            Value::Histogram(calls) => metric.histogram = Some(Histogram::of(calls)),
            Value::Number(value) => {
                let value = Some(Number { value: *value });
                match kind {
                    MetricType::Counter => metric.counter = value,
                    _ => metric.gauge = value,
                }
            }
        }
        metric
    }
}

impl Histogram {
    fn of(calls: &Latencies) -> Self {
        let classic = calls
            .classic()
            .map(|(upper_bound, cumulative_count)| Bucket {
                cumulative_count,
                upper_bound,
            });
        // One row, with whatever is empty in it: the kernel has 40 buckets.
        let (offset, counts) = calls.native();
        let length = u32::try_from(counts.len()).unwrap_or_default();
        let mut before = 0;
        let deltas = counts.iter().map(|count| {
            let count = count.cast_signed();
            count.wrapping_sub(std::mem::replace(&mut before, count))
        });
        Self {
            sample_count: calls.calls(),
            sample_sum: calls.sum_s(),
            bucket: classic.collect(),
            schema: NATIVE_SCHEMA,
            zero_threshold: ZERO_THRESHOLD,
            zero_count: 0,
            positive_span: (length > 0)
                .then_some(BucketSpan { offset, length })
                .into_iter()
                .collect(),
            positive_delta: deltas.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::format::TextFormat;
    use crate::latencies::KERNEL_BUCKETS;
    use crate::metrics;
    use crate::page::Labels;

    /// Reads the messages as a scraper does.
    fn decoded(mut bytes: &[u8]) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        while !bytes.is_empty() {
            families.push(MetricFamily::decode_length_delimited(&mut bytes).unwrap());
        }
        families
    }

    fn of(server: &str) -> Labels {
        vec![("server", server.to_string())]
    }

    fn calls(counts: &[(usize, u64)], sum_ns: u64) -> Latencies {
        let mut buckets = [0; KERNEL_BUCKETS];
        for (i, count) in counts {
            buckets[*i] = *count;
        }
        Latencies::new(buckets, sum_ns)
    }

    fn histogram(calls: Latencies) -> Histogram {
        let mut page = Page::default();
        page.add_histogram(&metrics::FILE_LATENCY, of("a:1"), calls);
        let mut families = decoded(&encoded(&page));
        families[0].metric[0].histogram.take().unwrap()
    }

    /// The series as the older text format names them.
    fn series(families: &[MetricFamily]) -> BTreeMap<String, f64> {
        let mut found = BTreeMap::new();
        for family in families {
            for metric in &family.metric {
                let labels = metric.label.iter();
                let labels: Vec<String> = labels
                    .map(|label| format!("{}=\"{}\"", label.name, label.value))
                    .collect();
                let mut add = |suffix: &str, labels: &[String], value: f64| {
                    let series = format!("{}{suffix}{{{}}}", family.name, labels.join(","));
                    assert_eq!(found.insert(series, value), None);
                };
                let number = match family.kind() {
                    MetricType::Counter => metric.counter,
                    MetricType::Gauge => metric.gauge,
                    MetricType::Histogram => None,
                };
                if let Some(number) = number {
                    add("", &labels, number.value);
                }
                let Some(histogram) = &metric.histogram else {
                    continue;
                };
                let (count, sum) = (histogram.sample_count as f64, histogram.sample_sum);
                for bucket in &histogram.bucket {
                    // The bound as text is tested where it is written.
                    let bound = format!("le={}", bucket.upper_bound);
                    let labels = [labels.clone(), vec![bound]].concat();
                    add("_bucket", &labels, bucket.cumulative_count as f64);
                }
                add(
                    "_bucket",
                    &[labels.clone(), vec!["le=inf".into()]].concat(),
                    count,
                );
                add("_count", &labels, count);
                add("_sum", &labels, sum);
            }
        }
        found
    }

    /// The series of a text, with bounds as above.
    fn series_of_text(text: &str) -> BTreeMap<String, f64> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let series = match series.split_once("le=\"") {
                Some((before, bound)) => {
                    let bound: f64 = bound.trim_end_matches("\"}").parse().unwrap();
                    format!("{before}le={bound}}}")
                }
                None => series.to_string(),
            };
            (series, value.parse().unwrap())
        });
        series.collect()
    }

    /// The numbers and types of fields are those in `metrics.proto`.
    #[test]
    fn bytes_are_those_of_the_definition() {
        let mut page = Page::default();
        page.add(&metrics::CHECKPOINTS, of("a"), 1.0);
        let mut expected = b"\x52\x0a\x26seekscope_wiredtiger_checkpoints_total".to_vec();
        expected.extend(b"\x12\x0cCheckpoints.\x18\x00\x22\x18");
        expected.extend(b"\x0a\x0b\x0a\x06server\x12\x01a\x1a\x09\x09");
        expected.extend(1f64.to_le_bytes());
        assert_eq!(encoded(&page), expected);
    }

    #[test]
    fn all_formats_have_the_same_series() {
        let mut page = Page::default();
        page.add(&metrics::UP, of("a:1"), 1.0);
        page.add(&metrics::UP, of("b:2"), 0.0);
        page.add(&metrics::CACHE_READ_BYTES, of("a:1"), 4096.0);
        page.add(&metrics::SERIES, Vec::new(), 0.25);
        let reads = calls(&[(13, 1), (14, 2), (20, 7), (39, 1)], 2_250_000_000);
        page.add_histogram(&metrics::FILE_LATENCY, of("a:1"), reads);
        page.add_histogram(&metrics::FILE_LATENCY, of("b:2"), Latencies::default());
        let families = decoded(&encoded(&page));
        let text = page
            .text(TextFormat::Prometheus)
            .replace("series 0.25", "series{} 0.25");
        assert_eq!(series(&families), series_of_text(&text));
        assert_eq!(series(&families).len(), page.series());
        let units: Vec<Option<&str>> = families.iter().map(|f| f.unit.as_deref()).collect();
        assert_eq!(units, [None, Some("bytes"), None, Some("seconds")]);
        assert_eq!(
            families[1].name,
            "seekscope_wiredtiger_cache_read_bytes_total"
        );
    }

    #[test]
    fn a_native_histogram() {
        let found = histogram(calls(&[(13, 1), (14, 2), (17, 7)], 2_250_000_000));
        assert_eq!((found.sample_count, found.sample_sum), (10, 2.25));
        assert_eq!((found.schema, found.zero_count), (0, 0));
        // 2^13 to 2^14 ns are about 2^-17 to 2^-16 s.
        let span = BucketSpan {
            offset: -16,
            length: 5,
        };
        assert_eq!(found.positive_span, [span]);
        assert_eq!(found.positive_delta, [1, 1, -2, 0, 7]);
        assert_eq!(found.bucket.len(), 11);
    }

    #[test]
    fn one_without_calls_is_native_too() {
        let found = histogram(Latencies::default());
        assert_eq!(found.zero_threshold, 2f64.powi(-128));
        assert_eq!((found.positive_span.len(), found.sample_count), (0, 0));
    }

    proptest! {
        /// What Prometheus refuses a histogram for does not occur, and names of any kind come through.
        #[test]
        fn spans_deltas_and_count_fit(
            counts in prop::collection::vec((0..KERNEL_BUCKETS, 0u64..1 << 50), 0..40),
            collection in any::<String>(),
        ) {
            let calls = calls(&counts, 1);
            let mut page = Page::default();
            page.add_histogram(&metrics::FILE_LATENCY, of(&collection), calls);
            let families = decoded(&encoded(&page));
            prop_assert_eq!(&families[0].metric[0].label[0].value, &collection);
            let found = families[0].metric[0].histogram.as_ref().unwrap();
            let lengths = found.positive_span.iter().map(|span| span.length as usize);
            prop_assert_eq!(lengths.sum::<usize>(), found.positive_delta.len());
            let (mut count, mut sum) = (0, 0);
            for delta in &found.positive_delta {
                count += delta;
                prop_assert!(count >= 0);
                sum += count;
            }
            prop_assert_eq!(sum.cast_unsigned(), found.sample_count);
            prop_assert_eq!(found.sample_count, calls.calls());
        }
    }
}
