//! Checks cache size, huge pages, NUMA, swapping and the page cache's dirty limits.

use seekscope_run::units::{format_bytes, whole};

use super::{HostAnswer, mongod_version};
use crate::Evidence;
use crate::evidence::Series;
use crate::wording::{mongosh, shell_quoted};

/// Largest share of the available memory that the cache may take: the rest is for connections, sorts, the
/// page cache and the kernel. MongoDB's own default is half of what is beyond 1 GiB.
const CACHE_SHARE_MAX: f64 = 0.8;
/// The smallest cache that MongoDB takes by default, and that its configuration file can hold
/// (`storage.wiredTiger.engineConfig.cacheSizeGB` is at least 0.25). At run time it takes smaller ones.
pub(crate) const SMALLEST_CONFIGURED_CACHE: u64 = 256 << 20;
/// The largest share of the host's memory that one group should be given.
const HOST_SHARE_MAX: f64 = 0.9;
/// Limits are suggested in multiples of this.
const LIMIT_STEP_BYTES: u64 = 64 << 20;
/// Share of memory that unreclaimable data may fill before the kernel kills processes.
const FILLED_SHARE_MAX: f64 = 0.9;
/// The production notes ask for 1 ("0 or 1").
const SWAPPINESS_MAX: u32 = 10;
/// Guides for databases give "5 to 15 %" and "3 to 5 %" of memory; Linux's defaults of 20 and 10 are
/// noticeable where memory is large.
const DIRTY_RATIO_MAX: u32 = 20;
/// With at least this much memory, even a small share of it takes a disk seconds to write.
const LARGE_MEMORY_BYTES: u64 = 64 << 30;

/// Pages that the server's allocator has, and has given to nobody.
const FREE_HEAP_BYTES: &str = "tcmalloc.tcmalloc.pageheap_free_bytes";

/// Returns the memory that the examined server may use, bytes, and what limits it: its control group, or the
/// host. `None` where the server is not on the host whose facts are known.
pub(crate) fn memory_limit(evidence: &Evidence<'_>) -> Option<(u64, &'static str)> {
    let group = evidence.host_settings()?.surroundings.memory_limit_bytes;
    let host_bytes = evidence.document.host.as_ref().map(|h| h.memory_bytes);
    match (group, host_bytes.filter(|bytes| *bytes > 0)) {
        (Some(group), host) if host.is_none_or(|host| group < host) => {
            Some((group, "its control group"))
        }
        (_, host) => Some((host?, "the host")),
    }
}

/// Returns the largest cache that this much memory supports.
pub(crate) fn largest_cache(limit_bytes: u64) -> u64 {
    whole(CACHE_SHARE_MAX * limit_bytes as f64)
}

/// Returns by how much the cache may grow within its server's control group or host; `None` where that is not
/// known. Memory of processes that the kernel cannot reclaim counts too: a cache can only grow into what is
/// left.
pub(crate) fn room_for_cache(evidence: &Evidence<'_>, cache_bytes: u64) -> Option<u64> {
    let (limit_bytes, _) = memory_limit(evidence)?;
    let room = largest_cache(limit_bytes).saturating_sub(cache_bytes);
    let held = group_memory(evidence).and_then(|group| group.in_use_bytes());
    let left = held.map(|held| whole(FILLED_SHARE_MAX * limit_bytes as f64).saturating_sub(held));
    Some(left.map_or(room, |left| room.min(left)))
}

/// The kernel's figures for the control group whose limit applies, at the end of the observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupMemory {
    pub(crate) limit_bytes: u64,
    pub(crate) used_bytes: u64,
    /// Memory of the processes themselves: it cannot be reclaimed without swapping.
    pub(crate) anonymous_bytes: Option<u64>,
    /// Memory used by the page cache.
    pub(crate) file_bytes: Option<u64>,
    /// Memory of the server's own that its allocator keeps although nothing is in it: what a larger cache has left, for
    /// one. The kernel counts it as the process's.
    pub(crate) free_heap_bytes: u64,
}

impl GroupMemory {
    /// Returns how much of its own memory the processes use.
    pub(crate) fn in_use_bytes(&self) -> Option<u64> {
        let held = self.anonymous_bytes?;
        Some(held.saturating_sub(self.free_heap_bytes))
    }
}

/// Returns the memory of the limiting group; `None` without such a limit.
pub(crate) fn group_memory(evidence: &Evidence<'_>) -> Option<GroupMemory> {
    let last = |name| Some(whole(evidence.counters.get("cgroup", name)?.last()?));
    let limit_bytes = last("memory_limit_bytes")?;
    // A limit above the host's memory has no effect.
    let host = evidence.document.host.as_ref().map(|h| h.memory_bytes);
    if host.is_some_and(|host| host > 0 && limit_bytes >= host) {
        return None;
    }
    Some(GroupMemory {
        limit_bytes,
        used_bytes: last("memory_bytes")?,
        anonymous_bytes: last("memory_anonymous_bytes"),
        file_bytes: last("memory_file_bytes"),
        free_heap_bytes: evidence
            .status(&[FREE_HEAP_BYTES])
            .and_then(Series::last)
            .map_or(0, whole),
    })
}

/// Returns the smallest memory that supports such a cache.
pub(crate) fn memory_for_cache(cache_bytes: u64) -> u64 {
    whole((cache_bytes as f64 / CACHE_SHARE_MAX).ceil())
}

/// Returns a limit of memory that allows this much, bytes.
pub(crate) fn limit_for(bytes: u64) -> u64 {
    let steps = bytes.div_ceil(LIMIT_STEP_BYTES);
    steps.saturating_mul(LIMIT_STEP_BYTES)
}

/// Returns the command that gives the server's control group such a limit; `None` where nothing is known of such a group, or
/// the host has less memory.
pub(crate) fn limit_command(evidence: &Evidence<'_>, limit_bytes: u64) -> Option<String> {
    let surroundings = &evidence.host_settings()?.surroundings;
    let file = surroundings.memory_limit_file.as_deref()?;
    let host_bytes = evidence.document.host.as_ref()?.memory_bytes;
    let fits = limit_bytes as f64 <= HOST_SHARE_MAX * host_bytes as f64;
    fits.then(|| format!("echo {limit_bytes} > {}", shell_quoted(file)))
}

/// Returns whether the cache is more than its server's memory can support.
pub(crate) fn cache_is_too_large(cache_bytes: u64, limit_bytes: u64) -> bool {
    cache_bytes as f64 > CACHE_SHARE_MAX * limit_bytes as f64
}

pub(super) fn cache_size(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    // Host and control group are known only for the server on this host.
    evidence.host_settings()?;
    let cache_bytes = evidence.examined()?.target.cache_bytes?;
    let (limit_bytes, whose) = memory_limit(evidence)?;
    let usual_bytes = (limit_bytes.saturating_sub(1 << 30) / 2).max(SMALLEST_CONFIGURED_CACHE);
    let largest_bytes = largest_cache(limit_bytes);
    let [usual, largest] = [usual_bytes, largest_bytes].map(format_bytes);
    let of = format_bytes(limit_bytes);
    Some(HostAnswer {
        setting: "cache size".into(),
        has: format_bytes(cache_bytes),
        wants: match usual_bytes > largest_bytes {
            true => format!("up to {largest} (MongoDB's default, {usual}, does not fit into {of})"),
            false if usual == largest => format!("{usual} (MongoDB's default for {of})"),
            false => format!("up to {largest} (MongoDB's default for {of} is {usual})"),
        },
        fits: !cache_is_too_large(cache_bytes, limit_bytes),
        why: format!(
            "{whose} allows {}; whether more cache would help, the answer on memory says",
            format_bytes(limit_bytes)
        ),
        loss_s_per_hour: None,
        command: cache_command(evidence, usual_bytes.min(largest_bytes) >> 20),
    })
}

/// Returns the command: the running server applies it at once, and mongod.conf keeps it. Other servers have
/// their own ways.
fn cache_command(evidence: &Evidence<'_>, mib: u64) -> String {
    if mongod_version(evidence).is_none() {
        return String::new();
    }
    let script = format!(
        "db.adminCommand({{setParameter: 1, wiredTigerEngineRuntimeConfig: \"cache_size={mib}M\"}})"
    );
    mongosh(evidence.uri(), &script)
}

/// Checks transparent huge pages: "disable" up to 7.0, "enable" with `defrag` at `defer+madvise` from 8.0 on,
/// whose allocator relies on them (manual, "Transparent Huge Pages").
pub(super) fn huge_pages(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let version = mongod_version(evidence)?;
    let has = evidence
        .host_settings()?
        .transparent_huge_pages
        .as_deref()?;
    let ([best, wants], why) = match version {
        0..8 => (
            ["never", "never or madvise"],
            "before 8.0 the server's memory is touched here and there, and huge pages waste time and memory",
        ),
        _ => (
            ["always", "always"],
            "from 8.0 on the server's allocator works per processor on huge pages",
        ),
    };
    Some(HostAnswer {
        setting: "transparent huge pages".into(),
        has: has.into(),
        wants: wants.into(),
        fits: match version {
            0..8 => has != "always",
            _ => has == "always",
        },
        why: format!("{why} (MongoDB {version}; production notes)"),
        loss_s_per_hour: None,
        command: format!("echo {best} > /sys/kernel/mm/transparent_hugepage/enabled"),
    })
}

/// Checks NUMA: "Disable NUMA", that is, start with interleaved memory and `vm.zone_reclaim_mode` 0
/// (production notes).
pub(super) fn numa(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let host = evidence.host_settings()?;
    (host.numa_nodes > 1).then_some(())?;
    let interleaved = host.numa_interleaved?;
    let reclaims = host.zone_reclaim_mode.is_some_and(|mode| mode > 0);
    Some(HostAnswer {
        setting: "NUMA".into(),
        has: format!(
            "{} nodes, {}{}",
            host.numa_nodes,
            if interleaved { "interleaved" } else { "not interleaved" },
            if reclaims { ", zone reclaim on" } else { "" }
        ),
        wants: "memory interleaved over the nodes, zone reclaim off".into(),
        fits: interleaved && !reclaims,
        why: "a node that is full pushes out pages or swaps while others have memory free (production \
              notes)"
            .into(),
        loss_s_per_hour: None,
        command: "sysctl vm.zone_reclaim_mode=0  # and start mongod with numactl --interleave=all"
            .into(),
    })
}

/// Checks swappiness: "Set vm.swappiness to 0 or 1" (production notes).
pub(super) fn swappiness(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let host = evidence.host_settings()?;
    let has = host.swappiness?;
    let swap_bytes = host.swap_total_bytes?;
    (swap_bytes > 0).then_some(())?;
    Some(HostAnswer {
        setting: "swappiness".into(),
        has: format!("{has}, {} of swap", format_bytes(swap_bytes)),
        wants: format!("1, at most {SWAPPINESS_MAX}"),
        fits: has <= SWAPPINESS_MAX,
        why: "a cache that is swapped out is read from the disk twice (production notes)".into(),
        loss_s_per_hour: None,
        command: "sysctl vm.swappiness=1".into(),
    })
}

/// Checks how much the page cache collects before writers wait. It matters on hosts with much memory, where a
/// share of it is more than a disk writes in a second.
pub(super) fn dirty_ratio(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let host = evidence.host_settings()?;
    let memory_bytes = evidence.document.host.as_ref()?.memory_bytes;
    let (ratio, background) = (host.dirty_ratio?, host.dirty_background_ratio?);
    let collected_bytes = memory_bytes / 100 * u64::from(background.min(100));
    Some(HostAnswer {
        setting: "dirty ratios of the page cache".into(),
        has: format!("{ratio} %, in the background from {background} %"),
        wants: match memory_bytes >= LARGE_MEMORY_BYTES {
            true => format!("up to {DIRTY_RATIO_MAX} %, in the background from at most 5 %"),
            false => format!("up to {DIRTY_RATIO_MAX} %"),
        },
        fits: ratio <= DIRTY_RATIO_MAX && (memory_bytes < LARGE_MEMORY_BYTES || background <= 5),
        why: format!(
            "{} may collect before the kernel begins to write; a checkpoint's sync waits for it",
            format_bytes(collected_bytes)
        ),
        loss_s_per_hour: None,
        command: "sysctl vm.dirty_ratio=15 vm.dirty_background_ratio=5".into(),
    })
}
