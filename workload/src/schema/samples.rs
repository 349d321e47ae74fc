//! Generates the data: samples of series over years. Whether a sample exists, when it arrives and its value
//! are pure functions of (seed, series, slot), so any process can compute what a query must find.
//!
//! A series is a metric of a client. Its samples are evenly spaced in time, in slots numbered from 0.

use seekscope_stats::{SplitMix64, shuffled};

/// 2021-01-01T00:00:00Z: the first slot. A non-leap year begins there.
pub const START_MS: i64 = 1_609_459_200_000;
pub const DAY_MS: i64 = 86_400_000;
/// Number of days counted as a year: 365.
pub const YEAR_DAYS: u64 = 365;

/// Options for the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleOptions {
    pub seed: u64,
    pub metrics: u32,
    pub clients: u32,
    /// Length of each series, days.
    pub days: u32,
    /// Samples of a series per day, 1 to 1440.
    pub per_day: u32,
    /// Share of samples that were never taken, 0 to below 1.
    pub missing_share: f64,
    /// Share of samples that arrive late, 0 to 1.
    pub late_share: f64,
    /// Largest delay of late ones, slots; the smallest is 1.
    pub late_slots: u32,
    pub values: ValueKind,
}

impl Default for SampleOptions {
    /// Returns options for a thousand series, daily, for a year; complete and in order.
    fn default() -> Self {
        Self {
            seed: 1,
            metrics: 10,
            clients: 100,
            days: 365,
            per_day: 1,
            missing_share: 0.0,
            late_share: 0.0,
            late_slots: 5,
            values: ValueKind::Walk,
        }
    }
}

/// How successive values are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A random walk in whole numbers, like counters and gauges: compresses well. BSON int32.
    Walk,
    /// Unrelated fractions of 0 to 100: hardly compress. BSON double.
    Random,
}

/// One sample, identified by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub series: u32,
    pub slot: u64,
}

/// Number of samples that a query found or should find, and their sum. Values are multiples of 2^-20 and sums
/// stay below 2^33, so sums are exact in any order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Answer {
    pub samples: u64,
    pub sum: f64,
}

impl Answer {
    pub fn add(&mut self, value: f64) {
        self.samples += 1;
        self.sum += value;
    }
}

/// The data set; cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    options: SampleOptions,
}

/// The purpose of a draw for a sample, so that draws are independent.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Missing = 1,
    Late = 2,
    Delay = 3,
    Value = 4,
    Order = 5,
}

impl Samples {
    /// Creates the data set; options out of range are clamped.
    pub fn new(options: SampleOptions) -> Self {
        Self {
            options: SampleOptions {
                metrics: options.metrics.max(1),
                clients: options.clients.max(1),
                days: options.days.max(1),
                per_day: options.per_day.clamp(1, 1440),
                missing_share: options.missing_share.clamp(0.0, 0.99),
                late_share: options.late_share.clamp(0.0, 1.0),
                ..options
            },
        }
    }

    pub fn options(&self) -> &SampleOptions {
        &self.options
    }

    pub fn series(&self) -> u32 {
        self.options.metrics.saturating_mul(self.options.clients)
    }

    pub fn metric(&self, series: u32) -> String {
        format!("metric_{:03}", series % self.options.metrics)
    }

    pub fn client(&self, series: u32) -> i32 {
        i32::try_from(series / self.options.metrics).unwrap_or(i32::MAX)
    }

    /// Returns the number of slots of a series.
    pub fn slots(&self) -> u64 {
        u64::from(self.options.days) * u64::from(self.options.per_day)
    }

    /// Returns the slots of the year that is queried: the first, or all if there are fewer.
    pub fn year_slots(&self) -> u64 {
        u64::from(self.options.days).min(YEAR_DAYS) * u64::from(self.options.per_day)
    }

    /// Returns the distance between slots, ms.
    pub fn interval_ms(&self) -> i64 {
        DAY_MS / i64::from(self.options.per_day)
    }

    /// Returns the time of a slot, ms since 1970.
    pub fn time_ms(&self, slot: u64) -> i64 {
        START_MS + i64::try_from(slot).unwrap_or(i64::MAX / DAY_MS) * self.interval_ms()
    }

    /// Returns the sample's value, which is never 0; `None` if it was never taken.
    pub fn value(&self, at: Place) -> Option<f64> {
        if self.chance(at, Draw::Missing) < self.options.missing_share {
            return None;
        }
        Some(match self.options.values {
            ValueKind::Walk => self.walk(at),
            // 27 random bits after the point's seven.
            ValueKind::Random => {
                ((self.chance(at, Draw::Value) * 104_857_599.0).floor() + 1.0) / 1_048_576.0
            }
        })
    }

    /// Returns the number of slots after its own in which the sample arrives.
    fn delay(&self, at: Place) -> u64 {
        if self.options.late_slots == 0 || self.chance(at, Draw::Late) >= self.options.late_share {
            return 0;
        }
        1 + self.draw(at, Draw::Delay) % u64::from(self.options.late_slots)
    }

    /// Returns the longest delay, slots.
    fn delay_max(&self) -> u64 {
        let any = self.options.late_share > 0.0;
        if any {
            u64::from(self.options.late_slots)
        } else {
            0
        }
    }

    /// Returns the number of slots of time until everything has arrived.
    pub fn arrival_slots(&self) -> u64 {
        self.slots() + self.delay_max()
    }

    /// Returns what arrives in a slot of time, like live metrics: of all series, in an order that differs
    /// each time, late ones last.
    pub fn arrivals(&self, now: u64) -> impl Iterator<Item = (Place, f64)> + '_ {
        let series = u64::from(self.series());
        let order = self.draw(
            Place {
                series: 0,
                slot: now,
            },
            Draw::Order,
        );
        let order = shuffled::distinct(series, series, order);
        let order: Vec<u32> = order
            .into_iter()
            .filter_map(|s| u32::try_from(s).ok())
            .collect();
        (0..=self.delay_max().min(now)).flat_map(move |delay| {
            let slot = now - delay;
            let wanted = if slot < self.slots() {
                order.clone()
            } else {
                Vec::new()
            };
            wanted.into_iter().filter_map(move |series| {
                let at = Place { series, slot };
                let value = self.value(at)?;
                (self.delay(at) == delay).then_some((at, value))
            })
        })
    }

    /// Returns what a query for slots `from` to `to` (exclusive) of a series must find.
    pub fn answer(&self, series: u32, from: u64, to: u64) -> Answer {
        let mut answer = Answer::default();
        for slot in from..to.min(self.slots()) {
            if let Some(value) = self.value(Place { series, slot }) {
                answer.add(value);
            }
        }
        answer
    }

    /// Returns a value of a random walk in whole numbers from 1 up that can be evaluated anywhere: the sum of
    /// triangles of all lengths 2^k with random heights (Lévy and Ciesielski's construction of Brownian
    /// motion).
    fn walk(&self, at: Place) -> f64 {
        let mut sum = 0.0;
        for level in 1..=22_u32 {
            let length = 1_u64 << level;
            let place = Place {
                series: at.series,
                slot: (at.slot >> level) << 6 | u64::from(level),
            };
            let within = (at.slot % length) as f64 / length as f64;
            let triangle = 1.0 - (2.0 * within - 1.0).abs();
            let height = 2.0 * self.chance(place, Draw::Value) - 1.0;
            sum += height * triangle * (length as f64).sqrt();
        }
        (100.0 + sum).abs().round() + 1.0
    }

    fn chance(&self, at: Place, what: Draw) -> f64 {
        (self.draw(at, what) >> 11) as f64 / 9_007_199_254_740_992.0
    }

    fn draw(&self, at: Place, what: Draw) -> u64 {
        let mixed = |value: u64| SplitMix64::new(value).next_u64();
        let seed = self.options.seed.wrapping_mul(8).wrapping_add(what as u64);
        mixed(mixed(mixed(seed) ^ u64::from(at.series)) ^ at.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(options: SampleOptions) -> Samples {
        Samples::new(options)
    }

    fn everything_that_arrives(samples: &Samples) -> Vec<(u64, Place, f64)> {
        let slots = 0..samples.arrival_slots();
        slots
            .flat_map(|now| {
                samples
                    .arrivals(now)
                    .map(move |(at, value)| (now, at, value))
            })
            .collect()
    }

    #[test]
    fn everything_arrives_once_and_in_order_of_time() {
        let samples = samples(SampleOptions {
            clients: 3,
            days: 20,
            ..SampleOptions::default()
        });
        let arrived = everything_that_arrives(&samples);
        assert_eq!(arrived.len(), 30 * 20);
        assert!(arrived.iter().all(|(now, at, _)| *now == at.slot));
        let mut places: Vec<(u32, u64)> = arrived
            .iter()
            .map(|(_, at, _)| (at.series, at.slot))
            .collect();
        let first_day: Vec<u32> = places[..30].iter().map(|p| p.0).collect();
        let second_day: Vec<u32> = places[30..60].iter().map(|p| p.0).collect();
        assert_ne!(
            first_day, second_day,
            "series come in another order each time"
        );
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 30 * 20);
    }

    #[test]
    fn late_and_missing_samples_keep_their_shares() {
        let samples = samples(SampleOptions {
            clients: 20,
            days: 100,
            missing_share: 0.25,
            late_share: 0.1,
            late_slots: 3,
            ..SampleOptions::default()
        });
        let arrived = everything_that_arrives(&samples);
        let taken = arrived.len() as f64 / (200.0 * 100.0);
        assert!((taken - 0.75).abs() < 0.02, "{taken}");
        let late = arrived.iter().filter(|(now, at, _)| *now > at.slot).count() as f64;
        assert!((late / arrived.len() as f64 - 0.1).abs() < 0.01);
        assert!(arrived.iter().all(|(now, at, _)| now - at.slot <= 3));
        let mut found = Answer::default();
        for (_, at, value) in &arrived {
            if at.series == 7 && (10..60).contains(&at.slot) {
                found.add(*value);
            }
        }
        assert_eq!(found, samples.answer(7, 10, 60));
    }

    #[test]
    fn values_are_never_zero_and_sums_are_exact_in_any_order() {
        for values in [ValueKind::Walk, ValueKind::Random] {
            let samples = samples(SampleOptions {
                values,
                days: 3000,
                ..SampleOptions::default()
            });
            let all: Vec<f64> = (0..3000)
                .filter_map(|slot| samples.value(Place { series: 5, slot }))
                .collect();
            assert!(
                all.iter()
                    .all(|v| *v > 0.0 && (v * 1_048_576.0).fract() == 0.0)
            );
            let (forward, backward): (f64, f64) = (all.iter().sum(), all.iter().rev().sum());
            assert_eq!(forward.to_bits(), backward.to_bits());
            let step = all.windows(2).map(|w| (w[1] - w[0]).abs()).sum::<f64>() / all.len() as f64;
            let spread = all.iter().fold(0.0, |m: f64, v| m.max(*v));
            match values {
                ValueKind::Walk => assert!(step < 4.0 && spread > 20.0 * step, "{step} {spread}"),
                ValueKind::Random => assert!((step - 33.3).abs() < 2.0, "{step}"),
            }
        }
    }
}
