//! What the host and the server have, what the pattern seen wants, and the loss now.
//!
//! What is wanted follows MongoDB's production notes (manual, "Production Notes" and "Operations
//! Checklist") unless this server's own pattern says otherwise; each function names its part of them.

mod disk;
mod memory;
mod read_ahead;
mod server;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Evidence;

pub(crate) use memory::{
    GroupMemory, cache_is_too_large, group_memory, memory_for_cache, memory_limit, room_for_cache,
};
pub(crate) use server::{Tickets, tickets_of};

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct HostAnswer {
    /// "read-ahead", "I/O scheduler", "filesystem", "transparent huge pages", "cache size", "tickets", …
    pub setting: String,
    pub has: String,
    pub wants: String,
    /// True when `has` will do.
    pub fits: bool,
    pub why: String,
    /// Loss now, s of waiting per hour, where it can be told.
    pub loss_s_per_hour: Option<f64>,
    /// What changes it; empty where nothing need be done.
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

/// The examined server's main version; `None` where it is no MongoDB, whose advice does not hold then.
pub(crate) fn mongod_version(evidence: &Evidence<'_>) -> Option<u32> {
    let target = &evidence.examined()?.target;
    let is_mongodb = ["mongod", "mongos"].contains(&target.product.as_str());
    is_mongodb.then(|| target.version.split('.').next()?.parse().ok())?
}

#[cfg(test)]
mod tests;
