//! `memory.short`: tasks wait for memory, or the server was swapped out.

use seekscope_run::Finding;
use seekscope_run::units::format_bytes;

use super::{Detector, runs_here};
use crate::wording::percent;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["memory.short"],
    detect,
};

/// Share of the time in which some task waits for memory: a healthy host has next to none, and what waits
/// for one reclaimed page is counted too.
const PRESSURE_SHARE_MIN: f64 = 0.02;
/// Of the server, swapped out. A few pages that nobody uses go with any swap.
const SWAPPED_BYTES_MIN: u64 = 256 << 20;
/// Shorter observations say nothing about pressure.
const SPAN_S_MIN: f64 = 5.0;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    if !runs_here(evidence) {
        return Vec::new();
    }
    let pressure = pressure_share(evidence).filter(|share| *share >= PRESSURE_SHARE_MIN);
    let swapped = evidence
        .host_settings()
        .and_then(|host| host.swapped_bytes)
        .filter(|bytes| *bytes >= SWAPPED_BYTES_MIN);
    let mut evidence_of = Vec::new();
    if let Some(share) = pressure {
        evidence_of.push(format!(
            "Some task waited for memory {} of the time (pressure).",
            percent(share)
        ));
    }
    if let Some(bytes) = swapped {
        evidence_of.push(format!(
            "{} of the server are swapped out (host).",
            format_bytes(bytes)
        ));
    }
    if evidence_of.is_empty() {
        return Vec::new();
    }
    let title = match (pressure, swapped) {
        (Some(share), _) => {
            format!(
                "{} is short of memory: tasks wait for it {} of the time",
                whose(evidence),
                percent(share)
            )
        }
        (None, bytes) => format!(
            "{} of the server's memory are swapped out and have to be read back",
            format_bytes(bytes.unwrap_or(0))
        ),
    };
    vec![Finding {
        id: "memory.short".into(),
        title,
        evidence: evidence_of,
        confidence: if pressure.is_some() { "medium" } else { "low" }.into(),
        risk: "A smaller cache reads more from the disk; see the answer on memory first.".into(),
        command: "ps -eo rss,comm --sort=-rss | head".into(),
        ..Finding::default()
    }]
}

/// The kernel counts for all of the host, its groups that reach their own limits included.
fn whose(evidence: &Evidence<'_>) -> &'static str {
    let host = evidence.host_settings();
    match host.and_then(|host| host.surroundings.memory_limit_bytes) {
        Some(_) => "The server's control group or the host",
        None => "The host",
    }
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

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.values("pressure", "memory.some_us", |s| s * 100.0);
        recording.host().swapped_bytes = Some(1 << 20);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
