//! A plan or a reordering as one HTML file.

use maud::html;
use seekscope_run::RunDocument;

use super::content::{Part, parts};
use super::sentences;
use crate::facts::{command_line, date, device_facts, target_facts};
use crate::html::facts::{limitations, measured_on};
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::table;
use crate::wording;

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let record = document.reorder.as_ref();
    let parts = record.map_or_else(Vec::new, |record| parts(document, record));
    let body = html! {
        header {
            p.outcome data-outcome=(wording::outcome_word(document)) { (wording::outcome(document)) }
            p.brand { "seekscope " (document.command) }
            h1 {
                @match record.and_then(sentences::headline) {
                    Some(headline) => bdi { (headline) },
                    None => bdi { "Reordering " (record.map_or("", |r| r.namespace.as_str())) },
                }
            }
            p.meta { (date(document.started.realtime_ns)) }
        }
        main {
            section {
                @for part in &parts {
                    @match part {
                        Part::Text(text) => p { bdi { (text) } },
                        Part::Table(content) => (table(content)),
                    }
                }
            }
            (limitations(document))
            (measured_on(document, &[
                ("Disk under the data", document.device.as_ref().map(device_facts)),
                ("Server", document.target.as_ref().map(target_facts)),
            ]))
            section {
                p { "This report was made by seekscope " (document.seekscope_version) ", with" }
                p.command { code { (command_line(document)) } }
            }
        }
    };
    let title = format!("seekscope {}: order on disk", document.command);
    page(&title, body, &PageData::default(), &Blobs::default())
}

#[cfg(test)]
mod tests {
    use seekscope_run::{ReorderMeasurement, ReorderPlan};

    use super::*;

    #[test]
    fn names_are_shown_and_not_obeyed() {
        let mut document = RunDocument::begin("reorder", Vec::new());
        document.reorder = Some(ReorderMeasurement {
            namespace: "a.<script>alert(1)</script>\u{1b}[2J".into(),
            plan: Some(ReorderPlan::default()),
            ..ReorderMeasurement::default()
        });
        let page = html(&document);
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
        assert!(page.contains("Room needed"));
    }
}
