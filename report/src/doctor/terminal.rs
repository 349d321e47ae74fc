//! Renders the first screen as plain text: the verdict, the fate of an earlier run's findings if requested,
//! at most five findings, what was not measured.

use seekscope_doctor::answers::IndexBuildAnswer;
use seekscope_run::units::{format_count, format_list};
use seekscope_run::{Limitation, Outcome};

use super::tables::change_line;
use super::{DoctorReportInput, verdict};
use crate::page::{Block, terminal};
use crate::wording;

/// The most limitations shown; the page has all with their remedies.
const LIMITATIONS: usize = 6;
/// Reasons for that.
const REASONS: usize = 3;
/// The most findings of an earlier run that are shown; the page has all.
const CHANGES: usize = 8;

/// Renders the screen, `width` characters wide; commands stay on one line each, so that they can be copied.
/// Control characters in names are shown, not executed.
pub fn first_screen(input: &DoctorReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let is_clean = document.outcome == Outcome::Ok && wording::outcome_word(document) == "ok";
    let mut blocks = Block::sentences((!is_clean).then(|| wording::outcome(document)));
    blocks.push(Block::Sentence(verdict(input)));
    blocks.extend(since(input));
    let (first, others) = input.findings();
    blocks.push(Block::Findings(first.to_vec(), 1));
    blocks.extend(Block::sentences(builds(input)));
    if !others.is_empty() {
        let ids: Vec<&str> = others.iter().map(|finding| finding.id.as_str()).collect();
        let count = format_count(others.len() as u64);
        blocks.push(Block::Sentence(format!(
            "Further findings ({count}, in the report): {}.",
            ids.join(", ")
        )));
    }
    blocks.extend(Block::sentences(input.missing_user().map(String::from)));
    blocks.extend(Block::sentences(not_measured(input)));
    terminal::text_of(&blocks, width, "") + "\n"
}

/// Returns a line for each finding of the earlier run or this one.
fn since(input: &DoctorReportInput<'_>) -> Option<Block> {
    let earlier = input.examination()?.since.as_ref()?;
    let changes = earlier.changes.iter().take(CHANGES);
    let mut lines = vec![format!("Since the earlier run {}:", earlier.run)];
    lines.extend(earlier.caution());
    lines.extend(changes.map(change_line));
    match earlier.changes.len() {
        0 => lines.push("Neither run has a finding.".into()),
        count if count > CHANGES => lines.push(format!(
            "and {} more, in the report.",
            format_count((count - CHANGES) as u64)
        )),
        _ => {}
    }
    Some(Block::List(lines))
}

/// Says how long indexes took, where no finding does.
fn builds(input: &DoctorReportInput<'_>) -> Option<String> {
    let builds = &input.answers().index_builds;
    let is_compared = |namespace: &str| {
        let mut against = builds.iter().filter_map(|build| build.against.as_ref());
        against.any(|against| against.namespace == namespace)
    };
    let findings = &input.diagnosis.findings;
    let is_told = |sentence: &String| findings.iter().any(|f| f.evidence.contains(sentence));
    let sentences: Vec<String> = builds
        .iter()
        .filter(|build| build.against.is_some() || !is_compared(&build.namespace))
        .map(IndexBuildAnswer::sentence)
        .filter(|sentence| !is_told(sentence))
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns what was not measured, and why, on one line.
fn not_measured(input: &DoctorReportInput<'_>) -> Option<String> {
    let limitations = &input.document.limitations;
    let list = |of: fn(&Limitation) -> &str, most: usize| {
        let mut all: Vec<&str> = Vec::new();
        for text in limitations.iter().map(of) {
            if !text.is_empty() && !all.contains(&text) {
                all.push(text);
            }
        }
        format_list(&all, most, "; ")
    };
    let whats = list(|limitation| &limitation.what, LIMITATIONS);
    let whys = list(|limitation| &limitation.why, REASONS);
    match (whats.is_empty(), whys.is_empty()) {
        (true, _) => None,
        (false, true) => Some(format!("Not measured: {whats}.")),
        (false, false) => Some(format!("Not measured: {whats}. Why: {whys}.")),
    }
}
