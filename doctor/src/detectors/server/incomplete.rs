//! `evidence.incomplete`: the measurements have gaps that could change the conclusions.

use seekscope_run::units::format_count;
use seekscope_run::{Finding, TraceFacts};

use super::Detector;
use crate::wording::percent;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["evidence.incomplete"],
    detect,
};

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let trace = evidence
        .document
        .phases
        .first()
        .and_then(|phase| phase.trace.as_ref());
    let mut missing: Vec<&str> = Vec::new();
    let mut sentences: Vec<String> = trace.into_iter().flat_map(gaps).collect();
    if !sentences.is_empty() {
        missing.push("a part of the trace was lost");
    }
    if let Some(examination) = evidence.examination() {
        let early = examination
            .cost
            .as_ref()
            .and_then(|cost| cost.ended_early.as_deref());
        missing.extend(early.map(|_| "the observation ended before its time"));
        sentences.extend(early.map(|why| format!("The observation ended before its time: {why}.")));
        let damaged = examination
            .ftdc
            .as_ref()
            .map_or(0, |ftdc| ftdc.damaged_chunks);
        if damaged > 0 {
            missing.push("some of the server's diagnostic files are damaged");
            sentences.push(format!(
                "Damaged chunks of the server's diagnostic files that were left out: {damaged} (FTDC)."
            ));
        }
    }
    if sentences.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        id: "evidence.incomplete".into(),
        title: format!("What was measured is incomplete: {}", missing.join("; ")),
        evidence: sentences,
        confidence: "high".into(),
        risk: "Shares and sums of the other findings may be too low.".into(),
        command: String::new(),
        ..Finding::default()
    }]
}

fn gaps(trace: &TraceFacts) -> Vec<String> {
    let mut sentences = Vec::new();
    if trace.truncated {
        sentences
            .push("The trace was cut off before its end, and what it lost is not known.".into());
    }
    if trace.loss_matters() {
        // Requests of disks are few beside the calls that the page cache served.
        let of_events = (trace.lost, trace.seen, "events");
        let of_requests = (
            trace.lost_end,
            trace.requests_of_files(),
            "requests to the disk for the server's files",
        );
        let share = |(lost, of, _): (u64, u64, &str)| lost as f64 / of.max(1) as f64;
        let (lost, of, what) = match of_requests.1 > 0 && share(of_requests) > share(of_events) {
            true => of_requests,
            false => of_events,
        };
        sentences.push(format!(
            "{} of {} {what} were lost ({}; trace).",
            format_count(lost),
            format_count(of),
            percent(share((lost, of, what)))
        ));
    }
    if !trace.adds_up() {
        sentences.push("The trace's counts do not add up.".into());
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn traced(seen: u64, lost: u64, truncated: bool) -> Recording {
        let mut recording = Recording::new();
        recording.document.phases[0].trace = Some(TraceFacts {
            seen,
            lost,
            written: seen - lost,
            truncated,
            ..TraceFacts::default()
        });
        recording
    }

    #[test]
    fn ill() {
        let found = traced(1_000_000, 30_000, false).findings(&DETECTOR);
        let title = "What was measured is incomplete: a part of the trace was lost";
        assert_eq!(found[0].title, title, "the figures are the evidence's");
        assert_eq!(
            found[0].evidence,
            ["30,000 of 1,000,000 events were lost (3.0 %; trace)."]
        );
        assert_eq!(traced(10, 0, true).findings(&DETECTOR).len(), 1);
    }

    #[test]
    fn healthy() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(traced(1_000_000, 5, false).findings(&DETECTOR), []);
        assert_eq!(traced(51, 1, false).findings(&DETECTOR), []);
    }
}
