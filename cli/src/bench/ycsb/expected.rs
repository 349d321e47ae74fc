//! What must be in the collection after a run, including records of earlier runs that were broken off, whose
//! last inserts may or may not be there.

use mongodb::bson::{Bson, RawDocument};
use seekscope_stats::SplitMix64;
use seekscope_workload::ExpectedData;
use seekscope_workload::ycsb::expected::YcsbExpected;
use seekscope_workload::ycsb::{YcsbRun, YcsbSettings};

/// The data expected after gaps: loaded rows are read back; the count starts from what was there before the
/// run.
pub struct AfterGaps {
    loaded: YcsbExpected,
    /// Expected count; unknown where other clients insert too.
    count: Option<u64>,
}

impl AfterGaps {
    /// `counted_before`: documents before the run; `None` for one of several clients.
    pub fn new(settings: &YcsbSettings, run: &YcsbRun, counted_before: Option<u64>) -> Self {
        Self {
            loaded: YcsbExpected::after_load(settings),
            count: counted_before.map(|before| before + run.inserted()),
        }
    }
}

impl ExpectedData for AfterGaps {
    fn collection(&self) -> &str {
        self.loaded.collection()
    }

    fn expected_count(&self) -> Option<u64> {
        self.count
    }

    fn sample(&self, random: &mut SplitMix64) -> Option<Bson> {
        self.loaded.sample(random)
    }

    fn matches(&self, id: &Bson, document: &RawDocument) -> bool {
        self.loaded.matches(id, document)
    }
}
