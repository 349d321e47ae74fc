//! `memory.limit-ignored`: the cache is larger than the server's control group or host can support.

use seekscope_run::Finding;
use seekscope_run::units::format_bytes;

use super::{Detector, unfit};
use crate::answers::{cache_is_too_large, memory_limit};
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
        finding.evidence.push(
            "Before the cache is full the kernel ends the server, or swaps it out and gives it no page \
             cache."
                .into(),
        );
    }
    found
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

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.host().surroundings.memory_limit_bytes = Some(16 * GIB);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
