//! Defines the ways of storing samples that are compared.

use super::samples::{DAY_MS, Samples};

/// The most fields or array elements in one document; with more, every change rewrites too much.
const VALUES_PER_DOCUMENT_MAX: u64 = 2_000;
/// The most dates that fit one `$in`.
const DATES_MAX: u64 = 100_000;

/// The contents of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One sample: `{metric, client, value, date}`.
    Sample,
    /// A month of a series, with a field for each sample: `{metric, client, date, "1": 51, "2": 49}`.
    Month,
    /// All samples of a stretch of time in an array: `{metric, client, date, n, samples: [{t, v}]}`.
    TimeBucket(BucketSpan),
    /// A limited number of samples, in the order of their arrival.
    SizeBucket(u32),
    /// The server's own time-series collection.
    Native,
}

/// Stretches of time of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketSpan {
    Minute,
    Hour,
    Day,
    /// 30 days, counted from the first sample.
    ThirtyDays,
}

impl BucketSpan {
    pub const ALL: [Self; 4] = [Self::Minute, Self::Hour, Self::Day, Self::ThirtyDays];

    pub fn ms(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => DAY_MS,
            Self::ThirtyDays => 30 * DAY_MS,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Minute => "a minute",
            Self::Hour => "an hour",
            Self::Day => "a day",
            Self::ThirtyDays => "30 days",
        }
    }
}

/// Which field the index begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexOrder {
    /// `{metric, client, date}`: suits a query for one series.
    SeriesFirst,
    /// `{date, metric, client}`: new entries are appended at the end; a query names every date with `$in`.
    DateFirst,
}

/// A way of storing samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    pub shape: Shape,
    pub order: IndexOrder,
    /// Documents of each series are written together, filled with zeros, before the first sample.
    pub preallocated: bool,
}

impl Variant {
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            order: IndexOrder::SeriesFirst,
            preallocated: false,
        }
    }

    /// Returns the name for people.
    pub fn name(&self) -> String {
        match self.shape {
            Shape::Sample => "one document per sample".into(),
            Shape::Month => "one document per month".into(),
            Shape::TimeBucket(span) => format!("buckets of {}", span.name()),
            Shape::SizeBucket(size) => format!("buckets of {size} samples"),
            Shape::Native => "time-series collection".into(),
        }
    }

    /// Returns the name of its collection, which differs from that of every other variant.
    pub fn collection(&self) -> String {
        let shape = match self.shape {
            Shape::Sample => "sample".into(),
            Shape::Month => "month".into(),
            Shape::TimeBucket(span) => format!("bucket_{}s", span.ms() / 1000),
            Shape::SizeBucket(size) => format!("bucket_{size}"),
            Shape::Native => "native".into(),
        };
        let order = match self.order {
            IndexOrder::SeriesFirst => "",
            IndexOrder::DateFirst => "_date_first",
        };
        let zeros = if self.preallocated {
            "_preallocated"
        } else {
            ""
        };
        format!("metrics_{shape}{order}{zeros}")
    }

    /// Returns the key pattern of its index, as JSON.
    pub fn index_json(&self) -> &'static str {
        match (self.shape, self.order) {
            (Shape::Native, _) => r#"{"meta.metric":1,"meta.client":1,"date":1}"#,
            (_, IndexOrder::SeriesFirst) => r#"{"metric":1,"client":1,"date":1}"#,
            (_, IndexOrder::DateFirst) => r#"{"date":1,"metric":1,"client":1}"#,
        }
    }

    /// Returns why it makes no sense for these samples; `None` if it does.
    pub fn unfit(&self, samples: &Samples) -> Option<String> {
        let interval_ms = samples.interval_ms();
        match self.shape {
            Shape::SizeBucket(_) | Shape::Native if self.preallocated => {
                return Some("which samples a bucket will hold is not known beforehand".into());
            }
            Shape::SizeBucket(_) | Shape::Native if self.order == IndexOrder::DateFirst => {
                return Some("a query by $in must know the dates of its documents".into());
            }
            Shape::Month
                if 31 * DAY_MS / interval_ms
                    > i64::try_from(VALUES_PER_DOCUMENT_MAX).unwrap_or(0) =>
            {
                return Some(format!(
                    "a month would have {} fields",
                    31 * DAY_MS / interval_ms
                ));
            }
            Shape::TimeBucket(span) if span.ms() < 2 * interval_ms => {
                return Some(format!("{} holds one sample at most", span.name()));
            }
            Shape::TimeBucket(span)
                if span.ms() / interval_ms
                    > i64::try_from(VALUES_PER_DOCUMENT_MAX).unwrap_or(0) =>
            {
                return Some(format!(
                    "{} holds {} samples",
                    span.name(),
                    span.ms() / interval_ms
                ));
            }
            _ => {}
        }
        let dates = match self.shape {
            Shape::Sample => samples.year_slots(),
            _ => 0,
        };
        (self.order == IndexOrder::DateFirst && dates > DATES_MAX)
            .then(|| format!("a query would name {dates} dates"))
    }

    /// Returns all that make sense for these samples: every shape in its usual form first, then the other
    /// index order and preallocation for those with which the experiments behind this lab tried them.
    pub fn all(samples: &Samples, bucket_samples: u32) -> Vec<Self> {
        let spans = BucketSpan::ALL.map(Shape::TimeBucket);
        let shapes = [Shape::Sample, Shape::Month].into_iter();
        let shapes = shapes
            .chain(spans)
            .chain([Shape::SizeBucket(bucket_samples), Shape::Native]);
        let date_first = |shape| Self {
            order: IndexOrder::DateFirst,
            ..Self::new(shape)
        };
        let preallocated = |shape| Self {
            preallocated: true,
            ..Self::new(shape)
        };
        let mut all: Vec<Self> = shapes.map(Self::new).collect();
        all.push(date_first(Shape::Sample));
        all.extend([Shape::Sample, Shape::Month].map(preallocated));
        all.extend(spans.map(preallocated));
        all.retain(|variant| variant.unfit(samples).is_none());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::SampleOptions;
    use super::*;

    fn samples(per_day: u32) -> Samples {
        Samples::new(SampleOptions {
            per_day,
            ..SampleOptions::default()
        })
    }

    #[test]
    fn shapes_that_make_no_sense_say_why() {
        let minutely = samples(1440);
        let month = Variant::new(Shape::Month);
        assert_eq!(month.unfit(&samples(1)), None);
        assert_eq!(
            month.unfit(&minutely).unwrap(),
            "a month would have 44640 fields"
        );
        let minute = Variant::new(Shape::TimeBucket(BucketSpan::Minute));
        assert!(minute.unfit(&minutely).unwrap().contains("one sample"));
        let native = Variant {
            preallocated: true,
            ..Variant::new(Shape::Native)
        };
        assert!(native.unfit(&samples(1)).is_some());
        let dates = Variant {
            order: IndexOrder::DateFirst,
            ..Variant::new(Shape::Sample)
        };
        assert!(dates.unfit(&minutely).unwrap().contains("525600 dates"));
    }

    #[test]
    fn every_variant_has_a_collection_of_its_own() {
        for per_day in [1, 24, 1440] {
            let all = Variant::all(&samples(per_day), 100);
            let mut names: Vec<String> = all.iter().map(Variant::collection).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all.len());
            assert!(all.contains(&Variant::new(Shape::Sample)));
        }
        assert_eq!(Variant::all(&samples(1), 100).len(), 9);
    }
}
