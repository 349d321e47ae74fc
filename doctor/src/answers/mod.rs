//! Builds the tables behind the findings: one per question that a DBA asks.
//!
//! Figures are seconds and bytes, not scores. What could not be answered is `None` or empty.

mod checkpoints;
mod device_load;
mod device_users;
mod durations;
mod host;
mod index_builds;
mod members;
mod memory;
mod shards;
mod space;
mod work;

pub(crate) use checkpoints::{
    CACHE_BYTES_MAX, DIRTY_BYTES, extra_in_checkpoints, sides_of_checkpoints, split_by_checkpoints,
};
pub use checkpoints::{CheckpointAnswer, DirtyLimit};
pub use device_load::DeviceLoad;
pub(crate) use device_load::{Ceiling, ceiling_reached, limit_in_words, used_share};
pub use device_users::DeviceUser;
pub use durations::JobDuration;
pub use host::HostAnswer;
pub(crate) use host::{
    GroupMemory, SMALLEST_CONFIGURED_CACHE, Tickets, cache_is_too_large, group_memory,
    largest_cache, limit_command, limit_for, memory_for_cache, memory_limit, mongod_version,
    room_for_cache, tickets_of,
};
pub use index_builds::{AgainstBuild, IndexBuildAnswer};
pub use members::{MemberAnswer, MemberDifference};
pub use memory::{MemoryAnswer, MemoryPoint};
pub(crate) use memory::{counts_decompression, saved_of_disk, waiting_beside_disk_s_per_hour};
pub use shards::ShardAnswer;
pub use space::SpaceAnswer;
pub(crate) use space::name_of;
pub use work::WorkAnswer;
pub(crate) use work::{DOCUMENTS_EXAMINED, PAGES_READ};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::claims::Waited;

/// The tables behind the findings. What could not be answered is null or empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Answers {
    /// Observed seconds of waiting per hour, each under one kind; the savings that findings claim are
    /// allotted from it and never exceed it.
    pub waited: Waited,
    /// 1. Who uses the device, the most time first.
    pub device_users: Vec<DeviceUser>,
    /// 1. The share of the disk's capability that is used.
    pub device_load: Option<DeviceLoad>,
    /// 1. How much the server was asked to do meanwhile, per second.
    pub work: Option<WorkAnswer>,
    /// 2. What checkpoints cost, and what would bound them.
    pub checkpoints: Option<CheckpointAnswer>,
    /// 3. How long scans, index builds and resyncs take, now and in order.
    pub durations: Vec<JobDuration>,
    /// 3. How long the indexes took that were built in this run; empty where none was.
    pub index_builds: Vec<IndexBuildAnswer>,
    /// 4. Where free space is, and what `compact` would give back.
    pub space: Vec<SpaceAnswer>,
    /// 5. Reads saved by more cache.
    pub memory: Option<MemoryAnswer>,
    /// 6. What the host has, and what the observed pattern needs.
    pub host: Vec<HostAnswer>,
    /// 8. Members side by side.
    pub members: Vec<MemberAnswer>,
    /// 8. The one factor in which a member differs.
    pub member_difference: Option<MemberDifference>,
    /// 8. A sentence for each member that took another role while it was watched; figures of both are mixed.
    pub role_changes: Vec<String>,
    /// 8. The shards of a cluster: what they keep, and what they had to do.
    pub shards: Vec<ShardAnswer>,
}

impl Answers {
    /// Answers only what concerns several members.
    pub(crate) fn of_members(evidence: &Evidence<'_>) -> Self {
        let members = members::members(evidence);
        Self {
            member_difference: members::difference(&members),
            role_changes: members::role_changes(evidence),
            shards: shards::shards(evidence),
            members,
            ..Self::default()
        }
    }

    /// Answers every question for which there is evidence.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let members = members::members(evidence);
        Self {
            waited: Waited::of(evidence),
            device_users: device_users::device_users(evidence),
            device_load: device_load::device_load(evidence),
            work: work::work(evidence),
            checkpoints: checkpoints::checkpoints(evidence),
            durations: durations::durations(evidence),
            index_builds: index_builds::index_builds(evidence),
            space: space::space(evidence),
            memory: memory::memory(evidence),
            host: host::host(evidence),
            member_difference: members::difference(&members),
            role_changes: members::role_changes(evidence),
            shards: shards::shards(evidence),
            members,
        }
    }
}
