//! `memory.limit-ignored`: the cache is larger than the server's control group or host can support.

use seekscope_run::Finding;
use seekscope_run::units::format_bytes;

use super::{Detector, unfit};
use crate::answers::{
    SMALLEST_CONFIGURED_CACHE, cache_is_too_large, largest_cache, limit_command, limit_for,
    memory_for_cache, memory_limit,
};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["memory.limit-ignored"],
    detect,
};

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let cache_bytes = evidence.examined().and_then(|m| m.target.cache_bytes);
    let Some((cache_bytes, (limit_bytes, whose))) = cache_bytes.zip(memory_limit(evidence)) else {
        return Vec::new();
    };
    if !cache_is_too_large(cache_bytes, limit_bytes) {
        return Vec::new();
    }
    let risk = "A smaller cache reads more from the disk until then; keep it in mongod.conf \
                (storage.wiredTiger.engineConfig.cacheSizeGB) too.";
    let mut found = unfit(answers, "cache size", "memory.limit-ignored", risk, |_| {
        format!(
            "The cache of {} does not fit into the {} of memory that {whose} allows",
            format_bytes(cache_bytes),
            format_bytes(limit_bytes)
        )
    });
    for finding in &mut found {
        if largest_cache(limit_bytes) < SMALLEST_CONFIGURED_CACHE && !finding.command.is_empty() {
            instead_of_configuring(evidence, finding, cache_bytes, limit_bytes);
        }
        finding.evidence.push(
            "Before the cache is full the kernel ends the server, or swaps it out and gives it no page \
             cache."
                .into(),
        );
    }
    found
}

/// Says what to do where the configuration file can hold no cache that fits: allow more memory, or set a small one at run
/// time.
fn instead_of_configuring(
    evidence: &Evidence<'_>,
    finding: &mut Finding,
    cache_bytes: u64,
    limit_bytes: u64,
) {
    const LEAST: &str = "storage.wiredTiger.engineConfig.cacheSizeGB is at least 0.25";
    let least = format_bytes(SMALLEST_CONFIGURED_CACHE);
    let enough = limit_for(memory_for_cache(SMALLEST_CONFIGURED_CACHE));
    let more = match limit_command(evidence, enough) {
        Some(command) if cache_bytes <= SMALLEST_CONFIGURED_CACHE => {
            finding.command = command;
            finding.risk = format!(
                "Other processes on the host then have less. The limit lasts until the group is made anew: set it where \
                 the group is defined as well. A cache of {}, which fits without that, can only be set at run time: \
                 mongod.conf cannot hold it ({LEAST}).",
                format_bytes(largest_cache(limit_bytes))
            );
            return;
        }
        Some(command) => format!("a limit of {} ({command})", format_bytes(enough)),
        None => format!("memory of {}", format_bytes(enough)),
    };
    finding.risk = format!(
        "A smaller cache reads more from the disk. It lasts until the next start, for mongod.conf cannot hold it \
         ({LEAST}): the least that it can hold, {least}, needs {more}."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GIB, Recording};

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.host().surroundings.memory_limit_bytes = Some(4 * GIB);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        let title = "The cache of 8.00 GiB does not fit into the 4.00 GiB of memory that its control \
                     group allows";
        assert_eq!(found[0].title, title);
    }

    /// A server whose group allows 200 MiB, with a cache of this many MiB.
    fn in_small_group(cache_mib: u64) -> Recording {
        let mut recording = Recording::new();
        recording.examined().target.cache_bytes = Some(cache_mib << 20);
        let surroundings = &mut recording.host().surroundings;
        surroundings.memory_limit_bytes = Some(200 << 20);
        let file = "/sys/fs/cgroup/memory/db/memory.limit_in_bytes";
        surroundings.memory_limit_file = Some(file.into());
        recording
    }

    /// A regression: MongoDB's default of 256 MiB, which does not fit, was advised to a server that had it.
    #[test]
    fn no_cache_is_advised_that_does_not_fit() {
        let mut recording = in_small_group(256);
        let found = recording.findings(&DETECTOR).remove(0);
        let wanted =
            "wanted: up to 160 MiB (MongoDB's default, 256 MiB, does not fit into 200 MiB).";
        assert!(found.evidence[0].ends_with(wanted), "{found:?}");
        let raise = "echo 335544320 > /sys/fs/cgroup/memory/db/memory.limit_in_bytes";
        assert_eq!(found.command, raise);
        assert!(found.risk.contains("cannot hold it"), "{found:?}");

        recording.document.host.as_mut().unwrap().memory_bytes = 330 << 20;
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.command.contains("cache_size=160M"), "{found:?}");
        assert!(found.risk.contains("needs memory of 320 MiB"), "{found:?}");

        let found = in_small_group(11_500).findings(&DETECTOR).remove(0);
        assert!(found.command.contains("cache_size=160M"), "{found:?}");
        let limit = format!("needs a limit of 320 MiB ({raise})");
        assert!(found.risk.contains(&limit), "{found:?}");
    }

    #[test]
    fn a_range_of_one_value_is_told_as_one() {
        let mut recording = in_small_group(1024);
        recording.host().surroundings.memory_limit_bytes = Some(320 << 20);
        let found = recording.findings(&DETECTOR).remove(0);
        let wanted = "wanted: 256 MiB (MongoDB's default for 320 MiB).";
        assert!(found.evidence[0].ends_with(wanted), "{found:?}");
        assert!(found.command.contains("cache_size=256M"), "{found:?}");
        assert!(found.risk.contains("keep it in mongod.conf"), "{found:?}");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.host().surroundings.memory_limit_bytes = Some(16 * GIB);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
