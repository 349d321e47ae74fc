//! Defines tables as both renderers show them.

use seekscope_run::units::format_count;

use crate::escape::visible;

/// A value, or the reason in words why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    Value(String),
    Missing(&'static str),
}

impl Cell {
    /// Returns the value, or the reason for its absence.
    pub fn or(value: Option<String>, reason: &'static str) -> Self {
        value.map_or(Self::Missing(reason), Self::Value)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// The contents of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A heading over the rows below it.
    Group(String),
    /// Cells, one per column.
    Cells(Vec<Cell>),
}

/// Rows under headings. The first column names the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<&'static str>,
    /// Number of columns from the left that hold words; the others hold numbers, which are right-aligned.
    pub words: usize,
    pub rows: Vec<Row>,
}

impl Table {
    /// Creates an empty table; see [`Table::words`].
    pub fn new(words: usize, columns: &[&'static str]) -> Self {
        Self {
            columns: columns.to_vec(),
            words,
            rows: Vec::new(),
        }
    }

    /// Returns whether it has column headings. A list of facts needs none.
    pub(crate) fn has_headings(&self) -> bool {
        self.columns.iter().any(|heading| !heading.is_empty())
    }

    /// Adds a heading.
    pub fn group(&mut self, heading: impl Into<String>) {
        self.rows.push(Row::Group(heading.into()));
    }

    /// Adds how many of `rows` are left out if only `rows_max` are shown, and where they are instead, e.g. ", in
    /// run.json".
    pub(crate) fn and_more(&mut self, rows: usize, rows_max: usize, elsewhere: &str) {
        let more = rows.saturating_sub(rows_max) as u64;
        if more > 0 {
            self.group(format!("and {} more{elsewhere}", format_count(more)));
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// Returns the table with line breaks in cells made visible, so that a name cannot start a line of its
    /// own.
    pub(crate) fn on_one_line(&self) -> Self {
        let mut shown = self.clone();
        for row in &mut shown.rows {
            match row {
                Row::Group(text) => *text = visible(text),
                Row::Cells(cells) => {
                    for cell in cells {
                        if let Cell::Value(text) = cell {
                            *text = visible(text);
                        }
                    }
                }
            }
        }
        shown
    }

    /// Returns the table, unless it has no rows: what was not measured is not shown.
    pub fn or_nothing(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}
