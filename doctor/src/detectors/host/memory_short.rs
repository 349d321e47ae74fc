//! `memory.short`: the memory in use does not fit, tasks wait for memory, or the server was swapped out.
//!
//! A full control group says nothing by itself: page cache fills whatever there is. But a page that is read
//! again after its eviction (a refault) was evicted for lack of room, and a server whose reads are mostly
//! refaults, in a group that is at its limit, works on more data than fits. If there is room left, the refaults
//! are the last of an earlier shortage.

use seekscope_run::units::{format_bytes, whole};
use seekscope_run::{CollectionFacts, Finding, Gain};

use super::{Detector, runs_here};
use crate::answers::{GroupMemory, group_memory, limit_command, limit_for};
use crate::detectors::io::saved_per_hour;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["memory.short"],
    detect,
};

/// Share of the time in which some task waits for memory: a healthy host has next to none, and a wait for one
/// reclaimed page counts too.
const PRESSURE_SHARE_MIN: f64 = 0.02;
/// Bytes of the server that were swapped out. A few pages that nobody uses go with any swap.
const SWAPPED_BYTES_MIN: u64 = 256 << 20;
/// A host with this much memory available is not short of it.
const AVAILABLE_MIN_BYTES: u64 = 2 << 30;
/// Shorter observations say nothing about pressure.
const SPAN_S_MIN: f64 = 5.0;
/// Share of the disk's reads of data that had been in memory before.
const REFAULT_SHARE_MIN: f64 = 0.3;
/// Share of its limit that a group at the limit holds: the kernel reclaims a little more than it has to.
const FULL_SHARE: f64 = 0.95;
/// The share of refaults from which they make up most reads, which nothing else explains.
const REFAULT_SHARE_SURE: f64 = 0.6;
/// Share of what memory for all of the data saves that is saved in any case: the data may grow, and others in the group
/// may take of the memory.
const SAVED_SURELY: f64 = 0.5;
/// Memory that the allocator keeps, from which on it is told.
const FREE_HEAP_TOLD_BYTES: u64 = 64 << 20;
/// Factor for files in memory: besides them, page cache holds what the kernel needs to find its pages.
const FILES_IN_MEMORY: f64 = 1.1;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    if !runs_here(evidence) {
        return Vec::new();
    }
    let mut sentences = Vec::new();
    let refaults = Refaults::of(evidence);
    if let Some(refaults) = &refaults {
        sentences.extend(refaults.sentences(evidence));
    }
    let pressure = pressure_share(evidence).filter(|share| *share >= PRESSURE_SHARE_MIN);
    // Tasks of any control group that is at its limit count as tasks of the host.
    let pressure = pressure.filter(|_| !has_room(evidence));
    if let Some(share) = pressure {
        sentences.push(format!(
            "Some task waited for memory {} of the time (pressure).",
            percent(share)
        ));
    }
    let swapped = evidence
        .host_settings()
        .and_then(|host| host.swapped_bytes)
        .filter(|bytes| *bytes >= SWAPPED_BYTES_MIN);
    if let Some(bytes) = swapped {
        sentences.push(format!(
            "{} of the server are swapped out (host).",
            format_bytes(bytes)
        ));
    }
    let finding = match (&refaults, pressure, swapped) {
        (Some(refaults), _, _) => refaults.finding(evidence),
        (None, Some(share), _) => plain(
            format!(
                "{} is short of memory: tasks wait for it {} of the time",
                whose(evidence),
                percent(share)
            ),
            "medium",
        ),
        (None, None, Some(bytes)) => plain(
            format!(
                "{} of the server's memory are swapped out and have to be read back",
                format_bytes(bytes)
            ),
            "low",
        ),
        (None, None, None) => return Vec::new(),
    };
    vec![Finding {
        evidence: sentences,
        ..finding
    }]
}

fn plain(title: String, confidence: &str) -> Finding {
    Finding {
        id: "memory.short".into(),
        title,
        confidence: confidence.into(),
        risk: "A smaller cache leaves more memory to others, and reads more from the disk.".into(),
        command: "ps -eo rss,comm --sort=-rss | head".into(),
        ..Finding::default()
    }
}

/// Reads of data that had been in memory before.
struct Refaults {
    /// Share of what the disk read for the server.
    share: f64,
    read_bytes_per_s: f64,
    /// Waiting for these reads, and for all reads, s per hour.
    waiting_s_per_hour: f64,
    all_s_per_hour: f64,
    group: GroupMemory,
}

impl Refaults {
    /// Returns `None` where they are few, nobody waits for them, or the group has room.
    fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let group = group_memory(evidence)?;
        let used = evidence.counters.get("cgroup", "memory_bytes")?;
        let full = FULL_SHARE * group.limit_bytes as f64;
        if used.share(|bytes| bytes >= full) < 0.5 {
            return None;
        }
        let refaults = evidence.counters.get("cgroup", "memory_refault_bytes")?;
        (refaults.span_s() >= SPAN_S_MIN).then_some(())?;
        let again_bytes_per_s = refaults.rate_per_s()?;
        // The process alone, where that is readable: a group also counts what others in it read.
        let read = |source| evidence.rate(source, "read_bytes");
        let read_bytes_per_s = read("process").or_else(|| read("cgroup"))?;
        let share = (again_bytes_per_s / read_bytes_per_s.max(1.0)).min(1.0);
        let all_s_per_hour = evidence.read_waiting()?.s_per_s * 3600.0;
        let waiting_s_per_hour = all_s_per_hour * share;
        let found = share >= REFAULT_SHARE_MIN && waiting_s_per_hour >= NOTICEABLE_S_PER_HOUR;
        found.then_some(Self {
            share,
            read_bytes_per_s,
            waiting_s_per_hour,
            all_s_per_hour,
            group,
        })
    }

    fn sentences(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let mut sentences = vec![format!(
            "The disk read {} per second for the server; {} of that had been in memory before and was \
             evicted to make room (cgroup).",
            format_bytes(whole(self.read_bytes_per_s)),
            percent(self.share)
        )];
        let group = &self.group;
        let parts = group.anonymous_bytes.zip(group.file_bytes);
        sentences.push(format!(
            "The control group allows {} and holds {}{}.",
            format_bytes(group.limit_bytes),
            format_bytes(group.used_bytes),
            parts.map_or(String::new(), |(own, cache)| format!(
                ": {} of processes' own memory and {} of page cache",
                format_bytes(own),
                format_bytes(cache)
            ))
        ));
        sentences.extend((group.free_heap_bytes >= FREE_HEAP_TOLD_BYTES).then(|| {
            format!(
                "{} of the processes' memory are free: the server's allocator keeps them, as it does after a larger cache, \
                 and gives them back with time, or at a restart (serverStatus).",
                format_bytes(group.free_heap_bytes)
            )
        }));
        if let Some(stored) = stored_bytes(evidence) {
            sentences.push(format!(
                "The files of the data hold {} (collStats).",
                format_bytes(stored)
            ));
        }
        sentences.push(format!(
            "Threads waited {} per hour for these reads, out of {} for all reads; with enough memory, data read for the first time would not be read again either.",
            duration(self.waiting_s_per_hour),
            duration(self.all_s_per_hour)
        ));
        sentences
    }

    fn finding(&self, evidence: &Evidence<'_>) -> Finding {
        let (risk, command) = self.remedy(evidence);
        Finding {
            id: "memory.short".into(),
            title: format!(
                "The memory of the server's control group does not hold the data in use: {} of what the disk \
                 reads had been in memory before",
                percent(self.share)
            ),
            gain: Some(self.gain()),
            saves_s_per_hour: Some(self.gain().value),
            confidence: match self.share >= REFAULT_SHARE_SURE {
                true => "high",
                false => "medium",
            }
            .into(),
            risk,
            command,
            ..Finding::default()
        }
    }

    /// Returns what memory for all of the data would save: between the repeated reads alone and all of these reads, as
    /// long as files are still read for the first time.
    fn gain(&self) -> Gain {
        let saved = f64::midpoint(self.waiting_s_per_hour, self.all_s_per_hour);
        let least = self.waiting_s_per_hour * SAVED_SURELY;
        saved_per_hour(saved, least, self.all_s_per_hour)
    }

    /// Returns how much memory would hold the data, and how to allow it where this host has as much.
    fn remedy(&self, evidence: &Evidence<'_>) -> (String, String) {
        let others =
            "A cache that is set larger within the same memory takes the room from the page cache.";
        let wanted = self.wanted_bytes(evidence);
        if let Some(enough) = wanted.filter(|wanted| *wanted <= self.group.limit_bytes) {
            return (
                format!(
                    "About {} hold all of the data, and the group allows as much: what the server's allocator keeps is \
                     given back with time, or at a restart, which empties the cache. {others}",
                    format_bytes(enough)
                ),
                String::new(),
            );
        }
        let Some(wanted) = wanted else {
            return (
                format!("How much more memory the data in use needs is not known. {others}"),
                String::new(),
            );
        };
        match limit_command(evidence, wanted) {
            Some(command) => (
                format!(
                    "About {} would hold all of the data; other processes on the host then have less. The \
                     limit lasts until the group is made anew: set it where the group is defined as well. \
                     {others}",
                    format_bytes(wanted)
                ),
                command,
            ),
            None => (
                format!(
                    "All of the data needs a host, or a control group, with about {}; less helps in part. \
                     {others}",
                    format_bytes(wanted)
                ),
                String::new(),
            ),
        }
    }

    /// Returns the memory for all files and what processes hold themselves.
    fn wanted_bytes(&self, evidence: &Evidence<'_>) -> Option<u64> {
        let cache_bytes = evidence.examined()?.target.cache_bytes;
        let held = self.group.in_use_bytes();
        let own = held.or(cache_bytes)?.max(cache_bytes.unwrap_or(0));
        let files = whole(FILES_IN_MEMORY * stored_bytes(evidence)? as f64);
        let wanted = limit_for(own.saturating_add(files));
        // Where the allocator keeps nothing, the memory was seen to be too little.
        let is_enough = wanted <= self.group.limit_bytes;
        (!is_enough || self.group.free_heap_bytes > 0).then_some(wanted)
    }
}

/// Returns the bytes in the files of all collections and indexes; `None` where some were not asked about.
fn stored_bytes(evidence: &Evidence<'_>) -> Option<u64> {
    let member = evidence.examined()?;
    let all = member.collections_left_out == 0 && !member.collections.is_empty();
    let sizes = member.collections.iter().map(CollectionFacts::stored_bytes);
    all.then(|| sizes.fold(0, u64::saturating_add))
}

/// Says whose figure it is: the kernel counts for the whole host, including groups that reach their own
/// limits.
fn whose(evidence: &Evidence<'_>) -> &'static str {
    let host = evidence.host_settings();
    match host.and_then(|host| host.surroundings.memory_limit_bytes) {
        Some(_) => "The server's control group or the host",
        None => "The host",
    }
}

/// Returns whether the host has memory left, and so has the server's control group if it has a limit.
fn has_room(evidence: &Evidence<'_>) -> bool {
    let host = evidence.host_settings();
    let available = host.and_then(|host| host.memory_available_bytes);
    let group = group_memory(evidence);
    available.is_some_and(|bytes| bytes >= AVAILABLE_MIN_BYTES)
        && group
            .is_none_or(|group| (group.used_bytes as f64) < FULL_SHARE * group.limit_bytes as f64)
}

fn pressure_share(evidence: &Evidence<'_>) -> Option<f64> {
    let waited = evidence.counters.get("pressure", "memory.some_us")?;
    (waited.span_s() >= SPAN_S_MIN).then_some(())?;
    Some((waited.rate_per_s()? / 1e6).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.values("pressure", "memory.some_us", |s| s * 100_000.0);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].saves_s_per_hour, None, "others may wait");
        assert!(found[0].title.starts_with("The host is"), "{found:?}");
        recording.host().surroundings.memory_limit_bytes = Some(4 << 30);
        let title = &recording.findings(&DETECTOR)[0].title;
        assert!(
            title.starts_with("The server's control group or the host is"),
            "{title}"
        );
        let mut swapped = Recording::new();
        swapped.host().swapped_bytes = Some(1 << 30);
        assert!(swapped.findings(&DETECTOR)[0].title.starts_with("1.00 GiB"));
    }

    /// A group of 700 MiB whose server reads 4 MiB/s from 1.6 GiB of files, and waits half of the time.
    fn in_a_group(refaults_per_s: f64) -> Recording {
        holding(697.0, refaults_per_s)
    }

    /// The same with this much in it, MiB.
    fn holding(used_mib: f64, refaults_per_s: f64) -> Recording {
        const MIB: f64 = 1_048_576.0;
        let mut recording = Recording::new();
        recording.examined().target.cache_bytes = Some(256 << 20);
        recording.examined().collections.push(CollectionFacts {
            namespace: "shop.orders".into(),
            storage_bytes: 1600 << 20,
            ..CollectionFacts::default()
        });
        let limits = &mut recording.host().surroundings;
        limits.memory_limit_bytes = Some(700 << 20);
        limits.memory_limit_file = Some("/sys/fs/cgroup/memory/db/memory.limit_in_bytes".into());
        for (name, mib) in [
            ("memory_limit_bytes", 700.0),
            ("memory_bytes", used_mib),
            ("memory_anonymous_bytes", 300.0),
            ("memory_file_bytes", 390.0),
        ] {
            recording.values("cgroup", name, |_| mib * MIB);
        }
        recording.values("process", "read_bytes", |s| s * 4.0 * MIB);
        recording.values("cgroup", "memory_refault_bytes", |s| {
            s * refaults_per_s * MIB
        });
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(&format!("{read} time (usecs)"), 500_000.0);
        recording.rising(&format!("{read} count"), 150.0);
        recording
    }

    #[test]
    fn data_that_a_group_does_not_hold() {
        let found = in_a_group(3.8).findings(&DETECTOR).remove(0);
        let gain = found.gain.as_ref().unwrap();
        let bounds = [gain.low, gain.value, gain.high].map(f64::round);
        assert_eq!(bounds, [855.0, 1755.0, 1800.0], "of 1800 s for all reads");
        assert_eq!(found.saves_s_per_hour, Some(gain.value));
        assert_eq!(
            found.title,
            "The memory of the server's control group does not hold the data in use: 95 % of what the disk \
             reads had been in memory before"
        );
        let held = "allows 700 MiB and holds 697 MiB: 300 MiB of processes' own memory and 390 MiB of page";
        assert!(found.evidence[1].contains(held), "{:?}", found.evidence);
        // 300 MiB and 1.1 times 1600 MiB, rounded up.
        let limit = "echo 2214592512 > /sys/fs/cgroup/memory/db/memory.limit_in_bytes";
        assert_eq!(found.command, limit);
    }

    /// A regression: after a cache of 1280 MiB, which the allocator keeps, one of 256 MiB was to need as much again.
    #[test]
    fn memory_that_the_allocator_keeps_free_is_not_needed() {
        let mut recording = in_a_group(3.8);
        recording.values("cgroup", "memory_anonymous_bytes", |_| 650.0 * 1_048_576.0);
        let keeps = |recording: &mut Recording, mib: f64| {
            recording.steady("tcmalloc.tcmalloc.pageheap_free_bytes", mib * 1_048_576.0);
            recording.findings(&DETECTOR).remove(0)
        };
        let found = keeps(&mut recording, 350.0);
        assert!(found.risk.contains("About 2.06 GiB"), "{}", found.risk);
        let told = "350 MiB of the processes' memory are free";
        assert!(found.evidence[2].starts_with(told), "{:?}", found.evidence);
        recording.examined().collections[0].storage_bytes = 300 << 20;
        let found = keeps(&mut recording, 350.0);
        assert_eq!(found.command, "");
        assert!(found.risk.contains("allows as much"), "{}", found.risk);
    }

    #[test]
    fn no_limit_is_advised_that_the_host_cannot_bear() {
        let mut recording = in_a_group(3.8);
        recording.document.host.as_mut().unwrap().memory_bytes = 2 << 30;
        let found = recording.findings(&DETECTOR).remove(0);
        assert_eq!(found.command, "");
        assert!(found.risk.contains("with about 2.06 GiB"), "{}", found.risk);
        recording.examined().collections_left_out = 1;
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.risk.contains("is not known"), "{}", found.risk);
    }

    #[test]
    fn a_group_full_of_page_cache_is_well() {
        assert_eq!(
            in_a_group(0.4).findings(&DETECTOR),
            [],
            "read for the first time"
        );
        let room = holding(600.0, 3.8).findings(&DETECTOR);
        assert_eq!(
            room,
            [],
            "what was evicted earlier comes back into free memory"
        );
        let mut elsewhere = in_a_group(3.8);
        elsewhere.examination().host = None;
        assert_eq!(
            elsewhere.findings(&DETECTOR),
            [],
            "this is not the server's host"
        );
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.values("pressure", "memory.some_us", |s| s * 100.0);
        recording.host().swapped_bytes = Some(1 << 20);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
