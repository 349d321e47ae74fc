//! Shows findings as markup: what was found, the evidence, the gain from acting on it, and the command.

use maud::{Markup, html};
use seekscope_run::Finding;

use crate::wording;

/// Returns findings by rank, starting with number `first`.
pub(crate) fn ranked(findings: &[Finding], first: usize) -> Markup {
    html! {
        ol.findings start=(first) {
            @for (index, finding) in findings.iter().enumerate() {
                li { span.rank aria-hidden="true" { (first + index) } (block(finding)) }
            }
        }
    }
}

/// Returns one finding.
pub(crate) fn block(finding: &Finding) -> Markup {
    html! {
        article.finding data-finding=(finding.id) {
            div.told {
                h3 { bdi { (finding.heading()) } }
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

/// Returns the command to be copied unchanged; nothing if there is none.
fn command(text: &str) -> Markup {
    html! {
        @if !text.is_empty() {
            div.copyable {
                pre.command { @for line in text.lines() { code.copied { (line) } } }
            }
        }
    }
}
