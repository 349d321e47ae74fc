//! The phases side by side as a table.

use maud::{Markup, html};

use crate::ReportInput;
use crate::comparison::{Column, GROUPS, Row, columns};
use crate::table::Cell;

/// Up to here columns are equally wide; beyond, as wide as they must be.
const COLUMNS_EVEN: usize = 6;

/// The section with the table.
pub(super) fn section(input: &ReportInput<'_>) -> Markup {
    let columns = columns(input);
    html! {
        section #comparison {
            h2 { "Side by side" }
            @if columns.is_empty() { p.note { "The run has no phases." } }
            @else {
                div.scroll {
                    table.comparison.even[columns.len() <= COLUMNS_EVEN] {
                        thead {
                            tr {
                                td {}
                                @for column in &columns {
                                    th scope="col" { bdi { (column.phase.name) } }
                                }
                            }
                        }
                        @for (heading, rows) in &GROUPS {
                            (group(heading, rows, &columns))
                        }
                    }
                }
            }
        }
    }
}

fn group(heading: &str, rows: &[Row], columns: &[Column<'_>]) -> Markup {
    html! {
        tbody {
            tr { th.group scope="rowgroup" colspan=(columns.len() + 1) { (heading) } }
            @for row in rows {
                tr {
                    th scope="row" { (row.label) }
                    @for column in columns {
                        @match (row.cell)(column) {
                            Cell::Value(text) => td { bdi { (text) } },
                            Cell::Missing(reason) => td.missing { (reason) },
                        }
                    }
                }
            }
        }
    }
}
