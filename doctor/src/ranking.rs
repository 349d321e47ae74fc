//! Which finding comes first.
//!
//! Findings are ordered by the waiting that acting on them saves, the most first. Three things are settled
//! here because no finding can know of the others:
//!
//! - Several may explain the same reads. Whoever comes first claims its share of their waiting; of what is
//!   left the next one claims its share, and so on, so that the sum never exceeds what was waited.
//! - Of findings that save alike (within a factor of two), what removes the cause and costs least comes
//!   first: order before a faster disk (`BEFORE`).
//! - "Nothing is wrong with the disk" holds only where nothing else saves anything noticeable, and is then
//!   the answer.

use seekscope_run::Finding;

use crate::Evidence;
use crate::thresholds::NOTHING_WRONG;

/// Findings that a first screen has room for.
pub const FIRST_SCREEN: usize = 5;

/// Waiting that is worth a finding: a hundredth of one thread's time.
pub const NOTICEABLE_S_PER_HOUR: f64 = 36.0;

/// Unit of gains of waiting that was seen; others are of a job that was not.
pub const PER_HOUR: &str = "s of waiting per hour";

const INCOMPLETE: &str = "evidence.incomplete";

/// Findings that explain waiting for reads.
const READS: [&str; 10] = [
    "layout.key-order-lost",
    "cache.too-small",
    "disk.limited",
    "disk.slow",
    "disk.saturated",
    "query.collection-scan",
    "read-ahead.too-large",
    "read-ahead.too-small",
    "index.random-inserts",
    "schema.scattered-series",
];

/// What comes before what, of findings that save alike.
const BEFORE: [(&str, &[&str]); 5] = [
    (
        "schema.scattered-series",
        &["layout.key-order-lost", "cache.too-small", "disk.saturated"],
    ),
    (
        "layout.key-order-lost",
        &[
            "query.collection-scan",
            "cache.too-small",
            "read-ahead.too-small",
            "disk.limited",
            "disk.slow",
            "disk.saturated",
        ],
    ),
    (
        "cache.too-small",
        &["query.collection-scan", "disk.saturated"],
    ),
    (
        "checkpoint.long",
        &[
            "journal.slow-sync",
            "eviction.by-application-threads",
            "cache.dirty-limit-reached",
            "cache.too-small",
            "disk.saturated",
        ],
    ),
    (
        "disk.limited",
        &["journal.slow-sync", "query.collection-scan"],
    ),
];
/// Savings alike: at least this share of the larger.
const ALIKE: f64 = 0.5;

/// Puts findings in order; see the module. Equals keep their order, those whose saving is not known follow
/// by confidence.
pub fn rank(evidence: &Evidence<'_>, findings: Vec<Finding>) -> Vec<Finding> {
    let mut findings = ordered(findings);
    share_out(
        &mut findings,
        evidence.read_waiting().map(|w| w.s_per_s * 3600.0),
    );
    let mut findings = ordered(findings);
    let acquitted = findings
        .iter()
        .position(|finding| finding.id == NOTHING_WRONG);
    if let Some(at) = acquitted {
        let acquittal = findings.remove(at);
        if !findings.iter().any(accuses_disk) {
            findings.insert(0, acquittal);
        }
    }
    findings
}

/// Saves noticeable waiting for the disk that was seen.
fn accuses_disk(finding: &Finding) -> bool {
    const DISK: [&str; 8] = [
        "disk.",
        "layout.",
        "cache.",
        "checkpoint.",
        "journal.",
        "eviction.",
        "read-ahead.",
        "schema.",
    ];
    let of_disk = DISK.iter().any(|group| finding.id.starts_with(group))
        || READS.contains(&finding.id.as_str());
    let seen = finding
        .gain
        .as_ref()
        .is_none_or(|gain| gain.unit == PER_HOUR);
    of_disk && seen && saved(finding).is_some_and(|s| s >= NOTICEABLE_S_PER_HOUR)
}

fn saved(finding: &Finding) -> Option<f64> {
    finding.saves_s_per_hour.filter(|s| s.is_finite())
}

fn ordered(mut findings: Vec<Finding>) -> Vec<Finding> {
    let key = |finding: &Finding| {
        (
            saved(finding).unwrap_or(-1.0),
            // It speaks of us, not of the server.
            finding.id != INCOMPLETE,
            confidence(&finding.confidence),
        )
    };
    findings.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2))
    });
    for (first, later) in BEFORE.into_iter().rev() {
        put_before(&mut findings, first, later);
    }
    findings
}

/// Moves findings with the id `first` before the first of `later` that saves alike.
fn put_before(findings: &mut Vec<Finding>, first: &str, later: &[&str]) {
    for at in 0..findings.len() {
        if findings[at].id != first {
            continue;
        }
        let least = saved(&findings[at]).unwrap_or(0.0) / ALIKE;
        let place = findings[..at].iter().position(|other| {
            later.contains(&other.id.as_str()) && saved(other).is_some_and(|s| s <= least)
        });
        if let Some(place) = place {
            let finding = findings.remove(at);
            findings.insert(place, finding);
        }
    }
}

/// Of the waiting for reads each takes its share of what those before it leave.
fn share_out(findings: &mut [Finding], waiting_s_per_hour: Option<f64>) {
    let Some(waiting) = waiting_s_per_hour.filter(|waiting| *waiting > 0.0) else {
        return;
    };
    let mut left = 1.0;
    for finding in findings {
        let seen = finding
            .gain
            .as_ref()
            .is_none_or(|gain| gain.unit == PER_HOUR);
        let claims = seen && READS.contains(&finding.id.as_str());
        let Some(claimed) = saved(finding).filter(|_| claims) else {
            continue;
        };
        if left < 1.0 {
            finding.saves_s_per_hour = Some(claimed * left);
            if let Some(gain) = &mut finding.gain {
                gain.value *= left;
                gain.low *= left;
                finding.evidence.push(format!(
                    "Alone it would save {claimed:.0} s per hour; the findings above it take their part of \
                     that first."
                ));
            }
        }
        left *= (1.0 - claimed / waiting).clamp(0.0, 1.0);
    }
}

fn confidence(word: &str) -> u8 {
    match word {
        "high" => 2,
        "medium" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::Gain;

    use super::*;
    use crate::testing::Recording;

    fn finding(id: &str, saves: Option<f64>) -> Finding {
        Finding {
            id: id.into(),
            saves_s_per_hour: saves,
            gain: saves.map(|value| Gain {
                value,
                low: 0.0,
                high: value,
                unit: PER_HOUR.into(),
            }),
            ..Finding::default()
        }
    }

    /// With 1000 s per hour of waiting for reads.
    fn ranked(findings: Vec<Finding>) -> Vec<Finding> {
        let mut recording = Recording::new();
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(&format!("{read} time (usecs)"), 1e9 / 3600.0);
        recording.rising(&format!("{read} count"), 100.0);
        recording.examine(|evidence, _| rank(evidence, findings))
    }

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.id.as_str()).collect()
    }

    #[test]
    fn the_most_first_and_the_unknown_last() {
        let sure = Finding {
            confidence: "high".into(),
            ..finding("b", None)
        };
        let found = ranked(vec![
            finding("a", None),
            sure,
            finding("c", Some(1.0)),
            finding("d", Some(9.0)),
        ]);
        assert_eq!(ids(&found), ["d", "c", "b", "a"]);
        let odd = ranked(vec![finding("a", Some(f64::NAN)), finding("b", Some(0.0))]);
        assert_eq!(ids(&odd), ["b", "a"]);
    }

    #[test]
    fn the_cause_comes_before_the_effect_that_saves_alike() {
        let found = ranked(vec![
            finding("disk.limited", Some(950.0)),
            finding("layout.key-order-lost", Some(700.0)),
            finding("query.collection-scan", Some(1000.0)),
        ]);
        assert_eq!(ids(&found)[0], "layout.key-order-lost");
        let found = ranked(vec![
            finding("disk.limited", Some(980.0)),
            finding("layout.key-order-lost", Some(300.0)),
            finding("cache.too-small", Some(600.0)),
        ]);
        assert_eq!(ids(&found)[0], "disk.limited", "order is a third of it");
    }

    #[test]
    fn waiting_is_claimed_once() {
        let found = ranked(vec![
            finding("cache.too-small", Some(600.0)),
            finding("disk.saturated", Some(800.0)),
            finding("journal.slow-sync", Some(900.0)),
        ]);
        assert_eq!(
            ids(&found),
            ["journal.slow-sync", "cache.too-small", "disk.saturated"]
        );
        let saved: Vec<f64> = found.iter().filter_map(saved).collect();
        assert!(
            (saved[1] - 600.0).abs() < 1e-6 && (saved[2] - 320.0).abs() < 1e-6,
            "{saved:?}"
        );
        let reads = saved[1] + saved[2];
        assert!(reads <= 1000.0, "{reads}");
    }

    #[test]
    fn the_disk_is_acquitted_only_where_nothing_accuses_it() {
        let acquittal = || finding(NOTHING_WRONG, None);
        let found = ranked(vec![finding("cache.too-small", Some(500.0)), acquittal()]);
        assert_eq!(ids(&found), ["cache.too-small"]);
        let small = ranked(vec![finding("cache.too-small", Some(5.0)), acquittal()]);
        assert_eq!(ids(&small), [NOTHING_WRONG, "cache.too-small"]);
        let mut not_seen = finding("layout.key-order-lost", Some(500.0));
        not_seen.gain.as_mut().unwrap().unit = "s per cold scan".into();
        let found = ranked(vec![not_seen, acquittal(), finding("index.unused", None)]);
        assert_eq!(ids(&found)[0], NOTHING_WRONG);
    }
}
