//! Renders tables as markup.

use maud::{Markup, html};

use crate::table::{Cell, Row, Table};

/// Returns the table, which scrolls sideways if the page is too narrow.
pub(crate) fn table(table: &Table) -> Markup {
    html! {
        div.scroll {
            table.prose[table.words == table.columns.len()] {
                @if table.has_headings() {
                    thead {
                        tr {
                            @for (index, heading) in table.columns.iter().enumerate() {
                                th.words[index < table.words] scope="col" { (heading) }
                            }
                        }
                    }
                }
                tbody { @for row in &table.rows { (table_row(table, row)) } }
            }
        }
    }
}

/// Returns the table, folded if it has more than `rows_max` rows and would push everything else away.
pub(crate) fn folded(numbers: &Table, rows_max: usize) -> Markup {
    html! {
        @if numbers.rows.len() > rows_max {
            details {
                summary { "All of it (rows: " (numbers.rows.len()) ")" }
                (table(numbers))
            }
        } @else { (table(numbers)) }
    }
}

fn table_row(table: &Table, row: &Row) -> Markup {
    html! {
        tr {
            @match row {
                Row::Group(heading) => {
                    th.group scope="rowgroup" colspan=(table.columns.len()) { bdi { (heading) } }
                }
                Row::Cells(cells) => {
                    @for (index, cell) in cells.iter().enumerate() {
                        @match cell {
                            Cell::Value(text) if index == 0 => {
                                th.words scope="row" { bdi { (text) } }
                            }
                            Cell::Value(text) => {
                                td.words[index < table.words] { bdi { (text) } }
                            }
                            Cell::Missing(reason) => {
                                td.missing.words[index < table.words] { (reason) }
                            }
                        }
                    }
                }
            }
        }
    }
}
