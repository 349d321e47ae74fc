//! The samples of one moment, of which every format is made.

use crate::format::{Format, TextFormat};
use crate::latencies::{CLASSIC_SERIES, Latencies};
use crate::metrics::Metric;
use crate::{protobuf, text};

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// What a metric is for one set of labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: Labels,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Histogram(Box<Latencies>),
}

impl Sample {
    /// Returns the number of time series of it in the text formats.
    fn series(&self) -> usize {
        match self.value {
            Value::Number(_) => 1,
            Value::Histogram(_) => CLASSIC_SERIES,
        }
    }

    /// Returns the number of time series that a scraper keeps of it at most.
    fn series_max(&self) -> usize {
        match self.value {
            Value::Number(_) => 1,
            // The native one beside the classic ones.
            Value::Histogram(_) => CLASSIC_SERIES + 1,
        }
    }
}

/// All samples, by family in the order in which each family first appeared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    families: Vec<(&'static Metric, Vec<Sample>)>,
}

impl Page {
    /// Adds a sample.
    pub fn add(&mut self, metric: &'static Metric, labels: Labels, value: f64) {
        let value = Value::Number(value);
        self.sample(metric, Sample { labels, value });
    }

    /// Adds a histogram.
    pub fn add_histogram(&mut self, metric: &'static Metric, labels: Labels, calls: Latencies) {
        let value = Value::Histogram(Box::new(calls));
        self.sample(metric, Sample { labels, value });
    }

    fn sample(&mut self, metric: &'static Metric, sample: Sample) {
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
                self.sample(metric, sample);
            }
        }
    }

    /// Keeps the first samples, by family, as many as there is room for.
    pub(crate) fn truncate(&mut self, series_max: usize) {
        let mut left = Some(series_max);
        for (_, samples) in &mut self.families {
            samples.retain(|sample| {
                left = left.and_then(|left| left.checked_sub(sample.series_max()));
                left.is_some()
            });
        }
        self.families.retain(|(_, samples)| !samples.is_empty());
    }

    /// Returns all families with their samples.
    pub(crate) fn families(&self) -> impl Iterator<Item = (&'static Metric, &[Sample])> {
        let families = self.families.iter();
        families.map(|(metric, samples)| (*metric, samples.as_slice()))
    }

    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.families.iter().flat_map(|(_, samples)| samples)
    }

    /// Returns the number of time series in the text formats.
    pub fn series(&self) -> usize {
        self.samples().map(Sample::series).sum()
    }

    /// Returns the number of time series that a scraper keeps at most. It may take classic and native histograms from
    /// the format that has both.
    pub fn series_max(&self) -> usize {
        self.samples().map(Sample::series_max).sum()
    }

    /// Returns the page in this format.
    pub fn body(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Text(format) => self.text(format).into_bytes(),
            Format::Protobuf => protobuf::encoded(self),
        }
    }

    /// Returns the page as text.
    pub fn text(&self, format: TextFormat) -> String {
        text::written(self, format)
    }
}
