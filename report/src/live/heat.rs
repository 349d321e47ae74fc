//! Counts accesses by position in a file and time, in bounded space whatever the size of the file.

use super::recent::Recent;

/// Number of stretches that a file is divided into.
pub(super) const ROWS: usize = 64;
/// Number of slices of time kept.
pub(super) const COLUMNS: u64 = 120;
/// Smallest stretch: a page.
const ROW_BYTES_MIN: u64 = 4096;

/// Counts of one slice of time, lowest offsets first.
#[derive(Debug, Clone)]
struct Column([u32; ROWS]);

impl Default for Column {
    fn default() -> Self {
        Self([0; ROWS])
    }
}

/// The map of one file.
#[derive(Debug, Clone)]
pub(super) struct HeatMap {
    /// Bytes per row, a power of two; doubled when an offset lies beyond the last row.
    row_bytes: u64,
    columns: Recent<Column>,
}

impl HeatMap {
    /// Creates an empty map.
    pub(super) fn new() -> Self {
        Self {
            row_bytes: ROW_BYTES_MIN,
            columns: Recent::new(COLUMNS),
        }
    }

    /// Counts an access in the slice with that number.
    pub(super) fn count(&mut self, slice: u64, offset: u64) {
        while offset / self.row_bytes >= ROWS as u64 {
            self.row_bytes *= 2;
            self.columns.iter_mut().for_each(Column::merge_pairs);
        }
        // Below ROWS; see above.
        let row = usize::try_from(offset / self.row_bytes).unwrap_or(0);
        let count = &mut self.columns.at(slice).0[row];
        *count = count.saturating_add(1);
    }

    /// Returns the last `columns` slices up to `last`, in at most as many rows as requested.
    pub(super) fn picture(&self, last: u64, columns: usize, rows: usize) -> HeatPicture {
        let columns = columns.min(usize::try_from(COLUMNS).unwrap_or(usize::MAX));
        let first = (last + 1).saturating_sub(columns as u64);
        let shown: Vec<(u64, &Column)> = self.columns.since(first).collect();
        let highest = |(_, column): &(u64, &Column)| column.0.iter().rposition(|&count| count > 0);
        let used_rows = shown
            .iter()
            .filter_map(highest)
            .max()
            .map_or(0, |row| row + 1);
        let per_row = used_rows.div_ceil(rows.max(1)).max(1);
        let rows = used_rows.div_ceil(per_row);
        let mut cells = vec![vec![0u64; columns]; rows];
        for (slice, column) in shown {
            // The current slice is the last column, even before there are enough of them.
            let age = usize::try_from(last.saturating_sub(slice)).unwrap_or(usize::MAX);
            let Some(x) = columns.checked_sub(age.saturating_add(1)) else {
                continue;
            };
            for (row, &count) in column.0.iter().enumerate() {
                if let Some(cell) = cells.get_mut(row / per_row).and_then(|r| r.get_mut(x)) {
                    *cell += u64::from(count);
                }
            }
        }
        HeatPicture {
            row_bytes: self.row_bytes.saturating_mul(per_row as u64),
            cells,
        }
    }
}

impl Column {
    /// Merges each two rows into one, because each now covers twice as many bytes.
    fn merge_pairs(&mut self) {
        for row in 0..ROWS / 2 {
            self.0[row] = self.0[2 * row].saturating_add(self.0[2 * row + 1]);
        }
        self.0[ROWS / 2..].fill(0);
    }
}

/// A map as it is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HeatPicture {
    /// Bytes of the file per row.
    pub(super) row_bytes: u64,
    /// Rows from the lowest offsets up, in each the counts from the oldest slice on.
    pub(super) cells: Vec<Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_size_fits_and_no_access_is_lost() {
        let mut map = HeatMap::new();
        map.count(5, 0);
        map.count(5, 5000);
        map.count(6, 1 << 30);
        map.count(6, u64::MAX);
        assert_eq!(map.row_bytes, 1 << 58);
        let picture = map.picture(6, 10, 16);
        assert_eq!((picture.cells.len(), picture.cells[0].len()), (16, 10));
        // Time runs to the right, the current slice last; offsets run up.
        assert_eq!((picture.cells[0][8], picture.cells[0][9]), (2, 1));
        assert_eq!(picture.cells[15][9], 1);
        assert_eq!(picture.cells.iter().flatten().sum::<u64>(), 4);
    }

    #[test]
    fn only_rows_in_use_are_drawn() {
        let mut map = HeatMap::new();
        assert!(map.picture(9, 10, 16).cells.is_empty());
        map.count(9, 4096 * 20);
        let picture = map.picture(9, 10, 16);
        // 21 rows are in use: each two share one.
        assert_eq!((picture.cells.len(), picture.row_bytes), (11, 8192));
        assert_eq!(picture.cells[10][9], 1);
        assert_eq!(map.picture(500, 10, 16).cells.len(), 0, "long ago");
    }
}
