//! Tells whether what a finding advises was done between the runs.

use std::collections::BTreeSet;

use seekscope_run::{Finding, MemberRecord};

use super::Examined;

/// Whether it was done. `Unknown` where no record of the runs tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acted {
    Done,
    /// What shows that it was not.
    Not(Undone),
    Unknown,
}

/// What is as it was, although a finding advises to change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undone {
    Cache,
    Limits,
    Memory,
    Indexes,
}

impl Acted {
    pub(super) fn of(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Self {
        let (is_done, undone) = match finding.id.as_str() {
            "cache.too-small" => (has_larger_cache(earlier, now), Undone::Cache),
            "disk.limited" => (have_other_limits(earlier, now), Undone::Limits),
            "memory.short" => (has_more_memory(earlier, now), Undone::Memory),
            _ if super::is_of_queries(finding) => {
                let changed = have_other_indexes(&finding.subject, earlier, now);
                (changed, Undone::Indexes)
            }
            _ => (None, Undone::Cache),
        };
        match is_done {
            Some(true) => Self::Done,
            Some(false) => Self::Not(undone),
            None => Self::Unknown,
        }
    }

    pub(super) fn undone(self) -> Option<Undone> {
        match self {
            Self::Not(undone) => Some(undone),
            _ => None,
        }
    }
}

impl Undone {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Cache => "the cache is no larger than it was",
            Self::Limits => "the limits are what they were",
            Self::Memory => "the server has no more memory than it had",
            Self::Indexes => "the collection has the indexes that it had",
        }
    }

    /// Says what changed instead where less is waited.
    pub(super) fn what_changed(self) -> String {
        let asked_of = match self {
            Self::Limits => "disk",
            _ => "server",
        };
        let is_so = self.in_words();
        format!("{is_so}, so it is what is asked of the {asked_of} that changed")
    }
}

/// Returns the sizes of the server's cache then and now, bytes.
pub(super) fn caches(earlier: Examined<'_>, now: Examined<'_>) -> Option<(u64, u64)> {
    let cache = |run: Examined<'_>| {
        let member = run.document.examination.as_ref()?.examined()?;
        member.target.cache_bytes
    };
    cache(earlier).zip(cache(now))
}

fn has_larger_cache(earlier: Examined<'_>, now: Examined<'_>) -> Option<bool> {
    caches(earlier, now).map(|(then, now)| then < now)
}

fn have_other_limits(earlier: Examined<'_>, now: Examined<'_>) -> Option<bool> {
    let limits = |run: Examined<'_>| {
        let host = run.document.examination.as_ref()?.host.as_ref()?;
        Some(host.surroundings.io_limits.clone())
    };
    let known = limits(earlier).filter(|known| !known.is_empty())?;
    Some(known != limits(now)?)
}

/// Returns whether the server has more memory beside its cache: by its control group's limit, the host's, or a smaller
/// cache.
fn has_more_memory(earlier: Examined<'_>, now: Examined<'_>) -> Option<bool> {
    let memory = |run: Examined<'_>| {
        let host = run.document.examination.as_ref()?.host.as_ref()?;
        let of_host = run.document.host.as_ref()?.memory_bytes;
        let limit = host.surroundings.memory_limit_bytes;
        Some(limit.map_or(of_host, |limit| limit.min(of_host)))
    };
    let has_smaller_cache = caches(earlier, now).is_some_and(|(then, now)| now < then);
    Some(memory(earlier)? < memory(now)? || has_smaller_cache)
}

fn have_other_indexes(collection: &str, earlier: Examined<'_>, now: Examined<'_>) -> Option<bool> {
    let indexes = |run: Examined<'_>| {
        let member: &MemberRecord = run.document.examination.as_ref()?.examined()?;
        let facts = member.collection(collection)?;
        let keys = facts.indexes.iter().map(|index| index.keys.clone());
        Some(keys.collect::<BTreeSet<String>>())
    };
    let known = indexes(earlier).filter(|known| !known.is_empty())?;
    Some(known != indexes(now)?)
}
