//! What should be done about files that are out of order.

use seekscope_report::layout::file_name;
use seekscope_report::layout::sentences::{
    about_file, file_headline, is_worth_ordering, reorder_command,
};
use seekscope_run::{Finding, Gain, LayoutFile, LayoutMeasurement};

/// More would be no advice.
const FINDINGS_MAX: usize = 10;

/// One finding for each file that order would help much, the most first. `uri` is the server's where
/// one was asked.
pub fn findings(layout: &LayoutMeasurement, uri: Option<&str>) -> Vec<Finding> {
    let worth = layout.files.iter().filter(|file| is_worth_ordering(file));
    worth
        .filter_map(|file| finding(file, layout.disk_measured, uri))
        .take(FINDINGS_MAX)
        .collect()
}

fn finding(file: &LayoutFile, disk_measured: bool, uri: Option<&str>) -> Option<Finding> {
    let scan = file.predicted_scan.as_ref()?;
    let gain = |now_s: f64| (now_s - scan.ordered_s).max(0.0);
    let mut evidence: Vec<String> = file_headline(file, disk_measured).into_iter().collect();
    evidence.extend(about_file(file));
    evidence.push(match &file.index {
        Some(_) => "A freshly built index is in order: drop it and build it again.".into(),
        None => "compact frees space but does not restore the order. seekscope reorder copies the \
                 documents in order and puts the copy in place; an initial sync of the member writes them \
                 in order too. Random updates lose it again."
            .into(),
    });
    Some(Finding {
        subject: String::new(),
        saves_s_per_hour: None,
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
        command: reorder_command(file, uri).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{PredictedScan, ScanOrder};

    use super::*;

    fn file(name: &str, now_s: f64) -> LayoutFile {
        LayoutFile {
            namespace: Some(name.into()),
            leaf_pages: 1000,
            order: Some(ScanOrder::default()),
            predicted_scan: Some(PredictedScan {
                now_s,
                now_low_s: now_s / 2.0,
                now_high_s: now_s * 2.0,
                ordered_s: 2.0,
                ..PredictedScan::default()
            }),
            ..LayoutFile::default()
        }
    }

    #[test]
    fn what_is_out_of_order_is_a_finding_and_what_is_not_is_none() {
        let mut index = file("shop.orders", 9.0);
        index.index = Some("customer_1".into());
        let layout = LayoutMeasurement {
            files: vec![file("shop.orders", 31.0), index, file("shop.items", 2.1)],
            ..LayoutMeasurement::default()
        };
        let found = findings(&layout, Some("mongodb://h/"));
        assert_eq!(
            found[0].command,
            "seekscope reorder mongodb://h/ shop.orders"
        );
        assert!(found[1].command.is_empty());
        let titles: Vec<&str> = found.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "shop.orders has lost its order on disk",
                "shop.orders/customer_1 has lost its order on disk"
            ]
        );
        let gain = found[0].gain.as_ref().unwrap();
        assert_eq!((gain.value, gain.low, gain.high), (29.0, 13.5, 60.0));
        assert!(
            found[0]
                .evidence
                .iter()
                .any(|e| e.contains("compact frees space"))
        );
        assert!(
            found[1]
                .evidence
                .iter()
                .any(|e| e.contains("drop it and build it again"))
        );
    }
}
