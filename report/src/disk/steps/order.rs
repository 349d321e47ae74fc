//! Finds reads through a cold page cache: in which order, and with how much read-ahead.

use seekscope_run::{AccessKind, DiskMeasurement, JobFacts, ReadAdvice, StepGroup};

use super::{Measured, is_held, of_group};

/// The same blocks in different orders, through a cold page cache.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Orders<'a> {
    pub(in super::super) in_order: Option<Measured<'a>>,
    /// Runs of adjacent blocks, by their length, the longest first.
    pub(in super::super) runs: Vec<(u64, Measured<'a>)>,
    pub(in super::super) shuffled: Option<Measured<'a>>,
}

impl<'a> Orders<'a> {
    /// Collects the steps of [`StepGroup::Order`].
    pub(in super::super) fn of(measurement: &'a DiskMeasurement) -> Self {
        let mut orders = Self::default();
        for measured in of_group(measurement, StepGroup::Order) {
            match (measured.facts().access, measured.facts().run_blocks) {
                (AccessKind::Read, _) => orders.in_order = Some(measured),
                (_, Some(blocks)) if blocks > 1 => orders.runs.push((blocks, measured)),
                _ => orders.shuffled = Some(measured),
            }
        }
        orders
            .runs
            .sort_by_key(|&(blocks, _)| std::cmp::Reverse(blocks));
        orders
    }

    /// Returns the order gain: rate in order by rate shuffled. `None` for reads held to a rate.
    pub(in super::super) fn gain(&self) -> Option<f64> {
        let (in_order, shuffled) = (self.in_order?, self.shuffled?);
        if is_held(&in_order) || is_held(&shuffled) {
            return None;
        }
        Some(in_order.job.iops() / shuffled.job.iops()).filter(|gain| gain.is_finite())
    }

    /// Returns all of them, from disk order to shuffled, with their names.
    pub(in super::super) fn named(&self) -> Vec<(String, Measured<'a>)> {
        let runs = self.runs.iter();
        let in_order = self.in_order.map(|m| ("disk order".to_string(), m));
        let shuffled = self.shuffled.map(|m| ("shuffled".to_string(), m));
        (in_order.into_iter())
            .chain(runs.map(|&(blocks, m)| (format!("runs of {blocks}"), m)))
            .chain(shuffled)
            .collect()
    }
}

/// What decided how far to read ahead, from nothing to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Window {
    Off,
    Bytes(u64),
    /// The device's setting.
    Device,
    /// The kernel, told that accesses are sequential.
    Advised,
}

impl Window {
    fn of(job: &JobFacts) -> Self {
        match (job.window_bytes, job.advice) {
            (Some(bytes), _) => Self::Bytes(bytes),
            (None, ReadAdvice::Normal) => Self::Device,
            (None, ReadAdvice::Random) => Self::Off,
            (None, ReadAdvice::Sequential) => Self::Advised,
        }
    }
}

/// Cold buffered reads at one read-ahead window.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct WindowPoint<'a> {
    pub(in super::super) window: Window,
    pub(in super::super) in_order: Option<Measured<'a>>,
    pub(in super::super) random: Option<Measured<'a>>,
}

/// Returns the read-ahead sweep, by rising window.
pub(in super::super) fn windows(measurement: &DiskMeasurement) -> Vec<WindowPoint<'_>> {
    let mut points: Vec<WindowPoint<'_>> = Vec::new();
    for measured in of_group(measurement, StepGroup::ReadAhead) {
        let window = Window::of(measured.facts());
        let index = points.iter().position(|point| point.window == window);
        let index = index.unwrap_or_else(|| {
            points.push(WindowPoint {
                window,
                in_order: None,
                random: None,
            });
            points.len() - 1
        });
        if let Some(point) = points.get_mut(index) {
            if measured.facts().access.is_random() {
                point.random = Some(measured);
            } else {
                point.in_order = Some(measured);
            }
        }
    }
    points.sort_by_key(|point| point.window);
    points
}

#[cfg(test)]
mod tests {
    use super::super::super::made_up::{MadeUp, random};
    use super::*;

    #[test]
    fn windows_are_sorted_from_nothing_to_most() {
        let mut made_up = MadeUp::default();
        let cases = [
            (None, ReadAdvice::Sequential),
            (None, ReadAdvice::Normal),
            (Some(1 << 20), ReadAdvice::Random),
            (Some(8 << 10), ReadAdvice::Random),
            (None, ReadAdvice::Random),
        ];
        for (window_bytes, advice) in cases {
            let mut job = random(4096, 1);
            (job.window_bytes, job.advice) = (window_bytes, advice);
            made_up.step(StepGroup::ReadAhead, "", job, 10.0, 1);
        }
        let order: Vec<Window> = windows(&made_up.measurement)
            .iter()
            .map(|p| p.window)
            .collect();
        let sizes = [Window::Bytes(8 << 10), Window::Bytes(1 << 20)];
        assert_eq!(
            order,
            [
                Window::Off,
                sizes[0],
                sizes[1],
                Window::Device,
                Window::Advised
            ]
        );
    }
}
