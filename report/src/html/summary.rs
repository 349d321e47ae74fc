//! The top of the report: how the run ended, the verdict, the findings.

use maud::{Markup, html};
use seekscope_run::{Finding, RunDocument};

use crate::{ReportInput, wording};

/// The page's title.
pub(super) fn title(document: &RunDocument) -> String {
    format!(
        "seekscope {}: why the database waits for its disk",
        document.command
    )
}

/// Title, outcome and verdict.
pub(super) fn header(input: &ReportInput<'_>) -> Markup {
    let document = input.document;
    let target = document.target.as_ref();
    html! {
        p.outcome data-outcome=(wording::outcome_word(document)) { (wording::outcome(document)) }
        p.brand { "seekscope " (document.command) }
        h1 {
            @match document.findings.first() {
                Some(finding) => bdi { (finding.title) },
                None => "No finding: nothing was concluded from this run",
            }
        }
        @if let Some(finding) = document.findings.first() {
            p.verdict { bdi { (finding.evidence.join(" ")) } }
        }
        p.meta {
            (crate::facts::date(document.started.realtime_ns))
            @if let Some(target) = target {
                @if !target.product.is_empty() {
                    " · " bdi { (target.product) " " (target.version) }
                }
            }
            @if let Some(device) = &document.device {
                @if let Some(disk) = &device.disk { " · " bdi { (disk) } ", " bdi { (device.filesystem) } }
            }
        }
    }
}

/// All findings.
pub(super) fn findings(document: &RunDocument) -> Markup {
    html! {
        section #findings {
            h2 { "Findings" }
            @if document.findings.is_empty() {
                p.note { "None. The tables below show what was measured." }
            }
            @for finding in &document.findings { (finding_block(finding)) }
        }
    }
}

fn finding_block(finding: &Finding) -> Markup {
    html! {
        article.finding {
            h3 { bdi { (finding.title) } " " code.id { (finding.id) } }
            ul { @for sentence in &finding.evidence { li { bdi { (sentence) } } } }
            dl {
                dt { "Expected gain" }
                dd {
                    @match &finding.gain {
                        Some(gain) => (wording::gain(gain)),
                        None => "not estimated",
                    }
                }
                dt { "Confidence" }
                dd { (finding.confidence) }
                dt { "Risk" }
                dd { bdi { (finding.risk) } }
                dt { "Act on it" }
                dd {
                    @if finding.command.is_empty() { "nothing" }
                    @else { code { (finding.command) } }
                }
            }
        }
    }
}
