//! `index-build.running` and `resync.running`: temporary work and its progress.

use seekscope_run::{Finding, OperationSeen};

use super::Detector;
use crate::wording::{duration, mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["index-build.running", "resync.running"],
    detect,
};

/// Fewest samples; a job that is over in a moment is no finding.
const LOOKS_MIN: u32 = 2;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let operations = evidence.examined().map_or(&[][..], |m| &m.operations);
    let running = operations
        .iter()
        .filter(|operation| operation.looks >= LOOKS_MIN);
    running
        .filter_map(|operation| {
            let (id, what, job) = kind_of(operation)?;
            // The person who permitted a build knows of it.
            let on = operation.namespace.as_deref();
            let is_of_this_run = on.and_then(|on| evidence.index_built_on(on)).is_some();
            if job == "index build" && is_of_this_run {
                return None;
            }
            Some(finding(evidence, answers, operation, (id, what, job)))
        })
        .collect()
}

fn kind_of(operation: &OperationSeen) -> Option<(&'static str, &'static str, &'static str)> {
    let kind = operation.kind.to_ascii_lowercase();
    if kind.contains("index build") {
        Some(("index-build.running", "An index build", "index build"))
    } else if kind.contains("initial sync") {
        Some(("resync.running", "An initial sync", "resync"))
    } else {
        None
    }
}

fn finding(
    evidence: &Evidence<'_>,
    answers: &Answers,
    operation: &OperationSeen,
    (id, what, job): (&str, &str, &str),
) -> Finding {
    let on = operation.namespace.as_deref().unwrap_or("*");
    if operation.has_ended() {
        return ended(operation, id, what);
    }
    let running_s = operation.running_us as f64 / 1e6;
    let mut sentences = vec![format!(
        "It was running in {} looks, for {} (currentOp).",
        operation.looks,
        duration(running_s)
    )];
    let done = done(operation);
    let state = match done {
        Some(done) => {
            sentences.push(format!(
                "{} of its present phase are done (currentOp); how long its phases take differs, so the end cannot be \
                 told from that.",
                percent(done)
            ));
            format!(", {} of its present phase done", percent(done))
        }
        None => format!(" for {}", duration(running_s)),
    };
    let mut durations = answers.durations.iter();
    if let Some(predicted) = durations.find(|d| d.job == job && d.namespace == on) {
        sentences.push(format!(
            "Alone on this disk it would take {} to {} ({}).",
            duration(predicted.low_s),
            duration(predicted.high_s),
            predicted.basis
        ));
    }
    Finding {
        id: id.into(),
        subject: on.into(),
        title: format!("{what} is running{}{state}", on_its_namespace(operation)),
        evidence: sentences,
        confidence: if done.is_some() { "medium" } else { "low" }.into(),
        risk: "To end it loses what it has done; it is mostly better to wait.".into(),
        command: mongosh(
            evidence.uri(),
            "db.currentOp(true).inprog.filter(o => o.progress)",
        ),
        ..Finding::default()
    }
}

/// Nothing can be done about it any more, but what was measured is to be read with it in mind.
fn ended(operation: &OperationSeen, id: &str, what: &str) -> Finding {
    Finding {
        id: id.into(),
        subject: operation.namespace.as_deref().unwrap_or("*").into(),
        title: format!(
            "{what} ran{} while the server was watched, and has ended",
            on_its_namespace(operation)
        ),
        evidence: vec![format!(
            "It was running in {} looks, and not in the last {} (currentOp).",
            operation.looks, operation.looks_since
        )],
        confidence: "high".into(),
        risk: "What was measured includes its reads and writes.".into(),
        ..Finding::default()
    }
}

fn on_its_namespace(operation: &OperationSeen) -> String {
    let namespace = operation.namespace.as_deref();
    namespace.map_or(String::new(), |namespace| format!(" on {namespace}"))
}

/// Returns the share of the present phase that is done.
fn done(operation: &OperationSeen) -> Option<f64> {
    let known = |(done, total): &(u64, u64)| *total > 0 && done <= total;
    let (done, total) = operation.progress.filter(known)?;
    Some(done as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use seekscope_run::IndexBuild;

    use super::*;
    use crate::testing::Recording;

    fn build(progress: (u64, u64)) -> OperationSeen {
        OperationSeen {
            kind: "index build".into(),
            namespace: Some("shop.orders".into()),
            running_us: 600_000_000,
            looks: 50,
            progress: Some(progress),
            ..OperationSeen::default()
        }
    }

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        let mut sync = build((1, 0));
        sync.kind = "initial sync".into();
        sync.namespace = None;
        recording.examined().operations = vec![build((250, 1000)), sync];
        let found = recording.findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "An index build is running on shop.orders, 25 % of its present phase done"
        );
        assert_eq!(found[1].title, "An initial sync is running for 10 min");
    }

    #[test]
    fn what_has_ended_is_not_running() {
        let mut recording = Recording::new();
        let mut over = build((610, 1000));
        over.looks_since = 20;
        recording.examined().operations = vec![over];
        let found = recording.findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "An index build ran on shop.orders while the server was watched, and has ended"
        );
        assert_eq!(found[0].command, "");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        let mut find = build((1, 2));
        find.kind = "command find".into();
        recording.examined().operations = vec![find];
        assert_eq!(recording.findings(&DETECTOR), []);
    }

    #[test]
    fn a_build_of_this_run_is_no_news() {
        let mut recording = Recording::new();
        recording.examined().operations = vec![build((250, 1000))];
        assert_eq!(recording.findings(&DETECTOR).len(), 1);
        let mut built = recording.document.phases[0].clone();
        built.namespace = Some("shop.orders".into());
        built.index_build = Some(IndexBuild {
            keys: r#"{"client":1}"#.into(),
            name: "seekscope_doctor".into(),
            documents: 1000,
            elapsed_ns: 600_000_000_000,
            repeats_ns: Vec::new(),
        });
        recording.document.phases.push(built);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
