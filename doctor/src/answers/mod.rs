//! The tables behind the findings: one per question that a DBA asks.
//!
//! Seconds and bytes, not scores. What could not be answered is `None` or empty.

mod checkpoints;
mod device_load;
mod device_users;
mod durations;
mod host;
mod members;
mod memory;
mod space;

pub(crate) use checkpoints::{
    CACHE_BYTES_MAX, DIRTY_BYTES, extra_in_checkpoints, sides_of_checkpoints, split_by_checkpoints,
};
pub use checkpoints::{CheckpointAnswer, DirtyLimit};
pub use device_load::DeviceLoad;
pub(crate) use device_load::{Ceiling, ceiling_reached};
pub use device_users::DeviceUser;
pub use durations::JobDuration;
pub use host::HostAnswer;
pub(crate) use host::{
    Tickets, cache_is_too_large, largest_cache, memory_for_cache, memory_limit, mongod_version,
    tickets_of,
};
pub use members::{MemberAnswer, MemberDifference};
pub(crate) use memory::saved_of_disk;
pub use memory::{MemoryAnswer, MemoryPoint};
pub use space::SpaceAnswer;
pub(crate) use space::name_of;

use serde::{Deserialize, Serialize};

use crate::Evidence;

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// 1. Who uses the device, the most time first.
    pub device_users: Vec<DeviceUser>,
    /// … and what share of what it can do that is.
    pub device_load: Option<DeviceLoad>,
    /// 2. What checkpoints cost, and what would bound them.
    pub checkpoints: Option<CheckpointAnswer>,
    /// 3. How long scans, index builds and resyncs take, now and in order.
    pub durations: Vec<JobDuration>,
    /// 4. Where free space is, and what `compact` would give back.
    pub space: Vec<SpaceAnswer>,
    /// 5. Reads saved by more cache.
    pub memory: Option<MemoryAnswer>,
    /// 6. What the host has, and what the pattern seen wants.
    pub host: Vec<HostAnswer>,
    /// 8. Members side by side.
    pub members: Vec<MemberAnswer>,
    /// … and the one factor that differs.
    pub member_difference: Option<MemberDifference>,
}

impl Answers {
    /// Answers what can be answered.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let members = members::members(evidence);
        Self {
            device_users: device_users::device_users(evidence),
            device_load: device_load::device_load(evidence),
            checkpoints: checkpoints::checkpoints(evidence),
            durations: durations::durations(evidence),
            space: space::space(evidence),
            memory: memory::memory(evidence),
            host: host::host(evidence),
            member_difference: members::difference(&members),
            members,
        }
    }
}
