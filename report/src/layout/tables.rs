//! Shows the numbers. There is no table without rows: what was not measured is not shown.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{LayoutFile, ScanOrder};

use super::sentences::{format_mean_bytes, format_s, hours_text};
use super::{LayoutReportInput, file_name, free_share};
use crate::escape::{shortened, visible};
use crate::facts::{Fact, date};
use crate::numbers::{counted, format_number, format_share};
use crate::table::{Cell, Table};

const NOTHING: &str = "–";
const SINGLE_LEAF: &str = "1 leaf";
/// The most characters of names in the overview, as a table that many collections share has all their names.
const NAME_CHARS: usize = 60;

/// Returns the files that have figures, the largest saving by order first; at most `rows` of them.
pub(crate) fn overview(input: &LayoutReportInput<'_>, rows: usize) -> Option<Table> {
    let measured = || {
        let files = input.files().iter();
        files.filter(|file| file.not_measured.is_none() && file.leaf_pages > 0)
    };
    let decays = measured().any(|file| file.decay.is_some());
    let mut columns = vec![
        "name",
        "size",
        "leaves",
        "score",
        "per seek",
        "free",
        "scan now",
        "in order",
        "compacted",
    ];
    columns.extend(decays.then_some("half-life"));
    let mut table = Table::new(1, &columns);
    for file in measured().take(rows) {
        let mut cells = overview_row(file);
        if decays {
            let half = file.decay.as_ref().and_then(|d| d.half_life_hours);
            cells.push(Cell::or(half.map(hours_text), NOTHING));
        }
        table.row(cells);
    }
    table.and_more(measured().count(), rows, "");
    table.or_nothing()
}

fn overview_row(file: &LayoutFile) -> Vec<Cell> {
    let order = file.order.as_ref();
    let of_order = |text: fn(&ScanOrder) -> String| Cell::or(order.map(text), SINGLE_LEAF);
    let scan = file.predicted_scan.as_ref();
    let seconds = |s: Option<f64>| Cell::or(s.map(format_s), NOTHING);
    vec![
        shortened(&file_name(file), NAME_CHARS).into(),
        format_bytes(file.file_bytes).into(),
        format_count(file.leaf_pages).into(),
        of_order(|order| format!("{:.3}", order.score)),
        of_order(|order| format_mean_bytes(order.bytes_per_seek)),
        format_share(free_share(file)).into(),
        seconds(scan.map(|s| s.now_s)),
        seconds(scan.map(|s| s.ordered_s)),
        seconds(scan.map(|s| s.after_compact_s)),
    ]
}

/// Returns the files without figures, and why.
pub(super) fn without_figures(input: &LayoutReportInput<'_>, rows: usize) -> Option<Table> {
    let mut table = Table::new(2, &["without figures", "why"]);
    let unmeasured = || {
        let files = input.files().iter();
        files.filter_map(|file| Some((file, file.not_measured.as_ref()?)))
    };
    for (file, why) in unmeasured().take(rows) {
        table.row([file_name(file).into(), visible(why).into()]);
    }
    table.and_more(unmeasured().count(), rows, "");
    table.or_nothing()
}

/// Returns a file's contents and how it is ordered.
pub(super) fn file_facts(file: &LayoutFile) -> Vec<Fact> {
    let mut facts = vec![
        ("File", Some(visible(&file.file))),
        ("Checkpoint", Some(checkpoint(file))),
        ("Compressor", known(&file.compressor)),
        ("Size", Some(format_bytes(file.file_bytes))),
        (
            "Leaves",
            Some(format!(
                "{}, {}, {} on average",
                format_count(file.leaf_pages),
                format_bytes(file.leaf_bytes),
                format_bytes(file.leaf_bytes / file.leaf_pages.max(1))
            )),
        ),
        (
            "Internal pages",
            Some(format!(
                "{}, {}; {} levels with the leaves",
                format_count(file.internal_pages),
                format_bytes(file.internal_bytes),
                file.depth
            )),
        ),
    ];
    if file.deleted_leaf_pages > 0 {
        let text = format!(
            "{} that a truncation deleted, and which scans skip",
            format_count(file.deleted_leaf_pages)
        );
        facts.push(("Deleted leaves", Some(text)));
    }
    facts.extend(space_facts(file));
    facts.extend(file.order.as_ref().into_iter().flat_map(order_facts));
    facts.extend(extent_fact(file));
    facts.push((
        "Read for this examination",
        Some(format!(
            "{} in {} reads ({} of the file){}",
            format_bytes(file.bytes_read),
            format_count(file.reads),
            format_share(file.bytes_read as f64 / file.file_bytes.max(1) as f64),
            match file.restarts {
                0 => String::new(),
                n => format!(", restarted {n} times because the server continued to write"),
            }
        )),
    ));
    facts
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| visible(text))
}

fn checkpoint(file: &LayoutFile) -> String {
    let name = visible(&file.checkpoint);
    match file.checkpoint_time_s {
        0 => name,
        seconds => format!("{name}, {}", date(seconds.saturating_mul(1_000_000_000))),
    }
}

fn space_facts(file: &LayoutFile) -> Vec<Fact> {
    let sized = |bytes: u64| (bytes > 0).then(|| format_bytes(bytes));
    let mut facts = vec![(
        "Free for reuse",
        Some(match file.holes {
            0 => "nothing".into(),
            holes => format!(
                "{} ({}) in {}, the largest {}",
                format_bytes(file.free_bytes),
                format_share(free_share(file)),
                counted(holes, "hole"),
                format_bytes(file.largest_hole_bytes)
            ),
        }),
    )];
    for (name, bytes) in [
        (
            "Large keys and values outside the leaves",
            file.overflow_bytes,
        ),
        ("Held by other checkpoints", file.pinned_bytes),
    ] {
        facts.extend(bytes.and_then(sized).map(|text| (name, Some(text))));
    }
    if let Some(documents) = file.documents {
        facts.push(("Documents, about", Some(document_facts(file, documents))));
    }
    facts
}

/// Returns the number of documents by the server's count, which is ahead of the checkpoint: where chunks moved away, it
/// is smaller long before their pages are gone.
fn document_facts(file: &LayoutFile, documents: u64) -> String {
    let count = format_count(documents);
    if documents < file.leaf_pages {
        // Each leaf has one at least.
        return format!("{count} as of now, which are too few for the leaves as of the checkpoint");
    }
    match file.document_bytes.unwrap_or(0) / documents.max(1) {
        0 => count,
        bytes => format!("{count}, {} on average", format_bytes(bytes)),
    }
}

fn order_facts(order: &ScanOrder) -> Vec<Fact> {
    let fact = |name: &'static str, text: String| (name, Some(text));
    vec![
        fact(
            "Score",
            format!("{:.3} (1: in order, 0: random)", order.score),
        ),
        fact(
            "Sequential steps",
            format!(
                "{} without a gap, {} within {}",
                format_share(order.contiguous_share),
                format_share(order.sequential_share),
                format_bytes(order.window_bytes)
            ),
        ),
        fact("Steps backwards", format_share(order.backward_share)),
        fact(
            "Seeks",
            format!(
                "{}, {} at best; one every {}",
                format_count(order.seeks),
                format_count(order.seeks_best),
                format_mean_bytes(order.bytes_per_seek)
            ),
        ),
        fact(
            "Seek distance",
            format!(
                "{} on average, {} at the median",
                format_mean_bytes(order.mean_seek_distance_bytes),
                format_bytes(order.median_seek_distance_bytes)
            ),
        ),
        fact(
            "Runs without a gap",
            format!(
                "{}, {} on average",
                format_count(order.runs),
                format_mean_bytes(order.mean_run_bytes)
            ),
        ),
        fact(
            "Drift over the whole file",
            format!(
                "Kendall's τ {}, Spearman's ρ {}",
                format_number(order.kendall_tau),
                format_number(order.spearman_rho)
            ),
        ),
    ]
}

/// Returns the number of the file's extents on the device, if it is large enough to matter, or at least
/// known.
fn extent_fact(file: &LayoutFile) -> Option<Fact> {
    let extents = file.extents.as_ref()?;
    Some((
        "On the device",
        Some(format!(
            "{} extents, {} on average; {} of the sequential steps are jumps there",
            format_count(extents.extents),
            format_mean_bytes(extents.mean_extent_bytes),
            format_share(extents.broken_pairs_share)
        )),
    ))
}

const BAR_CHARS: u64 = 24;

/// Returns runs by length. With `bar` each has a bar of that character, the longest for the most frequent.
pub(super) fn run_lengths(order: &ScanOrder, bar: Option<char>) -> Option<Table> {
    let rows = order.run_lengths.iter().map(|(from, runs)| {
        let name = format!("{} and more", format_bytes(*from));
        (name, vec![*runs])
    });
    distribution(&["runs of", "number"], rows.collect(), bar)
}

/// Returns steps by distance; bars are for both directions together.
pub(super) fn gaps(order: &ScanOrder, bar: Option<char>) -> Option<Table> {
    let rows = order.gaps.iter().map(|(from, forward, backward)| {
        let name = match from {
            0 => "none".to_string(),
            from => format!("{} and more", format_bytes(*from)),
        };
        (name, vec![*forward, *backward])
    });
    let columns = ["gap to the next leaf", "forward", "backward"];
    distribution(&columns, rows.collect(), bar)
}

fn distribution(
    columns: &[&'static str],
    rows: Vec<(String, Vec<u64>)>,
    bar: Option<char>,
) -> Option<Table> {
    let mut headings = columns.to_vec();
    if bar.is_some() {
        headings.insert(1, "");
    }
    let sum = |counts: &[u64]| counts.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
    let most = rows
        .iter()
        .map(|(_, counts)| sum(counts))
        .max()
        .unwrap_or(0);
    let mut table = Table::new(1 + usize::from(bar.is_some()), &headings);
    for (name, counts) in rows {
        let bar = bar.map(|full| bar_of(sum(&counts), most, full).into());
        let counts = counts.iter().map(|count| format_count(*count).into());
        let cells: Vec<Cell> = std::iter::once(name.into())
            .chain(bar)
            .chain(counts)
            .collect();
        table.row(cells);
    }
    table.or_nothing()
}

/// Returns a bar that is never empty for a non-zero count.
fn bar_of(count: u64, most: u64, full: char) -> String {
    let scaled = u128::from(count) * u128::from(BAR_CHARS) / u128::from(most.max(1));
    let chars = usize::try_from(scaled).unwrap_or(0);
    std::iter::repeat_n(full, chars.max(usize::from(count > 0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_are_too_few_for_the_leaves_are_told_apart_from_them() {
        let of = |leaf_pages, document_bytes| {
            let file = LayoutFile {
                leaf_pages,
                document_bytes,
                ..LayoutFile::default()
            };
            document_facts(&file, 755)
        };
        assert_eq!(of(30, Some(755 * 1_331)), "755, 1.30 KiB on average");
        assert_eq!(of(755, None), "755");
        let moved = of(3_771, Some(755 * 1_331));
        assert!(
            moved.starts_with("755 as of now") && !moved.contains("average"),
            "{moved}"
        );
    }
}
