//! Renders tables and paragraphs as plain text.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};

use crate::table::{Cell, Row, Table};

/// Creates an empty table that is at most `width` characters wide.
fn new_table(width: u16) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table
}

/// Aligns numbers right.
fn align_right(table: &mut comfy_table::Table, columns: std::ops::Range<usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Returns the table, `width` characters wide.
pub(crate) fn table_text(table: &Table, width: u16) -> String {
    let mut out = new_table(width);
    if table.has_headings() {
        out.add_row(table.columns.clone());
    }
    for row in &table.rows {
        match row {
            Row::Group(heading) => out.add_row([heading.clone()]),
            Row::Cells(cells) => out.add_row(cells.iter().map(cell_text)),
        };
    }
    align_right(&mut out, table.words..table.columns.len());
    keep_words_whole(table, &mut out, width);
    out.trim_fmt()
}

/// Allows only the first column to be broken, as long as enough room is left for it: a broken name is still a
/// name, but a broken number is not a number.
fn keep_words_whole(table: &Table, out: &mut comfy_table::Table, width: u16) {
    const PADDING: usize = 2;
    const FIRST_COLUMN_MIN: usize = 12;
    let needed = |index: usize| {
        let cells = table.rows.iter().filter_map(|row| match row {
            Row::Group(_) => None,
            Row::Cells(cells) => Some(cell_text(cells.get(index)?).chars().count()),
        });
        let words = table.columns[index]
            .split(' ')
            .map(|word| word.chars().count());
        cells.chain(words).max().unwrap_or(0) + PADDING
    };
    // Prose is broken between words anyway.
    let prose = table.words == table.columns.len();
    let others: Vec<usize> = (1..table.columns.len()).map(needed).collect();
    let left = usize::from(width).checked_sub(others.iter().sum());
    let first_column = || needed(0).min(FIRST_COLUMN_MIN);
    if prose || left.is_none_or(|left| left < first_column()) {
        return;
    }
    for (index, needed) in (1..).zip(others) {
        if let (Some(column), Ok(needed)) = (out.column_mut(index), u16::try_from(needed)) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(needed)));
        }
    }
}

/// Returns a cell's text. Reasons for missing numbers are in brackets, as they are not values.
fn cell_text(cell: &Cell) -> String {
    match cell {
        Cell::Value(text) => text.clone(),
        Cell::Missing("") => String::new(),
        Cell::Missing(why) => format!("({why})"),
    }
}

/// Breaks text between words, with every line indented alike.
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
    fn numbers_and_words_stay_whole_and_long_names_break() {
        let mut table = Table::new(1, &["file", "bytes asked for", "pattern"]);
        table.row([
            "a/very/long/name/that/goes/on.wt".into(),
            "1.50 MiB".into(),
            "sequential".into(),
        ]);
        let text = table_text(&table, 48);
        assert!(
            text.lines().all(|line| line.chars().count() <= 48),
            "{text}"
        );
        assert!(text.contains("1.50 MiB  sequential"), "{text}");
        assert!(!text.contains("that/goes/on.wt"), "{text}");
    }

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
