//! Works out how much memory a knob may give to a server: what its host and its memory groups allow, less
//! what the server needs beside its cache.

use mongodb::bson::Document;
use seekscope_run::tune::KnobValue;
use seekscope_server::{GroupMemory, ProcFs};
use seekscope_tune::space::Risk;

use super::fit::cap;
use crate::knob_file::{KnobEntry, Route};

/// The least memory left beside the cache, MiB: an idle server does not show what connections, sorts, index
/// builds and the allocator will take.
const BESIDE_CACHE_MIB_MIN: u64 = 256;

/// Memory of a server whose process and memory groups are visible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerMemory {
    /// The lowest limit of its memory groups, MiB; `None` if none has a limit.
    pub limit_mib: Option<u64>,
    /// Resident memory of its process, MiB, if that is known.
    pub resident_mib: Option<u64>,
}

impl ServerMemory {
    /// Returns `None` if its memory groups are not visible from here.
    pub fn of(proc_fs: &ProcFs, pid: u32) -> Option<Self> {
        let groups = GroupMemory::all_of(proc_fs, pid)?;
        let limits = groups.iter().filter_map(GroupMemory::limit_bytes);
        Some(Self {
            limit_mib: limits.min().map(|bytes| bytes >> 20),
            resident_mib: proc_fs.rss_bytes(pid).ok().map(|bytes| bytes >> 20),
        })
    }

    /// Returns what the process needs beside its cache, MiB: its resident memory beyond the cache, and at
    /// least [`BESIDE_CACHE_MIB_MIN`].
    fn beside_cache_mib(&self, status: &Document) -> u64 {
        let beyond_mib = || {
            let cache = status.get_document("wiredTiger").ok()?;
            let cache = cache.get_document("cache").ok()?;
            let bytes = super::whole(cache.get("bytes currently in the cache")?)?;
            let cached_mib = u64::try_from(bytes).ok()? >> 20;
            Some(self.resident_mib?.saturating_sub(cached_mib))
        };
        beyond_mib().unwrap_or_default().max(BESIDE_CACHE_MIB_MIN)
    }
}

/// The bounds of a knob that takes memory.
pub(super) struct Bounds<'a> {
    /// Memory of host and memory groups together, MiB, if known.
    pub(super) memory_mib: Option<u64>,
    /// See [`super::Surroundings::seen`].
    pub(super) seen: Option<ServerMemory>,
    /// The range is the user's own.
    pub(super) is_users: bool,
    /// `serverStatus`.
    pub(super) status: &'a Document,
}

impl Bounds<'_> {
    /// Bounds the knob, whose current value always remains possible. Returns what people should know of it
    /// before it is tuned.
    pub(super) fn apply(&self, entry: &mut KnobEntry, current: &KnobValue) -> Option<String> {
        let is_cache = is_cache_in_mib(entry);
        if entry.knob.risk != Risk::Memory && !is_cache {
            return None;
        }
        let current = current.number();
        let Some(seen) = &self.seen else {
            let unseen = "the memory groups of the server cannot be seen from here";
            return Some(match current.filter(|_| is_cache && !self.is_users) {
                Some(current_mib) => {
                    cap(entry, current_mib);
                    format!(
                        "{unseen}, so it is not raised above {current_mib} MiB, what it is set to; a knob file \
                         can give it another `high`"
                    )
                }
                None => format!(
                    "{unseen}, so nothing but its range bounds it; a server that takes more memory than its \
                     group allows is killed"
                ),
            });
        };
        let memory_mib = self.memory_mib.filter(|_| is_cache)?;
        let beside_mib = seen.beside_cache_mib(self.status);
        let room_mib = memory_mib.saturating_sub(beside_mib) as f64;
        let max_mib = current.map_or(room_mib, |current| current.max(room_mib));
        cap(entry, max_mib).then(|| {
            format!(
                "it is not raised above {max_mib} MiB: host and memory groups allow the server {memory_mib} MiB, \
                 of which {beside_mib} MiB are left for what it needs beside its cache"
            )
        })
    }
}

/// Returns whether it is the size of WiredTiger's cache, in MiB.
fn is_cache_in_mib(entry: &KnobEntry) -> bool {
    match &entry.set {
        Route::Engine { key, suffix } => key == "cache_size" && suffix == "MB",
        Route::Local { name, suffix } => name == "cache_size" && suffix == "M",
        _ => false,
    }
}
