//! Compares what the host and the server have with what the observed pattern needs, and gives the present
//! loss.
//!
//! The wanted values follow MongoDB's production notes (manual, "Production Notes" and "Operations
//! Checklist") unless this server's own pattern says otherwise; each function names its part of them.

mod disk;
mod memory;
mod read_ahead;
mod server;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Evidence;

pub(crate) use memory::{
    GroupMemory, SMALLEST_CONFIGURED_CACHE, cache_is_too_large, group_memory, largest_cache,
    limit_command, limit_for, memory_for_cache, memory_limit, room_for_cache,
};
pub(crate) use server::{Tickets, tickets_of};

/// The answer for one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct HostAnswer {
    /// Name: "read-ahead", "I/O scheduler", "filesystem", "transparent huge pages", "cache size", "tickets",
    /// …
    pub setting: String,
    pub has: String,
    /// Every acceptable value; empty where none can be told.
    pub wants: String,
    /// True when `has` is good enough.
    pub fits: bool,
    pub why: String,
    /// Present loss, s of waiting per hour, where it can be determined.
    pub loss_s_per_hour: Option<f64>,
    /// The command that changes it; empty where nothing need be done.
    pub command: String,
}

/// Answers for one setting; `None` where it is not known or does not matter here.
type Question = fn(&Evidence<'_>) -> Option<HostAnswer>;

const QUESTIONS: [Question; 11] = [
    read_ahead::read_ahead,
    disk::scheduler,
    disk::filesystem,
    memory::cache_size,
    memory::huge_pages,
    memory::numa,
    memory::swappiness,
    memory::dirty_ratio,
    server::tickets,
    server::open_files,
    server::compatibility,
];

pub(super) fn host(evidence: &Evidence<'_>) -> Vec<HostAnswer> {
    let answers = QUESTIONS.iter().filter_map(|ask| ask(evidence));
    answers
        .map(|answer| match answer.fits {
            // Nothing need be done.
            true => HostAnswer {
                command: String::new(),
                ..answer
            },
            false => answer,
        })
        .collect()
}

/// Returns the examined server's major version; `None` if it is not MongoDB, because the advice does not
/// apply then.
pub(crate) fn mongod_version(evidence: &Evidence<'_>) -> Option<u32> {
    let target = &evidence.examined()?.target;
    let is_mongodb = ["mongod", "mongos"].contains(&target.product.as_str());
    is_mongodb.then(|| target.version.split('.').next()?.parse().ok())?
}

#[cfg(test)]
mod tests;
