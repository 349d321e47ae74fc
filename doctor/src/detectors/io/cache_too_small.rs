//! `cache.too-small`: pages are read again that more cache would have kept.
//!
//! With a trace, this comes from the memory answer; without one, from a bound: reads beyond the size of all data
//! must be repeats.

use seekscope_run::units::{format_bytes, whole};
use seekscope_run::{CollectionFacts, Finding};

use super::{Detector, confidence, engine_option, history_store, saved_per_hour};
use crate::answers::{
    MemoryAnswer, counts_decompression, group_memory, memory_for_cache, room_for_cache,
};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::percent;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["cache.too-small"],
    detect,
};

/// Smallest share of the reads that must be saved.
const SAVED_SHARE_MIN: f64 = 0.2;
/// WiredTiger begins to evict at 80 % (`eviction_target`); a cache emptier than this has not missed for lack
/// of room.
const FULL_SHARE: f64 = 0.7;
const RECOMMENDED_STEP_BYTES: u64 = 32 << 20;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    if !is_full(evidence) {
        return Vec::new();
    }
    let mut found = match &answers.memory {
        Some(memory) => by_curve(evidence, memory),
        None => by_volume(evidence),
    };
    if let Some(finding) = &mut found {
        finding
            .evidence
            .extend(history_store::much_of_reads(answers));
    }
    found.into_iter().collect()
}

/// Returns whether the cache was full, as far as is known. Large documents, and files that are dropped, empty it again
/// and again.
fn is_full(evidence: &Evidence<'_>) -> bool {
    let status = |name| evidence.status(&[name]);
    let used = status("wiredTiger.cache.bytes currently in the cache");
    let used = used.and_then(|series| series.max());
    let most = status("wiredTiger.cache.maximum bytes configured");
    let most = most.and_then(|series| series.last());
    match (used, most) {
        (Some(used), Some(most)) if most > 0.0 => used / most >= FULL_SHARE,
        _ => true,
    }
}

/// Suggests what the server's host can support, where that is worthwhile; else what another host would need.
fn by_curve(evidence: &Evidence<'_>, memory: &MemoryAnswer) -> Option<Finding> {
    let room = memory
        .cache_bytes
        .and_then(|bytes| room_for_cache(evidence, bytes));
    let here = room.and_then(|bytes| of_curve(evidence, memory, bytes));
    here.or_else(|| of_curve(evidence, memory, u64::MAX))
}

fn of_curve(evidence: &Evidence<'_>, memory: &MemoryAnswer, upto_bytes: u64) -> Option<Finding> {
    let best = memory.worth_adding(upto_bytes)?;
    let saved = best.waiting_saved_s_per_hour;
    let share = 1.0 - best.miss_ratio;
    if share < SAVED_SHARE_MIN + memory.error || saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let reads = best.reads_saved_per_s / share;
    let least = saved * (share - memory.error) / share;
    let mut finding = finding(evidence, memory.cache_bytes, best.added_bytes, share);
    // The last of the sizes is the title's.
    let smaller = memory.sentence(best.added_bytes.saturating_sub(1));
    finding.evidence = vec![format!(
        "{reads:.0} reads per second went past the server's cache; {} of them were of pages that it \
             had read and dropped shortly before (trace).",
        percent(share)
    )];
    if !smaller.is_empty() {
        finding.evidence.push(format!("{smaller} (trace)."));
    }
    finding.evidence.push(format!(
        "Method: {}, so that it may save more.",
        memory.method
    ));
    finding.saves_s_per_hour = Some(saved);
    // All of these reads at most.
    finding.gain = Some(saved_per_hour(saved, least, saved / share));
    Some(finding)
}

/// Suggests from the volume: reads beyond the size of all data were repeated.
fn by_volume(evidence: &Evidence<'_>) -> Option<Finding> {
    let seconds = evidence.observed_s()?;
    let read = evidence.status_rate(&["wiredTiger.block-manager.bytes read"])? * seconds;
    let member = evidence.examined()?;
    if member.collections_left_out > 0 || member.collections.is_empty() {
        return None;
    }
    let sum = |bytes: fn(&CollectionFacts) -> u64| {
        let sizes = member.collections.iter().map(bytes);
        sizes.fold(0, u64::saturating_add)
    };
    let stored = sum(CollectionFacts::stored_bytes);
    let share = 1.0 - stored as f64 / read.max(1.0);
    let waiting = evidence.read_waiting()?;
    let saved = waiting.s_per_s * 3600.0 * share;
    if share < SAVED_SHARE_MIN || saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let data = sum(|c| c.data_bytes);
    let cache_bytes = member.target.cache_bytes;
    let added = data.max(stored).saturating_sub(cache_bytes.unwrap_or(0));
    let mut finding = finding(
        evidence,
        cache_bytes,
        added.max(RECOMMENDED_STEP_BYTES),
        share,
    );
    finding.evidence = vec![
        format!(
            "{} were read in {seconds:.0} s from files that hold {}, so at least {} of it had been read \
             before (serverStatus, collStats).",
            format_bytes(whole(read)),
            format_bytes(stored),
            percent(share)
        ),
        format!(
            "Application threads waited {:.2} s per second for pages (serverStatus; page-cache hits{} included).",
            waiting.s_per_s,
            match counts_decompression(evidence) {
                true => " and decompression",
                false => "",
            }
        ),
    ];
    finding.saves_s_per_hour = Some(saved);
    finding.gain = Some(saved_per_hour(saved, saved * 0.5, waiting.s_per_s * 3600.0));
    Some(finding)
}

fn finding(
    evidence: &Evidence<'_>,
    cache_bytes: Option<u64>,
    added_bytes: u64,
    share: f64,
) -> Finding {
    let has = cache_bytes.map_or("The cache".into(), |b| {
        format!("The cache of {}", format_bytes(b))
    });
    let wanted = cache_bytes.unwrap_or(0).saturating_add(added_bytes);
    // A cache too large for its host kills its server: no command is suggested for that, nor where the room
    // is not known.
    let room = cache_bytes.and_then(|bytes| room_for_cache(evidence, bytes));
    let fits = room.is_some_and(|room| added_bytes <= room);
    Finding {
        id: "cache.too-small".into(),
        title: format!(
            "{has} is too small: {} more would save {} of the reads",
            format_bytes(added_bytes),
            percent(share)
        ),
        confidence: confidence(evidence),
        risk: match fits {
            true => risk(evidence),
            false => format!(
                "It needs a host, or a control group, with about {}; what the cache takes, the page cache \
                 loses.",
                format_bytes(memory_for_cache(wanted))
            ),
        },
        command: match fits {
            true => engine_option(evidence, &format!("cache_size={}M", wanted >> 20)),
            false => String::new(),
        },
        ..Finding::default()
    }
}

fn risk(evidence: &Evidence<'_>) -> String {
    let text = "what the cache takes, the page cache loses. The setting holds until a restart: write it \
                into the configuration as well.";
    let limits = evidence.host_settings().map(|host| &host.surroundings);
    let limit = limits.and_then(|limits| limits.memory_limit_bytes);
    let available = evidence
        .host_settings()
        .and_then(|host| host.memory_available_bytes);
    // The host's memory is of no use to a server whose control group may not use it.
    match (group_memory(evidence), limit, available) {
        (Some(group), _, _) => format!(
            "The server's control group allows {} and holds {}{}; {text}",
            format_bytes(group.limit_bytes),
            format_bytes(group.used_bytes),
            group.file_bytes.map_or(String::new(), |bytes| format!(
                ", of which {} are page cache",
                format_bytes(bytes)
            ))
        ),
        (None, Some(limit), _) => format!(
            "The server's control group allows {}; {text}",
            format_bytes(limit)
        ),
        (None, None, Some(bytes)) => {
            format!("The host has {} available; {text}", format_bytes(bytes))
        }
        (None, None, None) => format!("See that the host has the memory; {text}"),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, GIB, Recording};

    /// 2048 pages of 32 KiB in turn, over and over.
    fn read_again(rounds: u32) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let tid = recording.thread("conn1");
        for i in 0..2048 * rounds {
            recording.miss(Call {
                tid,
                file_id,
                at_s: f64::from(i) * 0.007,
                offset: u64::from(i % 2048 * 7919 % 2048) * 32_768,
                bytes: 32_768,
                latency_s: 0.003,
            });
        }
        recording.steady("wiredTiger.cache.maximum bytes configured", 1e9);
        recording
    }

    #[test]
    fn ill() {
        let mut recording = read_again(4);
        recording.steady("wiredTiger.cache.bytes currently in the cache", 8e8);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        let saved = found[0].saves_s_per_hour.unwrap();
        let expected = 0.75 * 8192.0 * 0.003 * 60.0;
        assert!((saved / expected - 1.0).abs() < 0.1, "{saved} {expected}");
        assert!(
            found[0].command.contains("cache_size="),
            "{}",
            found[0].command
        );
        let said = found[0].evidence.join(" ");
        assert_eq!(said.matches("is not seen").count(), 1, "{said}");
        let title = found[0].title.split_once(": ").unwrap().1;
        let added = title.split_once(" would").unwrap().0;
        assert!(!said.contains(added), "{title}: {said}");
    }

    #[test]
    fn no_command_asks_for_memory_that_is_not_there() {
        let mut recording = read_again(4);
        let command = |recording: &Recording| {
            let found = recording.findings(&DETECTOR).remove(0);
            (found.command, found.risk)
        };
        // The cache of 8 GiB is 80 % of it already.
        recording.host().surroundings.memory_limit_bytes = Some(10 * GIB);
        let (text, risk) = command(&recording);
        assert_eq!(text, "");
        assert!(risk.starts_with("It needs a host"), "{risk}");
        // There is room for the working set of 64 MiB, but not for all that the host has.
        recording.host().surroundings.memory_limit_bytes = Some(10 * GIB + (900 << 20));
        let wanted = command(&recording).0;
        assert!(wanted.contains("cache_size=8"), "{wanted}");
        recording.examined().target.cache_bytes = None;
        recording.steady(
            "wiredTiger.cache.maximum bytes configured",
            4.0 * GIB as f64,
        );
        let told = command(&recording).0;
        assert!(told.contains("cache_size=4"), "{told}");
        recording.examination().host = None;
        assert_eq!(command(&recording).0, "", "this host is not the server's");
    }

    #[test]
    fn in_a_control_group_its_limit_counts() {
        let mut recording = read_again(4);
        recording.host().memory_available_bytes = Some(20 * GIB);
        recording.host().surroundings.memory_limit_bytes = Some(16 * GIB);
        let of = |recording: &Recording| recording.findings(&DETECTOR).remove(0);
        assert!(
            of(&recording)
                .risk
                .starts_with("The server's control group allows 16.0 GiB; what")
        );
        for (name, bytes) in [
            ("memory_limit_bytes", 16 * GIB),
            ("memory_bytes", 15 * GIB),
            ("memory_anonymous_bytes", 9 * GIB),
            ("memory_file_bytes", 6 * GIB),
        ] {
            recording.values("cgroup", name, |_| bytes as f64);
        }
        let found = of(&recording);
        assert_ne!(found.command, "", "page cache makes way for it");
        let held = "allows 16.0 GiB and holds 15.0 GiB, of which 6.00 GiB are page cache; what";
        assert!(found.risk.contains(held), "{}", found.risk);
        assert!(!found.risk.contains("host"), "{}", found.risk);
        // Sorts and connections hold the rest beyond 80 % of the limit.
        recording.values("cgroup", "memory_anonymous_bytes", |_| 14.4 * GIB as f64);
        let found = of(&recording);
        assert_eq!(found.command, "");
        assert!(
            found.risk.contains("control group, with about"),
            "{}",
            found.risk
        );
    }

    #[test]
    fn healthy() {
        let mut once = read_again(1);
        once.steady("wiredTiger.cache.bytes currently in the cache", 8e8);
        assert_eq!(once.findings(&DETECTOR), [], "nothing is read twice");
        let mut empty = read_again(4);
        empty.steady("wiredTiger.cache.bytes currently in the cache", 2e8);
        assert_eq!(empty.findings(&DETECTOR), [], "the cache has room");
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }

    #[test]
    fn a_login_alone_tells_what_was_read_more_than_once() {
        let mut recording = Recording::new();
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(&format!("{read} time (usecs)"), 500_000.0);
        recording.rising(&format!("{read} count"), 500.0);
        recording.rising("wiredTiger.block-manager.bytes read", GIB as f64 / 20.0);
        recording.examined().collections.push(CollectionFacts {
            namespace: "shop.orders".into(),
            storage_bytes: GIB,
            data_bytes: 3 * GIB,
            ..CollectionFacts::default()
        });
        let found = recording.findings(&DETECTOR);
        // 3 GiB were read of 1 GiB.
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved / 1200.0 - 1.0).abs() < 0.01, "{saved}");
        assert_eq!(found[0].confidence, "low");
        // There are 32 GiB, and a cache of 8 GiB.
        recording.examined().collections[0].data_bytes = 100 * GIB;
        assert_eq!(recording.findings(&DETECTOR)[0].command, "");
        recording.examined().collections[0].data_bytes = u64::MAX;
        recording.examined().collections.push(CollectionFacts {
            data_bytes: u64::MAX,
            ..CollectionFacts::default()
        });
        assert_eq!(recording.findings(&DETECTOR).len(), 1);
        recording.examined().collections.truncate(1);
        recording.examined().collections_left_out = 1;
        assert_eq!(recording.findings(&DETECTOR), [], "there may be more data");
    }
}
