//! `server.unresponsive`: the server ended while it was watched, or answered nobody for seconds.
//!
//! It precedes all other findings: what they say of the other seconds may have nothing to do with it, and a server that
//! does nothing looks as if it had nothing to wait for.

use seekscope_run::{Finding, Silence};

use super::Detector;
use crate::Evidence;
use crate::thresholds::UNRESPONSIVE;
use crate::wording::duration;

pub(super) const DETECTOR: Detector = Detector {
    ids: &[UNRESPONSIVE],
    detect: |evidence, _answers| unresponsive(evidence, "server").into_iter().collect(),
};

/// A silence that ended no earlier than this before the end of the watch may have gone on.
const AT_THE_END_S: f64 = 1.0;

/// Returns whether it ended while it was watched, or answered nobody for seconds.
pub(in crate::detectors) fn is_unresponsive(evidence: &Evidence<'_>) -> bool {
    let examination = evidence.examination();
    examination.is_some_and(|examination| {
        examination.server_lost_after_ns.is_some() || examination.silence.is_some()
    })
}

/// Returns whether the server answered no more before the watch ended.
fn lasted_to_the_end(evidence: &Evidence<'_>, silence: Silence) -> bool {
    let ended_ns = silence.after_ns.saturating_add(silence.duration_ns);
    let watched_s = evidence.observed_s().unwrap_or(f64::INFINITY);
    ended_ns as f64 / 1e9 >= watched_s - AT_THE_END_S
}

/// Returns whether the kernel killed a process of the server's control group, because the group had no memory left.
fn was_out_of_memory(evidence: &Evidence<'_>) -> bool {
    let killed = evidence.counters.get("cgroup", "oom_kills");
    killed.is_some_and(|series| series.increase().is_some_and(|killed| killed > 0.0))
}

/// Says what became of who was watched: a server, or the mongos of a cluster.
pub(crate) fn unresponsive(evidence: &Evidence<'_>, who: &str) -> Option<Finding> {
    let examination = evidence.examination()?;
    let seconds = |ns: u64| duration(ns as f64 / 1e9);
    let (title, sentence) = match (examination.server_lost_after_ns, examination.silence) {
        (Some(after_ns), _) if was_out_of_memory(evidence) => (
            format!(
                "The {who} was lost {} after the watch began, when the kernel's OOM killer ended a process of its control \
                 group",
                seconds(after_ns)
            ),
            "The group had used up the memory that it may have: its count of processes that were killed for that \
             (oom_kill) rose while it was watched.",
        ),
        (Some(after_ns), _) => (
            format!(
                "The {who} was lost {} after the watch began",
                seconds(after_ns)
            ),
            "Its process had gone, or nothing listened any more. What was seen until then need not be why.",
        ),
        (None, Some(silence)) => (
            format!(
                "The {who} answered nobody for {}{}, from {} after the watch began",
                match lasted_to_the_end(evidence, silence) {
                    true => "at least ",
                    false => "",
                },
                seconds(silence.duration_ns),
                seconds(silence.after_ns)
            ),
            "It did not answer a ping within a second, and its counters stood still or could not be read. The process \
             was there, stopped or too busy to answer.",
        ),
        (None, None) => return None,
    };
    Some(Finding {
        id: UNRESPONSIVE.into(),
        title,
        evidence: vec![sentence.into()],
        confidence: "high".into(),
        risk: "The other findings are about the seconds in which it answered.".into(),
        command: match evidence.examined().and_then(|member| member.target.pid) {
            Some(pid) if examination.server_lost_after_ns.is_none() => {
                format!("ps -o pid,stat,wchan:20,etime,rss -p {pid}")
            }
            _ => String::new(),
        },
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;
    use crate::thresholds::NOTHING_WRONG;

    #[test]
    fn it_comes_first_and_acquits_no_disk() {
        let mut recording = Recording::new();
        recording.rising("opcounters.query", 10.0);
        for name in ["reads", "writes", "read_bytes", "write_bytes"] {
            recording.values("diskstats", name, |s| s);
        }
        let ids = |recording: &Recording| {
            let findings = recording.diagnosis().findings.into_iter();
            findings.map(|finding| finding.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&recording), [NOTHING_WRONG]);
        recording.examination().silence = Some(Silence {
            after_ns: 7_000_000_000,
            duration_ns: 13_000_000_000,
        });
        assert_eq!(ids(&recording), [UNRESPONSIVE]);
        let title = &recording.findings(&DETECTOR)[0].title;
        assert_eq!(
            title,
            "The server answered nobody for 13.0 s, from 7.00 s after the watch began"
        );
        recording.examination().silence = Some(Silence {
            after_ns: 50_000_000_000,
            duration_ns: 10_000_000_000,
        });
        let title = &recording.findings(&DETECTOR)[0].title;
        assert!(title.contains("for at least 10.0 s, from"), "{title}");
        recording.examination().server_lost_after_ns = Some(20_000_000_000);
        let title = &recording.findings(&DETECTOR)[0].title;
        assert_eq!(title, "The server was lost 20.0 s after the watch began");
        recording.values("cgroup", "oom_kills", |s| if s < 20.0 { 3.0 } else { 4.0 });
        let title = &recording.findings(&DETECTOR)[0].title;
        assert!(title.contains("OOM killer"), "{title}");
    }
}
