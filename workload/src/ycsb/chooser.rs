//! Chooses the row for an operation.

use std::sync::atomic::{AtomicU64, Ordering};

use seekscope_stats::SplitMix64;

use super::settings::{RequestDistribution, YcsbSettings};
use super::{ClientSlice, Edition};
use crate::generators::zipfian_gray::YCSB_THETA;
use crate::generators::{
    AcknowledgedCounter, Exponential, Hotspot, Permutation, ScrambledZipfian, Zipf, ZipfianGray,
    floor_u64,
};

/// The most repetitions of draws that fall on rows whose insert failed; then a loaded row is used.
const REDRAWS_MAX: u32 = 1_000;

/// The rows that exist while a run inserts more; shared by all virtual users.
#[derive(Debug)]
pub(crate) struct Population {
    slice: ClientSlice,
    /// The slice that is read: its first record, and their number.
    start: u64,
    count: u64,
    /// Records of earlier runs: from `record_count` to `first_insert`.
    record_count: u64,
    first_insert: u64,
    pub(crate) inserts: AcknowledgedCounter,
    sequential: AtomicU64,
}

impl Population {
    pub(crate) fn new(settings: &YcsbSettings, slice: ClientSlice) -> Self {
        Self {
            slice,
            start: settings.insert_start,
            count: settings.insert_count,
            record_count: settings.record_count,
            first_insert: settings.first_insert,
            inserts: AcknowledgedCounter::default(),
            sequential: AtomicU64::new(0),
        }
    }

    /// Returns the record of an insert.
    #[inline]
    pub(crate) fn inserted(&self, ordinal: u64) -> u64 {
        self.slice.inserted_record(self.first_insert, ordinal)
    }

    /// Returns the number of rows that existed at the start.
    fn initial(&self) -> u64 {
        self.count + (self.first_insert - self.record_count)
    }

    /// Returns the number of rows that exist now.
    #[inline]
    fn present(&self) -> u64 {
        self.initial() + self.inserts.done_below()
    }

    /// Returns the record of the row at a position below [`Self::present`]: rows of the slice, then those of
    /// earlier runs, then our own.
    #[inline]
    fn at(&self, place: u64) -> u64 {
        if place < self.count {
            self.start + place
        } else if place < self.initial() {
            self.record_count + (place - self.count)
        } else {
            self.inserted(place - self.initial())
        }
    }

    /// Returns the record for a number from YCSB's formulas: numbers from the first insert on are those of
    /// our own inserts.
    #[inline]
    fn record(&self, number: u64) -> u64 {
        match number.checked_sub(self.first_insert) {
            Some(ordinal) => self.inserted(ordinal),
            None => number,
        }
    }

    /// Returns the greatest acknowledged number.
    #[inline]
    fn last(&self) -> u64 {
        self.first_insert + self.inserts.done_below() - 1
    }

    /// Returns whether the insert of the row at a position failed.
    #[inline]
    fn is_missing(&self, place: u64) -> bool {
        let ordinal = place.checked_sub(self.initial());
        ordinal.is_some_and(|ordinal| self.inserts.has_failed(ordinal))
    }
}

/// A virtual user's way of choosing rows.
#[derive(Debug, Clone)]
pub(crate) enum Chooser {
    // YCSB's, in its numbers of records.
    YcsbUniform,
    Scrambled(ScrambledZipfian),
    YcsbLatest(ZipfianGray),
    YcsbExponential(Exponential),
    // By position in the population.
    Uniform,
    Zipf(Box<(Zipf, Permutation)>),
    Latest(Zipf),
    Exponential(Exponential),
    // Identical in both.
    Sequential,
    Hotspot(Hotspot),
}

impl Chooser {
    pub(crate) fn new(settings: &YcsbSettings, population: &Population) -> Self {
        let ycsb = settings.edition == Edition::Ycsb;
        let exact = |theta| Zipf::new(theta, population.initial());
        match settings.requests {
            RequestDistribution::Uniform if ycsb => Self::YcsbUniform,
            RequestDistribution::Latest { .. } if ycsb => {
                Self::YcsbLatest(ZipfianGray::new(population.last(), YCSB_THETA))
            }
            RequestDistribution::Latest { theta } => {
                exact(theta).map_or(Self::Uniform, Self::Latest)
            }
            RequestDistribution::Zipf { theta } => exact(theta).map_or(Self::Uniform, |zipf| {
                let places = Permutation::new(population.initial(), settings.seed);
                Self::Zipf(Box::new((zipf, places)))
            }),
            RequestDistribution::ScrambledZipfian => {
                Self::Scrambled(ScrambledZipfian::new(scrambled_slots(settings)))
            }
            RequestDistribution::Exponential {
                percentile,
                fraction,
            } => {
                let range = settings.record_count as f64 * fraction;
                match Exponential::new(percentile, range) {
                    Some(exponential) if ycsb => Self::YcsbExponential(exponential),
                    Some(exponential) => Self::Exponential(exponential),
                    None => Self::Uniform,
                }
            }
            RequestDistribution::Sequential => Self::Sequential,
            RequestDistribution::Hotspot(hotspot) => Self::Hotspot(hotspot),
            RequestDistribution::Uniform => Self::Uniform,
        }
    }

    /// Returns a record that exists, as far as acknowledgements show.
    #[inline]
    pub(crate) fn draw(&mut self, rows: &Population, random: &mut SplitMix64) -> u64 {
        match self {
            Self::YcsbUniform => rows.start + random.below(rows.count),
            Self::Scrambled(zipfian) => loop {
                let number = rows.start + zipfian.draw(random);
                // Slots of rows that do not exist yet keep their ranks for later.
                if number <= rows.last() {
                    return rows.record(number);
                }
            },
            Self::YcsbLatest(zipfian) => {
                let last = rows.last();
                rows.record(last - zipfian.draw_of(last, random).min(last))
            }
            Self::YcsbExponential(exponential) => loop {
                if let Some(number) = rows.last().checked_sub(exponential.draw(random)) {
                    return rows.record(number);
                }
            },
            Self::Sequential => {
                let turn = rows.sequential.fetch_add(1, Ordering::Relaxed);
                rows.start + turn % rows.count
            }
            Self::Hotspot(hotspot) => rows.start + hotspot.draw(random),
            Self::Uniform | Self::Zipf(_) | Self::Latest(_) | Self::Exponential(_) => {
                self.draw_place(rows, random)
            }
        }
    }

    fn draw_place(&mut self, rows: &Population, random: &mut SplitMix64) -> u64 {
        for _ in 0..REDRAWS_MAX {
            let present = rows.present();
            let place = match self {
                // New rows get the coldest ranks, so that hot ones remain the same.
                Self::Zipf(zipf) => {
                    let (ranks, places) = zipf.as_mut();
                    Some(places.apply(ranks.draw_of(present, random)))
                }
                Self::Latest(ages) => Some(present - 1 - ages.draw_of(present, random)),
                Self::Exponential(ages) => (present - 1).checked_sub(ages.draw(random)),
                _ => Some(random.below(present)),
            };
            if let Some(place) = place.filter(|&place| !rows.is_missing(place)) {
                return rows.at(place);
            }
        }
        rows.at(random.below(rows.initial()))
    }
}

/// Returns YCSB's range for scrambled draws, which leaves room for the rows that a run is going to insert.
fn scrambled_slots(settings: &YcsbSettings) -> u64 {
    let operations = settings.operation_count.unwrap_or(0) as f64;
    let to_come = floor_u64(operations * settings.proportions[2] * 2.0);
    let earlier = settings.first_insert - settings.record_count;
    settings
        .insert_count
        .saturating_add(1)
        .saturating_add(to_come)
        .saturating_add(earlier)
}
