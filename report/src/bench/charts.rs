//! Draws figures of a step: rates and latencies over time, and latency by percentile.

use seekscope_run::{BenchStep, Interval, LatencySummary};

use super::marks::{self, Span};
use super::records::Clock;
use super::{BenchReportInput, tracks};
use crate::html::charts::{Line, LineChart, Scale};
use crate::html::percentiles;

/// The most lines in a chart: the number of colours on the page.
const LINES_MAX: usize = 8;
/// Number of operations whose latencies over time are drawn, the most frequent first.
const OPERATIONS_MAX: usize = 4;

/// A shorter rest at the end of a step is no second: scaled up, a thousandth of one is a spike that never was.
const SECOND_NS_MIN: u64 = 500_000_000;

/// Times (CLOCK_MONOTONIC ns) with their values, where known.
pub(super) type Points = Vec<(u64, Option<f64>)>;
/// A line's name and its points.
pub(super) type Series = (String, Points);
/// A quantile's name, and the function that reads it.
type QuantileOf = (&'static str, fn(&LatencySummary) -> u64);
/// A clock's name, and its latencies.
type ClockOf = (&'static str, fn(&Interval) -> Option<LatencySummary>);

/// A figure with its words.
pub(super) struct Figure {
    pub(super) heading: String,
    pub(super) caption: String,
    pub(super) chart: LineChart,
}

/// Returns all line figures of step number `index`.
pub(super) fn of_step(input: &BenchReportInput<'_>, index: usize, step: &BenchStep) -> Vec<Figure> {
    let mut figures: Vec<Figure> = throughput(input, index, step).into_iter().collect();
    let mut operations: Vec<&str> = step.operations.iter().map(|op| op.name.as_str()).collect();
    operations.sort_by_key(|name| {
        let of_name = |op: &&seekscope_run::OperationResult| op.name == *name;
        std::cmp::Reverse(
            step.operations
                .iter()
                .find(of_name)
                .map_or(0, |op| op.count),
        )
    });
    let busiest = operations.iter().take(OPERATIONS_MAX).enumerate();
    figures.extend(busiest.filter_map(|(n, name)| latency(input, (index, n), step, name)));
    figures.extend(curves(input, index, step));
    figures.extend(tracks::of_step(input, index, step));
    figures
}

/// Draws lines over the seconds of a step. A time for which a line has no value is a gap.
pub(super) fn over_time(
    id: String,
    y: Scale,
    span: Span,
    lines: Vec<Series>,
    marks: Vec<crate::html::charts::Mark>,
) -> Option<LineChart> {
    let mut times: Vec<u64> = lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|p| p.0))
        .collect();
    times.sort_unstable();
    times.dedup();
    if times.len() < 2 {
        return None;
    }
    let lines: Vec<Line> = lines
        .into_iter()
        .filter(|(_, points)| points.iter().any(|(_, value)| value.is_some()))
        .take(LINES_MAX)
        .enumerate()
        .map(|(index, (label, points))| {
            let mut values = vec![None; times.len()];
            for (t_ns, value) in points {
                if let Ok(at) = times.binary_search(&t_ns) {
                    values[at] = value;
                }
            }
            Line::numbered(index, &label, values).dashed(false)
        })
        .collect();
    let xs: Vec<f64> = times.iter().map(|&t| span.seconds(t)).collect();
    let (first, last) = (xs[0], xs[xs.len() - 1]);
    let marks = marks.into_iter().filter(|m| first <= m.x && m.x <= last);
    let marks = marks.collect();
    (!lines.is_empty()).then(|| LineChart {
        marks,
        ..LineChart::new(id, (Scale::Seconds, y), xs, lines)
    })
}

/// Returns the seconds of an operation in a step.
fn seconds<'a>(
    input: &BenchReportInput<'a>,
    step: &'a BenchStep,
    operation: &'a str,
) -> Vec<&'a Interval> {
    let all = input.records.intervals_of(&step.name, operation);
    let mut all: Vec<&Interval> = all.collect();
    let last_ns = all.iter().map(|i| i.t_ns).max();
    all.retain(|i| i.duration_ns >= SECOND_NS_MIN || Some(i.t_ns) != last_ns);
    all
}

/// Returns how to read a figure over time; of the marks, where there are any.
fn caption(reading: &str, chart: &LineChart) -> String {
    match chart.marks.is_empty() {
        true => reading.into(),
        false => format!("{reading} Vertical lines: what happened beside it."),
    }
}

fn per_s(interval: &Interval, count: u64) -> Option<f64> {
    (interval.duration_ns > 0).then(|| count as f64 * 1e9 / interval.duration_ns as f64)
}

fn throughput(input: &BenchReportInput<'_>, index: usize, step: &BenchStep) -> Option<Figure> {
    let series = |name, count: fn(&Interval) -> u64| -> Points {
        let of_name = seconds(input, step, name).into_iter();
        of_name.map(|i| (i.t_ns, per_s(i, count(i)))).collect()
    };
    let good = |i: &Interval| i.count.saturating_sub(i.errors);
    let mut lines: Vec<Series> = (step.operations.iter())
        .map(|op| (op.name.clone(), series(&op.name, good)))
        .collect();
    let failing = step.operations.iter().filter(|op| op.errors > 0);
    lines.extend(failing.map(|op| {
        (
            format!("{} failed", op.name),
            series(&op.name, |i| i.errors),
        )
    }));
    let span = Span::of(input, step);
    let chart = over_time(
        format!("chart-{index}-rate"),
        Scale::Rate,
        span,
        lines,
        marks::of_step(input, step),
    )?;
    Some(Figure {
        heading: "Operations per second over time".into(),
        caption: caption(
            "Each point is a second; failures never count as throughput.",
            &chart,
        ),
        chart,
    })
}

/// Draws p50, p99 and the maximum of one operation, by both clocks.
fn latency(
    input: &BenchReportInput<'_>,
    (index, number): (usize, usize),
    step: &BenchStep,
    operation: &str,
) -> Option<Figure> {
    let intervals = seconds(input, step, operation);
    let mut lines = Vec::new();
    let clocks: [ClockOf; 2] = [
        ("response", |i| i.response),
        ("service", |i| Some(i.latency)),
    ];
    let quantiles: [QuantileOf; 3] = [
        ("max", |l| l.max_ns),
        ("p99", |l| l.p99_ns),
        ("p50", |l| l.p50_ns),
    ];
    for (clock, of) in clocks {
        for (name, quantile) in quantiles {
            let value = |i: &Interval| of(i).filter(|l| l.count > 0).map(|l| quantile(&l) as f64);
            let points = intervals.iter().map(|i| (i.t_ns, value(i))).collect();
            lines.push((format!("{clock} {name}"), points));
        }
    }
    let chart = over_time(
        format!("chart-{index}-latency-{number}"),
        Scale::LatencyNs,
        Span::of(input, step),
        lines,
        marks::of_step(input, step),
    )?;
    Some(Figure {
        heading: format!("Latency of {operation} over time"),
        caption: caption(
            match intervals.iter().any(|i| i.response.is_some()) {
                true => {
                    "Of each second. Response time counts from the scheduled start, service time from sending: \
                     a stall shows in the first for as long as it makes others wait."
                }
                false => "Of each second. Service time counts from sending.",
            },
            &chart,
        ),
        chart,
    })
}

/// Draws whole distributions, without the warm-up.
fn curves(input: &BenchReportInput<'_>, index: usize, step: &BenchStep) -> Option<Figure> {
    let mut found = Vec::new();
    for operation in &step.operations {
        for (clock, word) in [(Clock::Service, ""), (Clock::Response, ", response")] {
            let histogram = input.records.histogram(&step.name, &operation.name, clock);
            if let Some(histogram) = histogram.filter(|h| !h.is_empty()) {
                found.push((format!("{}{word}", operation.name), histogram));
            }
        }
    }
    found.truncate(LINES_MAX);
    let named = found
        .iter()
        .map(|(label, histogram)| (label.as_str(), *histogram));
    let chart = percentiles::chart(&format!("chart-{index}-curve"), named)?;
    Some(Figure {
        heading: "Latency by percentile".into(),
        caption: "Each step to the right looks at a share of the operations ten times smaller and \
                  slower. Warm-up left out."
            .into(),
        chart,
    })
}

/// Draws load against latency, if a maximum was searched.
pub(super) fn saturation(input: &BenchReportInput<'_>) -> Option<LineChart> {
    let saturation = input.measurement()?.saturation.as_ref()?;
    let mut points: Vec<_> = saturation
        .points
        .iter()
        .filter(|p| p.response.is_some())
        .collect();
    points.sort_by(|a, b| a.achieved_per_s.total_cmp(&b.achieved_per_s));
    if points.len() < 2 {
        return None;
    }
    let quantiles: [QuantileOf; 3] = [
        ("p50", |l| l.p50_ns),
        ("p99", |l| l.p99_ns),
        ("p99.9", |l| l.p999_ns),
    ];
    let line = |(index, (name, quantile)): (usize, QuantileOf)| {
        let values = points
            .iter()
            .map(|p| p.response.as_ref().map(|l| quantile(l) as f64))
            .collect();
        let mut line = Line::numbered(index, name, values);
        let is_maximum = |per_s: f64| Some(per_s) == saturation.maximum_per_s;
        line.knee = points
            .iter()
            .position(|p| is_maximum(p.achieved_per_s) || is_maximum(p.offered_per_s));
        line
    };
    let xs = points.iter().map(|p| p.achieved_per_s).collect();
    let lines = quantiles.into_iter().enumerate().map(line).collect();
    Some(LineChart::new(
        "chart-saturation",
        (Scale::Rate, Scale::LatencyNs),
        xs,
        lines,
    ))
}

/// Draws the insert rate of each shape of a schema lab while its data grew.
pub(super) fn growth(input: &BenchReportInput<'_>) -> Option<LineChart> {
    let shapes = &input.measurement()?.shapes;
    let mut sizes: Vec<u64> = shapes
        .iter()
        .flat_map(|shape| shape.insert_per_s.iter().map(|(samples, _)| *samples))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return None;
    }
    let lines = shapes.iter().enumerate().map(|(index, shape)| {
        let at = |size: &u64| {
            let point = shape
                .insert_per_s
                .iter()
                .find(|(samples, _)| samples == size);
            point.map(|(_, per_s)| *per_s)
        };
        let name = super::labs::shape_name(shape);
        Line::numbered(index, &name, sizes.iter().map(at).collect())
    });
    let xs = sizes.iter().map(|&size| size as f64).collect();
    let scales = (Scale::Count, Scale::Rate);
    Some(LineChart {
        x_name: Some("samples".into()),
        ..LineChart::new("chart-growth", scales, xs, lines.collect())
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{BenchMeasurement, OperationResult, RunDocument};

    use super::*;
    use crate::bench::BenchRecords;

    fn interval(t_ns: u64, duration_ns: u64, count: u64) -> Interval {
        Interval {
            step: "a".into(),
            operation: "READ".into(),
            t_ns,
            duration_ns,
            count,
            errors: 0,
            bytes: 0,
            latency: LatencySummary::default(),
            response: None,
        }
    }

    #[test]
    fn the_rest_of_a_second_is_no_point_and_nothing_is_told_that_is_not_drawn() {
        let mut document = RunDocument::begin("bench", Vec::new());
        document.started.monotonic_ns = 0;
        document.bench = Some(BenchMeasurement {
            steps: vec![BenchStep {
                name: "a".into(),
                ended_ns: 3_000_770_000,
                operations: vec![OperationResult {
                    name: "READ".into(),
                    ..OperationResult::default()
                }],
                ..BenchStep::default()
            }],
            ..BenchMeasurement::default()
        });
        let second = 1_000_000_000;
        let whole = |n: u64| interval(n * second, second, 5_000);
        let mut records = BenchRecords {
            intervals: vec![
                whole(0),
                whole(1),
                whole(2),
                interval(3 * second, 770_000, 7),
            ],
            ..BenchRecords::default()
        };
        let rate = |records: &BenchRecords| {
            let input = BenchReportInput {
                document: &document,
                records,
            };
            throughput(&input, 0, &input.steps()[0]).unwrap()
        };
        let figure = rate(&records);
        assert_eq!(figure.chart.lines[0].values, [Some(5_000.0); 3]);
        assert!(!figure.caption.contains("Vertical"), "{}", figure.caption);
        // Most of a second is one.
        records.intervals[3] = interval(3 * second, 800_000_000, 4_000);
        assert_eq!(rate(&records).chart.lines[0].values, [Some(5_000.0); 4]);
    }
}
