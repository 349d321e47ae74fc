//! The top of the report: how the run ended, the verdict.

use maud::{Markup, html};
use seekscope_run::RunDocument;

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
