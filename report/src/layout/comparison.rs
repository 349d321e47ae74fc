//! Compares two layouts: before and after, or two members of a replica set.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{LayoutFile, RunDocument};

use super::sentences::{format_mean_bytes, format_s};
use super::{file_name, free_share};
use crate::facts::date;
use crate::numbers::format_share;
use crate::table::{Cell, Table};
use crate::terminal::visible;
use crate::text::{table_text, wrapped};

const NOTHING: &str = "–";

/// Two runs of `layout`.
#[derive(Debug, Clone, Copy)]
pub struct LayoutComparison<'a> {
    pub first: &'a RunDocument,
    pub second: &'a RunDocument,
    /// Files of both by namespace and index, those with the largest change first; then those in only one.
    pub pairs: &'a [PairedFiles<'a>],
}

/// One file in both runs, or in one of them.
#[derive(Debug, Clone, Copy)]
pub struct PairedFiles<'a> {
    pub first: Option<&'a LayoutFile>,
    pub second: Option<&'a LayoutFile>,
    /// Leaves of the second at positions without a leaf in the first; `None` where a leaf list is missing.
    pub moved_leaf_pages: Option<u64>,
}

/// Renders the comparison, `width` characters wide: two lines for each file.
pub fn comparison_terminal(comparison: &LayoutComparison<'_>, width: u16) -> String {
    let mut text = String::new();
    for (word, run) in [("A", comparison.first), ("B", comparison.second)] {
        let path = run.layout.as_ref().map_or("nothing", |layout| &layout.path);
        let disk = run
            .layout
            .as_ref()
            .map_or("", |layout| &layout.predicted_for);
        let line = format!(
            "{word}: {}, {}, predicted for: {}",
            crate::escape::visible(path),
            date(run.started.realtime_ns),
            crate::escape::visible(disk)
        );
        text.push_str(&wrapped(&line, width, ""));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&table_text(&table(comparison.pairs), width));
    visible(text.trim_end()) + "\n"
}

fn table(pairs: &[PairedFiles<'_>]) -> Table {
    let mut table = Table::new(
        1,
        &[
            "name", "size", "leaves", "score", "per seek", "free", "scan", "in order", "moved",
        ],
    );
    for pair in pairs {
        let name = pair
            .first
            .or(pair.second)
            .map_or_else(String::new, file_name);
        table.group(name);
        table.row(row("  A", pair.first, None));
        table.row(row("  B", pair.second, pair.moved_leaf_pages));
    }
    table
}

fn row(word: &'static str, file: Option<&LayoutFile>, moved: Option<u64>) -> Vec<Cell> {
    let Some(file) = file else {
        let mut cells: Vec<Cell> = vec![word.into(), Cell::Missing("not there")];
        cells.resize(9, Cell::Missing(""));
        return cells;
    };
    let order = file.order.as_ref();
    let scan = file.predicted_scan.as_ref();
    vec![
        word.into(),
        format_bytes(file.file_bytes).into(),
        format_count(file.leaf_pages).into(),
        Cell::or(order.map(|o| format!("{:.3}", o.score)), NOTHING),
        Cell::or(order.map(|o| format_mean_bytes(o.bytes_per_seek)), NOTHING),
        format_share(free_share(file)).into(),
        Cell::or(scan.map(|s| format_s(s.now_s)), NOTHING),
        Cell::or(scan.map(|s| format_s(s.ordered_s)), NOTHING),
        Cell::or(moved.map(format_count), ""),
    ]
}
