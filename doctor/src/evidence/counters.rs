//! Sampled counters and gauges, by source and name.

use std::collections::HashMap;

use seekscope_run::{CounterSample, shifted};

/// 0 while no checkpoint runs. The names are those before and from WiredTiger 11.3 on (MongoDB 7.1), as those of
/// [`CHECKPOINT_LAST_MS`].
pub const CHECKPOINT_STATE: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoint currently running",
    "wiredTiger.checkpoint.progress state",
];
/// Duration of the checkpoint that ended last, ms. While one runs this is still the one before.
pub const CHECKPOINT_LAST_MS: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
    "wiredTiger.checkpoint.most recent time (msecs)",
];

/// The series of one source by their names.
pub(crate) type Named = HashMap<String, Series>;

/// All of a run's counters.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// The series, by source.
    series: HashMap<String, Named>,
}

/// The values of one counter or gauge, in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// (CLOCK_MONOTONIC ns, value as read).
    pub points: Vec<(u64, f64)>,
}

impl Counters {
    /// Arranges samples by source and name.
    pub fn new(samples: impl IntoIterator<Item = CounterSample>) -> Self {
        let mut counters = Self::default();
        for sample in samples {
            let names = counters.series.entry(sample.source).or_default();
            let series = names.entry(sample.name).or_default();
            series.points.push((sample.t_ns, sample.value));
        }
        for series in counters.all_mut() {
            series.points.sort_by_key(|(t_ns, _)| *t_ns);
        }
        counters
    }

    /// Adds samples that were taken after all that are there.
    pub fn append(&mut self, samples: &[CounterSample]) {
        for sample in samples {
            // Nearly always it is known, and no name is copied.
            let known = self.series.get_mut(&sample.source);
            let series = match known.and_then(|names| names.get_mut(&sample.name)) {
                Some(series) => series,
                None => self
                    .series
                    .entry(sample.source.clone())
                    .or_default()
                    .entry(sample.name.clone())
                    .or_default(),
            };
            series.points.push((sample.t_ns, sample.value));
        }
    }

    /// Forgets samples from before `t_ns`, CLOCK_MONOTONIC, and what has none left.
    pub fn forget_before(&mut self, t_ns: u64) {
        for names in self.series.values_mut() {
            names.retain(|_, series| {
                let old = series
                    .points
                    .partition_point(|(then_ns, _)| *then_ns < t_ns);
                series.points.drain(..old);
                !series.points.is_empty()
            });
        }
        self.series.retain(|_, names| !names.is_empty());
    }

    /// Returns the samples of one source from up to `t_ns`, CLOCK_MONOTONIC, alone.
    pub fn until(&self, source: &str, t_ns: u64) -> Self {
        let mut series = HashMap::new();
        if let Some(names) = self.series.get(source) {
            let mut names = names.clone();
            names.retain(|_, series| {
                series.points.retain(|(then_ns, _)| *then_ns <= t_ns);
                !series.points.is_empty()
            });
            series.insert(source.to_owned(), names);
        }
        Self { series }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Series> {
        self.series.values_mut().flat_map(HashMap::values_mut)
    }

    /// Adds a source, unless it is known already.
    pub(crate) fn add(&mut self, source: String, series: Named) {
        self.series.entry(source).or_insert(series);
    }

    /// Returns the counters at the times of another host's clock ([`seekscope_run::ClockOffset::shift_to`]).
    pub(crate) fn shifted(mut self, shift_ns: i128) -> Self {
        for series in self.all_mut() {
            let points = series.points.iter_mut();
            points.for_each(|(t_ns, _)| *t_ns = shifted(*t_ns, shift_ns));
        }
        self
    }

    /// Returns all series by source.
    pub(crate) fn into_sources(self) -> impl Iterator<Item = (String, Named)> {
        self.series.into_iter()
    }

    /// Returns a series, if it was sampled at all. Names are those of the source: for `serverStatus` the path
    /// with dots ("wiredTiger.cache.bytes currently in the cache").
    pub fn get(&self, source: &str, name: &str) -> Option<&Series> {
        self.series.get(source)?.get(name)
    }

    /// Returns the sources, in alphabetical order.
    pub fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = self.series.keys().map(String::as_str).collect();
        sources.sort_unstable();
        sources
    }

    /// Returns the series of a source whose names begin with `prefix`.
    pub fn beginning<'a>(
        &'a self,
        source: &str,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Series)> {
        let names = self.series.get(source).into_iter().flatten();
        names
            .filter(move |(name, _)| name.starts_with(prefix))
            .map(|(name, series)| (name.as_str(), series))
    }
}

impl Series {
    /// Returns the time from the first to the last value, s.
    pub fn span_s(&self) -> f64 {
        match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => last.0.saturating_sub(first.0) as f64 / 1e9,
            _ => 0.0,
        }
    }

    /// Returns how much a counter rose. A fall means that the server was restarted and counts from zero.
    /// `None` with fewer than two values.
    pub fn increase(&self) -> Option<f64> {
        (self.points.len() >= 2).then(|| {
            let steps = self.points.windows(2);
            steps.map(|pair| rise(pair[0].1, pair[1].1)).sum()
        })
    }

    /// Returns [`Self::increase`] per second.
    pub fn rate_per_s(&self) -> Option<f64> {
        let span_s = self.span_s();
        (span_s > 0.0).then_some(())?;
        Some(self.increase()? / span_s)
    }

    /// Returns [`Self::increase`] per second between two times, ns; `None` with fewer than two values there.
    pub(crate) fn rate_per_s_between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let first = self.points.partition_point(|(t_ns, _)| *t_ns < from_ns);
        let points = self.points[first..].iter();
        let points = points.take_while(|(t_ns, _)| *t_ns <= to_ns);
        let points = points.copied().collect();
        Self { points }.rate_per_s()
    }

    /// Returns (middle of the step, ns; rise per second) for each step of a counter.
    pub fn rates(&self) -> Vec<(u64, f64)> {
        let steps = self.points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
        steps
            .map(|pair| {
                let (from, to) = (pair[0], pair[1]);
                let seconds = (to.0 - from.0) as f64 / 1e9;
                (from.0 + (to.0 - from.0) / 2, rise(from.1, to.1) / seconds)
            })
            .collect()
    }

    /// Returns the value of the sample that was taken at exactly this time; counters of one source are
    /// sampled together.
    pub fn at(&self, t_ns: u64) -> Option<f64> {
        let at = self.points.binary_search_by_key(&t_ns, |(t_ns, _)| *t_ns);
        at.ok().map(|at| self.points[at].1)
    }

    pub fn first(&self) -> Option<f64> {
        self.points.first().map(|(_, value)| *value)
    }

    pub fn last(&self) -> Option<f64> {
        self.points.last().map(|(_, value)| *value)
    }

    pub fn min(&self) -> Option<f64> {
        self.values().reduce(f64::min)
    }

    pub fn max(&self) -> Option<f64> {
        self.values().reduce(f64::max)
    }

    /// Returns the mean of a gauge; all values have equal weight.
    pub fn mean(&self) -> Option<f64> {
        let count = self.points.len();
        (count > 0).then(|| self.values().sum::<f64>() / count as f64)
    }

    /// Returns the share (0..=1) of the values for which `holds`; 0 without values.
    pub fn share(&self, holds: impl Fn(f64) -> bool) -> f64 {
        let count = self.points.len().max(1);
        self.values().filter(|value| holds(*value)).count() as f64 / count as f64
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|(_, value)| *value)
    }
}

fn rise(from: f64, to: f64) -> f64 {
    if to >= from { to - from } else { to }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(values: &[(u64, f64)]) -> Counters {
        Counters::new(values.iter().map(|&(s, value)| CounterSample {
            t_ns: s * 1_000_000_000,
            source: "diskstats".into(),
            name: "reads".into(),
            value,
        }))
    }

    #[test]
    fn a_restart_is_not_a_fall() {
        let counters = counters(&[(3, 30.0), (1, 100.0), (2, 110.0), (5, 50.0)]);
        let reads = counters.get("diskstats", "reads").unwrap();
        assert_eq!(reads.increase(), Some(10.0 + 30.0 + 20.0));
        assert_eq!(reads.rate_per_s(), Some(15.0));
        let rates: Vec<f64> = reads.rates().into_iter().map(|(_, rate)| rate).collect();
        assert_eq!(rates, [10.0, 30.0, 10.0]);
        assert_eq!((reads.min(), reads.max()), (Some(30.0), Some(110.0)));
        assert_eq!(reads.share(|v| v > 40.0), 0.75);
        assert_eq!(counters.get("diskstats", "writes"), None);
        assert_eq!(counters.beginning("diskstats", "re").count(), 1);
    }

    #[test]
    fn what_is_appended_and_forgotten_leaves_a_window() {
        let mut window = Counters::default();
        for s in 1..=5u32 {
            let sample = |source: &str, name: &str| CounterSample {
                t_ns: u64::from(s) * 1_000_000_000,
                source: source.into(),
                name: name.into(),
                value: f64::from(s) * 10.0,
            };
            window.append(&[sample("diskstats", "reads")]);
            if s == 1 {
                window.append(&[sample("diskstats", "gone"), sample("gone", "all")]);
            }
        }
        window.forget_before(3_000_000_000);
        let reads = window.get("diskstats", "reads").unwrap();
        assert_eq!((reads.first(), reads.increase()), (Some(30.0), Some(20.0)));
        assert_eq!(window.get("diskstats", "gone"), None);
        assert_eq!(window.sources(), ["diskstats"]);
    }

    #[test]
    fn one_value_has_no_rate() {
        let counters = counters(&[(1, 5.0)]);
        let reads = counters.get("diskstats", "reads").unwrap();
        assert_eq!((reads.increase(), reads.rate_per_s()), (None, None));
        assert_eq!(Series::default().mean(), None);
    }
}
