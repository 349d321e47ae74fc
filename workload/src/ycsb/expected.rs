//! Defines what the collection must hold after a load or a run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bson::{Bson, RawDocument};
use seekscope_stats::SplitMix64;

use super::load::Acknowledged;
use super::rows::CheckBuffers;
use super::{Rows, YcsbRun, YcsbSettings};
use crate::verification::ExpectedData;

/// The rows of a load, and those that a run inserted.
#[derive(Debug)]
pub struct YcsbExpected {
    table: String,
    rows: Rows,
    /// The slice of the load: its first record, and their number.
    start: u64,
    count: u64,
    /// Documents that existed before the run.
    before: u64,
    /// True if nobody else writes to the collection.
    is_whole: bool,
    run: Option<YcsbRun>,
    /// What the load acknowledged, if not all of it is taken for acknowledged.
    acknowledged: Option<Acknowledged>,
    /// Numbers of the keys drawn, which cannot be recovered from the keys.
    drawn: Mutex<HashMap<String, u64>>,
}

impl YcsbExpected {
    /// Returns the expectation after the load of a slice.
    pub fn after_load(settings: &YcsbSettings) -> Self {
        Self {
            table: settings.table.clone(),
            rows: Rows::new(settings),
            start: settings.insert_start,
            count: settings.load_count,
            before: settings.load_count,
            is_whole: settings.load_count == settings.record_count,
            run: None,
            acknowledged: None,
            drawn: Mutex::default(),
        }
    }

    /// Returns the expectation after a run on loaded data, including all clients' slices and earlier runs.
    pub fn after_run(run: &YcsbRun) -> Self {
        let settings = run.settings();
        Self {
            start: 0,
            count: settings.first_insert,
            before: settings.first_insert,
            is_whole: run.is_alone(),
            run: Some(run.clone()),
            ..Self::after_load(settings)
        }
    }

    /// Sets which rows the load acknowledged; otherwise they are all expected.
    #[must_use]
    pub fn with_acknowledged(self, acknowledged: Acknowledged) -> Self {
        Self {
            before: acknowledged.count(),
            acknowledged: Some(acknowledged),
            ..self
        }
    }

    /// Sets how many documents were counted before the run. Otherwise every record below `first_insert` is
    /// assumed to exist, which is not true if inserts of earlier runs have failed.
    #[must_use]
    pub fn with_documents_before(self, before: u64) -> Self {
        Self { before, ..self }
    }

    fn draw(&self, random: &mut SplitMix64) -> Option<u64> {
        if let Some(acknowledged) = &self.acknowledged {
            if acknowledged.count() == 0 {
                return None;
            }
            let mut rows = (0..1_000).map(|_| self.start + random.below(acknowledged.claimed()));
            return rows.find(|row| acknowledged.has(*row));
        }
        let inserted = self.run.as_ref().map_or(0, YcsbRun::handed_out);
        for _ in 0..1_000 {
            let at = random.below(self.count + inserted);
            let Some(ordinal) = at.checked_sub(self.count) else {
                return Some(self.start + at);
            };
            let record = self
                .run
                .as_ref()
                .and_then(|run| run.inserted_record(ordinal));
            if record.is_some() {
                return record;
            }
        }
        Some(self.start + random.below(self.count))
    }
}

impl ExpectedData for YcsbExpected {
    fn collection(&self) -> &str {
        &self.table
    }

    fn expected_count(&self) -> Option<u64> {
        let inserted = self.run.as_ref().map_or(0, YcsbRun::inserted);
        self.is_whole.then_some(self.before + inserted)
    }

    fn sample(&self, random: &mut SplitMix64) -> Option<Bson> {
        let record = self.draw(random)?;
        let mut key = String::new();
        self.rows.key(record, &mut key);
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.insert(key.clone(), record);
        Some(Bson::String(key))
    }

    fn matches(&self, id: &Bson, document: &RawDocument) -> bool {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let record = id.as_str().and_then(|key| drawn.get(key));
        record.is_some_and(|&record| {
            self.rows
                .is_row(record, document, &mut CheckBuffers::default())
        })
    }
}
