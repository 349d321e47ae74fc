//! The layout strip: key order from left to right, places in the file upwards. A diagonal is a file
//! in order, noise is a shuffled one, parallel diagonals are ranges that were loaded side by side.

use seekscope_wiredtiger::tree::Leaf;

use crate::order::scanned;

/// Leaf counts by ranges of key order (columns) and of the file (rows).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strip {
    /// The length that the rows divide evenly: the file, or the end of its last leaf if that is
    /// beyond.
    pub file_bytes: u64,
    pub rows: usize,
    /// Columns in key order; each represents the same number of leaves, give or take one.
    pub columns: Vec<StripColumn>,
}

/// A range of key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripColumn {
    /// Leaves that start in each row, beginning with the start of the file.
    pub leaves: Vec<u32>,
    /// Median offset of its leaves; of two middle values, the smaller.
    pub median_offset: u64,
    /// Offset of the leaf in the middle of its key order: a single sample, which jumps about where
    /// order is lost, while all medians then lie half-way.
    pub middle_offset: u64,
}

/// Shares of a column's leaves from which a cell is drawn darker.
const SHADES: [(f64, char); 4] = [
    (2.0 / 3.0, '█'),
    (1.0 / 3.0, '▓'),
    (1.0 / 8.0, '▒'),
    (0.0, '░'),
];

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Strip {
    /// Divides leaves, given in key order, into at most `columns` by `rows`; deleted leaves are left
    /// out. There are fewer columns than wanted where there are fewer leaves, and at least one row.
    pub fn of(leaves: &[Leaf], file_bytes: u64, columns: usize, rows: usize) -> Self {
        let offsets: Vec<u64> = scanned(leaves).map(|leaf| leaf.offset).collect();
        let last = offsets.iter().copied().max().unwrap_or(0);
        let file_bytes = file_bytes.max(last.saturating_add(1));
        let rows = rows.max(1);
        let count = columns.min(offsets.len());
        let start = |column: usize| {
            let start = offsets.len() as u128 * column as u128 / count.max(1) as u128;
            usize::try_from(start).unwrap_or(offsets.len())
        };
        let columns = (0..count)
            .map(|column| {
                StripColumn::of(&offsets[start(column)..start(column + 1)], file_bytes, rows)
            })
            .collect();
        Self {
            file_bytes,
            rows,
            columns,
        }
    }

    /// Returns the strip as characters, a line per row, with the end of the file on top. The darker
    /// a cell, the larger the share of its column's leaves that lie there.
    pub fn drawing(&self) -> Vec<String> {
        (0..self.rows)
            .rev()
            .map(|row| {
                let cells = self.columns.iter().map(|column| column.shade(row));
                cells.collect()
            })
            .collect()
    }

    /// Returns one line that shows for each column how far into the file its middle leaf lies, in
    /// eighths. It climbs steadily if the file is in order.
    pub fn line(&self) -> String {
        let eighth = |column: &StripColumn| {
            let at = place(column.middle_offset, self.file_bytes, EIGHTHS.len());
            EIGHTHS.get(at).copied().unwrap_or(' ')
        };
        self.columns.iter().map(eighth).collect()
    }
}

impl StripColumn {
    fn of(offsets: &[u64], file_bytes: u64, rows: usize) -> Self {
        let mut leaves = vec![0u32; rows];
        for &offset in offsets {
            let cell = &mut leaves[place(offset, file_bytes, rows)];
            *cell = cell.saturating_add(1);
        }
        let mut sorted = offsets.to_vec();
        let middle = offsets.len().saturating_sub(1) / 2;
        Self {
            leaves,
            median_offset: *sorted.select_nth_unstable(middle).1,
            middle_offset: offsets[middle],
        }
    }

    fn shade(&self, row: usize) -> char {
        let all: u64 = self.leaves.iter().map(|&leaves| u64::from(leaves)).sum();
        let here = self.leaves.get(row).copied().unwrap_or(0);
        if here == 0 {
            return ' ';
        }
        let share = f64::from(here) / all as f64;
        let shade = SHADES.iter().find(|(least, _)| share > *least);
        shade.map_or(' ', |&(_, shade)| shade)
    }
}

/// Returns in which of `parts` equal parts of the file an offset below its end lies.
fn place(offset: u64, file_bytes: u64, parts: usize) -> usize {
    let place = u128::from(offset) * parts as u128 / u128::from(file_bytes.max(1));
    usize::try_from(place).map_or(parts - 1, |place| place.min(parts - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use seekscope_wiredtiger::tree::LeafKind;

    use super::*;

    fn leaves(places: impl IntoIterator<Item = u64>) -> Vec<Leaf> {
        let leaf = |place| Leaf {
            offset: place * 4096,
            length: 4096,
            kind: LeafKind::Plain,
        };
        places.into_iter().map(leaf).collect()
    }

    #[test]
    fn order_is_a_diagonal() {
        let strip = Strip::of(&leaves(0..800), 800 * 4096, 8, 8);
        let expected = [
            "       █",
            "      █ ",
            "     █  ",
            "    █   ",
            "   █    ",
            "  █     ",
            " █      ",
            "█       ",
        ];
        assert_eq!(strip.drawing(), expected);
        assert_eq!(strip.line(), "▁▂▃▄▅▆▇█");
        assert_eq!(strip.columns[1].median_offset, 149 * 4096);
    }

    #[test]
    fn shuffled_is_noise() {
        let places = seekscope_stats::shuffled::distinct(8000, 8000, 3);
        let strip = Strip::of(&leaves(places), 8000 * 4096, 16, 8);
        for line in strip.drawing() {
            assert!(line.chars().all(|c| "░▒".contains(c)), "{line}");
        }
        let mut heights: Vec<char> = strip.line().chars().collect();
        assert!(!heights.is_sorted());
        heights.sort_unstable();
        heights.dedup();
        assert!(heights.len() > 3, "{}", strip.line());
    }

    #[test]
    fn parallel_ranges_are_parallel_diagonals() {
        let ranges = (0..2u64).flat_map(|range| (0..400u64).map(move |i| 2 * i + range));
        let strip = Strip::of(&leaves(ranges), 800 * 4096, 8, 4);
        assert_eq!(
            strip.drawing(),
            ["   █   █", "  █   █ ", " █   █  ", "█   █   "]
        );
    }

    #[test]
    fn small_and_odd_ones() {
        let none = Strip::of(&[], 4096, 10, 3);
        assert_eq!(
            (none.drawing(), none.line()),
            (vec![String::new(); 3], String::new())
        );
        assert_eq!(Strip::of(&leaves(0..3), 1 << 20, 10, 0).columns.len(), 3);
        let mut far = leaves(0..2);
        far[1].offset = u64::MAX;
        assert_eq!(Strip::of(&far, 0, 2, 2).line(), "▁█");
        far[0].kind = LeafKind::Deleted;
        assert_eq!(Strip::of(&far, 0, 2, 2).columns.len(), 1);
    }

    proptest! {
        #[test]
        fn every_leaf_is_counted_once(
            places in prop::collection::vec(0u64..1000, 0..200),
            columns in 0usize..50,
            rows in 0usize..20,
        ) {
            let strip = Strip::of(&leaves(places.iter().copied()), 0, columns, rows);
            prop_assert_eq!(strip.columns.len(), columns.min(places.len()));
            let per_column: Vec<u32> = strip.columns.iter().map(|c| c.leaves.iter().sum()).collect();
            if columns > 0 {
                prop_assert_eq!(per_column.iter().sum::<u32>() as usize, places.len());
            }
            if let (Some(most), Some(least)) = (per_column.iter().max(), per_column.iter().min()) {
                prop_assert!(most - least <= 1);
            }
        }
    }
}
