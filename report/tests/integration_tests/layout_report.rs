//! Reports of layouts: what they say, and what they never let through.

use seekscope_report::layout::{LayoutComparison, PairedFiles, comparison_terminal};

use crate::layout_sample::{LayoutSample, layout};
use crate::{assert_closed, assert_harmless};

/// Empty when it cannot be made, which no test takes for a page.
fn page(sample: &LayoutSample) -> String {
    sample.html().unwrap_or_default()
}

/// The text without its line breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn widest(text: &str) -> usize {
    let widths = text.lines().map(|line| line.trim_end().chars().count());
    widths.max().unwrap_or(0)
}

#[test]
fn hostile_text_stays_text() {
    let sample = layout(2_000, true, true);
    assert_harmless(&page(&sample));
    let text = sample.terminal(100, true);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn the_policy_names_the_one_script_and_the_one_style() {
    assert_closed(&page(&layout(2_000, false, false)));
}

#[test]
fn the_overview_fits_a_hundred_columns_and_says_what_matters_first() {
    let text = layout(100_000, false, false).terminal(100, true);
    assert!(widest(&text) <= 100, "{}\n{text}", widest(&text));
    let words = joined(&text);
    let position = |part: &str| {
        words
            .find(part)
            .unwrap_or_else(|| panic!("{part} is missing from\n{text}"))
    };
    let headline = position("shop.orders is stored in random order: a cold scan takes about");
    let table = position("name size leaves score per seek free");
    let rows = [
        position("shop.orders 3.05 GiB"),
        position("shop.items 3.05 GiB"),
    ];
    assert!(headline < table && table < rows[0] && rows[0] < rows[1]);
    position("no data yet");
    position("a server has this directory open");
    position("seekscope layout /data/db shop.orders");
    position("typical hard disk (120 IOPS, 150 MB/s), which was assumed, not measured");
    assert!(
        !text.contains("gap to the next"),
        "no details of what was not named"
    );
}

#[test]
fn details_can_be_read_without_colour_and_without_unicode() {
    let sample = layout(5_000, true, false);
    let text = sample.terminal(100, true);
    assert!(widest(&text) <= 100, "{}\n{text}", widest(&text));
    for part in [
        "│░░▒░░░▒░│",
        "half of the remaining order will be lost in 1.20 h",
        "32.0 KiB and more",
    ] {
        assert!(
            joined(&text).contains(part),
            "{part} is missing from\n{text}"
        );
    }
    let ascii = sample.terminal(100, false);
    assert!(ascii.is_ascii(), "{ascii}");
    assert!(
        ascii.contains("|..:...:.|") && ascii.contains("|:...#...|"),
        "{ascii}"
    );
}

#[test]
fn the_page_has_figures_and_numbers() {
    let page = page(&layout(5_000, true, false));
    for part in [
        "Place in the file by key order",
        "How the order changed",
        "Runs by length",
        "shop.items/customer_1",
        "data-marks=\"leaves\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn comparisons_name_files_once_and_show_both() {
    let (first, second) = (layout(5_000, false, false), layout(6_000, false, true));
    let files = |sample: &LayoutSample| sample.document.layout.clone().unwrap().files;
    let (before, after) = (files(&first), files(&second));
    let pairs = [
        PairedFiles {
            first: Some(&before[0]),
            second: Some(&after[0]),
            moved_leaf_pages: Some(1234),
        },
        PairedFiles {
            first: None,
            second: Some(&after[1]),
            moved_leaf_pages: None,
        },
    ];
    let comparison = LayoutComparison {
        first: &first.document,
        second: &second.document,
        pairs: &pairs,
    };
    let text = comparison_terminal(&comparison, 100);
    assert!(widest(&text) <= 100, "{text}");
    assert!(
        text.contains("1,234") && text.contains("(not there)"),
        "{text}"
    );
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
}
