//! The formats that scrapers read, and which of them one wants.

use std::cmp::{Ordering, Reverse};

/// Ranges of media types that are looked at in a request. Prometheus sends six at most.
const RANGES_MAX: usize = 64;

/// A format of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text(TextFormat),
    /// Messages `io.prometheus.client.MetricFamily`, each after its length. It alone has native histograms.
    Protobuf,
}

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// [OpenMetrics 1.0](https://prometheus.io/docs/specs/om/open_metrics_spec/).
    OpenMetrics,
    /// The older text format 0.0.4 of Prometheus, which node_exporter's textfile collector reads, too.
    Prometheus,
}

impl Format {
    /// All formats, first what is served where a request likes several equally: what a person can read, and every tool.
    const ALL: [Self; 3] = [
        Self::Text(TextFormat::Prometheus),
        Self::Text(TextFormat::OpenMetrics),
        Self::Protobuf,
    ];

    /// Chooses by the headers `Accept` of a request (RFC 9110, 12.5.1). Whoever takes none of the formats, or sends
    /// what nobody understands, gets the older text, as of Prometheus' own libraries; never a refusal.
    pub fn accepted_by<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let parts = headers.into_iter().flat_map(|header| header.split(','));
        let ranges: Vec<Range> = parts.take(RANGES_MAX).filter_map(Range::read).collect();
        // Of equals the last is the greatest.
        let formats = Self::ALL.into_iter().rev();
        let wanted = formats.filter_map(|format| Some((Wish::of(format, &ranges)?, format)));
        wanted
            .max_by(|(a, _), (b, _)| a.compare(b))
            .map_or(Self::ALL[0], |(_, format)| format)
    }

    /// Returns the value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text(TextFormat::OpenMetrics) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            Self::Text(TextFormat::Prometheus) => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Self::Text(TextFormat::OpenMetrics) => ("application", "openmetrics-text"),
            Self::Text(TextFormat::Prometheus) => ("text", "plain"),
            Self::Protobuf => ("application", "vnd.google.protobuf"),
        }
    }
}

/// One of the kinds of answers that a request takes, such as `text/*;q=0.5`.
#[derive(Debug, Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    subkind: &'a str,
    parameters: &'a str,
    /// How much it is liked, 0 (not at all) to 1.
    quality: f32,
}

impl<'a> Range<'a> {
    /// Reads one, unless it has no meaning.
    fn read(part: &'a str) -> Option<Self> {
        let (range, parameters) = part.split_once(';').unwrap_or((part, ""));
        let (kind, subkind) = range.trim().split_once('/')?;
        let mut range = Self {
            kind,
            subkind,
            parameters,
            quality: 1.0,
        };
        if let Some(quality) = range.parameter("q") {
            range.quality = quality.parse().ok()?;
        }
        (0.0..=1.0).contains(&range.quality).then_some(range)
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.split(';').find_map(|parameter| {
            let (other, value) = parameter.split_once('=')?;
            let is_it = other.trim().eq_ignore_ascii_case(name);
            is_it.then(|| value.trim().trim_matches('"'))
        })
    }

    /// Returns how closely this describes the format, or `None` if it is none of these.
    fn closeness(&self, format: Format) -> Option<Closeness> {
        let (kind, subkind) = format.media_type();
        match (self.kind, self.subkind) {
            ("*", "*") => Some(Closeness::Anything),
            (of, "*") if of.eq_ignore_ascii_case(kind) => Some(Closeness::Kind),
            (of, sub) if of.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subkind) => {
                self.closeness_of_parameters(format)
            }
            _ => None,
        }
    }

    /// Returns the same where the media type is the format's. Other parameters, such as how names are to be escaped,
    /// concern nothing that we write.
    fn closeness_of_parameters(&self, format: Format) -> Option<Closeness> {
        let versions: &[&str] = match format {
            Format::Protobuf => {
                let is_ours = self.parameter("proto") == Some("io.prometheus.client.MetricFamily")
                    && self.parameter("encoding") == Some("delimited");
                return is_ours.then_some(Closeness::Version);
            }
            // Of the draft 0.0.1 nothing that we write differs, and Prometheus has always read the one as the other.
            Format::Text(TextFormat::OpenMetrics) => &["1.0.0", "0.0.1"],
            Format::Text(TextFormat::Prometheus) => &["0.0.4"],
        };
        match self.parameter("version") {
            None => Some(Closeness::Type),
            Some(version) => versions.contains(&version).then_some(Closeness::Version),
        }
    }
}

/// What a range says of a format: the more, the more its quality counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Anything,
    Kind,
    Type,
    Version,
}

/// How much a request likes a format.
#[derive(Debug, Clone, Copy)]
struct Wish {
    quality: f32,
    closeness: Closeness,
    /// Where in the request it stands.
    place: usize,
}

impl Wish {
    /// Returns what the range says that describes the format most closely; `None` if the format is not taken.
    fn of(format: Format, ranges: &[Range]) -> Option<Self> {
        let wishes = ranges.iter().enumerate().filter_map(|(place, range)| {
            Some(Self {
                quality: range.quality,
                closeness: range.closeness(format)?,
                place,
            })
        });
        let closest = wishes.max_by(|a, b| {
            let by_closeness = a.closeness.cmp(&b.closeness);
            by_closeness.then_with(|| a.quality.total_cmp(&b.quality))
        });
        closest.filter(|wish| wish.quality > 0.0)
    }

    /// Compares by quality; where that is the same, what is named goes before what is only not excluded, and then what
    /// is named first.
    fn compare(&self, other: &Self) -> Ordering {
        let rest = |wish: &Self| (wish.closeness >= Closeness::Type, Reverse(wish.place));
        let by_quality = self.quality.total_cmp(&other.quality);
        by_quality.then_with(|| rest(self).cmp(&rest(other)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLASSIC: Format = Format::Text(TextFormat::Prometheus);
    const OPEN: Format = Format::Text(TextFormat::OpenMetrics);
    const DELIMITED: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

    #[track_caller]
    fn assert_all(cases: &[(&str, Format)]) {
        for (accept, expected) in cases {
            assert_eq!(Format::accepted_by([*accept]), *expected, "{accept}");
        }
    }

    /// What Prometheus sends, by its sources; what it means by it.
    #[test]
    fn prometheus_gets_what_it_prefers() {
        let rest = "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let v3_text = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_all(&[
            // 2.42, with and without native histograms.
            (&format!("{DELIMITED},{rest}"), Format::Protobuf),
            (rest, OPEN),
            // 2.40.
            (
                &format!(
                    "{},application/openmetrics-text;version=1.0.0;q=0.75,application/openmetrics-text;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                    DELIMITED.replace(';', "; ")
                ),
                Format::Protobuf,
            ),
            // 3.x, with and without.
            (
                &format!("{DELIMITED};q=0.6,{}", v3_text.replace("0.6", "0.5")),
                Format::Protobuf,
            ),
            (v3_text, OPEN),
            // 2.5 to 2.39, and the oldest.
            (
                "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OPEN,
            ),
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", CLASSIC),
            // One that is told to take the older text first (`scrape_protocols`).
            (
                &format!("text/plain;version=0.0.4;q=0.6,{DELIMITED};q=0.5,*/*;q=0.4"),
                CLASSIC,
            ),
        ]);
    }

    #[test]
    fn qualities_decide_then_what_is_named_then_the_order() {
        let reversed = format!("text/plain;q=0.2, {DELIMITED};q=0.9");
        let both = format!("application/openmetrics-text,{DELIMITED}");
        assert_all(&[
            (&reversed, Format::Protobuf),
            (&reversed.replace("0.9", "0.1"), CLASSIC),
            (&both, OPEN),
            ("*/*, application/openmetrics-text", OPEN),
            ("text/plain;q=0.1, */*", OPEN),
            ("text/plain;q=0, */*;q=0.001", OPEN),
            ("text/*;q=0.5, application/*;q=0.4", CLASSIC),
            ("application/*", OPEN),
            ("text/html, application/xhtml+xml, */*;q=0.8", CLASSIC),
            (
                "Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=0.3",
                OPEN,
            ),
        ]);
        let two_headers = ["text/plain;q=0.5", "application/openmetrics-text;q=0.6"];
        assert_eq!(Format::accepted_by(two_headers), OPEN);
        assert_eq!(Format::accepted_by([]), CLASSIC);
    }

    #[test]
    fn what_we_do_not_have_and_garbage_lead_to_the_older_text() {
        let not_at_all = format!("{DELIMITED};q=0,application/openmetrics-text;q=0");
        assert_all(&[
            ("", CLASSIC),
            ("*/*", CLASSIC),
            ("text/plain", CLASSIC),
            ("x-application/openmetrics-text", CLASSIC),
            ("application/json", CLASSIC),
            ("application/openmetrics-text;version=2.0.0", CLASSIC),
            ("text/plain;version=1.0.0", CLASSIC),
            (&DELIMITED.replace("delimited", "compact-text"), CLASSIC),
            (&DELIMITED.replace("MetricFamily", "Metric"), CLASSIC),
            ("application/vnd.google.protobuf", CLASSIC),
            (&not_at_all, CLASSIC),
            ("application/openmetrics-text;q=much", CLASSIC),
            ("application/openmetrics-text;q=NaN", CLASSIC),
            ("application/openmetrics-text;q=1e9", CLASSIC),
            (",;=/*;q,,//;;==\"", CLASSIC),
        ]);
    }

    #[test]
    fn a_request_of_a_megabyte_is_read_in_no_time() {
        for piece in ["a/b,", "/", ";", ";q=1", "*/*;q=0.1,", DELIMITED] {
            let long = piece.repeat((1 << 20) / piece.len());
            let began = std::time::Instant::now();
            Format::accepted_by([long.as_str()]);
            assert!(began.elapsed().as_millis() < 500, "{piece}");
        }
        let late = format!("{}{DELIMITED}", "a/b,".repeat(RANGES_MAX));
        assert_eq!(Format::accepted_by([late.as_str()]), CLASSIC, "too late");
    }

    proptest! {
        #[test]
        fn any_request_is_answered(accept in "[a-z*/;,=q.0-9\" ]{0,200}") {
            Format::accepted_by([accept.as_str()]);
        }
    }
}
