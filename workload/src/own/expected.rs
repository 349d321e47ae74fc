//! Defines what collections must hold after a run, for [`crate::verify`].

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bson::{Bson, Document, RawDocument};
use seekscope_client::BsonWriter;
use seekscope_stats::SplitMix64;

use super::plan::CollectionPlan;
use crate::ExpectedData;

/// A collection after a run. Parts that operations may have changed are excluded from the comparison.
#[derive(Debug)]
pub struct ExpectedCollection<'a> {
    plan: &'a CollectionPlan,
    /// Records by the text of their `_id`, since generators cannot be inverted.
    drawn: Mutex<HashMap<String, u64>>,
}

impl<'a> ExpectedCollection<'a> {
    pub fn new(plan: &'a CollectionPlan) -> Self {
        Self {
            plan,
            drawn: Mutex::default(),
        }
    }

    fn document(&self, record: u64) -> Option<Document> {
        let mut writer = BsonWriter::default();
        self.plan.write_document(record, &mut writer);
        Document::from_reader(writer.bytes()).ok()
    }

    fn drawn(&self) -> std::sync::MutexGuard<'_, HashMap<String, u64>> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExpectedData for ExpectedCollection<'_> {
    fn collection(&self) -> &str {
        &self.plan.name
    }

    fn expected_count(&self) -> Option<u64> {
        let is_known = !self.plan.changes.any_document && self.plan.records.is_alone();
        is_known.then(|| self.plan.records.acknowledged())
    }

    fn sample(&self, random: &mut SplitMix64) -> Option<Bson> {
        if self.plan.changes.any_document {
            return None;
        }
        let record = self.plan.records.draw_acknowledged(random)?;
        let id = self.document(record)?.remove("_id")?;
        self.drawn().insert(id.to_string(), record);
        Some(id)
    }

    fn matches(&self, id: &Bson, found: &RawDocument) -> bool {
        let record = self.drawn().get(&id.to_string()).copied();
        let Some(expected) = record.and_then(|record| self.document(record)) else {
            return false;
        };
        let Ok(found) = Document::try_from(found) else {
            return false;
        };
        let changes = &self.plan.changes;
        let is_kept = |name: &&String| {
            !changes.fields.contains(*name) && (!changes.any_field || *name == "_id")
        };
        let kept = |document: &Document| document.keys().filter(is_kept).count();
        kept(&expected) == kept(&found)
            && expected
                .keys()
                .filter(is_kept)
                .all(|name| expected.get(name) == found.get(name))
    }
}
