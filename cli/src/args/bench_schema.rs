//! What may be typed after `seekscope bench schema`.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use seekscope_run::units::parse_duration;
use seekscope_workload::schema::variant::BucketSpan;
use seekscope_workload::schema::{IndexOrder, SampleOptions, Shape, ValueKind, Variant};

use super::bench_common::{BenchTargetArgs, KeepArgs};
use super::{EmulatedDisk, share};

/// Samples of a bucket of limited size, unless told otherwise.
pub const BUCKET_SAMPLES: u32 = 100;
const METRICS: u32 = 10;
const DAY_MS: u128 = 86_400_000;

/// Compare ways of storing time series: a document per sample or month, buckets, index orders, pre-allocation
///
/// Stores the same samples in each way, in the order in which live metrics arrive, and shows how fast that is as
/// the data grow, how long reading one series for a year takes with cold caches, and how much disk space it needs.
/// A local server is started anew for each way; on a server that you name, the caches stay as they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench schema --scale medium --disk hdd
  seekscope bench schema --series 200 --interval 1m --years 1 --shapes sample,hour,day,100,native")]
pub struct SchemaArgs {
    #[command(flatten)]
    pub target: BenchTargetArgs,
    /// small: 1,000 series, daily for a year; medium: 5,000; large: 20,000 for 2 years
    #[arg(long, value_name = "SCALE", value_enum, default_value_t = ScaleName::Small)]
    pub scale: ScaleName,
    /// Number of series, each a metric of a client [default: the scale's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub series: Option<u32>,
    /// Years of samples; a year has 365 days [default: the scale's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub years: Option<u32>,
    /// Days of samples, instead of --years
    #[arg(long, value_name = "N", conflicts_with = "years", value_parser = clap::value_parser!(u32).range(1..=18_250))]
    pub days: Option<u32>,
    /// Interval between samples: 1d, or a part of a day such as 1h or 1m
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = per_day)]
    pub interval: PerDay,
    /// Ways to store, separated by commas: sample, month, minute, hour, day, 30days (buckets), a number (buckets
    /// of that many samples), native; each may be followed by :date-first (index order) or :preallocated
    /// [default: all that make sense]
    #[arg(long, value_name = "WAYS", value_delimiter = ',')]
    pub shapes: Vec<WayName>,
    /// Share of samples that are missing
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub missing: f64,
    /// Share of samples that arrive up to five intervals late
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub late: f64,
    /// walk: whole numbers that change little; random: fractions that hardly compress
    #[arg(long, value_name = "KIND", value_enum, default_value_t = ValuesName::Walk)]
    pub values: ValuesName,
    /// Samples per command
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch: u32,
    /// Number of series that are read for a year, each with cold caches
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub queries: u32,
    /// Local server: also measure on a slower disk, emulated by throttling its reads
    #[arg(long, value_name = "DISK", conflicts_with = "uri")]
    pub disk: Option<EmulatedDisk>,
    /// Seed for the samples; the same seed gives the same samples
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub keep: KeepArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScaleName {
    Small,
    Medium,
    Large,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ValuesName {
    Walk,
    Random,
}

/// Samples of a series per day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerDay(pub u32);

/// A way of storing samples, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayName(pub Variant);

impl SchemaArgs {
    /// The samples that are meant.
    pub fn samples(&self) -> SampleOptions {
        let (series, years) = match self.scale {
            ScaleName::Small => (1_000, 1),
            ScaleName::Medium => (5_000, 1),
            ScaleName::Large => (20_000, 2),
        };
        let series = self.series.unwrap_or(series);
        // A divisor: no series is left out.
        let metrics = if series.is_multiple_of(METRICS) {
            METRICS
        } else {
            1
        };
        SampleOptions {
            seed: self.seed,
            metrics,
            clients: series / metrics,
            days: self.days.unwrap_or(365 * self.years.unwrap_or(years)),
            per_day: self.interval.0,
            missing_share: self.missing,
            late_share: self.late,
            values: match self.values {
                ValuesName::Walk => ValueKind::Walk,
                ValuesName::Random => ValueKind::Random,
            },
            ..SampleOptions::default()
        }
    }
}

/// A day divided by a whole number of up to 1440.
fn per_day(text: &str) -> Result<PerDay, String> {
    let expected = || {
        "a day or a part of it of at least a minute is expected, such as 24h, 1h, 1m".to_string()
    };
    let text = if text == "1d" { "24h" } else { text };
    let ms = parse_duration(text).map_err(|_| expected())?.as_millis();
    match DAY_MS.checked_rem(ms) {
        Some(0) if ms >= 60_000 => u32::try_from(DAY_MS / ms)
            .map(PerDay)
            .map_err(|_| expected()),
        _ => Err(expected()),
    }
}

impl FromStr for WayName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}`: sample, month, minute, hour, day, 30days, a number of samples, or native is expected, \
                 followed by :date-first or :preallocated where wanted"
            )
        };
        let mut words = text.split(':');
        let shape = match words.next().unwrap_or_default() {
            "sample" => Shape::Sample,
            "month" => Shape::Month,
            "minute" => Shape::TimeBucket(BucketSpan::Minute),
            "hour" => Shape::TimeBucket(BucketSpan::Hour),
            "day" => Shape::TimeBucket(BucketSpan::Day),
            "30days" => Shape::TimeBucket(BucketSpan::ThirtyDays),
            "native" => Shape::Native,
            number => match number.parse() {
                Ok(samples @ 2..=2_000) => Shape::SizeBucket(samples),
                _ => return Err(expected()),
            },
        };
        let mut variant = Variant::new(shape);
        for word in words {
            match word {
                "date-first" => variant.order = IndexOrder::DateFirst,
                "preallocated" => variant.preallocated = true,
                _ => return Err(expected()),
            }
        }
        Ok(Self(variant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_named_with_what_is_unusual_about_them() {
        let way = |text: &str| text.parse::<WayName>().map(|way| way.0);
        assert_eq!(way("sample"), Ok(Variant::new(Shape::Sample)));
        assert_eq!(way("50"), Ok(Variant::new(Shape::SizeBucket(50))));
        let both = Variant {
            order: IndexOrder::DateFirst,
            preallocated: true,
            ..Variant::new(Shape::Month)
        };
        assert_eq!(way("month:date-first:preallocated"), Ok(both));
        for bad in ["", "year", "1", "5000", "month:", "month:zeros", "-3"] {
            assert!(way(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_divide_a_day() {
        for (text, count) in [
            ("24h", 1),
            ("1d", 1),
            ("1h", 24),
            ("1m", 1440),
            ("60", 1440),
        ] {
            assert_eq!(per_day(text), Ok(PerDay(count)));
        }
        for bad in ["7h", "1s", "0", "48h", "x", ""] {
            assert!(per_day(bad).is_err(), "{bad}");
        }
    }
}
