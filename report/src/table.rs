//! A table as both renderers show it.

/// A value, or in words why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Value(String),
    Missing(&'static str),
}

impl Cell {
    /// The value, or the reason for its absence.
    pub(crate) fn or(value: Option<String>, reason: &'static str) -> Self {
        value.map_or(Self::Missing(reason), Self::Value)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// What stands in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// A heading over the rows below it.
    Group(String),
    /// One cell per column.
    Cells(Vec<Cell>),
}

/// Rows under headings. The first column names the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<&'static str>,
    /// So many columns from the left hold words; the others hold numbers, which stand to the right.
    pub(crate) words: usize,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// An empty table; see [`Table::words`].
    pub(crate) fn new(words: usize, columns: &[&'static str]) -> Self {
        Self {
            columns: columns.to_vec(),
            words,
            rows: Vec::new(),
        }
    }

    /// Adds a heading.
    pub(crate) fn group(&mut self, heading: impl Into<String>) {
        self.rows.push(Row::Group(heading.into()));
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// The table, unless it has no rows: what was not measured is not shown.
    pub(crate) fn or_nothing(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}
