//! Latencies as curves: how the tail grows.

use super::charts::{Line, LineChart, Scale};

/// Points per factor of ten on the axis.
const STEPS_PER_DECADE: f64 = 12.0;
const STEPS_MAX: u32 = 84;

/// A curve's name, how many latencies it is of, and its latency in ns at a quantile.
pub(crate) struct Curve<'a> {
    pub(crate) label: &'a str,
    pub(crate) count: u64,
    pub(crate) at_quantile: Box<dyn Fn(f64) -> u64 + 'a>,
}

/// Draws the curves, each as far as its latencies are enough to speak of a percentile; `None`
/// when none is long enough.
pub(crate) fn chart(id: &str, curves: &[Curve<'_>]) -> Option<LineChart> {
    let xs: Vec<f64> = (0..=STEPS_MAX)
        .map(|step| 10f64.powf(f64::from(step) / STEPS_PER_DECADE))
        .collect();
    let known = |curve: &Curve<'_>| xs.iter().filter(|&&x| x <= curve.count as f64).count();
    let longest = curves.iter().map(known).max().filter(|&steps| steps > 1)?;
    let values = |curve: &Curve<'_>| {
        let latency =
            |&x: &f64| (x <= curve.count as f64).then(|| (curve.at_quantile)(1.0 - 1.0 / x) as f64);
        xs.iter().take(longest).map(latency).collect()
    };
    let lines = curves
        .iter()
        .filter(|curve| known(curve) > 1)
        .enumerate()
        .map(|(index, curve)| Line::numbered(index, curve.label, values(curve)))
        .collect();
    Some(LineChart {
        id: id.into(),
        x: Scale::Percentile,
        y: Scale::LatencyNs,
        dots: false,
        xs: xs.iter().take(longest).copied().collect(),
        lines,
        marks: Vec::new(),
    })
}
