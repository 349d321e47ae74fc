//! The first screen as plain text: the verdict, what became of an earlier run's findings where that was
//! asked, at most five findings, what was not measured.

use seekscope_doctor::answers::IndexBuildAnswer;
use seekscope_doctor::ranking::is_boilerplate;
use seekscope_run::units::format_count;
use seekscope_run::{Finding, Outcome};

use super::tables::change_line;
use super::{DoctorReportInput, verdict};
use crate::terminal::visible;
use crate::text::wrapped;
use crate::wording;

/// Sentences of evidence for each finding; the page has all.
const EVIDENCE: usize = 2;
/// Limitations named; the page has all with their remedies.
const LIMITATIONS: usize = 6;
/// Findings of an earlier run that are named; the page has all.
const CHANGES: usize = 8;
const INDENT: &str = "   ";

/// Renders it, `width` characters wide; commands keep to one line each, so that they can be copied.
/// Control characters in names are shown, not obeyed.
pub fn first_screen(input: &DoctorReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let mut paragraphs = Vec::new();
    if document.outcome != Outcome::Ok || wording::outcome_word(document) != "ok" {
        paragraphs.push(wrapped(&wording::outcome(document), width, ""));
    }
    paragraphs.push(wrapped(&verdict(input), width, ""));
    paragraphs.extend(since(input, width));
    let (first, others) = input.findings();
    let numbered = first.iter().enumerate();
    paragraphs.extend(numbered.map(|(index, finding)| describe(finding, index + 1, width)));
    paragraphs.extend(builds(input).map(|text| wrapped(&text, width, "")));
    if !others.is_empty() {
        let ids: Vec<&str> = others.iter().map(|finding| finding.id.as_str()).collect();
        let count = format_count(others.len() as u64);
        let text = format!(
            "Further findings ({count}, in the report): {}.",
            ids.join(", ")
        );
        paragraphs.push(wrapped(&text, width, ""));
    }
    paragraphs.extend(not_measured(input).map(|text| wrapped(&text, width, "")));
    visible(&paragraphs.join("\n\n")) + "\n"
}

fn describe(finding: &Finding, number: usize, width: u16) -> String {
    let mut lines = vec![hanging(&format!("{number}. {}", finding.title), width)];
    if is_boilerplate(finding) {
        return lines.remove(0);
    }
    let evidence = finding.evidence.iter().take(EVIDENCE);
    lines.extend(evidence.map(|sentence| wrapped(sentence, width, INDENT)));
    let gain = wording::expected(finding).map(|gain| format!("Gain: {gain}."));
    let confidence = known(&finding.confidence).map(|word| format!("Confidence: {word}."));
    let risk = known(&finding.risk).map(|risk| format!("Risk: {risk}"));
    let worth: Vec<String> = [gain, confidence, risk].into_iter().flatten().collect();
    lines.push(wrapped(&worth.join(" "), width, INDENT));
    lines.extend(
        finding
            .command
            .lines()
            .map(|line| format!("{INDENT}$ {line}")),
    );
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

/// The first line begins at the margin, the others under the text behind the number.
fn hanging(text: &str, width: u16) -> String {
    wrapped(text, width, INDENT).trim_start().to_string()
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A line for each finding of the earlier run or this one.
fn since(input: &DoctorReportInput<'_>, width: u16) -> Option<String> {
    let earlier = input.examination()?.since.as_ref()?;
    let mut lines = vec![wrapped(
        &format!("Since the earlier run {}:", earlier.run),
        width,
        "",
    )];
    let changes = earlier.changes.iter().take(CHANGES);
    lines.extend(changes.map(|change| hanging(&change_line(change), width)));
    match earlier.changes.len() {
        0 => lines.push("Neither run has a finding.".into()),
        count if count > CHANGES => lines.push(format!(
            "and {} more, in the report.",
            format_count((count - CHANGES) as u64)
        )),
        _ => {}
    }
    Some(lines.join("\n"))
}

/// How long indexes took, where no finding says so.
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

/// One line.
fn not_measured(input: &DoctorReportInput<'_>) -> Option<String> {
    let limitations = &input.document.limitations;
    let mut named: Vec<&str> = limitations
        .iter()
        .map(|limitation| limitation.what.as_str())
        .collect();
    named.dedup();
    let more = named.len().saturating_sub(LIMITATIONS);
    named.truncate(LIMITATIONS);
    let rest = match more {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!named.is_empty()).then(|| format!("Not measured: {}{rest}.", named.join("; ")))
}
