//! Defines what the collections must hold afterwards.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bson::{Bson, RawBsonRef, RawDocument};
use seekscope_stats::SplitMix64;

use super::SysbenchSettings;
use super::data::{C_CHARS, PAD_CHARS, collection_name, is_filled};
use crate::verification::ExpectedData;

/// The most documents whose existence is doubtful; with more none is sampled.
const DOUBTFUL_MAX: usize = 1 << 20;

/// What a run deleted and inserted.
#[derive(Debug)]
pub struct Changes {
    /// Inserts minus deletes, by collection.
    net: Vec<AtomicI64>,
    doubtful: Mutex<HashSet<(usize, i32)>>,
    doubtful_count: AtomicUsize,
}

impl Changes {
    pub(super) fn new(collections: u32) -> Self {
        Self {
            net: (0..collections).map(|_| AtomicI64::new(0)).collect(),
            doubtful: Mutex::new(HashSet::new()),
            doubtful_count: AtomicUsize::new(0),
        }
    }

    pub(super) fn inserted(&self, collection: usize, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.net[collection].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn deleted(&self, collection: usize, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.net[collection].fetch_sub(count, Ordering::Relaxed);
    }

    /// Records that a document may or may not exist.
    pub(super) fn doubtful(&self, collection: usize, id: i32) {
        let mut doubtful = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        if doubtful.len() < DOUBTFUL_MAX {
            doubtful.insert((collection, id));
        }
        self.doubtful_count.store(doubtful.len(), Ordering::Relaxed);
    }

    fn is_doubtful(&self, collection: usize, id: i32) -> bool {
        match self.doubtful_count.load(Ordering::Relaxed) {
            0 => false,
            DOUBTFUL_MAX => true,
            _ => self
                .doubtful
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains(&(collection, id)),
        }
    }
}

/// One collection after its load, and after a run if there was one.
#[derive(Debug)]
pub struct SysbenchExpected<'a> {
    /// Index from 0.
    collection: usize,
    name: String,
    documents: u32,
    changes: Option<&'a Changes>,
}

/// Returns what every collection should hold.
pub fn expected<'a>(
    settings: &SysbenchSettings,
    changes: Option<&'a Changes>,
) -> Vec<SysbenchExpected<'a>> {
    let one = |number: u32| SysbenchExpected {
        collection: usize::try_from(number - 1).unwrap_or(0),
        name: collection_name(number),
        documents: settings.loaded(),
        changes,
    };
    (1..=settings.collections).map(one).collect()
}

impl ExpectedData for SysbenchExpected<'_> {
    fn collection(&self) -> &str {
        &self.name
    }

    fn expected_count(&self) -> Option<u64> {
        let net = self.changes.map_or(0, |changes| {
            changes.net[self.collection].load(Ordering::Relaxed)
        });
        Some(u64::from(self.documents).saturating_add_signed(net))
    }

    fn sample(&self, random: &mut SplitMix64) -> Option<Bson> {
        for _ in 0..100 {
            let id = i32::try_from(random.below(self.documents.into())).ok()? + 1;
            let is_doubtful = |changes: &Changes| changes.is_doubtful(self.collection, id);
            if !self.changes.is_some_and(is_doubtful) {
                return Some(Bson::Int64(id.into()));
            }
        }
        None
    }

    fn matches(&self, id: &Bson, document: &RawDocument) -> bool {
        let same_id = match (id, document.get("_id")) {
            (Bson::Int64(id), Ok(Some(RawBsonRef::Int64(found)))) => *id == found,
            (Bson::Int64(id), Ok(Some(RawBsonRef::Int32(found)))) => *id == i64::from(found),
            _ => false,
        };
        let text = |name, chars| {
            document
                .get_str(name)
                .is_ok_and(|text| is_filled(text, chars))
        };
        same_id
            && document.get_i32("k").is_ok_and(|k| k >= 1)
            && text("c", C_CHARS)
            && text("pad", PAD_CHARS)
            && document.iter().count() == 4
    }
}
