//! Draws latencies as curves: how the tail grows.

use hdrhistogram::Histogram;

use super::charts::{Line, LineChart, Scale};

/// Points per factor of ten on the axis.
const STEPS_PER_DECADE: f64 = 12.0;
const STEPS_MAX: u32 = 84;

/// Draws the curves of latencies in ns, each with its name and up to the last percentile that it supports;
/// `None` when none is long enough.
pub(crate) fn chart<'a>(
    id: &str,
    named: impl IntoIterator<Item = (&'a str, &'a Histogram<u64>)>,
) -> Option<LineChart> {
    let xs: Vec<f64> = (0..=STEPS_MAX)
        .map(|step| 10f64.powf(f64::from(step) / STEPS_PER_DECADE))
        .collect();
    let steps =
        |histogram: &Histogram<u64>| xs.iter().filter(|&&x| x <= histogram.len() as f64).count();
    let curves: Vec<(&str, &Histogram<u64>)> = named
        .into_iter()
        .filter(|(_, histogram)| steps(histogram) > 1)
        .collect();
    let longest = curves.iter().map(|(_, histogram)| steps(histogram)).max()?;
    let values = |histogram: &Histogram<u64>| {
        let latency = |&x: &f64| {
            (x <= histogram.len() as f64).then(|| histogram.value_at_quantile(1.0 - 1.0 / x) as f64)
        };
        xs.iter().take(longest).map(latency).collect()
    };
    let lines = curves
        .iter()
        .enumerate()
        .map(|(index, (name, histogram))| Line::numbered(index, name, values(histogram)))
        .collect();
    Some(LineChart::new(
        id,
        (Scale::Percentile, Scale::LatencyNs),
        xs.iter().take(longest).copied().collect(),
        lines,
    ))
}
