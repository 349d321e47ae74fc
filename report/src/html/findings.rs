//! Findings as markup: what was found, on what evidence, what acting on it is worth, and the command.

use maud::{Markup, html};
use seekscope_run::Finding;

use crate::wording;

/// Findings by rank, the first of them with that number.
pub(crate) fn ranked(findings: &[Finding], first: usize) -> Markup {
    html! {
        ol.findings start=(first) {
            @for (index, finding) in findings.iter().enumerate() {
                li { span.rank aria-hidden="true" { (first + index) } (block(finding)) }
            }
        }
    }
}

/// One finding.
pub(crate) fn block(finding: &Finding) -> Markup {
    html! {
        article.finding data-finding=(finding.id) {
            div.told {
                h3 { bdi { (finding.title) } }
                ul { @for sentence in &finding.evidence { li { bdi { (sentence) } } } }
                (command(&finding.command))
            }
            dl.worth {
                div.gain {
                    dt { "Gain" }
                    dd { bdi { (wording::expected(finding).unwrap_or_else(|| "not estimated".into())) } }
                }
                @if !finding.confidence.is_empty() {
                    div { dt { "Confidence" } dd { bdi { (finding.confidence) } } }
                }
                @if !finding.risk.is_empty() {
                    div { dt { "Risk" } dd { bdi { (finding.risk) } } }
                }
                div { dt { "Id" } dd { code.id { (finding.id) } } }
            }
        }
    }
}

/// What to type, to be copied as it stands; nothing where there is nothing to type.
fn command(text: &str) -> Markup {
    html! {
        @if !text.is_empty() {
            div.copyable {
                pre.command { @for line in text.lines() { code.copied { (line) } } }
            }
        }
    }
}
