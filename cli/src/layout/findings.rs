//! What should be done about files that are out of order.

use seekscope_report::layout::file_name;
use seekscope_report::layout::sentences::{about_file, file_headline, is_worth_ordering};
use seekscope_run::{Finding, Gain, LayoutFile, LayoutMeasurement};

/// More would be no advice.
const FINDINGS_MAX: usize = 10;

/// One finding for each file that order would help much, the most first.
pub fn findings(layout: &LayoutMeasurement) -> Vec<Finding> {
    let worth = layout.files.iter().filter(|file| is_worth_ordering(file));
    worth
        .filter_map(|file| finding(file, layout.disk_measured))
        .take(FINDINGS_MAX)
        .collect()
}

fn finding(file: &LayoutFile, disk_measured: bool) -> Option<Finding> {
    let scan = file.predicted_scan.as_ref()?;
    let gain = |now_s: f64| (now_s - scan.ordered_s).max(0.0);
    let mut evidence: Vec<String> = file_headline(file).into_iter().collect();
    evidence.extend(about_file(file));
    evidence.push(match &file.index {
        Some(_) => "A freshly built index is in order: drop it and build it again.".into(),
        None => "compact frees space but does not restore the order. An initial sync of the member, a \
                 dump and restore, or $out into a new collection writes the documents in order. Random \
                 updates lose it again."
            .into(),
    });
    Some(Finding {
        id: "layout.key-order-lost".into(),
        title: format!("{} has lost its order on disk", file_name(file)),
        evidence,
        gain: Some(Gain {
            value: gain(scan.now_s),
            low: gain(scan.now_low_s),
            high: gain(scan.now_high_s),
            unit: "s per cold scan".into(),
        }),
        // The order is exact; the seconds are as good as what is known of the disk.
        confidence: if disk_measured { "high" } else { "medium" }.into(),
        risk: "rewriting takes time, I/O and as much free space again; try it on a secondary first"
            .into(),
        command: String::new(),
    })
}
