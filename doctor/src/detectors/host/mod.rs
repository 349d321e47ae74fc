//! Detects problems of the host: its filesystem, disk queue, memory and limits.

mod filesystem;
mod huge_pages;
mod memory_limit;
mod memory_short;
mod numa;
mod open_files;
mod scheduler;

use seekscope_run::Finding;

use super::Detector;
use crate::answers::HostAnswer;
use crate::wording::capitalised;
use crate::{Answers, Evidence};

pub(super) const DETECTORS: &[Detector] = &[
    filesystem::DETECTOR,
    scheduler::DETECTOR,
    huge_pages::DETECTOR,
    numa::DETECTOR,
    memory_limit::DETECTOR,
    memory_short::DETECTOR,
    open_files::DETECTOR,
];

/// Makes a finding of the answer for a setting that does not fit; none where it fits or is not known. The
/// present setting is a fact, but the gain of changing it was not measured: hence at most medium confidence.
fn unfit(
    answers: &Answers,
    setting: &str,
    id: &str,
    risk: &str,
    title: impl Fn(&HostAnswer) -> String,
) -> Vec<Finding> {
    let answer = answers.host.iter().find(|answer| answer.setting == setting);
    let Some(answer) = answer.filter(|answer| !answer.fits) else {
        return Vec::new();
    };
    vec![Finding {
        id: id.into(),
        title: title(answer),
        evidence: vec![
            format!(
                "{}: {} (host); wanted: {}.",
                answer.setting, answer.has, answer.wants
            ),
            sentence(&answer.why),
        ],
        confidence: "medium".into(),
        risk: risk.into(),
        saves_s_per_hour: answer.loss_s_per_hour,
        command: answer.command.clone(),
        ..Finding::default()
    }]
}

fn sentence(text: &str) -> String {
    format!("{}.", capitalised(text))
}

/// Returns whether the examined server runs on this host. Pressure is the host's, so it is only reported then.
fn runs_here(evidence: &Evidence<'_>) -> bool {
    evidence.host_settings().is_some()
}
