//! From measured facts to conclusions. Pure: records in, findings out, most seconds first.

use seekscope_pattern::PatternKind;
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{DeviceFacts, Finding, Gain};
use seekscope_stats::PairedRatio;

use super::comparison::{Analysed, Comparison};

/// An index build this much slower than its twin is a finding, not noise: no pair of equal builds
/// came near it on a busy two-core machine.
const RATIO_OF_CONCERN: f64 = 1.5;
/// Fewer reads than this in an observation say nothing about a pattern.
const READS_OF_CONCERN: u64 = 100;

/// All findings of a run.
pub fn find(
    phases: &[Analysed<'_>],
    comparisons: &[Comparison],
    device: Option<&DeviceFacts>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = comparisons
        .iter()
        .filter_map(|c| {
            let on_disk = |variant: &str| {
                phases
                    .iter()
                    .find(|p| p.phase.variant == variant && p.phase.disk == c.disk)
                    .copied()
            };
            Some(from_comparison(
                c,
                on_disk("fresh")?,
                on_disk("aged")?,
                device,
            ))
        })
        .collect();
    findings.extend(
        phases
            .iter()
            .filter(|p| p.phase.variant == "observed")
            .flat_map(from_observation),
    );
    findings.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    findings
}

fn seconds(finding: &Finding) -> f64 {
    finding.gain.as_ref().map_or(0.0, |g| g.value)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn from_comparison(
    c: &Comparison,
    fresh: Analysed<'_>,
    aged: Analysed<'_>,
    device: Option<&DeviceFacts>,
) -> Finding {
    let label = &c.disk_label;
    let mut evidence = vec![format!(
        "On the {label} the index took {:.1} s on `fresh` and {:.1} s on `aged`, {:.1} times as long{}; both \
         collections hold the same number of documents of the same size.",
        c.fresh_s,
        c.aged_s,
        c.ratio.median,
        match c.ratio.pairs {
            1 => " (one pair, so without an interval)".to_string(),
            n => format!(" ({n} pairs, {:.1} to {:.1})", c.ratio.low, c.ratio.high),
        },
    )];
    evidence.extend(pattern_evidence(fresh, aged));
    let verdict = Verdict::of(&c.ratio);
    let matters = verdict == Verdict::Costs;
    let times = c.ratio.median;
    let (id, title) = match verdict {
        Verdict::Costs => (
            "layout.key-order-lost",
            format!(
                "`aged` is stored in another order than it is scanned: {times:.1} times the time per scan on the {label}"
            ),
        ),
        Verdict::Undecided => (
            "layout.key-order-undecided",
            format!(
                "On the {label} `aged` took {times:.1} times as long, but the builds vary too much to be sure: ask for more --repeats"
            ),
        ),
        Verdict::Harmless => (
            "layout.key-order-harmless",
            format!(
                "On the {label} the lost key order of `aged` costs little: {:.1} s against {:.1} s",
                c.aged_s, c.fresh_s
            ),
        ),
    };
    if verdict == Verdict::Harmless && !c.disk.is_emulated() {
        evidence.extend(why_small(aged, device));
    }
    let sure = fresh.fully_traced() && aged.fully_traced();
    Finding {
        subject: String::new(),
        saves_s_per_hour: None,
        id: id.into(),
        title,
        evidence,
        gain: matters.then(|| Gain {
            value: c.aged_s - c.fresh_s,
            low: c.difference_s_low,
            high: c.difference_s_high,
            unit: "s per scan or index build of the collection".into(),
        }),
        confidence: confidence(sure, &c.ratio, verdict).into(),
        risk: if matters {
            "Copying needs free space for the whole collection; indexes must be built anew on the copy, and writes made meanwhile are not in it.".into()
        } else {
            "None: nothing needs doing on this disk.".into()
        },
        command: if matters {
            copy_command(aged)
        } else {
            String::new()
        },
    }
}

/// Copying in record-id order into a new collection restores the order; `compact` does not.
fn copy_command(aged: Analysed<'_>) -> String {
    let Some((database, collection)) = aged
        .phase
        .namespace
        .as_deref()
        .and_then(|n| n.split_once('.'))
    else {
        return String::new();
    };
    // JSON strings are JavaScript strings: whatever the names hold, they stay names.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "mongosh> db.getSiblingDB({}).getCollection({}).aggregate([{{$out: {}}}])",
        quoted(database),
        quoted(collection),
        quoted(&format!("{collection}_ordered")),
    )
}

fn pattern_evidence(fresh: Analysed<'_>, aged: Analysed<'_>) -> Option<String> {
    let (f, a) = (fresh.main_pattern()?, aged.main_pattern()?);
    Some(format!(
        "Of the reads of the collection's file, {} of `fresh` and {} of `aged` continued where the last one had \
         ended; the disk had to go to {} and {} places. A document that is updated moves with its whole page to \
         another place in the file, and the scan still follows the old order.",
        percent(f.contiguous_share),
        percent(a.contiguous_share),
        format_count(f.seeks),
        format_count(a.seeks),
    ))
}

fn why_small(aged: Analysed<'_>, device: Option<&DeviceFacts>) -> Option<String> {
    let read_ahead = device?.read_ahead_kib?;
    let (_, file) = aged.main_file()?;
    let waited = file.cache.misses + file.cache.waited_for_others;
    Some(format!(
        "Only {} of the {} reads of `aged` waited for this disk (half of all reads took at most {}): its read-ahead of \
         {read_ahead} KiB brings in neighbours that a scan in any order needs later. On a disk with few IOPS, or with a \
         small read-ahead, the same layout is expensive.",
        format_count(waited),
        format_count(file.reads.calls),
        format_ns(file.reads.latency_ns.p50),
    ))
}

/// What a ratio of build times says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Costs,
    Undecided,
    Harmless,
}

impl Verdict {
    fn of(ratio: &PairedRatio) -> Self {
        match ratio {
            r if r.low >= RATIO_OF_CONCERN => Self::Costs,
            r if r.high >= RATIO_OF_CONCERN => Self::Undecided,
            _ => Self::Harmless,
        }
    }
}

/// Few pairs make a poor interval, but a ratio far from the limit needs no good one.
fn confidence(fully_traced: bool, ratio: &PairedRatio, verdict: Verdict) -> &'static str {
    let enough_pairs =
        ratio.pairs >= 6 || (ratio.pairs >= 2 && ratio.low >= 2.0 * RATIO_OF_CONCERN);
    match verdict {
        Verdict::Undecided => "low",
        _ if !fully_traced => "low",
        _ if enough_pairs => "high",
        _ => "medium",
    }
}

fn from_observation(observed: &Analysed<'_>) -> Option<Finding> {
    let (record, file) = observed.main_file()?;
    let pattern = file.read_pattern.as_ref()?;
    let harmless = matches!(pattern.kind, PatternKind::Sequential | PatternKind::ReRead);
    if file.reads.calls < READS_OF_CONCERN || harmless {
        return None;
    }
    let name = record.namespace.as_deref().unwrap_or(record.name());
    let waited = file.cache.misses + file.cache.waited_for_others + file.cache.direct;
    let waits = format!(
        "{} of {} reads waited for the disk; {} came from the page cache. Median latency {}, 99th percentile {}.",
        format_count(waited),
        format_count(file.reads.calls),
        format_count(file.cache.hits),
        format_ns(file.reads.latency_ns.p50),
        format_ns(file.reads.latency_ns.p99),
    );
    Some(Finding {
        subject: String::new(),
        saves_s_per_hour: None,
        id: "io.reads-jump".into(),
        title: format!("Reads of {name} are {}: {} of them continue where the last one ended", pattern.kind.name(), percent(pattern.contiguous_share)),
        evidence: vec![
            format!(
                "{} in {} reads; median jump {}, {} of the file touched.",
                format_bytes(file.reads.bytes),
                format_count(file.reads.calls),
                format_bytes(pattern.seek_bytes.p50),
                format_bytes(pattern.distinct_bytes),
            ),
            waits,
            "Point reads by key look like this by nature; a collection scan or index build that does has lost its order on disk.".into(),
        ],
        gain: None,
        confidence: if observed.fully_traced() { "medium" } else { "low" }.into(),
        risk: "None: this is an observation.".into(),
        command: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noisy_ratios_are_undecided() {
        let ratio = |low, median, high, pairs| PairedRatio {
            median,
            low,
            high,
            pairs,
        };
        assert_eq!(Verdict::of(&ratio(14.3, 15.2, 16.1, 2)), Verdict::Costs);
        assert_eq!(Verdict::of(&ratio(1.4, 2.2, 3.0, 2)), Verdict::Undecided);
        assert_eq!(Verdict::of(&ratio(0.9, 1.0, 1.2, 2)), Verdict::Harmless);
        assert_eq!(
            confidence(true, &ratio(14.3, 15.2, 16.1, 2), Verdict::Costs),
            "high"
        );
        assert_eq!(
            confidence(true, &ratio(0.9, 1.0, 1.2, 2), Verdict::Harmless),
            "medium"
        );
        assert_eq!(
            confidence(false, &ratio(14.3, 15.2, 16.1, 9), Verdict::Costs),
            "low"
        );
    }
}
