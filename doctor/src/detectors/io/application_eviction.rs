//! `eviction.by-application-threads`: threads that should answer clients make room in the cache instead.
//!
//! WiredTiger has them help when the cache is more than 95 % full (`eviction_trigger`) or more than 20 %
//! dirty (`eviction_dirty_trigger`), because its own eviction threads do not keep up.

use seekscope_run::Finding;
use seekscope_run::units::format_count;

use super::{Detector, checkpoint, engine_option, saved_per_hour};
use crate::answers::split_by_checkpoints;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent, whole};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["eviction.by-application-threads"],
    detect,
};

/// µs; the name since WiredTiger 2.9, and what older and newer releases count.
pub(super) const EVICTING_US: [&str; 2] = [
    "wiredTiger.thread-yield.application thread time evicting (usecs)",
    "wiredTiger.cache.application thread time evicting (usecs)",
];
pub(in crate::detectors) const PAGES: [&str; 3] = [
    "wiredTiger.cache.pages evicted by application threads",
    "wiredTiger.cache.eviction - pages evicted by application threads",
    "wiredTiger.cache.page evict attempts by application threads",
];
/// Pages; fewer are a moment's bad luck.
const PAGES_MIN: f64 = 100.0;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let evicting = evidence.status(&EVICTING_US)?;
    let seconds = evicting.span_s();
    let mut evicting_s = evicting.increase()? / 1e6;
    let all_s = evicting_s;
    // While long checkpoints run, eviction stalls because of them.
    if let Some(found) = answers
        .checkpoints
        .as_ref()
        .filter(|_| checkpoint::is_harmful(evidence, answers))
    {
        let sides = split_by_checkpoints(evidence, found, &EVICTING_US);
        evicting_s = sides.map_or(0.0, |(_, otherwise)| otherwise.sum / 1e6);
    }
    let pages = evidence.status(&PAGES).and_then(|series| series.increase());
    let saved = evicting_s / seconds.max(1e-9) * 3600.0;
    if saved < NOTICEABLE_S_PER_HOUR || pages.is_some_and(|pages| pages < PAGES_MIN) {
        return None;
    }
    let mut sentences = vec![format!(
        "Application threads spent {} of {} evicting (serverStatus).",
        duration(all_s),
        duration(seconds)
    )];
    sentences.extend(pages.map(|pages| {
        format!(
            "They evicted {} pages (serverStatus).",
            format_count(whole(pages))
        )
    }));
    let gauge = |name: &str| evidence.status(&[name]).and_then(|series| series.mean());
    let most = gauge("wiredTiger.cache.maximum bytes configured");
    let filled = gauge("wiredTiger.cache.bytes currently in the cache").zip(most);
    sentences.extend(filled.map(|(used, most)| {
        format!(
            "The cache was {} full on average (serverStatus).",
            percent(used / most.max(1.0))
        )
    }));
    Some(Finding {
        id: "eviction.by-application-threads".into(),
        title: format!(
            "Application threads make room in the cache themselves: {} per hour",
            duration(saved)
        ),
        evidence: sentences,
        gain: Some(saved_per_hour(saved, saved * 0.2, saved)),
        saves_s_per_hour: Some(saved),
        confidence: "medium".into(),
        risk: "More eviction threads take CPU time; on a disk that is full they change nothing."
            .into(),
        command: engine_option(evidence, "eviction=(threads_min=4,threads_max=8)"),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.rising(EVICTING_US[0], 250_000.0);
        recording.rising(PAGES[0], 90.0);
        let found = recording.findings(&DETECTOR);
        let title = "Application threads make room in the cache themselves: 15 min per hour";
        assert_eq!(found[0].title, title);
        assert_eq!(found[0].saves_s_per_hour, Some(900.0));
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        recording.rising(EVICTING_US[0], 1000.0);
        recording.rising(PAGES[0], 90.0);
        assert_eq!(recording.findings(&DETECTOR), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
