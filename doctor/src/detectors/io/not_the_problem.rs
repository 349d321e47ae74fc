//! `disk.not-the-problem`: it was looked at, and nothing is wrong with the disk.
//!
//! Whether anything else says otherwise is settled where findings are ranked (`ranking.rs`): this one
//! goes when another saves anything noticeable.

use seekscope_run::Finding;

use super::{Detector, EVENTS_MIN, confidence};
use crate::thresholds::NOTHING_WRONG;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &[NOTHING_WRONG],
    detect,
};

/// Used share of the ability, beyond which "nothing is wrong" would be too much.
const UTILISATION_MAX: f64 = 0.8;
/// Waiting for reads, s per s, that nothing explains: then neither is anything acquitted.
const WAITING_MAX: f64 = 1.0;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let waiting = evidence.read_waiting();
    let load = answers.device_load.as_ref();
    if waiting.is_none() && load.is_none() {
        return None;
    }
    let utilisation = load.and_then(|load| load.utilisation);
    let unexplained = waiting.is_some_and(|waiting| waiting.s_per_s > WAITING_MAX);
    let at_ceiling = load.is_some_and(|load| load.ceiling.is_some());
    if unexplained
        || (at_ceiling && waiting.is_some_and(|w| w.s_per_s > 0.1))
        || utilisation.is_some_and(|share| share > UTILISATION_MAX)
    {
        return None;
    }
    let mut sentences = Vec::new();
    sentences.extend(waiting.map(|waiting| {
        format!(
            "Threads waited {} for reads in each second, {:.1} reads per second ({}).",
            duration(waiting.s_per_s),
            waiting.reads_per_s,
            waiting.source
        )
    }));
    sentences.extend(load.map(|load| {
        format!(
            "The disk served {:.0} reads and {:.0} writes per second (diskstats).",
            load.reads_per_s, load.writes_per_s
        )
    }));
    sentences.extend(utilisation.map(|share| {
        let whose = if load.is_some_and(|l| l.ability_measured) {
            "measured"
        } else {
            "typical"
        };
        format!(
            "That is {} of its ability ({whose} device model).",
            percent(share)
        )
    }));
    sentences.extend(evidence.device_use.and_then(|found| {
        let syncs = &found.journal_otherwise_ns;
        (syncs.count as f64 >= EVENTS_MIN).then(|| {
            format!(
                "Syncs of the journal took {} at the median (trace).",
                duration(syncs.p50 as f64 / 1e9)
            )
        })
    }));
    let waited = waiting.map_or(String::new(), |waiting| {
        format!(
            ": threads wait {} of the time for it",
            percent(waiting.s_per_s)
        )
    });
    Some(Finding {
        id: NOTHING_WRONG.into(),
        title: format!("Nothing is wrong with the disk{waited}"),
        evidence: sentences,
        confidence: confidence(evidence),
        risk: "It says nothing of hours that were not observed.".into(),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    fn reading(per_s: u32, latency_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(per_s * 60).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / f64::from(per_s),
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s,
            });
        }
        recording
    }

    #[test]
    fn healthy_servers_are_told_so() {
        let found = reading(20, 2e-4).findings(&DETECTOR);
        let title = "Nothing is wrong with the disk: threads wait 0.4 % of the time for it";
        assert_eq!(found[0].title, title);
        let first = reading(20, 2e-4).diagnosis().findings.remove(0);
        assert_eq!(first.id, "disk.not-the-problem");
    }

    #[test]
    fn nothing_is_acquitted_unseen_or_unexplained() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(reading(40, 0.05).findings(&DETECTOR), []);
    }
}
