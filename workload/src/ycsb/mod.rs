//! Implements YCSB: its properties, data and workloads A to F, in two editions that results name.
//!
//! | | `ycsb` | `corrected` |
//! |---|---|---|
//! | counts | 32 bits; `recordcount=0` means 2^31-1 | 64 bits; `recordcount` must be given |
//! | load of a slice without `insertcount` | `recordcount` rows from `insertstart` on | the rest of `recordcount` |
//! | `zipfian` | ten billion ranks hashed onto the slots: skew far below 0.99 | exact Zipf, any `zipfianconstant` from 0 on, over a seeded permutation |
//! | rows that a run inserted | `uniform`, `hotspot` and `sequential` never touch them | `uniform` and `zipfian` do (as the coldest ranks) |
//! | `latest` | Gray's approximation; row 0 is never drawn | exact Zipf by age |
//! | insert that failed | counts as there: readers get NOT_FOUND | readers leave it out |
//! | values | random printable bytes, or `dataintegrity` | a function of seed, record, field and revision, with settable `compressibility` |
//! | READ-MODIFY-WRITE | writes what was not read; goes on after NOT_FOUND | writes the successor of the revision it read; ends after NOT_FOUND |
//! | `dataintegrity` | values by YCSB's formula, constant length only | values as always; reads are checked |
//! | verification afterwards | keys and shapes (values with `dataintegrity`) | every byte |
//! | scan that finds nothing | ERROR | NOT_FOUND |
//! | last bucket of a length histogram | as long as the one before | its own length |
//! | `fieldorder` unless set | `java` (order of a HashMap) | `declared` |
//! | `core_workload_insertion_keep_going_on_error` unless set | false: that virtual user stops | true: counted, and the run fails |
//!
//! In both editions, unlike YCSB: the last partial batch of a load is sent, batches are timed as a whole,
//! virtual users share the rest of the load, inserts of a run are sent one by one (`batchsize` is for the
//! load), clients that insert in parallel use different keys, and all draws are seeded. A read that
//! `dataintegrity` finds wrong counts as the failure VERIFY of that read.
//!
//! Read [`settings`] first, then [`rows`] (the data), [`mod@load`] and [`run`] (virtual users).

#[cfg(test)]
pub(crate) mod actor_tests;
mod chooser;
pub mod error;
pub mod expected;
pub mod known;
pub mod load;
pub mod properties;
mod reading;
pub mod rows;
pub mod run;
pub mod settings;
pub mod slices;
pub mod text_output;

pub use error::YcsbError;
pub use expected::YcsbExpected;
pub use load::YcsbLoad;
pub use properties::Properties;
pub use rows::Rows;
pub use run::YcsbRun;
pub use settings::YcsbSettings;
pub use slices::ClientSlice;

/// The edition whose rules are followed; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Edition {
    /// YCSB's rules (its sources of April 2026) to the bit, so that results can be compared with YCSB's.
    #[default]
    Ycsb,
    Corrected,
}

impl Edition {
    /// Returns the name used in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ycsb => "ycsb",
            Self::Corrected => "corrected",
        }
    }
}

/// The letters of the core workloads.
pub const WORKLOADS: [char; 6] = ['a', 'b', 'c', 'd', 'e', 'f'];

/// Returns a core workload as a property file.
pub fn workload_text(letter: char) -> Result<&'static str, YcsbError> {
    Ok(match letter.to_ascii_lowercase() {
        'a' => include_str!("workloads/workloada.properties"),
        'b' => include_str!("workloads/workloadb.properties"),
        'c' => include_str!("workloads/workloadc.properties"),
        'd' => include_str!("workloads/workloadd.properties"),
        'e' => include_str!("workloads/workloade.properties"),
        'f' => include_str!("workloads/workloadf.properties"),
        other => {
            return Err(YcsbError::NoSuchWorkload {
                name: other.to_string(),
            });
        }
    })
}

/// Returns a core workload's properties.
pub fn workload(letter: char) -> Result<Properties, YcsbError> {
    Properties::parse(workload_text(letter)?)
}
