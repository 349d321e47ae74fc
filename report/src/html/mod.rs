//! The HTML report of traced phases, and the parts that every HTML report is made of.
//!
//! All tables are made here, so a browser without scripts still shows a report; the figures are
//! drawn by the script bundled from `web/`. How a page is kept safe: see `page`.

pub(crate) mod charts;
mod comparison;
pub(crate) mod facts;
pub(crate) mod figures;
pub(crate) mod findings;
pub(crate) mod page;
pub(crate) mod percentiles;
pub(crate) mod points;
mod summary;
pub(crate) mod table;
mod tables;
pub(crate) mod tracks;

use maud::html;

use crate::ReportInput;
use page::PageData;

/// Renders the report.
pub fn render(input: &ReportInput<'_>) -> String {
    let mut blobs = points::Blobs::default();
    let data = PageData {
        phases: figures::build(input, &mut blobs),
        lines: percentiles::build(input).into_iter().collect(),
        ..PageData::default()
    };
    let body = html! {
        header { (summary::header(input)) }
        main {
            (findings::section(&input.document.findings))
            (comparison::section(input))
            (figures::section(input, &data.phases))
            (percentiles::section(input, data.lines.first()))
            (tables::files(input))
            (facts::section(input))
        }
    };
    page::page(&summary::title(input.document), body, &data, &blobs)
}
