//! Tables and paragraphs as plain text.

use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::table::{Cell, Row, Table};

/// An empty table that keeps to `width` characters.
pub(crate) fn new_table(width: u16) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table
}

/// Numbers stand to the right, under one another.
pub(crate) fn align_right(table: &mut comfy_table::Table, columns: std::ops::Range<usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The table, `width` characters wide.
pub(crate) fn table_text(table: &Table, width: u16) -> String {
    let mut out = new_table(width);
    out.add_row(table.columns.clone());
    for row in &table.rows {
        match row {
            Row::Group(heading) => out.add_row([heading.clone()]),
            Row::Cells(cells) => out.add_row(cells.iter().map(cell_text)),
        };
    }
    align_right(&mut out, table.words..table.columns.len());
    out.to_string()
}

/// Reasons for missing numbers stand in brackets; they are no values.
fn cell_text(cell: &Cell) -> String {
    match cell {
        Cell::Value(text) => text.clone(),
        Cell::Missing("") => String::new(),
        Cell::Missing(why) => format!("({why})"),
    }
}

/// Broken between words, every line indented alike.
pub(crate) fn wrapped(text: &str, width: u16, indent: &str) -> String {
    let limit = usize::from(width).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let used = |line: &String| line.chars().count() + 1 + word.chars().count();
        match lines.last_mut().filter(|line| used(line) <= limit) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("{indent}{word}")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(
            wrapped("one two three four five six", 22, "  "),
            "  one two three four\n  five six"
        );
        let long = "x".repeat(50);
        assert_eq!(wrapped(&long, 20, ""), long);
    }
}
