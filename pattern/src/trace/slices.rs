//! A file over time: what happened in each slice.

use seekscope_run::IoEvent;

use super::classify::kind_of;
use super::direction::Noted;
use super::distinct::DistinctPages;
use super::result::{FileSlice, SliceDirection};
use super::sketch::Sketch;
use super::steps::StepCounts;
use super::touched::PAGE_BYTES;
use crate::CacheCounts;
use crate::access::Access;

/// The most latencies of a slice that are kept exactly.
const SLICE_EXACT_MAX: usize = 16;

/// The slices of one file that have an event, in order of time.
#[derive(Default)]
pub(crate) struct Slices(Vec<Slice>);

pub(crate) struct Slice {
    index: u64,
    pub(crate) reads: Option<Box<SliceCounter>>,
    pub(crate) writes: Option<Box<SliceCounter>>,
    pub(crate) syncs: u64,
}

impl Slices {
    /// Returns the slice with this index, creating it if need be.
    pub(crate) fn at(&mut self, index: u64) -> &mut Slice {
        // Events come in order of time, so it is nearly always the last one.
        let place = match self.0.last() {
            Some(last) if last.index == index => self.0.len() - 1,
            Some(last) if last.index > index => self.0.partition_point(|slice| slice.index < index),
            _ => self.0.len(),
        };
        if self.0.get(place).is_none_or(|slice| slice.index != index) {
            self.0.insert(place, Slice::new(index));
        }
        &mut self.0[place]
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Merges slices 2i and 2i + 1 into slice i.
    pub(crate) fn halve(&mut self) {
        let mut halved: Vec<Slice> = Vec::with_capacity(self.0.len() / 2 + 1);
        for mut slice in std::mem::take(&mut self.0) {
            slice.index /= 2;
            match halved.last_mut() {
                Some(last) if last.index == slice.index => last.merge(slice),
                _ => halved.push(slice),
            }
        }
        self.0 = halved;
    }

    pub(crate) fn finish(&self, started_ns: u64, slice_ns: u64) -> Vec<FileSlice> {
        let direction = |counter: &Option<Box<SliceCounter>>| counter.as_ref().map(|c| c.finish());
        self.0
            .iter()
            .map(|slice| FileSlice {
                started_ns: started_ns.saturating_add(slice.index.saturating_mul(slice_ns)),
                reads: direction(&slice.reads),
                writes: direction(&slice.writes),
                syncs: slice.syncs,
            })
            .collect()
    }
}

impl Slice {
    fn new(index: u64) -> Self {
        Self {
            index,
            reads: None,
            writes: None,
            syncs: 0,
        }
    }

    fn merge(&mut self, later: Self) {
        merge_direction(&mut self.reads, later.reads);
        merge_direction(&mut self.writes, later.writes);
        self.syncs += later.syncs;
    }
}

fn merge_direction(mine: &mut Option<Box<SliceCounter>>, later: Option<Box<SliceCounter>>) {
    match (mine, later) {
        (Some(mine), Some(later)) => mine.merge(&later),
        (mine @ None, later) => *mine = later,
        (Some(_), None) => {}
    }
}

/// The counters of one direction in one slice.
pub(crate) struct SliceCounter {
    calls: u64,
    bytes: u64,
    errors: u64,
    latency_ns: Sketch<3>,
    counts: StepCounts,
    first_byte: u64,
    last_byte: u64,
    pub(crate) distinct: DistinctPages,
    new_bytes: u64,
    cache: CacheCounts,
}

impl Default for SliceCounter {
    fn default() -> Self {
        Self {
            calls: 0,
            bytes: 0,
            errors: 0,
            latency_ns: Sketch::new(SLICE_EXACT_MAX),
            counts: StepCounts::default(),
            first_byte: u64::MAX,
            last_byte: 0,
            distinct: DistinctPages::default(),
            new_bytes: 0,
            cache: CacheCounts::default(),
        }
    }
}

impl SliceCounter {
    pub(crate) fn add_call(&mut self, event: &IoEvent) {
        self.calls += 1;
        self.bytes += event.bytes();
        self.errors += u64::from(event.result < 0);
        self.latency_ns.add(event.latency_ns);
        self.cache.add(event);
    }

    pub(crate) fn add_access(&mut self, access: Access, noted: &Noted) {
        self.counts.add(&noted.judged);
        self.first_byte = self.first_byte.min(access.offset);
        self.last_byte = self.last_byte.max(access.end());
        self.new_bytes += noted.new_bytes;
    }

    fn merge(&mut self, later: &Self) {
        self.calls += later.calls;
        self.bytes += later.bytes;
        self.errors += later.errors;
        self.latency_ns.merge(&later.latency_ns);
        self.counts.merge(&later.counts);
        self.first_byte = self.first_byte.min(later.first_byte);
        self.last_byte = self.last_byte.max(later.last_byte);
        self.distinct.merge(&later.distinct);
        self.new_bytes += later.new_bytes;
        self.cache.merge(&later.cache);
    }

    fn finish(&self) -> SliceDirection {
        let counts = &self.counts;
        let evidence = counts.evidence();
        SliceDirection {
            calls: self.calls,
            bytes: self.bytes,
            errors: self.errors,
            latency_ns: self.latency_ns.quantiles(),
            kind: kind_of(counts.accesses, &evidence),
            contiguous_share: counts.share(counts.contiguous),
            sequential_share: counts.share(counts.sequential),
            backward_share: counts.share(counts.backward),
            evidence,
            first_byte: self.first_byte.min(self.last_byte),
            last_byte: self.last_byte,
            distinct_bytes: self.distinct.estimate().saturating_mul(PAGE_BYTES),
            new_bytes: self.new_bytes,
            cache: self.cache,
        }
    }
}
