//! Shows what happened second by second: in the job or the sustained reads, else in the whole run.

use std::collections::BTreeMap;

use seekscope_run::{DiskStep, StepGroup};
use seekscope_stats::median;

use super::steps::is_supported;
use super::{DiskReportInput, SecondPoint};
use crate::html::charts::{Line, LineChart, Scale};
use crate::numbers::{format_mean_ns, format_rate, format_share};
use crate::table::{Cell, Table};

const OPERATIONS: [&str; 3] = ["read", "write", "sync"];
/// Number of parts in the table for longer series.
const PARTS: usize = 10;
/// Length below which a series has no beginning and end to compare.
const COMPARABLE_MIN: usize = 8;
/// A change of the rate from beginning to end below this is no drift.
const DRIFT: f64 = 0.2;

/// One operation of one step.
struct Series<'a> {
    step: &'a DiskStep,
    operation: &'static str,
    /// Points in order of time; never empty.
    points: Vec<&'a SecondPoint>,
}

impl Series<'_> {
    fn rates(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.per_s()).collect()
    }
}

/// Returns whether it is a long step that the run was about.
fn is_long(step: &DiskStep) -> bool {
    matches!(step.group, StepGroup::Job | StepGroup::Sustained)
}

/// Returns the series that are shown, in the order of the steps.
fn shown<'a>(input: &DiskReportInput<'a>) -> Vec<Series<'a>> {
    let Some(measurement) = input.measurement() else {
        return Vec::new();
    };
    let mut by_name: BTreeMap<(&str, &str), Vec<&'a SecondPoint>> = BTreeMap::new();
    for point in input.seconds.iter().filter(|point| point.duration_ns > 0) {
        let points = by_name.entry((&point.step, &point.operation)).or_default();
        points.push(point);
    }
    let any_long = measurement.steps.iter().any(is_long);
    let mut all = Vec::new();
    for step in &measurement.steps {
        // The generator does millions per second: beside it no disk could be seen.
        if step.group == StepGroup::Generator || any_long != is_long(step) {
            continue;
        }
        for operation in OPERATIONS {
            let points = by_name.remove(&(step.name.as_str(), operation));
            // The step was not about an operation that never completed.
            let points = points.filter(|points| points.iter().any(|point| point.count > 0));
            if let Some(mut points) = points {
                points.sort_by_key(|point| point.t_ns);
                all.push(Series {
                    step,
                    operation,
                    points,
                });
            }
        }
    }
    all
}

/// Draws IOPS and p99 over time: lines for each kind of operation in one long step, dots where many short
/// steps follow one another.
pub(super) fn charts(input: &DiskReportInput<'_>) -> Vec<LineChart> {
    let all = shown(input);
    let rate_scale = match all.iter().all(|series| is_long(series.step)) {
        true => Scale::Rate,
        false => Scale::RateLog,
    };
    // A second in which nothing completed is a zero here and a gap among the percentiles.
    let rate = |p: &SecondPoint| Some(p.per_s());
    let start_ns = input.document.started.monotonic_ns;
    [
        chart(&all, start_ns, "chart-rate", rate_scale, rate),
        chart(
            &all,
            start_ns,
            "chart-tail",
            Scale::LatencyNs,
            supported_p99_ns,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the 99th percentile, ns, if there are enough operations.
fn supported_p99_ns(point: &SecondPoint) -> Option<f64> {
    is_supported(point.count, 0.99).then_some(point.p99_ns as f64)
}

/// Returns `None` when there is no value at all.
fn chart(
    all: &[Series<'_>],
    start_ns: u64,
    id: &'static str,
    y: Scale,
    value: impl Fn(&SecondPoint) -> Option<f64>,
) -> Option<LineChart> {
    let mut times: BTreeMap<u64, [Option<f64>; OPERATIONS.len()]> = BTreeMap::new();
    for series in all {
        let slot = OPERATIONS
            .iter()
            .position(|&name| name == series.operation)?;
        for point in &series.points {
            times.entry(point.t_ns).or_default()[slot] = value(point);
        }
    }
    let dots = !all.iter().all(|series| is_long(series.step));
    let lines: Vec<Line> = OPERATIONS
        .iter()
        .enumerate()
        .map(|(slot, name)| {
            let values = times.values().map(|values| values[slot]).collect();
            let mut line = Line::numbered(slot, &format!("{name}s"), values);
            line.dashed &= !dots;
            line
        })
        .filter(|line| line.values.iter().any(Option::is_some))
        .collect();
    let seconds = |t_ns: &u64| t_ns.saturating_sub(start_ns) as f64 / 1e9;
    let xs = times.keys().map(seconds).collect();
    (!lines.is_empty()).then(|| LineChart {
        dots,
        ..LineChart::new(id, (Scale::Seconds, y), xs, lines)
    })
}

/// Returns lowest, median and highest rate per step, or per tenth of a long one.
pub(super) fn table(input: &DiskReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "step",
            "operation",
            "from, s",
            "seconds",
            "lowest/s",
            "median/s",
            "highest/s",
            "worst p99",
        ],
    );
    let start_ns = input.document.started.monotonic_ns;
    for series in shown(input) {
        let part = match series.points.len() {
            long if long > 2 * PARTS => long.div_ceil(PARTS),
            short => short,
        };
        for points in series.points.chunks(part) {
            let mut rates: Vec<f64> = points.iter().map(|point| point.per_s()).collect();
            rates.sort_by(f64::total_cmp);
            let rate = |value: Option<f64>| Cell::or(value.map(format_rate), "none");
            let p99 = points
                .iter()
                .filter_map(|p| supported_p99_ns(p))
                .reduce(f64::max);
            let from = points
                .first()
                .map_or(0, |p| p.t_ns.saturating_sub(start_ns));
            table.row([
                series.step.name.as_str().into(),
                series.operation.into(),
                format!("{:.1}", from as f64 / 1e9).into(),
                points.len().to_string().into(),
                rate(rates.first().copied()),
                rate(median(&rates)),
                rate(rates.last().copied()),
                Cell::or(p99.map(format_mean_ns), "too few"),
            ]);
        }
    }
    table.or_nothing()
}

/// Says how even the rates were.
pub(super) fn sentence(input: &DiskReportInput<'_>) -> Option<String> {
    let all = shown(input);
    let longest = all.iter().max_by_key(|series| series.points.len())?;
    if is_long(longest.step) {
        return drift(longest);
    }
    let lowest_share = |series: &Series<'_>| {
        let rates = series.rates();
        let (low, high) = (
            rates.iter().copied().reduce(f64::min)?,
            rates.iter().copied().reduce(f64::max)?,
        );
        (high > 0.0 && rates.len() > 1).then_some((low / high, low, high))
    };
    let (series, (_, low, high)) = all
        .iter()
        .filter_map(|series| Some((series, lowest_share(series)?)))
        .min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    Some(format!(
        "The step with the least even rate was {} ({}s): between {} and {} per second.",
        series.step.name,
        series.operation,
        format_rate(low),
        format_rate(high)
    ))
}

/// Says whether a long series ended as it began; if not, when it changed.
fn drift(series: &Series<'_>) -> Option<String> {
    let rates = series.rates();
    if rates.len() < COMPARABLE_MIN {
        return None;
    }
    let quarter = rates.len() / 4;
    let began = median(&rates[..quarter])?;
    let ended = median(&rates[rates.len() - quarter..])?;
    let what = series.operation;
    let (from, to) = (format_rate(began), format_rate(ended));
    // 0 / 0 if it stood still at both ends.
    let change = ended / began - 1.0;
    if change.is_nan() || change.abs() < DRIFT {
        let worst = worst_second(&rates)?;
        let verdict = if began > 0.0 { "held" } else { "was uneven" };
        return Some(format!(
            "The rate {verdict}: {from} {what}s per second at the beginning, {to} at the end, {worst}."
        ));
    }
    let first = series.points.first()?;
    let at = series.points.get(step_index(&rates))?;
    let after_s = at.t_ns.saturating_sub(first.t_ns) as f64 / 1e9;
    let by = match change.is_finite() {
        true => format!(" by {}", format_share(change.abs())),
        false => String::new(),
    };
    Some(if change < 0.0 {
        format!(
            "The rate fell{by} after {after_s:.0} s, from {from} to {to} {what}s per second: this \
             is typical of exhausted burst credits, a full write cache, or thermal throttling; \
             plan with the lower rate."
        )
    } else {
        format!(
            "The rate rose{by} after {after_s:.0} s, from {from} to {to} {what}s per second: this \
             is typical of caches that are filling, or of a volume that is being restored."
        )
    })
}

/// Describes the worst second for the middle of a sentence; stalls are counted.
fn worst_second(rates: &[f64]) -> Option<String> {
    let low = rates.iter().copied().reduce(f64::min)?;
    let still = rates.iter().filter(|&&rate| rate == 0.0).count();
    Some(match still {
        0 => format!("{} in the worst second", format_rate(low)),
        _ => format!("none at all in {still} of {} seconds", rates.len()),
    })
}

/// Returns where to cut the series in two so that each part is as close as possible to its own mean (least
/// squares).
fn step_index(rates: &[f64]) -> usize {
    let total: f64 = rates.iter().sum();
    let mut before = 0.0;
    let mut best = (0, f64::NEG_INFINITY);
    for (index, rate) in rates.iter().enumerate() {
        if index > 0 {
            let (left, right) = (index as f64, (rates.len() - index) as f64);
            let explained = before * before / left + (total - before).powi(2) / right;
            if explained > best.1 {
                best = (index, explained);
            }
        }
        before += rate;
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(group: StepGroup) -> DiskStep {
        DiskStep {
            group,
            name: "s".into(),
            started_ns: 0,
            ended_ns: 0,
            jobs: Vec::new(),
            device_read_bytes: None,
            io_pressure: None,
            load_1m: 0.0,
        }
    }

    fn points(counts: &[u64]) -> Vec<SecondPoint> {
        (0..)
            .zip(counts)
            .map(|(second, &count)| SecondPoint {
                step: "s".into(),
                operation: "read".into(),
                t_ns: second * 1_000_000_000,
                duration_ns: 1_000_000_000,
                count,
                p50_ns: 1,
                p99_ns: 2,
            })
            .collect()
    }

    fn drift_of(counts: &[u64]) -> Option<String> {
        let (step, points) = (step(StepGroup::Sustained), points(counts));
        drift(&Series {
            step: &step,
            operation: "read",
            points: points.iter().collect(),
        })
    }

    #[test]
    fn a_step_down_is_found_and_timed() {
        let mut counts = [3000u64; 30].to_vec();
        counts.extend([600; 70]);
        let text = drift_of(&counts).unwrap();
        assert!(
            text.contains("fell by 80.0 % after 30 s, from 3,000 to 600"),
            "{text}"
        );
        counts.reverse();
        assert!(
            drift_of(&counts)
                .unwrap()
                .contains("rose by 400.0 % after 70 s")
        );
    }

    #[test]
    fn a_steady_rate_is_called_steady_and_a_short_one_nothing() {
        let text = drift_of(&[100, 101, 99, 40, 100, 102, 98, 100]).unwrap();
        assert!(
            text.contains("held") && text.contains("40.0 in the worst second"),
            "{text}"
        );
        assert_eq!(drift_of(&[100, 10]), None);
    }

    #[test]
    fn seconds_in_which_nothing_completed_count() {
        let text = drift_of(&[100, 101, 99, 0, 0, 102, 98, 100]).unwrap();
        assert!(
            text.contains("The rate held") && text.contains("none at all in 2 of 8 seconds"),
            "{text}"
        );
        let fell = drift_of(&[100, 100, 100, 100, 0, 0, 0, 0]).unwrap();
        assert!(fell.contains("fell by 100.0 % after 4 s"), "{fell}");
        let rose = drift_of(&[0, 0, 0, 0, 100, 100, 100, 100]).unwrap();
        assert!(rose.contains("rose after 4 s, from 0"), "{rose}");
        let still = drift_of(&[0, 0, 0, 0, 100, 100, 0, 0, 0, 0]).unwrap();
        assert!(
            still.contains("was uneven") && still.contains("in 8 of 10 seconds"),
            "{still}"
        );
    }

    #[test]
    fn a_second_without_completions_is_a_zero_rate_and_a_gap_in_the_tail() {
        let mut document = seekscope_run::RunDocument::begin("disk", Vec::new());
        document.started.monotonic_ns = 0;
        document.disk = Some(seekscope_run::DiskMeasurement {
            steps: vec![step(StepGroup::Job)],
            ..Default::default()
        });
        let mut seconds = points(&[1000, 0, 1000]);
        // The percentiles of an empty set are 0.
        (seconds[1].p50_ns, seconds[1].p99_ns) = (0, 0);
        // Nothing was ever written.
        let writes = points(&[0, 0, 0]).into_iter().map(|point| SecondPoint {
            operation: "write".into(),
            ..point
        });
        seconds.extend(writes);
        let input = DiskReportInput {
            document: &document,
            histograms: &BTreeMap::new(),
            seconds: &seconds,
            predictions: &[],
        };
        let charts = charts(&input);
        let values: Vec<_> = charts.iter().map(|chart| &chart.lines[0].values).collect();
        assert_eq!(*values[0], [Some(1000.0), Some(0.0), Some(1000.0)]);
        assert_eq!(*values[1], [Some(2.0), None, Some(2.0)]);
        assert!(charts.iter().all(|chart| chart.lines.len() == 1));
    }

    #[test]
    fn the_cut_lies_where_the_rate_changes() {
        assert_eq!(step_index(&[9.0, 9.0, 1.0, 1.0, 1.0]), 2);
        assert_eq!(step_index(&[1.0]), 0);
    }
}
